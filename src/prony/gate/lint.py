"""Lint: every fault of some master configs, and which of them are new."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from prony.gate.catalogue import RULES
from prony.gate.document import Config, LintFinding
from prony.gate.policy import Policy
from prony.gate.rule import Subject


@dataclass(frozen=True)
class LintReport:
    """Findings in the order of files and lines: those that are new, and those that the base has too."""

    new: tuple[LintFinding, ...]
    known: tuple[LintFinding, ...] = ()

    @property
    def exit_code(self) -> int:
        """2 where a new finding is an error, else 0."""
        return 2 if any(finding.severity == "error" for finding in self.new) else 0


def lint(head: Config, policy: Policy, base: Config | None = None) -> LintReport:
    """Apply all rules; a finding of the base (same rule, key and message, whatever its line) does not count as new."""
    found = _findings(head, policy)
    budget = Counter(map(_identity, _findings(base, policy))) if base else Counter()
    new: list[LintFinding] = []
    known: list[LintFinding] = []
    for finding in found:
        at_base = budget[_identity(finding)] > 0
        budget[_identity(finding)] -= at_base
        (known if at_base else new).append(finding)
    return LintReport(tuple(new), tuple(known))


def _identity(finding: LintFinding) -> tuple[str, str, str]:
    return (finding.rule, finding.key, finding.message)


def _findings(config: Config, policy: Policy) -> list[LintFinding]:
    subject = Subject(config, policy)
    found = list(config.findings)
    if config.runners.labels:  # without a valid runners file every rule would blame the masters for it
        found += [finding for rule in RULES for finding in rule.findings(subject)]
    order: dict[str, int] = {}
    for finding in found:
        order.setdefault(finding.where.file if finding.where else "", len(order))
    return sorted(found, key=lambda f: (order[f.where.file], f.where.line, f.rule) if f.where else (-1, 0, f.rule))


def counts(findings: Sequence[LintFinding]) -> dict[tuple[str, str], int]:
    """Return how many findings each (rule, severity) has."""
    return dict(Counter((finding.rule, finding.severity) for finding in findings))
