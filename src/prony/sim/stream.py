"""One completion on its way: its events at their moments, its faults, its place in the queue."""

import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from prony.sim import completion as shapes
from prony.sim.completion import Completion
from prony.sim.faults import Fault, FaultName
from prony.sim.http import Connection
from prony.sim.pacer import Pacer
from prony.sim.timing import TokenEvent
from prony.sim.tokens import decode

_STOPPING_FAULTS: tuple[FaultName, ...] = ("die-after", "close-early", "hang-stream")


@dataclass
class Load:
    """Requests at this moment and tokens so far, and the queue before the slots."""

    slots: int
    running: int = 0
    waiting: deque[Callable[[float], None]] = field(default_factory=deque)
    prompt_tokens: int = 0
    generation_tokens: int = 0

    def enter(self, now_s: float, start: Callable[[float], None]) -> None:
        """Call start with the moment of admission: now where a slot is free, else when those before have left."""
        if self.slots and self.running >= self.slots:
            self.waiting.append(start)
        else:
            self.running += 1
            start(now_s)

    def leave(self, now_s: float) -> None:
        """Hand a slot to the next in line."""
        self.running -= 1
        if self.waiting:
            self.running += 1
            self.waiting.popleft()(now_s)


class Stream:
    """Sends a completion's events at absolute moments after its admission, streamed or whole at the end."""

    def __init__(
        self,
        completion: Completion,
        events: tuple[TokenEvent, ...],
        tokens: list[int],
        faults: Mapping[FaultName, Fault],
        connection: Connection,
        pacer: Pacer,
        load: Load,
    ) -> None:
        self.completion = completion
        self.events = events
        self.tokens = tokens
        self.faults = faults
        self.connection = connection
        self.pacer = pacer
        self.load = load
        self.next_event = 0
        self.sent_tokens = 0
        self.started_s = 0.0
        self.state: Literal["waiting", "running", "done", "gone"] = "waiting"

    def arrive(self, now_s: float, role_chunk_s: float) -> None:
        """Get in line; the head of the reply, and a chat's empty first event, wait for nobody."""
        self.connection.on_lost = self.abandon
        if self.completion.stream:
            self.connection.start_stream()
            if self.completion.chat:
                event = shapes.role_event(self.completion)
                self.pacer.at(now_s + role_chunk_s, lambda: self._send(event))
        self.load.enter(now_s, self._admit)

    def _admit(self, now_s: float) -> None:
        if self.state == "gone":
            self.load.leave(now_s)
            return
        self.state = "running"
        self.load.prompt_tokens += self.completion.prompt_tokens
        slow = self.faults.get("slow-first-token")
        self.started_s = now_s + (slow.seconds if slow else 0.0)
        self._schedule()

    def _schedule(self) -> None:
        self.pacer.at(self.started_s + self.events[self.next_event].at_s, self._emit)

    def _emit(self) -> None:
        if self.state != "running" or self._struck():
            return
        event = self.events[self.next_event]
        text = decode(self.tokens[self.sent_tokens : self.sent_tokens + event.tokens])
        self.sent_tokens += event.tokens
        self.load.generation_tokens += event.tokens
        self.next_event += 1
        last = self.next_event == len(self.events)
        if self.completion.stream:
            self._send(shapes.text_event(self.completion, text, self.sent_tokens, last))
        if last:
            self._finish()
        else:
            self._schedule()

    def _struck(self) -> bool:
        """Show a fault in the middle of the output; say whether it stops there."""
        if self.next_event != min(len(self.events) - 1, max(1, len(self.events) // 2)):
            return False
        if "garbage-sse" in self.faults and self.completion.stream:
            self._send(b'data: {"id": "cmpl-\xff\xfe, "choices": [{"te\n\n')
        stop = next((name for name in _STOPPING_FAULTS if name in self.faults), None)
        if stop == "die-after":
            os._exit(1)
        if stop == "close-early":
            self.connection.close()
        return stop is not None

    def _finish(self) -> None:
        self.state = "done"
        if self.completion.stream:
            self._send(shapes.closing_events(self.completion))
            self.connection.end_stream()
        else:
            whole = "{" if "garbage-sse" in self.faults else shapes.whole_body(self.completion, decode(self.tokens))
            self.connection.reply(200, whole)
        self.load.leave(self.started_s + self.events[-1].at_s)

    def _send(self, event: bytes) -> None:
        self.connection.send_chunk(event)

    def abandon(self) -> None:
        """The client has gone: free the slot."""
        was_running = self.state == "running"
        self.state = "gone"
        if was_running:
            self.load.leave(time.monotonic())
