"""One number that was measured: which metric, which statistic, how sure."""

from typing import Annotated

from pydantic import AfterValidator, Field

from prony.base.model import Frozen
from prony.measure.registry import is_metric

MOST = 1_000_000_000
"""The greatest count that a row may state: devices, tokens of a request, requests in flight."""
Count = Annotated[int, Field(ge=0, le=MOST)]
STATS = ("mean", "std", "p50", "p90", "p95", "p99", "p999", "value")


def _registered(key: str) -> str:
    if not is_metric(key):
        raise ValueError(f"'{key}' is not a metric")
    return key


def _known_stat(stat: str) -> str:
    if stat not in STATS:
        raise ValueError(f"'{stat}' is not a statistic: {', '.join(STATS)}")
    return stat


class Measurement(Frozen):
    """One finite number. `metric` is a registry key, unit as registered there.

    stat: mean, std, p50, p90, p95, p99, p999 or value; ci95: interval of the mean or of the value; n: how many
    observations stand behind it; supported: false for a percentile with n < 10 / (1 - q).
    """

    metric: Annotated[str, AfterValidator(_registered)]
    stat: Annotated[str, AfterValidator(_known_stat)]
    value: float
    ci95: tuple[float, float] | None = None
    n: Count | None = None
    supported: bool = True
