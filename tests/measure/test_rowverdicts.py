"""Can the numbers of a row be? Impossible ones, and those of a result that was changed after it was measured."""

import pytest

from prony.measure.definitions import measure
from prony.measure.registry import METRICS, plausible
from prony.measure.result import Measurement, Row
from prony.measure.rowverdicts import judge_measured, judge_row
from tests.measure.logs import closed_loop
from tests.store.rows import make_row


@pytest.fixture
def honest() -> Row:
    return make_row(concurrency=4, measurements=measure(closed_loop(40, 4), gpus_used=1))


def scaled(row: Row, factor: float, *metrics: str) -> Row:
    changed = (
        one.model_copy(update={"value": one.value * factor}) if not metrics or one.metric in metrics else one
        for one in row.measurements
    )
    return row.model_copy(update={"measurements": tuple(changed)})


def test_an_honest_row_has_no_verdict(honest: Row) -> None:
    assert judge_measured(honest) == ()


@pytest.mark.parametrize("factor", [-1.0, 1e308, float("inf"), float("nan")])
def test_numbers_that_cannot_be_are_invalid_and_told_with_what_can(honest: Row, factor: float) -> None:
    for judge in (judge_measured, judge_row):
        (found,) = judge(scaled(honest, factor))
        assert (found.rule, found.severity) == ("row/impossible-value", "invalid")
        assert "possible:" in found.message and len(found.message) < 1000


@pytest.mark.parametrize(
    ("metrics", "rule"),
    [
        (("e2el", "ttft", "tpot", "itl", "event_gap"), "row/littles-law"),
        (("ttft",), "row/latency-parts"),
        (("tput_per_gpu",), "row/own-rates"),
        (("duration",), "row/own-rates"),
        (("tpot",), "row/interactivity"),
        (("tput", "tput_per_gpu"), "row/token-identity"),
    ],
)
def test_a_measured_row_that_was_changed_afterwards_is_invalid(
    honest: Row, metrics: tuple[str, ...], rule: str
) -> None:
    found = {one.rule: one.severity for one in judge_measured(scaled(honest, 1000.0, *metrics))}
    assert found[rule] == "invalid"


def test_milliseconds_of_a_row_without_lengths_are_told(honest: Row) -> None:
    values = (Measurement(metric="tpot", stat="p50", value=27.0),)
    row = make_row(origin="imported", isl=None, osl=None, measurements=values)
    assert [one.rule for one in judge_row(row)] == ["row/slow-tokens"]


def test_no_throughput_is_invalid_and_no_traceback() -> None:
    values = (
        Measurement(metric="tput_per_gpu", stat="value", value=0.0),
        Measurement(metric="e2el", stat="mean", value=1.0),
    )
    found = judge_row(make_row(measurements=values))
    assert {one.severity for one in found} == {"invalid"} and "row/nothing-served" in {one.rule for one in found}


def test_every_metric_has_bounds() -> None:
    assert all(low < high for low, high in (plausible(metric.key) for metric in METRICS))
