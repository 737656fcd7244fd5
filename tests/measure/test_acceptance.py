"""Acceptance that came out is held against the committed length."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.measure.acceptance import judge_acceptance, realised
from prony.measure.observed import Acceptance, EngineFacts


def counted(lengths: "np.ndarray[tuple[int], np.dtype[np.int64]]", steps: int) -> EngineFacts:
    """Return the counters of an engine that accepted so many tokens in each draft."""
    at = tuple(int((lengths > position).sum()) for position in range(steps))
    return EngineFacts(drafts=len(lengths), accepted=int(lengths.sum()), accepted_at=at)


def asked(length: float | None, facts: EngineFacts | None) -> Acceptance:
    found = realised(facts)
    return Acceptance(
        mode="real" if length is None else "golden",
        method="mtp",
        steps=3,
        asked=length,
        curve=None if length is None else "m/mtp",
        realised=found.length if found else None,
        standard_error=found.standard_error if found else None,
        drafts=found.drafts if found else None,
    )


@given(st.lists(st.integers(0, 3), min_size=2, max_size=200))
def test_length_and_error_are_those_of_the_single_drafts(drafts: list[int]) -> None:
    lengths = np.array(drafts)
    found = realised(counted(lengths, 3))
    assert found is not None and found.length == pytest.approx(1 + lengths.mean())
    assert found.standard_error == pytest.approx(lengths.std(ddof=1) / np.sqrt(len(lengths)), abs=1e-9)


def drafts_of(length: float, count: int, seed: int = 1) -> EngineFacts:
    """Drafts of an engine whose every position is accepted with one probability, at this mean."""
    generator = np.random.default_rng(seed)
    low, high = 0.0, 1.0
    for _ in range(60):
        mid = (low + high) / 2
        low, high = (mid, high) if 1 + mid + mid**2 + mid**3 < length else (low, mid)
    return counted(np.cumprod(generator.random((count, 3)) < low, axis=1).sum(axis=1), 3)


def test_what_was_asked_comes_out() -> None:
    assert judge_acceptance(asked(2.99, drafts_of(2.99, 20_000))) == ()


def test_another_acceptance_is_invalid_and_with_few_drafts_a_warning() -> None:
    (found,) = judge_acceptance(asked(2.49, drafts_of(2.27, 20_000)))
    assert found.severity == "invalid" and found.rule == "verdict/acceptance"
    assert "where 2.49 were asked by m/mtp (-8." in found.message
    (few,) = judge_acceptance(asked(2.49, drafts_of(2.0, 2_000)))
    assert few.severity == "warn" and "2,000 drafts, too few for a verdict" in few.message


def test_chance_alone_is_no_fault() -> None:
    """With 400 drafts 2 % is within one standard error: three of them are allowed."""
    blamed = [bool(judge_acceptance(asked(2.5, drafts_of(2.5, 400, seed)))) for seed in range(200)]
    assert sum(blamed) <= 3


def test_real_acceptance_is_not_judged_and_golden_without_counters_is_told() -> None:
    assert judge_acceptance(asked(None, drafts_of(1.2, 20_000))) == ()
    (found,) = judge_acceptance(asked(2.99, None))
    assert (found.rule, found.severity) == ("verdict/acceptance-unknown", "warn")


def test_counters_that_say_nothing_give_nothing() -> None:
    assert realised(None) is None and realised(EngineFacts(drafts=0, accepted=0)) is None
    without = realised(EngineFacts(drafts=10, accepted=15))
    assert without is not None and without.standard_error is None and without.length == 2.5
