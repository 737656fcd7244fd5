"""Rows as short JSON objects: what identifies them, what is wrong with them, the numbers of the table."""

from collections.abc import Mapping, Sequence

from prony.measure.result import Row
from prony.view.table import table

IDENTITY = (
    "origin", "source", "config_key", "model", "model_prefix", "hardware", "runner", "framework", "engine_version",
    "precision", "spec_decoding", "disagg", "multinode", "gpus_used", "gpus_allocated", "workload", "isl", "osl",
    "concurrency", "repeat", "image", "client", "simulated", "official", "measured_at",
)  # fmt: skip


def listed(rows: Sequence[Row], versions: Mapping[str, int]) -> list[dict[str, object]]:
    """Return one object per row in the order of the table, numbers in SI. Identity is as stored, so that filters take
    it; `verdicts` are rule ids; `unsupported` names numbers that too few requests support."""
    made = table(rows)
    by_key = {row.key: row for row in rows}
    objects: list[dict[str, object]] = []
    for line in made.rows:
        row = by_key[line.key]
        cells = zip(made.columns, line.cells, strict=True)
        weak = {(one.metric, one.stat) for one in row.measurements if not one.supported}
        objects.append(
            {"key": row.key, "version": versions.get(row.key, 1), "valid": row.valid}
            | {name: getattr(row, name) for name in IDENTITY}
            | {column.key: cell for column, cell in cells if column.key not in IDENTITY}
            | {"verdicts": [{"rule": one.rule, "severity": one.severity} for one in row.verdicts]}
            | {"unsupported": [one.key for one in made.columns if (one.metric, one.stat) in weak]}
        )
    return objects
