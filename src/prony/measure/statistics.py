"""Statistics of one run: percentiles with their support, and intervals of the mean that survive correlated requests.

Intervals over requests as if they were independent are wrong for a loaded server: neighbours in time share its queue.
Batch means (Law & Kelton, Simulation Modeling and Analysis, 9.5.3) take that into account.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BATCHES = 20
FEWEST_BATCHES = 5
FEWEST_IN_BATCH = 4

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
