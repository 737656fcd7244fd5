"""What varies over the points of a key, told by their fields: constants, expressions, rules, literals for the rest."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

from prony.recipe.when import NUMBER_NAMES, fields, numbers
from prony.spec.point import Point

Path = tuple[str, ...]
Leaves = Mapping[Path, Any]
Plain = dict[str, Any]

# What a launch may depend on, in the order in which people would say it.
CONDITIONS = ("spec_decoding", "dp_attention", "kv_offload", "kv_offload_backend", "conc", "isl", "osl", "tp", "ep")
_NUMBERS = (*(name for name in CONDITIONS if name in NUMBER_NAMES), *sorted(NUMBER_NAMES - {*CONDITIONS}))
_FACTORS = (2, 3, 4, 8, 10, 16)
_ABSENT = object()


@dataclass(frozen=True)
class Factored:
    """A recipe's base and rules, and which leaves only literal rules explain."""

    base: Leaves
    rules: tuple[tuple[Plain, Leaves], ...]
    literal: tuple[str, ...]


def factor(points: Sequence[Point], found: Sequence[Leaves]) -> Factored:
    """Return base and rules that give every point what was found there."""
    base: dict[Path, Any] = {}
    rules: dict[str, tuple[Plain, dict[Path, Any]]] = {}
    literal = []
    for path in sorted({path for leaves in found for path in leaves}):
        values = [leaves.get(path, _ABSENT) for leaves in found]
        common, exceptions, is_literal = _explained(points, values)
        if common is not _ABSENT:
            base[path] = common
        for when, value in exceptions:
            rule = rules.setdefault(repr(sorted(when.items(), key=str)), (when, {}))
            rule[1][path] = None if value is _ABSENT else value
        if is_literal:
            literal.append(".".join(path))
    return Factored(base, tuple(rules.values()), tuple(literal))


def _explained(points: Sequence[Point], values: Sequence[Any]) -> tuple[Any, list[tuple[Plain, Any]], bool]:
    """Return what stands in the base, what rules change, and whether they name points one by one."""
    if all(value == values[0] for value in values):
        return values[0], [], False
    expression = _expression(points, values)
    if expression is not None:
        return expression, [], False
    attempts = chain(
        (_by_fields(points, values, (name,)) for name in CONDITIONS),
        (_expression_by_field(points, values, name) for name in CONDITIONS if name not in NUMBER_NAMES),
        (_by_fields(points, values, names) for names in combinations(CONDITIONS, 2)),
    )
    for split in attempts:
        if split is not None:
            return *split, False
    return *_literal(points, values), True


def _expression(points: Sequence[Point], values: Sequence[Any]) -> tuple[str] | None:
    """Return an expression over the points' numbers that gives every value, None when no candidate does."""
    words = [value[0] if isinstance(value, tuple) and len(value) == 1 else value for value in values]
    if not all(isinstance(word, str) and word.isdigit() for word in words):
        return None
    wanted = [int(word) for word in words]
    known = [numbers(point) for point in points]
    names = [name for name in _NUMBERS if all(name in one for one in known)]
    for text, given in _candidates(known, names, wanted):
        if given == wanted:
            return (f"${{{text}}}",)
    return None


def _expression_by_field(
    points: Sequence[Point], values: Sequence[Any], name: str
) -> tuple[Any, list[tuple[Plain, Any]]] | None:
    """Return an expression or a constant for each value of a field: the one of most points is the base."""
    groups: dict[Any, list[int]] = {}
    for index, point in enumerate(points):
        groups.setdefault(fields(point).get(name), []).append(index)
    if len(groups) < 2 or None in groups:
        return None
    told: dict[Any, Any] = {}
    for at, members in groups.items():
        inside = [values[index] for index in members]
        told[at] = inside[0] if len(set(map(repr, inside))) == 1 else None
        told[at] = told[at] or _expression([points[index] for index in members], inside)
        if told[at] is None:
            return None
    base = max(groups, key=lambda at: len(groups[at]))
    return told[base], [({name: at}, value) for at, value in told.items() if at != base]


def _candidates(
    known: Sequence[Mapping[str, int]], names: Sequence[str], wanted: Sequence[int]
) -> Iterator[tuple[str, list[int]]]:
    columns = {name: [one[name] for one in known] for name in names}
    for name, column in columns.items():
        yield name, column
        for factor_ in _FACTORS:
            yield f"{factor_} * {name}", [factor_ * value for value in column]
            yield f"{name} // {factor_}", [value // factor_ for value in column]
        yield f"max({name}, {min(wanted)})", [max(value, min(wanted)) for value in column]
        yield f"min({name}, {max(wanted)})", [min(value, max(wanted)) for value in column]
        for factor_ in _FACTORS:
            most = max(wanted)
            yield f"min({factor_} * {name}, {most})", [min(factor_ * value, most) for value in column]
    for first, second in combinations(names, 2):
        total = [a + b for a, b in zip(columns[first], columns[second], strict=True)]
        rest = wanted[0] - total[0]
        if rest >= 0:
            yield f"{first} + {second}" + (f" + {rest}" if rest else ""), [value + rest for value in total]
        yield f"{first} * {second}", [a * b for a, b in zip(columns[first], columns[second], strict=True)]
    for name, column in columns.items():
        rest = wanted[0] - column[0]
        if rest > 0:
            yield f"{name} + {rest}", [value + rest for value in column]


def _by_fields(
    points: Sequence[Point], values: Sequence[Any], names: Sequence[str]
) -> tuple[Any, list[tuple[Plain, Any]]] | None:
    """Return base and rules when the values are a function of some fields: the commonest value is the base."""
    table: dict[tuple[Any, ...], Any] = {}
    for point, value in zip(points, values, strict=True):
        have = fields(point)
        at = tuple(have.get(name) for name in names)
        if at in table and table[at] != value:
            return None
        table[at] = value
    if len(table) < 2 or (len(names) > 1 and len(table) > 6):
        return None
    common = _commonest(values)
    if len(names) == 1:
        return common, list(_single(names[0], {at[0]: value for at, value in table.items()}, common))
    exceptions = [(dict(zip(names, at, strict=True)), value) for at, value in table.items() if value != common]
    return common, [(when, value) for when, value in exceptions if None not in when.values()]


def _commonest(values: Sequence[Any]) -> Any:
    """Return the commonest value; what is there rather than what is not."""
    keys = Counter("" if value is _ABSENT else repr(value) for value in values)
    best = max(keys, key=lambda key: (keys[key], bool(key)))
    return next(value for value in values if ("" if value is _ABSENT else repr(value)) == best)


def _single(name: str, table: Mapping[Any, Any], common: Any) -> Iterator[tuple[Plain, Any]]:
    """Yield one rule per value: a comparison where a number's values lie on one side, else their list."""
    groups: dict[str, tuple[list[Any], Any]] = {}
    for at, value in table.items():
        if value is not common and value != common and at is not None:
            groups.setdefault("" if value is _ABSENT else repr(value), ([], value))[0].append(at)
    for members, value in groups.values():
        others = [at for at in table if at not in members]
        if name in NUMBER_NAMES and others and min(members) > max(others):
            yield {name: f">={min(members)}"}, value
        elif name in NUMBER_NAMES and others and max(members) < min(others):
            yield {name: f"<={max(members)}"}, value
        else:
            yield {name: sorted(members) if len(members) > 1 else members[0]}, value


def _literal(points: Sequence[Point], values: Sequence[Any]) -> tuple[Any, list[tuple[Plain, Any]]]:
    """Return the commonest value, and a rule for each point that has another."""
    common = _commonest(values)
    rules = []
    for point, value in zip(points, values, strict=True):
        if value is not common and value != common:
            have = fields(point)
            rules.append(({name: have[name] for name in CONDITIONS if have.get(name) is not None}, value))
    return common, rules
