"""The wire client: requests of a source over connections that were opened before the clock started."""

import gc
import time
from collections import deque
from time import monotonic_ns

from prony.base.errors import LaunchError
from prony.load.address import connect_text
from prony.load.exchange import Exchange
from prony.load.lane import Lane
from prony.load.settle import settle
from prony.load.source import Source
from prony.load.tally import Tally
from prony.load.wire import Wire
from prony.measure.eventlog import NEVER, Fault

_CONNECTS_AT_ONCE = 64
_GIVE_UP_FAILURES_PER_LANE = 3
_LONGEST_HOLD_S = 10.0
"""A server that asks to be left alone (Retry-After) is obeyed for so long and no longer."""
FIRST_WAVE_GAP_NS = 50_000
"""Slots of a closed loop begin one after the other: a burst would wait in the server's sockets, booked as its TTFT."""
_SWEEP_NS = 1_000_000
_SWEEP_FROM_LANES = 32
_SWEEP_MOST_READS_S = 150
"""Streams that are read more often than this each are looked at at once, lest two events of one share a stamp."""


class Client:
    """Concurrent lanes to one server. Open it, run any number of phases, close it. Not thread-safe.

    start_gap_ns: between the first sends of the lanes. prefill_limit: at most so many requests wait for their first
    token.
    """

    def __init__(
        self, wire: Wire, concurrency: int, *, start_gap_ns: int = FIRST_WAVE_GAP_NS, prefill_limit: int | None = None
    ) -> None:
        self.wire = wire
        self.stopped = False
        self.tally = Tally()
        self.cpu_s = self.wall_s = 0.0
        self.origin_ns = 0
        self._start_gap_ns = start_gap_ns
        self._prefill_limit = prefill_limit
        self._prefilling = 0
        first = self._first if prefill_limit is not None else None
        self.lanes = [Lane(wire, self._ended, first) for _ in range(concurrency)]
        self._idle: deque[Lane] = deque()
        self._source: Source | None = None
        self._left = 0
        self._unanswered = 0
        self._pumping = False
        self._wake_ns = NEVER
        self._held = self._phase = 0
        wire.clock.before_step = self._flush

    def open(self) -> None:
        """Connect every lane, some at a time. Raises LaunchError when one cannot."""
        waiting, opening = deque(self.lanes), 0
        faults: list[OSError] = []

        def opened(error: OSError | None) -> None:
            nonlocal opening
            opening -= 1
            if error is not None:
                faults.append(error)
            begin()

        def begin() -> None:
            nonlocal opening
            while waiting and opening < _CONNECTS_AT_ONCE and not faults:
                opening += 1
                waiting.popleft().open(opened)

        begin()
        self.wire.reactor.run(lambda: bool(opening) and not faults and not self.stopped)
        if faults:
            self.close()
            raise LaunchError(
                connect_text(self.wire.address, faults[0]),
                fix="check that the server is up, listens at this address and accepts that many connections",
            )

    def run(self, source: Source, total: int, origin_ns: int | None = None) -> None:
        """Send all `total` requests of a source; return when all have ended. origin_ns: when to begin, else now."""
        if not total or self.stopped:
            return
        self._source, self._left = source, total
        self._unanswered = self._prefilling = self._held = 0
        self.tally = Tally()
        self.wire.clock.reset()
        gc.collect()
        gc.freeze()
        gc.disable()
        try:
            self.origin_ns = origin_ns or monotonic_ns()
            cpu, began = time.process_time(), monotonic_ns()
            self._begin(source)
            self.wire.reactor.run(lambda: self._left > 0)
            self.cpu_s, self.wall_s = time.process_time() - cpu, (monotonic_ns() - began) / 1e9
        finally:
            gc.enable()
            gc.unfreeze()
            self._source = None

    def stop(self, reason: str = "interrupted") -> None:
        """End the running phase: requests in flight and waiting are recorded as cancelled."""
        self.stopped = True
        self._abandon(reason)
        for lane in self.lanes:
            lane.cancel(reason)

    def close(self) -> None:
        """Close all connections."""
        for lane in self.lanes:
            lane.close()

    @property
    def in_flight(self) -> int:
        """Requests sent and not ended."""
        return len(self.lanes) - len(self._idle) - self._held if self._source else 0

    def decode_soon(self) -> None:
        """Decode what lanes have read, so that garbage is found out although its end never comes."""
        for lane in self.lanes:
            if lane.exchange is not None and lane.exchange.answer.raw:
                self.wire.reactor.later(lane.flush)

    def adapt(self, reads: int, seconds: float) -> None:
        """Choose how often to look at the sockets, from the reads of the last seconds."""
        busy = self.in_flight
        stamped = self.wire.clock.kernel_reads > self.wire.clock.user_reads
        calm = 0 < reads <= _SWEEP_MOST_READS_S * seconds * busy
        self.wire.reactor.sweep_ns = _SWEEP_NS if stamped and calm and busy >= _SWEEP_FROM_LANES else 0

    def _begin(self, source: Source) -> None:
        source.begin(self.origin_ns)
        for number, lane in enumerate(self.lanes):
            lane.free_at = self.origin_ns + number * self._start_gap_ns
        self._idle = deque(self.lanes)
        self._wake_ns = NEVER
        self._held, self._phase = 0, self._phase + 1
        self._pump()

    def _pump(self) -> None:
        """Start what is due on idle lanes; where something is due later, come back then."""
        if self._pumping or self._source is None:
            return
        self._pumping = True
        try:
            while self._idle and not self._saturated():
                due = self._source.due()
                if due is None:
                    return
                lane = self._idle[0]
                at = max(due, lane.free_at)
                if at > monotonic_ns():
                    self._wake_at(at)
                    return
                self._idle.popleft()
                self._prefilling += 1
                lane.start(self._source.take())
        finally:
            self._pumping = False

    def _saturated(self) -> bool:
        return self._prefill_limit is not None and self._prefilling >= self._prefill_limit

    def _wake_at(self, at: int) -> None:
        if self._wake_ns <= monotonic_ns() or at < self._wake_ns:
            self._wake_ns = at
            self.wire.reactor.call_at(at, self._pump)

    def _first(self) -> None:
        self._prefilling -= 1
        self._pump()

    def _ended(self, lane: Lane, exchange: Exchange) -> None:
        settle(exchange)
        if self._prefill_limit is None:
            self._prefilling -= 1
        self._count(exchange)
        if self._source is not None:
            self._source.ended(exchange)
            for never_sent in self._source.dropped():
                self._count(never_sent)
        if self._unanswered >= _GIVE_UP_FAILURES_PER_LANE * len(self.lanes):
            self._abandon(f"not sent: the server no longer answers ({exchange.message})")
        hold_s = exchange.answer.response.retry_after_s if exchange.fault is Fault.HTTP_STATUS else None
        if hold_s:
            self._hold(lane, min(hold_s, _LONGEST_HOLD_S))
        else:
            self._idle.append(lane)
        self._pump()

    def _hold(self, lane: Lane, seconds: float) -> None:
        """Leave the server alone for as long as it asked."""
        lane.free_at += int(seconds * 1e9)
        self._held += 1
        phase = self._phase

        def release() -> None:
            if phase != self._phase:
                return  # held since the warm-up: the lane is in use again
            self._held -= 1
            self._idle.append(lane)
            self._pump()

        self.wire.reactor.call_at(lane.free_at, release)

    def _count(self, exchange: Exchange) -> None:
        self._left -= 1
        self.tally.add(exchange)
        unreachable = exchange.fault in (Fault.CONNECT, Fault.TIMEOUT)
        self._unanswered = self._unanswered + 1 if unreachable else 0

    def _abandon(self, reason: str) -> None:
        if self._source is None:
            return
        for exchange in self._source.abandon():
            exchange.fault, exchange.message = Fault.CANCELLED, reason
            self._count(exchange)

    def _flush(self) -> None:
        for lane in self.lanes:
            lane.flush()
