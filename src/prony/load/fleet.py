"""A load over several worker processes: one schedule, each with its share of slots and requests, one log.

Requests are rendered before the fork, so the workers share their memory. All of them begin at one instant of
CLOCK_MONOTONIC, which is the same in every process of a machine.
"""

import contextlib
import mmap
import os
import pickle
import select
import signal
import socket
import struct
import tempfile
import time
from dataclasses import dataclass
from time import monotonic_ns
from typing import IO

from prony.base.errors import LaunchError, PronyError
from prony.load.interrupts import Interrupts
from prony.load.part import Part
from prony.load.progress import Progress
from prony.load.reporter import Reporter
from prony.load.run import Load, Recording, Show, assemble
from prony.load.shard import Shard
from prony.load.watch import Watcher

_START_DELAY_NS = 50_000_000
_COUNTS = struct.Struct("@4q2d")
_INSTANT = struct.Struct("@q")
_POLL_S = 0.5


@dataclass
class _Child:
    pid: int
    control: socket.socket
    result: IO[bytes]


class _Board:
    """Counts of every worker in memory that all of them share."""

    def __init__(self, workers: int) -> None:
        self._memory = mmap.mmap(-1, _COUNTS.size * workers)
        self._workers = workers

    def post(self, worker: int, progress: Progress) -> None:
        """Write a worker's counts."""
        p50, p99 = progress.ttft_p50_s or 0.0, progress.ttft_p99_s or 0.0
        counts = progress.requests_done, progress.requests_failed, progress.in_flight, progress.output_tokens
        _COUNTS.pack_into(self._memory, worker * _COUNTS.size, *counts, p50, p99)

    def total(self, template: Progress, origin_ns: int) -> Progress:
        """Return all workers' counts together; TTFT: the mean of their medians, the worst of their p99."""
        rows = [_COUNTS.unpack_from(self._memory, worker * _COUNTS.size) for worker in range(self._workers)]
        done, failed, in_flight, tokens = (sum(column) for column in list(zip(*rows, strict=True))[:4])
        medians = [row[4] for row in rows if row[4]]
        return template.model_copy(
            update={
                "requests_done": done,
                "requests_failed": failed,
                "in_flight": in_flight,
                "output_tokens": tokens,
                "elapsed_s": max(0.0, (monotonic_ns() - origin_ns) / 1e9) if origin_ns else 0.0,
                "ttft_p50_s": sum(medians) / len(medians) if medians else None,
                "ttft_p99_s": max(row[5] for row in rows) or None,
            }
        )


def run_fleet(load: Load, show: Show, watcher: Watcher, workers: int, interrupts: Interrupts | None) -> Recording:
    """Run a load over several processes. Raises LaunchError, also when a worker dies."""
    board = _Board(workers)
    children: list[_Child] = []
    for worker in range(workers):
        children.append(_fork(load, board, worker, workers, children))
    try:
        with Reporter(show) as reporter:
            fleet = _Fleet(load, board, children, reporter, interrupts)
            return fleet.run(watcher)
    finally:
        for child in children:
            child.control.close()
            child.result.close()
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child.pid, 0)


class _Fleet:
    """The parent's side: waits for all workers at each stage, and tells them when to begin."""

    def __init__(
        self, load: Load, board: _Board, children: list[_Child], reporter: Reporter, interrupts: Interrupts | None
    ) -> None:
        self._load, self._board, self._children = load, board, children
        self._reporter, self._interrupts = reporter, interrupts
        self._origin_ns = 0
        self._stopping = False

    def run(self, watcher: Watcher) -> Recording:
        """Go through the stages."""
        total = self._load.plan.requests
        self._await(Progress(phase="warming", requests_total=total))
        if self._stopping:
            return Recording(None, 0, True)
        watcher.begin()
        started_unix_s = time.time()
        self._origin_ns = monotonic_ns() + _START_DELAY_NS
        for child in self._children:
            with contextlib.suppress(OSError):
                child.control.sendall(_INSTANT.pack(self._origin_ns))
        measuring = Progress(phase="measuring", requests_total=total)
        self._await(measuring)
        watcher.end()
        self._reporter.put(self._board.total(measuring.model_copy(update={"phase": "finishing"}), self._origin_ns))
        for child in self._children:
            with contextlib.suppress(OSError):  # one that is gone is told with its result
                child.control.sendall(b".")
        parts = [self._result(child) for child in self._children]
        log = assemble(parts, self._load.setting(self._origin_ns, started_unix_s), watcher)
        return Recording(log, self._origin_ns, self._stopping)

    def _await(self, template: Progress) -> None:
        """Wait until every worker says that it has come so far."""
        waiting = {child.control.fileno(): child for child in self._children}
        poll = select.poll()
        for fd in waiting:
            poll.register(fd, select.POLLIN)
        if self._interrupts is not None:
            poll.register(self._interrupts.fd, select.POLLIN)
        while waiting:
            for fd, _ in poll.poll(_POLL_S * 1e3):
                if fd in waiting:
                    poll.unregister(fd)
                    child = waiting.pop(fd)
                    if not child.control.recv(1):
                        raise self._death(child)
                elif self._interrupts is not None:
                    self._interrupts.clear()
            if self._interrupts is not None and self._interrupts.asked and not self._stopping:
                self._stop()
            self._reporter.put(self._board.total(template, self._origin_ns))

    def _stop(self) -> None:
        self._stopping = True
        for child in self._children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGTERM)

    def _result(self, child: _Child) -> Part:
        if child.control.recv(1):
            child.result.seek(0)
            return _read(child.result)
        raise self._death(child)

    def _death(self, child: _Child) -> PronyError:
        """Say why a worker ended: by its own account, else by its exit status."""
        _, status = os.waitpid(child.pid, 0)
        child.result.seek(0)
        try:
            _read(child.result)
        except PronyError as error:
            return error
        except (EOFError, pickle.UnpicklingError):
            pass
        code = os.waitstatus_to_exitcode(status)
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        return LaunchError(
            f"a worker process of the load client {how}",
            fix="look for the out-of-memory killer in the kernel log (dmesg), then run again",
        )


def _read(file: IO[bytes]) -> Part:
    """Read a worker's part; raise the error that it left instead. The file has no name, only the worker wrote it."""
    found = pickle.load(file)
    if isinstance(found, PronyError):
        raise found
    assert isinstance(found, Part)
    return found


def _fork(load: Load, board: _Board, worker: int, workers: int, before: list[_Child]) -> _Child:
    ours, theirs = socket.socketpair()
    result = tempfile.TemporaryFile()  # noqa: SIM115 - both processes keep it open; it has no name
    pid = os.fork()
    if pid:
        theirs.close()
        return _Child(pid, ours, result)
    code = 3
    try:
        ours.close()
        for child in before:
            child.control.close()
            child.result.close()
        with Interrupts() as interrupts:
            code = _work(load, board, worker, workers, theirs, result, interrupts)
    finally:
        os._exit(code)


def _work(
    load: Load, board: _Board, worker: int, workers: int, control: socket.socket, result: IO[bytes], own: Interrupts
) -> int:
    """Be a worker: say when it is warm, wait for the instant, measure, leave the part. Returns the exit code."""

    def post(progress: Progress) -> None:
        board.post(worker, progress)

    try:
        shard = Shard(load.target, load.plan, load.address, load.workload, post, worker, workers, own)
        _follow_parent(shard, control)
        shard.open()
        shard.warm()
        control.sendall(b"w")
        said = control.recv(_INSTANT.size)
        if len(said) < _INSTANT.size:
            return 1
        post(Progress(phase="measuring"))
        shard.measure(_INSTANT.unpack(said)[0])
        post(shard.ticker.progress())
        control.sendall(b"m")
        control.recv(1)
        pickle.dump(shard.part(), result, protocol=pickle.HIGHEST_PROTOCOL)
        result.flush()
        control.sendall(b"r")
        return 0
    except PronyError as error:
        pickle.dump(error, result)
        result.flush()
        return 3


def _follow_parent(shard: Shard, control: socket.socket) -> None:
    """Stop when the parent has gone: its end of the pair closes with it."""

    def read() -> None:
        if not control.recv(1, socket.MSG_PEEK):
            os._exit(1)

    shard.wire.reactor.watch(control.fileno(), read)
