"""What every number means: pure functions from the event log to measurements.

All instants come from the log (ns), all values go out in the registry's units. A request counts as completed when it
ended without a fault and brought generated tokens. What cannot be computed is absent, never 0.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from prony.measure.eventlog import EventLog, Ints
from prony.measure.generation import (
    Gaps,
    Generation,
    e2el,
    e2el_scheduled,
    gaps,
    generation,
    itl,
    token_gaps,
    tpot,
    ttft,
    ttft_scheduled,
)
from prony.measure.inflight import loaded_window, mean_in_flight, measured_window
from prony.measure.measurement import Measurement
from prony.measure.observed import EngineFacts
from prony.measure.registry import STEADY
from prony.measure.statistics import QUANTILES, Floats, batch_means_interval, percentile_intervals
from prony.measure.steady import Steady, steady_state

DEFINITIONS = "prony.definitions/1"
FEWEST_DRAFTS = 20


class Devices(NamedTuple):
    """How many devices throughput is divided by: all in use, and those of each role where there are roles."""

    used: int
    prefill: int | None = None
    decode: int | None = None


def measure(
    log: EventLog, gpus_used: int, gpus_prefill: int | None = None, gpus_decode: int | None = None
) -> tuple[Measurement, ...]:
    """Return all that one load measured, over the whole of it and, with keys of their own, over its steady part.

    Percentiles are linear (type 7); `std` has n - 1 in its denominator; `ci95` of a mean is by batch means in order of
    time, of a percentile between order statistics. Per-role throughputs are given when the role's devices are.
    """
    made = generation(log)
    return measure_made(log, made, steady_state(log, made), Devices(gpus_used, gpus_prefill, gpus_decode))


def measure_made(log: EventLog, made: Generation, steady: Steady, devices: Devices) -> tuple[Measurement, ...]:
    """Return all that one load measured, from what was found in its log."""
    found = list(_system(log, made, devices))
    if len(made):
        found += _latencies(log, made, steady)
    if steady.window is not None:
        found += _steady_rates(made, steady, devices)
    if log.engine is not None:
        found += _acceptance(log.engine)
    return tuple(found)


def _latencies(log: EventLog, made: Generation, steady: Steady) -> Iterator[Measurement]:
    timed = {"e2el": e2el(made)}
    if log.streamed:
        timed |= {"ttft": ttft(made), "tpot": tpot(made)}
    for key, found in timed.items():
        yield from _per_request(key, found.values)
        if steady.window is not None:
            yield from _per_request(key, found.within(steady.window), STEADY)
    if log.arrival == "open" and (made.scheduled >= 0).all():
        yield from _distribution("e2el_scheduled", e2el_scheduled(made).values)
        if log.streamed:
            yield from _distribution("ttft_scheduled", ttft_scheduled(made).values)
    if log.streamed:
        yield from _gap_metrics(made, steady)


def _per_request(key: str, values: Floats, suffix: str = "") -> Iterator[Measurement]:
    """Give the distribution of a latency, and with that of TPOT that of interactivity."""
    found = tuple(_distribution(f"{key}{suffix}", values))
    yield from found
    if key == "tpot":
        yield from filter(None, (_interactivity(one, f"interactivity{suffix}") for one in found))


def _gap_metrics(made: Generation, steady: Steady) -> Iterator[Measurement]:
    every = gaps(made)
    between: Gaps = token_gaps(made, every)
    per_event = tuple(_distribution("event_gap", every.gap))
    values = itl(between)
    if values is every.gap:
        yield from (one.model_copy(update={"metric": "itl"}) for one in per_event)
    else:
        yield from _distribution("itl", values)
    yield from per_event
    if steady.window is not None:
        yield from _distribution(f"itl{STEADY}", itl(between, steady.window))


def _distribution(metric: str, values: Floats) -> Iterator[Measurement]:
    """Give mean, std and percentiles of values in order of time."""
    n = len(values)
    if not n:
        return
    yield Measurement(metric=metric, stat="mean", value=float(values.mean()), n=n, ci95=batch_means_interval(values))
    if n > 1:
        yield Measurement(metric=metric, stat="std", value=float(values.std(ddof=1)), n=n)
    for quantile, found in zip(QUANTILES, percentile_intervals(values), strict=True):
        yield Measurement(
            metric=metric, stat=quantile.stat, value=found.value, n=n, ci95=found.ci95, supported=n >= quantile.needs
        )


def _interactivity(tpot: Measurement, key: str) -> Measurement | None:
    """Turn a statistic of TPOT into the same of interactivity; a standard deviation has no reciprocal."""
    if tpot.stat == "std" or tpot.value <= 0:
        return None
    low_high = None
    if tpot.ci95 and tpot.ci95[0] > 0:
        low_high = (1 / tpot.ci95[1], 1 / tpot.ci95[0])
    return tpot.model_copy(update={"metric": key, "value": 1 / tpot.value, "ci95": low_high})


def _steady_rates(made: Generation, steady: Steady, devices: Devices) -> Iterator[Measurement]:
    """Give what happened per second of the steady window, with intervals by batch means over its slices."""
    assert steady.window is not None
    yield _value(f"duration{STEADY}", steady.window.seconds, len(made))
    yield _rate("request_rate", steady.rates(made.last), _count(steady, made.last))
    tokens_in, tokens_out = None, None
    if not (made.input_tokens < 0).any():
        tokens_in = steady.rates(made.first, made.input_tokens)
    if not (made.tokens < 0).any():
        tokens_out = steady.rates(made.at, made.tokens)
    both = None if tokens_in is None or tokens_out is None else tokens_in + tokens_out
    for name, rates in (("input_", tokens_in), ("output_", tokens_out), ("", both)):
        if rates is not None:
            n = _count(steady, made.first if name == "input_" else made.last)
            yield _rate(f"{name}tput", rates, n)
            yield _rate(f"{name}tput_per_gpu", rates / devices.used, n)


def _count(steady: Steady, at: Ints) -> int:
    assert steady.window is not None
    return int(np.count_nonzero((at >= steady.window.start) & (at <= steady.window.stop)))


def _rate(metric: str, slices: Floats, n: int) -> Measurement:
    mean, interval = float(slices.mean()), batch_means_interval(slices)
    return Measurement(metric=f"{metric}{STEADY}", stat="value", value=mean, n=n, ci95=interval)


def _system(log: EventLog, made: Generation, devices: Devices) -> Iterator[Measurement]:
    n = len(made)
    yield _value("requests_completed", n, len(log.requests))
    yield _value("requests_failed", len(log.requests) - n, len(log.requests))
    loaded, window = loaded_window(log), measured_window(log)
    if loaded:
        yield _value("concurrency_achieved", mean_in_flight(log, loaded), len(log.requests))
    if window is None or window.seconds <= 0:
        return
    yield _value("duration", window.seconds, len(log.requests))
    if n:
        yield _value("request_rate", n / window.seconds, n)
        yield from _throughput(made, window.seconds, devices)


def _throughput(made: Generation, seconds: float, devices: Devices) -> Iterator[Measurement]:
    n = len(made)
    tokens_in, tokens_out = _sum(made.input_tokens), _sum(made.output_tokens)
    for name, tokens, role, of_role in (
        ("input", tokens_in, "prefill", devices.prefill),
        ("output", tokens_out, "decode", devices.decode),
    ):
        if tokens is None:
            continue
        yield _value(f"{name}_tokens", tokens, n)
        yield _value(f"{name}_tput", tokens / seconds, n)
        yield _value(f"{name}_tput_per_gpu", tokens / seconds / devices.used, n)
        if of_role:
            yield _value(f"{name}_tput_per_{role}_gpu", tokens / seconds / of_role, n)
    if tokens_in is not None and tokens_out is not None:
        yield _value("tput", (tokens_in + tokens_out) / seconds, n)
        yield _value("tput_per_gpu", (tokens_in + tokens_out) / seconds / devices.used, n)


def _sum(tokens: Ints) -> int | None:
    """Add up tokens; one request whose tokens are unknown leaves the sum unknown."""
    return None if (tokens < 0).any() else int(tokens.sum())


def _acceptance(engine: EngineFacts) -> Iterator[Measurement]:
    """Give 1 + accepted / drafts; n is the drafts.

    The interval takes drafts as independent, so it is a lower bound of the doubt. Position i counts the drafts of which
    more than i tokens were accepted, so the mean square is the sum of (2i + 1) of these shares.
    """
    drafts, accepted = engine.drafts, engine.accepted
    if not drafts or accepted is None:
        return
    mean, at, interval = accepted / drafts, engine.accepted_at, None
    if drafts >= FEWEST_DRAFTS and at and sum(at) == accepted:
        square = sum((2 * position + 1) * count for position, count in enumerate(at)) / drafts
        half = 1.96 * math.sqrt(max(0.0, square - mean * mean) / (drafts - 1))
        interval = (1 + mean - half, 1 + mean + half)
    yield Measurement(metric="acceptance_length", stat="value", value=1 + mean, n=drafts, ci95=interval)


def _value(metric: str, value: float, n: int) -> Measurement:
    return Measurement(metric=metric, stat="value", value=float(value), n=n)
