"""The steady part of a load: warm-up cut off by MSER-5, drain cut off at the last send; and did it then stand still?

MSER-5 (White, Cobb & Spratt, 2000): of all truncations of a series, the one that leaves the mean with the least
standard error, over means of 5 neighbours; it is no answer when it cuts more than half.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from prony.base.units import duration
from prony.measure.eventlog import NEVER, EventLog, Fault, Ints
from prony.measure.generation import Generation
from prony.measure.inflight import Window, spans
from prony.measure.statistics import Floats

BATCH = 5
FEWEST_BATCHES, MOST_BATCHES = 20, 200
ARRIVALS_PER_SLICE = 4
FEWEST_LATENCIES = 4.0
"""A load must last so many mean latencies from its first to its last send, and its steady part half of that."""
DRIFT = 0.05
"""How much the halves of a steady window may differ."""
STILL = 0.01
"""A series that stays within this share of its mean has no warm-up."""
_GROUPS = 10
_T995 = 2.878
"""0.995 quantile of Student's t for 18 degrees of freedom (NIST/SEMATECH e-Handbook, 1.3.6.7.2)."""


@dataclass(frozen=True)
class Steady:
    """What is known of the steady part of a load.

    state: `steady`, `short` (too little to say) or `unsteady`. why: in plain words, when it is not steady. window:
    from the end of the warm-up to the last send, only when steady; warmup_s: what was cut. edges: of its slices, ns.
    """

    state: Literal["steady", "short", "unsteady"]
    why: str = ""
    window: Window | None = None
    warmup_s: float = 0.0
    edges: Floats | None = None

    def rates(self, at: Ints, weights: Ints | None = None) -> Floats:
        """Return what happened per second in each slice of the window: instants `at`, each counting its weight."""
        if self.edges is None:
            return np.empty(0)
        return _per_slice(at, self.edges, weights) / np.diff(self.edges) * 1e9


def steady_state(log: EventLog, made: Generation) -> Steady:
    """Find the steady part of a load by its token throughput and its requests in flight over time."""
    issue = _issue_window(log)
    if not len(made):
        return Steady("short", "no request was completed")
    if issue is None:
        return Steady("short", "all requests were sent at once")
    latency_s = float((made.last - made.sent).mean()) / 1e9
    if issue.seconds < FEWEST_LATENCIES * latency_s:
        return Steady(
            "short",
            f"all requests were sent within {duration(issue.seconds)}, and one takes {duration(latency_s)}"
            f" (at least {FEWEST_LATENCIES:.0f} times that is needed)",
        )
    inside = (made.at >= issue.start) & (made.at <= issue.stop)
    arrivals = int(np.count_nonzero(inside))
    batches = min(MOST_BATCHES, arrivals // (ARRIVALS_PER_SLICE * BATCH))
    if batches < FEWEST_BATCHES:
        least = FEWEST_BATCHES * ARRIVALS_PER_SLICE * BATCH
        return Steady("short", f"{arrivals} events with tokens came before the last send, at least {least} are needed")
    edges = np.linspace(issue.start, issue.stop, batches * BATCH + 1)
    series = {
        "token throughput": _throughput(made, edges),
        "the number of requests in flight": _in_flight(log, edges),
    }
    cuts = {name: mser5(values) for name, values in series.items()}
    endless = next((name for name, cut in cuts.items() if cut is None), None)
    if endless:
        return Steady("unsteady", f"{endless} did not settle in the first half of the load (MSER-5)")
    return _after_warmup(series, edges, max(cut for cut in cuts.values() if cut is not None), latency_s)


def _after_warmup(series: dict[str, Floats], edges: Floats, cut: int, latency_s: float) -> Steady:
    window = Window(round(edges[cut]), round(edges[-1]))
    warmup_s = float(edges[cut] - edges[0]) / 1e9
    if window.seconds < FEWEST_LATENCIES / 2 * latency_s:
        return Steady("short", f"after {duration(warmup_s)} of warm-up {duration(window.seconds)} are left")
    for name, values in series.items():
        change = drift(values[cut:])
        if change is not None:
            return Steady("unsteady", f"{name} was {change:+.1%} in the second half of the load after its warm-up")
    return Steady("steady", "", window, warmup_s, edges[cut:])


def _issue_window(log: EventLog) -> Window | None:
    """Return the span from the first send to the last; of a stopped load, to the first send of those cut off."""
    requests = log.requests
    sent = requests.sent[requests.sent >= 0]
    if not len(sent):
        return None
    cancelled = requests.sent[(requests.fault == Fault.CANCELLED) & (requests.sent >= 0)]
    stop = int(cancelled.min()) if len(cancelled) else int(sent.max())
    return Window(int(sent.min()), stop) if stop > int(sent.min()) else None


def _throughput(made: Generation, edges: Floats) -> Floats:
    """Count the tokens in each slice; an arrival of unknown tokens is one."""
    unknown = (made.tokens == NEVER).any()
    return _per_slice(made.at, edges, np.where(made.tokens == NEVER, 1, made.tokens) if unknown else made.tokens)


def _per_slice(at: Ints, edges: Floats, weights: Ints | None) -> Floats:
    """Sum the weights (1 when not given) of the instants in each slice, all of one width; the last holds its end."""
    slices = len(edges) - 1
    inside = np.flatnonzero((at >= edges[0]) & (at <= edges[-1]))
    place = ((at[inside] - edges[0]) * (slices / (edges[-1] - edges[0]))).astype(np.intp)
    np.minimum(place, slices - 1, out=place)
    counted = np.bincount(place, weights=None if weights is None else weights[inside], minlength=slices)
    return counted.astype(np.float64)


def _in_flight(log: EventLog, edges: Floats) -> Floats:
    """Return the mean number of requests in flight in each slice."""
    sent, end = spans(log)
    passed = _integral(np.sort(sent), edges) - _integral(np.sort(end), edges)
    return np.diff(passed) / np.diff(edges)


def _integral(ordered: Ints, edges: Floats) -> Floats:
    """Return, for each edge, the sum over all earlier instants of the time since then."""
    sums = np.concatenate(([0.0], np.cumsum(ordered - edges[0])))
    count = np.searchsorted(ordered, edges)
    return np.asarray(count * (edges - edges[0]) - sums[count], dtype=np.float64)


def mser5(values: Floats) -> int | None:
    """Return how many values to cut off a series' start, a multiple of 5; None when more than half would have to go."""
    batches = len(values) // BATCH
    means = values[: batches * BATCH].reshape(batches, BATCH).mean(axis=1)
    center = float(means.mean())
    if np.ptp(means) <= STILL * abs(center):
        return 0
    means = means - center
    left = np.arange(batches, 0, -1)
    total, squares = np.cumsum(means[::-1])[::-1], np.cumsum((means**2)[::-1])[::-1]
    scatter = np.maximum(squares - total**2 / left, 0.0)
    # The last few batches can be alike by chance, so no truncation is looked at that leaves fewer than a quarter.
    error = (scatter / left.astype(np.float64) ** 2)[: batches - batches // 4]
    cut = int(np.argmin(error))
    return cut * BATCH if cut <= batches // 2 else None


def drift(values: Floats) -> float | None:
    """Return the relative change from the first to the second half of a series; None when it may be chance or is small.

    Welch's test at 1 % over the means of 10 groups of neighbours in each half.
    """
    half = len(values) // 2
    if half < _GROUPS:
        return None
    first, second = (_group_means(part) for part in (values[:half], values[half:]))
    change = float(second.mean() - first.mean())
    error = math.sqrt((float(first.var(ddof=1)) + float(second.var(ddof=1))) / _GROUPS)
    before = float(first.mean())
    if abs(change) <= DRIFT * abs(before) or abs(change) <= _T995 * error:
        return None
    return change / before if before else math.inf


def _group_means(values: Floats) -> Floats:
    edges = np.linspace(0, len(values), _GROUPS + 1).astype(np.intp)
    return np.asarray(np.add.reduceat(values, edges[:-1]) / np.diff(edges), dtype=np.float64)
