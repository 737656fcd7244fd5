"""The standard streams, so that no terminal, pipe or full disk can stop the work of a command.

A reader that goes away (`prony results list | head -1`) ends nothing and changes no exit code: what else is printed is
dropped. Any other fault of standard output is told once on standard error at the end, and 0 becomes 3.
"""

import codecs
import contextlib
import errno
import io
import os
import select
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

OUTPUT_FAULT = 3
_HANDLER = "prony-plain"
# What a stream that cannot write a character gets in its place; everything else becomes its \\u escape.
_PLAIN = {
    "\u2009": " ", "\u00a0": " ", "—": "-", "–": "-", "−": "-", "→": "->", "…": "...", "µ": "u", "×": "x", "✗": "x",
    "·": "-", "’": "'", "“": '"', "”": '"',
}  # fmt: skip


class _Sink(io.FileIO):
    """A file descriptor that keeps its first fault and swallows all that is written after it."""

    fault: OSError | None = None

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write what the descriptor takes; after a fault pretend."""
        while self.fault is None:
            try:
                written: int | None = super().write(data)
                if written is not None:
                    return written
                select.select([], [self], [])  # a descriptor that does not block, full at the moment
            except OSError as error:
                self.fault = error
        return memoryview(data).nbytes


def prepare() -> None:
    """Make standard output and error take any text and outlive their readers; closed ones lead nowhere."""
    for number in (0, 1, 2):
        _fill(number)
    codecs.register_error(_HANDLER, _spell)
    if sys.stdout is sys.__stdout__:  # a test that captures the stream keeps its own
        sys.stdout = _opened(1, sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _opened(2, sys.stderr)


def settle(code: int) -> int:
    """Flush standard output and return the exit code; a fault of it is told on standard error and makes 0 to 3."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    sink = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if not isinstance(sink, _Sink) or sink.fault is None or sink.fault.errno == errno.EPIPE:
        return code
    print(f"prony: standard output could not be written whole: {sink.fault.strerror}", file=sys.stderr)
    print("  what to do: see where it leads (a full disk?), then print again", file=sys.stderr)
    return code or OUTPUT_FAULT


def _fill(number: int) -> None:
    """Occupy a closed descriptor, lest the next file opened gets its number and our output with it."""
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, os.O_RDWR)
        os.dup2(opened, number)
        if opened != number:
            os.close(opened)


def _opened(number: int, before: TextIO | None) -> TextIO:
    sink = _Sink(number, "w", closefd=False)
    encoding = before.encoding if before is not None else "utf-8"
    return io.TextIOWrapper(
        io.BufferedWriter(sink), encoding=encoding, errors=_HANDLER, line_buffering=number == 2 or sink.isatty()
    )


def _spell(error: UnicodeError) -> tuple[str, int]:
    """Write what the encoding lacks in ASCII."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(_PLAIN.get(one) or one.encode("ascii", "backslashreplace").decode() for one in missing), error.end
