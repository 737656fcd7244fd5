"""A sweep at one moment, for whoever draws it."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from prony.base.model import Frozen
from prony.load.progress import Progress
from prony.run.folder import JobFolder
from prony.run.ledger import ACTIVE, UNFINISHED, JobEntry, JobState


class JobView(Frozen):
    """One job: progress while it runs, message and fix when it did not succeed; eta_s: seconds to its end.

    begun: false for a job that was cancelled before anything of it ran.
    """

    key: str
    label: str
    folder: str
    state: JobState
    attempt: int
    progress: Progress | None = None
    message: str = ""
    fix: str = ""
    started_at: str | None = None
    ended_at: str | None = None
    eta_s: float | None = None
    begun: bool = True


class Snapshot(Frozen):
    """All jobs in the order of the plan; eta_s: seconds to the end of the sweep, None while nothing is known."""

    directory: str
    jobs: tuple[JobView, ...]
    eta_s: float | None

    def count(self, *states: JobState) -> int:
        """Return how many jobs are in one of the states."""
        return sum(job.state in states for job in self.jobs)

    @property
    def left(self) -> int:
        """Jobs that have not ended."""
        return self.count(*UNFINISHED)

    @property
    def done(self) -> int:
        """Jobs that came to an end of their own, good or bad."""
        return self.count("succeeded", "invalid", "failed", "timeout")

    @property
    def not_started(self) -> int:
        """Jobs that wait, and those that were cancelled before anything of them ran."""
        return self.count("planned") + sum(not job.begun for job in self.jobs)


def take(directory: Path, jobs: Sequence[JobEntry], folders: Sequence[JobFolder]) -> Snapshot:
    """Look at the jobs and at the progress of those that run."""
    progress = [folder.progress() if job.state in ACTIVE else None for job, folder in zip(jobs, folders, strict=True)]
    pace = _seconds_per_work(jobs, progress)
    etas = [_eta(job, done, pace) for job, done in zip(jobs, progress, strict=True)]
    views = tuple(
        _view(job, folder, done, eta) for job, folder, done, eta in zip(jobs, folders, progress, etas, strict=True)
    )
    return Snapshot(
        directory=str(directory),
        jobs=views,
        eta_s=None if pace is None else sum(eta for eta in etas if eta is not None),
    )


def _view(job: JobEntry, folder: JobFolder, progress: Progress | None, eta_s: float | None) -> JobView:
    return JobView(
        key=job.key,
        label=job.label,
        folder=str(folder.path),
        state=job.state,
        attempt=job.attempt,
        progress=progress,
        message=job.message,
        fix=job.fix,
        started_at=job.started_at,
        ended_at=job.ended_at,
        eta_s=eta_s,
        begun=job.state != "cancelled" or folder.progress() is not None,
    )


def _seconds_per_work(jobs: Sequence[JobEntry], progress: Sequence[Progress | None]) -> float | None:
    """Return how long one decode step takes, over what ended well and what runs; None when nothing is known."""
    seconds = work = 0.0
    for job, running in zip(jobs, progress, strict=True):
        if job.state in ("succeeded", "invalid") and job.started_at and job.ended_at:
            ended, started = datetime.fromisoformat(job.ended_at), datetime.fromisoformat(job.started_at)
            seconds += (ended - started).total_seconds()
            work += job.work
        elif running is not None and running.requests_done:
            seconds += running.elapsed_s
            work += job.work * _share(running)
    return seconds / work if work else None


def _eta(job: JobEntry, running: Progress | None, pace: float | None) -> float | None:
    if job.state not in UNFINISHED or pace is None:
        return None
    return pace * job.work * (1 - _share(running) if running is not None else 1)


def _share(running: Progress) -> float:
    return running.requests_done / max(1, running.requests_total)
