import json

import pytest

from prony.measure.eventlog import EventLog, Fault
from prony.measure.summary import LoadSummary, summarize
from prony.spec.load import LoadPlan
from tests.measure.logs import Made, closed_loop, loop, make_log


def summary(log: EventLog, gpus: int = 1, **plan: object) -> LoadSummary:
    fields = {"isl": 100, "osl": 11, "concurrency": log.concurrency, "requests": len(log.requests), "seed": 5, **plan}
    return summarize(log, LoadPlan.model_validate(fields), gpus)


def test_the_summary_has_the_fields_that_programs_read() -> None:
    found = json.loads(summary(closed_loop(150, 4)).model_dump_json())
    assert found["schema_version"] == "prony.load-summary/1"
    assert found["requests"] == {"total": 150, "completed": 150, "failed": 0, "by_error": {}}
    for key in ("ttft_s", "itl_s", "tpot_s", "e2el_s", "interactivity"):
        assert set(found[key]) == {"mean", "p50", "p90", "p95", "p99", "p999", "n", "ci95"}
        assert found[key]["ci95"][0] < found[key]["mean"] < found[key]["ci95"][1]
    assert set(found["throughput"]) == {"input", "output", "total", "request"}
    assert found["concurrency"] == {"asked": 4, "achieved_mean": pytest.approx(4, rel=0.02)}
    client = {"clock", "loop_lag_p99_s", "send_lag_p99_s", "merged_reads", "cpu_s", "peak_rss_bytes", "bound"}
    assert client <= set(found["client"]) and found["client"]["bound"] is False
    assert found["seed"] == 5 and found["load"]["concurrency"] == 4
    assert LoadSummary.model_validate_json(json.dumps(found)) == summary(closed_loop(150, 4))


def test_what_was_not_measured_is_null_and_never_zero() -> None:
    dead = [Made(sent=0, tokens_at=[], end=1, fault=Fault.CONNECT, output=-1, planned_output=4)] * 3
    found = summary(make_log(dead))
    assert found.requests.by_error == {"connect": 3} and found.requests.failed == 3
    assert (found.ttft_s, found.tpot_s, found.e2el_s, found.interactivity) == (None, None, None, None)
    assert (found.throughput.output, found.throughput.request, found.tput_per_gpu) == (None, None, None)
    assert not found.steady.steady and found.steady.ttft_s is None and found.steady.throughput.total is None


def test_failures_are_counted_by_name_and_silent_answers_among_them() -> None:
    log = make_log(
        [
            Made(sent=0, tokens_at=[5, 9]),
            Made(sent=0, tokens_at=[], end=9, output=0, planned_output=2),
            Made(sent=0, tokens_at=[], end=9, fault=Fault.HTTP_STATUS, output=-1, planned_output=2),
        ]
    )
    assert summary(log).requests.by_error == {"http_status": 1, "no_tokens": 1}


def test_the_steady_numbers_stand_beside_those_of_the_whole_load() -> None:
    found = summary(loop(1200, 16, lambda n, at: 400 if at < 2000 else 90 + (n * 7919) % 97 / 5), osl=21, gpus=2)
    assert found.steady.steady and found.steady.warmup_s is not None and 1.8 <= found.steady.warmup_s <= 4.5
    assert found.e2el_s is not None and found.steady.e2el_s is not None
    assert found.steady.e2el_s.mean < 0.9 * found.e2el_s.mean
    assert found.throughput.total is not None and found.tput_per_gpu == pytest.approx(found.throughput.total / 2)


def test_an_open_loop_has_latencies_from_when_requests_were_due() -> None:
    made = [Made(sent=10 * i + 5, tokens_at=[10 * i + 7, 10 * i + 9], due=10 * i) for i in range(30)]
    found = summary(make_log(made, 8, arrival="open"), arrival={"kind": "open", "stages": [{"rate": 100}]})
    assert found.scheduled is not None and found.scheduled.ttft_s is not None and found.ttft_s is not None
    assert found.scheduled.ttft_s.mean == pytest.approx(0.007) and found.ttft_s.mean == pytest.approx(0.002)
    assert found.client.bound
    assert summary(closed_loop(8, 1)).scheduled is None
