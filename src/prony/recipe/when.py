"""What rules and expressions can ask about a point: its typed fields, and conditions over them."""

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from prony.base.errors import ConfigError
from prony.base.yamldoc import YamlMap
from prony.spec.point import FixedSeqLen, Point, RoleName, RolePool, SpecDecoding

Field = int | str | bool
MTP_SIZE = "DECODE_MTP_SIZE"

_POOL_NUMBERS: dict[str, Callable[[RolePool], int]] = {
    "tp": lambda pool: pool.tp,
    "pp": lambda pool: pool.pp,
    "dp": lambda pool: pool.dp,
    "ep": lambda pool: pool.ep or 1,
    "dcp": lambda pool: pool.dcp,
    "pcp": lambda pool: pool.pcp,
    "replicas": lambda pool: pool.replicas,
    "nodes": lambda pool: pool.nodes or 1,
}
_ROLE_PREFIXES = {role: "" if role == "agg" else f"{role}_" for role in get_args(RoleName)}

NUMBER_NAMES = frozenset(
    {"conc", "isl", "osl", "gpus", "cpu_dram_gb", "mtp_size"}
    | {f"{prefix}{name}" for prefix in _ROLE_PREFIXES.values() for name in _POOL_NUMBERS}
)
SWITCH_NAMES = frozenset({"disagg", "multinode"} | {f"{prefix}dp_attention" for prefix in _ROLE_PREFIXES.values()})
_OF_POINT = ("model", "model_prefix", "precision", "framework", "runner", "spec_decoding", "kv_transfer")
TEXT_NAMES = frozenset({*_OF_POINT, "kv_offload", "kv_offload_backend", "scenario", "purpose"})
FIELD_NAMES = NUMBER_NAMES | SWITCH_NAMES | TEXT_NAMES
Purpose = Literal["throughput", "eval"]
_CHOICES = {
    "spec_decoding": get_args(SpecDecoding),
    "kv_offload": ("none", "dram"),
    "scenario": ("fixed-seq-len", "agentic-coding"),
    "purpose": get_args(Purpose),
}

_COMPARISON = re.compile(r"(>=|<=|>|<)\s*(\d+)")
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
}


def numbers(point: Point) -> dict[str, int]:
    """Return the numbers of a point under the names that expressions use.

    Those of an `agg` pool have plain names (tp), those of other roles the role's (decode_tp).
    An expert parallelism that is not set counts as 1. mtp_size: the drafted tokens of a setting of the master config.
    """
    result = {"conc": point.concurrency, "gpus": point.topology.gpus, "cpu_dram_gb": point.cpu_dram_gb}
    if isinstance(point.workload, FixedSeqLen):
        result |= {"isl": point.workload.isl, "osl": point.workload.osl}
    for pool in point.topology.pools:
        result |= {f"{_ROLE_PREFIXES[pool.role]}{name}": read(pool) for name, read in _POOL_NUMBERS.items()}
        sizes = [int(one.value) for one in pool.settings if one.name == MTP_SIZE and one.value.isdigit()]
        result |= {"mtp_size": sizes[-1]} if sizes else {}
    return result


def fields(point: Point, purpose: Purpose = "throughput") -> dict[str, Field]:
    """Return all fields of a point that a `when` can ask about."""
    texts = {name: str(getattr(point, name) or "none") for name in _OF_POINT}
    texts |= {"scenario": point.workload.kind, "purpose": purpose}
    texts |= {"kv_offload": point.kv_offload.mode, "kv_offload_backend": point.kv_offload.backend or "none"}
    switches = {"disagg": point.disagg, "multinode": point.multinode}
    for pool in point.topology.pools:
        switches[f"{_ROLE_PREFIXES[pool.role]}dp_attention"] = bool(pool.dp_attention)
    return {**numbers(point), **texts, **switches}


@dataclass(frozen=True)
class Condition:
    """One field that must equal one of some values, or compare as told with a number."""

    field: str
    values: tuple[Field, ...]
    comparison: str = "=="

    def holds(self, point_fields: Mapping[str, Field]) -> bool:
        """Say whether a point fulfils this; a field that the point doesn't have fulfils nothing."""
        actual = point_fields.get(self.field)
        if self.comparison == "==":
            return actual in self.values
        return isinstance(actual, int) and _COMPARE[self.comparison](actual, int(self.values[0]))


def read_conditions(when: YamlMap) -> tuple[Condition, ...]:
    """Return the conditions of a `when` mapping. Raises ConfigError with file:line and what is allowed."""
    return tuple(_read_condition(name, value, f"{when.file}:{when.lines[name]}") for name, value in when.items())


def _read_condition(name: str, value: Any, place: str) -> Condition:
    if name not in FIELD_NAMES:
        guess = difflib.get_close_matches(name, sorted(FIELD_NAMES), n=1)
        hint = f" (did you mean '{guess[0]}'?)" if guess else ""
        raise ConfigError(
            f"{place}: '{name}' is not a field of a point{hint}",
            allowed=", ".join(sorted(FIELD_NAMES)),
        )
    compared = _COMPARISON.fullmatch(value.strip()) if isinstance(value, str) and name in NUMBER_NAMES else None
    if compared:
        return Condition(name, (int(compared[2]),), compared[1])
    values = tuple(value) if isinstance(value, list) else (value,)
    for item in values:
        _refuse_wrong_kind(name, item, place)
    return Condition(name, values)


def _refuse_wrong_kind(name: str, item: Any, place: str) -> None:
    kind: type = str
    allowed = "text"
    if name in NUMBER_NAMES:
        kind, allowed = int, 'an integer, a list of integers, or a comparison such as ">=128"'
    elif name in SWITCH_NAMES:
        kind, allowed = bool, "true, false"
    if type(item) is not kind:
        raise ConfigError(f"{place}: '{name}' can't be {item!r}", allowed=allowed)
    choices = _CHOICES.get(name)
    if choices and item not in choices:
        raise ConfigError(f"{place}: '{name}' can't be {item!r}", allowed=", ".join(choices))
