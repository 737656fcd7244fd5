"""The machine that measured, and the state of the configuration's repository, for provenance."""

import os
import platform
import subprocess
from functools import cache
from pathlib import Path

from prony.measure.result import Machine

_GIT_TIMEOUT_S = 5.0


@cache
def this_machine() -> Machine:
    """Describe this machine: host name, CPU model, cores this process may use, memory in bytes, kernel."""
    return Machine(
        hostname=platform.node(),
        cpu=_cpu_model(),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        kernel=f"{platform.system()} {platform.release()}",
    )


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def git_commit(config_file: str) -> str | None:
    """Return the commit of the repository that holds a file, with `+changes` when it isn't clean; None without one."""
    place = Path(config_file).absolute().parent
    commit = _git(place, "rev-parse", "HEAD")
    if not config_file or not commit:
        return None
    return commit + ("+changes" if _git(place, "status", "--porcelain", "--untracked-files=no") else "")


def _git(place: Path, *arguments: str) -> str | None:
    command = ["git", "--no-optional-locks", "-C", str(place), *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
