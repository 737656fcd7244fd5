"""Just enough HTTP/1.1 over an asyncio protocol: keep-alive, bodies with a length, chunked replies."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast
from urllib.parse import urlsplit

import orjson

MAX_HEADER_BYTES = 64 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class Request:
    """One request. `received_s` is CLOCK_MONOTONIC when its last byte was read."""

    method: str
    path: str
    query: str
    body: bytes
    received_s: float


class Connection(asyncio.Protocol):
    """One connection: hands requests over one at a time and writes what answers them."""

    def __init__(self, handle: Callable[[Request, "Connection"], None]) -> None:
        self._handle = handle
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._busy = False
        self._keep_alive = True
        self.on_lost: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own type derives from neither

    def connection_lost(self, _: Exception | None) -> None:
        self._transport = None
        if self.on_lost:
            self.on_lost()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next_request()

    def reply(self, status: int, body: object, content_type: str = "application/json") -> None:
        """Answer whole: text and bytes as they are, anything else as JSON."""
        content = body.encode() if isinstance(body, str) else body if isinstance(body, bytes) else orjson.dumps(body)
        self.write(self._head(status, content_type, f"Content-Length: {len(content)}") + content)
        self._done()

    def start_stream(self) -> None:
        """Send the head of a reply that comes in chunks."""
        self.write(self._head(200, "text/event-stream; charset=utf-8", "Transfer-Encoding: chunked"))

    def send_chunk(self, data: bytes) -> None:
        """Send one chunk at once."""
        self.write(b"%x\r\n%b\r\n" % (len(data), data))

    def end_stream(self) -> None:
        """End a reply that came in chunks."""
        self.write(b"0\r\n\r\n")
        self._done()

    def close(self) -> None:
        """Close, in the middle of a reply too."""
        if self._transport:
            self._transport.close()

    def write(self, data: bytes) -> None:
        """Send raw bytes; a connection that is lost takes none."""
        if self._transport:
            self._transport.write(data)

    def _head(self, status: int, content_type: str, length: str) -> bytes:
        connection = "keep-alive" if self._keep_alive else "close"
        line = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"
        return f"{line}\r\nContent-Type: {content_type}\r\n{length}\r\nConnection: {connection}\r\n\r\n".encode()

    def _done(self) -> None:
        self._busy = False
        self.on_lost = None
        if not self._keep_alive:
            self.close()
        elif self._buffer:
            self._next_request()

    def _next_request(self) -> None:
        if self._busy:
            return
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEADER_BYTES:
                self._refuse(431)
            return
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
        }
        words = lines[0].split(" ")
        length = headers.get("content-length", "0")
        if len(words) != 3 or not length.isdecimal():
            self._refuse(400)
        elif "transfer-encoding" in headers:
            self._refuse(411)
        elif int(length) > MAX_BODY_BYTES:
            self._refuse(413)
        elif len(self._buffer) >= end + 4 + int(length):
            self._keep_alive = headers.get("connection", "").lower() != "close" and words[2] == "HTTP/1.1"
            self._take(words, end + 4, int(length))

    def _take(self, words: list[str], start: int, length: int) -> None:
        body = bytes(self._buffer[start : start + length])
        del self._buffer[: start + length]
        self._busy = True
        url = urlsplit(words[1])
        self._handle(Request(words[0], url.path, url.query, body, time.monotonic()), self)

    def _refuse(self, status: int) -> None:
        self._keep_alive = False
        self._buffer.clear()
        self.reply(status, {"error": {"message": HTTPStatus(status).phrase, "code": status}})
