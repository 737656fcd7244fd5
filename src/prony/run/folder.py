"""The job folder: job.json goes in; exit.json, result.json, events.npz and logs come out."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from prony.base.errors import ConfigError
from prony.base.model import Frozen, read_model
from prony.load.progress import Progress
from prony.measure.result import Result
from prony.plan.job import Job

_KEY = re.compile(r"[0-9a-f]{16}(?:[0-9a-f]{48})?")
Status = Literal["succeeded", "invalid", "failed", "timeout", "cancelled"]
FaultClass = Literal["none", "config", "launch", "measurement", "infrastructure"]


class ExitRecord(Frozen):
    """How an attempt at a job ended; written last and atomically, it outranks every other witness.

    message: one sentence; what a process said last may follow in lines of its own. job_key: empty in old records.
    """

    schema_version: Literal["prony.exit/1"] = "prony.exit/1"
    status: Status
    fault: FaultClass = "none"
    exit_code: int
    attempt: int
    job_key: str = ""
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
    def scratch(self) -> Path:
        """Files that the launch's processes read or share, of the first job of a launch."""
        return self.path / "scratch"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def job(self) -> Job:
        """Read job.json. Raises ConfigError, also when the folder is that of another job."""
        job = read_model(self.job_file, Job)
        self.check_key(job.key, self.job_file)
        return job

    def check_key(self, key: str, file: Path) -> None:
        """Raise ConfigError when a file is of another job than the folder is named after; other names are free."""
        name = self.path.name
        if _KEY.fullmatch(name) and not key.startswith(name):
            raise ConfigError(
                f"{file}: is of job {key[:16]}, but its folder is that of job {name}: it was edited or moved",
                fix=f"write it back, or move it into a folder of its own: {self.path.with_name(key[:16])}",
            )

    def check_outputs(self, key: str) -> None:
        """Raise ConfigError when the folder holds the result or exit record of another job. Damaged files count not."""
        for file, read in ((self.result_file, self._result_key), (self.exit_file, self._exit_key)):
            found = read()
            if found and found != key:
                raise ConfigError(
                    f"{file}: is of job {found[:16]}, but job.json beside it is job {key[:16]}",
                    fix="give the changed job a folder of its own (only job.json in it), or write job.json back",
                )

    def _result_key(self) -> str:
        try:
            return read_model(self.result_file, Result).row.key
        except ConfigError:
            return ""

    def _exit_key(self) -> str:
        try:
            record = self.exit_record()
        except ConfigError:
            return ""
        return record.job_key if record else ""

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
