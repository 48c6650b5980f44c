"""The maps between the user's units and unit scale."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sklearn_asal.space import (
    Box,
    as_rows,
    finite_array,
    margin_scales,
    moments,
    off_scale,
    safety_margin,
    safety_rule,
    standardized,
)

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


@given(y=st.lists(finite, min_size=1, max_size=5), loc=finite, scale=st.floats(1e-300, 1e300))
def test_extreme_outputs_stay_finite(y, loc, scale):
    y = np.array(y)
    for args in ((loc, scale), ("auto", "auto"), ("auto", scale), (loc, "auto")):
        assert np.isfinite(standardized(y, *args)).all()
    assert np.isfinite(safety_margin(y, loc, "below", scale)).all()
    assert np.isfinite(safety_margin(y, loc, "below", "auto")).all()


def test_standardized():
    y = np.array([1.0, 2.0, 6.0])
    np.testing.assert_allclose(standardized(y, 2.0, 4.0), [-0.25, 0.0, 1.0])
    auto = standardized(y, "auto", "auto")
    np.testing.assert_allclose([auto.mean(), auto.std()], [0, 1], atol=1e-12)
    np.testing.assert_allclose(standardized(y, "auto", 1.0), y - 3)
    np.testing.assert_array_equal(standardized(np.array([300.0]), "auto", "auto"), [0.0])
    np.testing.assert_allclose(moments(y), (3.0, np.std(y)))
    np.testing.assert_allclose(moments(np.zeros(3)), (0.0, 1.0))
    np.testing.assert_allclose(moments(np.array([1e308, 1.6e308])), (1.3e308, 0.3e308))


def test_safety_margin():
    z = np.array([1.0, 3.0, 4.0])
    np.testing.assert_allclose(safety_margin(z, 3.0, "above", 2.0), [-1.0, 0.0, 0.5])
    np.testing.assert_allclose(safety_margin(z, 3.0, "below", 2.0), [1.0, 0.0, -0.5])
    rms = np.sqrt(5 / 3)
    np.testing.assert_allclose(safety_margin(z, 3.0, "below", "auto"), [2 / rms, 0, -1 / rms])
    np.testing.assert_allclose(margin_scales(z, 3.0, "below"), [rms])
    # On the limit all the time: no scale to be had, and safe.
    np.testing.assert_array_equal(safety_margin(np.ones(2), 1.0, "above", "auto"), [0, 0])
    both = np.column_stack([z, -z])
    np.testing.assert_allclose(
        safety_margin(both, [0, -2], ["above", "above"], [1, 0.5]), [1, -2, -4]
    )
    np.testing.assert_allclose(safety_margin(both, 3.5, "below", 1.0), [2.5, 0.5, -0.5])


def test_safety_rule():
    assert safety_rule(0.0, "above") == "safe means z >= 0.0"
    assert safety_rule(350, "below") == "safe means z <= 350"
    assert safety_rule([1, 2], "below") == "safe means z[0] <= 1 and z[1] <= 2"
    assert safety_rule(0.5, ["below", "above"]) == "safe means z[0] <= 0.5 and z[1] >= 0.5"
    with pytest.raises(ValueError, match="safe_when must be"):
        safety_rule(0.5, "over")


def test_off_scale():
    rng = np.random.default_rng(0)
    wide, narrow = rng.random((20, 2)), 0.4 + 0.2 * rng.random((20, 2))
    usual = rng.uniform(-4, 4, 20)
    assert not off_scale(wide, usual)
    assert not off_scale(narrow[:5], 0.3 + 0.01 * usual[:5])  # initial points look like that
    assert off_scale(wide, usual + 300)
    assert off_scale(wide[:1], np.array([-12.0]))
    assert off_scale(wide, 1e-3 * usual)
    assert not off_scale(narrow, 1e-3 * usual)
    assert not off_scale(wide[:9], 1e-3 * usual[:9])
    assert off_scale(wide, 3 + 1e-3 * usual)
    assert not off_scale(wide, 3 + 1e-3 * usual, centre=0.0)


def test_as_rows():
    assert as_rows([1, 2], 2).shape == (1, 2)
    assert as_rows([1, 2], 1).shape == (2, 1)
    assert as_rows(1.0, 1).shape == (1, 1)
    assert as_rows([[1, 2]], 2).shape == (1, 2)
    assert as_rows(None, 2) is None


def test_finite_array_copies():
    data = np.ones((2, 2))
    array = finite_array(data, "X")
    assert not np.shares_memory(array, data)
    assert finite_array([[1, 2]], "X").dtype == np.float64
    with pytest.raises(ValueError, match="X"):
        finite_array(np.array([[10**400]], dtype=object), "X")
