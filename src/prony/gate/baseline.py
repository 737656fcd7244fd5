"""Which findings the base has too, by what they are about and never by their words.

A finding is old where the same entry of the base has all of its faults. Entries are found again after a rename or when
two of one name swap places, and search-space entries wherever they moved. Where a schema fault kept the base's key from
being judged, a finding is old if all the fields that decide it stand there with the same values.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from functools import cache
from typing import Any

from prony.base.yamldoc import YamlMap
from prony.gate.document import CONCURRENCY, Config, Found, Place, SearchPath, search_items

_Slot = tuple[str, int, SearchPath | tuple[()]]


class Baseline:
    """The findings of a base, asked for those of its head; each of them is spent once."""

    def __init__(self, base: Config, head: Config, found: Sequence[Found]) -> None:
        self._base = base
        self._valid = {id(key.written) for key in (*base.keys, *base.shadowed)}
        self._head_names = {id(written): name for name, written in head.written}
        self._free: Counter[Hashable] = Counter(
            (item.finding.rule, atom) for item in found if item.scope == "all" for atom in item.atoms
        )
        self._pairs = Counter(
            (item.finding.rule, frozenset(id(place.written) for place in item.places), pair)
            for item in found
            for pair in item.pairs
        )
        self._named = {(item.finding.rule, item.finding.key) for item in found}
        self._slots: dict[_Slot, Counter[Hashable]] = {}
        for item in found:
            if item.scope != "all":
                self._slots.setdefault(_slot(item, item.places[0]), Counter()).update(item.atoms)
        self._entry = cache(self._find_entry)
        self._aligned = cache(self._align)

    def known(self, found: Sequence[Found]) -> set[Found]:
        """Return the findings of the head that the base has too."""
        # A key that had a finding keeps it, before another key that asks for the same may claim it.
        order = sorted(found, key=lambda item: (item.finding.rule, item.finding.key) not in self._named)
        return {item for item in order if self._spend(item) or self._spend_pairs(item) or self._undecided(item)}

    def _spend(self, item: Found) -> bool:
        if item.scope == "all":
            wanted: Counter[Hashable] = Counter((item.finding.rule, atom) for atom in item.atoms)
            slot = self._free
        else:
            before = self._before(item.places[0], item.scope)
            if before is None:
                return False
            wanted, slot = Counter(item.atoms), self._slots.get(_slot(item, before), Counter())
        if not wanted <= slot:
            return False
        slot.subtract(wanted)
        return True

    def _spend_pairs(self, item: Found) -> bool:
        """Whether the same entries were at fault with each other, as where all of them get the same new image."""
        befores = frozenset(id(self._entry(_Same(place.written))) for place in item.places)
        wanted = Counter((item.finding.rule, befores, pair) for pair in item.pairs)
        if not wanted or not wanted <= self._pairs:
            return False
        self._pairs.subtract(wanted)
        return True

    def _before(self, place: Place, scope: str) -> Place | None:
        """Return the place at the base that a place of the head has come from."""
        entry = self._entry(_Same(place.written))
        if entry is None or scope != "search" or not place.path:
            return None if entry is None else Place(entry)
        path = self._aligned(_Same(place.written), _Same(entry)).get(place.path)
        return None if path is None else Place(entry, path)

    def _find_entry(self, same: "_Same") -> YamlMap | None:
        """Return the entry of the base: of the same name, else an equal one whose name is gone."""
        name = self._head_names.get(id(same.value))
        namesakes = [written for other, written in self._base.written if other == name]
        if namesakes:
            equal = [written for written in namesakes if written == same.value]
            files = [written for written in namesakes if written.file == same.value.file]
            return (equal or files or namesakes)[0]
        left = set(self._head_names.values())
        gone = (written for other, written in self._base.written if other not in left)
        return next((written for written in gone if written == same.value), None)

    def _align(self, head: "_Same", base: "_Same") -> dict[SearchPath, SearchPath]:
        """Pair search-space entries: equal ones, then those of equal settings, of equal concurrencies, of equal place.

        Of several alike, those at the same place first.
        """
        new, old = search_items(head.value), search_items(base.value)
        pairs: dict[SearchPath, SearchPath] = {}
        traits: tuple[Callable[[SearchPath, Any], object], ...] = (
            lambda path, entry: (path, entry),
            lambda path, entry: (path[0], entry),
            lambda path, entry: (path[0], _without(entry[1], CONCURRENCY)),
            lambda path, entry: (path[0], restrict(entry[1], CONCURRENCY)),
            lambda path, _: path,
        )
        for trait in traits:
            waiting: dict[str, list[SearchPath]] = {}
            for path in old.keys() - set(pairs.values()):
                waiting.setdefault(_text(trait(path, old[path])), []).append(path)
            for path in [path for path in new if path not in pairs]:
                partners = waiting.get(_text(trait(path, new[path])), [])
                if partners:
                    pairs[path] = min(partners)
                    partners.remove(min(partners))
        return pairs

    def _undecided(self, item: Found) -> bool:
        """Whether a fault hid a finding at the base: nothing that decides it has changed since."""
        befores = [self._entry(_Same(place.written)) for place in item.places]
        if not befores or not item.reads or all(before is None or id(before) in self._valid for before in befores):
            return False
        return all(
            before is not None and self._equal_inputs(item, place, before)
            for place, before in zip(item.places, befores, strict=True)
        )

    def _equal_inputs(self, item: Found, place: Place, before: YamlMap) -> bool:
        now = _inputs(place, item.reads)
        if item.finding.rule == "schema" and not any(now):
            return False  # its words name no field that is written: nobody knows what decides it
        if not place.path:
            return now == _inputs(Place(before), item.reads)
        if item.scope == "search":
            then = self._before(place, item.scope)
            return then is not None and now == _inputs(then, item.reads)
        paths = [path for path in search_items(before) if path[0] == place.path[0]]
        return any(now == _inputs(Place(before, path), item.reads) for path in paths)


class _Same:
    """A value that equals itself alone, for memory by identity; it is kept alive, so that no other takes its id."""

    def __init__(self, value: YamlMap) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _slot(item: Found, place: Place) -> _Slot:
    return (item.finding.rule, id(place.written), place.path if item.scope == "search" else ())


def _inputs(place: Place, reads: Collection[str]) -> tuple[Any, ...]:
    """Return the values of the fields that decide a finding; None for those parts that have none of them."""
    if not place.path:
        return (restrict(place.written, reads),)
    item, search = search_items(place.written).get(place.path, ({}, {}))
    inner = restrict(search, reads)
    outer = restrict(_without(item, ("search-space",)), reads)
    return (restrict(_without(place.written, ("scenarios",)), reads), outer, inner)


def restrict(value: Any, names: Collection[str]) -> Any:
    """Return a YAML value with only the named fields, at any depth; None where it has none of them."""
    if isinstance(value, dict):
        pairs = ((name.replace("_", "-"), inner) for name, inner in value.items())
        kept = {name: inner if name in names else restrict(inner, names) for name, inner in pairs}
        return {name: inner for name, inner in kept.items() if inner is not None} or None
    if isinstance(value, list):
        return [inner for inner in (restrict(item, names) for item in value) if inner is not None] or None
    return None


def _without(value: Any, names: Collection[str]) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: inner for name, inner in value.items() if name.replace("_", "-") not in names}
