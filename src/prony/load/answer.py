"""An answer as it comes: recorded read by read in the hot loop, decoded in small bites, kept as stamps and kinds.

A read costs the loop one append. After BITE reads the client decodes what waits when no socket has anything to read, so
that memory does not grow with the bytes of the answers and no decode holds the loop for long.
"""

import re
from array import array
from typing import NamedTuple

import orjson

from prony.load.chunk import UNSTATED, Chunk, ChunkError, Usage, error_text, parse_chunk
from prony.load.clock import Ancillary, StampClock
from prony.load.http import ProtocolError, Response
from prony.load.sse import Splitter, SseError, SseEvent
from prony.measure.eventlog import NEVER, Fault, Kind

BITE = 16
TOKEN_KINDS = frozenset((Kind.CONTENT, Kind.REASONING, Kind.TOOL))
_PLAIN = re.compile(rb"[ !#-\[\]-~]+")
"""A JSON string's inside that stands for itself."""
_NAMES = (b'"text":', b'"content":', b'"reasoning_content":', b'"reasoning":')
_SIZE_DIGITS = 10
_EMPTY_LINE = b"\r\n\r\n"
_JSON, _EVENTS, _REFUSAL = "json", "events", "refusal"
_REFUSAL_BYTES = 800


class _Template(NamedTuple):
    """The bytes around the text of a token's chunk: events of one kind in one answer differ in nothing else."""

    before: bytes
    after: bytes
    kind: Kind


class Answer:
    """One answer. at: ns; kind: Kind; tokens: what each event brings (-1: not told), empty when no event tells.

    raw: reads not yet decoded, each (the kernel's ancillary data or a stamp in ns, bytes). merged: reads with more than
    one token event. last_at: the stamp of the last read. text: of content events, kept where a later request needs it.
    """

    __slots__ = (
        "_kept", "_known", "_mode", "_parts", "_splitter", "_template", "at", "ended", "fault", "kind", "last_at",
        "merged", "message", "raw", "reads", "response", "tokens", "usage",
    )  # fmt: skip

    def __init__(self, *, keep_text: bool = False) -> None:
        self.raw: list[tuple[Ancillary | int, bytes]] = []
        self.reads = 0
        self.response = Response()
        self.at = array("q")
        self.kind = bytearray()
        self.tokens = array("q")
        self._known = False
        self.usage: Usage = UNSTATED
        self.ended = False
        self.merged = 0
        self.last_at = NEVER
        self.fault = Fault.OK
        self.message = ""
        self._mode = ""
        self._parts: list[bytes] = []
        self._splitter = Splitter()
        self._template: _Template | None = None
        self._kept: list[str] | None = [] if keep_text else None

    @property
    def text(self) -> str:
        """The content of the answer, where it is kept."""
        return "".join(self._kept or ())

    @property
    def has_token(self) -> bool:
        """A generated token has been decoded."""
        return any(kind in TOKEN_KINDS for kind in self.kind)

    def advance(self, clock: StampClock) -> bool:
        """Decode the reads that wait; return whether the answer is complete. Raises ProtocolError.

        Faults of the stream itself are kept in `fault` and end the decoding, not the reading.
        """
        raw, self.raw = self.raw, []
        self.reads += len(raw)
        complete, at = False, self.last_at
        resting = self._resting()
        for received, data in raw:
            at = received if isinstance(received, int) else clock.stamp(received)
            position = self._tokens(at, data, 0) if resting else 0
            if position < len(data):
                complete = self._by_the_book(at, data, position, complete)
                resting = self._resting()
        self.last_at = at
        return complete

    def _resting(self) -> bool:
        """The next byte begins the chunk of an event that may be like those before."""
        return self._template is not None and self.response.between_chunks and self._splitter.empty

    def _by_the_book(self, at: int, data: bytes, position: int, complete: bool) -> bool:
        """Take a read from a position on, chunk by chunk; return whether the answer is complete."""
        response = self.response
        while position < len(data):
            if complete:
                response.keep_alive = False  # nobody asked for what follows
                break
            if response.between_chunks:
                position = self._tokens(at, data, position) if self._resting() else position
                end = _chunk_end(data, position)
            else:
                end = len(data) if response.status else _head_end(data, position)
            if position < end:
                complete = response.feed(at, data[position:end])
                position = end
            if response.parts:
                self._take_pieces()
        return complete

    def finish(self, *, cut: bool) -> None:
        """Decode what is left at the end of the body. cut: the connection ended before the body did."""
        if self._mode == _EVENTS and self.fault is Fault.OK:
            try:
                for event in self._splitter.finish(cut=cut):
                    if not (cut and not event.terminated and not _is_chunk(event.data)):
                        self._add_event(event)
            except (SseError, ChunkError) as problem:
                self._fail(Fault.GARBAGE, str(problem))
        elif self._mode == _JSON and not cut:
            self._take_document()

    def refusal(self) -> str:
        """Return the beginning of the body of an answer that is not a 200."""
        return b"".join(self._parts)[:_REFUSAL_BYTES].decode("utf-8", "replace")[:200]

    def _tokens(self, at: int, data: bytes, position: int) -> int:
        """Take the chunks from a position on that are one event each, like those before; return where they end."""
        assert self._template is not None
        before, after, kind = self._template
        head, tail, size_sum = len(before), len(after), 0
        while True:
            line_end = data.find(b"\r\n", position, position + _SIZE_DIGITS)
            begin = line_end + 2
            if line_end < 0 or not data.startswith(before, begin):
                break
            if not data[position:line_end].isalnum():
                break
            try:
                size = int(data[position:line_end], 16)
            except ValueError:
                break
            end = begin + size + 2
            if not (data.startswith(after, end - tail) and _PLAIN.fullmatch(data, begin + head, end - tail)):
                break
            if self.at[-1] == at and self.kind[-1] in TOKEN_KINDS:
                self.merged += 1
            size_sum += size
            self.at.append(at)
            self.kind.append(kind)
            if self._known:
                self.tokens.append(NEVER)
            if self._kept is not None and kind is Kind.CONTENT:
                self._kept.append(data[begin + head : end - tail].decode())
            position = end
        self.response.recognised(size_sum)
        return position

    def _take_pieces(self) -> None:
        stamps, parts = self.response.drain()
        if not self._mode:
            refused = self.response.status != 200
            self._mode = _REFUSAL if refused else _JSON if parts[0].lstrip()[:1] == b"{" else _EVENTS
        if self._mode == _REFUSAL:
            if sum(map(len, self._parts)) < _REFUSAL_BYTES:
                self._parts += parts
            return
        if self._mode == _JSON:
            self._parts += parts
            self.at[:] = array("q", stamps[-1:])  # a whole answer arrives with its last byte
            return
        if self.fault is not Fault.OK:
            return
        try:
            for at, piece in zip(stamps, parts, strict=True):
                for event in self._splitter.feed(at, piece):
                    self._add_event(event)
        except (SseError, ChunkError) as problem:
            self._fail(Fault.GARBAGE, str(problem))

    def _take_document(self) -> None:
        """Read an answer that is one JSON document: a whole answer, or an error."""
        body, stamps = b"".join(self._parts), self.at
        self.at = array("q")
        try:
            chunk = parse_chunk(body)
        except ChunkError as problem:
            told = error_text(body)
            self._fail(*((Fault.STREAM_ERROR, told) if told is not None else (Fault.GARBAGE, str(problem))))
            return
        if chunk.kind is Kind.ERROR:
            self._fail(Fault.STREAM_ERROR, chunk.error)
        else:
            self._add(stamps[-1], chunk)

    def _add_event(self, event: SseEvent) -> None:
        chunk = parse_chunk(event.data)
        self._add(event.at, chunk)
        if chunk.text and chunk.usage is None and not chunk.finished:
            self._template = _template(event.data, chunk) or self._template

    def _add(self, at: int, chunk: Chunk) -> None:
        """Append one event, with its token count when the server states usage as it goes."""
        kind, tokens = chunk.kind, NEVER
        if chunk.usage is not None:
            running = self.usage.completion >= 0 or (chunk.has_choice and not chunk.finished)
            gained = chunk.usage.completion - max(self.usage.completion, 0)
            if running and chunk.has_choice and gained > 0:
                tokens = gained  # also of a token that has no text yet: half of a UTF-8 character
                kind = kind if kind in TOKEN_KINDS else Kind.CONTENT
            self.usage = chunk.usage
        if kind in TOKEN_KINDS and self.at and self.at[-1] == at and self.kind[-1] in TOKEN_KINDS:
            self.merged += 1
        self.at.append(at)
        self.kind.append(kind)
        if tokens != NEVER and not self._known:
            self._known = True
            self.tokens.extend([NEVER] * (len(self.at) - 1))
        if self._known:
            self.tokens.append(tokens)
        if self._kept is not None and chunk.kind is Kind.CONTENT:
            self._kept.append(chunk.text)
        if kind is Kind.ERROR:
            self._fail(Fault.STREAM_ERROR, chunk.error)
        self.ended = self.ended or chunk.finished or kind is Kind.DONE

    def _fail(self, fault: Fault, message: str) -> None:
        """Keep the first fault of the stream."""
        if self.fault is Fault.OK:
            self.fault, self.message = fault, message


def _template(data: bytes, chunk: Chunk) -> _Template | None:
    """Return what surrounds the text in a chunk, when the text stands there once, as the value of its own field."""
    text = orjson.dumps(chunk.text)
    place = data.find(text)
    if place < 0 or data.count(text) != 1 or not data[:place].rstrip().endswith(_NAMES):
        return None
    return _Template(b"data: " + data[: place + 1], data[place + len(text) - 1 :] + b"\n\n\r\n", chunk.kind)


def _head_end(data: bytes, position: int) -> int:
    """Return where the head that begins at a position ends in a read, or the end of the read."""
    end = data.find(_EMPTY_LINE, position)
    return len(data) if end < 0 else end + len(_EMPTY_LINE)


def _chunk_end(data: bytes, position: int) -> int:
    """Return where the chunk that begins at a position ends, or the end of the read."""
    line_end = data.find(b"\r\n", position, position + _SIZE_DIGITS)
    word = data[position:line_end] if line_end > position else b""
    if not word.isalnum() or word == b"0":  # a sign is no size
        return len(data)
    try:
        return min(line_end + 4 + int(word, 16), len(data))
    except ValueError:
        return len(data)


def _is_chunk(data: bytes) -> bool:
    try:
        parse_chunk(data)
    except ChunkError:
        return False
    return True


__all__ = ["BITE", "TOKEN_KINDS", "Answer", "ProtocolError"]
