import dataclasses
import math

import numpy as np
import pytest

from prony.measure.definitions import measure
from prony.measure.eventlog import EventLog, Fault
from prony.measure.generation import generation
from prony.measure.registry import STEADY, STEADY_KEYS
from prony.measure.result import Measurement
from prony.measure.statistics import batch_means_interval
from prony.measure.steady import Steady, drift, mser5, steady_state
from prony.measure.verdicts import judge
from prony.spec.load import LoadPlan
from tests.measure.logs import closed_loop, loop

NOISE = np.random.default_rng(44).uniform(0.8, 1.2, size=10_000)


def steady(log: EventLog) -> Steady:
    return steady_state(log, generation(log))


def numbers(log: EventLog) -> dict[tuple[str, str], Measurement]:
    return {(one.metric, one.stat): one for one in measure(log, 2)}


def verdict(log: EventLog) -> tuple[str, str] | None:
    load = LoadPlan(isl=100, osl=21, concurrency=log.concurrency, requests=len(log.requests))
    found = [one for one in judge(log, load, measure(log, 1)) if one.rule == "verdict/steady-state"]
    return (found[0].severity, found[0].message) if found else None


def warmed(number: int, at: float) -> float:
    """Latencies of a server that is 4 times slower in its first 2 s."""
    return float(NOISE[number]) * (400 if at < 2000 else 100)


def _ar1(runs: int, n: int, seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=(runs, n))
    noise[:, 0] /= math.sqrt(1 - 0.8**2)
    for step in range(1, n):
        noise[:, step] += 0.8 * noise[:, step - 1]
    return noise


@pytest.mark.parametrize("level", [10.0, 50.0])
def test_after_trimming_a_nominal_95_percent_interval_covers_the_steady_mean_92_to_97_times_in_100(
    level: float,
) -> None:
    """AR(1) of 0.8 over 1,200 slices of which the first 150 ramp up, as measured in the statistics of the project."""
    ramp = np.minimum(0.0, (np.arange(1200) - 150) / 150) * level
    hits, cuts = [], []
    for values in _ar1(2000, 1200, seed=7) + level + ramp:
        cut = mser5(values)
        assert cut is not None
        cuts.append(cut)
        low, high = batch_means_interval(values[cut:]) or (math.inf, 0.0)
        hits.append(low <= level <= high)
    assert 0.92 <= np.mean(hits) <= 0.97
    assert 60 <= np.median(cuts) <= 150


def test_without_trimming_the_mean_is_biased_and_its_interval_several_times_as_wide() -> None:
    ramp = np.minimum(0.0, (np.arange(1200) - 150) / 150) * 50.0
    whole: list[float] = []
    trimmed: list[float] = []
    for values in _ar1(200, 1200, seed=8) + ramp:
        cut = mser5(values)
        assert cut is not None
        for widths, part in ((whole, values), (trimmed, values[cut:])):
            low, high = batch_means_interval(part) or (0.0, 0.0)
            widths.append(high - low)
        assert values.mean() < -2
    assert np.median(whole) > 5 * np.median(trimmed)


def test_mser_cuts_nothing_of_a_still_series_and_finds_no_end_of_a_slope() -> None:
    assert mser5(np.full(200, 7.0)) == 0
    assert mser5(np.linspace(0, 1, 500)) is None
    step = np.concatenate([np.zeros(100), np.ones(400)]) + np.tile([0.0, 0.05], 250)
    assert mser5(step) == 100


def test_drift_is_told_when_it_is_large_and_no_chance() -> None:
    still = np.random.default_rng(3).normal(100, 10, size=400)
    assert drift(still) is None
    assert drift(still + np.linspace(0, 30, 400)) == pytest.approx(0.14, abs=0.03)
    assert drift(np.ones(19)) is None


def test_warm_up_and_drain_are_outside_the_steady_window_and_both_numbers_are_kept() -> None:
    log = loop(1200, 16, warmed)
    found, seen = steady(log), numbers(log)
    assert found.state == "steady" and found.window is not None
    assert 1.8e9 <= found.window.start <= 2.6e9
    assert found.window.stop == log.requests.sent.max()
    assert seen["e2el", "p99"].value > 0.3
    assert seen["e2el_steady", "mean"].value == pytest.approx(0.1, rel=0.02)
    assert seen["output_tput_steady", "value"].value == pytest.approx(16 * 21 / 0.1, rel=0.03)
    assert seen["output_tput", "value"].value < 0.9 * seen["output_tput_steady", "value"].value
    assert seen["tput_per_gpu_steady", "value"].value == pytest.approx(16 * 121 / 0.1 / 2, rel=0.03)
    assert seen["duration_steady", "value"].value == pytest.approx(found.window.seconds)


def test_every_steady_metric_is_measured_and_rates_have_intervals() -> None:
    seen = numbers(loop(1200, 16, warmed))
    assert {f"{key}{STEADY}" for key in STEADY_KEYS} <= {metric for metric, _ in seen}
    for key in ("output_tput_steady", "tput_steady", "request_rate_steady"):
        low, high = seen[key, "value"].ci95 or (0.0, 0.0)
        assert low < seen[key, "value"].value < high


def test_tokens_are_counted_when_they_came_and_not_with_their_request() -> None:
    log = loop(1200, 16, warmed)
    made, found = generation(log), steady(log)
    assert found.window is not None
    inside = (made.at >= found.window.start) & (made.at <= found.window.stop)
    rate = made.tokens[inside].sum() / found.window.seconds
    assert numbers(log)["output_tput_steady", "value"].value == pytest.approx(rate, rel=0.002)


def test_a_short_load_has_no_steady_numbers_and_says_why_in_plain_words() -> None:
    for log, why in (
        (closed_loop(8, 8), "all requests were sent at once"),
        (closed_loop(16, 8), "all requests were sent within"),
        (closed_loop(16, 2), "events with tokens came before the last send"),
    ):
        told = verdict(log)
        assert told is not None and told[0] == "info"
        assert "too short to tell a steady state" in told[1] and why in told[1]
        assert not any(metric.endswith(STEADY) for metric, _ in numbers(log))


def test_a_load_that_slows_down_to_its_end_is_not_steady_and_has_no_steady_numbers() -> None:
    log = loop(1200, 16, lambda number, _: float(NOISE[number]) * (50 + number / 5))
    told = verdict(log)
    assert told is not None and told[0] == "warn" and "the load was never steady" in told[1]
    assert not any(metric.endswith(STEADY) for metric, _ in numbers(log))


def test_a_steady_load_has_no_verdict_about_it() -> None:
    assert verdict(loop(1200, 16, warmed)) is None


def test_a_stopped_load_is_steady_up_to_the_first_request_that_was_cut_off() -> None:
    log = loop(1200, 16, warmed)
    fault = log.requests.fault.copy()
    fault[-16:] = Fault.CANCELLED
    stopped = dataclasses.replace(log, requests=dataclasses.replace(log.requests, fault=fault))
    found = steady(stopped)
    assert found.window is not None and found.window.stop == log.requests.sent[-16:].min()
    assert numbers(stopped)["output_tput_steady", "value"].value == pytest.approx(16 * 21 / 0.1, rel=0.03)
