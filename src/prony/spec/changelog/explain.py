"""What a change runs for one config key, and why, or why nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from prony.base.errors import ConfigError
from prony.base.units import counted
from prony.spec.changelog.batch import Modifiers, matches, near
from prony.spec.changelog.buckets import fingerprint, trim
from prony.spec.changelog.entry import SCENARIOS, ChangelogEntry, Scenario
from prony.spec.changelog.select import Ask, Masters, plan, rows_of
from prony.spec.compat.expand import JsonRow
from prony.spec.compat.generate import TestConfig, test_config

_EVAL_MARKS = ("run-eval", "eval-only", "eval-conc", "eval-all-concs")


@dataclass(frozen=True)
class Explanation:
    """The answer: how many benchmark and eval rows run, and one reason per line."""

    key: str
    benchmarks: int
    evals: int
    reasons: tuple[str, ...]


def explain_key(key: str, entries: Sequence[ChangelogEntry], masters: Masters, modifiers: Modifiers) -> Explanation:
    """Say what runs for a key under a change. Raises ConfigError where selection would."""
    known = list(masters.head.entries)
    if key not in masters.head.entries:
        message = f"'{key}' is no key of the master configs"
        raise ConfigError(message, allowed=near(key, known), fix="name a key of the master configs")
    asks = plan(entries, masters, modifiers)
    has = tuple(name for name in SCENARIOS if name in masters.head.entries[key]["scenarios"])
    mine = [ask for ask in asks if key in ask.keys]
    found = [(ask, _rows(ask, key, asks, masters, modifiers)) for ask in mine]
    reasons = [
        line for number, entry in enumerate(entries, 1) for line in _entry(number, entry, key, has, found, modifiers)
    ]
    if not mine and not any(_asked(entry, key) for entry in entries):
        reasons.append("no added entry names it, so nothing runs: entries that stood before do not run again")
    benchmarks = sum(len(rows) for ask, rows in found if ask.evals == "none")
    evals = sum(len(rows) for ask, rows in found if ask.evals != "none")
    return Explanation(key, benchmarks, evals, tuple(reasons))


def _asked(entry: ChangelogEntry, key: str) -> list[str]:
    return [name for name in entry.config_keys if matches(name, key)]


def _rows(ask: Ask, key: str, asks: Sequence[Ask], masters: Masters, modifiers: Modifiers) -> list[JsonRow]:
    """Return the rows of one call that belong to one key; evals and trimming are chosen over all keys together."""
    if ask.evals == "none":
        alone = rows_of(replace(ask, keys=(key,)), masters)
        if not modifiers.trim_conc:
            return alone
        every = [row for one in asks if one.evals == "none" for row in rows_of(one, masters)]
        kept = {_at(row) for row in trim(every)}
        return [row for row in trim(alone) if _at(row) in kept]
    own = {_unmarked(row) for row in test_config(masters.head, TestConfig(keys=(key,), evals="none"))}
    return [row for row in rows_of(ask, masters) if _unmarked(row) in own]


def _at(row: JsonRow) -> tuple[str, str]:
    """Return what tells rows apart after trimming: the configuration and its concurrencies."""
    return fingerprint(row), str(row["conc"])


def _unmarked(row: JsonRow) -> str:
    return fingerprint({name: value for name, value in row.items() if name not in _EVAL_MARKS})


def _entry(
    number: int,
    entry: ChangelogEntry,
    key: str,
    has: Sequence[Scenario],
    found: Sequence[tuple[Ask, list[JsonRow]]],
    modifiers: Modifiers,
) -> Iterator[str]:
    names = _asked(entry, key)
    if not names:
        return
    yield f"added entry {number} names it by '{names[0]}' for {_shared(entry.scenarios, has)}"
    own = [(ask, rows) for ask, rows in found if ask.entry is entry]
    benchmarks = [pair for pair in own if pair[0].evals == "none"]
    yield from _part("benchmark", benchmarks, has, _no_throughput(entry, modifiers))
    yield from _part("eval", [pair for pair in own if pair[0].evals != "none"], has, _no_evals(entry))
    if entry.append_only:
        yield "  append-only: of the points, only those that the base does not have"
    if entry.eval_min_prefill_ep is not None:
        yield f"  eval-min-prefill-ep: multi-node evals with prefill ep below {entry.eval_min_prefill_ep} are left out"
    if modifiers.trim_conc and any(rows for _, rows in benchmarks):
        yield "  --trim-conc: benchmarks at the lowest concurrency alone"


def _part(kind: str, found: Sequence[tuple[Ask, list[JsonRow]]], has: Sequence[Scenario], never: str) -> Iterator[str]:
    if never:
        yield f"  no {kind}s: {never}"
    elif not found:
        yield f"  no {kind}s: earlier entries of this change ask for them already"
    for ask, rows in found:
        what = f"{_shared(ask.scenarios, has)}: {counted(len(rows), f'{kind} row')}"
        yield f"  {what}{_concurrencies(rows)}" if rows else f"  {what} (the config has none for it)"


def _shared(asked: Sequence[Scenario], has: Sequence[Scenario]) -> str:
    """Name the scenarios that the key has; where it has none of those asked for, what was asked for."""
    return " and ".join([name for name in asked if name in has] or asked)


def _concurrencies(rows: Sequence[JsonRow]) -> str:
    values = {value for row in rows for value in (row["conc"] if isinstance(row["conc"], list) else [row["conc"]])}
    return f" at concurrency {', '.join(str(value) for value in sorted(values))}"


def _no_throughput(entry: ChangelogEntry, modifiers: Modifiers) -> str:
    if modifiers.evals_only:
        return "--evals-only"
    return "the entry is evals-only" if entry.evals_only else "the entry is all-evals" if entry.all_evals else ""


def _no_evals(entry: ChangelogEntry) -> str:
    return "append-only runs none" if entry.append_only else ""
