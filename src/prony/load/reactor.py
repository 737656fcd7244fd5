"""The client's event loop: epoll, timers of microseconds, nothing else.

asyncio serves many kinds of work; here there is one kind, and each of its wake-ups is part of what the measurement
costs.
"""

import contextlib
import heapq
import select
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from time import monotonic_ns

_COARSE_NS = 2_000_000
"""epoll waits in whole milliseconds: the last of them are waited with select, which has microseconds."""
_SELECT_MOST_FD = 1023
_LONGEST_WAIT_NS = 100_000_000
_WORK_NS = 500_000
"""Work waits for sockets to be read, not the other way round: so long at a time, then the sockets are looked at."""

Callback = Callable[[], None]


class Timer:
    """A call at an instant; cancel() drops it."""

    __slots__ = ("_call",)

    def __init__(self, call: Callback) -> None:
        self._call: Callback | None = call

    def cancel(self) -> None:
        """Do not call."""
        self._call = None

    def fire(self) -> None:
        """Call, unless it was cancelled."""
        call, self._call = self._call, None
        if call is not None:
            call()


class Reactor:
    """Calls a handler per readable (or writable) file descriptor and timers when they are due. One thread.

    sweep_ns: with kernel stamps nothing is lost by looking at all sockets together, so wait this long before each look;
    0 looks as soon as one is readable.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._handlers: dict[int, Callback] = {}
        self._timers: list[tuple[int, int, Timer]] = []
        self._timer_number = 0
        self._urgent: deque[Callback] = deque()
        self._lazy: deque[Callback] = deque()
        self.sweep_ns = 0
        self._looked_ns = 0

    def watch(self, fd: int, handler: Callback, *, write: bool = False) -> None:
        """Call `handler` whenever fd is readable (with `write`: or writable)."""
        mask = select.EPOLLIN | select.EPOLLOUT if write else select.EPOLLIN
        if fd in self._handlers:
            self._epoll.modify(fd, mask)
        else:
            self._epoll.register(fd, mask)
        self._handlers[fd] = handler

    def forget(self, fd: int) -> None:
        """Watch fd no longer. Before it is closed."""
        if self._handlers.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def call_at(self, due_ns: int, call: Callback) -> Timer:
        """Call once at a CLOCK_MONOTONIC instant, or as soon as possible after it."""
        timer = Timer(call)
        self._timer_number += 1
        heapq.heappush(self._timers, (due_ns, self._timer_number, timer))
        return timer

    def soon(self, call: Callback) -> None:
        """Call once, after the sockets that are readable now were read."""
        self._urgent.append(call)

    def later(self, call: Callback) -> None:
        """Call once, when nothing is to be called soon."""
        self._lazy.append(call)

    def run(self, going: Callable[[], bool]) -> None:
        """Serve until going() is False."""
        poll, handlers = self._epoll.poll, self._handlers
        while going():
            for fd, _ in poll(self._wait()):
                handler = handlers.get(fd)
                if handler is not None:
                    handler()
            self._fire_due()
            if self._urgent or self._lazy:
                self._work()

    def close(self) -> None:
        """Release the epoll descriptor."""
        self._epoll.close()

    def _fire_due(self) -> None:
        timers = self._timers
        while timers and timers[0][0] <= monotonic_ns():
            heapq.heappop(timers)[2].fire()

    def _sleep(self, left_ns: int) -> None:
        """Sleep until it is time to look at all sockets again, or until a timer is due."""
        now = monotonic_ns()
        rest_ns = min(self._looked_ns + self.sweep_ns, now + left_ns) - now
        if rest_ns > 0 and not self._urgent:
            time.sleep(rest_ns / 1e9)
        self._looked_ns = monotonic_ns()

    def _work(self) -> None:
        urgent, lazy = self._urgent, self._lazy
        until = monotonic_ns() + _WORK_NS
        while urgent or lazy:
            (urgent or lazy).popleft()()
            if monotonic_ns() > until:
                return

    def _wait(self) -> float:
        """Wait until shortly before something may be due; return for how many seconds epoll may still wait."""
        left_ns = self._timers[0][0] - monotonic_ns() if self._timers else _LONGEST_WAIT_NS
        if self.sweep_ns:
            self._sleep(left_ns)
            return 0.0
        if left_ns <= 0 or self._urgent or self._lazy:
            return 0.0
        if left_ns > _COARSE_NS or self._epoll.fileno() > _SELECT_MOST_FD:
            return max(0.001, (min(left_ns, _LONGEST_WAIT_NS) - _COARSE_NS // 2) / 1e9)
        select.select((self._epoll,), (), (), left_ns / 1e9)
        return 0.0


def sharpen_timers() -> None:
    """Let this thread's waits end within a microsecond of their time instead of 50. Where that is not possible they
    stay as they are, and the lag of sends tells."""
    with contextlib.suppress(OSError):
        Path("/proc/self/timerslack_ns").write_text("1000")
