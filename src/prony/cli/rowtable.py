"""Rows as a terminal table: three significant digits, units in the header, the same numbers as page and report."""

from collections.abc import Sequence

from rich.table import Table as RichTable
from rich.text import Text

from prony.base.units import significant
from prony.cli.console import wide_console
from prony.measure.result import Row
from prony.view.table import Column, TableRow, table

# Columns of view.table that fit a terminal, and how their header is written there.
_SHOWN = {
    "hardware": "hardware",
    "framework": "framework",
    "precision": "precision",
    "spec_decoding": "spec",
    "topology": "topology",
    "concurrency": "conc",
    "tput_per_gpu": "tput/GPU",
    "interactivity_p50": "interactivity",
    "ttft_p50": "TTFT p50",
    "e2el_p50": "E2EL p50",
}


def print_rows(rows: Sequence[Row]) -> None:
    """Print rows as a table, and below it what their marks mean."""
    made = table(rows)
    shown = [index for index, column in enumerate(made.columns) if column.key in _SHOWN]
    drawn = RichTable(box=None, header_style="bold", pad_edge=False)
    drawn.add_column("key", no_wrap=True)
    drawn.add_column("model", overflow="fold")
    drawn.add_column("isl/osl", no_wrap=True)
    for index in shown:
        column = made.columns[index]
        numeric = column.kind == "number"
        drawn.add_column(_header(column), justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
    drawn.add_column("")
    by_key = {row.key: row for row in rows}
    for line in made.rows:
        row = by_key[line.key]
        cells = [_cell(line, index) for index in shown]
        drawn.add_row(row.key[:10], row.model_prefix, f"{row.isl or '—'}/{row.osl or '—'}", *cells, _mark(row))
    wide_console().print(drawn)
    _print_legend(rows)


def _header(column: Column) -> str:
    return f"{_SHOWN[column.key]}\n{column.unit}" if column.unit else _SHOWN[column.key]


def _cell(line: TableRow, index: int) -> str:
    value = line.cells[index]
    return significant(value) if isinstance(value, float) else str("—" if value is None else value)


def _mark(row: Row) -> Text:
    if not row.valid:
        return Text("✗ invalid", style="red")
    return Text("! warn", style="yellow") if any(one.severity == "warn" for one in row.verdicts) else Text("")


def _print_legend(rows: Sequence[Row]) -> None:
    invalid = sum(not row.valid for row in rows)
    doubtful = sum(row.valid and any(one.severity == "warn" for one in row.verdicts) for row in rows)
    tail = [f"{invalid} invalid"] if invalid else []
    tail += [f"{doubtful} with a warning"] if doubtful else []
    print(f"{len(rows)} result{'' if len(rows) == 1 else 's'}{': ' if tail else ''}{', '.join(tail)}")
