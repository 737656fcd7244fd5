"""Pairs of launches: the interval covers, drift cancels, few pairs claim nothing."""

import numpy as np
import pytest

from prony.measure.paired import paired


def test_a_nominal_95_percent_interval_covers_the_true_difference() -> None:
    generator = np.random.default_rng(3)
    truth, covered, runs = 0.04, 0, 2000
    for _ in range(runs):
        drift = np.exp(np.linspace(0, 0.3, 5))  # the machine warms up over the session
        first = 100 * drift * np.exp(generator.normal(0, 0.02, 5))
        second = 100 * (1 + truth) * drift * np.exp(generator.normal(0, 0.02, 5))
        found = paired(first.tolist(), second.tolist())
        assert found is not None and found.ci95 is not None
        covered += found.ci95[0] <= truth <= found.ci95[1]
    assert 0.92 <= covered / runs <= 0.97


def test_up_and_down_weigh_alike() -> None:
    found = paired([1.0, 2.0, 1.0], [2.0, 1.0, 1.0])
    assert found is not None and found.difference == pytest.approx(0) and not found.told_apart


def test_fewer_than_three_pairs_have_no_interval_and_none_is_none() -> None:
    found = paired([1.0, 1.0], [2.0, 2.0])
    assert found is not None and found.ci95 is None and found.difference == pytest.approx(1.0) and not found.told_apart
    assert paired([], []) is None and paired([0.0], [1.0]) is None
