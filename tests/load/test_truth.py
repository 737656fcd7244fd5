"""Against a server whose every instant is known."""

import numpy as np

from prony.measure.eventlog import EventLog, Fault, Ints, Kind
from tests.load.conftest import Truth
from tests.load.load import faults, load, record

TOKENS = (Kind.CONTENT, Kind.REASONING, Kind.TOOL)


def at(log: EventLog, request: int, *kinds: Kind) -> Ints:
    events = log.events
    return events.at[(events.request == request) & np.isin(events.kind, [int(kind) for kind in kinds])]


def test_every_request_and_token_is_counted(truth: Truth) -> None:
    log = load(truth.url, concurrency=4, requests=12, osl=16)
    assert faults(log) == [Fault.OK] * 12
    assert log.requests.output_counted.tolist() == log.requests.output_planned.tolist() == [16] * 12
    assert [len(at(log, i, Kind.CONTENT)) for i in range(12)] == [16] * 12
    assert np.count_nonzero(log.events.kind == Kind.USAGE) == np.count_nonzero(log.events.kind == Kind.DONE) == 12
    assert set(log.requests.status.tolist()) == {200}


def test_lengths_are_uniform_over_the_asked_range_and_repeat_with_the_seed(truth: Truth) -> None:
    plan = {"concurrency": 4, "requests": 24, "isl": 20, "osl": 10, "range_ratio": 0.8, "seed": 7}
    first, second = load(truth.url, **plan), load(truth.url, **plan)
    assert set(first.requests.output_planned.tolist()) == {8, 9, 10}
    assert set(first.requests.input_planned.tolist()) <= {16, 17, 18, 19, 20}
    assert first.requests.input_planned.tolist() == second.requests.input_planned.tolist()
    assert first.requests.output_counted.tolist() == first.requests.output_planned.tolist()


def test_no_event_is_stamped_before_it_was_sent_and_stamps_keep_their_order(truth: Truth) -> None:
    recording = record(truth.url, concurrency=8, requests=24, osl=16)
    log, truths = recording.log, truth.dump()
    assert log is not None and log.client.clock == "kernel"
    lags = []
    for request in range(24):
        sent = int(log.requests.sent[request]) + recording.origin_ns
        assert truths[request]["t_req"] >= sent
        seen = at(log, request, Kind.CONTENT) + recording.origin_ns
        lags.append(seen - np.asarray(truths[request]["t_events"]))
        assert np.all(np.diff(seen) >= 0)
        assert log.requests.sent[request] <= log.requests.headers[request] <= log.requests.end[request]
    lag = np.concatenate(lags)
    assert lag.min() >= 0
    assert np.median(lag) < 100e6  # a wrong clock offset is off by far more


def test_concurrency_is_what_was_asked_over_connections_opened_once(truth: Truth) -> None:
    log = load(truth.url, concurrency=8, requests=32, warmups=8)
    stats = truth.stats()
    assert stats["peak_inflight"] == 8
    assert log.client.connections == 8
    assert stats["completed"] == 40 and len(log.requests) == 32
    assert set(log.requests.connection.tolist()) == set(range(8))
    assert log.requests.scheduled.min() == 0 and np.all(log.requests.sent >= log.requests.scheduled)


def test_an_empty_role_chunk_is_no_token(truth: Truth) -> None:
    truth.configure(ttft_us=60_000, role_us=5_000)
    log = load(truth.url, endpoint="chat")
    sent = int(log.requests.sent[0])
    role, tokens = at(log, 0, Kind.ROLE), at(log, 0, *TOKENS)
    assert len(role) == 1 and len(tokens) == 8
    assert role[0] - sent >= 5e6 and tokens[0] - role[0] >= 50e6


def test_reasoning_comes_before_the_answer_and_is_told_apart(truth: Truth) -> None:
    truth.configure(reasoning=3)
    log = load(truth.url, endpoint="chat")
    assert len(at(log, 0, Kind.REASONING)) == 3 and len(at(log, 0, Kind.CONTENT)) == 5
    assert at(log, 0, Kind.REASONING)[-1] <= at(log, 0, Kind.CONTENT)[0]


def test_events_of_four_tokens_are_two_events_and_eight_tokens(truth: Truth) -> None:
    truth.configure(tpc=4, itl_us=3000)
    log = load(truth.url)
    assert len(at(log, 0, Kind.CONTENT)) == 2
    assert log.requests.output_counted.tolist() == [8]


def test_events_that_share_a_read_are_counted_as_merged(truth: Truth) -> None:
    truth.configure(burst=4)
    log = load(truth.url)
    assert log.client.merged_reads >= 6
    assert len(at(log, 0, Kind.CONTENT)) == 8


def test_every_third_request_refused_is_told_with_status_and_body(truth: Truth) -> None:
    truth.configure(fail=3)
    log = load(truth.url, concurrency=2, requests=9)
    assert faults(log).count(Fault.HTTP_STATUS) == 3 and faults(log).count(Fault.OK) == 6
    assert sorted(log.requests.status.tolist()) == [200] * 6 + [503] * 3
    assert all("503" in message and "planned" in message for _, message in log.messages)


def test_more_lanes_than_requests_leave_no_lane_waiting(truth: Truth) -> None:
    log = load(truth.url, concurrency=6, requests=2, warmups=1)
    assert faults(log) == [Fault.OK] * 2
    assert log.concurrency == 6


def test_a_prompt_larger_than_the_socket_buffer_is_sent_whole(truth: Truth) -> None:
    log = load(truth.url, isl=1_500_000, concurrency=1, requests=1)
    assert faults(log) == [Fault.OK]
    assert log.requests.input_counted[0] > 1_000_000
