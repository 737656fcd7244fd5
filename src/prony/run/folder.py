"""The job folder: job.json goes in; exit.json, result.json, events.npz and logs come out."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from prony.base.errors import ConfigError
from prony.base.model import Frozen, read_model
from prony.load.progress import Progress
from prony.plan.job import Job

Status = Literal["succeeded", "invalid", "failed", "timeout", "cancelled"]
FaultClass = Literal["none", "config", "launch", "measurement", "infrastructure"]


class ExitRecord(Frozen):
    """How an attempt at a job ended; written last and atomically, it outranks every other witness."""

    schema_version: Literal["prony.exit/1"] = "prony.exit/1"
    status: Status
    fault: FaultClass = "none"
    exit_code: int
    attempt: int
    message: str = ""
    fix: str = ""
    started_at: str
    ended_at: str


@dataclass(frozen=True)
class JobFolder:
    """Names of the files in one job's folder."""

    path: Path

    @property
    def job_file(self) -> Path:
        return self.path / "job.json"

    @property
    def exit_file(self) -> Path:
        return self.path / "exit.json"

    @property
    def result_file(self) -> Path:
        return self.path / "result.json"

    @property
    def events_file(self) -> Path:
        return self.path / "events.npz"

    @property
    def progress_file(self) -> Path:
        return self.path / "progress.json"

    @property
    def request_file(self) -> Path:
        return self.path / "load.json"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def job(self) -> Job:
        """Read job.json. Raises ConfigError."""
        return read_model(self.job_file, Job)

    def exit_record(self) -> ExitRecord | None:
        """Read exit.json, or None while the attempt has not ended. Raises ConfigError when it is damaged."""
        return read_model(self.exit_file, ExitRecord) if self.exit_file.exists() else None

    def progress(self) -> Progress | None:
        """Read progress.json, or None when this attempt has not begun (or the file cannot be read)."""
        try:
            return read_model(self.progress_file, Progress) if self.progress_file.exists() else None
        except ConfigError:
            return None


def worst_exit_code(codes: Iterable[int]) -> int:
    """Return the exit code for several jobs: 130 before 3 before 2 before 4 before 0."""
    found = set(codes)
    return next((code for code in (130, 3, 2, 4) if code in found), 0)
