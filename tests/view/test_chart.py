"""Rows become lines and points; the numbers are the rows' own."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from prony.base.errors import ConfigError
from prony.base.finding import Finding
from prony.measure.result import Measurement, Row
from prony.view.catalogue import catalogue, select
from prony.view.chart import STANDARD, Chart, ChartPoint, axis, chart
from prony.view.detail import detail
from prony.view.series import series
from prony.view.words import topology_label
from tests.view.rows import local, locals_with_repeats, published

NOW = datetime(2026, 12, 2, tzinfo=UTC)
INVALID = Finding(rule="littles-law", severity="invalid", message="k = 0.02")


def xy(x: float | None, y: float | None) -> tuple[Measurement, ...]:
    pairs = (("interactivity", "p50", x), ("tput_per_gpu", "value", y))
    return tuple(Measurement(metric=m, stat=s, value=value) for m, s, value in pairs if value is not None)


def points(made: Chart) -> dict[int, ChartPoint]:
    return {point.concurrency: point for one in made.series for point in one.points}


def test_rows_that_differ_in_speculative_decoding_are_two_lines() -> None:
    labels = [one.line.label for one in series(locals_with_repeats())]
    assert labels == ["CPU · llama.cpp · Q4", "CPU · llama.cpp · Q4 · draft model"]


@pytest.mark.parametrize(
    "change",
    [
        {"hardware": "h100"},
        {"framework": "vllm"},
        {"precision": "fp8"},
        {"disagg": True},
        {"simulated": True},
        {"client": "other 1.0"},
        {"osl": 64},
        {"model": "other"},
    ],
)
def test_every_part_of_the_identity_splits_a_line(change: dict[str, object]) -> None:
    assert len(series((local(1), local(2, **change)))) == 2


def test_lines_that_differ_in_the_client_alone_say_so() -> None:
    labels = {one.line.label for one in series((local(1), local(2, client="InferenceX")))}
    assert labels == {"CPU · llama.cpp · Q4 · prony 0.1.0", "CPU · llama.cpp · Q4 · InferenceX"}


def test_repeats_of_a_point_become_one_with_their_mean_and_range() -> None:
    rows = tuple(
        local(2, repeat=i, measurements=xy(x, y)) for i, (x, y) in enumerate([(10, 100), (14, 130), (12, 100)])
    )
    (point,) = points(chart(rows)).values()
    assert (point.n, point.x, point.y) == (3, 12, 110)
    assert (point.x_interval, point.y_interval, point.interval) == ((10, 14), (100, 130), "range")
    assert set(point.keys) == {row.key for row in rows}


def test_a_single_row_keeps_its_own_interval() -> None:
    (point,) = points(chart((local(1),))).values()
    assert point.interval == "ci95"
    assert point.x_interval == local(1).measurements[0].ci95


def test_the_same_repeat_of_another_run_is_a_point_of_its_own() -> None:
    runs = (local(1), local(1, key="f" * 64, measured_at="2026-12-01T09:00:00Z"))
    assert [len(one.points) for one in chart(runs).series] == [2]


def test_an_invalid_row_is_drawn_but_joins_no_frontier_and_spoils_no_mean() -> None:
    good, bad = local(1, measurements=xy(10, 100)), local(1, repeat=1, measurements=xy(99, 999), verdicts=(INVALID,))
    (line,) = chart((good, bad)).series
    valid, invalid = line.points
    assert (valid.x, valid.on_frontier, valid.on_envelope) == (10, True, True)
    assert (invalid.x, invalid.valid, invalid.on_frontier, invalid.on_envelope) == (99, False, False, False)
    assert [badge.kind for badge in invalid.badges] == ["invalid"]
    assert (line.best_x, line.best_y) == (10, 100)


def test_a_value_not_measured_leaves_the_point_out_and_is_counted() -> None:
    made = chart((local(1, measurements=xy(10, 100)), local(2, measurements=xy(None, 100))))
    assert list(points(made)) == [1]
    assert made.not_measured == 1


def test_a_simulated_line_has_its_frontier_but_not_the_common_one() -> None:
    rows = (local(1, measurements=xy(10, 100)), local(1, simulated=True, measurements=xy(20, 200)))
    by_kind = {one.line.simulated: one.points[0] for one in chart(rows).series}
    assert by_kind[True].on_frontier and not by_kind[True].on_envelope
    assert by_kind[False].on_envelope
    assert not {one.line.simulated: one.line.measured for one in chart(rows).series}[True]


def test_latency_counts_downwards() -> None:
    fast = Measurement(metric="e2el", stat="p50", value=1), Measurement(metric="tput_per_gpu", stat="value", value=10)
    slow = Measurement(metric="e2el", stat="p50", value=2), Measurement(metric="tput_per_gpu", stat="value", value=9)
    made = points(chart((local(1, measurements=fast), local(2, measurements=slow)), "e2el"))
    assert made[1].on_frontier and not made[2].on_frontier


def test_points_older_than_thirty_days_are_stale_only_when_the_time_is_known() -> None:
    old = local(1, measured_at="2026-10-01T00:00:00Z")
    assert [b.kind for b in points(chart((old,), now=NOW))[1].badges] == ["stale"]
    assert points(chart((old,)))[1].badges == ()
    assert points(chart((local(1),), now=NOW))[1].badges == ()


def test_an_unknown_metric_says_which_there_are() -> None:
    with pytest.raises(ConfigError, match="'speed' is not a metric") as fault:
        chart((local(1),), "speed")
    assert "interactivity" in fault.value.allowed
    with pytest.raises(ConfigError, match="no better direction"):
        chart((local(1),), "duration")
    with pytest.raises(ConfigError, match="'p42' is not a statistic of ttft") as stat:
        axis("ttft", "p42")
    assert stat.value.allowed == "mean, p50, p90, p95, p99, p999"


def test_no_rows_make_an_empty_chart() -> None:
    made = chart(())
    assert (made.series, made.shown, made.not_measured) == ((), 0, 0)


def test_published_rows_keep_every_number(shared: Path) -> None:
    rows = published(shared)
    assert len(rows) == 435
    made = chart(rows)
    by_key = {row.key: row for row in rows}
    drawn = [point for one in made.series for point in one.points]
    assert sum(point.n for point in drawn) == 435
    for point in drawn:
        if point.n == 1:
            row = by_key[point.key]
            assert (point.x, point.y) == (row.value("interactivity", "p50"), row.value("tput_per_gpu"))


def test_at_most_twelve_lines_at_first_and_the_measured_ones_among_them(shared: Path) -> None:
    slow = local(1, model="dsr1", isl=1024, osl=1024, measurements=xy(0.1, 0.1))
    model = published(shared)[0].model
    rows = select(published(shared), model, "fixed-seq-len-1024-1024")
    made = chart((*rows, slow.model_copy(update={"model": model})))
    assert made.shown == 12 < len(made.series)
    assert made.series[0].line.measured


@pytest.mark.parametrize("workload", ["fixed-seq-len-1024-1024", "fixed-seq-len-1024-8192", "fixed-seq-len-8192-1024"])
@pytest.mark.parametrize("x", ["interactivity", "e2el", "ttft"])
def test_the_lines_shown_own_the_whole_frontier_of_all_lines(shared: Path, workload: str, x: str) -> None:
    made = chart(select(published(shared), published(shared)[0].model, workload), x)
    owners = {one.line.id for one in made.series if any(point.on_envelope for point in one.points)}
    assert owners
    assert owners <= {one.line.id for one in made.series[: made.shown]}


def test_after_the_frontier_s_owners_comes_the_best_line_of_each_sku_and_framework(shared: Path) -> None:
    made = [
        chart(select(published(shared), published(shared)[0].model, "fixed-seq-len-1024-1024"), x) for x, _ in STANDARD
    ]
    owners = {one.line.id for chart in made for one in chart.series if any(point.on_envelope for point in one.points)}
    others = [one.line for one in made[0].series[: made[0].shown] if one.line.id not in owners]
    kinds = [(line.hardware, line.framework) for line in others]
    assert len(set(kinds)) == len(kinds) > 0


def test_lines_have_one_order_whatever_the_axes(shared: Path) -> None:
    rows = published(shared)
    orders = [[one.line.id for one in chart(rows, x).series] for x in ("interactivity", "e2el")]
    assert orders[0] == orders[1]


def test_the_page_opens_on_what_was_measured_here(shared: Path) -> None:
    models = catalogue((*published(shared), *locals_with_repeats())).models
    assert models[0].model == "HuggingFaceTB/SmolLM2-135M-Instruct"
    assert [(load.label, load.rows, load.measured) for load in models[0].workloads] == [("128 / 32", 12, 12)]
    assert {load.label for load in models[1].workloads} == {"1k / 1k", "8k / 1k", "1k / 8k"}


def test_a_source_that_is_not_a_web_address_is_no_link() -> None:
    assert detail(local(1, source="javascript:alert(1)")).run_url is None
    assert detail(local(1, source="https://example.org/run/1")).run_url == "https://example.org/run/1"


def test_topologies_are_told_in_words(shared: Path) -> None:
    told = {topology_label(row) for row in published(shared)}
    assert any(text.startswith("prefill ") and " + decode " in text for text in told)
    assert any(text.startswith("TP8") for text in told)


def test_row_order_does_not_matter(shared: Path) -> None:
    rows: tuple[Row, ...] = (*published(shared)[:80], *locals_with_repeats())
    assert chart(rows) == chart(rows[::-1])
