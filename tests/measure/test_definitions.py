import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.base.errors import MeasurementError
from prony.measure.definitions import measure
from prony.measure.eventlog import EventLog, Fault, Kind
from prony.measure.generation import Generation, gaps, generation, itl, token_gaps
from prony.measure.registry import metric
from prony.measure.result import Measurement
from prony.measure.statistics import Floats
from tests.measure.logs import Made, closed_loop, make_log


def numbers(log: EventLog, gpus: int = 1, **roles: int) -> dict[tuple[str, str], Measurement]:
    return {(found.metric, found.stat): found for found in measure(log, gpus, **roles)}


def itl_s(made: Generation) -> Floats:
    return itl(token_gaps(made, gaps(made)))


def test_one_request_by_hand() -> None:
    log = make_log([Made(sent=10, tokens_at=[110, 160, 210, 260], end=280, input=96)])
    found = numbers(log, gpus=2)
    assert found["ttft", "mean"].value == pytest.approx(0.100)
    assert found["tpot", "mean"].value == pytest.approx(0.050)
    assert found["itl", "p50"].value == pytest.approx(0.050)
    assert found["e2el", "mean"].value == pytest.approx(0.250)
    assert found["interactivity", "mean"].value == pytest.approx(20)
    assert found["duration", "value"].value == pytest.approx(0.270)
    assert found["output_tput", "value"].value == pytest.approx(4 / 0.270)
    assert found["tput_per_gpu", "value"].value == pytest.approx(100 / 0.270 / 2)


def test_ttft_skips_role_and_empty_chunks_and_e2el_ends_at_the_last_generated_token() -> None:
    log = make_log(
        [Made(sent=0, tokens_at=[50, 80], end=200, extra=[(5, Kind.ROLE), (150, Kind.USAGE), (199, Kind.DONE)])]
    )
    found = numbers(log)
    assert found["ttft", "mean"].value == pytest.approx(0.050)
    assert found["e2el", "mean"].value == pytest.approx(0.080)


def test_reasoning_and_tool_tokens_are_generated_tokens() -> None:
    log = make_log([Made(sent=0, tokens_at=[10, 20, 30], kinds=[Kind.REASONING, Kind.TOOL, Kind.CONTENT])])
    assert numbers(log)["ttft", "mean"].value == pytest.approx(0.010)


def test_an_event_of_k_tokens_counts_as_k_latencies() -> None:
    said = make_log([Made(sent=0, tokens_at=[10, 40, 50], output=5, per_event=[1, 3, 1])])
    assert sorted(itl_s(generation(said))) == pytest.approx([0.010] * 4)
    spread = make_log([Made(sent=0, tokens_at=[10, 40, 70], output=6)])
    assert itl_s(generation(spread)) == pytest.approx([0.015] * 4)
    assert numbers(spread)["event_gap", "mean"].value == pytest.approx(0.030)


def test_tokens_per_event_that_contradict_usage_are_not_used() -> None:
    log = make_log([Made(sent=0, tokens_at=[10, 20], output=2, per_event=[1, 7])])
    assert len(itl_s(generation(log))) == 1


@given(st.integers(1, 60), st.integers(1, 40))
def test_evenly_spread_tokens_add_up_to_usage(tokens: int, events: int) -> None:
    log = make_log([Made(sent=0, tokens_at=list(range(1, events + 1)), output=tokens)])
    spread = generation(log).tokens
    assert spread.sum() == tokens
    assert spread.max() - spread.min() <= 1
    assert spread[0] >= 1


@given(st.lists(st.lists(st.floats(1, 1000), min_size=1, max_size=20), min_size=1, max_size=12))
def test_every_definition_agrees_with_a_plain_loop(streams: list[list[float]]) -> None:
    made = [Made(sent=index, tokens_at=sorted(index + at for at in stream)) for index, stream in enumerate(streams)]
    found = numbers(make_log(made, concurrency=len(made)))
    ttft = [round(1e6 * one.tokens_at[0]) / 1e9 - one.sent / 1e3 for one in made]
    tpot = [
        (one.tokens_at[-1] - one.tokens_at[0]) / (len(one.tokens_at) - 1) / 1e3
        for one in made
        if round(1e6 * one.tokens_at[0]) < round(1e6 * one.tokens_at[-1])
    ]
    assert found["ttft", "mean"].value == pytest.approx(np.mean(ttft), abs=1e-8)
    assert found["ttft", "p90"].value == pytest.approx(np.percentile(ttft, 90), abs=1e-8)
    assert (("tpot", "mean") in found) == bool(tpot)
    if tpot:
        assert found["tpot", "mean"].value == pytest.approx(np.mean(tpot), abs=1e-8)


def test_single_token_answers_have_no_tpot_rather_than_zero() -> None:
    found = numbers(make_log([Made(sent=0, tokens_at=[10])]))
    assert ("tpot", "mean") not in found and ("interactivity", "mean") not in found and ("itl", "mean") not in found
    assert found["ttft", "mean"].value == pytest.approx(0.010)


def test_interactivity_is_the_reciprocal_of_tpot_at_each_statistic_and_has_no_deviation() -> None:
    found = numbers(closed_loop(200, 4))
    for stat in ("mean", "p50", "p90", "p99"):
        assert found["interactivity", stat].value == pytest.approx(1 / found["tpot", stat].value)
    assert ("interactivity", "std") not in found
    low, high = found["interactivity", "mean"].ci95 or (0, 0)
    assert low < found["interactivity", "mean"].value < high


def test_percentiles_say_when_too_few_requests_support_them() -> None:
    found = numbers(closed_loop(150, 4))
    assert found["ttft", "p90"].supported and not found["ttft", "p95"].supported
    assert found["ttft", "p99"].n == 150
    assert numbers(closed_loop(8, 1))["ttft", "mean"].ci95 is None


def test_failed_requests_count_in_no_latency_and_no_throughput() -> None:
    log = make_log(
        [Made(sent=0, tokens_at=[10, 20]), Made(sent=0, tokens_at=[500], fault=Fault.CLOSED_EARLY, output=-1)]
    )
    found = numbers(log)
    assert found["requests_completed", "value"].value == 1 and found["requests_failed", "value"].value == 1
    assert found["ttft", "mean"].n == 1
    assert found["output_tokens", "value"].value == 2


def test_unknown_token_counts_leave_throughput_unmeasured() -> None:
    found = numbers(make_log([Made(sent=0, tokens_at=[10, 20], output=-1, planned_output=2)]))
    assert ("output_tput", "value") not in found and ("tput", "value") not in found and ("tpot", "mean") not in found
    assert ("input_tput", "value") in found


def test_nothing_sent_and_nothing_completed_give_no_latencies() -> None:
    assert {found.metric for found in measure(make_log([]), 1)} == {"requests_completed", "requests_failed"}
    failed = make_log([Made(sent=0, tokens_at=[], end=5, fault=Fault.CONNECT, output=-1)])
    assert "ttft" not in {found.metric for found in measure(failed, 1)}


def test_role_local_throughput_divides_by_the_role() -> None:
    found = numbers(closed_loop(20, 2), gpus=6, gpus_prefill=2, gpus_decode=4)
    assert found["input_tput_per_prefill_gpu", "value"].value == pytest.approx(
        3 * found["input_tput_per_gpu", "value"].value
    )
    assert found["output_tput_per_decode_gpu", "value"].value == pytest.approx(
        1.5 * found["output_tput_per_gpu", "value"].value
    )


@pytest.mark.parametrize(("requests", "concurrency"), [(8, 1), (8, 2), (16, 4), (8, 8), (3, 8), (400, 64)])
def test_a_correct_closed_loop_achieves_its_concurrency_however_few_its_requests(
    requests: int, concurrency: int
) -> None:
    achieved = numbers(closed_loop(requests, concurrency))["concurrency_achieved", "value"].value
    assert achieved == pytest.approx(min(requests, concurrency), rel=0.02)


def test_every_measurement_is_in_the_registry() -> None:
    for found in measure(closed_loop(30, 2), 2, 1, 1):
        assert (found.stat == "value") == (metric(found.metric).scope == "system")


def test_events_of_one_read_are_one_arrival_of_several_tokens() -> None:
    apart = make_log([Made(sent=0, tokens_at=[10, 30, 60], per_event=[1, 2, 3], output=6)])
    together = make_log([Made(sent=0, tokens_at=[10, 30, 30, 60, 60, 60])])
    assert itl_s(generation(together)).tolist() == itl_s(generation(apart)).tolist() == [0.01] * 5
    assert measure(together, 1) == measure(apart, 1)


def test_token_counts_beyond_any_load_are_refused_before_memory_is_taken() -> None:
    log = make_log([Made(sent=0, tokens_at=[10, 20], output=10**12, planned_output=2)])
    with pytest.raises(MeasurementError, match="counts more than"):
        measure(log, 1)
