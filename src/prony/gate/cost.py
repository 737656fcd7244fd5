"""GPU-hours that jobs may book: declared time limits times devices, whole nodes included. An upper bound, no forecast.

Limits: InferenceX .github/workflows/run-sweep.yml and its templates (single node 500 min, several nodes 480,
several nodes with agentic load 780).
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from math import ceil

from prony.base.model import Frozen
from prony.gate.document import Config, Search
from prony.gate.hardware import likely_gpus_per_node
from prony.spec.point import Point, RolePool

SINGLE_MIN, MULTI_MIN, MULTI_AGENTIC_MIN = 500, 480, 780


class Booking(Frozen):
    """Jobs and the most GPU-hours that they can book; runners whose nodes' size is not known count devices in use."""

    jobs: int = 0
    gpu_hours: float = 0.0
    unknown_nodes: tuple[str, ...] = ()


def book(points: Sequence[Point], config: Config) -> Booking:
    """Return what points book. On several nodes a fixed-length entry is one job, whatever its concurrencies."""
    entries: dict[Hashable, list[Search]] = defaultdict(list)
    for key in config.keys:
        for search in key.searches:
            entries[key.name, search.isl, search.osl, search.entry.spec_decoding, search.entry.topology()].append(
                search
            )
    jobs: dict[Hashable, Point] = {}
    for point in points:
        for job in _jobs(point, entries):
            jobs.setdefault(job, point)
    sizes = {point.runner: likely_gpus_per_node(config.runners, point.runner) for point in jobs.values()}
    hours = sum(booked_gpus(point, sizes[point.runner]) * limit_min(point) / 60 for point in jobs.values())
    unknown = tuple(sorted(name for name, size in sizes.items() if size is None))
    return Booking(jobs=len(jobs), gpu_hours=hours, unknown_nodes=unknown)


def _jobs(point: Point, entries: Mapping[Hashable, Sequence[Search]]) -> list[Hashable]:
    load = point.workload
    if not point.multinode or load.kind != "fixed-seq-len":
        return [point]
    asked = entries.get((point.config_key, load.isl, load.osl, point.spec_decoding, point.topology), ())
    return [search.where for search in asked if point.concurrency in search.entry.concurrencies()] or [point]


def limit_min(point: Point) -> int:
    """Return the declared time limit of the job of a point, in minutes."""
    if not point.multinode:
        return SINGLE_MIN
    return MULTI_AGENTIC_MIN if point.workload.kind == "agentic-coding" else MULTI_MIN


def booked_gpus(point: Point, per_node: int | None) -> int:
    """Return the devices that a job keeps from others: whole nodes per role."""
    return sum(booked_pool(pool, per_node) for pool in point.topology.pools)


def booked_pool(pool: RolePool, per_node: int | None) -> int:
    """Return the devices that one role keeps from others: whole nodes where their size is known."""
    if per_node is None:
        return pool.gpus
    nodes = max(ceil(pool.gpus / per_node), pool.nodes or 0, *(_declared_nodes(pool)), 0)
    return nodes * per_node


def _declared_nodes(pool: RolePool) -> list[int]:
    """Return what PREFILL_NODES or DECODE_NODES of the pool's settings say."""
    name = f"{pool.role.upper()}_NODES"
    values = [setting.value for setting in pool.settings if setting.name == name]
    return [int(value) for value in values if value.isdecimal() and len(value) < 7]
