"""The seam between workload and wire: a source yields requests and learns of their ends."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Protocol

from prony.load.exchange import Exchange

AT_ONCE = 0


class Source(Protocol):
    """Requests in the order in which they become due. All instants are CLOCK_MONOTONIC ns.

    The client begins it, takes what is due while it has a free slot, and tells every end, also of failures.
    """

    def begin(self, origin_ns: int) -> None:
        """Start the source's clock: offsets of its schedule count from origin_ns."""

    def due(self) -> int | None:
        """Return when the next request may be sent (AT_ONCE: as soon as a slot is free), None: not before another has
        ended, or never."""

    def take(self) -> Exchange:
        """Return the next request; `scheduled` is set when it was due at a time of its own. Only when due() is not
        None."""

    def ended(self, exchange: Exchange) -> None:
        """Learn that a request has ended; its answer can be read."""

    def dropped(self) -> Iterable[Exchange]:
        """Return requests that will never be sent, each once, with their fault; to be counted after an end."""

    def abandon(self) -> Iterable[Exchange]:
        """Give up all requests that were not taken, and return those."""


class Queue:
    """Independent requests: each as soon as a slot is free, or at its offset (ns, ascending) from the beginning."""

    def __init__(self, exchanges: Sequence[Exchange], offsets_ns: Sequence[int] | None = None) -> None:
        self._waiting = deque(exchanges)
        self._offsets_ns = None if offsets_ns is None else deque(offsets_ns)
        self._origin_ns = 0

    def begin(self, origin_ns: int) -> None:
        """See Source."""
        self._origin_ns = origin_ns

    def due(self) -> int | None:
        """See Source."""
        if not self._waiting:
            return None
        return AT_ONCE if self._offsets_ns is None else self._origin_ns + self._offsets_ns[0]

    def take(self) -> Exchange:
        """See Source."""
        exchange = self._waiting.popleft()
        if self._offsets_ns is not None:
            exchange.scheduled = self._origin_ns + self._offsets_ns.popleft()
        return exchange

    def ended(self, exchange: Exchange) -> None:
        """See Source."""

    def dropped(self) -> Iterable[Exchange]:
        """See Source."""
        return ()

    def abandon(self) -> Iterable[Exchange]:
        """See Source."""
        left, self._waiting = self._waiting, deque()
        return left
