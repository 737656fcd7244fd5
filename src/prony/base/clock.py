"""Clocks that are passed in, so that tests never touch the machine's."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A source of time in seconds."""

    def now_s(self) -> float:
        """Return monotonic seconds."""
        ...

    def wall(self) -> datetime:
        """Return the date and time in UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for a number of seconds."""
        ...


class SystemClock:
    """The machine's own clock (CLOCK_MONOTONIC; wall time in UTC)."""

    def now_s(self) -> float:
        return time.monotonic()

    def wall(self) -> datetime:
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def iso(moment: datetime) -> str:
    """Write a moment as ISO 8601 in UTC with seconds: 2026-12-01T02:43:52Z."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
