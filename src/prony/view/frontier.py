"""The Pareto frontier of points in a plane, for any two directions."""

import math
from collections.abc import Sequence
from typing import Literal

Better = Literal["higher", "lower"]
XY = tuple[float | None, float | None]


def frontier(points: Sequence[XY], x_better: Better, y_better: Better) -> tuple[int, ...]:
    """Return the indices of the points that no other point dominates, by ascending x (equal points by index).

    A point dominates another when it is at least as good on both axes and better on one, so of two points equal on one
    axis the worse goes, and points equal on both stay. Values not measured or not finite leave their point out.
    """
    scored = [
        (goodness(x, x_better), goodness(y, y_better), index) for index, (x, y) in enumerate(points) if finite(x, y)
    ]
    scored.sort(key=lambda point: (-point[0], -point[1], point[2]))
    kept: list[tuple[float, float, int]] = []
    for point in scored:
        if not kept or point[1] > kept[-1][1] or point[:2] == kept[-1][:2]:
            kept.append(point)
    indices = [index for _, _, index in kept]
    return tuple(sorted(indices, key=lambda index: (points[index][0], index)))


def dominated_area(points: Sequence[XY], x_better: Better, y_better: Better, worst: tuple[float, float]) -> float:
    """Return the area between a reference corner and the frontier (the hypervolume indicator), 0 without points.

    `worst` is a corner that every point should beat; parts of the frontier beyond it count nothing.
    """
    chosen = [points[index] for index in frontier(points, x_better, y_better)]
    corner = goodness(worst[0], x_better), goodness(worst[1], y_better)
    steps = sorted((goodness(x, x_better) - corner[0], goodness(y, y_better) - corner[1]) for x, y in chosen)
    area, left = 0.0, 0.0
    for width, height in steps:
        area += max(width - left, 0.0) * max(height, 0.0)
        left = max(left, width)
    return area


def goodness(value: float | None, better: Better) -> float:
    """Return a number that grows as the value gets better; not measured is the worst."""
    if value is None:
        return -math.inf
    return value if better == "higher" else -value


def finite(*values: float | None) -> bool:
    """Tell whether all values are measured and finite."""
    return all(value is not None and math.isfinite(value) for value in values)
