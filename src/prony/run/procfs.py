"""What /proc says: who a process is, who its children are, what it was started for, where it listens."""

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from prony.base.proctree import children as children
from prony.base.proctree import descendants as descendants

_LISTEN = "0A"


@dataclass(frozen=True)
class Identity:
    """A process that cannot be mistaken for another: pid, boot id, start time in clock ticks since boot."""

    pid: int
    boot: str
    started: int

    def __str__(self) -> str:
        return f"{self.pid}@{self.boot}+{self.started}"

    @classmethod
    def parse(cls, text: str) -> "Identity | None":
        """Read `pid@boot+started`; None when the text is something else."""
        pid, _, rest = text.partition("@")
        boot, _, started = rest.rpartition("+")
        return cls(int(pid), boot, int(started)) if pid.isdigit() and boot and started.isdigit() else None

    @property
    def alive(self) -> bool:
        """The very process runs (a zombie does not)."""
        stat = _stat(self.pid)
        return stat is not None and stat[0] != "Z" and stat[1] == self.started and self.boot == boot_id()


@cache
def boot_id() -> str:
    """Return the kernel's id of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def identity(pid: int) -> Identity | None:
    """Return who a pid is now, or None when there is no such process."""
    stat = _stat(pid)
    return Identity(pid, boot_id(), stat[1]) if stat else None


def own_identity() -> Identity:
    """Return who this process is."""
    found = identity(os.getpid())
    if found is None:
        raise RuntimeError("/proc is not mounted")
    return found


def _stat(pid: int) -> tuple[str, int] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    after_name = text.rpartition(")")[2].split()
    return after_name[0], int(after_name[19])


def marked(name: str, value: str) -> tuple[int, ...]:
    """Return the pids whose environment holds name=value exactly."""
    wanted = f"{name}={value}".encode()
    return tuple(pid for pid in _pids() if wanted in _environ(pid))


def environment_value(pid: int, name: str) -> str | None:
    """Return a variable of another process's environment as it was at its start."""
    prefix = f"{name}=".encode()
    for entry in _environ(pid):
        if entry.startswith(prefix):
            return entry[len(prefix) :].decode(errors="replace")
    return None


def _pids() -> Iterable[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _environ(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def listener_is_among(port: int, pids: Iterable[int]) -> bool | None:
    """Tell whether one of the pids listens on a TCP port; None when nobody in this network namespace does."""
    inodes = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    if not inodes:
        return None
    return any(link in inodes for pid in pids for link in _open_files(pid))


def _listening_inodes(port: int) -> Iterable[str]:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                    yield fields[9]


def _open_files(pid: int) -> Iterable[str]:
    links: list[Path] = []
    with contextlib.suppress(OSError):
        links = list(Path(f"/proc/{pid}/fd").iterdir())
    for link in links:
        with contextlib.suppress(OSError):
            yield str(link.readlink())
