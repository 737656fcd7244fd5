import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.sim.timing import Timing, schedule


@given(st.integers(1, 4096), st.integers(1, 500), st.integers(1, 8))
def test_all_tokens_come_and_tpot_is_itl_whatever_the_event_size(prompt: int, output: int, per_event: int) -> None:
    events = schedule(Timing(0.02, 0.002, 1e-5, per_event), prompt, output)
    assert sum(event.tokens for event in events) == output
    assert events[0].tokens == 1
    assert events[0].at_s == pytest.approx(0.02 + prompt * 1e-5)
    if output > 1:
        assert (events[-1].at_s - events[0].at_s) / (output - 1) == pytest.approx(0.002)


def test_moments_are_absolute_so_that_no_error_adds_up() -> None:
    events = schedule(Timing(0.1, 0.01), 10, 1001)
    assert events[-1].at_s == pytest.approx(10.1, abs=1e-12)
    assert [event.at_s for event in events] == sorted(event.at_s for event in events)
