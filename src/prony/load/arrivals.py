"""When requests are due: offsets from the start of the load, drawn from the plan's seed."""

from collections.abc import Sequence
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from prony.base.errors import ConfigError
from prony.spec.arrival import Arrival, ClosedLoop, OpenLoop, Stage, TimedArrivals

Floats = NDArray[np.float64]
_NS = 1e9


def offsets_ns(
    arrival: Arrival, count: int, rng: np.random.Generator, times_s: Sequence[float] | None = None
) -> list[int] | None:
    """Return when each of `count` requests is due, in ns, ascending; None in a closed loop.

    times_s: the times that a file states, in its order, for timed arrivals. Raises ConfigError when the stages end, or
    the file's times do, before all requests are due.
    """
    if isinstance(arrival, ClosedLoop):
        return None
    seconds = _timed(arrival, count, rng, times_s) if isinstance(arrival, TimedArrivals) else _open(arrival, count, rng)
    found: list[int] = np.round(seconds * _NS).astype(np.int64).tolist()
    return found


def _open(arrival: OpenLoop, count: int, rng: np.random.Generator) -> Floats:
    """Map arrivals of rate 1 through the inverse of the expected number of arrivals until t.

    A Poisson process of any rate is one of rate 1 on that scale (time rescaling; Cinlar, Introduction to Stochastic
    Processes, 4.7); for other gaps it keeps their shape and gives the rate of the stage.
    """
    return _times_of(np.cumsum(_unit_gaps(arrival, count, rng)), arrival)


def _unit_gaps(arrival: OpenLoop, count: int, rng: np.random.Generator) -> Floats:
    """Draw gaps of mean 1; the first request is due after the first gap, a constant rate begins at once."""
    if arrival.process == "constant":
        return np.concatenate([[0.0], np.ones(count - 1)])
    if arrival.process == "poisson":
        return rng.exponential(size=count)
    return rng.gamma(arrival.burstiness, 1.0 / arrival.burstiness, size=count)


def _times_of(levels: Floats, arrival: OpenLoop) -> Floats:
    """Return the times at which the expected number of arrivals reaches each of the ascending levels."""
    found = np.empty(len(levels))
    done, begin_s, begin_level = 0, 0.0, 0.0
    stages = cycle(arrival.stages) if arrival.repeat else arrival.stages
    for stage in stages:
        gained = _expected(stage)
        until = len(levels) if gained is None else int(np.searchsorted(levels, begin_level + gained, side="right"))
        found[done:until] = begin_s + _within(levels[done:until] - begin_level, stage)
        done = max(done, until)
        if done == len(levels) or gained is None:
            return found
        begin_s, begin_level = begin_s + (stage.for_s or 0.0), begin_level + gained
    raise ConfigError(
        f"the stages of the arrival end after {begin_s:g} s, when {done} of {len(levels)} requests are due",
        allowed="a last stage without an end, repeat, or fewer requests",
        fix=f"ask for at most {done} requests, or leave out for-s in the last stage",
    )


def _expected(stage: Stage) -> float | None:
    """Return the expected arrivals of a whole stage, None for one without an end."""
    if stage.for_s is None:
        return None
    to = stage.rate if stage.to_rate is None else stage.to_rate
    return (stage.rate + to) / 2 * stage.for_s


def _within(levels: Floats, stage: Stage) -> Floats:
    """Solve rate t + slope t^2 / 2 = level for t in a stage; stable also for a slope of 0."""
    slope = 0.0
    if stage.for_s is not None and stage.to_rate is not None:
        slope = (stage.to_rate - stage.rate) / stage.for_s
    root = np.sqrt(np.maximum(stage.rate**2 + 2 * slope * levels, 0.0))
    times: Floats = np.divide(2 * levels, stage.rate + root, out=np.zeros_like(levels), where=stage.rate + root > 0)
    return times


def _timed(arrival: TimedArrivals, count: int, rng: np.random.Generator, times_s: Sequence[float] | None) -> Floats:
    if times_s is None or len(times_s) < count:
        raise ConfigError(
            f"{count} requests are asked, the file states {len(times_s or ())} times",
            allowed="a request log whose every line has a timestamp",
            fix="ask for fewer requests",
        )
    stated = np.sort(np.asarray(times_s[:count], dtype=np.float64), kind="stable")
    return _spread(stated - stated[0], arrival, rng) / arrival.speed


def _spread(times: Floats, arrival: TimedArrivals, rng: np.random.Generator) -> Floats:
    """Spread equal times over their bucket, in order; nothing passes the next time that is stated."""
    if arrival.spread == "none" or not len(times):
        return times
    starts, counts = np.unique(times, return_counts=True)
    widths = np.minimum(np.diff(starts, append=np.inf), arrival.bucket_s)
    if arrival.spread == "even":
        shares = np.concatenate([np.arange(number) / number for number in counts])
    else:
        shares = np.concatenate([np.sort(rng.random(number)) for number in counts])
    spread: Floats = np.repeat(starts, counts) + np.repeat(widths, counts) * shares
    return spread
