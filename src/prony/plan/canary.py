"""Canaries: the cheap points that show whether an image works before its fan-out."""

from collections.abc import Iterable

from prony.base.model import Frozen
from prony.facts.skus import sku_of_runner
from prony.spec.point import FixedSeqLen, Point

REQUESTS_PER_CONCURRENT = 10
TOKENS_PER_S = 1000.0


class Group(Frozen):
    """What can be broken as a whole: one image on one kind of accelerator in one kind of topology."""

    image: str
    sku: str
    topology: str


class Canary(Frozen):
    """The point that runs first in its group. gpu_seconds: estimated, for comparison alone."""

    group: Group
    point: Point
    gpu_seconds: float
    stands_for: int


def canaries(points: Iterable[Point]) -> tuple[Canary, ...]:
    """Return the cheapest point of every (image, SKU, topology kind) group, in order of the groups.

    Of equally cheap ones the lower concurrency, then the first. stands_for: points of the group, itself included.
    Eval-only points are none. Raises ConfigError for a runner that names no SKU.
    """
    groups: dict[Group, list[Point]] = {}
    for point in points:
        if not point.eval_only:
            groups.setdefault(group_of(point), []).append(point)
    found = []
    for group, members in groups.items():
        cheapest = min(members, key=lambda point: (gpu_seconds(point), point.concurrency))
        found.append(Canary(group=group, point=cheapest, gpu_seconds=gpu_seconds(cheapest), stands_for=len(members)))
    return tuple(found)


def group_of(point: Point) -> Group:
    """Return a point's group. Kinds of topology: single-node, aggregated, disaggregated. Raises ConfigError."""
    pools = point.topology.pools
    kind = "single-node" if not point.multinode else "aggregated" if len(pools) == 1 else "disaggregated"
    hardware = dict.fromkeys(pool.hardware for pool in pools if pool.hardware)
    sku = "+".join(hardware) if hardware else sku_of_runner(point.runner)
    return Group(image=point.image, sku=sku, topology=kind)


def gpu_seconds(point: Point) -> float:
    """Estimate devices * requests * (isl + osl) / 1000 tokens/s, or devices * duration for an agentic point.

    10 requests per concurrent one, as in the reference's load. Every deployment is taken to be equally fast: the
    number orders points, it forecasts nothing.
    """
    workload = point.workload
    if not isinstance(workload, FixedSeqLen):
        return float(point.topology.gpus * workload.duration_s)
    requests = REQUESTS_PER_CONCURRENT * point.concurrency
    return point.topology.gpus * requests * (workload.isl + workload.osl) / TOKENS_PER_S
