"""Which points a change adds, removes, alters and renames, and how many GPU-hours it may book."""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from typing import Any

from prony.base.errors import PronyError
from prony.base.model import Frozen
from prony.gate.cost import Booking, book
from prony.gate.document import Config
from prony.spec.matrix import Wanted, expand
from prony.spec.point import Point
from prony.spec.runners import RunnerLabel, Runners

# What makes a point that point; a difference in anything else alters it.
IDENTITY = ("config_key", "workload", "topology", "concurrency", "spec_decoding", "kv_offload")


class Altered(Frozen):
    """A point before and after, and the fields in which it differs."""

    before: Point
    after: Point
    fields: tuple[str, ...]


class MatrixDiff(Frozen):
    """Points by what happened to them; bookings of what is new to run; keys that could not be expanded, with why."""

    added: tuple[Point, ...]
    removed: tuple[Point, ...]
    altered: tuple[Altered, ...]
    renamed: tuple[Altered, ...]
    unchanged: int
    booking: Booking
    not_expanded: tuple[str, ...] = ()

    @property
    def to_run(self) -> tuple[Point, ...]:
        """Points whose results the change asks for: added and altered ones."""
        return (*self.added, *(item.after for item in self.altered))


def diff(base: Config, head: Config) -> MatrixDiff:
    """Compare two configs point by point; keys that cannot be expanded on either side are left out and named."""
    invalid = _invalid(base) | _invalid(head)
    old_points, unknown_before = _expand(base, invalid)
    new_points, unknown_after = _expand(head, invalid)
    unknown = unknown_before | unknown_after  # what such a key adds or removes cannot be said
    old = [point for point in old_points if point.config_key not in unknown]
    new = [point for point in new_points if point.config_key not in unknown]
    failed = [f"{name}: not valid, see 'prony lint'" for name in sorted(invalid)] + [
        f"{name} cannot be expanded: {why}" for name, why in unknown.items()
    ]
    same = Counter(old) & Counter(new)
    gone, come = _rest(old, same), _rest(new, same)
    altered, gone, come = _pair(gone, come, _identity)
    renamed, gone, come = _pair(gone, come, _nameless)
    to_run = (*come, *(item.after for item in altered))
    return MatrixDiff(
        added=tuple(come), removed=tuple(gone), altered=tuple(altered), renamed=tuple(renamed),
        unchanged=same.total(), booking=book(to_run, head), not_expanded=tuple(failed),
    )  # fmt: skip


def _invalid(config: Config) -> set[str]:
    return set(config.names) - {key.name for key in config.keys}


def _expand(config: Config, invalid: Container[str]) -> tuple[list[Point], dict[str, str]]:
    """Expand key by key, so that one bad key hides no other; an unknown runner is lint's business.

    Returns the points, and the keys that cannot be expanded with the reason.
    """
    points: list[Point] = []
    failed: dict[str, str] = {}
    runners = _with_all_labels(config)
    for key in config.master_keys:
        if key.key in invalid:
            continue
        try:
            points += expand((key,), runners, Wanted(evals="none")).points
        except PronyError as error:
            failed[key.key] = error.message
    return points, failed


def _with_all_labels(config: Config) -> Runners:
    known = {label.name for label in config.runners.labels}
    missing = {key.entry.runner: key for key in config.keys if key.entry.runner not in known}
    unknown = tuple(RunnerLabel(name=name, nodes=(), where=key.where) for name, key in missing.items())
    return config.runners.model_copy(update={"labels": (*config.runners.labels, *unknown)})


def _rest(points: Iterable[Point], same: "Counter[Point]") -> list[Point]:
    budget = Counter(same)
    rest = []
    for point in points:
        if budget[point] > 0:
            budget[point] -= 1
        else:
            rest.append(point)
    return rest


def _pair(
    gone: Sequence[Point], come: Sequence[Point], identity: Callable[[Point], Hashable]
) -> tuple[list[Altered], list[Point], list[Point]]:
    """Pair points of equal identity in their order; return the pairs and what is left on both sides."""
    waiting: dict[Hashable, list[Point]] = defaultdict(list)
    for point in reversed(gone):
        waiting[identity(point)].append(point)
    pairs, left = [], []
    for point in come:
        partners = waiting[identity(point)]
        if partners:
            before = partners.pop()
            pairs.append(Altered(before=before, after=point, fields=_differences(before, point)))
        else:
            left.append(point)
    paired = Counter(pair.before for pair in pairs)
    return pairs, _rest(gone, paired), left


def _identity(point: Point) -> Hashable:
    shape = tuple(pool.model_copy(update={"settings": ()}) for pool in point.topology.pools)
    return tuple(shape if name == "topology" else getattr(point, name) for name in IDENTITY)


def _nameless(point: Point) -> Hashable:
    return point.model_copy(update={"config_key": ""})


def _differences(before: Point, after: Point) -> tuple[str, ...]:
    one: dict[str, Any] = dict(before)
    return tuple(name for name, value in dict(after).items() if one[name] != value)
