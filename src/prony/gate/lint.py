"""Lint: every fault of some master configs, and which of them are new."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from prony.base.finding import Where
from prony.gate.baseline import Baseline
from prony.gate.catalogue import RULES
from prony.gate.document import Config, Found, LintFinding
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
    """Apply all rules; a finding of the base does not count as new, whatever its line, its words and its key's name.

    Where the base has a runners file that cannot be used, the head's is used; a note says so, as it says of a master
    of the base that is no YAML, whose findings cannot be known.
    """
    found = _found(head, policy)
    if base is None:
        return LintReport(tuple(item.finding for item in found))
    judged = base if base.runners_known else replace(base, runners=head.runners, runners_known=head.runners_known)
    known = Baseline(base, head, _found(judged, policy, shadowed=True)).known(found)
    new = [item.finding for item in found if item not in known]
    notes = _notes(head, base, new)
    return LintReport((*new, *notes), tuple(item.finding for item in found if item in known))


def _found(config: Config, policy: Policy, shadowed: bool = False) -> list[Found]:
    rules = [rule for rule in RULES if config.runners_known or not rule.needs_runners]
    subject = Subject(config, policy)
    found = [*config.found, *(item for rule in rules for item in rule.findings(subject))]
    if shadowed and config.shadowed:
        hidden = Subject(replace(config, keys=config.shadowed), policy)
        found += [item for rule in rules if rule.scope != "all" for item in rule.findings(hidden)]
    order: dict[str, int] = {}
    for item in found:
        order.setdefault(item.finding.where.file if item.finding.where else "", len(order))
    return sorted(found, key=lambda item: _position(item.finding, order))


def _position(finding: LintFinding, order: dict[str, int]) -> tuple[int, int, str]:
    return (order[finding.where.file], finding.where.line, finding.rule) if finding.where else (-1, 0, finding.rule)


def _notes(head: Config, base: Config, new: Sequence[LintFinding]) -> list[LintFinding]:
    """Say what could not be compared, where that matters."""
    touched = {finding.where.file for finding in new if finding.where}
    notes: list[LintFinding] = []
    for finding in base.findings:
        file = finding.where.file if finding.where else ""
        if file not in base.unreadable or file in {note.where.file for note in notes if note.where}:
            continue
        told = f"the base of this file cannot be read ({finding.where}: {finding.message})"
        if finding.rule == "yaml" and file in touched - set(head.unreadable):
            notes.append(_note(file, f"{told}, so every finding in it counts as new"))
        elif not base.runners_known and head.runners_known and file == head.runners.file:
            notes.append(_note(file, f"{told}, so the base was judged by the runners file of the head"))
    return notes


def _note(file: str, message: str) -> LintFinding:
    fix = "look at the findings by hand, or compare with a base that can be read"
    return LintFinding(rule="base-unreadable", severity="info", where=Where(file=file), message=message, fix=fix)


def counts(findings: Sequence[LintFinding]) -> dict[tuple[str, str], int]:
    """Return how many findings each (rule, severity) has."""
    return dict(Counter((finding.rule, finding.severity) for finding in findings))
