"""A chart: axes, lines, points, who is on which frontier. All of its maths happens here, none in a browser."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from prony.base.clock import iso
from prony.base.errors import ConfigError
from prony.base.model import Frozen
from prony.measure.registry import METRICS, metric
from prony.measure.result import Row
from prony.view.frontier import Better, dominated_area, finite, frontier
from prony.view.series import Badge, Group, Line, Series, badges, series
from prony.view.words import point_label, topology_label

STALE_AFTER = timedelta(days=30)
SHOWN_AT_FIRST = 12
# The two charts of a page: (x, y).
STANDARD = (("interactivity", "tput_per_gpu"), ("e2el", "tput_per_gpu"))
STATS = {
    "value": ("", ""),
    "mean": ("mean", "均值"),
    "p50": ("median", "中位数"),
    "p90": ("p90", "p90"),
    "p95": ("p95", "p95"),
    "p99": ("p99", "p99"),
    "p999": ("p99.9", "p99.9"),
}
Interval = tuple[float, float]


class Axis(Frozen):
    """One axis: a metric and the statistic of it, in the registry's unit."""

    metric: str
    stat: str
    unit: str
    better: Better
    en: str
    zh: str


class ChartPoint(Frozen):
    """One point. Values are means over its repeats, in the axes' units.

    key: the row that speaks for it; keys: all repeats. x_interval, y_interval: the lowest and highest repeat where
    n > 1 (`range`), else the row's own 95 % interval (`ci95`), else None. on_frontier: no valid point of the same
    line is better on both axes; on_envelope: none of any line that is not simulated is.
    """

    key: str
    keys: tuple[str, ...]
    label: str
    topology: str
    concurrency: int
    measured_at: str
    n: int
    x: float
    y: float
    x_interval: Interval | None
    y_interval: Interval | None
    interval: Literal["ci95", "range"] | None
    on_frontier: bool
    on_envelope: bool
    valid: bool
    badges: tuple[Badge, ...]


class ChartSeries(Frozen):
    """One line with its points by ascending x, and the best valid value on each axis (None without a valid point)."""

    line: Line
    points: tuple[ChartPoint, ...]
    best_x: float | None
    best_y: float | None


class Chart(Frozen):
    """Everything a page or terminal needs to draw one chart.

    series: lines measured here first, then those that own points of the frontier of all lines, most points first,
    then the best line of each SKU and framework, then the rest, best first; the order is one for all STANDARD axes.
    shown: how many to draw at first. not_measured: points left out since a value on an axis was not measured.
    """

    x: Axis
    y: Axis
    series: tuple[ChartSeries, ...]
    shown: int
    not_measured: int


def axis(metric_key: str, stat: str = "") -> Axis:
    """Return an axis; without a statistic it is the median of a request's metric and the value of a system's.

    Raises ConfigError for a metric or statistic that is unknown or has no better direction.
    """
    found = metric(metric_key)
    if found.better == "none":
        raise ConfigError(f"'{metric_key}' has no better direction, so it cannot be an axis", allowed=", ".join(axes()))
    stat = stat or ("p50" if found.scope == "request" else "value")
    allowed = ("value",) if found.scope == "system" else tuple(name for name in STATS if name != "value")
    if stat not in allowed:
        raise ConfigError(f"'{stat}' is not a statistic of {metric_key}", allowed=", ".join(allowed))
    en, zh = STATS[stat]
    return Axis(
        metric=metric_key,
        stat=stat,
        unit=found.unit,
        better=found.better,
        en=f"{found.en} ({en})" if en else found.en,
        zh=f"{found.zh}（{zh}）" if zh else found.zh,
    )


def axes() -> tuple[str, ...]:
    """Return the metrics that can be an axis."""
    return tuple(found.key for found in METRICS if found.better != "none")


def chart(
    rows: Iterable[Row],
    x_metric: str = "interactivity",
    y_metric: str = "tput_per_gpu",
    x_stat: str = "",
    y_stat: str = "",
    now: datetime | None = None,
) -> Chart:
    """Turn rows into a chart. Raises ConfigError for a metric or statistic that cannot be an axis.

    `now` marks points older than 30 days as stale; without it none is.
    """
    x, y = axis(x_metric, x_stat), axis(y_metric, y_stat)
    stale_before = iso(now - STALE_AFTER) if now else ""
    lines = _ranked(series(rows), (x, y))
    drawn = [(one.line, _points(one, x, y, stale_before)) for one in lines]
    kept = _with_envelope([(line, points) for line, points in drawn if points], x, y)
    measured_here = sum(line.measured for line, _ in kept)
    return Chart(
        x=x,
        y=y,
        series=tuple(_chart_series(line, points, x, y) for line, points in kept),
        shown=min(len(kept), max(SHOWN_AT_FIRST, measured_here)),
        not_measured=sum(len(one.groups) for one in lines) - sum(len(points) for _, points in kept),
    )


def _points(one: Series, x: Axis, y: Axis, stale_before: str) -> list[ChartPoint]:
    made = [_point(group, x, y, stale_before) for group in one.groups]
    found = sorted((point for point in made if point), key=lambda point: (point.x, point.y, point.key))
    valid = [point for point in found if point.valid]
    best = {valid[index].key for index in frontier([(p.x, p.y) for p in valid], x.better, y.better)}
    return [point.model_copy(update={"on_frontier": point.key in best}) for point in found]


def _point(group: Group, x: Axis, y: Axis, stale_before: str) -> ChartPoint | None:
    x_value, y_value = group.mean(x.metric, x.stat), group.mean(y.metric, y.stat)
    if x_value is None or y_value is None or not finite(x_value, y_value):
        return None
    row = group.first
    x_interval, y_interval = _interval(group, x), _interval(group, y)
    kind: Literal["ci95", "range"] = "range" if len(group.rows) > 1 else "ci95"
    return ChartPoint(
        key=row.key,
        keys=tuple(member.key for member in group.rows),
        label=point_label(row),
        topology=topology_label(row),
        concurrency=row.concurrency,
        measured_at=max(member.measured_at for member in group.rows),
        n=len(group.rows),
        x=x_value,
        y=y_value,
        x_interval=x_interval,
        y_interval=y_interval,
        interval=kind if x_interval or y_interval else None,
        on_frontier=False,
        on_envelope=False,
        valid=row.valid,
        badges=badges(group.rows, stale_before),
    )


def _interval(group: Group, on: Axis) -> Interval | None:
    if len(group.rows) > 1:
        values = group.values(on.metric, on.stat)
        return (min(values), max(values)) if len(values) > 1 else None
    for measurement in group.first.measurements:
        if measurement.metric == on.metric and measurement.stat == on.stat:
            return measurement.ci95
    return None


def _with_envelope(
    drawn: Sequence[tuple[Line, list[ChartPoint]]], x: Axis, y: Axis
) -> list[tuple[Line, list[ChartPoint]]]:
    real = [point for line, points in drawn if not line.simulated for point in points if point.on_frontier]
    best = {real[index].key for index in frontier([(point.x, point.y) for point in real], x.better, y.better)}
    return [
        (line, [point.model_copy(update={"on_envelope": point.key in best}) for point in points])
        for line, points in drawn
    ]


def _chart_series(line: Line, points: Sequence[ChartPoint], x: Axis, y: Axis) -> ChartSeries:
    valid = [point for point in points if point.valid]
    return ChartSeries(
        line=line,
        points=tuple(points),
        best_x=_best([point.x for point in valid], x.better),
        best_y=_best([point.y for point in valid], y.better),
    )


def _best(values: Sequence[float], better: Better) -> float | None:
    if not values:
        return None
    return max(values) if better == "higher" else min(values)


def _ranked(lines: Sequence[Series], own: tuple[Axis, Axis]) -> list[Series]:
    """Order lines: measured here, those on the frontier of all, the best of each SKU and framework, the rest."""
    areas = {one.line.id: _area(one) for one in lines}
    by_area = sorted(lines, key=lambda one: (-areas[one.line.id], one.line.label, one.line.id))
    champions: dict[tuple[str, str], str] = {}
    for one in by_area:
        champions.setdefault((one.line.hardware, one.line.framework), one.line.id)
    best_of_kind = set(champions.values())
    usual = [(axis(x), axis(y)) for x, y in STANDARD]
    asked, expected = _owned(lines, [] if own in usual else [own]), _owned(lines, usual)
    return sorted(
        by_area,
        key=lambda one: (
            not one.line.measured,
            -asked[one.line.id],
            -expected[one.line.id],
            one.line.id not in best_of_kind,
        ),
    )


def _owned(lines: Sequence[Series], planes: Sequence[tuple[Axis, Axis]]) -> Counter[str]:
    """Count each line's points on the frontiers of all lines that are not simulated."""
    owned: Counter[str] = Counter()
    real = [
        (one.line.id, group) for one in lines if not one.line.simulated for group in one.groups if group.first.valid
    ]
    for x, y in planes:
        points = [(group.mean(x.metric, x.stat), group.mean(y.metric, y.stat)) for _, group in real]
        owned.update(real[index][0] for index in frontier(points, x.better, y.better))
    return owned


def _area(one: Series) -> float:
    """Rank by the area under the frontier of throughput per GPU over interactivity, whatever the chart's axes are."""
    points = [
        (group.mean("interactivity", "p50"), group.mean("tput_per_gpu", "value"))
        for group in one.groups
        if group.first.valid
    ]
    area = dominated_area(points, "higher", "higher", (0.0, 0.0))
    return area if math.isfinite(area) else 0.0
