"""Statistics of one run: percentiles with their support, and intervals of the mean that survive correlated requests.

Intervals over requests as if they were independent are wrong for a loaded server: neighbours in time share its queue.
Batch means (Law & Kelton, Simulation Modeling and Analysis, 9.5.3) take that into account.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BATCHES = 20
FEWEST_BATCHES = 5
FEWEST_IN_BATCH = 4
# 0.975 quantile of chi-square with 19 degrees of freedom, over 19.
RATIO_OF_INDEPENDENT = 1.73

# 0.975 quantile of Student's t for 1 to 19 degrees of freedom (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
_T975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093,
)  # fmt: skip


class Quantile(NamedTuple):
    """A percentile that is reported: its name, its level, and the fewest observations that support it, 10 / (1 - q)."""

    stat: str
    level: float
    needs: int


QUANTILES = (
    Quantile("p50", 0.5, 20),
    Quantile("p90", 0.9, 100),
    Quantile("p95", 0.95, 200),
    Quantile("p99", 0.99, 1_000),
    Quantile("p999", 0.999, 10_000),
)


def percentiles(values: Floats) -> Floats:
    """Return one value per entry of QUANTILES: linear interpolation between order statistics (type 7)."""
    return np.quantile(values, [quantile.level for quantile in QUANTILES], method="linear")


class Percentile(NamedTuple):
    """A percentile with its 95 % interval; None: too few observations for one."""

    value: float
    ci95: tuple[float, float] | None


def percentile_intervals(values: Floats) -> list[Percentile]:
    """Return one per entry of QUANTILES, of values in order of time.

    The interval is between order statistics, whose ranks are binomial (David & Nagaraja, Order Statistics, 7.1). Values
    that follow each other are alike, which leaves fewer independent ones: as many as would give the scatter that the
    share below the percentile has between batches (never more than there are).
    """
    n = len(values)
    exact = [(n - 1) * quantile.level for quantile in QUANTILES]
    partly = np.partition(values, sorted({int(place) for place in exact} | {math.ceil(place) for place in exact}))
    found = [_between(partly, place) for place in exact]
    ranks = [
        _interval_ranks(values, value, quantile.level) if n >= quantile.needs else None
        for quantile, value in zip(QUANTILES, found, strict=True)
    ]
    wanted = sorted({rank - 1 for pair in ranks if pair for rank in pair})
    if wanted:
        partly.partition(wanted)
    return [
        Percentile(value, (float(partly[pair[0] - 1]), float(partly[pair[1] - 1])) if pair else None)
        for value, pair in zip(found, ranks, strict=True)
    ]


def _between(ordered: Floats, place: float) -> float:
    low, high = float(ordered[int(place)]), float(ordered[math.ceil(place)])
    return low + (high - low) * (place - int(place))


def _interval_ranks(values: Floats, value: float, level: float) -> tuple[int, int] | None:
    """Return the ranks, from 1, of the order statistics that bound a percentile."""
    n = len(values)
    worth = max(1, int(n / _design_effect(values <= value, level)))
    pair = binomial_ranks(worth, level)
    return (max(1, pair[0] * n // worth), min(n, -(-pair[1] * n // worth))) if pair else None


def _design_effect(below: NDArray[np.bool_], level: float) -> float:
    """Return how many times the variance of a share exceeds that of independent values, at least 1."""
    batches = min(BATCHES, len(below) // FEWEST_IN_BATCH)
    if batches < FEWEST_BATCHES:
        return 1.0
    edges = np.linspace(0, len(below), batches + 1).astype(np.intp)
    shares = np.array([np.count_nonzero(below[a:b]) / (b - a) for a, b in pairwise(edges)])
    ratio = float(np.var(shares, ddof=1)) / batches * len(below) / (level * (1 - level))
    # Of independent values the ratio scatters around 1 by its own sampling error; beyond that they are correlated, and
    # the few batches that say by how much call for Student's t instead of the normal quantile.
    return 1.0 if ratio < RATIO_OF_INDEPENDENT else ratio * (t975(batches - 1) / 1.96) ** 2


def binomial_ranks(n: int, level: float) -> tuple[int, int] | None:
    """Return ranks l, u from 1 so that the interval from the l-th to the u-th of n ordered independent values covers
    the percentile with at least 95 %; None when n values have no such."""
    center, width = n * level, 9 * math.sqrt(n * level * (1 - level)) + 9
    k = np.arange(max(0, int(center - width)), min(n, int(center + width)) + 1)
    steps = np.log((n - k[:-1]) / (k[:-1] + 1) * (level / (1 - level)))
    log_mass = np.concatenate(([0.0], np.cumsum(steps)))
    mass = np.exp(log_mass - log_mass.max())
    below = np.cumsum(mass) / mass.sum()
    low = int(np.searchsorted(below, 0.025, side="right")) - 1
    high = int(np.searchsorted(below, 0.975))
    if low < 0 or high >= len(k) or k[high] + 1 > n:
        return None
    return int(k[low]) + 1, int(k[high]) + 1


def t975(freedom: int) -> float:
    """Return the 0.975 quantile of Student's t for 1 to 19 degrees of freedom."""
    return _T975[freedom - 1]


def batch_means_interval(values: Floats) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean of values in order of time, or None when there are fewer than 20.

    The values are cut into 20 batches, or into fewer so that each holds at least 4 (never fewer than 5 batches); the
    batch means are then nearly independent. Covers 92 to 97 % for independent values, and for correlated ones
    while a batch is long against the correlation time: for AR(1) with 0.5 from n = 400, with 0.8 from n = 2,000.
    Shorter or strongly skewed series are covered less often; the interval is then a lower bound of the doubt.
    """
    batches = min(BATCHES, len(values) // FEWEST_IN_BATCH)
    if batches < FEWEST_BATCHES:
        return None
    edges = np.linspace(0, len(values), batches + 1).astype(np.intp)
    means = np.add.reduceat(values, edges[:-1]) / np.diff(edges)
    mean = float(np.mean(values))
    half = t975(batches - 1) * float(np.std(means, ddof=1)) / math.sqrt(batches)
    return mean - half, mean + half
