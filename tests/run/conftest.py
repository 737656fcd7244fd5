"""A bench for real jobs, and a check that nothing is left of them."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from prony.base.model import write_model
from prony.plan.job import Job
from prony.run import procfs
from prony.run.folder import JobFolder
from prony.run.process import SWEEP
from tests.run.kit import SUPERVISOR


class Bench:
    """A directory for jobs, and ways to run them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.jobs = directory / "jobs"

    def folder(self, job: Job, name: str = "") -> JobFolder:
        """Write a job's folder."""
        folder = JobFolder(self.jobs / (name or job.key[:16]))
        folder.path.mkdir(parents=True)
        write_model(folder.job_file, job)
        return folder

    def command(self, *folders: JobFolder, attempt: int | None = None) -> list[str]:
        numbered = [] if attempt is None else ["--attempt", str(attempt)]
        return [*SUPERVISOR, *(str(folder.path) for folder in folders), *numbered]

    def start(self, *folders: JobFolder, attempt: int | None = None) -> "subprocess.Popen[str]":
        """Start a supervisor."""
        return subprocess.Popen(
            self.command(*folders, attempt=attempt), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self, *folders: JobFolder, attempt: int | None = None) -> "subprocess.CompletedProcess[str]":
        """Run a supervisor to its end."""
        with self.start(*folders, attempt=attempt) as supervisor:
            try:
                out, err = supervisor.communicate(timeout=30)
            finally:
                supervisor.kill()
        assert "Traceback" not in out + err, out + err
        return subprocess.CompletedProcess(supervisor.args, supervisor.returncode, out, err)

    def survivors(self) -> tuple[int, ...]:
        """Return the processes that were started for jobs of this bench and still live."""
        return procfs.marked(SWEEP, str(self.jobs.resolve()))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A bench on which nothing may be left running."""
    made = Bench(tmp_path)
    yield made
    left = made.survivors()
    told = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left}
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not told
