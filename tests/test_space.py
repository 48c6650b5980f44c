"""Kinds of features, and the box that they span."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_asal import Grid, Integer, Log
from sklearn_asal.box import Box
from sklearn_asal.space import Space, box_of, by_feature, by_name

some = settings(max_examples=50, deadline=None, derandomize=True)
MIXED = [Integer(1, 8), Log(1e-9, 1e-3), Grid([0.1, 0.2, 0.5]), (900.0, 4000.0)]
shares = st.lists(st.floats(0, 1), min_size=4, max_size=4)


# ---- kinds


@pytest.mark.parametrize("kind", [Integer(1, 8), Integer(1, 800, log=True), Log(0.1, 2)])
def test_kinds_are_values(kind):
    assert pickle.loads(pickle.dumps(kind)) == copy.deepcopy(kind) == kind
    assert hash(copy.deepcopy(kind)) == hash(kind)
    with pytest.raises(AttributeError):
        kind.low = 3


def test_a_grid_is_its_values():
    grid = Grid([0.5, 0.1, 0.2, 0.1])
    np.testing.assert_array_equal(grid.levels, [0.1, 0.2, 0.5])
    assert not grid.levels.flags.writeable
    assert (grid.low, grid.high) == (0.1, 0.5)
    assert grid == Grid([0.1, 0.2, 0.5]) == pickle.loads(pickle.dumps(grid)) == copy.deepcopy(grid)
    assert hash(grid) == hash(Grid([0.1, 0.2, 0.5]))
    assert grid != Grid([0.1, 0.2, 0.5], log=True)
    assert grid != Grid([0.1, 0.2])
    assert grid != [0.1, 0.2, 0.5]
    assert repr(grid) == "Grid([0.1, 0.2, 0.5])"
    assert eval(repr(Grid([1, 10], log=True))) == Grid([1, 10], log=True)


def test_whole_numbers_of_numpy_are_plain_ones():
    kind = Integer(np.int64(1), np.int32(8))
    assert (type(kind.low), type(kind.high)) == (int, int)
    assert repr(kind) == "Integer(low=1, high=8, log=False)"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Integer(1.5, 8), TypeError, "low of Integer must be an instance of int"),
        (lambda: Integer(1, "8"), TypeError, "high of Integer"),
        (lambda: Integer(8, 1), ValueError, "Integer needs low < high, got 8 and 1"),
        (lambda: Integer(0, 8, log=True), ValueError, "Integer on a log.* positive values, got 0"),
        (lambda: Integer(1, 8, log=1), TypeError, "log of Integer must be True or False, got 1"),
        (lambda: Log(0, 1), ValueError, "Log on a logarithmic scale needs positive values, got 0"),
        (lambda: Log(1, np.inf), ValueError, "high of Log must be a finite number, got inf"),
        (lambda: Log(2, 1), ValueError, "Log needs low < high"),
        (lambda: Grid([0.1]), ValueError, "values of Grid must be two or more different numbers"),
        (lambda: Grid([0.1, 0.1]), ValueError, "two or more different"),
        (lambda: Grid([0.1, np.nan]), ValueError, "values of Grid contains NaN"),
        (lambda: Grid(["a", "b"]), ValueError, "values of Grid"),
        (lambda: Grid([-1, 1], log=True), ValueError, "Grid on a logarithmic scale"),
    ],
)
def test_bad_kinds(make, error, message):
    with pytest.raises(error, match=message):
        make()


# ---- from bounds to a box


def test_plain_bounds_are_a_plain_box():
    for bounds in (None, (0, 1), [(0, 6), (-5, 30)], np.array([(0, 6), (-5, 30)])):
        box = box_of(bounds, 2)
        assert type(box) is Box
        assert box is Box.of(bounds, 2)
        assert not box.has_discrete
        assert box.kinds == (None, None)
        assert not box.is_log.any()


def test_the_same_arguments_have_one_box():
    space = box_of(MIXED, 4)
    assert isinstance(space, Space)
    assert box_of(tuple(MIXED), 4) is box_of(dict(zip("abcd", MIXED, strict=True)), 4) is space
    assert box_of(copy.deepcopy(MIXED), 4) is space
    assert box_of([*MIXED[:2], Grid([0.1, 0.2, 0.5], log=True), MIXED[3]], 4) is not space
    np.testing.assert_array_equal(space.lower, [1, 1e-9, 0.1, 900])
    np.testing.assert_array_equal(space.upper, [8, 1e-3, 0.5, 4000])
    np.testing.assert_array_equal(space.is_discrete, [True, False, True, False])
    np.testing.assert_array_equal(space.is_log, [False, True, False, False])


def test_one_kind_for_all_features():
    assert box_of(Integer(1, 8), 3) is box_of([Integer(1, 8)] * 3, 3)
    assert box_of({"a": (0, 6), "b": [-5, 30]}, 2) is box_of([(0, 6), (-5, 30)], 2)


@pytest.mark.parametrize(
    ("bounds", "error", "message"),
    [
        ([Integer(1, 8)] * 3, ValueError, r"each of the 2 features, shape \(2, 2\)"),
        ([Integer(1, 8), 3.0], ValueError, "bounds must hold one"),
        ([Integer(1, 8), (2, 1)], ValueError, "bounds of feature 1 must be finite with low < high"),
        ({"a": Integer(1, 8)}, ValueError, "bounds names 1 features, a, but the inputs have 2"),
        ({"a": (0, 1), 3: (0, 1)}, TypeError, "bounds: names of features must be text"),
    ],
)
def test_bad_bounds(bounds, error, message):
    with pytest.raises(error, match=message):
        box_of(bounds, 2)


# ---- to the unit cube and back


@some
@given(shares)
def test_what_comes_back_may_be_measured(share):
    space = box_of(MIXED, 4)
    x = space.from_unit([share])
    assert ((x >= space.lower) & (x <= space.upper)).all()
    assert x[0, 0] == round(x[0, 0])
    assert x[0, 2] in (0.1, 0.2, 0.5)
    assert space.holds(x).all()
    # There and back, and there again.
    unit = space.to_unit(x)
    np.testing.assert_allclose(space.from_unit(unit), x, rtol=1e-12)
    np.testing.assert_allclose(unit[0, [1, 3]], np.array(share)[[1, 3]], rtol=0, atol=1e-12)


def test_ratios_on_a_logarithmic_scale():
    space = box_of([Log(1e-9, 1e-3), Integer(1, 100, log=True), Grid([1, 10, 100], log=True)], 3)
    np.testing.assert_allclose(
        space.to_unit([[1e-9, 1, 1], [1e-6, 10, 10], [1e-3, 100, 100]]),
        [[0, 0, 0], [0.5, 0.5, 0.5], [1, 1, 1]],
        atol=1e-12,
    )
    np.testing.assert_allclose(
        space.from_unit([[0.5, 0.5, 0.5], [0.25, 0.1, 0.1]]),
        [[1e-6, 10, 10], [10**-7.5, 2, 1]],
        rtol=1e-12,
    )
    # The limits themselves, to the last digit.
    np.testing.assert_array_equal(space.from_unit([[0, 0, 0]]), [[1e-9, 1, 1]])
    np.testing.assert_array_equal(space.from_unit([[1, 1, 1]]), [[1e-3, 100, 100]])


@pytest.mark.parametrize("value", [0.0, -1e-9])
def test_no_logarithm_of_what_is_not_positive(value):
    space = box_of([(0, 1), Log(1e-3, 1)], 2)
    with pytest.raises(ValueError, match="feature 1 is on a logarithmic scale, but a value of it"):
        space.to_unit([[0.5, value]])


@some
@given(st.lists(st.floats(-2, 2), min_size=1, max_size=20), st.data())
def test_the_nearest_value(values, data):
    levels = data.draw(st.lists(st.floats(-1, 1), min_size=2, max_size=6, unique=True))
    space = box_of([Grid(levels), Integer(-1, 1)], 2)
    X = np.column_stack([values, values])
    snapped = space.snapped(X)
    away = np.abs(np.array(values)[:, None] - levels).min(axis=1)
    np.testing.assert_array_equal(np.abs(snapped[:, 0] - values), away)
    assert np.isin(snapped[:, 0], levels).all()
    np.testing.assert_array_equal(snapped[:, 1], np.clip(np.round(values), -1, 1))


def test_what_counts_as_a_value():
    space = box_of([Integer(0, 10**9), Grid([0.1, 0.2])], 2)
    X = [[3, 0.1], [3.4, 0.1], [3.02, 0.1], [10**9, np.float32(0.1)], [5, 0.1001], [5, 0.15]]
    np.testing.assert_array_equal(
        space.holds(np.array(X, dtype=float)), [True, False, False, True, False, False]
    )
    assert box_of([(0, 1), Log(1, 2)], 2).holds(np.array([[0.123, 1.7]])).all()


@some
@given(st.floats(-1, 11), st.floats(-1, 11))
def test_values_between_limits(low, high):
    space = box_of([Integer(0, 10), Grid([0.0, 2.5, 5.0, 10.0])], 2)
    for j, values in enumerate((range(11), [0.0, 2.5, 5.0, 10.0])):
        low_, high_ = max(low, 0), min(high, 10)
        found = space.values(j, low_, high_)
        assert len(found) == space.n_values(j, low_, high_)
        # Those within are all there, and others only by what counts as rounding.
        assert set(found) >= {value for value in values if low_ <= value <= high_}
        assert all(value in values and low_ - 0.03 <= value <= high_ + 0.03 for value in found)


def test_large_ranges_are_not_listed_to_be_counted():
    assert box_of([Integer(0, 10**12)], 1).n_values(0, 0, 10**12) == 10**12 + 1


def test_scales_of_features_tell_boxes_apart():
    plain, log, whole = (box_of([one], 1).key for one in ((1, 100), Log(1, 100), Integer(1, 100)))
    assert log not in (plain, whole)
    assert log == box_of([Integer(1, 100, log=True)], 1).key


def test_small_distances_at_unit_scale():
    space = box_of([Log(1e-9, 1e-3), (0, 10)], 2)
    x, slack = np.array([1e-6, 5.0]), np.array([1e-13, 1e-6])
    reach = space.unit_reach(x, slack)
    moved = space.to_unit([x + slack])[0] - space.to_unit([x])[0]
    np.testing.assert_allclose(reach, moved, rtol=1e-5)


# ---- names


TABLES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}
BY_NAME = {"T": (0, 1), "n": Integer(1, 8)}


@pytest.mark.parametrize("library", TABLES)
def test_columns_are_brought_into_the_order_of_bounds(library):
    make = TABLES[library]
    table = make({"n": [3, 4], "T": [0.5, 0.6]})
    found = by_name(table, BY_NAME, "X")
    assert np.asarray(found["T"]).tolist() == [0.5, 0.6]
    names = found.column_names if library == "pyarrow" else list(found.columns)
    assert names == ["T", "n"]
    for other in (table, [[0.5, 3]], None):
        assert by_name(other, [(0, 1), (1, 8)], "X") is other
    with pytest.raises(ValueError, match=r"x has columns \['T'\], but bounds are of \['T', 'n'\]"):
        by_name(make({"T": [0.5]}), BY_NAME, "x")
    with pytest.raises(ValueError, match="Pass those columns alone"):
        by_name(make({"n": [3], "T": [0.5], "p": [1]}), BY_NAME, "x")


def test_numbers_by_feature():
    assert by_feature(0.5, None, 2, "max_step") == {0: 0.5, 1: 0.5}
    assert by_feature([1, 2], None, 2, "max_step") == {0: 1.0, 1: 2.0}
    assert by_feature({"T": 3, 1: 4}, ["T", "n"], 2, "max_step") == {0: 3.0, 1: 4.0}
    assert by_feature({np.int64(1): 4}, None, 2, "max_step") == {1: 4.0}
    assert by_feature({}, None, 2, "max_step") == {}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 2, 3], "max_step must be one number, or one for each of the 2 features"),
        ({"p": 1}, "max_step has a feature 'p'; state its position, 0 to 1, or one of T, n"),
        ({2: 1}, "max_step has a feature 2"),
        ({-1: 1}, "max_step has a feature -1"),
        ({True: 1}, "max_step has a feature True"),
        ({"T": 1, 0: 2}, "max_step states feature 'T' twice"),
        ({"T": "fast"}, "max_step of feature 'T' must be a finite number, got 'fast'"),
        ({"T": np.nan}, "max_step of feature 'T' must be a finite number"),
        ("fast", "max_step"),
    ],
)
def test_bad_numbers_by_feature(values, message):
    with pytest.raises(ValueError, match=message):
        by_feature(values, ["T", "n"], 2, "max_step")
