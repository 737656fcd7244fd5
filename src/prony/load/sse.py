"""Server-sent events: from body pieces as they come to (stamp, payload), whatever way TCP has cut them."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
_LINE_END = re.compile(rb"\r\n|\n|\r")
_FIELDS = frozenset((b"data", b"event", b"id", b"retry"))
_LONGEST_END = 4


class SseError(Exception):
    """A line that no event stream contains."""


class SseEvent(NamedTuple):
    """The data of one event, the stamp (ns) of the piece that held its final byte, and whether it was terminated."""

    at: int
    data: bytes
    terminated: bool = True


class Splitter:
    """Takes the pieces of one body in order and gives the events that are complete."""

    __slots__ = ("_carry", "_size", "_stamp")

    def __init__(self) -> None:
        self._carry: list[bytes] = []
        self._size = 0
        self._stamp = -1

    @property
    def empty(self) -> bool:
        """No event has begun."""
        return not self._size

    def feed(self, stamp: int, piece: bytes) -> Iterator[SseEvent]:
        """Yield the events that a piece completes. Raises SseError."""
        before, earlier = self._size, self._stamp
        self._carry.append(piece)
        self._size += len(piece)
        self._stamp = stamp
        if b"\n" not in piece and b"\r" not in piece and not (before and self._carry[-2].endswith(b"\r")):
            return
        buffer = b"".join(self._carry)
        start = 0
        found: list[SseEvent] = []
        for match in _EVENT_END.finditer(buffer, max(0, before - _LONGEST_END)):
            end = match.end()
            if end == len(buffer) and buffer.endswith(b"\r"):
                break  # the line end may go on with a \n in the next piece
            data = event_data(buffer[start : match.start()])
            start = end
            if data is not None:
                found.append(SseEvent(earlier if end <= before else stamp, data))
        rest = buffer[start:]
        self._carry, self._size = ([rest], len(rest)) if rest else ([], 0)
        yield from found

    def finish(self, *, cut: bool) -> Iterator[SseEvent]:
        """Yield what is left at the end of the body, perhaps unterminated. Raises SseError.

        cut: the connection ended before the body did, so the last line may be a piece of one.
        """
        rest = b"".join(self._carry)
        self._carry, self._size = [], 0
        match = _EVENT_END.search(rest)
        if match is not None and match.end() == len(rest):
            data = event_data(rest[: match.start()])
            if data is not None:
                yield SseEvent(self._stamp, data)
            return
        data = event_data(_without_cut_name(rest) if cut else rest)
        if data is not None:
            yield SseEvent(self._stamp, data, False)


def _without_cut_name(block: bytes) -> bytes:
    """Drop a last line that is the beginning of a field name."""
    last = re.split(rb"[\r\n]", block)[-1]
    return block[: -len(last)] if last and any(name.startswith(last) for name in _FIELDS) else block


def event_data(block: bytes) -> bytes | None:
    """Return the joined data lines of an event block; None when it has none, as comments. Raises SseError."""
    if block.startswith(b"data: ") and b"\n" not in block and b"\r" not in block:
        return block[6:]
    lines: list[bytes] = []
    for line in _LINE_END.split(block):
        name, _, value = line.partition(b":")
        if name not in _FIELDS and name:
            raise SseError(f"not a line of an event stream: {line[:60]!r}")
        if name == b"data":
            lines.append(value[1:] if value.startswith(b" ") else value)
    return b"\n".join(lines) if lines else None
