"""Rows as a terminal table: three significant digits, units in the header, the same numbers as page and report."""

from collections.abc import Sequence

from rich.text import Text

from prony.base.units import counted, significant
from prony.cli.columns import Column as Shown
from prony.cli.columns import print_table
from prony.cli.console import say
from prony.measure.result import Row
from prony.view.table import Column, TableRow, table

# Columns of view.table that fit a terminal: how their header is written there, and which go first in a narrow one.
_SHOWN = {
    "hardware": ("hardware", 1),
    "framework": ("framework", 1),
    "precision": ("precision", 3),
    "spec_decoding": ("spec", 1),
    "topology": ("topology", 6),
    "concurrency": ("conc", 0),
    "tput_per_gpu": ("tput/GPU", 0),
    "interactivity_p50": ("interact.", 0),
    "ttft_p50": ("TTFT p50", 4),
    "e2el_p50": ("E2EL p50", 5),
}
_LABELS = {"hardware": 8, "framework": 9, "spec_decoding": 8, "topology": 8}


def print_rows(rows: Sequence[Row]) -> None:
    """Print rows as a table, and below it what their marks mean."""
    made = table(rows)
    shown = [index for index, column in enumerate(made.columns) if column.key in _SHOWN]
    columns = [Shown("key"), Shown("model", least=8, drop=1), Shown("isl/osl", drop=2)]
    columns += [_column(made.columns[index]) for index in shown]
    by_key = {row.key: row for row in rows}
    lines: list[tuple[str | Text, ...]] = []
    for line in made.rows:
        row = by_key[line.key]
        cells = [_cell(line, index) for index in shown]
        lines.append((row.key[:10], row.model_prefix, f"{row.isl or '—'}/{row.osl or '—'}", *cells, _mark(row)))
    print_table([*columns, Shown("")], lines)
    _print_legend(rows)


def _column(column: Column) -> Shown:
    head, drop = _SHOWN[column.key]
    return Shown(
        f"{head}\n{column.unit}" if column.unit else head,
        right=column.kind == "number",
        drop=drop,
        least=_LABELS.get(column.key, 0),
    )


def _cell(line: TableRow, index: int) -> str:
    value = line.cells[index]
    return significant(value) if isinstance(value, float) else str("—" if value is None else value)


def _mark(row: Row) -> Text:
    if not row.valid:
        return Text("invalid", style="red")
    return Text("warn", style="yellow") if any(one.severity == "warn" for one in row.verdicts) else Text("")


def _print_legend(rows: Sequence[Row]) -> None:
    invalid = sum(not row.valid for row in rows)
    doubtful = sum(row.valid and any(one.severity == "warn" for one in row.verdicts) for row in rows)
    tail = [f"{invalid} invalid"] if invalid else []
    tail += [f"{doubtful} with a warning"] if doubtful else []
    say(f"{counted(len(rows), 'result')}{': ' if tail else ''}{', '.join(tail)}")
