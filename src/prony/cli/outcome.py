"""What a sweep came to, for the terminal."""

import re
from collections.abc import Sequence

from rich.text import Text

from prony.base.finding import Finding
from prony.base.units import counted, duration, significant
from prony.cli.columns import Column, print_table
from prony.cli.console import make_console, say, shown
from prony.cli.rowmarks import mark, print_marks
from prony.measure.result import Row
from prony.run.snapshot import Snapshot

_LOUD = ("warn", "error", "invalid")
_LATENCIES = (("ttft", "p50"), ("ttft", "p99"), ("tpot", "p50"), ("e2el", "p50"))
_COLUMNS = (
    Column("key", least=23),
    Column("conc", right=True),
    Column("tput/GPU", right=True),
    Column("interactivity", right=True),
    Column("TTFT p50", right=True),
    Column("TTFT p99", right=True, drop=3),
    Column("TPOT p50", right=True, drop=4),
    Column("E2EL p50", right=True, drop=1),
    Column("requests", right=True, drop=2),
    Column("verdict"),
)
# Advice that a server's own last lines hold, quoted with a bar in front.
_QUOTED_ADVICE = re.compile(r"^[ |]*what to do: (.*)\n?", re.MULTILINE)


def print_points(rows: Sequence[Row]) -> None:
    """Print one line per point: what was served, the trade-off, latencies, verdicts."""
    if not rows:
        return
    console = make_console()
    console.print()
    print_table(
        _COLUMNS,
        [(row.config_key or row.model, str(row.concurrency), *_numbers(row), _verdict(row)) for row in rows],
    )
    console.print("tput/GPU: tok/s per device, in and out; interactivity: tok/s per user, median", style="dim")
    print_marks(rows, (("interactivity", "p50"), *_LATENCIES))
    for message, count in _verdict_lines(rows):
        points = f" ({counted(count, 'point')})" if count > 1 else ""
        console.print(shown(f"{message}{points}"), style="yellow")


def _numbers(row: Row) -> tuple[str, ...]:
    completed, failed = row.value("requests_completed"), row.value("requests_failed")
    requests = "—" if completed is None else f"{completed:.0f}" + (f" + {failed:.0f} failed" if failed else "")
    return (
        significant(row.value("tput_per_gpu")),
        significant(row.value("interactivity", "p50")) + mark(row, "interactivity", "p50"),
        *(duration(row.value(metric, stat)) + mark(row, metric, stat) for metric, stat in _LATENCIES),
        requests,
    )


def _verdict(row: Row) -> Text:
    if not row.valid:
        return Text("invalid", style="red")
    loud = [verdict for verdict in row.verdicts if verdict.severity in _LOUD]
    return Text(f"{len(loud)} warn", style="yellow") if loud else Text("ok", style="green")


def _verdict_lines(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """Say each loud verdict once, with the number of points that share its rule."""
    first: dict[str, Finding] = {}
    counts: dict[str, int] = {}
    for row in rows:
        for verdict in row.verdicts:
            if verdict.severity in _LOUD:
                first.setdefault(verdict.rule, verdict)
                counts[verdict.rule] = counts.get(verdict.rule, 0) + 1
    return [(f"{verdict.severity} [{rule}] {verdict.message}", counts[rule]) for rule, verdict in first.items()]


def print_interrupted(snapshot: Snapshot) -> None:
    """Say how far a sweep came that was interrupted; nothing of one that was not."""
    if snapshot.count("planned", "queued", "running", "cancelled"):
        begun = len(snapshot.jobs) - snapshot.done - snapshot.not_started
        say(f"\n{snapshot.done} of {len(snapshot.jobs)} done, {begun} interrupted, {snapshot.not_started} not started")


def print_faults(snapshot: Snapshot) -> None:
    """Print why jobs did not succeed, equal reasons once, with what to do."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for job in snapshot.jobs:
        if job.state in ("failed", "timeout") or (job.state == "cancelled" and job.begun):
            reasons.setdefault(_one_advice(job.message, job.fix), []).append(f"{job.label} ({job.state})")
    console = make_console(stderr=True)
    for (message, fix), labels in reasons.items():
        console.print(shown(f"\n{', '.join(labels)}"), style="bold red")
        console.print(shown(f"  {message}"))
        if fix:
            console.print(shown(f"  what to do: {fix}"))


def _one_advice(message: str, fix: str) -> tuple[str, str]:
    """Move advice that a message quotes in front of its own: who stands nearer to the fault knows better."""
    quoted = [advice.strip() for advice in _QUOTED_ADVICE.findall(message)]
    return _QUOTED_ADVICE.sub("", message).rstrip(), "; ".join(dict.fromkeys([*quoted, *([fix] if fix else [])]))
