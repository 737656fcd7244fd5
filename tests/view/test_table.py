"""The table shows the chart's numbers."""

from datetime import UTC, datetime

from prony.base.finding import Finding
from prony.measure.result import Measurement
from prony.view.chart import chart
from prony.view.table import table
from tests.view.rows import local


def test_a_metric_not_measured_is_none() -> None:
    made = table((local(1, measurements=()),))
    cells = dict(zip((column.key for column in made.columns), made.rows[0].cells, strict=True))
    assert cells["tput_per_gpu"] is None
    assert cells["repeat"] == 0


def test_every_metric_column_has_a_unit_and_both_languages() -> None:
    for column in table(()).columns:
        assert column.en and column.zh
        assert bool(column.metric) == bool(column.unit)


def test_table_and_chart_show_the_same_numbers() -> None:
    rows = tuple(local(concurrency) for concurrency in (4, 1, 2))
    made = table(rows)
    names = [column.key for column in made.columns]
    in_table = {
        row.key: (row.cells[names.index("interactivity_p50")], row.cells[names.index("tput_per_gpu")])
        for row in made.rows
    }
    in_chart = {point.key: (point.x, point.y) for one in chart(rows).series for point in one.points}
    assert in_table == in_chart
    assert [row.cells[names.index("concurrency")] for row in made.rows] == [1, 2, 4]


def test_verdicts_and_age_travel_with_the_row() -> None:
    verdict = Finding(rule="loop-lag", severity="warn", message="lag 12 ms")
    (row,) = table((local(1, verdicts=(verdict,)),), datetime(2027, 3, 1, tzinfo=UTC)).rows
    assert row.valid
    assert [(badge.kind, badge.rule) for badge in row.badges] == [("warn", "loop-lag"), ("stale", "")]


def test_percentiles_with_too_few_observations_are_marked() -> None:
    weak = Measurement(metric="ttft", stat="p99", value=1.0, n=8, supported=False)
    strong = Measurement(metric="ttft", stat="p50", value=0.5, n=8)
    (row,) = table((local(1, measurements=(weak, strong)),)).rows
    assert row.unsupported == ("ttft_p99",)
