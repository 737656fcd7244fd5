"""Which points also run an eval."""

from collections.abc import Iterable, Sequence
from typing import Literal

from prony.spec.point import FixedSeqLen, Point

EvalMode = Literal["default", "none", "only", "all"]
MIN_EVAL_CONC = 16
EVAL_LENGTHS = (8192, 1024)


def mark(points: Sequence[Point], mode: EvalMode = "default") -> tuple[Point, ...]:
    """Mark the points whose accuracy is to be checked.

    Evals run on long prompts (8192/1024) under at least 16 concurrent requests, where batching can go wrong, and on
    agentic points when they are asked for (`only`, `all`):
    - on one node, per model, runner, framework, precision, speculative decoding and DP attention, whatever the
      parallelism: at the highest concurrency and the upper median of the distinct ones; agentic ones, which have no
      least concurrency, at the highest alone, and whatever the DP attention;
    - on several nodes, per deployment: at the highest concurrency; the first one wins ties.
    `all` marks every long-prompt and every agentic point. `only` and `all` keep the marked points as eval-only ones;
    `none` marks nothing. The reference differs where it lets speculative decoding share one agentic eval.
    """
    if mode == "none":
        return tuple(points)
    chosen = _chosen(points, agentic=mode == "only") if mode != "all" else {n for n, p in enumerate(points) if _can(p)}
    only = mode in ("only", "all")
    marked = [
        point.model_copy(update={"evaluate": number in chosen, "eval_only": only})
        for number, point in enumerate(points)
        if number in chosen or not only
    ]
    return tuple(marked)


def _can(point: Point) -> bool:
    workload = point.workload
    return not isinstance(workload, FixedSeqLen) or (workload.isl, workload.osl) == EVAL_LENGTHS


def _chosen(points: Sequence[Point], *, agentic: bool) -> set[int]:
    groups: dict[object, list[int]] = {}
    for number, point in enumerate(points):
        fixed = isinstance(point.workload, FixedSeqLen)
        high_enough = point.concurrency >= MIN_EVAL_CONC or not (fixed or point.multinode)
        if _can(point) and high_enough and (fixed or agentic):
            groups.setdefault(_group(point), []).append(number)
    return {number for members in groups.values() for number in _of_group(points, members)}


def _group(point: Point) -> object:
    if point.multinode:
        return point.model_copy(update={"config_key": "", "concurrency": 0, "evaluate": False, "eval_only": False})
    fixed = isinstance(point.workload, FixedSeqLen)
    attention = point.topology.pools[0].dp_attention if fixed else None
    names = (point.model, point.runner, point.framework, point.precision, point.spec_decoding)
    return (*names, attention, point.workload)


def _of_group(points: Sequence[Point], members: Sequence[int]) -> Iterable[int]:
    first = points[members[0]]
    if first.multinode or not isinstance(first.workload, FixedSeqLen):
        return [max(members, key=lambda number: points[number].concurrency)]
    values = sorted({points[number].concurrency for number in members})
    wanted = {values[-1], values[len(values) // 2]}
    return [number for number in members if points[number].concurrency in wanted]
