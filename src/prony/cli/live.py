"""The sweep while it runs: a live table on a terminal, one line per event elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from prony.base.units import duration
from prony.run.snapshot import JobView, Snapshot

Show = Callable[[Snapshot], None]
_STYLES = {
    "succeeded": "green", "invalid": "yellow", "failed": "red", "timeout": "red", "cancelled": "magenta",
    "running": "cyan", "queued": "dim", "planned": "dim",
}  # fmt: skip


@contextmanager
def view(*, plain: bool) -> Iterator[Show]:
    """Give a function that shows one snapshot; the picture is left standing at the end."""
    if plain or not sys.stdout.isatty():
        yield _Lines().show
        return
    with Live(console=Console(), auto_refresh=False) as live:
        yield lambda snapshot: live.update(_picture(snapshot), refresh=True)


class _Lines:
    """Prints a line when a job changes its state."""

    def __init__(self) -> None:
        self.seen: dict[str, str] = {}

    def show(self, snapshot: Snapshot) -> None:
        for job in snapshot.jobs:
            if job.state in ("planned", "queued", self.seen.get(job.key)):
                continue
            self.seen[job.key] = job.state
            done = len(snapshot.jobs) - snapshot.left
            reason = f": {job.message.splitlines()[0]}" if job.message else ""
            print(f"[{done}/{len(snapshot.jobs)}] {job.state:<9} {job.label}{reason}", flush=True)


def _picture(snapshot: Snapshot) -> Group:
    table = Table(box=None, pad_edge=False, show_header=False)
    for job in snapshot.jobs:
        table.add_row(Text(job.state, style=_STYLES[job.state]), job.label, _detail(job))
    done = len(snapshot.jobs) - snapshot.left
    eta = f", about {duration(snapshot.eta_s)} left" if snapshot.eta_s and snapshot.left else ""
    return Group(table, Text(f"{done} of {len(snapshot.jobs)} done{eta}", style="bold"))


def _detail(job: JobView) -> str:
    progress = job.progress
    if progress is None or job.state != "running":
        return job.message.splitlines()[0] if job.message else ""
    if progress.phase in ("starting", "warming"):
        return f"{progress.phase} …"
    rate = progress.output_tokens / progress.elapsed_s if progress.elapsed_s > 0 else 0.0
    failed = f", {progress.requests_failed} failed" if progress.requests_failed else ""
    return f"{progress.requests_done}/{progress.requests_total} requests{failed}, {rate:.0f} output tok/s"
