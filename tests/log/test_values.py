"""Parameters survive the way to JSON and back."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, NonlinearConstraint
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from sklearn_asal import Grid, Integer, LipschitzBound, Log, SafetyGuard
from sklearn_asal.log.values import decoded, encoded, rows
from sklearn_asal.surrogates import EnsembleGP

plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
nested = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


def through(value):
    return decoded(json.loads(json.dumps(encoded(value), allow_nan=False)))


@settings(max_examples=60, deadline=None)
@given(nested)
def test_plain_values(value):
    found = through(value)
    assert found == value
    assert repr(found) == repr(value)  # 1 is not 1.0, nor True


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_measurements_to_the_last_bit(values):
    array = np.array(values)
    found = np.array(json.loads(json.dumps(rows(array), allow_nan=False)))
    assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_json_has_not(value):
    assert repr(through(value)) == repr(float(value))
    assert rows(np.array([value]))[0] == (None if value != value else value)


@pytest.mark.parametrize(
    "value",
    [
        [Integer(1, 8), Log(1e-9, 1e-3), Grid([0.1, 0.2, 0.5]), Integer(1, 64, log=True)],
        {"rpm": (900, 4000), "gear": Integer(1, 6)},
        LipschitzBound([1.0, 2.0], 0.1),
        np.float64(0.1),
        np.int64(3),
    ],
)
def test_what_queriers_take(value):
    assert through(value) == value


def test_arrays_keep_their_type():
    for value in (np.arange(6).reshape(2, 3), np.array([0.1, np.inf]), np.array([True, False])):
        found = through(value)
        assert found.dtype == value.dtype
        np.testing.assert_array_equal(found, value)


def test_paths_are_text():
    assert through(Path("a") / "b.safetensors") == str(Path("a") / "b.safetensors")


@pytest.mark.parametrize(
    "value",
    [
        SafetyGuard(gamma=0.02),
        EnsembleGP([0.1, 0.2], 0.05),
        GaussianProcessRegressor(RBF(0.3) + WhiteKernel(0.1), normalize_y=True),
    ],
)
def test_estimators(value):
    found = through(value)
    assert type(found) is type(value)
    assert repr(found) == repr(value)


def test_linear_constraints():
    found = through(LinearConstraint([[1, 2]], -np.inf, 3))
    np.testing.assert_array_equal(found.A, [[1, 2]])
    assert (found.lb, found.ub) == (-np.inf, 3)


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_generators_go_on_as_they_were(make):
    value = make(3)
    value.random(5)
    found = through(value)
    assert found.random(4).tolist() == value.random(4).tolist()


@pytest.mark.parametrize("value", [len, object(), NonlinearConstraint(len, 0, 1), {1: [len]}])
def test_what_cannot_be_written(value):
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        encoded(value)


def test_no_other_classes_are_made():
    with pytest.raises(ValueError, match="os:system is no class of"):
        decoded({"__class__": "os:system", "arguments": {}})
    with pytest.raises(ValueError, match="'__new__' is unknown"):
        decoded({"__new__": 1})
