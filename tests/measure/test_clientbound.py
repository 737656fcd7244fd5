import dataclasses

import pytest

from prony.base.finding import Finding
from prony.measure.definitions import measure
from prony.measure.eventlog import EventLog
from prony.measure.verdicts import client_bound, judge
from prony.spec.load import LoadPlan
from tests.measure.logs import Made, client, closed_loop, make_log


def judged(log: EventLog, **plan: object) -> dict[str, Finding]:
    fields = {"isl": 100, "osl": 11, "concurrency": log.concurrency, "requests": len(log.requests), **plan}
    found = judge(log, LoadPlan.model_validate(fields), measure(log, 1))
    assert client_bound(found) == any(one.rule == "verdict/client-bound" for one in found)
    return {one.rule.removeprefix("verdict/"): one for one in found if one.rule != "verdict/steady-state"}


def open_loop(
    rate: float,
    latency_ms: float,
    slots: int,
    requests: int = 200,
    late_ms: float = 0.0,
    slower: float = 1.0,
    refill_ms: float = 0.0,
) -> EventLog:
    """Requests due at a constant rate, each sent when due and a slot is free; late_ms, slower: a client that lags.

    refill_ms: how long a slot is empty between two requests.
    """
    free, made = [0.0] * slots, []
    for number in range(requests):
        due = number * 1000 / rate
        slot = free.index(min(free))
        sent = max(due * slower + late_ms, free[slot] + refill_ms)
        free[slot] = sent + latency_ms
        made.append(Made(sent=sent, tokens_at=[sent + latency_ms / 2, sent + latency_ms], due=due))
    return make_log(made, slots, arrival="open")


OPEN = {"osl": 2, "arrival": {"kind": "open", "process": "constant", "stages": [{"rate": 100}]}}


def test_a_good_load_is_not_client_bound() -> None:
    assert judged(closed_loop(40, 4)) == {}


@pytest.mark.parametrize(
    ("facts", "rule", "words"),
    [
        ({"send_lag_p99_s": 0.02}, "send-lag", "requests were sent late"),
        ({"loop_lag_p99_s": 0.03}, "loop-lag", "its loop ran late"),
        ({"clock": "user", "loop_lag_p99_s": 0.004}, "stamp-lag", "its stamps were late"),
        ({"merged_reads": 200, "loop_lag_p99_s": 0.01}, "merged-reads", "it read events late"),
        ({"cpu_share": 0.97, "workers": 2}, "worker-cpu", "its CPU was used up"),
    ],
)
def test_each_lag_of_the_client_marks_the_load_and_is_named(facts: dict[str, object], rule: str, words: str) -> None:
    found = judged(dataclasses.replace(closed_loop(40, 4), client=client(**facts)))
    assert found[rule].severity == "warn"
    assert found["client-bound"].severity == "warn" and words in found["client-bound"].message
    assert found[rule].message in found["client-bound"].evidence


def test_a_core_that_is_busy_but_not_used_up_is_no_verdict() -> None:
    assert judged(dataclasses.replace(closed_loop(40, 4), client=client(cpu_share=0.9))) == {}


def test_idle_slots_and_prompts_of_another_length_are_the_clients_fault() -> None:
    idle = judged(closed_loop(40, 4, latency_ms=10, turn_ms=5))
    assert "fewer requests were in flight than asked" in idle["client-bound"].message
    drift = judged(make_log([Made(sent=0, tokens_at=[10, 20], input=103)]))
    assert "prompts were not as long as planned" in drift["client-bound"].message


def test_streams_that_the_server_leaves_open_are_not_the_clients_fault_but_ends_booked_late_are() -> None:
    made = [Made(sent=100 * i, tokens_at=[100 * i + 10, 100 * i + 50], end=100 * i + 99) for i in range(8)]
    servers = judged(make_log(made))
    assert "littles-law" in servers and "client-bound" not in servers
    own = judged(make_log(made, facts=client(loop_lag_p99_s=0.06)))
    assert "it booked ends late" in own["client-bound"].message and "late-ends" in own


def test_loops_that_need_not_be_full_are_not_asked_to_be() -> None:
    log = closed_loop(40, 4, latency_ms=10, turn_ms=5)
    thinking = {"endpoint": "chat", "workload": {"kind": "multi-turn", "turns": 4, "think-s": 1}}
    limited = {"arrival": {"kind": "closed", "prefill-concurrency": 1}}
    assert "concurrency" in judged(log)
    assert judged(log, **thinking) == {} == judged(log, **limited)


def test_an_open_loop_below_its_slots_is_no_verdict_though_it_is_never_full() -> None:
    log = open_loop(rate=100, latency_ms=50, slots=64)
    assert judged(log, **OPEN) == {}
    seen = {one.metric: one.value for one in measure(log, 1) if one.stat == "value"}
    assert seen["concurrency_achieved"] == pytest.approx(5, rel=0.05)


def test_requests_that_waited_for_a_slot_are_counted_and_the_wait_is_in_the_scheduled_latencies() -> None:
    log = open_loop(rate=100, latency_ms=50, slots=4)
    found = judged(log, **OPEN)
    assert "196 of 200 requests were due when all 4 slots were taken" in found["slot-wait"].message
    assert "80.2 req/s, 100 req/s were asked" in found["rate"].message
    assert "send-lag" not in found and "concurrency" not in found
    assert "requests waited for a free slot" in found["client-bound"].message
    seen = {(one.metric, one.stat): one.value for one in measure(log, 1)}
    assert seen["e2el", "mean"] == pytest.approx(0.05)
    wait_s = float((log.requests.sent - log.requests.scheduled).mean()) / 1e9
    assert seen["e2el_scheduled", "mean"] == pytest.approx(0.05 + wait_s)
    assert seen["ttft_scheduled", "mean"] == pytest.approx(0.025 + wait_s)


def test_an_open_loop_that_sends_late_though_slots_are_free_has_a_lagging_client() -> None:
    found = judged(open_loop(rate=100, latency_ms=50, slots=64, late_ms=8), **OPEN)
    assert "requests were sent late by 8.00 ms" in found["send-lag"].message
    assert "slot-wait" not in found
    slow = judged(open_loop(rate=100, latency_ms=50, slots=64, slower=1.2), **OPEN)
    assert "83.3 req/s, 100 req/s were asked" in slow["rate"].message


def test_a_closed_loop_has_no_scheduled_latencies_and_no_rules_of_open_loops() -> None:
    log = closed_loop(40, 4)
    assert not any(one.metric.endswith("_scheduled") for one in measure(log, 1))
    assert {"rate", "slot-wait"}.isdisjoint(judged(log))


def test_whole_answers_have_no_first_token_and_are_not_told_to_stream() -> None:
    made = [Made(sent=100 * i, tokens_at=[100 * i + 90], output=11) for i in range(30)]
    log = make_log(made, streamed=False)
    seen = {one.metric for one in measure(log, 1)}
    assert {"ttft", "tpot", "itl", "interactivity", "event_gap"}.isdisjoint(seen)
    assert {"e2el", "output_tput", "request_rate"} <= seen
    assert judged(log) == {}
    assert "single-event" in judged(make_log(made))


def test_requests_due_just_when_a_slot_is_refilled_waited_for_a_slot_too() -> None:
    found = judged(open_loop(rate=100, latency_ms=60, slots=4, refill_ms=2.5), **OPEN)
    assert "slot-wait" in found and "send-lag" not in found
