"""Tables of measurements: rows by position, any number of limits, and what is refused."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_asal.benchmarks import Task
from sklearn_asal.benchmarks.sources import TableSource
from sklearn_asal.limits import safety_margins

from ..datasets.settings import SETTINGS
from .synthetic import table_task

N = 40
RNG = np.random.default_rng(0)
X = RNG.random((N, 2))
Y = np.arange(N, dtype=float)
Z = RNG.standard_normal((N, 3)) + 1.0
BOUNDS = np.array([[0.0, 1.0], [0.0, 1.0]])
LABELS = RNG.permutation(N)


def parts(source, seed=0):
    """All that a trial gets from a source, the whole pool measured."""
    generators = map(np.random.default_rng, (seed, seed + 1, seed + 2))
    *drawn, pool, measure = source.draw(4, 6, *generators)
    return *drawn, pool.X, *measure(pool.X, np.arange(len(pool)), None)


def assert_same(one, two):
    for a, b in zip(one, two, strict=True):
        if a is None:
            assert b is None
            continue
        assert np.shape(a) == np.shape(b)
        np.testing.assert_array_equal(a, b)


# The same table in the forms that people have them in.
FORMS = {
    "shuffled labels": lambda X, y, z: (
        pd.DataFrame(X, index=LABELS),
        pd.Series(y, index=LABELS),
        pd.DataFrame(z, index=LABELS) if z.ndim == 2 else pd.Series(z, index=LABELS),
    ),
    "text labels": lambda X, y, z: (
        pd.DataFrame(X, index=[f"run {i}" for i in LABELS], columns=["a", "b"]),
        pd.Series(y, index=[f"run {i}" for i in LABELS]),
        z,
    ),
    "sorted frame": lambda X, y, z: (
        pd.DataFrame(X, index=LABELS).sort_index().loc[LABELS],
        pd.Series(y, index=LABELS).sort_index().loc[LABELS],
        z,
    ),
    "lists": lambda X, y, z: (X.tolist(), y.tolist(), z.tolist()),
    "columns": lambda X, y, z: (X, y[:, None], z if z.ndim == 2 else z[:, None]),
    "frames of a column": lambda X, y, z: (
        X,
        pd.DataFrame({"y": y}, index=LABELS),
        z if z.ndim == 2 else pd.DataFrame({"z": z}, index=LABELS),
    ),
    "polars": lambda X, y, z: (pl.DataFrame(X), pl.Series(y), z),
    "objects": lambda X, y, z: (X.astype(object), y.astype(object), z),
    "fortran order": lambda X, y, z: (np.asfortranarray(X), y, np.asfortranarray(z)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("z", [Z[:, 0], Z], ids=["one limit", "three limits"])
def test_rows_are_known_by_their_position(form, z):
    for bounds in (BOUNDS, [(0, 1), (0, 1)], ((0.0, 1.0),) * 2, (0, 1), None, pd.DataFrame(BOUNDS)):
        source = TableSource(*FORMS[form](X, Y, z), bounds)
        np.testing.assert_array_equal(source.bounds, BOUNDS)
        assert_same(parts(source), parts(TableSource(X, Y, z, BOUNDS)))


@pytest.mark.parametrize("z", [Z[:, 0], Z, None], ids=["one limit", "three limits", "no limit"])
def test_every_row_keeps_its_own_measurements(z):
    X_, y, z_init, X_test, y_test, pool, y_pool, z_pool = parts(TableSource(X, Y, z, BOUNDS))
    # y is the number of the row.
    drawn = np.concatenate([y, y_test, y_pool]).astype(int)
    assert sorted(drawn) == list(range(N))
    np.testing.assert_array_equal(np.vstack([X_, X_test, pool]), X[drawn])
    if z is None:
        assert z_init is z_pool is None
        return
    np.testing.assert_array_equal(z_init, z[y.astype(int)])
    np.testing.assert_array_equal(z_pool, z[y_pool.astype(int)])
    begun = np.concatenate([y, y_test]).astype(int)
    assert (z[begun] >= 0).all()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), n_limits=st.integers(1, 4), data=st.data())
def test_initial_and_test_rows_keep_within_all_limits(seed, n_limits, data):
    z = np.random.default_rng(seed).standard_normal((N, n_limits))
    sides = data.draw(
        st.lists(st.sampled_from(["above", "below"]), min_size=n_limits, max_size=n_limits)
    )
    limits = data.draw(st.lists(st.floats(-1.5, 1.5), min_size=n_limits, max_size=n_limits))
    safe = [
        all(
            value >= limit if side == "above" else value <= limit
            for value, limit, side in zip(row, limits, sides, strict=True)
        )
        for row in z
    ]
    source = TableSource(X, Y, z, BOUNDS, limits, sides)
    generators = [np.random.default_rng(seed) for _ in range(3)]
    if sum(safe) < 4:
        with pytest.raises(ValueError, match=f"the table has {sum(safe)} safe rows"):
            source.draw(2, 2, *generators)
        return
    _, y, z_init, _, y_test, *_ = source.draw(2, 2, *generators)
    rows = np.concatenate([y, y_test]).astype(int)
    assert np.array(safe)[rows].all()
    np.testing.assert_array_equal(z_init.reshape(2, -1), z[y.astype(int)])


@pytest.mark.parametrize(
    ("threshold", "when"), [(0.0, "above"), (0.4, "above"), (0.4, "below"), ([1.4], ["below"])]
)
def test_one_limit_anywhere(threshold, when):
    side = when if isinstance(when, str) else when[0]
    source = TableSource(X, Y, Z[:, 0], BOUNDS, threshold, when)
    y, y_test = (part.astype(int) for part in (parts(source)[1], parts(source)[4]))
    z = Z[np.concatenate([y, y_test]), 0]
    threshold = np.ravel(threshold)
    assert (z >= threshold if side == "above" else z <= threshold).all()


def test_booleans_mean_safe_and_not_safe():
    flags = Z[:, 0] > 0.5
    _, y, z, _, y_test, _, y_pool, z_pool = parts(TableSource(X, Y, flags, BOUNDS))
    assert z.dtype == z_pool.dtype == bool
    assert flags[np.concatenate([y, y_test]).astype(int)].all()
    np.testing.assert_array_equal(z_pool, flags[y_pool.astype(int)])
    mixed = pd.DataFrame({"flag": flags, "margin": Z[:, 1]}, index=LABELS)
    _, y, z, _, y_test, *_ = parts(TableSource(X, Y, mixed, BOUNDS))
    assert z.shape == (4, 2)
    rows = np.concatenate([y, y_test]).astype(int)
    assert (flags & (Z[:, 1] >= 0))[rows].all()
    assert (safety_margins(z, 0.0, "above", 1.0) >= 0).all()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"X": X[:, 0]}, "X"),
        ({"X": X[:-1]}, "y has 40 entries, but X has 39 rows"),
        ({"X": np.where(X > 0.9, np.nan, X)}, "X contains NaN"),
        ({"X": X.astype(str)}, "X"),
        ({"X": X[:0]}, "X"),
        ({"X": None}, "X is None"),
        ({"y": Y[:-1]}, "y has 39 entries, but X has 40 rows"),
        ({"y": np.append(Y, 1.0)}, "y has 41 entries, but X has 40 rows"),
        ({"y": np.stack([Y, Y], axis=1)}, r"y must have shape \(n,\)"),
        ({"y": np.where(Y > 3, np.inf, Y)}, "y contains infinity"),
        ({"y": pd.Series(Y).astype("Float64").where(Y > 3)}, "y"),
        ({"y": pd.date_range("2020", periods=N)}, "y"),
        ({"y": Y[0]}, "y"),
        ({"y": None}, "y"),
        ({"z": Z[:-1]}, "z has 39 entries, but X has 40 rows"),
        ({"z": Z[:, :, None]}, "z must have shape"),
        ({"z": np.where(Z > 1, np.nan, Z)}, "z"),
        ({"z": ["safe"] * N}, "z"),
        (
            {"bounds": [(0, 1)]},
            r"bounds must hold one \(low, high\) pair for each of the 2 features",
        ),
        ({"bounds": [(0, 1), (1, 0)]}, "bounds of feature 1 must be finite with low < high"),
        ({"bounds": [(0, 1), (0, np.nan)]}, "bounds of feature 1"),
        ({"bounds": "unit"}, "bounds"),
        ({"safety_threshold": [0.0, 1.0]}, "safety_threshold has 2 values, but z has 3"),
        ({"safety_threshold": np.nan}, "safety_threshold must be a finite number"),
        ({"safety_threshold": "auto"}, "safety_threshold must be a finite number"),
        ({"safe_when": "over"}, "safe_when must be 'above' or 'below', got 'over'"),
        ({"safe_when": ["above", "below"]}, "safe_when has 2 values, but z has 3"),
    ],
)
def test_bad_arguments_are_named(changed, message):
    arguments = {"X": X, "y": Y, "z": Z, "bounds": BOUNDS, **changed}
    with pytest.raises((TypeError, ValueError), match=message):
        TableSource(**arguments)


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_the_program_around_do_not_matter(setting):
    def message(name, hole):
        arguments = {"X": X, "y": Y, "z": Z, "bounds": BOUNDS}
        arguments[name] = arguments[name].astype(object)
        arguments[name].flat[-1] = hole
        with pytest.raises(ValueError, match=name) as caught:
            TableSource(**arguments)
        return str(caught.value)

    # So small that differences and squares underflow.
    tiny = 1e-310 * X, 1e-310 * Y, 1e-310 * Z, 1e-310 * BOUNDS
    holes = list(itertools.product(("X", "y", "z", "bounds"), (np.nan, np.inf, None)))

    def answers():
        return *parts(TableSource(*tiny)), *itertools.starmap(message, holes)

    expected = answers()
    with SETTINGS[setting]():
        assert_same(answers(), expected)


@pytest.mark.parametrize("index", [-1, 5, [0, 1], [], 0.0, True, "0", [[0]], None])
def test_bad_index_is_named(index):
    *_, pool, measure = TableSource(X[:10], Y[:10], None, BOUNDS).draw(
        2, 3, *map(np.random.default_rng, range(3))
    )
    with pytest.raises(ValueError, match="index"):
        measure(pool.X[:1], index, None)


def test_all_rows_cannot_be_begun_with():
    source = TableSource(X[:10], Y[:10], None, BOUNDS)
    with pytest.raises(ValueError, match="n_init and n_test"):
        source.draw(4, 6, *map(np.random.default_rng, range(3)))
    with pytest.raises(ValueError, match=r"n_init \+ n_test = 11, but the table has 10 rows"):
        source.draw(4, 7, *map(np.random.default_rng, range(3)))


def test_the_table_is_a_copy_that_cannot_be_changed():
    data, y, z = X.copy(), Y.copy(), Z.copy()
    source = TableSource(data, y, z, BOUNDS.copy())
    before = parts(source)
    data[:], y[:], z[:] = 0, 0, 0
    assert_same(parts(source), before)
    for part in (source.X, source.y, source.z, source.bounds):
        with pytest.raises(ValueError, match="read-only"):
            part[:] = 0
    assert_same(parts(pickle.loads(pickle.dumps(source))), before)
    assert_same(parts(replace(source)), before)


def test_measurements_can_be_kept_and_changed():
    source = TableSource(X, Y, Z, BOUNDS)
    for part in parts(source)[:5]:
        part[:] = 0
    assert_same(parts(source), parts(TableSource(X, Y, Z, BOUNDS)))


def test_a_task_of_a_table_with_labels():
    frame = pd.DataFrame({"x": table_task().source.X[:, 0]}, index=np.arange(42)[::-1])
    plain = table_task()
    source = TableSource(
        frame, pd.Series(plain.source.y, index=frame.index), frame["x"] - 0.2, [(0, 1)]
    )
    one, two = Task("rows", "safe", source, 2, 4, 3).begin(5), plain.begin(5)
    assert_same(*([t.X, t.y, t.z, t.X_test, t.y_test, t.pool.X] for t in (one, two)))
