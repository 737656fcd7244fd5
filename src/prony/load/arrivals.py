"""When requests are due: offsets from the start of the load, drawn from the plan's seed."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from prony.base.errors import ConfigError
from prony.spec.arrival import Arrival, ClosedLoop, OpenLoop, Stage, TimedArrivals
from prony.spec.load import MAX_SECONDS

Floats = NDArray[np.float64]
_NS = 1e9


def offsets_ns(
    arrival: Arrival, count: int, rng: np.random.Generator, times_s: Sequence[float] | None = None
) -> list[int] | None:
    """Return when each of `count` requests is due, in ns, ascending; None in a closed loop.

    times_s: the times that a file states, ascending, for timed arrivals. Raises ConfigError when the stages end before
    all requests are due, when the file states too few times, and when the load would take more than 30 days.
    """
    if isinstance(arrival, ClosedLoop):
        return None
    seconds = _timed(arrival, count, rng, times_s) if isinstance(arrival, TimedArrivals) else _open(arrival, count, rng)
    if not seconds[-1] <= MAX_SECONDS:
        raise ConfigError(
            f"the last of {count} requests would be due after {seconds[-1] / 86_400:.3g} days",
            allowed=f"at most {MAX_SECONDS / 86_400:g} days",
            fix="raise the rate or the speed, or ask for fewer requests",
        )
    found: list[int] = np.round(seconds * _NS).astype(np.int64).tolist()
    return found


def _open(arrival: OpenLoop, count: int, rng: np.random.Generator) -> Floats:
    """Map arrivals of rate 1 through the inverse of the expected number of arrivals until t.

    A Poisson process of any rate is one of rate 1 on that scale (time rescaling; Cinlar, Introduction to Stochastic
    Processes, 4.7); for other gaps it keeps their shape and gives the rate of the stage.
    """
    levels = np.cumsum(_unit_gaps(arrival, count, rng))
    course = _Course(arrival.stages)
    if not arrival.repeat:
        return course.times_of(levels)
    rounds, rest = np.divmod(levels, course.level)
    return np.maximum.accumulate(rounds * course.span_s + course.times_of(rest))


def _unit_gaps(arrival: OpenLoop, count: int, rng: np.random.Generator) -> Floats:
    """Draw gaps of mean 1; the first request is due after the first gap, a constant rate begins at once."""
    if arrival.process == "constant":
        return np.concatenate([[0.0], np.ones(count - 1)])
    if arrival.process == "poisson":
        return rng.exponential(size=count)
    return rng.gamma(arrival.burstiness, 1.0 / arrival.burstiness, size=count)


class _Course:
    """The expected number of arrivals (level) as a function of time, over all stages; each takes [start, end).

    level, span_s: at the end of the last stage; infinite when it has no end.
    """

    def __init__(self, stages: Sequence[Stage]) -> None:
        spans = np.array([np.inf if stage.for_s is None else stage.for_s for stage in stages])
        to = np.array([stage.rate if stage.to_rate is None else stage.to_rate for stage in stages])
        self._rates = np.array([stage.rate for stage in stages])
        self._slopes = (to - self._rates) / spans
        self._levels = np.concatenate([[0.0], np.cumsum((self._rates + to) / 2 * spans)])
        self._begin_s = np.concatenate([[0.0], np.cumsum(spans)])
        self.level, self.span_s = float(self._levels[-1]), float(self._begin_s[-1])

    def times_of(self, levels: Floats) -> Floats:
        """Return when each of the ascending levels is reached: rate t + slope t^2 / 2 = level, solved for t by the form
        that is stable also for a slope of 0. Raises ConfigError for a level that is never reached."""
        stage = np.searchsorted(self._levels[1:], levels, side="right")
        fit = int(np.count_nonzero(stage < len(self._rates)))
        if fit < len(levels):
            raise self._too_short(fit, len(levels))
        rate, rise = self._rates[stage], levels - self._levels[stage]
        below = rate + np.sqrt(np.maximum(rate**2 + 2 * self._slopes[stage] * rise, 0.0))
        within = np.divide(2 * rise, below, out=np.zeros_like(rise), where=below > 0)
        times: Floats = self._begin_s[stage] + within
        return times

    def _too_short(self, fit: int, asked: int) -> ConfigError:
        fewer = f", or ask for at most {fit} requests (multi-turn: conversations)" if fit else ""
        return ConfigError(
            f"the stages of the arrival end after {self.span_s:g} s, when {fit} of {asked} requests are due",
            allowed="a last stage without for-s, repeat: true, or fewer requests",
            fix=f"leave out for-s in the last stage{fewer}",
        )


def _timed(arrival: TimedArrivals, count: int, rng: np.random.Generator, times_s: Sequence[float] | None) -> Floats:
    if times_s is None or len(times_s) < count:
        raise ConfigError(
            f"{count} requests are asked, the file states {len(times_s or ())} times",
            allowed="a request log whose every line has a timestamp",
            fix="ask for fewer requests",
        )
    stated = np.asarray(times_s[:count], dtype=np.float64)
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
