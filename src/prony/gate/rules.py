"""The lint rules that look at one key or one search-space entry at a time."""

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

from prony.base.errors import ConfigError
from prony.gate.document import Key, Search
from prony.gate.hardware import gpus_per_node
from prony.gate.policy import LENGTHS, PolicyRow, scenario_name
from prony.gate.rule import Hit, Subject
from prony.spec.dram import DramBudget

RUN_LENGTHS = ("1k1k", "8k1k")
_FEW = 5
_MTP_WORD = re.compile(r"(?<![a-z0-9])mtp\d*(?![a-z0-9])", re.IGNORECASE)
_HAZARD = re.compile(r"[_/\s]")


def per_key(find: Callable[[Key, Subject], Iterator[Hit]]) -> Callable[[Subject], Iterator[Hit]]:
    """Turn a function over one key into a rule over all."""

    def every(subject: Subject) -> Iterator[Hit]:
        for key in subject.config.keys:
            yield from (replace(hit, of=key) for hit in find(key, subject))

    return every


def per_search(find: Callable[[Key, Search, Subject], Iterator[Hit]]) -> Callable[[Subject], Iterator[Hit]]:
    """Turn a function over one search-space entry into a rule over all."""

    def every(subject: Subject) -> Iterator[Hit]:
        for key in subject.config.keys:
            for search in key.searches:
                yield from (replace(hit, of=key, search=search) for hit in find(key, search, subject))

    return every


def unknown_runner(key: Key, subject: Subject) -> Iterator[Hit]:
    """The runner must be a label with nodes behind it."""
    runners, name = subject.config.runners, key.entry.runner
    labels = [label.name for label in runners.labels]
    if name in labels:
        return
    hardware_only = any(item.name == name for item in runners.without_nodes)
    message = f"runner '{name}' has hardware facts but no nodes" if hardware_only else f"runner '{name}' is not a label"
    near = runners.near(name)
    fix = f"write '{near[0]}', if that is meant" if near else ""
    allowed = ", ".join(near) if near else _some(name, labels, runners.file)
    yield Hit(key.name, key.at("runner"), message, allowed=allowed, fix=fix, atoms=(name, hardware_only))


def _some(name: str, labels: list[str], file: str) -> str:
    """Say which labels there are: all where they are few, else how many, the most alike, and where the others are."""
    if len(labels) <= _FEW:
        return ", ".join(labels) or f"none: {file} has no labels"
    alike = difflib.get_close_matches(name, labels, n=3, cutoff=0.0)
    return f"{len(labels)} labels, the most alike: {', '.join(alike)}; all: 'labels:' of {file}"


def unsorted_concurrency(key: Key, search: Search, _: Subject) -> Iterator[Hit]:
    """A list of concurrencies rises."""
    values = search.entry.conc_list or ()
    if list(values) != sorted(values):
        rising = ", ".join(str(value) for value in sorted(set(values)))
        message = f"conc-list {list(values)} does not rise"
        low = tuple(value for index, value in enumerate(values) if value < max(values[:index], default=0))
        yield Hit(key.name, search.where, message, fix=f"write conc-list: [{rising}]", atoms=low)


def duplicate_concurrency(key: Key, search: Search, _: Subject) -> Iterator[Hit]:
    """A list of concurrencies names each once."""
    values = search.entry.conc_list or ()
    again = sorted(value for value, count in Counter(values).items() if count > 1)
    if again:
        once = ", ".join(str(value) for value in dict.fromkeys(values))
        message = f"conc-list {list(values)} has {', '.join(map(str, again))} more than once: the same job twice"
        extra = tuple((Counter(values) - Counter(set(values))).elements())
        yield Hit(key.name, search.where, message, fix=f"write conc-list: [{once}]", atoms=extra)


def small_steps(key: Key, search: Search, _: Subject) -> Iterator[Hit]:
    """Neighbouring concurrencies are at least 2 apart; 1 to 2 is fine, since it doubles the load."""
    values = sorted(set(search.entry.concurrencies()))
    close = tuple((low, high) for low, high in pairwise(values) if high - low < 2 and high < 2 * low)
    if close:
        shown = ", ".join(f"{low} → {high}" for low, high in close)
        yield Hit(key.name, search.where, f"concurrencies {values} have steps of 1 ({shown})", atoms=close)


def mtp_size_disagrees(key: Key, search: Search, _: Subject) -> Iterator[Hit]:
    """spec-decoding says mtp exactly where DECODE_MTP_SIZE is above 0."""
    for pool in search.entry.topology().pools:
        for setting in pool.settings:
            if setting.name != "DECODE_MTP_SIZE":
                continue
            size, asked = setting.value.strip(), search.entry.spec_decoding
            if not size.isdecimal():
                fault, fix = "is not a whole number", "write DECODE_MTP_SIZE=0, or the draft length"
            elif (int(size) > 0) == (asked != "none"):
                continue
            elif asked == "none":
                fault, fix = "drafts tokens", "write spec-decoding: mtp, or DECODE_MTP_SIZE=0"
            else:
                fault, fix = "drafts none", "write the draft length into DECODE_MTP_SIZE, or spec-decoding: none"
            message = f"spec-decoding is {asked}, DECODE_MTP_SIZE={size} of {pool.role} {fault}"
            yield Hit(key.name, search.where, message, fix=fix, atoms=((pool.role, size, asked),))


def suffix_without_mtp(key: Key, _: Subject) -> Iterator[Hit]:
    """A key with the word mtp in its name has an entry with speculative decoding. Other keys may have it too."""
    word = _MTP_WORD.search(key.name)
    if word and key.searches and all(s.entry.spec_decoding == "none" for s in key.searches):
        message = f"the name says '{word[0]}', and no search-space entry has spec-decoding: mtp"
        yield Hit(key.name, key.where, message, atoms=("mtp",))


def deprecated(key: Key, subject: Subject) -> Iterator[Hit]:
    """Nothing runs that the policy has retired; what is only announced warns."""
    told = set()
    for search in key.searches:
        row = next((row for row in subject.policy.rows if row.covers(key, search)), None)
        if row is None or (row, scenario_name(search)) in told:
            continue
        told.add((row, scenario_name(search)))
        yield _deprecated(key, search, row)


def _deprecated(key: Key, search: Search, row: PolicyRow) -> Hit:
    enacted = row.state == "enacted"
    arm = " without speculative decoding" if row.spec_decoding == "none" else ""
    state = f"is deprecated since {row.since}" if enacted else f"is to end (announced for {row.since}), not enacted yet"
    return Hit(
        key.name, search.where, f"{key.entry.model_prefix} {key.entry.precision} {scenario_name(search)}{arm} {state}",
        allowed=row.instead, severity="error" if enacted else "warn", evidence=row.source,
        fix=f"use {row.instead}" if enacted else f"plan for {row.instead}; nothing must change today",
        atoms=((row, scenario_name(search), key.entry.model_prefix, key.entry.precision),), search=search,
    )  # fmt: skip


def odd_lengths(key: Key, _: Subject) -> Iterator[Hit]:
    """Fixed lengths are those of a job family."""
    odd = {(s.isl, s.osl): s for s in key.searches if s.isl is not None and scenario_name(s) not in RUN_LENGTHS}
    for (isl, osl), search in odd.items():
        where = search.where.model_copy(update={"line": search.item_line})
        message = f"isl {isl}, osl {osl} belongs to no job family: its bucket is filled and never runs"
        yield Hit(key.name, where, message, allowed=_lengths_allowed(), atoms=((isl, osl),), search=search)


def _lengths_allowed() -> str:
    return ", ".join(f"{isl}/{osl}" for (isl, osl), name in LENGTHS.items() if name in RUN_LENGTHS)


def topology_too_large(key: Key, search: Search, subject: Subject) -> Iterator[Hit]:
    """On one node, or on the nodes that an aggregated entry names, there are enough devices."""
    per_node = gpus_per_node(subject.config.runners, key.entry.runner)
    topology = search.entry.topology()
    nodes = topology.pools[0].nodes if key.entry.multinode and topology.pools else 1
    if nodes is None or per_node is None or topology.gpus <= nodes * per_node:
        return
    there = f"a node of '{key.entry.runner}' has" if nodes == 1 else f"{nodes} nodes of '{key.entry.runner}' have"
    message = f"{topology.label} needs {topology.gpus} devices, {there} {nodes * per_node}"
    allowed = f"replicas * tp * pp * pcp-size up to {nodes * per_node}"
    yield Hit(key.name, search.where, message, allowed=allowed, atoms=((topology.gpus, nodes * per_node),))


def dram_budget(key: Key, search: Search, subject: Subject) -> Iterator[Hit]:
    """A share of the host memory can be computed wherever KV blocks go to DRAM."""
    runners, name = subject.config.runners, key.entry.runner
    if search.scenario != "agentic-coding" or getattr(search.entry, "kv_offloading", None) != "dram":
        return
    if name not in {label.name for label in runners.labels}:  # said once, by runner-unknown
        return
    dram, pools = DramBudget(runners), search.entry.topology().pools
    budget = dram.multi if key.entry.multinode else dram.single
    try:
        for pool in pools[:1]:
            budget(name, pool.tp * pool.pp * pool.pcp, search.dram_utilization or 1)
    except ConfigError as error:
        message = f"no DRAM budget: {error.message[:1].lower()}{error.message[1:]}"
        yield Hit(key.name, search.where, message, allowed=error.allowed, fix=error.fix, atoms=(message,))


def experiment_name(key: Key, _: Subject) -> Iterator[Hit]:
    """A model-prefix survives being cut out of an experiment's name, and being part of a file's."""
    prefix = key.entry.model_prefix
    if match := _HAZARD.search(prefix):
        message = f"model-prefix '{prefix}' contains {match[0]!r}; launchers cut it at the first '_' of the exp-name"
        fix = f"write '{_HAZARD.sub('-', prefix)}'"
        allowed = "letters, digits, '.', '-'"
        yield Hit(key.name, key.at("model-prefix"), message, allowed=allowed, fix=fix, atoms=(prefix,))
