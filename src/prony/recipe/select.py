"""Points of a config chosen by their fields: `conc=64`, `spec_decoding=mtp`."""

import difflib
from collections.abc import Sequence

from prony.base.errors import ConfigError
from prony.recipe.when import FIELD_NAMES, NUMBER_NAMES, SWITCH_NAMES, fields
from prony.spec.point import Point


def matching_points(points: Sequence[Point], wanted: Sequence[str]) -> tuple[Point, ...]:
    """Return the points that have every NAME=VALUE. Raises ConfigError for a name that no point has, or no match."""
    asked = [_read(text) for text in wanted]
    found = tuple(point for point in points if all(fields(point).get(name) == value for name, value in asked))
    if not found:
        told = "; ".join(f"{name}: {_values(points, name)}" for name, _ in asked)
        raise ConfigError(f"no point has {' and '.join(wanted)}", allowed=told, fix="prony matrix list shows them all")
    return found


def only_point(points: Sequence[Point], wanted: Sequence[str]) -> Point:
    """Return the one point that has every NAME=VALUE. Raises ConfigError that says in what several still differ."""
    found = matching_points(points, wanted)
    if len(found) == 1:
        return found[0]
    names = [name for name in sorted(FIELD_NAMES) if len({fields(point).get(name) for point in found}) > 1]
    # Fields such as `gpus` follow from others: the first few that people choose by are enough.
    first = [name for name in ("conc", "tp", "ep", "decode_tp", "isl", "spec_decoding", "kv_offload") if name in names]
    told = "; ".join(f"{name}: {_values(found, name)}" for name in first or names)
    raise ConfigError(
        f"{len(found)} points of '{found[0].config_key}' are left", allowed=told, fix="say which: --at conc=64 tp=8"
    )


def _read(text: str) -> tuple[str, int | str | bool]:
    name, equals, value = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals or name not in FIELD_NAMES:
        guess = difflib.get_close_matches(name, sorted(FIELD_NAMES), n=1)
        hint = f" (did you mean '{guess[0]}=…'?)" if guess else ""
        raise ConfigError(f"'{text}' is not NAME=VALUE of a point{hint}", allowed=", ".join(sorted(FIELD_NAMES)))
    if name in NUMBER_NAMES:
        if not value.isdigit():
            raise ConfigError(f"'{text}': {name} is a whole number")
        return name, int(value)
    if name in SWITCH_NAMES:
        if value not in ("true", "false"):
            raise ConfigError(f"'{text}': {name} is true or false")
        return name, value == "true"
    return name, value


def _values(points: Sequence[Point], name: str) -> str:
    found = {fields(point).get(name) for point in points} - {None}
    return ", ".join(
        str(value).lower() if isinstance(value, bool) else str(value) for value in sorted(found, key=_order)
    )


def _order(value: int | str | bool | None) -> tuple[bool, int, str]:
    return (isinstance(value, str), value if isinstance(value, int) else 0, str(value))
