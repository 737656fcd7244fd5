"""When requests are due: the rate that was asked, the shape that was asked, and the same again from the seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.base.errors import ConfigError
from prony.load.arrivals import offsets_ns
from prony.spec.arrival import Arrival, ClosedLoop, OpenLoop, Stage, TimedArrivals


def due_s(arrival: Arrival, count: int, seed: int = 0, times_s: list[float] | None = None) -> np.ndarray:  # type: ignore[type-arg]
    found = offsets_ns(arrival, count, np.random.default_rng(seed), times_s)
    assert found is not None
    return np.asarray(found) / 1e9


def steady(rate: float, process: str = "poisson", burstiness: float = 1.0) -> OpenLoop:
    return OpenLoop.model_validate({"process": process, "burstiness": burstiness, "stages": [{"rate": rate}]})


def test_a_closed_loop_has_no_times_of_its_own() -> None:
    assert offsets_ns(ClosedLoop(), 5, np.random.default_rng(0)) is None


def test_a_constant_rate_is_a_comb_from_zero_on() -> None:
    assert np.allclose(due_s(steady(4, "constant"), 5), [0, 0.25, 0.5, 0.75, 1.0])


@pytest.mark.parametrize(
    ("arrival", "variation"),
    [(steady(50), 1.0), (steady(50, "gamma", 0.25), 2.0), (steady(50, "gamma", 4.0), 0.5)],
    ids=["poisson", "bursty", "regular"],
)
def test_gaps_have_the_rate_and_the_variation_that_was_asked(arrival: OpenLoop, variation: float) -> None:
    gaps = np.diff(due_s(arrival, 40_000))
    assert gaps.mean() == pytest.approx(1 / 50, rel=0.03)
    assert gaps.std() / gaps.mean() == pytest.approx(variation, rel=0.05)


def test_a_ramp_fills_its_span_linearly_and_stays_at_its_end() -> None:
    ramp = OpenLoop(process="constant", stages=(Stage(rate=0, to_rate=100, for_s=10), Stage(rate=100)))
    due = due_s(ramp, 700)
    assert np.searchsorted(due, 10) == pytest.approx(500, abs=1)
    assert np.searchsorted(due, 5) == pytest.approx(125, abs=1)
    assert np.allclose(np.diff(due[520:]), 0.01)


def test_bursts_are_silent_between_them_and_come_again() -> None:
    bursts = OpenLoop(stages=(Stage(rate=100, for_s=1), Stage(rate=0, for_s=3)), repeat=True)
    due = due_s(bursts, 1000)
    assert np.all(due % 4 < 1) and due[-1] > 30


def test_nothing_is_due_in_a_silent_stage_nor_at_its_borders() -> None:
    late = OpenLoop(process="constant", stages=(Stage(rate=0, for_s=3), Stage(rate=2)))
    assert np.allclose(due_s(late, 3), [3, 3.5, 4])
    bursts = OpenLoop(process="constant", stages=(Stage(rate=2, for_s=1), Stage(rate=0, for_s=9)), repeat=True)
    assert np.allclose(due_s(bursts, 5), [0, 0.5, 10, 10.5, 20])


def test_very_many_short_rounds_cost_no_time() -> None:
    flicker = OpenLoop(stages=(Stage(rate=1, for_s=1e-6), Stage(rate=0, for_s=1e-6)), repeat=True)
    assert due_s(flicker, 2000)[-1] == pytest.approx(4000, rel=0.1)


def test_a_load_that_would_take_months_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"the last of 100 requests would be due after .* days"):
        due_s(steady(1e-6), 100)


def test_stages_that_end_too_early_say_how_many_requests_fit() -> None:
    short = OpenLoop(process="constant", stages=(Stage(rate=10, for_s=2),))
    with pytest.raises(ConfigError, match="end after 2 s, when 20 of 50 requests are due"):
        due_s(short, 50)
    assert len(due_s(short, 20)) == 20


def test_equal_times_are_spread_over_their_bucket_in_order() -> None:
    stated = [10.0, 10.0, 10.0, 10.0, 11.0, 13.0, 13.0]
    assert np.allclose(due_s(TimedArrivals(), 7, times_s=stated), [0, 0, 0, 0, 1, 3, 3])
    even = due_s(TimedArrivals(spread="even"), 7, times_s=stated)
    assert np.allclose(even, [0, 0.25, 0.5, 0.75, 1, 3, 3.5])
    assert np.allclose(due_s(TimedArrivals(spread="even", speed=2), 7, times_s=stated), even / 2)
    loose = due_s(TimedArrivals(spread="random"), 7, times_s=stated)
    assert np.all(np.diff(loose) >= 0) and np.all((loose >= [0, 0, 0, 0, 1, 3, 3]) & (loose < [1, 1, 1, 1, 2, 4, 4]))


def test_a_log_with_fewer_times_than_requests_is_refused() -> None:
    with pytest.raises(ConfigError, match="3 requests are asked, the file states 2 times"):
        due_s(TimedArrivals(), 3, times_s=[1.0, 2.0])


STAGES = st.lists(
    st.builds(
        Stage,
        rate=st.floats(0, 500),
        to_rate=st.none() | st.floats(0, 500),
        for_s=st.floats(0.01, 20),
    ),
    max_size=4,
)


@given(STAGES, st.sampled_from(["constant", "poisson", "gamma"]), st.integers(1, 300), st.integers(0, 99))
def test_times_ascend_and_come_again_from_the_seed(stages: list[Stage], process: str, count: int, seed: int) -> None:
    arrival = OpenLoop.model_validate({"process": process, "stages": [*stages, Stage(rate=5)]})
    due = due_s(arrival, count, seed)
    assert len(due) == count and np.all(np.diff(due) >= 0) and due[0] >= 0
    assert np.array_equal(due, due_s(arrival, count, seed))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"stages": [{"rate": 1}, {"rate": 2}]}, "every stage that another follows needs for-s"),
        ({"stages": [{"rate": 1}], "repeat": True}, "needs for-s"),
        ({"stages": [{"rate": 1, "to-rate": 2}]}, "a stage with to-rate needs for-s"),
        ({"stages": [{"rate": 0, "for-s": 1}]}, "no stage has a rate above 0"),
        ({"stages": [{"rate": 1, "for-s": 1}, {"rate": 0}]}, "rate 0 and no end"),
        ({"stages": [{"rate": 1e-300}]}, "no stage has a rate above 0"),
        ({"stages": [{"rate": 1}], "burstiness": 2}, "burstiness is of process: gamma"),
    ],
)
def test_an_arrival_that_cannot_be_is_refused_with_its_reason(fields: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        OpenLoop.model_validate(fields)
