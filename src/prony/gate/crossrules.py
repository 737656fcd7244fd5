"""The lint rules that compare keys with each other, and the runners file with itself."""

from collections.abc import Iterator

from prony.base.finding import Where
from prony.gate.document import Key, Search
from prony.gate.hardware import node_sizes
from prony.gate.rule import Hit, Subject


def duplicate_keys(subject: Subject) -> Iterator[Hit]:
    """A key stands in one file only."""
    first: dict[str, Key] = {}
    for key in subject.config.keys:
        earlier = first.setdefault(key.name, key)
        if earlier is not key:
            message, first_at = "the key stands in another file too", f"first at {earlier.where}"
            yield Hit(key.name, key.where, message, evidence=first_at, atoms=(key.name,), of=key)


def duplicate_rows(subject: Subject) -> Iterator[Hit]:
    """Two search-space entries do not ask for the same job."""
    first: dict[tuple[object, ...], tuple[Key, Search]] = {}
    once = {key.name: key for key in reversed(subject.config.keys)}
    for key in (key for key in subject.config.keys if once[key.name] is key):
        for search in key.searches:
            again: dict[int, tuple[Key, Search]] = {}
            for conc in dict.fromkeys(search.entry.concurrencies()):
                earlier = first.setdefault((*_identity(key, search), conc), (key, search))
                if earlier[1] is not search:
                    again[conc] = earlier
            if again:
                yield _duplicate(key, search, again)


def _duplicate(key: Key, search: Search, again: dict[int, tuple[Key, Search]]) -> Hit:
    others = sorted({other.name for other, _ in again.values()} - {key.name})
    places = sorted({str(other.where) for _, other in again.values()})
    conc = ", ".join(str(value) for value in again)
    what = f"{search.scenario} {search.entry.topology().label} at concurrency {conc}"
    by = f"key {', '.join(others)}" if others else "another entry of this key"
    # A second key may be meant, as for an A/B of something that rows do not carry; their results look the same.
    return Hit(
        key.name, search.where, f"{what} is asked for by {by} too: the same point twice",
        evidence=f"first at {', '.join(places)}", severity="warn" if others else "error",
        atoms=tuple((*_identity(key, search), value, other.name == key.name) for value, (other, _) in again.items()),
        pairs=tuple((search.scenario, search.isl, search.osl, search.entry.topology(), value) for value in again),
        of=key, search=search, also=tuple({id(other): (owner, other) for owner, other in again.values()}.values()),
    )  # fmt: skip


def _identity(key: Key, search: Search) -> tuple[object, ...]:
    """All that makes a job, without its concurrency; not the key's name, which no job knows."""
    entry, asked = key.entry, search.entry
    return (
        entry.image, entry.model, entry.model_prefix, entry.precision, entry.framework, entry.runner, entry.multinode,
        entry.disagg, search.scenario, search.isl, search.osl, asked.topology(), asked.spec_decoding,
        asked.router or entry.router,
        getattr(asked, "kv_p2p_transfer", None) or getattr(entry, "kv_p2p_transfer", None),
        getattr(asked, "kv_offloading", None), getattr(asked, "kv_offload_backend", None),
        search.dram_utilization,
    )  # fmt: skip


def labels_without_hardware(subject: Subject) -> Iterator[Hit]:
    """Every node's devices are known, from its label or from another that holds it."""
    runners = subject.config.runners
    known = node_sizes(runners)
    # A key with a fault elsewhere uses its label all the same.
    used = {str(written.get("runner")) for _, written in subject.config.written}
    for label in runners.labels:
        missing = [node for node in label.nodes if node not in known]
        if label.hardware is None and missing and label.name in used:
            shown = ", ".join(missing[:4]) + (f" and {len(missing) - 4} more" if len(missing) > 4 else "")
            message = f"runner label '{label.name}' has no hardware facts for {shown}"
            where = Where(file=label.where.file, line=label.where.line)
            yield Hit("", where, message, atoms=tuple((label.name, node) for node in missing))
