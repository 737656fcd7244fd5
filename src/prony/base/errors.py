"""Faults that a person can mend, with the exit code that tells whose they are.

Exit codes: 2 the author's (configuration, plan), 3 the operator's (launch), 4 the result is not valid, 130 interrupted.
"""

from typing import ClassVar


class PronyError(Exception):
    """A fault with its place, its reason and what to do about it; never shown as a traceback."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, allowed: str = "", fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.allowed = allowed
        self.fix = fix

    def __str__(self) -> str:
        lines = [self.message]
        if self.allowed:
            lines.append(f"  allowed here: {self.allowed}")
        if self.fix:
            lines.append(f"  what to do: {self.fix}")
        return "\n".join(lines)


class ConfigError(PronyError):
    """A file that its author must mend."""

    exit_code = 2


class PlanError(PronyError):
    """A request that cannot be turned into jobs."""

    exit_code = 2


class LaunchError(PronyError):
    """A server, machine or disk that its operator must mend."""

    exit_code = 3


class MeasurementError(PronyError):
    """A measurement that is not valid."""

    exit_code = 4
