"""Who descends from whom, as /proc tells it."""

import contextlib
from pathlib import Path


def children(pid: int) -> tuple[int, ...]:
    """Return the direct children of a process, over all its threads."""
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found.extend(int(child) for child in file.read_text().split())
    return tuple(found)


def descendants(pid: int) -> tuple[int, ...]:
    """Return children, their children and so on, parents first."""
    found = list(children(pid))
    for child in found:
        found.extend(children(child))
    return tuple(found)
