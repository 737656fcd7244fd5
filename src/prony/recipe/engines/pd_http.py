"""As much HTTP/1.1 as the prefill/decode router needs: requests in, requests out, answers passed through."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

MOST_HEAD_BYTES = 1 << 16
MOST_BODY_BYTES = 1 << 28
_PIECE_BYTES = 1 << 16
_HOP = frozenset({"connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade", "expect"})


class BadRequest(Exception):  # noqa: N818 - it is answered with 400
    """What a client sent is no request that can be answered."""


@dataclass(frozen=True)
class Message:
    """The head of a request or an answer: the words of its first line, headers by lower-case name."""

    first: tuple[str, str, str]
    headers: Mapping[str, str]


async def read_head(reader: asyncio.StreamReader) -> Message | None:
    """Read a head; None where the other side has closed. Raises BadRequest."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise BadRequest("the head ends in the middle") from None
        return None
    except asyncio.LimitOverrunError:
        raise BadRequest(f"the head is longer than {MOST_HEAD_BYTES} bytes") from None
    first, *lines = raw.decode("latin-1").strip("\r\n").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2:
        raise BadRequest(f"{first[:80]!r} begins no message")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Message((words[0], words[1], words[2] if len(words) > 2 else ""), headers)


async def read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    """Read a request's body, by its length or in chunks. Raises BadRequest."""
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return await _read_chunks(reader)
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > MOST_BODY_BYTES:
        raise BadRequest(f"content-length {length[:40]!r} is no length up to {MOST_BODY_BYTES}")
    return await reader.readexactly(int(length))


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while True:
        line = (await reader.readline()).split(b";")[0].strip()
        try:
            size = int(line, 16)
        except ValueError:
            raise BadRequest(f"{line[:40]!r} is no size of a chunk") from None
        if size < 0 or len(body) + size > MOST_BODY_BYTES:
            raise BadRequest(f"a body of more than {MOST_BODY_BYTES} bytes")
        if size == 0:
            while (await reader.readline()).strip():
                pass
            return bytes(body)
        body += await reader.readexactly(size)
        await reader.readexactly(2)


def request_bytes(method: str, path: str, host: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """Return a request that asks for the connection to be closed behind its answer."""
    kept = {
        name: value
        for name, value in headers.items()
        if name not in _HOP and name not in ("host", "content-length", "transfer-encoding", "accept-encoding")
    }
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}", "connection: close", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in kept.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def answer_bytes(status: str, body: bytes, kind: str = "application/json") -> bytes:
    """Return a whole answer of the router's own."""
    return f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


class Upstream:
    """One request to a worker and its answer. Use as an async context manager: leaving it closes the connection."""

    def __init__(self, url: str, request: bytes) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._request = request
        self._writer: asyncio.StreamWriter | None = None
        self.head: Message | None = None

    async def __aenter__(self) -> "Upstream":
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port, limit=MOST_HEAD_BYTES)
        self._writer.write(self._request)
        await self._writer.drain()
        self.head = await read_head(self._reader)
        if self.head is None:
            raise ConnectionError("the worker closed the connection without an answer")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    @property
    def status(self) -> int:
        """The status code of the answer."""
        return int(self.head.first[1]) if self.head and self.head.first[1].isdigit() else 502

    def head_bytes(self) -> bytes:
        """Return the answer's head without what concerns this connection alone."""
        if self.head is None:
            raise RuntimeError("the answer has a head")
        lines = [" ".join(("HTTP/1.1", *self.head.first[1:])).strip()]
        lines += [f"{name}: {value}" for name, value in self.head.headers.items() if name not in _HOP]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    @property
    def framed(self) -> bool:
        """The answer says itself where it ends, so that the client's connection can be kept."""
        headers = self.head.headers if self.head else {}
        return "content-length" in headers or "chunked" in headers.get("transfer-encoding", "").lower()

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes, framing included, to the end of the connection.

        Raises ConnectionError when it ends before it should.
        """
        headers = self.head.headers if self.head else {}
        left = int(headers["content-length"]) if headers.get("content-length", "").isdigit() else None
        tail = b""
        while left != 0 and (piece := await self._reader.read(_PIECE_BYTES)):
            tail = (tail + piece)[-5:]
            left = None if left is None else left - len(piece)
            yield piece
        if (left or 0) > 0 or (left is None and self.framed and tail != b"0\r\n\r\n"):
            raise ConnectionError("the worker's answer ends in the middle")

    async def whole(self) -> bytes:
        """Return the body without its framing."""
        if self.head and "chunked" in self.head.headers.get("transfer-encoding", "").lower():
            return await _read_chunks(self._reader)
        length = self.head.headers.get("content-length", "") if self.head else ""
        return await (self._reader.readexactly(int(length)) if length.isdigit() else self._reader.read(-1))
