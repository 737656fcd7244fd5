"""What a lint rule is: data, and one function over the configs."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Literal

from prony.base.finding import Severity, Where
from prony.gate.document import Config, Found, Key, LintFinding, Place, Search
from prony.gate.policy import Policy


@dataclass(frozen=True)
class Subject:
    """What rules look at."""

    config: Config
    policy: Policy


@dataclass(frozen=True)
class Hit:
    """One place where a rule does not hold; severity and fix override the rule's.

    atoms: the faults that this place has, each by what is wrong alone, without the rest of the entry: a list that
    grows keeps the atoms it had. of, search: the key and the search-space entry at fault; also: others involved.
    pairs: the same faults as seen by the entries involved, whatever else changes in all of them alike.
    """

    key: str
    where: Where
    message: str
    allowed: str = ""
    fix: str = ""
    evidence: str = ""
    severity: Severity | None = None
    atoms: tuple[Hashable, ...] = ()
    of: Key | None = None
    search: Search | None = None
    also: tuple[tuple[Key, Search], ...] = ()
    pairs: tuple[Hashable, ...] = ()


@dataclass(frozen=True)
class Rule:
    """One rule: its id, how bad a breach is, what it asks for, how to mend it, and where the demand comes from.

    scope: whether a breach belongs to a search-space entry, to a key, or to no key in particular. reads: the fields
    that decide it, so that it is known to be old where a fault beside them kept the base's key from being judged.
    """

    id: str
    severity: Severity
    what: str
    fix: str
    source: str
    find: Callable[[Subject], Iterable[Hit]]
    scope: Literal["search", "key", "all"] = "key"
    reads: tuple[str, ...] = ()
    needs_runners: bool = False

    def findings(self, subject: Subject) -> Iterable[Found]:
        """Yield the breaches of this rule."""
        for hit in self.find(subject):
            finding = LintFinding(
                rule=self.id, severity=hit.severity or self.severity, key=hit.key, where=hit.where,
                message=f"{hit.key}: {hit.message}" if hit.key else hit.message,
                allowed=hit.allowed, fix=hit.fix or self.fix, evidence=hit.evidence,
            )  # fmt: skip
            pairs = ((hit.of, hit.search),) if hit.of else ()
            places = tuple(Place(key.written, search.path if search else ()) for key, search in (*pairs, *hit.also))
            yield Found(finding, hit.atoms, self.scope, places, self.reads, hit.pairs)
