"""What a head matrix adds to a base, where a change may add and nothing else."""

from collections.abc import Sequence

from prony.base.errors import ConfigError
from prony.spec.point import FixedSeqLen, Point


def appended(base: Sequence[Point], head: Sequence[Point]) -> tuple[Point, ...]:
    """Return the points of head that base has not, in head's order; eval marks do not count.

    Every base point must still be there, and a new one must belong to a series that base draws with its very image.
    Raises ConfigError that names the first offender, and for a head that adds nothing.
    """
    there = {_unmarked(point) for point in base}
    new = tuple(point for point in head if _unmarked(point) not in there)
    gone = there - {_unmarked(point) for point in head}
    if gone:
        lost = next(point for point in base if _unmarked(point) in gone)
        raise ConfigError(
            f"an append-only change keeps every point; {lost.label} ({lost.topology.label}) is gone",
            fix="restore it, or drop append-only",
        )
    if not new:
        raise ConfigError(
            "an append-only change adds points; this one adds none", fix="add a concurrency, or drop append-only"
        )
    images: dict[object, set[str]] = {}
    for point in base:
        images.setdefault(_series(point), set()).add(point.image)
    for point in new:
        known = images.get(_series(point), set())
        if known != {point.image}:
            raise ConfigError(
                f"append-only: {point.label} would be drawn in a series that base has not with image {point.image}",
                allowed=", ".join(sorted(known)) or "a series that base has",
                fix="use the image of the series, or drop append-only",
            )
    return new


def _unmarked(point: Point) -> Point:
    return point.model_copy(update={"evaluate": False, "eval_only": False})


def _series(point: Point) -> object:
    """What is drawn as one line: agentic series hold all speculative decoding."""
    fixed = isinstance(point.workload, FixedSeqLen)
    workload = point.workload if fixed else None
    spec = point.spec_decoding if fixed else ""
    hardware = tuple(pool.hardware for pool in point.topology.pools)
    names = (point.model, point.model_prefix, point.precision, point.framework, point.runner, point.disagg)
    return (*names, workload, spec, point.kv_offload.mode, hardware)
