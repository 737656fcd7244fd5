"""One HTTP/1.1 response as it arrives: exact framing, body pieces with the stamp of their read."""

import re

HEAD_LIMIT_BYTES = 64 * 1024
BODY_LIMIT_BYTES = 64 * 1024 * 1024
_LINE_LIMIT_BYTES = 4096
_MAGIC = b"HTTP/1."
_CHUNKED_HEAD = re.compile(
    rb"HTTP/1\.1 200 [^\r]*\r\n(?:[^\r\n]+\r\n)*?(?i:transfer-encoding: *chunked)\r\n(?:[^\r\n]+\r\n)*\r\n"
)


class ProtocolError(Exception):
    """The bytes are not an HTTP/1.1 response that was asked for, or it has no end."""


class Response:
    """Finds the end of one response and the pieces of its body.

    headers_at: ns of the read that completed the head, or -1. stamps, parts: body pieces that nobody has drained yet, a
    piece never spans two reads. retry_after_s: what the server asked for, or None.
    """

    __slots__ = (
        "_carry", "_chunk_end", "_feed_body", "_left", "_trailer", "headers_at", "keep_alive", "parts", "retry_after_s",
        "size", "stamps", "status",
    )  # fmt: skip

    def __init__(self) -> None:
        self.status = 0
        self.headers_at = -1
        self.keep_alive = True
        self.retry_after_s: float | None = None
        self.size = 0
        self.stamps: list[int] = []
        self.parts: list[bytes] = []
        self._carry = b""
        self._left = 0
        self._chunk_end = False
        self._trailer = False
        self._feed_body = self._head

    def feed(self, stamp: int, data: bytes) -> bool:
        """Take one read; return whether the response is complete. Raises ProtocolError."""
        return self._feed_body(stamp, data)

    def drain(self) -> tuple[list[int], list[bytes]]:
        """Hand over the pieces so far."""
        pieces = self.stamps, self.parts
        self.stamps, self.parts = [], []
        return pieces

    @property
    def ends_by_close(self) -> bool:
        """The end of the connection is the proper end of this response."""
        return self._feed_body == self._until_close

    @property
    def chunked(self) -> bool:
        """The end of this response is a last chunk, so it ends with an empty line."""
        return self._feed_body == self._chunked

    @property
    def between_chunks(self) -> bool:
        """The next byte begins a chunk."""
        return self.chunked and not (self._left or self._carry or self._chunk_end or self._trailer)

    def recognised(self, size: int) -> None:
        """Count body bytes of whole chunks that were recognised without being fed. Raises ProtocolError."""
        self._count(size)

    def _head(self, stamp: int, data: bytes) -> bool:
        head = self._carry + data
        if not head.startswith(_MAGIC[: len(head)]):
            raise ProtocolError(f"not an HTTP/1.1 answer: {head[:40]!r}")
        end = head.find(b"\r\n\r\n")
        if end < 0:
            if len(head) > HEAD_LIMIT_BYTES:
                raise ProtocolError(f"response head longer than {HEAD_LIMIT_BYTES} bytes")
            self._carry = head
            return False
        self._carry = b""
        rest = head[end + 4 :]
        status, fields = _parse_head(head[:end])
        if status < 200:  # interim answer: the real one follows
            return self._head(stamp, rest) if rest else False
        self.status, self.headers_at = status, stamp
        return self._start_body(fields, stamp, rest)

    def _start_body(self, fields: dict[bytes, bytes], stamp: int, rest: bytes) -> bool:
        self.keep_alive = b"close" not in fields.get(b"connection", b"").lower()
        self.retry_after_s = _seconds(fields.get(b"retry-after"))
        coding = fields.get(b"content-encoding", b"identity").lower()
        if coding != b"identity":
            raise ProtocolError(f"the answer is compressed ({coding[:40].decode('latin-1')}), which was not asked")
        if self.status in (204, 304):
            return True
        if b"chunked" in fields.get(b"transfer-encoding", b"").lower():
            self._feed_body = self._chunked
        elif b"content-length" in fields:
            self._left = _parse_int(fields[b"content-length"], 10)
            self._feed_body = self._counted
            if not self._left:
                return True
        else:
            self.keep_alive = False
            self._feed_body = self._until_close
        return self._feed_body(stamp, rest) if rest else False

    def _count(self, size: int) -> None:
        self.size += size
        if self.size > BODY_LIMIT_BYTES:
            raise ProtocolError(f"answer longer than {BODY_LIMIT_BYTES} bytes without an end")

    def _keep(self, stamp: int, piece: bytes) -> None:
        self._count(len(piece))
        self.stamps.append(stamp)
        self.parts.append(piece)

    def _counted(self, stamp: int, data: bytes) -> bool:
        piece = data[: self._left]
        self._left -= len(piece)
        self.keep_alive = self.keep_alive and len(piece) == len(data)
        self._keep(stamp, piece)
        return not self._left

    def _until_close(self, stamp: int, data: bytes) -> bool:
        self._keep(stamp, data)
        return False

    def _chunked(self, stamp: int, data: bytes) -> bool:
        if self._carry:  # only framing bytes are ever carried over: body bytes keep their own stamp
            data = self._carry + data
            self._carry = b""
        position = 0
        while True:
            if self._left:
                piece = data[position : position + self._left]
                if piece:
                    self._keep(stamp, piece)
                    position += len(piece)
                    self._left -= len(piece)
                if self._left:
                    return False
            line_end = data.find(b"\r\n", position)
            if line_end < 0:
                self._carry = data[position:]
                if len(self._carry) > _LINE_LIMIT_BYTES:
                    raise ProtocolError("chunk size line without an end")
                return False
            line = data[position:line_end]
            position = line_end + 2
            if self._chunk_line(line):
                self.keep_alive = self.keep_alive and position == len(data)
                return True

    def _chunk_line(self, line: bytes) -> bool:
        """Take a line of chunk framing; return whether it was the last of the response."""
        if self._chunk_end:
            if line:
                raise ProtocolError(f"chunk longer than its size: {line[:40]!r}")
            self._chunk_end = False
        elif self._trailer:
            return not line
        else:
            self._left = _parse_int(line.partition(b";")[0], 16)
            self._trailer = not self._left
            self._chunk_end = not self._trailer
        return False


def in_chunks(beginning: bytes) -> bool:
    """Say whether the first read of a response holds a whole head that announces chunks."""
    return _CHUNKED_HEAD.match(beginning) is not None


def _parse_head(head: bytes) -> tuple[int, dict[bytes, bytes]]:
    first, *lines = head.split(b"\r\n")
    words = first.split(b" ", 2)
    status = _parse_int(words[1], 10) if len(words) > 1 else 0
    if not 100 <= status <= 599:
        raise ProtocolError(f"not an HTTP status line: {first[:60]!r}")
    pairs = (line.partition(b":") for line in lines)
    return status, {name.strip().lower(): value.strip() for name, _, value in pairs}


def _parse_int(text: bytes, base: int) -> int:
    word = text.strip()
    try:
        if not word.isalnum():
            raise ValueError
        return int(word, base)
    except ValueError:
        raise ProtocolError(f"not a number in the response framing: {text[:40]!r}") from None


def _seconds(text: bytes | None) -> float | None:
    """Read a Retry-After in seconds; one that is a date asks for a time that only its own clock knows."""
    return float(text) if text and text.isdigit() and len(text) < 10 else None
