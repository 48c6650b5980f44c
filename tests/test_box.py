"""The box that queries are chosen from."""

import datetime

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sklearn_asal.box import Box

finite = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(low=finite, width=st.floats(1e-300, 1e300), share=st.floats(0, 1))
def test_points_never_leave_the_box(low, width, share):
    assume(low < low + width < np.inf)
    box = Box((low, low + width), 1)
    point = box.from_unit([[share]])[0, 0]
    assert low <= point <= low + width


@given(
    low=st.floats(-1e6, 1e6),
    width=st.floats(1e-2, 1e6),
    unit=st.lists(st.floats(0, 1), min_size=3, max_size=3),
)
def test_there_and_back(low, width, unit):
    box = Box([(low, low + width), (0, 1), (-1, 0)], 3)
    np.testing.assert_allclose(box.to_unit(box.from_unit([unit])), [unit], rtol=0, atol=1e-7)


def test_rounding_does_not_carry_a_point_over_the_edge():
    low, high = -0.1, 0.2
    assert low + 1.0 * (high - low) > high  # which is why the result is clipped
    assert Box((low, high), 1).from_unit([[1.0]])[0, 0] == high


def test_corners():
    box = Box([(0, 6), (-5, 30)], 2)
    np.testing.assert_array_equal(box.from_unit([[0, 0], [1, 1]]), [[0, -5], [6, 30]])
    np.testing.assert_array_equal(box.to_unit([[6, -5], [3, 65]]), [[1, 0], [0.5, 2]])
    np.testing.assert_array_equal(box.outside([[6, -5], [3, 65], [-0.1, 0]]), [False, True, True])
    assert box.complaint(np.array([[6.0, -5.0]])) is None
    assert "2 of 3" in box.complaint(np.array([[6.0, -5.0], [3.0, 65.0], [-0.1, 0.0]]))


def test_the_feature_that_reaches_farthest_is_named():
    box = Box([(0, 1), (0, 100)], 2)
    # In raw units the second feature would.
    message = box.complaint(np.array([[1.5, 110.0], [0.5, 50.0]]))
    assert "1 of 2 measured points lie outside bounds: feature 0" in message
    assert "from 0.5 to 1.5, but its bounds are (0, 1)" in message


def test_rounding_is_not_outside():
    box = Box([(0, 1), (0, 1000)], 2)
    X = [[-1e-7, 0], [0, 1000 + 1e-4], [-1e-5, 0], [0, 1000 + 1e-2]]
    np.testing.assert_array_equal(box.outside(X), [False, False, True, True])
    np.testing.assert_array_equal(box.outside(X, tolerance=1e-9), [True] * 4)


def test_points_far_outside_stay_finite():
    unit = Box((0, 1e-300), 2).to_unit([[1e300, -1e300]])
    assert np.isfinite(unit).all()


def test_defaults():
    for bounds in (None, (0, 1), [(0, 1), (0, 1)], np.array([[0.0, 1.0]] * 2)):
        box = Box(bounds, 2)
        np.testing.assert_array_equal([box.lower, box.upper, box.width], [[0, 0], [1, 1], [1, 1]])


def test_equal_bounds_have_one_box():
    bounds = np.array([(0.0, 6.0), (-5.0, 30.0)])
    box = Box.of(bounds, 2)
    assert Box.of(bounds.tolist(), 2) is box
    # By their contents, for an array may be changed in place.
    bounds[0, 1] = 7.0
    assert Box.of(bounds, 2).upper[0] == 7
    assert box.upper[0] == 6
    assert len(Box.of((0, 1), 2).lower) == 2
    assert len(Box.of((0, 1), 3).lower) == 3
    assert Box.of([(0, 1), (0, 2)], 2).width.tolist() == [1, 2]


@pytest.mark.parametrize("make", [Box, Box.of])
@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ([(0, 1)] * 3, r"each of the 2 features, shape \(2, 2\); its shape is \(3, 2\)"),
        ([(0, 1), (2, 2)], r"bounds of feature 1 .* low < high, got \(2, 2\)"),
        ([(1, 0), (0, 1)], "bounds of feature 0"),
        ([(0, np.inf), (0, 1)], "bounds of feature 0 must be finite"),
        ((np.nan, 1), "bounds.*NaN|bounds of feature 0"),
        ((-1e308, 1e308), "bounds of feature 0"),
        ("unit", "bounds must hold one"),
        ([(0, 1), (2,)], "bounds must hold one"),
        (3.0, r"bounds must hold one .*shape is \(\)"),
        ((datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)), "bounds must hold one"),
        (np.ma.masked_array([0.0, 1.0], mask=[False, True]), "bounds must hold one.*missing"),
    ],
)
def test_bad_bounds(make, bounds, message):
    with pytest.raises(ValueError, match=message):
        make(bounds, 2)
