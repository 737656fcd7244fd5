"""What is printed: foreign text stays text. Every command prints through this module."""

import re
import sys
from typing import TYPE_CHECKING, TextIO

from prony.base.text import printable
from prony.cli.arguments import as_typed

if TYPE_CHECKING:
    from rich.console import Console

_PIPE_WIDTH = 10_000
_THOUSANDS = re.compile("(?<=\\d)\u2009(?=\\d)")


def say(text: object = "", file: TextIO | None = None) -> None:
    """Print text at once, whatever it holds: no control character of it reaches the terminal."""
    stream = file or sys.stdout
    print(shown(str(text), stream), file=stream, flush=True)


def shown(text: str, stream: TextIO | None = None) -> str:
    """Return text as it is printed: it steers no terminal, its prony commands can be typed here, and who reads a pipe
    gets numbers without spaces in them."""
    stream = stream or sys.stdout
    return as_typed(printable(text if stream.isatty() else _THOUSANDS.sub("", text)))


def print_data(text: str) -> None:
    """Write text for a program to standard output: as it is, in UTF-8 whatever the locale."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))


def make_console(*, stderr: bool = False) -> "Console":
    """Return a console that reads no markup in text; a pipe has no width, lines are not cut for who reads them next."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPE_WIDTH
    return Console(stderr=stderr, markup=False, highlight=False, emoji=False, width=width)


def headline(message: str) -> str:
    """Return the first line of a message, without an announcement of the lines below it."""
    first = message.strip().partition("\n")[0]
    return printable(first.partition("; its last lines:")[0].removesuffix(":"))
