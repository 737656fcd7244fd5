"""Rows as CSV: every measured number, each header with its unit."""

import csv
from collections.abc import Iterable, Sequence
from typing import TextIO

from prony.base.text import cell
from prony.measure.registry import METRICS
from prony.measure.result import Row

_STATS = ("value", "mean", "std", "p50", "p90", "p95", "p99", "p999")
_IDENTITY = (
    "key", "origin", "source", "config_key", "model", "model_prefix", "hardware", "framework", "engine_version",
    "precision", "spec_decoding", "disagg", "multinode", "gpus_used", "gpus_allocated", "workload", "isl", "osl",
    "concurrency", "repeat", "image", "measured_at", "client", "simulated", "valid",
)  # fmt: skip
_UNITS = {"isl": "tokens", "osl": "tokens"}


def write_csv(rows: Sequence[Row], out: TextIO) -> None:
    """Write one line per row; columns that no row measured are left out, cells that a row did not measure are empty."""
    measured = {(found.metric, found.stat) for row in rows for found in row.measurements}
    columns = [(one.key, stat, one.unit) for one in METRICS for stat in _STATS if (one.key, stat) in measured]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*map(_header, _IDENTITY), *(_metric_header(*column) for column in columns), "verdicts"])
    for row in rows:
        values = {(found.metric, found.stat): found.value for found in row.measurements}
        numbers = [values.get((key, stat)) for key, stat, _ in columns]
        writer.writerow([*_plain(getattr(row, name) for name in _IDENTITY), *_plain(numbers), cell(_verdicts(row))])


def _header(name: str) -> str:
    return f"{name} [{_UNITS[name]}]" if name in _UNITS else name


def _metric_header(key: str, stat: str, unit: str) -> str:
    return f"{key if stat == 'value' else f'{key}_{stat}'} [{unit}]"


def _plain(values: Iterable[object]) -> list[object]:
    return [_cell(value) for value in values]


def _cell(value: object) -> object:
    if isinstance(value, str):
        return cell(value)
    return "" if value is None else str(value).lower() if isinstance(value, bool) else value


def _verdicts(row: Row) -> str:
    return "; ".join(f"{verdict.severity} {verdict.rule}" for verdict in row.verdicts)
