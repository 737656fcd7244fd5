"""What a tool reports: values under its own names and units, and how it defines each."""

from collections.abc import Iterable, Iterator

import numpy as np

from prony.base.model import Frozen
from prony.measure.statistics import Floats


class Line(Frozen):
    """One number of a report, under the tool's own name, in its own unit."""

    name: str
    value: float
    unit: str
    definition: str


class Report(Frozen):
    """One load, as a tool reports it."""

    tool: str
    lines: tuple[Line, ...]

    def value(self, name: str) -> float | None:
        """Return one number, or None when the tool would have none."""
        return next((line.value for line in self.lines if line.name == name), None)


def serving_lines(metric: str, values_s: Floats, definition: str, levels: Iterable[float]) -> Iterator[Line]:
    """Give mean, median, std and percentiles in ms under the names of `benchmark_serving` (`mean_ttft_ms`, …).

    The standard deviation has n in its denominator, percentiles are linear (numpy's defaults).
    """
    if not len(values_s):
        return
    found = {"mean": values_s.mean(), "median": np.median(values_s), "std": values_s.std()}
    levels = tuple(levels)
    for level, value in zip(levels, np.percentile(values_s, levels), strict=True):
        found[f"p{level:g}"] = value
    for stat, value in found.items():
        yield Line(name=f"{stat}_{metric}_ms", value=float(value) * 1e3, unit="ms", definition=definition)
