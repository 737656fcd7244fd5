"""Selected rows in the buckets that CI job families consume, as the reference prints them."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from prony.spec.changelog.entry import ChangelogEntry
from prony.spec.compat.expand import AGENTIC, JsonRow, lengths_name

POINT_FIELDS = frozenset({"conc", "exp-name", "recipe-fingerprint"})
_HEAD = ("image", "model", "model-prefix", "precision", "framework", "spec-decoding", "runner")
_SPREAD = ("tp", "pp", "dcp-size", "pcp-size", "ep", "dp-attn")
_WORKERS = ("prefill", "decode")
_EVALS = ("run-eval", "eval-only", "eval-conc", "eval-all-concs")
_LENGTHS = ("isl", "osl")
_OFFLOAD = ("kv-offloading", "kv-offload-backend")
_TRANSPORT = ("router", "kv-p2p-transfer")
_AGENTIC_TAIL = ("total-cpu-dram-gb", "duration", "exp-name", "disagg", "scenario-type", *_EVALS, "recipe-fingerprint")
_FIXED_TAIL = ("conc", "max-model-len", "exp-name", "disagg", *_EVALS, *_TRANSPORT, "recipe-fingerprint")
_ORDERS = {
    (False, False): (*_HEAD, *_LENGTHS, *_SPREAD, *_FIXED_TAIL),
    (True, False): (*_HEAD, *_LENGTHS, *_WORKERS, *_FIXED_TAIL),
    (False, True): (*_HEAD[:5], "runner", *_SPREAD, "spec-decoding", "conc", *_OFFLOAD, *_TRANSPORT, *_AGENTIC_TAIL),
    (True, True): (*_HEAD, *_WORKERS, "conc", *_OFFLOAD, *_TRANSPORT, *_AGENTIC_TAIL),
}
_WORKER = ("num-worker", *_SPREAD, "hardware", "additional-settings")
_NUMBERS = frozenset(
    {"isl", "osl", "tp", "pp", "dcp-size", "pcp-size", "ep", "conc", "num-worker", "max-model-len", "duration"}
)


@dataclass(frozen=True)
class Selection:
    """What a change runs: rows as generated, throughput apart from evals, and the entries that ask for them."""

    entries: tuple[ChangelogEntry, ...]
    throughput: tuple[JsonRow, ...]
    evals: tuple[JsonRow, ...]


def is_multi(row: JsonRow) -> bool:
    """Whether a row needs several nodes."""
    return row.get("prefill") is not None


def is_agentic(row: JsonRow) -> bool:
    """Whether a row replays agentic work."""
    return row.get("scenario-type") == AGENTIC


def fingerprint(row: JsonRow) -> str:
    """Return the sha256 of what a row deploys: all fields but concurrency and name."""
    recipe = {name: value for name, value in row.items() if name not in POINT_FIELDS}
    return hashlib.sha256(json.dumps(recipe, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def trim(rows: Sequence[JsonRow]) -> list[JsonRow]:
    """Keep the lowest concurrency: of each single-node deployment one row, of each multi-node row one value."""
    best: dict[str, tuple[int, int]] = {}
    for index, row in enumerate(rows):
        if not is_multi(row):
            key = fingerprint(row)
            best[key] = min(best.get(key, (row["conc"], index)), (row["conc"], index))
    kept = {index for _, index in best.values()}
    return [
        {**row, "conc": [min(row["conc"])]} if is_multi(row) else row
        for index, row in enumerate(rows)
        if is_multi(row) or index in kept
    ]


def bucket_object(selection: Selection, base: str, head: str) -> dict[str, Any]:
    """Return the object to print; base and head name the two versions."""
    result: dict[str, Any] = {"single_node": {}, "multi_node": {}}
    for row in selection.throughput:
        family = result["multi_node" if is_multi(row) else "single_node"]
        name = "agentic" if is_agentic(row) else lengths_name(row["isl"], row["osl"])
        family.setdefault(name, []).append(_printed({**row, "recipe-fingerprint": fingerprint(row)}))
    result["evals"] = _evals(selection.evals, multi=False, agentic=False)
    result["agentic_evals"] = _evals(selection.evals, multi=False, agentic=True)
    result["multinode_evals"] = _evals(selection.evals, multi=True, agentic=False)
    result["multinode_agentic_evals"] = _evals(selection.evals, multi=True, agentic=True)
    entries = [entry.model_dump(mode="json", by_alias=True, exclude_none=True) for entry in selection.entries]
    result["changelog_metadata"] = {"base_ref": base, "head_ref": head, "entries": entries}
    return result


def _evals(rows: Iterable[JsonRow], *, multi: bool, agentic: bool) -> list[JsonRow]:
    return [_printed(row) for row in rows if is_multi(row) == multi and is_agentic(row) == agentic]


def _printed(row: JsonRow) -> JsonRow:
    """Return a row as its output schema prints it: defaults filled in, numbers as numbers, no nulls."""
    multi, agentic = is_multi(row), is_agentic(row)
    full = dict(row)
    if not agentic:
        full = {"run-eval": False, "eval-only": False, **({"eval-all-concs": False} if multi else {}), **full}
    for role in _WORKERS if multi else ():
        full[role] = _tidy({"additional-settings": [], **full[role]}, _WORKER)
    return _tidy(full, _ORDERS[multi, agentic])


def _tidy(values: JsonRow, order: tuple[str, ...]) -> JsonRow:
    names = [*(name for name in order if name in values), *(name for name in values if name not in order)]
    return {name: _number(name, values[name]) for name in names if values[name] is not None}


def _number(name: str, value: Any) -> Any:
    return int(value) if name in _NUMBERS and isinstance(value, str) else value
