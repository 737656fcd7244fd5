import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.measure.statistics import (
    QUANTILES,
    batch_means_interval,
    binomial_ranks,
    percentile_intervals,
    percentiles,
    t975,
)


def test_the_t_table_is_the_integral_of_its_density() -> None:
    for freedom in range(1, 20):
        scale = math.gamma((freedom + 1) / 2) / math.sqrt(freedom * math.pi) / math.gamma(freedom / 2)
        x = np.linspace(0, t975(freedom), 200_001)
        density = scale * (1 + x**2 / freedom) ** (-(freedom + 1) / 2)
        assert 0.5 + np.trapezoid(density, x) == pytest.approx(0.975, abs=3e-5)


def _coverage(series: np.ndarray) -> float:
    found = [batch_means_interval(values) for values in series]
    return float(np.mean([interval is not None and interval[0] <= 0 <= interval[1] for interval in found]))


def _ar1(runs: int, n: int, phi: float, seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=(runs, n))
    noise[:, 0] /= math.sqrt(1 - phi**2)
    for step in range(1, n):
        noise[:, step] += phi * noise[:, step - 1]
    return noise


@pytest.mark.parametrize(("n", "phi"), [(20, 0.0), (33, 0.0), (80, 0.0), (1000, 0.0), (400, 0.5), (2000, 0.8)], ids=str)
def test_a_nominal_95_percent_interval_covers_the_mean_92_to_97_times_in_100(n: int, phi: float) -> None:
    assert 0.92 <= _coverage(_ar1(3000, n, phi, seed=n)) <= 0.97


def test_an_interval_that_ignores_correlation_would_cover_far_less() -> None:
    series = _ar1(1000, 2000, 0.8, seed=1)
    half = 1.96 * series.std(axis=1, ddof=1) / math.sqrt(2000)
    assert np.mean(np.abs(series.mean(axis=1)) <= half) < 0.6


def test_no_interval_is_invented_for_too_few_values() -> None:
    assert batch_means_interval(np.arange(19.0)) is None
    assert batch_means_interval(np.arange(20.0)) is not None
    assert batch_means_interval(np.array([])) is None


@given(st.lists(st.floats(-1e6, 1e6), min_size=20, max_size=500))
def test_an_interval_holds_the_mean_of_its_values(values: list[float]) -> None:
    interval = batch_means_interval(np.array(values))
    assert interval is not None
    assert interval[0] <= np.mean(values) + 1e-6 and interval[1] >= np.mean(values) - 1e-6


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=200))
def test_percentiles_rise_and_stay_within_the_sample(values: list[float]) -> None:
    found = percentiles(np.array(values))
    assert np.all(np.diff(found) >= -1e-9 * max(values))
    assert min(values) <= found[0] and found[-1] <= max(values) * (1 + 1e-12)


def test_percentiles_are_type_7_and_need_10_over_1_minus_q_observations() -> None:
    assert percentiles(np.array([1.0, 2.0, 3.0, 4.0]))[:2] == pytest.approx([2.5, 3.7])
    assert all(quantile.needs == round(10 / (1 - quantile.level)) for quantile in QUANTILES)


@pytest.mark.parametrize(("n", "level"), [(20, 0.5), (100, 0.9), (200, 0.95), (1000, 0.99), (37, 0.5)])
def test_order_statistic_intervals_have_the_least_binomial_ranks_that_cover_95_percent(n: int, level: float) -> None:
    pair = binomial_ranks(n, level)
    assert pair is not None
    mass = [math.comb(n, k) * level**k * (1 - level) ** (n - k) for k in range(n + 1)]
    low, high = pair
    assert sum(mass[low:high]) >= 0.95
    assert sum(mass[: low + 1]) > 0.025 and sum(mass[high - 1 :]) > 0.025


def test_a_percentile_that_lies_beyond_what_the_sample_can_bound_has_no_interval() -> None:
    assert binomial_ranks(5, 0.5) is None
    assert binomial_ranks(100, 0.99) is None
    assert [one.ci95 is not None for one in percentile_intervals(np.arange(150.0) % 7)] == [
        True, True, False, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(("n", "phi"), [(1000, 0.0), (2000, 0.8)])
def test_the_interval_of_a_percentile_covers_it_also_when_neighbours_are_alike(n: int, phi: float) -> None:
    found = [percentile_intervals(values)[:3] for values in _ar1(1000, n, phi, seed=n)]
    for place, quantile in enumerate(QUANTILES[:3]):
        truth = NormalDist(0, 1 / math.sqrt(1 - phi**2)).inv_cdf(quantile.level)
        hits = [low <= truth <= high for low, high in (one[place].ci95 or (math.inf, 0) for one in found)]
        assert 0.92 <= np.mean(hits) <= 0.98


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300))
def test_percentiles_with_and_without_intervals_agree(values: list[float]) -> None:
    found = percentile_intervals(np.array(values))
    assert [one.value for one in found] == pytest.approx(list(percentiles(np.array(values))), rel=1e-9, abs=1e-9)
    assert all(one.ci95 is None or one.ci95[0] <= one.value <= one.ci95[1] for one in found)
