"""Server-sent events: from recorded body pieces to (stamp, read, payload), whatever way TCP has cut them."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

_EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
_LINE_END = re.compile(rb"\r\n|\n|\r")
_FIELDS = frozenset((b"data", b"event", b"id", b"retry"))


class SseError(Exception):
    """A line that no event stream contains."""


class SseEvent(NamedTuple):
    """The data of one event, the stamp (ns) of the piece that held its final byte, and whether it was terminated."""

    at: int
    data: bytes
    terminated: bool


def split_events(stamps: Sequence[int], parts: Sequence[bytes], cut: bool = False) -> Iterator[SseEvent]:
    """Yield the events of a body in order; the last may be unterminated. Raises SseError.

    cut: the connection ended before the body did, so the last line may be a piece of one.
    """
    body = b"".join(parts)
    ends = list(accumulate(map(len, parts)))
    piece, start = 0, 0
    for match in _EVENT_END.finditer(body):
        end = match.end()
        while ends[piece] < end:
            piece += 1
        data = _data(body[start : match.start()])
        start = end
        if data is not None:
            yield SseEvent(stamps[piece], data, True)
    rest = _data(_without_cut_name(body[start:]) if cut else body[start:])
    if rest is not None:
        yield SseEvent(stamps[-1], rest, False)


def _without_cut_name(block: bytes) -> bytes:
    """Drop a last line that is the beginning of a field name."""
    last = re.split(rb"[\r\n]", block)[-1]
    return block[: -len(last)] if last and any(name.startswith(last) for name in _FIELDS) else block


def _data(block: bytes) -> bytes | None:
    """Return the joined data lines of an event block; None when it has none (comments, blank lines)."""
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
