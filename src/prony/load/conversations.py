"""Conversations: each turn carries all that was said before, so it is rendered when the one before it has ended."""

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from prony.load.exchange import Exchange
from prony.load.render import Message, Renderer
from prony.load.source import AT_ONCE
from prony.measure.eventlog import Fault

_NEVER_SENT = "not sent: an earlier turn of its conversation failed"


@dataclass
class Conversation:
    """Turns to come, what each says, how long to think before it (ns), and what was said so far."""

    turns: deque[Exchange]
    says: deque[str]
    thinks_ns: deque[int]
    said: list[Message] = field(default_factory=list)


class Conversations:
    """A source of conversations, at most `slots` of which are under way (in an open loop: whenever they are due).

    offsets_ns: when each begins, None: as soon as a slot is free.
    """

    def __init__(
        self,
        renderer: Renderer,
        conversations: Sequence[Conversation],
        slots: int,
        offsets_ns: Sequence[int] | None = None,
    ) -> None:
        self._renderer = renderer
        self._fresh = deque(conversations)
        self._offsets_ns = None if offsets_ns is None else deque(offsets_ns)
        self._slots = slots
        self._under_way: dict[int, Conversation] = {}
        self._ready: list[tuple[int, int, Conversation]] = []
        self._dropped: list[Exchange] = []
        self._freed: deque[int] = deque()  # when slots were given up: a lane may have been idle for longer
        self._origin_ns = 0

    def begin(self, origin_ns: int) -> None:
        """See Source."""
        self._origin_ns = origin_ns

    def due(self) -> int | None:
        """See Source."""
        times = [self._ready[0][0]] if self._ready else []
        if self._fresh and (fresh := self._fresh_due()) is not None:
            times.append(fresh)
        return min(times) if times else None

    def take(self) -> Exchange:
        """See Source."""
        fresh = self._fresh_due() if self._fresh else None
        if self._ready and (fresh is None or self._ready[0][0] <= fresh):
            at, _, conversation = heapq.heappop(self._ready)
            return self._next(conversation, at)
        conversation = self._fresh.popleft()
        if self._offsets_ns is not None:
            at = self._origin_ns + self._offsets_ns.popleft()
        else:
            at = self._freed.popleft() if self._freed else AT_ONCE
        return self._next(conversation, at)

    def ended(self, exchange: Exchange) -> None:
        """See Source."""
        conversation = self._under_way.pop(exchange.index)
        if not conversation.turns or exchange.fault is not Fault.OK:
            self._freed.append(exchange.end)
        if not conversation.turns:
            return
        if exchange.fault is not Fault.OK:
            self._dropped += conversation.turns
            conversation.turns.clear()
            return
        conversation.said.append({"role": "assistant", "content": exchange.answer.text})
        at = exchange.end + conversation.thinks_ns.popleft()
        heapq.heappush(self._ready, (at, exchange.index, conversation))

    def abandon(self) -> Iterable[Exchange]:
        """See Source."""
        waiting = [*self._fresh, *(entry[2] for entry in self._ready), *self._under_way.values()]
        left = [exchange for conversation in waiting for exchange in conversation.turns]
        for conversation in waiting:
            conversation.turns.clear()
        self._fresh.clear()
        self._ready.clear()
        return left

    def dropped(self) -> Iterable[Exchange]:
        """Return turns that will never be sent because an earlier one failed, each once."""
        dropped, self._dropped = self._dropped, []
        for exchange in dropped:
            exchange.fault, exchange.message = Fault.CANCELLED, _NEVER_SENT
        return dropped

    def _fresh_due(self) -> int | None:
        if self._offsets_ns is not None:
            return self._origin_ns + self._offsets_ns[0]
        return AT_ONCE if len(self._under_way) + len(self._ready) < self._slots else None

    def _next(self, conversation: Conversation, at: int) -> Exchange:
        exchange = conversation.turns.popleft()
        conversation.said.append({"role": "user", "content": conversation.says.popleft()})
        exchange.payload = self._renderer.messages(str(exchange.index), conversation.said, exchange.output_planned)
        if at != AT_ONCE:
            exchange.scheduled = at
        self._under_way[exchange.index] = conversation
        return exchange
