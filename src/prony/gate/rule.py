"""What a lint rule is: data, and one function over the configs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prony.base.finding import Severity, Where
from prony.gate.document import Config, LintFinding
from prony.gate.policy import Policy


@dataclass(frozen=True)
class Subject:
    """What rules look at."""

    config: Config
    policy: Policy


@dataclass(frozen=True)
class Hit:
    """One place where a rule does not hold; severity and fix override the rule's."""

    key: str
    where: Where
    message: str
    allowed: str = ""
    fix: str = ""
    evidence: str = ""
    severity: Severity | None = None


@dataclass(frozen=True)
class Rule:
    """One rule: its id, how bad a breach is, what it asks for, how to mend it, and where the demand comes from."""

    id: str
    severity: Severity
    what: str
    fix: str
    source: str
    find: Callable[[Subject], Iterable[Hit]]

    def findings(self, subject: Subject) -> Iterable[LintFinding]:
        """Yield the breaches of this rule."""
        for hit in self.find(subject):
            yield LintFinding(
                rule=self.id, severity=hit.severity or self.severity, key=hit.key, where=hit.where,
                message=f"{hit.key}: {hit.message}" if hit.key else hit.message,
                allowed=hit.allowed, fix=hit.fix or self.fix, evidence=hit.evidence,
            )  # fmt: skip
