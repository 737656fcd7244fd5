"""Output of processes, pumped into bounded log files of the job that is current, with secrets blanked."""

import contextlib
import os
import selectors
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import IO

LIMIT_BYTES = 64 * 2**20
HEAD_LINES = 12
TAIL_LINES = 12
_LINE_BYTES = 64 * 2**10
_DRAIN_ROUNDS = 256
_BLANK = b"[redacted]"


class LogPump:
    """Reads pipes without threads: whoever waits calls `pump`, and gets the output of all processes written."""

    def __init__(self, secrets: Iterable[str], limit_bytes: int = LIMIT_BYTES) -> None:
        lines = {line.strip() for secret in secrets for line in secret.splitlines()}
        self._secrets = [line.encode() for line in sorted(lines, key=len, reverse=True) if line]
        self._limit = limit_bytes
        self._selector = selectors.DefaultSelector()
        self._streams: dict[str, _Stream] = {}
        self._directory: Path | None = None
        self.fault: OSError | None = None

    def attach(self, name: str, pipe: IO[bytes]) -> None:
        """Take over a pipe; its lines go to NAME.log of the current directory. A name may be used again."""
        if name in self._streams:
            self._drop(self._streams[name])
        os.set_blocking(pipe.fileno(), False)
        stream = _Stream(name, pipe)
        self._streams[name] = stream
        self._selector.register(pipe, selectors.EVENT_READ, stream)

    def direct(self, directory: Path) -> None:
        """Write what comes from now on into another directory; forget faults of writing into the last."""
        self.drain()
        for stream in self._streams.values():
            stream.close_file()
        self._directory = directory
        self.fault = None

    def pump(self, seconds: float) -> None:
        """Wait for a time, moving output meanwhile."""
        deadline = time.monotonic() + seconds
        left = seconds
        while left > 0:
            for key, _ in self._selector.select(left):
                self._read(key.data)
            left = deadline - time.monotonic()

    def drain(self) -> None:
        """Move the output that is there now, without waiting; bounded, should a process never stop writing."""
        for _ in range(_DRAIN_ROUNDS):
            ready = self._selector.select(0)
            for key, _ in ready:
                self._read(key.data)
            if not ready:
                return

    def tail(self, name: str) -> str:
        """Return the last lines of a stream, secrets blanked."""
        self.drain()
        stream = self._streams.get(name)
        if stream is None:
            return ""
        return b"\n".join((*stream.tail, self.redact(stream.partial))).decode(errors="replace").strip()

    def head(self, name: str) -> str:
        """Return the first lines of a stream, secrets blanked."""
        self.drain()
        stream = self._streams.get(name)
        return b"\n".join(stream.head).decode(errors="replace") if stream else ""

    def file(self, name: str) -> Path:
        """Return where the output of a stream goes now."""
        return (self._directory or Path()) / f"{name}.log"

    def redact(self, text: bytes) -> bytes:
        """Blank every secret in a text."""
        for secret in self._secrets:
            text = text.replace(secret, _BLANK)
        return text

    def close(self) -> None:
        """Write what is left and close all pipes and files."""
        self.drain()
        for stream in self._streams.values():
            self._drop(stream)
        self._selector.close()

    def _read(self, stream: "_Stream") -> None:
        try:
            chunk = os.read(stream.pipe.fileno(), _LINE_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            self._drop(stream)
            return
        whole, newline, stream.partial = (stream.partial + chunk).rpartition(b"\n")
        if newline:
            self._write(stream, whole)
        if len(stream.partial) > _LINE_BYTES:
            self._write(stream, stream.partial)
            stream.partial = b""

    def _drop(self, stream: "_Stream") -> None:
        if stream.partial:
            self._write(stream, stream.partial)
            stream.partial = b""
        if not stream.pipe.closed:
            with contextlib.suppress(KeyError):
                self._selector.unregister(stream.pipe)
            stream.pipe.close()
        stream.close_file()

    def _write(self, stream: "_Stream", lines: bytes) -> None:
        clean = self.redact(lines)
        found = clean.splitlines()
        stream.head += found[: HEAD_LINES - len(stream.head)] if len(stream.head) < HEAD_LINES else []
        stream.tail.extend(found)
        if self._directory is None or self.fault is not None:
            return
        try:
            stream.write(self._directory, clean + b"\n", self._limit)
        except OSError as error:
            self.fault = error


class _Stream:
    """One pipe, its unfinished line, its first and last lines, and the file that it goes to."""

    def __init__(self, name: str, pipe: IO[bytes]) -> None:
        self.name = name
        self.pipe = pipe
        self.partial = b""
        self.head: list[bytes] = []
        self.tail: deque[bytes] = deque(maxlen=TAIL_LINES)
        self._file: IO[bytes] | None = None
        self._left = 0

    def write(self, directory: Path, text: bytes, limit_bytes: int) -> None:
        if self._file is None:
            directory.mkdir(parents=True, exist_ok=True)
            self._file = (directory / f"{self.name}.log").open("ab", buffering=0)
            self._left = limit_bytes - self._file.tell()
        if self._left <= 0:
            return
        self._left -= len(text)
        if self._left <= 0:
            text = f"[cut here: the log reached {limit_bytes} bytes]\n".encode()
        written = self._file.write(text)
        if written < len(text):
            self._file.write(text[written:])

    def close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
