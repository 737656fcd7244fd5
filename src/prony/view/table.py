"""Rows as a table: the numbers of the chart and their companions, with units, for page, CSV and terminal."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from prony.base.clock import iso
from prony.base.model import Frozen
from prony.measure.registry import metric
from prony.measure.result import Row
from prony.view.chart import STALE_AFTER, STATS
from prony.view.series import Badge, badges
from prony.view.words import framework_label, hardware_label, spec_decoding_label, topology_label

Cell = str | float | int | None
# (key, label en, label zh)
_IDENTITY = (
    ("hardware", "Hardware", "硬件"),
    ("framework", "Framework", "框架"),
    ("precision", "Precision", "精度"),
    ("spec_decoding", "Speculative decoding", "投机解码"),
    ("topology", "Topology", "拓扑"),
    ("gpus_used", "GPUs", "GPU 数"),
    ("concurrency", "Concurrency", "并发"),
    ("repeat", "Repeat", "重复"),
)
_METRICS = (
    ("tput_per_gpu", "value"),
    ("output_tput_per_gpu", "value"),
    ("interactivity", "p50"),
    ("ttft", "p50"),
    ("ttft", "p99"),
    ("tpot", "p50"),
    ("itl", "p99"),
    ("e2el", "p50"),
    ("requests_failed", "value"),
)
_TAIL = (("measured_at", "Measured", "测量时间"),)
_NUMBERS = ("gpus_used", "concurrency", "repeat")


class Column(Frozen):
    """One column. `metric` and `stat` are empty for identity columns; `unit` is the registry's."""

    key: str
    kind: Literal["text", "number"]
    metric: str = ""
    stat: str = ""
    unit: str = ""
    en: str
    zh: str


class TableRow(Frozen):
    """One row: cells in the order of the columns; None is not measured.

    unsupported: columns whose percentile has too few observations behind it.
    """

    key: str
    cells: tuple[Cell, ...]
    unsupported: tuple[str, ...] = ()
    valid: bool
    badges: tuple[Badge, ...]


class Table(Frozen):
    """Columns and rows; one table row is one Row, repeats apart."""

    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]


def table(rows: Sequence[Row], now: datetime | None = None) -> Table:
    """Turn rows into a table by line and concurrency. `now` marks rows older than 30 days as stale."""
    stale_before = iso(now - STALE_AFTER) if now else ""
    columns = _columns()
    order = sorted(
        rows, key=lambda row: (row.hardware, row.framework, row.precision, row.spec_decoding, row.concurrency)
    )
    return Table(
        columns=columns,
        rows=tuple(
            TableRow(
                key=row.key,
                cells=tuple(_cell(row, column) for column in columns),
                unsupported=_unsupported(row, columns),
                valid=row.valid,
                badges=badges((row,), stale_before),
            )
            for row in order
        ),
    )


def _columns() -> tuple[Column, ...]:
    return (
        *(_identity_column(*words) for words in _IDENTITY),
        *(_metric_column(key, stat) for key, stat in _METRICS),
        *(_identity_column(*words) for words in _TAIL),
    )


def _identity_column(key: str, en: str, zh: str) -> Column:
    return Column(key=key, kind="number" if key in _NUMBERS else "text", en=en, zh=zh)


def _metric_column(key: str, stat: str) -> Column:
    found = metric(key)
    en, zh = STATS[stat]
    return Column(
        key=key if stat == "value" else f"{key}_{stat}",
        kind="number",
        metric=key,
        stat=stat,
        unit=found.unit,
        en=f"{found.en}, {en}" if en else found.en,
        zh=f"{found.zh}，{zh}" if zh else found.zh,
    )


def _unsupported(row: Row, columns: Sequence[Column]) -> tuple[str, ...]:
    weak = {(one.metric, one.stat) for one in row.measurements if not one.supported}
    return tuple(column.key for column in columns if (column.metric, column.stat) in weak)


def _cell(row: Row, column: Column) -> Cell:
    if column.metric:
        return row.value(column.metric, column.stat)
    if column.key == "hardware":
        return hardware_label(row.hardware)
    if column.key == "framework":
        return framework_label(row.framework)
    if column.key == "topology":
        return topology_label(row)
    if column.key == "precision":
        return row.precision.upper()
    if column.key == "spec_decoding":
        return spec_decoding_label(row.spec_decoding)
    value: Cell = getattr(row, column.key)
    return value
