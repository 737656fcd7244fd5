"""What the rules look at, and how they speak."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prony.base.finding import Finding, Severity
from prony.measure.eventlog import EventLog
from prony.measure.generation import Generation
from prony.measure.steady import Steady
from prony.spec.load import LoadPlan


@dataclass(frozen=True)
class Case:
    """What the rules look at."""

    log: EventLog
    load: LoadPlan
    made: Generation
    steady: Steady
    values: dict[tuple[str, str], float]

    def value(self, metric: str, stat: str = "value") -> float | None:
        """Return one measurement, or None when it was not measured."""
        return self.values.get((metric, stat))

    @property
    def open_loop(self) -> bool:
        """Requests were due at times of their own."""
        return self.log.arrival == "open"


Rule = Callable[[Case], Iterator[Finding]]


def verdict(rule: str, severity: Severity, message: str, fix: str, evidence: str = "") -> Finding:
    """Return a finding about a result."""
    return Finding(rule=f"verdict/{rule}", severity=severity, message=message, fix=fix, evidence=evidence)
