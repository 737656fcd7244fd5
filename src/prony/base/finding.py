"""The one finding type that lint, plan, recipe, ingest, verdicts and the gate return."""

from typing import Literal

from prony.base.model import Frozen

Severity = Literal["info", "warn", "error", "invalid"]


class Where(Frozen):
    """A place in a file. `line` counts from 1; 0 means the whole file."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class Finding(Frozen):
    """One thing found: the rule that found it, how bad it is, where, why, what is allowed and how to mend it.

    A verdict is a finding about a result: `warn` leaves the result usable, `invalid` does not.
    """

    rule: str
    severity: Severity
    message: str
    where: Where | None = None
    allowed: str = ""
    fix: str = ""
    evidence: str = ""

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        tail = f"\n  what to do: {self.fix}" if self.fix else ""
        return f"{place}{self.severity} [{self.rule}] {self.message}{tail}"
