"""Marks on numbers that deserve less trust than they look."""

from collections.abc import Sequence

from prony.cli.console import say
from prony.measure.result import Row

UNSUPPORTED = "*"


def mark(row: Row, metric: str, stat: str) -> str:
    """Return an asterisk for a percentile that too few requests support, else nothing."""
    weak = any((one.metric, one.stat) == (metric, stat) and not one.supported for one in row.measurements)
    return UNSUPPORTED if weak else ""


def print_marks(rows: Sequence[Row], columns: Sequence[tuple[str, str]]) -> None:
    """Say what the asterisk means where one of these metrics and statistics has it."""
    if any(mark(row, *column) for row in rows for column in columns):
        say("* too few requests support this percentile (n < 10 / (1 − q))")
