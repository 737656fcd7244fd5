"""Append-only entries: points are added to curves that exist; nothing that base generates may change."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from prony.base.errors import ConfigError
from prony.spec.changelog.buckets import fingerprint, is_agentic, is_multi
from prony.spec.changelog.entry import Scenario
from prony.spec.compat.expand import JsonRow
from prony.spec.compat.generate import Catalogue

_ALLOWED = "new concurrencies and new recipe variants of the selected configs and scenarios"


def _refuse(message: str, fix: str) -> ConfigError:
    return ConfigError(message, allowed=_ALLOWED, fix=fix)


def check_scope(base: Catalogue, head: Catalogue, wanted: Mapping[str, set[Scenario]]) -> None:
    """Refuse changes of configs outside the selected keys and scenarios. Raises ConfigError."""
    missing = sorted(key for key in wanted if key not in base.entries)
    if missing:
        raise _refuse(
            f"append-only adds to configs that the base has; it lacks {', '.join(missing)}",
            "select configs that exist, or leave 'append-only' out",
        )
    names = {*base.entries, *head.entries} - wanted.keys()
    changed = sorted(key for key in names if base.entries.get(key) != head.entries.get(key))
    if changed:
        raise _refuse(
            f"append-only, but configs that no added entry names differ from the base: {', '.join(changed)}",
            "move those changes into a change of their own",
        )
    for key, scenarios in wanted.items():
        _check_key(key, base.entries[key], head.entries[key], scenarios)


def _check_key(key: str, base: Mapping[str, Any], head: Mapping[str, Any], wanted: set[Scenario]) -> None:
    before, after = base["scenarios"], head["scenarios"]
    if before.keys() != after.keys():
        raise _refuse(f"append-only, but '{key}' has other scenarios than in the base", "leave 'append-only' out")
    outside = [name for name in before if name not in wanted]
    if outside and _top(base) != _top(head):
        raise _refuse(
            f"append-only for some scenarios of '{key}', but fields that all of them share differ from the base",
            "restore them, or leave 'append-only' out",
        )
    for name in outside:
        if before[name] != after[name]:
            raise _refuse(
                f"append-only, but {name} of '{key}', which the entry does not ask for, differs from the base",
                f"restore it, or add {name} to 'scenario-type'",
            )


def _top(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "scenarios"}


def delta(base: Sequence[JsonRow], head: Sequence[JsonRow]) -> list[JsonRow]:
    """Return the points that head has more than base, in head's order. Raises ConfigError when base's changed."""
    before, after = _curves(base), _curves(head)
    if not before:
        raise _refuse("append-only, but the base generates no point to add to", "leave 'append-only' out")
    if before.keys() - after.keys():
        raise _refuse(
            "append-only, but a recipe that the base generates is gone or differs",
            "restore the recipes of the base, or leave 'append-only' out",
        )
    for curve, points in before.items():
        if gone := sorted(points - after[curve]):
            raise _refuse(
                f"append-only, but concurrency {', '.join(str(value) for value in gone)} of the base is gone",
                "restore them, or leave 'append-only' out",
            )
    rows = _new_points(head, {curve: points - before.get(curve, set()) for curve, points in after.items()})
    if not rows:
        raise _refuse(
            "append-only, but head generates no more points than the base",
            "add points to the config, or remove the entry",
        )
    _check_images(base, rows)
    return rows


def _points(row: JsonRow) -> list[int]:
    conc = row["conc"]
    return conc if isinstance(conc, list) else [conc]


def _curves(rows: Sequence[JsonRow]) -> dict[str, set[int]]:
    curves: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        curves[fingerprint(row)].update(_points(row))
    return curves


def _new_points(rows: Sequence[JsonRow], added: dict[str, set[int]]) -> list[JsonRow]:
    """Return rows with the added points, each point once; `added` is used up."""
    found = []
    for row in rows:
        left = added[fingerprint(row)]
        fresh = [value for value in dict.fromkeys(_points(row)) if value in left]
        left.difference_update(fresh)
        if fresh:
            found.append({**row, "conc": fresh} if is_multi(row) else row)
    return found


def _check_images(base: Sequence[JsonRow], rows: Sequence[JsonRow]) -> None:
    images: dict[tuple[Any, ...], set[Any]] = defaultdict(set)
    for row in base:
        images[_series(row)].add(row.get("image"))
    for row in rows:
        image = row.get("image")
        if image is None or images.get(_series(row)) != {image}:
            raise _refuse(
                "append-only, but an added point has another image than its curve, or no curve in the base",
                "keep the image of the curve, or leave 'append-only' out to measure the whole curve again",
            )


def _series(row: JsonRow) -> tuple[Any, ...]:
    """Return what makes a row part of one line of a chart."""
    agentic = is_agentic(row)
    workload = (True, None, None, "") if agentic else (False, row.get("isl"), row.get("osl"), row.get("spec-decoding"))
    names = ("model", "model-prefix", "precision", "framework", "runner")
    return (
        *(row.get(name) for name in names),
        bool(row.get("disagg", False)),
        *workload,
        row.get("kv-offloading") not in (None, "", "none"),
        *((row.get(role) or {}).get("hardware") for role in ("prefill", "decode")),
    )
