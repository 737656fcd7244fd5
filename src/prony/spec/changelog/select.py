"""From added entries to the rows that run: keys and wildcards, overlaps, evals, append-only deltas."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from prony.base.errors import ConfigError
from prony.spec.changelog.appendonly import check_scope, delta
from prony.spec.changelog.batch import Modifiers, check_batch, matching
from prony.spec.changelog.batch import matches as matches
from prony.spec.changelog.buckets import Selection, trim
from prony.spec.changelog.entry import SCENARIOS, ChangelogEntry, Scenario
from prony.spec.compat.evals import EvalMode
from prony.spec.compat.expand import JsonRow, Limits
from prony.spec.compat.generate import Catalogue, TestConfig, test_config

Seen = dict[str, set[Scenario]]


@dataclass(frozen=True)
class Masters:
    """The configs and runners of head, and those of base, which append-only entries are measured against.

    base: what is wrong with them instead, where they cannot be read: only append-only entries need them.
    """

    head: Catalogue
    base: Catalogue | ConfigError

    def before(self) -> Catalogue:
        """Return the configs of base. Raises ConfigError when they cannot be read."""
        if isinstance(self.base, ConfigError):
            raise self.base
        return self.base


@dataclass(frozen=True)
class Ask:
    """One generator call: keys of one entry and the scenarios that no earlier entry asked for."""

    entry: ChangelogEntry
    keys: tuple[str, ...]
    scenarios: tuple[Scenario, ...]
    evals: EvalMode


@dataclass
class _Coverage:
    throughput: Seen = field(default_factory=lambda: defaultdict(set))
    evals: Seen = field(default_factory=lambda: defaultdict(set))


def select(entries: Sequence[ChangelogEntry], masters: Masters, modifiers: Modifiers) -> Selection:
    """Return the rows that a change runs. Raises ConfigError where an entry asks for what cannot be."""
    asks = plan(entries, masters, modifiers)
    throughput: list[JsonRow] = []
    evals: list[JsonRow] = []
    for ask in asks:
        (throughput if ask.evals == "none" else evals).extend(rows_of(ask, masters))
    return Selection(tuple(entries), tuple(trim(throughput) if modifiers.trim_conc else throughput), tuple(evals))


def plan(entries: Sequence[ChangelogEntry], masters: Masters, modifiers: Modifiers) -> tuple[Ask, ...]:
    """Return the generator calls, entries with all-evals first. Raises ConfigError."""
    check_batch(entries, modifiers)
    resolved = [(entry, matching(entry.config_keys, list(masters.head.entries))) for entry in entries]
    if any(entry.append_only for entry in entries):
        wanted: Seen = defaultdict(set)
        for entry, keys in resolved:
            for key in keys:
                wanted[key].update(entry.scenarios)
        check_scope(masters.before(), masters.head, wanted)
    coverage = _Coverage()
    resolved.sort(key=lambda pair: not pair[0].all_evals)
    return tuple(ask for entry, keys in resolved for ask in _asks(entry, keys, modifiers, coverage))


def _asks(entry: ChangelogEntry, keys: Sequence[str], modifiers: Modifiers, coverage: _Coverage) -> Iterator[Ask]:
    """Yield the calls of one entry: throughput first, then evals, each without what earlier entries took."""
    if not (modifiers.evals_only or entry.evals_only or entry.all_evals):
        for scenarios, group in _unseen(entry, keys, coverage.throughput).items():
            yield Ask(entry, tuple(group), scenarios, "none")
    if not entry.append_only:
        mode: EvalMode = "all" if modifiers.all_evals or entry.all_evals else "only"
        for scenarios, group in _unseen(entry, keys, coverage.evals).items():
            yield Ask(entry, tuple(group), scenarios, mode)


def _unseen(entry: ChangelogEntry, keys: Sequence[str], seen: Seen) -> dict[tuple[Scenario, ...], list[str]]:
    groups: dict[tuple[Scenario, ...], list[str]] = {}
    for key in keys:
        fresh = tuple(name for name in entry.scenarios if name not in seen[key])
        if fresh:
            seen[key].update(fresh)
            groups.setdefault(fresh, []).append(key)
    return groups


def rows_of(ask: Ask, masters: Masters) -> list[JsonRow]:
    """Return the rows of one call: for append-only what head has more than base."""
    limits = Limits(scenarios=None if ask.scenarios == SCENARIOS else ask.scenarios)
    wanted = TestConfig(keys=ask.keys, limits=limits, evals=ask.evals)
    rows = test_config(masters.head, wanted)
    if ask.entry.append_only:
        return delta(test_config(masters.before(), wanted), rows)
    return rows if ask.evals == "none" else [row for row in rows if _deep_enough(row, ask.entry.eval_min_prefill_ep)]


def _deep_enough(row: JsonRow, least: int | None) -> bool:
    """Whether a row's prefill spreads over enough experts; rows of one node always do."""
    prefill = row.get("prefill")
    if least is None or not isinstance(prefill, dict):
        return True
    try:
        return int(prefill.get("ep", 1)) >= least
    except (TypeError, ValueError):
        return False
