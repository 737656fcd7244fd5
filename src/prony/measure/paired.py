"""Two ways of serving compared launch by launch: the mean difference in percent, with a t interval over pairs."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

FEWEST_PAIRS = 3
# 97.5 % points of Student's t by degrees of freedom (any table of it); beyond, the normal's is used.
_T = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131),
    *(2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
_NORMAL = 1.96


class Paired(NamedTuple):
    """Mean of (second - first) / first over pairs, and its 95 % interval; None with fewer than three pairs."""

    difference: float
    ci95: tuple[float, float] | None
    pairs: int

    @property
    def told_apart(self) -> bool:
        """The interval does not hold 0: the two differ by more than launches do by chance."""
        return self.ci95 is not None and not self.ci95[0] <= 0 <= self.ci95[1]


def paired(first: Sequence[float], second: Sequence[float]) -> Paired | None:
    """Compare pairs of launches; None without a pair. Differences are taken in logarithms: up and down weigh alike.

    What drifts over the session (heat, neighbours) is in both of a pair and cancels.
    """
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a > 0 and b > 0]
    if not pairs:
        return None
    logs = np.log([b / a for a, b in pairs])
    mean = float(logs.mean())
    if len(pairs) < FEWEST_PAIRS:
        return Paired(math.expm1(mean), None, len(pairs))
    degrees = len(pairs) - 1
    half = (_T[degrees - 1] if degrees <= len(_T) else _NORMAL) * float(logs.std(ddof=1)) / math.sqrt(len(pairs))
    return Paired(math.expm1(mean), (math.expm1(mean - half), math.expm1(mean + half)), len(pairs))
