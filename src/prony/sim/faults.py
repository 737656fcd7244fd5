"""Faults that the simulated server shows on demand."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from prony.base.errors import ConfigError

FaultName = Literal[
    "die-at-start",
    "hang-at-start",
    "oom-at-load",
    "ignore-term",
    "die-after",
    "http-500",
    "garbage-sse",
    "close-early",
    "hang-stream",
    "slow-first-token",
]
_FORMS: dict[FaultName, str] = {
    "die-at-start": "die-at-start",
    "hang-at-start": "hang-at-start",
    "oom-at-load": "oom-at-load",
    "ignore-term": "ignore-term",
    "die-after": "die-after=N",
    "http-500": "http-500=N",
    "garbage-sse": "garbage-sse=N",
    "close-early": "close-early=N",
    "hang-stream": "hang-stream=N",
    "slow-first-token": "slow-first-token=N:SECONDS",
}


@dataclass(frozen=True)
class Fault:
    """One fault: it strikes every `every`-th completion request (`die-after`: only that one)."""

    name: FaultName
    every: int = 0
    seconds: float = 0.0

    def strikes(self, number: int) -> bool:
        """Say whether this strikes a completion request, numbered from 1."""
        if self.name == "die-after":
            return number == self.every
        return self.every > 0 and number % self.every == 0


def read_fault(text: str) -> Fault:
    """Return the fault of NAME, NAME=N or NAME=N:SECONDS. Raises ConfigError with the forms."""
    name, _, value = text.partition("=")
    allowed = ", ".join(_FORMS.values())
    for known, form in _FORMS.items():
        if known == name:
            try:
                return _read_value(known, form, value)
            except ValueError:
                raise ConfigError(f"fault '{text}' is not of the form {form}", allowed=allowed) from None
    guess = difflib.get_close_matches(name, list(_FORMS), n=1)
    hint = f" (did you mean '{guess[0]}'?)" if guess else ""
    raise ConfigError(f"'{name}' is not a fault{hint}", allowed=allowed)


def _read_value(name: FaultName, form: str, value: str) -> Fault:
    every, colon, seconds = value.partition(":")
    if ("=" in form) != bool(value) or (":" in form) != bool(colon):
        raise ValueError
    fault = Fault(name, int(every or 0), float(seconds or 0))
    if "=" in form and (fault.every < 1 or fault.seconds < 0):
        raise ValueError
    return fault


class Faults:
    """The faults that are on, and the count of completion requests."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        self.requests = 0

    def has(self, name: FaultName) -> bool:
        """Say whether a fault is on."""
        return any(fault.name == name for fault in self.faults)

    def next_request(self) -> dict[FaultName, Fault]:
        """Count one completion request and return what strikes it, by name."""
        self.requests += 1
        return {fault.name: fault for fault in self.faults if fault.strikes(self.requests)}
