"""Which rows also run evals, marked as the reference marks them."""

import json
from collections.abc import Callable, Sequence
from typing import Any, Literal

from prony.spec.compat.expand import AGENTIC, JsonRow

EvalMode = Literal["default", "none", "only", "all"]
MIN_EVAL_CONC = 16
_EVAL_LENGTHS = (8192, 1024)
_MARKS = ("conc", "run-eval", "eval-only", "eval-conc", "eval-all-concs", "exp-name")


def mark_evals(rows: Sequence[JsonRow], mode: EvalMode) -> list[JsonRow]:
    """Mark rows in place of a copy; with `only` and `all` only marked rows stay, as eval-only."""
    if mode == "none":
        return list(rows)
    marked = [{**row, "run-eval": False} for row in rows]
    agentic = mode in ("only", "all")
    _mark_single_fixed(marked)
    _mark_best(marked, _is_multi_fixed)
    if agentic:
        _mark_single_agentic(marked)
        _mark_best(marked, _is_multi_agentic)
    if mode == "all":
        marked = _mark_all(marked)
    if agentic:
        marked = [{**row, "eval-only": True} for row in marked if row["run-eval"]]
    return marked


def _is_agentic(row: JsonRow) -> bool:
    return row.get("scenario-type") == AGENTIC


def _is_multi(row: JsonRow) -> bool:
    return "prefill" in row


def _has_eval_lengths(row: JsonRow) -> bool:
    return (row.get("isl"), row.get("osl")) == _EVAL_LENGTHS


def _is_multi_fixed(row: JsonRow) -> bool:
    return _is_multi(row) and _has_eval_lengths(row)


def _is_multi_agentic(row: JsonRow) -> bool:
    return _is_multi(row) and _is_agentic(row)


def _topology(row: JsonRow) -> str:
    return json.dumps({name: value for name, value in row.items() if name not in _MARKS}, sort_keys=True)


def _mark_single_fixed(rows: list[JsonRow]) -> None:
    """Per group of equal serving (tp apart): the highest concurrency and the upper median of the distinct ones."""
    names = ("model", "runner", "framework", "precision", "isl", "osl", "spec-decoding", "dp-attn")
    groups: dict[tuple[Any, ...], list[JsonRow]] = {}
    for row in rows:
        if not _is_multi(row) and _has_eval_lengths(row) and row["conc"] >= MIN_EVAL_CONC:
            groups.setdefault(tuple(row[name] for name in names), []).append(row)
    for group in groups.values():
        values = sorted({row["conc"] for row in group})
        chosen = {values[-1], values[len(values) // 2]}
        for row in group:
            row["run-eval"] = row["conc"] in chosen


def _mark_best(rows: list[JsonRow], wanted: Callable[[JsonRow], bool]) -> None:
    """Per topology: the row with the highest concurrency that is high enough; the first wins ties."""
    best: dict[str, tuple[int, JsonRow]] = {}
    for row in rows:
        eligible = [value for value in row["conc"] if value >= MIN_EVAL_CONC] if wanted(row) else []
        if eligible:
            key = _topology(row)
            if key not in best or max(eligible) > best[key][0]:
                best[key] = (max(eligible), row)
    for value, row in best.values():
        row["run-eval"], row["eval-conc"] = True, value


def _mark_single_agentic(rows: list[JsonRow]) -> None:
    """Per (model, runner, framework, precision), whatever the speculative decoding: the highest concurrency."""
    best: dict[tuple[Any, ...], JsonRow] = {}
    for row in rows:
        if _is_agentic(row) and not _is_multi(row):
            key = tuple(row[name] for name in ("model", "runner", "framework", "precision"))
            if key not in best or row["conc"] > best[key]["conc"]:
                best[key] = row
    for row in best.values():
        row["run-eval"] = True


def _mark_all(rows: list[JsonRow]) -> list[JsonRow]:
    """Mark every single row (fixed ones of 8k/1k); merge multi-node rows of equal topology into one."""
    result: list[JsonRow] = []
    merged: dict[str, JsonRow] = {}
    for row in rows:
        if _is_multi_fixed(row) or _is_multi_agentic(row):
            _merge(row, merged, result)
        else:
            if not _is_multi(row) and (_is_agentic(row) or _has_eval_lengths(row)):
                row["run-eval"] = True
            result.append(row)
    return result


def _merge(row: JsonRow, merged: dict[str, JsonRow], result: list[JsonRow]) -> None:
    key = _topology(row)
    target = merged.get(key)
    if target is None:
        merged[key] = target = {**row, "run-eval": True, "conc": []}
        target.pop("eval-conc", None)
        result.append(target)
    target["conc"] = sorted({*target["conc"], *row["conc"]})
    target |= {"eval-conc": max(target["conc"])} if _is_agentic(row) else {"eval-all-concs": True}
