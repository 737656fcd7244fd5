"""The local executor: a supervisor in its own session for each launch, which outlives the controller."""

import contextlib
import errno
import fcntl
import os
import signal
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from prony.base.errors import LaunchError
from prony.run import procfs
from prony.run.claim import read_claim
from prony.run.executors.base import Handle, State
from prony.run.folder import JobFolder
from prony.run.process import signal_exactly, sweep_orphans

COMMAND = (sys.executable, "-P", "-m", "prony", "job", "run")
_SCHEME = "local:"
_LOCK_FD = 3
_CLAIM_PATIENCE_S = 10.0
_TAIL_BYTES = 2000


class LocalExecutor:
    """Runs supervisors as detached processes, one launch at a time unless told otherwise.

    A lock file per attempt is inherited by the supervisor and held while it lives, so that a controller that was killed
    between the start and its note of it finds the supervisor again.
    """

    def __init__(self, slots: int = 1, command: Sequence[str] = COMMAND) -> None:
        self.slots = slots
        self._command = tuple(command)
        self._logs: dict[Handle, Path] = {}

    def submit(self, launch: str, folders: Sequence[Path], attempt: int) -> Handle:
        """Start a supervisor for the folders, or find the one that runs this attempt. Raises LaunchError."""
        place = folders[0].parent.parent / "supervisors"
        stem = f"{launch[:16]}-{attempt}"
        try:
            place.mkdir(parents=True, exist_ok=True)
            lock = os.open(place / f"{stem}.lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise _refused(place, error) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return self._found(folders[0], attempt, place / f"{stem}.log")
        else:
            return self._known(folders[0], attempt) or self._spawn(lock, folders, attempt, place / f"{stem}.log")
        finally:
            os.close(lock)

    def _spawn(self, lock: int, folders: Sequence[Path], attempt: int, log: Path) -> Handle:
        argv = [*self._command, *(str(folder) for folder in folders), "--attempt", str(attempt)]
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        try:
            pid = os.posix_spawn(
                argv[0],
                argv,
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o644),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                    (os.POSIX_SPAWN_DUP2, lock, _LOCK_FD),
                ],
                setsid=True,
            )
        except OSError as error:
            raise _refused(log, error) from None
        who = procfs.identity(pid)
        if who is None:
            raise RuntimeError("a child of this process is kept until it is waited for")
        handle = f"{_SCHEME}{who}"
        self._logs[handle] = log
        return handle

    def _known(self, folder: Path, attempt: int) -> Handle | None:
        claim = read_claim(JobFolder(folder), attempt)
        return f"{_SCHEME}{claim.supervisor}" if claim else None

    def _found(self, folder: Path, attempt: int, log: Path) -> Handle:
        deadline = time.monotonic() + _CLAIM_PATIENCE_S
        while time.monotonic() < deadline:
            handle = self._known(folder, attempt)
            if handle is not None:
                self._logs[handle] = log
                return handle
            time.sleep(0.05)
        raise LaunchError(
            f"{folder}: a supervisor of attempt {attempt} runs, but has not claimed the folder", fix=f"read {log}"
        )

    def poll(self, handles: Collection[Handle]) -> Mapping[Handle, State]:
        """Tell which supervisors run; kill what a dead one left behind."""
        return {handle: self._state(handle) for handle in handles}

    def _state(self, handle: Handle) -> State:
        who = _identity(handle)
        exit_code = None
        with contextlib.suppress(ChildProcessError):
            pid, status = os.waitpid(who.pid, os.WNOHANG)
            exit_code = os.waitstatus_to_exitcode(status) if pid else None
        if who.alive:
            return State(phase="running")
        sweep_orphans(supervisor=str(who))
        return State(phase="exited", exit_code=exit_code, reason=_tail(self._logs.get(handle)))

    def cancel(self, handle: Handle, grace_s: float = 30.0) -> None:
        """Send TERM to the supervisor, which stops its processes; with grace 0 kill it and them."""
        who = _identity(handle)
        signal_exactly(who, signal.SIGTERM if grace_s > 0 else signal.SIGKILL)


def _identity(handle: Handle) -> procfs.Identity:
    who = procfs.Identity.parse(handle.removeprefix(_SCHEME))
    if who is None:
        raise LaunchError(f"'{handle}' is not a handle of the local executor", allowed="local:pid@boot+starttime")
    return who


def _tail(log: Path | None) -> str:
    try:
        return log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace").strip() if log else ""
    except OSError:
        return ""


def _refused(path: Path, error: OSError) -> LaunchError:
    fix = "free space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "check the place and its permissions"
    return LaunchError(f"{path}: a supervisor cannot be started: {error.strerror}", fix=f"{fix}, then use --resume")
