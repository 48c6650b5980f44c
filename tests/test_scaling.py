"""Outputs at unit scale."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_asal.scaling import (
    bounded_ratio,
    is_auto,
    moments,
    off_scale,
    root_mean_square,
    standardized,
)

finite = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(y=st.lists(finite, min_size=1, max_size=5), loc=finite, scale=st.floats(1e-300, 1e300))
def test_extreme_outputs_stay_finite(y, loc, scale):
    y = np.array(y)
    for args in ((loc, scale), ("auto", "auto"), ("auto", scale), (loc, "auto")):
        assert np.isfinite(standardized(y, *args)).all()


def test_standardized():
    y = np.array([1.0, 2.0, 6.0])
    np.testing.assert_allclose(standardized(y, 2.0, 4.0), [-0.25, 0.0, 1.0])
    auto = standardized(y, "auto", "auto")
    np.testing.assert_allclose([auto.mean(), auto.std()], [0, 1], atol=1e-12)
    np.testing.assert_allclose(standardized(y, "auto", 1.0), y - 3)
    np.testing.assert_array_equal(standardized(np.array([300.0]), "auto", "auto"), [0.0])
    np.testing.assert_array_equal(y, [1, 2, 6])


def test_moments():
    y = np.array([1.0, 2.0, 6.0])
    np.testing.assert_allclose(moments(y), (3.0, np.std(y)))
    np.testing.assert_allclose(moments(np.zeros(3)), (0.0, 1.0))
    np.testing.assert_allclose(moments(np.array([1e308, 1.6e308])), (1.3e308, 0.3e308))


@pytest.mark.parametrize("value", [0.1, 300.3, -1e-7, 1e15])
def test_rounding_is_no_spread(value):
    # The mean of seven tenths is no tenth.
    y = np.full(7, value)
    assert moments(y)[1] == 1.0
    assert np.abs(standardized(y, "auto", "auto")).max() < 1e-3 * max(1.0, abs(value))
    spread = y * (1 + 1e-9 * np.arange(7))
    np.testing.assert_allclose(moments(spread)[1], np.std(spread), rtol=1e-4)


def test_root_mean_square():
    distances = np.array([[1.0, 1e-18], [-2.0, -1e-18], [2.0, 0.0]])
    scales = root_mean_square(distances, np.array([2.0, 1.0]))
    np.testing.assert_allclose(scales, [np.sqrt(3), 1.0])
    # The same differences count where the numbers are as small.
    scales = root_mean_square(distances, np.array([2.0, 1e-18]))
    np.testing.assert_allclose(scales[1], np.sqrt(2 / 3) * 1e-18)


def test_bounded_ratio():
    values = np.array([1.0, -1e308, 1e308])
    np.testing.assert_array_equal(bounded_ratio(values, 0.0, 1e-10), [1e10, -1e100, 1e100])
    np.testing.assert_array_equal(bounded_ratio(values, 0.0, -1e-10), [-1e10, 1e100, -1e100])
    np.testing.assert_array_equal(values, [1.0, -1e308, 1e308])
    assert bounded_ratio(np.ones((3, 2)), np.zeros(2), np.array([1.0, 2.0])).shape == (3, 2)


def test_is_auto():
    assert is_auto("auto")
    for other in (1.0, "automatic", np.array(["auto", "auto"]), [1, 2], None):
        assert is_auto(other) is False


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
