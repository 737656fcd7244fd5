"""Rows as a terminal table: three significant digits, units in the header, the same numbers as page and report."""

from collections.abc import Mapping, Sequence

from rich.text import Text

from prony.base.units import counted, significant
from prony.cli.columns import Column as Shown
from prony.cli.columns import print_table
from prony.cli.console import say
from prony.cli.rowmarks import mark, print_marks
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


def print_rows(rows: Sequence[Row], versions: Mapping[str, int] | None = None) -> None:
    """Print rows as a table, and below it what their marks mean. versions: the one shown, of keys that have several."""
    made = table(rows)
    shown = [index for index, column in enumerate(made.columns) if column.key in _SHOWN]
    columns = [Shown("key"), Shown("config", least=14, drop=2), Shown("model", least=8, drop=1)]
    columns += [Shown("isl/osl", drop=2)]
    columns += [_column(made.columns[index]) for index in shown]
    by_key = {row.key: row for row in rows}
    lines: list[tuple[str | Text, ...]] = []
    for line in made.rows:
        row = by_key[line.key]
        cells = [_cell(line, index) + _weak(row, made.columns[index]) for index in shown]
        names = row.key[:10], row.config_key or "—", row.model_prefix, f"{row.isl or '—'}/{row.osl or '—'}"
        lines.append((*names, *cells, _mark(row, (versions or {}).get(row.key, 1))))
    print_table([*columns, Shown("")], lines)
    _print_legend(rows)
    print_marks(rows, [(made.columns[index].metric, made.columns[index].stat) for index in shown])
    if versions:
        say("v2, v3, …: measured or imported again with other numbers; earlier ones are kept: prony results show KEY")


def _weak(row: Row, column: Column) -> str:
    return mark(row, column.metric, column.stat) if column.metric else ""


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


def _mark(row: Row, version: int) -> Text:
    """Say in one word what to beware of, and which version this is."""
    doubtful = any(one.severity == "warn" for one in row.verdicts)
    word, style = ("warn", "yellow") if doubtful else ("", "")
    if not row.valid:
        word, style = "invalid", "red"
    return Text(" ".join([*([f"v{version}"] if version > 1 else []), *([word] if word else [])]), style=style)


def _print_legend(rows: Sequence[Row]) -> None:
    invalid = sum(not row.valid for row in rows)
    doubtful = sum(row.valid and any(one.severity == "warn" for one in row.verdicts) for row in rows)
    tail = [f"{invalid} invalid"] if invalid else []
    tail += [f"{doubtful} with a warning"] if doubtful else []
    say(f"{counted(len(rows), 'result')}{': ' if tail else ''}{', '.join(tail)}")
