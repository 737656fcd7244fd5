"""The sweep while it runs: a live table on a terminal, one line per event elsewhere."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from prony.base.text import printable
from prony.base.units import about
from prony.cli.console import headline, make_console, say
from prony.run.snapshot import JobView, Snapshot

Show = Callable[[Snapshot], None]
_STYLES = {
    "succeeded": "green", "invalid": "yellow", "failed": "red", "timeout": "red", "cancelled": "magenta",
    "running": "cyan", "queued": "dim", "planned": "dim",
}  # fmt: skip


@contextmanager
def view(*, plain: bool) -> Iterator[Show]:
    """Give a function that shows one snapshot; the picture is left standing at the end."""
    console = make_console()
    if plain or not console.is_terminal or console.is_dumb_terminal:
        yield _Lines().show
        return
    with Live(console=console, auto_refresh=False) as live:
        yield lambda now: live.update(_picture(now, console.height if now.left else None), refresh=True)


class _Lines:
    """Prints a line when a job changes its state."""

    def __init__(self) -> None:
        self.seen: dict[str, str] = {}

    def show(self, snapshot: Snapshot) -> None:
        for job in snapshot.jobs:
            if job.state in ("planned", "queued", self.seen.get(job.key)):
                continue
            self.seen[job.key] = job.state
            if job.begun:  # those that never began are counted at the end
                reason = f": {headline(job.message)}" if job.message and job.state != "cancelled" else ""
                say(f"[{snapshot.done}/{len(snapshot.jobs)}] {job.state:<9} {job.label}{reason}{_left(snapshot)}")


def _left(snapshot: Snapshot) -> str:
    return f", about {about(snapshot.eta_s)} left" if snapshot.eta_s and snapshot.left else ""


def _picture(snapshot: Snapshot, height: int | None) -> Group:
    """Draw the jobs and the sum; height: lines of the terminal, None to draw all."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="ellipsis", no_wrap=True)
    table.add_column(overflow="ellipsis", no_wrap=True)
    shown = _window(snapshot.jobs, None if height is None else max(1, height - 2))
    for job in shown:
        state = job.state if job.begun else "not started"
        table.add_row(Text(state, style=_STYLES[job.state]), Text(printable(job.label)), Text(_detail(job)))
    hidden = f" ({len(shown)} shown)" if len(shown) < len(snapshot.jobs) else ""
    return Group(table, Text(f"{snapshot.done} of {len(snapshot.jobs)} done{hidden}{_left(snapshot)}", style="bold"))


def _window(jobs: Sequence[JobView], room: int | None) -> Sequence[JobView]:
    """Return the jobs around the first one that has not ended, as many as there is room for."""
    if room is None or len(jobs) <= room:
        return jobs
    first = next((place for place, job in enumerate(jobs) if job.state in ("running", "queued", "planned")), len(jobs))
    start = max(0, min(first - room // 2, len(jobs) - room))
    return jobs[start : start + room]


def _detail(job: JobView) -> str:
    progress = job.progress
    if progress is None or job.state != "running":
        return headline(job.message)
    if progress.phase in ("starting", "warming"):
        return f"{progress.phase} …"
    rate = progress.output_tokens / progress.elapsed_s if progress.elapsed_s > 0 else 0.0
    failed = f", {progress.requests_failed} failed" if progress.requests_failed else ""
    return f"{progress.requests_done}/{progress.requests_total} requests{failed}, {rate:.0f} output tok/s"
