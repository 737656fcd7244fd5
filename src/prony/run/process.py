"""Processes that are owned down to the last grandchild: started in their own sessions, stopped until none is left."""

import contextlib
import ctypes
import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from prony.base.errors import LaunchError
from prony.run import procfs
from prony.run.logs import LogPump

JOB = "PRONY_JOB"
SWEEP = "PRONY_SWEEP"
SUPERVISOR = "PRONY_SUPERVISOR"
TICK_S = 0.05
_KILL_PATIENCE_S = 10.0
_PR_SET_CHILD_SUBREAPER = 36
_GUARD = (sys.executable, "-I", "-S", str(Path(__file__).with_name("guard.py")))
_libc = ctypes.CDLL(None, use_errno=True)


class Cancelled(Exception):  # noqa: N818 - it is a request, not a fault
    """Someone asked the supervisor to stop."""


class Process:
    """A child in its own session, whose output the supervisor pumps into NAME.log."""

    def __init__(self, name: str, popen: "subprocess.Popen[bytes]", argv: tuple[str, ...]) -> None:
        self.name = name
        self.argv = argv
        self._popen = popen

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def exit(self) -> int | None:
        """Exit code, minus the signal's number when one killed it, None while it runs."""
        return self._popen.poll()

    @property
    def death(self) -> str:
        """How it ended, in words."""
        code = self.exit
        if code is None:
            return "is running"
        return f"exited with code {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"


class Supervisor:
    """Owns every child of this process: enter it once, in a process that has no other children.

    Orphaned grandchildren re-parent to it (subreaper). When it is killed itself, the kernel kills its direct children
    and the next supervisor of the same sweep kills the rest. TERM and INT make `check` raise Cancelled.
    """

    def __init__(self, sweep: str, secrets: Iterable[str]) -> None:
        self.sweep = sweep
        self.pump = LogPump(secrets)
        self._processes: dict[int, Process] = {}
        self._asked_to_stop = False
        self._handlers: dict[int, object] = {}

    def __enter__(self) -> Self:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        for number in (signal.SIGTERM, signal.SIGINT):
            self._handlers[number] = signal.signal(number, self._ask_to_stop)
        sweep_orphans(sweep=self.sweep)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        try:
            self.stop_all(grace_s=2.0)
        finally:
            self.pump.close()
            for number, handler in self._handlers.items():
                signal.signal(number, handler)  # type: ignore[arg-type]

    def _ask_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._asked_to_stop = True

    def check(self) -> None:
        """Raise Cancelled once someone asked to stop."""
        if self._asked_to_stop:
            raise Cancelled

    def wait(self, seconds: float = TICK_S) -> None:
        """Let time pass while output is pumped."""
        self.pump.pump(seconds)

    def start(self, name: str, argv: Sequence[str], env: Mapping[str, str], job: str) -> Process:
        """Start a program with this environment and env on top, marked with the job. Raises LaunchError.

        Python programs don't search the current directory for modules: a numpy.py of the user's must not become ours.
        """
        marks = {JOB: job, SWEEP: self.sweep, SUPERVISOR: str(procfs.own_identity())}
        full = {**os.environ, "PYTHONSAFEPATH": "1", **env, **marks}
        try:
            popen = subprocess.Popen(
                [*_GUARD, str(os.getpid()), _program(argv[0], full), *argv],
                env=full,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise LaunchError(
                f"{name}: '{argv[0]}' cannot be started: {reason}",
                fix="install the program, or name its interpreter in the recipe (python: …)",
            ) from None
        if popen.stdout is None:
            raise RuntimeError("a pipe was asked for")
        process = Process(name, popen, tuple(argv))
        self._processes[popen.pid] = process
        self.pump.attach(name, popen.stdout)
        return process

    def tree(self, process: Process) -> tuple[int, ...]:
        """Return the pids of a running process and all its descendants."""
        return (process.pid, *procfs.descendants(process.pid)) if process.exit is None else ()

    def stop(self, process: Process, grace_s: float) -> None:
        """End one process and its descendants: TERM, grace, KILL."""
        pids = set(self.tree(process))
        self._end(lambda: tuple(pids.intersection(procfs.descendants(os.getpid()))), grace_s)

    def stop_all(self, grace_s: float) -> None:
        """End every process that there is, until no child is left. Raises LaunchError when one survives KILL."""
        self._end(lambda: procfs.descendants(os.getpid()), grace_s)
        self._processes.clear()

    def _end(self, living: Callable[[], tuple[int, ...]], grace_s: float) -> None:
        _signal(living(), signal.SIGTERM)
        if self._gone(living, grace_s):
            return
        deadline = time.monotonic() + _KILL_PATIENCE_S
        while time.monotonic() < deadline:
            _signal(living(), signal.SIGKILL)
            if self._gone(living, TICK_S):
                return
        raise LaunchError(
            f"processes {', '.join(map(str, living()))} survive SIGKILL",
            fix="they wait for a device or a file system; look at /proc/PID/wchan, restart the machine if it stays",
        )

    def _gone(self, living: Callable[[], tuple[int, ...]], within_s: float) -> bool:
        deadline = time.monotonic() + within_s
        while True:
            self._reap()
            if not living():
                return True
            if time.monotonic() >= deadline:
                return False
            self.wait(0.01)

    def _reap(self) -> None:
        for pid in procfs.children(os.getpid()):
            if pid in self._processes:
                _ = self._processes[pid].exit
            else:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)


def sweep_orphans(*, sweep: str | None = None, supervisor: str | None = None) -> tuple[int, ...]:
    """Kill processes that a dead supervisor left behind, of one sweep or of one supervisor; return their pids."""
    marked = procfs.marked(SWEEP, sweep) if sweep is not None else procfs.marked(SUPERVISOR, supervisor or "")
    orphans = tuple(pid for pid in marked if _is_orphan(pid))
    deadline = time.monotonic() + _KILL_PATIENCE_S
    left = orphans
    while left and time.monotonic() < deadline:
        _signal(left, signal.SIGKILL)
        time.sleep(0.01)
        left = tuple(pid for pid in left if _is_orphan(pid))
    return orphans


def _is_orphan(pid: int) -> bool:
    owner = procfs.Identity.parse(procfs.environment_value(pid, SUPERVISOR) or "")
    return owner is not None and not owner.alive


def signal_exactly(who: procfs.Identity, number: signal.Signals) -> bool:
    """Send a signal to the very process, never to another that got its pid; False when it is gone."""
    try:
        handle = os.pidfd_open(who.pid)
    except OSError:
        return False
    try:
        if not who.alive:
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise LaunchError(f"prctl({option}) was refused: {os.strerror(number)}", fix="run on Linux 3.4 or newer")


def _program(name: str, env: Mapping[str, str]) -> str:
    """Return the path of a program as execvp would find it. Raises OSError."""
    found = shutil.which(name, path=env.get("PATH"))
    if found is None:
        number = errno.EACCES if "/" in name and Path(name).exists() else errno.ENOENT
        raise OSError(number, os.strerror(number))
    return found
