"""SIGINT, SIGTERM and SIGHUP as something that the loop reads, so that they never strike in the middle of its work."""

import contextlib
import os
import signal
from types import FrameType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """While it is entered, these signals only make `fd` readable and `asked` true. In the main thread only."""

    def __init__(self) -> None:
        self.fd, self._write = os.pipe()
        self.asked = False
        self._before: dict[signal.Signals, Any] = {}
        self._wakeup = -1

    def __enter__(self) -> Self:
        os.set_blocking(self.fd, False)
        os.set_blocking(self._write, False)
        self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, self._take) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        os.close(self.fd)
        os.close(self._write)

    def clear(self) -> None:
        """Make fd unreadable again."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.fd, 64):
                pass

    def _take(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True
