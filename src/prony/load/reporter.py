"""Hands progress to whoever shows it, from a thread, so that a slow disk or terminal never holds the loop."""

import threading
from collections.abc import Callable
from typing import Self

from prony.load.progress import Progress


class Reporter:
    """Passes the newest progress on; what comes while one is being passed replaces what waits."""

    def __init__(self, report: Callable[[Progress], None]) -> None:
        self._report = report
        self._newest: Progress | None = None
        self._wake = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing = True
        self._wake.set()
        self._thread.join()

    def put(self, progress: Progress) -> None:
        """Pass progress on soon. Does not block."""
        self._newest = progress
        self._wake.set()

    def _run(self) -> None:
        while not self._closing or self._newest is not None:
            self._wake.wait()
            self._wake.clear()
            newest, self._newest = self._newest, None
            if newest is not None:
                self._report(newest)
            elif self._closing:
                return
