"""The matrix: master keys expanded to points, in file order."""

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Literal

from prony.base.errors import ConfigError, PlanError
from prony.base.model import Frozen
from prony.spec.dram import DramBudget
from prony.spec.entries import MultiAgenticEntry, MultiFixedEntry, SingleAgenticEntry, SingleFixedEntry
from prony.spec.evals import EvalMode, mark
from prony.spec.master import MasterConfig, MasterKey
from prony.spec.point import AgenticCoding, FixedSeqLen, KvOffload, Point, RolePool, Router, Workload
from prony.spec.runners import RunnerLabel, Runners

SearchEntry = SingleFixedEntry | MultiFixedEntry | SingleAgenticEntry | MultiAgenticEntry


class Wanted(Frozen):
    """What narrows an expansion; None narrows nothing. Every filter drops, none changes a value.

    runners: globs over labels. nodes: globs over the nodes of a label; each point is repeated on every node that
    matches. min_conc, max_conc: bounds that are themselves allowed.
    """

    runners: tuple[str, ...] | None = None
    nodes: tuple[str, ...] | None = None
    scenarios: tuple[str, ...] | None = None
    min_conc: int | None = None
    max_conc: int | None = None
    evals: EvalMode = "default"

    def allows(self, concurrency: int) -> bool:
        """Whether a concurrency is within the bounds."""
        return (self.min_conc is None or concurrency >= self.min_conc) and (
            self.max_conc is None or concurrency <= self.max_conc
        )


EVERYTHING = Wanted()
Unlisted = Literal["refuse", "note"]


class Matrix(Frozen):
    """Expanded points; keys that gave none (with the reason); and notes about points that stood more than once."""

    points: tuple[Point, ...]
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def select(master: MasterConfig, patterns: Sequence[str] | None) -> tuple[MasterKey, ...]:
    """Return the keys that the patterns name (`*`, `?`, `[…]` are globs), in order of first mention; None is all.

    Raises ConfigError for a pattern that names nothing.
    """
    if patterns is None:
        return master.keys
    chosen: dict[str, MasterKey] = {}
    for pattern in patterns:
        hits = [item for item in master.keys if fnmatchcase(item.key, pattern)]
        if not hits:
            raise _unknown_key(master, pattern)
        chosen.update({item.key: item for item in hits if item.key not in chosen})
    return tuple(chosen.values())


def _unknown_key(master: MasterConfig, pattern: str) -> ConfigError:
    names = [item.key for item in master.keys]
    close = difflib.get_close_matches(pattern, names, n=3)
    shown = ", ".join(close or names[:12]) + ("" if close or len(names) <= 12 else f", … ({len(names)} keys)")
    return ConfigError(f"--keys {pattern}: matches no key of the config", allowed=shown, fix="see `prony matrix list`")


def expand(
    keys: Sequence[MasterKey], runners: Runners, wanted: Wanted = EVERYTHING, *, unlisted: Unlisted = "refuse"
) -> Matrix:
    """Expand keys to points, equal ones once, with evals marked as `evals.mark` says.

    unlisted: `note` expands keys whose runner no label lists (to look at, not to run) and says so.
    Raises ConfigError for an unknown runner label and what cannot fit, PlanError when nothing is left.
    """
    _check_filters(keys, runners, wanted)
    points: list[Point] = []
    left_out: list[str] = []
    notes: list[str] = []
    budget = DramBudget(runners)
    for item in keys:
        label = _label(item, runners, unlisted, notes)
        nodes = _nodes(label, wanted)
        try:
            found = [point for point in _points(item, budget, wanted) if nodes]
            _check_size(item, label, found)
        except ConfigError as error:
            if unlisted == "refuse":
                raise
            left_out.append(error.message)
            continue
        notes += _doubles(item, found)
        points += [point if point.runner == node else point.model_copy(update={"runner": node})
                   for point in dict.fromkeys(found) for node in nodes]  # fmt: skip
        if not found:
            left_out.append(f"{item.key}: {'no points' if nodes else 'no such runner or node'}")
    if not points:
        names = ", ".join(left_out) or "the selection is empty"
        raise PlanError(f"nothing to run: {names}", fix="choose other keys with --keys, or fewer filters")
    return Matrix(points=mark(points, wanted.evals), left_out=tuple(left_out), notes=tuple(notes))


def _label(item: MasterKey, runners: Runners, unlisted: Unlisted, notes: list[str]) -> RunnerLabel:
    try:
        return runners.label(item.entry.runner, f"{item.where} {item.key}")
    except ConfigError as error:
        if unlisted == "refuse":
            raise
        notes.append(error.message)
        return RunnerLabel(name=item.entry.runner, nodes=(), where=item.where)


def _doubles(item: MasterKey, found: Sequence[Point]) -> Iterator[str]:
    for point, count in Counter(found).items():
        if count > 1:
            yield f"{point.label} ({point.topology.label}) stands {count} times in {item.where}; kept once"


def _check_filters(keys: Sequence[MasterKey], runners: Runners, wanted: Wanted) -> None:
    """Refuse a pattern that no runner label (those of the keys too, listed or not) and no node has."""
    labels = {label.name for label in runners.labels} | {item.entry.runner for item in keys}
    nodes = {node for label in runners.labels for node in label.nodes}
    for what, patterns, names in (("runner", wanted.runners, labels), ("node", wanted.nodes, nodes)):
        for pattern in patterns or ():
            if not any(fnmatchcase(name, pattern) for name in names):
                near = difflib.get_close_matches(pattern, sorted(names), n=3) or sorted(names)
                raise ConfigError(
                    f"'{pattern}' matches no {what} of {runners.file}",
                    allowed=", ".join(near),
                    fix=f"name a {what} that is there, or drop the filter",
                )


def _nodes(label: RunnerLabel, wanted: Wanted) -> list[str]:
    """Return what runs a key: its label, or those of the label's nodes that are asked for."""
    if wanted.runners is not None and not any(fnmatchcase(label.name, pattern) for pattern in wanted.runners):
        return []
    if wanted.nodes is None:
        return [label.name]
    return [node for node in label.nodes if any(fnmatchcase(node, pattern) for pattern in wanted.nodes)]


def _check_size(item: MasterKey, label: RunnerLabel, points: Sequence[Point]) -> None:
    """Refuse what cannot fit: on one node, or on the nodes that an aggregated entry names, no more devices than there
    are; and requests that nobody serves."""
    for point in points:
        pools = point.topology.pools
        if any(pool.replicas < 1 for pool in pools):
            raise ConfigError(f"{item.where} {item.key}: no prefill workers", fix="give 'num-worker' of at least 1")
        nodes = pools[0].nodes if item.entry.multinode else 1
        if nodes is None or label.hardware is None:
            continue
        there = nodes * label.hardware.gpus_per_node
        if point.topology.gpus > there:
            what = "a node of" if nodes == 1 else f"{nodes} nodes of"
            raise ConfigError(
                f"{item.where} {item.key}: {point.topology.label} needs {point.topology.gpus} devices, "
                f"{what} runner '{label.name}' {'has' if nodes == 1 else 'have'} {there} ({label.where})",
                fix="lower tp, pp or pcp-size, or use another runner",
            )


def _points(item: MasterKey, budget: DramBudget, wanted: Wanted) -> Iterator[Point]:
    scenarios = item.entry.scenarios
    asked = wanted.scenarios
    if asked is None or "fixed-seq-len" in asked:
        for fixed in scenarios.fixed_seq_len or ():
            for search in fixed.search_space:
                yield from _entry_points(item, search, FixedSeqLen(isl=fixed.isl, osl=fixed.osl), wanted)
    if asked is None or "agentic-coding" in asked:
        for agentic in scenarios.agentic_coding or ():
            for entry in agentic.search_space:
                gigabytes = _dram_gb(item, entry, agentic.dram_utilization, budget)
                yield from _entry_points(item, entry, AgenticCoding(), wanted, gigabytes)


def _dram_gb(
    item: MasterKey, search: SingleAgenticEntry | MultiAgenticEntry, utilization: float | None, budget: DramBudget
) -> int:
    if search.kv_offloading != "dram" or utilization is None:
        return 0
    pool = search.topology().pools[0]
    rule = budget.multi if item.entry.multinode else budget.single
    try:
        return rule(item.entry.runner, pool.tp * pool.pp * pool.pcp, utilization)
    except ConfigError as error:
        raise ConfigError(f"{item.where} {item.key}: {error.message}", allowed=error.allowed, fix=error.fix) from None


def _entry_points(
    item: MasterKey, search: SearchEntry, workload: Workload, wanted: Wanted, cpu_dram_gb: int = 0
) -> Iterator[Point]:
    entry = item.entry
    router = search.router or entry.router
    transfer = getattr(search, "kv_p2p_transfer", None) or getattr(entry, "kv_p2p_transfer", None)
    offload = search.offload() if isinstance(search, SingleAgenticEntry | MultiAgenticEntry) else KvOffload()
    first = Point(
        config_key=item.key, image=entry.image, model=entry.model, model_prefix=entry.model_prefix,
        precision=entry.precision, framework=entry.framework, runner=entry.runner,
        multinode=entry.multinode, disagg=entry.disagg, topology=search.topology(), workload=workload,
        concurrency=1, spec_decoding=search.spec_decoding,
        router=Router(name=router.name, version=router.version) if router else None,
        kv_transfer=transfer, kv_offload=offload, cpu_dram_gb=cpu_dram_gb,
        idle_decode=_idle(search),
    )  # fmt: skip
    for concurrency in search.concurrencies():
        if wanted.allows(concurrency):
            yield first.model_copy(update={"concurrency": concurrency})


def _idle(search: SearchEntry) -> RolePool | None:
    return search.idle_decode() if isinstance(search, MultiFixedEntry | MultiAgenticEntry) else None
