"""The terminal, or the pipe in its place."""

import sys

from rich.console import Console

_PIPE_WIDTH = 200


def wide_console() -> Console:
    """Return a console; a pipe has no width of its own, and lines must not be cut for whoever reads them next."""
    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH)
