"""The frontier in all four directions."""

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.view.frontier import Better, dominated_area, frontier

DIRECTIONS: list[tuple[Better, Better]] = list(product(("higher", "lower"), repeat=2))  # type: ignore[arg-type]
# Few distinct values, so that ties are common.
VALUES = st.one_of(st.integers(-3, 3).map(float), st.sampled_from([math.nan, math.inf, -math.inf]), st.none())
POINTS = st.lists(st.tuples(VALUES, VALUES), max_size=12)


def at_least(a: float, b: float, better: Better) -> bool:
    return a >= b if better == "higher" else a <= b


def undominated(points: list[tuple[float, float]], x_better: Better, y_better: Better) -> set[int]:
    """The definition, by comparing every pair."""
    whole = {i: p for i, p in enumerate(points) if all(v is not None and math.isfinite(v) for v in p)}
    return {
        index
        for index, (x, y) in whole.items()
        if not any(
            at_least(a, x, x_better) and at_least(b, y, y_better) and (a, b) != (x, y) for a, b in whole.values()
        )
    }


@pytest.mark.parametrize(("x_better", "y_better"), DIRECTIONS)
@given(points=POINTS)
def test_frontier_is_exactly_the_undominated_points(
    x_better: Better, y_better: Better, points: list[tuple[float, float]]
) -> None:
    found = frontier(points, x_better, y_better)
    assert set(found) == undominated(points, x_better, y_better)
    assert [points[index][0] for index in found] == sorted(points[index][0] for index in found)


def test_of_two_points_equal_on_one_axis_the_worse_is_dominated() -> None:
    assert frontier([(10.0, 5.0), (12.0, 5.0)], "lower", "higher") == (0,)
    assert frontier([(10.0, 5.0), (10.0, 7.0)], "higher", "lower") == (0,)


def test_equal_points_all_stay() -> None:
    assert frontier([(1.0, 1.0), (1.0, 1.0), (0.0, 0.0)], "higher", "higher") == (0, 1)


def test_a_value_not_measured_leaves_its_point_out_and_is_never_zero() -> None:
    assert frontier([(None, 9.0), (1.0, 1.0), (2.0, None)], "lower", "lower") == (1,)


def test_no_points_have_no_frontier() -> None:
    assert frontier([], "higher", "higher") == ()


def test_dominated_area_of_a_staircase() -> None:
    # Unions of rectangles from the corner: 1×3 and 2×1 overlap in 1×1.
    assert dominated_area([(1.0, 3.0), (2.0, 1.0), (0.5, 0.5)], "higher", "higher", (0.0, 0.0)) == 4.0
    # Latency 2 against a worst of 5, throughput 10: 3 × 10.
    assert dominated_area([(2.0, 10.0)], "lower", "higher", (5.0, 0.0)) == 30.0


@given(points=POINTS, extra=st.tuples(VALUES, VALUES))
def test_another_point_never_shrinks_the_area(
    points: list[tuple[float | None, float | None]], extra: tuple[float | None, float | None]
) -> None:
    before = dominated_area(points, "higher", "higher", (0.0, 0.0))
    assert dominated_area([*points, extra], "higher", "higher", (0.0, 0.0)) >= before >= 0
