"""What a sweep came to, for the terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from prony.base.finding import Finding
from prony.base.units import duration, significant
from prony.cli.console import wide_console
from prony.measure.result import Row
from prony.run.snapshot import Snapshot

_LOUD = ("warn", "error", "invalid")


def print_points(rows: Sequence[Row]) -> None:
    """Print one line per point: what was served, the trade-off, latencies, verdicts."""
    if not rows:
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("key", overflow="fold")
    for name in ("conc", "tput/GPU", "interactivity", "TTFT p50", "TTFT p99", "TPOT p50", "E2EL p50", "requests"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for row in rows:
        table.add_row(row.config_key or row.model, str(row.concurrency), *_numbers(row), _verdict(row))
    console = wide_console()
    console.print()
    console.print(table)
    console.print(
        "tput/GPU in tok/s per device, input and output; interactivity in tok/s per user, median", style="dim"
    )
    for message, count in _verdict_lines(rows):
        console.print(f"{message}{f' ({count} points)' if count > 1 else ''}", style="yellow", highlight=False)


def _numbers(row: Row) -> tuple[str, ...]:
    completed, failed = row.value("requests_completed"), row.value("requests_failed")
    requests = "—" if completed is None else f"{completed:.0f}" + (f" + {failed:.0f} failed" if failed else "")
    return (
        significant(row.value("tput_per_gpu")),
        significant(row.value("interactivity", "p50")),
        *(duration(row.value(metric, stat)) for metric, stat in _LATENCIES),
        requests,
    )


_LATENCIES = (("ttft", "p50"), ("ttft", "p99"), ("tpot", "p50"), ("e2el", "p50"))


def _verdict(row: Row) -> str:
    if not row.valid:
        return "[red]invalid[/red]"
    loud = [verdict for verdict in row.verdicts if verdict.severity in _LOUD]
    return f"[yellow]{len(loud)} warn[/yellow]" if loud else "[green]ok[/green]"


def _verdict_lines(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """Say each loud verdict once, with the number of points that share its rule."""
    first: dict[str, Finding] = {}
    counts: dict[str, int] = {}
    for row in rows:
        for verdict in row.verdicts:
            if verdict.severity in _LOUD:
                first.setdefault(verdict.rule, verdict)
                counts[verdict.rule] = counts.get(verdict.rule, 0) + 1
    return [
        (f"{verdict.severity} [{rule}] {verdict.message}".replace("[", "\\["), counts[rule])
        for rule, verdict in first.items()
    ]


def print_faults(snapshot: Snapshot) -> None:
    """Print why jobs did not succeed, equal reasons once, with what to do."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for job in snapshot.jobs:
        if job.state in ("failed", "timeout", "cancelled"):
            reasons.setdefault((job.message, job.fix), []).append(f"{job.label} ({job.state})")
    console = Console(stderr=True)
    for (message, fix), labels in reasons.items():
        console.print(f"\n{', '.join(labels)}", style="bold red", highlight=False, markup=False)
        console.print(f"  {message}", highlight=False, markup=False)
        if fix:
            console.print(f"  what to do: {fix}", highlight=False, markup=False)
