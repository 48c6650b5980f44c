"""What users pass: arrays, tables, numbers."""

import datetime

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from sklearn_asal.settings import numpy_defaults
from sklearn_asal.validation import (
    as_rows,
    check_feature_names,
    column_names,
    finite_array,
    finite_number,
    observations,
    safety_signals,
    whole,
)

# The same two columns as each kind of table.
VALUES = {"a": [0.1, 0.2, 0.3], "b": [1.0, 2.0, 3.0]}
TABLES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}


@pytest.fixture(params=TABLES)
def table(request):
    return getattr(pytest.importorskip(request.param), TABLES[request.param])


# ---- arrays of numbers


def test_a_copy_in_one_layout():
    data = np.ones((2, 2))
    for given in (data, np.asfortranarray(data), data.astype("f4"), data.tolist(), data > 0):
        array = finite_array(given, "X")
        assert not np.shares_memory(array, data)
        assert array.dtype == np.float64
        assert array.flags.c_contiguous
        np.testing.assert_array_equal(array, data)


def test_numbers_of_a_table(table):
    np.testing.assert_array_equal(
        finite_array(table(VALUES), "X"), np.transpose(list(VALUES.values()))
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "X is None"),
        ([0.1, 0.2], "X: Expected 2D array, got 1D array"),
        (np.ones((1, 2, 2)), "X.*dim 3"),
        (np.ones((0, 2)), "X: Found array with 0 sample"),
        (np.ones((1, 0)), "X: Found array with 0 feature"),
        ([[0.1, 0.2], [0.3]], "X: "),
        ([[1j, 0.2]], "X: Complex data not supported"),
        ([["0.1", "0.2"]], "X: "),
        (np.array([["0.1", 0.2]], dtype=object), "X: text"),
        ([[0.1, np.nan]], "Input X contains NaN.*: 1 of 2 entries"),
        ([[0.1, None]], "Input X contains NaN.*: 1 of 2 entries"),
        (pd.DataFrame([[0.1, pd.NA], [pd.NA, 1]]), "Input X contains NaN.*: 2 of 4 entries"),
        (np.ma.masked_array([[0.1, 0.2]], [[True, False]]), "X contains.*masked.*: 1 of 2"),
        ([[0.1, np.inf]], "Input X contains infinity.*: 1 of 2 entries"),
        (np.array([[10**400]], dtype=object), "X"),
        (np.array([["2026-01-01"]], dtype="M8[D]"), "X holds dates or durations.*seconds"),
        ([[datetime.timedelta(1)]], "X holds dates or durations"),
    ],
)
def test_errors_name_the_input(data, message):
    with pytest.raises(ValueError, match=message):
        finite_array(data, "X")


def test_sparse_arrays_are_refused():
    with pytest.raises(TypeError, match="Sparse data was passed for X"):
        finite_array(csr_array(np.eye(2)), "X")


# ---- names


def test_names_of_columns(table):
    assert column_names(table(VALUES)) == ["a", "b"]
    check_feature_names(table(VALUES), "x", ["a", "b"])
    check_feature_names(table(VALUES), "x", None)
    with pytest.raises(ValueError, match=r"x has \['a', 'b'\], fit had \['b', 'a'\]"):
        check_feature_names(table(VALUES), "x", ["b", "a"])


def test_no_names():
    for data in (np.ones((2, 2)), [[1, 2]], pd.DataFrame([[1, 2]]), pd.Series([1.0]), None):
        assert column_names(data) is None
        check_feature_names(data, "x", ["a", "b"])


# ---- rows


def test_as_rows():
    assert as_rows([1, 2], 2).shape == (1, 2)
    assert as_rows([1, 2], 1).shape == (2, 1)
    assert as_rows(1.0, 1).shape == (1, 1)
    assert np.shape(as_rows([[1, 2]], 2)) == (1, 2)
    assert as_rows(np.ones(3), 3).shape == (1, 3)
    assert as_rows(None, 2) is None


def test_a_labelled_row_keeps_its_names():
    frame = pd.DataFrame(VALUES)
    row = as_rows(frame.iloc[1], 2)
    assert column_names(row) == ["a", "b"]
    np.testing.assert_array_equal(row, [[0.2, 2.0]])
    assert as_rows(frame, 2) is frame
    np.testing.assert_array_equal(as_rows(frame["a"], 1), np.transpose([VALUES["a"]]))


def test_a_list_may_hold_booleans_beside_numbers():
    row = as_rows([True, 1.5], 2)
    assert row.shape == (1, 2)
    assert row[0, 0] is True


# ---- observations


def test_observations_are_copies_of_one_row_each():
    X, y, z = np.ones((2, 2)), np.ones((2, 1)), np.ones((2, 1))
    X_, y_, z_ = observations(X, y, z)
    assert (X_.shape, y_.shape, z_.shape) == ((2, 2), (2,), (2,))
    for got, given in ((X_, X), (y_, y), (z_, z)):
        assert not np.shares_memory(got, given)
    assert observations(X, y)[2] is None
    assert observations(X[:1], 0.5, True)[1:] == (0.5, True)
    assert observations(X, [0, 1], np.ones((2, 3)))[2].shape == (2, 3)


@pytest.mark.parametrize(
    ("y", "z", "message"),
    [
        (None, None, "requires y to be passed"),
        ([0.1], None, "y has 1 entries, but x has 2 rows"),
        (np.ones((2, 2)), None, r"y must have shape \(n,\), got \(2, 2\)"),
        ([0.1, np.nan], None, "Input y contains NaN"),
        ([0.1, 0.2], [0.1], "z has 1 entries, but x has 2 rows"),
        ([0.1, 0.2], np.ones((2, 1, 2)), r"z must have shape \(n,\) or \(n, n_limits\)"),
        ([0.1, 0.2], [0.1, np.inf], "Input z contains infinity"),
    ],
)
def test_bad_observations(y, z, message):
    with pytest.raises(ValueError, match=message):
        observations(np.ones((2, 2)), y, z, "x")


@pytest.mark.parametrize(
    ("z", "dtype"),
    [
        ([0.1, 2], float),
        ([0, 1], float),
        ([True, False], bool),
        (np.array([True, False]), bool),
        (np.array([True, False], dtype=object), bool),
        ([[True, False], [False, True]], bool),
        ([[True, 1.5], [False, 2]], object),
    ],
)
def test_booleans_stay_booleans(z, dtype):
    signals = safety_signals(z)
    assert signals.dtype == dtype
    assert signals.shape == np.shape(z)
    np.testing.assert_array_equal(signals, np.array(z, dtype=dtype))


def test_booleans_of_a_table(table):
    signals = safety_signals(table({"ok": [True, False], "T": [1.5, 2.0]}))
    assert signals.dtype == object
    assert signals.tolist() == [[True, 1.5], [False, 2.0]]
    assert safety_signals(table({"ok": [True, False]})).dtype == bool


# ---- single numbers


def test_whole():
    assert whole(3, "n", min_val=3) == 3
    assert whole(np.int64(3), "n") == 3
    with pytest.raises(ValueError, match="n == 2, must be >= 3"):
        whole(2, "n", min_val=3)
    for value in (2.0, "2", None):
        with pytest.raises(TypeError, match="n must be an instance of int"):
            whole(value, "n")


def test_finite_number():
    for value in (2, 2.0, np.float32(2), np.array(2)):
        assert finite_number(value, "n") == 2.0
    assert finite_number(-1, "n") == -1.0
    for value in (np.nan, np.inf, 10**400, "2", True, None, [1.0, 2.0], np.ma.masked):
        with pytest.raises(ValueError, match="n must be a finite number, got"):
            finite_number(value, "n")
    for value in (0, -1, np.nan):
        with pytest.raises(ValueError, match="n must be a positive finite number or 'auto', got"):
            finite_number(value, "n", positive=True, auto=True)


def test_settings_of_numpy_change_no_answer():
    @numpy_defaults
    def underflow():
        return np.array([1e-300]) * 1e-300

    with np.errstate(all="raise"):
        assert underflow() == 0.0
        with pytest.raises(FloatingPointError):
            np.array([1e-300]) * 1e-300
