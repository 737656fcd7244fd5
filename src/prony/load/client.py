"""The wire client: a closed loop of fixed concurrency over connections that were opened before the clock started."""

import asyncio
import gc
import os
import resource
from collections import deque
from collections.abc import Sequence
from time import monotonic_ns
from typing import Any

from prony.base.errors import LaunchError
from prony.load.address import Address, connect_text
from prony.load.clock import StampClock
from prony.load.exchange import Exchange
from prony.load.lane import Connections, Lane
from prony.measure.eventlog import Fault

_SPARE_FILES = 64
_CONNECTS_AT_ONCE = 64
_GIVE_UP_FAILURES_PER_LANE = 3


class Client:
    """Concurrent lanes to one server. Open it, run any number of phases, close it. Not thread-safe."""

    def __init__(self, address: Address, concurrency: int, timeout_s: float) -> None:
        self.clock = StampClock()
        self.connections = Connections(address, self.clock)
        self.lanes = [Lane(self.connections, timeout_s, self._ended) for _ in range(concurrency)]
        self.stopped = False
        self.done = self.failed = self.output_tokens = 0
        self.cpu_s = 0.0
        self.origin_ns = 0
        self._waiting: deque[Exchange] = deque()
        self._open = 0
        self._unanswered = 0
        self._finished: asyncio.Future[None] | None = None

    async def open(self) -> None:
        """Connect every lane. Raises LaunchError when one cannot."""
        require_files(len(self.lanes) + _SPARE_FILES)
        gate = asyncio.Semaphore(_CONNECTS_AT_ONCE)

        async def connect(lane: Lane) -> None:
            async with gate:
                await lane.open()

        results = await asyncio.gather(*map(connect, self.lanes), return_exceptions=True)
        for result in results:
            if isinstance(result, OSError | TimeoutError):
                self.close()
                raise LaunchError(
                    connect_text(self.connections.address, result),
                    fix="check that the server is up, listens at this address and accepts that many connections",
                )
            if isinstance(result, BaseException):
                raise result

    async def run(self, exchanges: Sequence[Exchange]) -> None:
        """Send all exchanges, each lane its next as soon as its last has ended; return when all have ended."""
        if not exchanges or self.stopped:
            return
        loop = asyncio.get_running_loop()
        self._finished = loop.create_future()
        loop.set_exception_handler(self._crashed)
        self._waiting = deque(exchanges)
        self._open = len(exchanges)
        self._unanswered = self.done = self.failed = self.output_tokens = 0
        self.clock.reset()
        cpu_before = _cpu_s()
        gc.collect()
        gc.freeze()
        gc.disable()
        try:
            self.origin_ns = monotonic_ns()
            self._start_lanes()
            await self._finished
        finally:
            gc.enable()
            gc.unfreeze()
            self.cpu_s = _cpu_s() - cpu_before

    def stop(self) -> None:
        """End the running phase: requests in flight and waiting are recorded as cancelled."""
        self.stopped = True
        self._abandon("interrupted")
        for lane in self.lanes:
            lane.cancel("interrupted")

    def close(self) -> None:
        """Close all connections."""
        for lane in self.lanes:
            lane.close()

    def _start_lanes(self) -> None:
        for lane in self.lanes:
            lane.free_at = self.origin_ns
            if self._waiting:
                lane.start(self._waiting.popleft())

    def _ended(self, lane: Lane, exchange: Exchange) -> None:
        self._count(exchange)
        if self._unanswered >= _GIVE_UP_FAILURES_PER_LANE * len(self.lanes):
            self._abandon(f"not sent: the server no longer answers ({exchange.message})")
        if self._waiting:
            lane.start(self._waiting.popleft())

    def _count(self, exchange: Exchange) -> None:
        self._open -= 1
        self.done += 1
        if exchange.answered:
            self.output_tokens += exchange.output_planned
        else:
            self.failed += 1
        unreachable = exchange.fault in (Fault.CONNECT, Fault.TIMEOUT)
        self._unanswered = self._unanswered + 1 if unreachable else 0
        if not self._open and self._finished is not None and not self._finished.done():
            self._finished.set_result(None)

    def _abandon(self, reason: str) -> None:
        while self._waiting:
            exchange = self._waiting.popleft()
            exchange.fault, exchange.message = Fault.CANCELLED, reason
            self._count(exchange)

    def _crashed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Let a fault of our own in a callback end the run instead of hanging it."""
        error = context.get("exception")
        if isinstance(error, Exception) and self._finished is not None and not self._finished.done():
            self._finished.set_exception(error)
        else:
            loop.default_exception_handler(context)


def require_files(count: int) -> None:
    """Raise the soft limit of open files to hold `count`. Raises LaunchError when the hard limit is lower."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return
    if hard != resource.RLIM_INFINITY and hard < count:
        raise LaunchError(
            f"this load needs {count} open files, the limit is {hard}",
            fix=f"raise it (ulimit -Hn {count}, or LimitNOFILE= of the service) or lower the concurrency",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system
