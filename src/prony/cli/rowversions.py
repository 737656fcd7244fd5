"""Versions of a result: what earlier ones said, and how far a new one is from the one before."""

from collections.abc import Iterator, Mapping, Sequence

from prony.base.units import duration, significant
from prony.cli.columns import Column, print_table
from prony.cli.rowmarks import mark
from prony.measure.result import Row
from prony.store.store import StoredVersion

NOTABLE = 0.10
_COLUMNS = (
    Column("version", right=True),
    Column("measured", drop=1),
    Column("stored", drop=2),
    Column("tput/GPU", right=True),
    Column("interactivity", right=True),
    Column("TTFT p50", right=True),
    Column("E2EL p50", right=True, drop=3),
    Column(""),
)


def print_versions(versions: Sequence[StoredVersion]) -> None:
    """Print the main numbers of every version, oldest first."""
    print_table(_COLUMNS, [_line(version) for version in versions])


def _line(version: StoredVersion) -> tuple[str, ...]:
    row, shown = version.row, "shown" if version.shown else ""
    if row is None:
        return (str(version.version), "unreadable", version.stored_at, "—", "—", "—", "—", shown)
    return (
        str(version.version),
        row.measured_at or "—",
        version.stored_at,
        significant(row.value("tput_per_gpu")) + mark(row, "tput_per_gpu", "value"),
        significant(row.value("interactivity", "p50")) + mark(row, "interactivity", "p50"),
        duration(row.value("ttft", "p50")) + mark(row, "ttft", "p50"),
        duration(row.value("e2el", "p50")) + mark(row, "e2el", "p50"),
        shown if row.valid else f"{shown} invalid".strip(),
    )


def changes(before: Mapping[str, Row], after: Sequence[Row]) -> Iterator[str]:
    """Say which results replaced an earlier measurement of the same job with a throughput far from it."""
    for row in after:
        old = before.get(row.key)
        was = None if old is None else old.value("tput_per_gpu")
        now = row.value("tput_per_gpu")
        if old is None or old == row or not was or now is None or abs(now - was) <= NOTABLE * was:
            continue
        when = old.measured_at or "at an unknown time"
        yield (
            f"{row.config_key or row.model} concurrency {row.concurrency}: {significant(now)} tok/s/GPU, "
            f"{(now - was) / was:+.0%} against {significant(was)} measured {when} (both are kept)"
        )
