import dataclasses

import numpy as np
import pytest

from prony.base.finding import Finding
from prony.measure.definitions import measure
from prony.measure.eventlog import EventLog, Fault
from prony.measure.verdicts import judge
from prony.spec.load import LoadPlan
from tests.measure.logs import Made, client, closed_loop, make_log


def verdicts(log: EventLog) -> dict[str, Finding]:
    load = LoadPlan(isl=100, osl=11, concurrency=log.concurrency, requests=max(1, len(log.requests)))
    found = judge(log, load, measure(log, 1))
    return {one.rule.removeprefix("verdict/"): one for one in found if one.rule != "verdict/steady-state"}


@pytest.mark.parametrize(("requests", "concurrency"), [(8, 1), (8, 2), (16, 4), (8, 8), (160, 16)])
def test_a_correct_load_has_no_verdict_however_few_its_requests(requests: int, concurrency: int) -> None:
    assert verdicts(closed_loop(requests, concurrency)) == {}


def test_one_failure_in_a_hundred_warns_and_more_make_the_result_invalid() -> None:
    good = [Made(sent=100 * i, tokens_at=[100 * i + 10, 100 * i + 99]) for i in range(199)]
    bad = Made(sent=19_900, tokens_at=[], end=19_950, fault=Fault.HTTP_STATUS, output=-1, planned_output=2)
    log = make_log([*good, bad], messages=((199, "500 out of memory"),))
    found = verdicts(log)["failed-requests"]
    assert found.severity == "warn"
    assert "1 of 200 requests failed: 1 × http status (500 out of memory)" in found.message
    assert verdicts(make_log([*good[:20], bad]))["failed-requests"].severity == "invalid"


def test_nothing_completed_is_invalid() -> None:
    dead = [Made(sent=0, tokens_at=[], end=1, fault=Fault.CONNECT, output=-1, planned_output=4)] * 3
    assert verdicts(make_log(dead))["failed-requests"].severity == "invalid"
    assert verdicts(make_log([]))["failed-requests"].message == "no request was sent"


def test_an_answer_without_tokens_is_a_failure() -> None:
    log = make_log(
        [Made(sent=0, tokens_at=[], end=9, output=0, planned_output=2), *[Made(sent=0, tokens_at=[5, 9])] * 3]
    )
    assert "1 × ended without a generated token" in verdicts(log)["failed-requests"].message


def test_other_output_lengths_than_asked_are_invalid() -> None:
    log = make_log([Made(sent=0, tokens_at=[10, 20, 30], planned_output=32), Made(sent=31, tokens_at=[40, 50])])
    found = verdicts(log)["output-length"]
    assert found.severity == "invalid"
    assert "1 of 2 requests" in found.message and "5 instead of 34 tokens" in found.message


def test_input_drift_warns_and_beyond_5_percent_is_invalid() -> None:
    def severity(counted: int) -> str | None:
        found = verdicts(make_log([Made(sent=0, tokens_at=[10, 20], input=counted)])).get("input-length")
        return found.severity if found else None

    assert [severity(n) for n in (100, 101, 103, 106, 94)] == [None, None, "warn", "invalid", "invalid"]


def test_missing_usage_is_invalid() -> None:
    log = make_log([Made(sent=0, tokens_at=[10, 20], output=-1, planned_output=2)])
    assert verdicts(log)["usage-missing"].severity == "invalid"


def test_streams_that_stay_open_break_littles_law() -> None:
    made = [Made(sent=100 * i, tokens_at=[100 * i + 10, 100 * i + 50], end=100 * i + 99) for i in range(8)]
    found = verdicts(make_log(made))["littles-law"]
    assert found.severity == "warn" and "ratio 0.505" in found.message


def test_tokens_per_event_that_contradict_usage_warn() -> None:
    log = make_log([Made(sent=0, tokens_at=[10, 20], output=2, per_event=[1, 4])])
    assert "streamed-tokens" in verdicts(log)
    assert "streamed-tokens" not in verdicts(make_log([Made(sent=0, tokens_at=[10, 20], per_event=[1, 1])]))


def test_measurements_that_contradict_each_other_are_invalid() -> None:
    log = closed_loop(8, 1)
    changed = tuple(
        found.model_copy(update={"value": found.value * 2}) if found.metric == "tput" else found
        for found in measure(log, 1)
    )
    load = LoadPlan(isl=100, osl=11, concurrency=1, requests=8)
    assert "verdict/token-identity" in {found.rule for found in judge(log, load, changed)}


def test_a_client_that_sends_late_is_told_so() -> None:
    idle = verdicts(closed_loop(40, 4, latency_ms=10, turn_ms=5))["concurrency"]
    assert idle.severity == "warn" and "4 were asked" in idle.message
    slow = dataclasses.replace(closed_loop(40, 4), client=client(send_lag_p99_s=0.02, loop_lag_p99_s=0.03))
    assert {"send-lag", "loop-lag"} <= set(verdicts(slow))


def test_merged_reads_and_user_stamps_are_told() -> None:
    facts = client(clock="user", merged_reads=200, loop_lag_p99_s=0.02)
    found = verdicts(dataclasses.replace(closed_loop(40, 4), client=facts))
    assert found["stamp-clock"].severity == "info"
    assert found["merged-reads"].severity == "warn" and "20.0%" in found["merged-reads"].message
    assert found["stamp-lag"].severity == "warn"


def test_answers_in_one_piece_have_no_tpot_and_say_so() -> None:
    found = verdicts(make_log([Made(sent=0, tokens_at=[50], output=11)]))
    assert "no TPOT" in found["single-event"].message


def test_cached_tokens_beyond_the_input_warn() -> None:
    log = closed_loop(8, 1)
    requests = dataclasses.replace(log.requests, cached_counted=np.full(8, 101, dtype=np.int64))
    assert "cached-tokens" in verdicts(dataclasses.replace(log, requests=requests))


def test_every_verdict_says_what_to_do() -> None:
    log = make_log([Made(sent=0, tokens_at=[50], output=11, input=50, fault=Fault.OK)], facts=client(clock="user"))
    assert verdicts(log) and all(found.fix for found in verdicts(log).values())


def test_tokens_that_the_server_sends_at_once_are_not_the_clients_fault() -> None:
    prompt = client(merged_reads=500, loop_lag_p99_s=0.001)
    made = [Made(sent=0, tokens_at=[10, 20, 20, 30, 30])]
    assert "merged-reads" not in verdicts(make_log(made, facts=prompt))
    late = client(merged_reads=500, loop_lag_p99_s=0.05)
    assert verdicts(make_log(made, facts=late))["merged-reads"].severity == "warn"


def test_a_wall_clock_that_was_set_while_measuring_is_told() -> None:
    found = verdicts(make_log([Made(sent=0, tokens_at=[10, 20])], facts=client(clock_steps=2)))["clock-steps"]
    assert found.severity == "warn" and "2 times" in found.message
