"""Safety limits."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_asal import GPSafeQuerier, SafetyWarning
from sklearn_asal.limits import (
    boolean_limits,
    like_flags,
    margin_scales,
    safety_margins,
    safety_rule,
    without_distance,
)

finite = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(z=st.lists(finite, min_size=1, max_size=5), loc=finite, scale=st.floats(1e-300, 1e300))
def test_extreme_measurements_stay_finite(z, loc, scale):
    z = np.array(z)
    for each in (scale, "auto"):
        assert np.isfinite(safety_margins(z, loc, "below", each)).all()


def test_safety_margins():
    z = np.array([1.0, 3.0, 4.0])
    margin = safety_margins(z, 3.0, "above", 2.0)
    np.testing.assert_allclose(margin, [[-1.0], [0.0], [0.5]])
    np.testing.assert_allclose(safety_margins(z, 3.0, "below", 2.0), [[1.0], [0.0], [-0.5]])
    rms = np.sqrt(5 / 3)
    auto = safety_margins(z, 3.0, "below", "auto")
    np.testing.assert_allclose(auto, [[2 / rms], [0], [-1 / rms]])
    np.testing.assert_allclose(margin_scales(z, 3.0, "below"), [rms])
    # On the limit all the time: no scale to be had, and safe.
    np.testing.assert_array_equal(safety_margins(np.ones(2), 1.0, "above", "auto"), [[0], [0]])


def test_several_limits():
    z = np.array([1.0, 3.0, 4.0])
    both = np.column_stack([z, -z])
    np.testing.assert_allclose(
        safety_margins(both, [0, -2], ["above", "above"], [1, 0.5]), [[1, 2], [3, -2], [4, -4]]
    )
    np.testing.assert_allclose(
        safety_margins(both, 3.5, "below", 1.0), [[2.5, 4.5], [0.5, 6.5], [-0.5, 7.5]]
    )
    np.testing.assert_allclose(
        safety_margins(both, (3, 0), ("below", "above"), (2, 4)),
        [[1, -0.25], [0, -0.75], [-0.5, -1]],
    )
    scales = np.sqrt(np.mean(np.square(both - [0, -2]), axis=0))
    np.testing.assert_allclose(margin_scales(both, [0, -2], "above"), scales)
    auto = safety_margins(both, [0, -2], "above", "auto")
    np.testing.assert_allclose(auto, (both - [0, -2]) / scales)


def test_booleans_are_margins():
    """Whatever the parameters of their limit say."""
    flags = np.array([True, False, True])
    for params in ((0.0, "above", 1.0), (7.0, "below", 3.0), (0.5, "below", "auto")):
        np.testing.assert_array_equal(safety_margins(flags, *params), [[1], [-1], [1]])
    np.testing.assert_array_equal(margin_scales(flags, 7.0, "below"), [1.0])
    mixed = np.array([[True, 1.0], [False, 3.0]], dtype=object)
    np.testing.assert_array_equal(boolean_limits(mixed), [True, False])
    np.testing.assert_allclose(
        safety_margins(mixed, [9, 2], ["below", "below"], [5, 2]), [[1, 0.5], [-1, -0.5]]
    )
    np.testing.assert_array_equal(boolean_limits(np.array([0.0, 1.0])), [False])


def test_limits_without_a_distance():
    def found(*z, threshold=0.0, when="above"):
        return without_distance(np.array(z, dtype=float), threshold, when)

    # Flags: what is safe lies at the limit, and nothing beyond it.
    assert found(1, 0, 1, threshold=1.0) == [(0, 0.5)]
    assert found(0, 1, 0, threshold=0.0, when="below") == [(0, 0.5)]
    assert found(1, 2, 1, threshold=1.0, when="below") == [(0, 1.5)]
    # Flags the wrong way round: everything would be safe.
    assert found(0, 1, 1, threshold=0.0) == [(0, 0.5)]
    # Counts, which are safe at the limit.
    assert found(0, 3, 1, 0, threshold=0.0, when="below") == [(0, 0.5)]
    assert found(0, 0, threshold=0.0, when="below") == [(0, 0.5)]
    # Measured numbers, and counts with room to spare.
    assert found(0.3, 0.0, -0.2) == []
    assert found(0, 3, 1, -2, threshold=0.0, when="below") == []
    assert found(5.0, threshold=5.0) == []
    both = np.array([[0.3, 1.0], [0.0, 0.0], [-0.2, 1.0]])
    assert without_distance(both, [0.0, 1.0], "above") == [(1, 0.5)]


def test_safety_rule():
    assert safety_rule(0.0, "above") == "safe means z >= 0.0"
    assert safety_rule(350, "below") == "safe means z <= 350"
    assert safety_rule([1, 2], "below") == "safe means z[0] <= 1 and z[1] <= 2"
    assert safety_rule(0.5, ["below", "above"]) == "safe means z[0] <= 0.5 and z[1] >= 0.5"
    assert safety_rule(0.0, "above", [True]) == "safe means z is True"
    assert safety_rule([0, 2], "below", [True, False]) == "safe means z[0] is True and z[1] <= 2"
    with pytest.raises(ValueError, match="safe_when must be"):
        safety_rule(0.5, "over")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ((np.nan, "above", 1.0), "safety_threshold must be a finite number, got nan"),
        (("auto", "above", 1.0), "safety_threshold must be a finite number, got 'auto'"),
        (([0, 1], "above", 1.0), r"safety_threshold has 2 values, but z has 1 column"),
        ((0.0, "up", 1.0), "safe_when must be 'above' or 'below', got 'up'"),
        ((0.0, ["above", "below"], 1.0), "safe_when has 2 values, but z has 1 column"),
        ((0.0, "above", ["auto"]), "z_scale must be 'auto' for all limits or a number for each"),
        ((0.0, "above", -1), "z_scale must be a positive finite number or 'auto', got -1"),
        ((0.0, "above", [1, 2, 3]), "z_scale has 3 values, but z has 1 column"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        safety_margins(np.array([0.1, 0.2]), *params)


@pytest.mark.parametrize(
    ("z", "threshold", "expected"),
    [
        ([0.0, 1.0, 1.0], 850.0, [0]),
        ([0.0, 1.0, 1.0], -0.5, [0]),
        ([0.0, 1.0, 1.0], 0.5, []),
        ([0.0, 1.0, 1.0], 1.0, []),
        ([0.0, 0.5, 1.0], 850.0, []),
        ([[0.0, 3.0], [1.0, 4.0]], [850.0, 2.0], [0]),
        ([[3.0, 0.0], [4.0, 1.0]], 850.0, [1]),
    ],
)
def test_measurements_that_look_like_flags(z, threshold, expected):
    assert like_flags(np.array(z), threshold, "below") == expected


def test_signals_that_tell_nothing_of_their_limit_are_warned_of():
    X = np.random.default_rng(0).random((5, 2))
    params = {"safety_threshold": 850.0, "safe_when": "below"}
    stuck, flags = np.full(5, 500.0), np.array([0.0, 1.0, 0.0, 1.0, 1.0])
    with pytest.warns(SafetyWarning, match="z is 500 in all 5 observations, as of a sensor that"):
        GPSafeQuerier("amortized", **params).fit(X, X[:, 0], stuck)
    with pytest.warns(SafetyWarning, match="z has the values 0 and 1 only, which look like flags"):
        GPSafeQuerier("amortized", **params).fit(X, X[:, 0], flags)
    both = np.column_stack([500 + X[:, 0], stuck])
    with pytest.warns(SafetyWarning, match=r"z\[1\] is 500 in all 5 observations"):
        GPSafeQuerier("amortized", **params).fit(X, X[:, 0], both)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GPSafeQuerier("amortized", **params).fit(X[:4], X[:4, 0], stuck[:4])  # too few to tell
        GPSafeQuerier("amortized", **params).fit(
            np.tile(X[:1], (5, 1)), X[:, 0], stuck
        )  # one input
