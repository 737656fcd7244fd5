"""Calls at absolute moments to the microsecond, where an event loop's own timers round to the millisecond."""

import asyncio
import contextlib
import ctypes
import heapq
import itertools
import os
import time
from collections.abc import Callable

_CLOCK_MONOTONIC = 1
_ABSOLUTE = 1
_libc = ctypes.CDLL(None, use_errno=True)


class _TimerSpec(ctypes.Structure):
    """struct itimerspec: interval, then value, each in seconds and nanoseconds."""

    _fields_ = [(name, ctypes.c_long) for name in ("interval_s", "interval_ns", "value_s", "value_ns")]


class Pacer:
    """A heap of deadlines (CLOCK_MONOTONIC seconds) behind one timerfd of Linux."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._fd = _libc.timerfd_create(_CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._loop = loop
        loop.add_reader(self._fd, self._run_due)

    def at(self, when_s: float, call: Callable[[], None]) -> None:
        """Call at a moment, or as soon as possible after it."""
        heapq.heappush(self._heap, (when_s, next(self._order), call))
        if self._heap[0][0] == when_s:
            self._arm()

    def close(self) -> None:
        """Drop all deadlines."""
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def _arm(self) -> None:
        nanoseconds = max(1, round(self._heap[0][0] * 1e9))
        spec = _TimerSpec(0, 0, nanoseconds // 10**9, nanoseconds % 10**9)
        _libc.timerfd_settime(self._fd, _ABSOLUTE, ctypes.byref(spec), None)

    def _run_due(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._fd, 8)
        while self._heap and self._heap[0][0] <= time.monotonic():
            heapq.heappop(self._heap)[2]()
        if self._heap:
            self._arm()
