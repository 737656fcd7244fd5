"""Receive stamps: the kernel's own, mapped to the monotonic axis."""

import struct
from collections.abc import Callable
from time import monotonic_ns, time_ns

SO_TIMESTAMPNS = 35  # Linux; the socket module does not name it
ANCILLARY_BYTES = 64
_TIMESPEC = struct.Struct("@ll")
_STEP_NS = 200_000

Ancillary = list[tuple[int, int, bytes]]


class StampClock:
    """Maps CLOCK_REALTIME stamps of received segments to CLOCK_MONOTONIC nanoseconds.

    Both clocks are slewed alike, so the offset only moves when somebody sets the wall clock; it is sampled again
    while measuring, and a step is counted. `before_step` is called while the old offset still holds, for what was
    stamped under it.
    """

    __slots__ = ("_sample", "before_step", "kernel_reads", "offset_ns", "steps", "user_reads")

    def __init__(self, sample: Callable[[], int] | None = None) -> None:
        self._sample = sample or _sample_offset
        self.offset_ns = self._sample()
        self.before_step: Callable[[], None] = _nothing
        self.kernel_reads = 0
        self.user_reads = 0
        self.steps = 0

    def resample(self) -> None:
        """Follow the wall clock."""
        offset = self._sample()
        if abs(offset - self.offset_ns) > _STEP_NS:
            self.before_step()
            self.steps += 1
        self.offset_ns = offset

    def reset(self) -> None:
        """Forget what was counted."""
        self.kernel_reads = self.user_reads = self.steps = 0

    def stamp(self, ancillary: Ancillary) -> int:
        """Return when a read's last segment arrived, by the kernel's stamp; without one, now."""
        if ancillary and len(ancillary[0][2]) == _TIMESPEC.size:
            seconds, nanos = _TIMESPEC.unpack(ancillary[0][2])
            self.kernel_reads += 1
            stamp: int = seconds * 1_000_000_000 + nanos - self.offset_ns
            return stamp
        self.user_reads += 1
        return monotonic_ns()


def _nothing() -> None:
    pass


def _sample_offset() -> int:
    """Return CLOCK_REALTIME - CLOCK_MONOTONIC in ns from the tightest of five brackets."""
    best_width, best = 1 << 62, 0
    for _ in range(5):
        before = monotonic_ns()
        wall = time_ns()
        after = monotonic_ns()
        if after - before < best_width:
            best_width, best = after - before, wall - (before + after) // 2
    return best
