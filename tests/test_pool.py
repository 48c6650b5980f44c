"""Finite candidates."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sklearn_asal import CandidatePool, PoolExhaustedError
from sklearn_asal.pool import PoolView
from sklearn_asal.space import Box

# A coarse grid makes duplicates and ties frequent.
grid = st.integers(0, 4).map(lambda k: k / 4)


def rows(max_size, n_features=2):
    return st.integers(1, max_size).flatmap(lambda n: arrays(float, (n, n_features), elements=grid))


def brute_force(X, observed, point, weights=1.0):
    """Row nearest to a point among those left: strike one row off for each observation."""
    left = list(range(len(X)))
    for seen in observed:
        same = [i for i in left if (X[i] == seen).all()]
        if same:
            left.remove(same[0])
    if not left:
        return None, left
    distance = (((X[left] - point) * weights) ** 2).sum(axis=1)
    return left[int(distance.argmin())], left


@given(
    X=rows(30),
    observed=rows(12),
    point=arrays(float, 2, elements=grid),
    weights=st.sampled_from([(1.0, 1.0), (1.0, 0.25), (0.5, 1.0)]),
)
def test_nearest_equals_brute_force(X, observed, point, weights):
    expected, left = brute_force(X, observed, point, weights)
    view = PoolView(CandidatePool(X), Box(None, 2), observed, weights)
    assert view.n_left == len(left)
    np.testing.assert_array_equal(view.indices, left)
    np.testing.assert_array_equal(view.points, X[left].reshape(-1, 2))
    if expected is None:
        with pytest.raises(PoolExhaustedError, match=f"of its {len(X)} rows {len(X)} lie inside"):
            view.nearest(point)
    else:
        index, row = view.nearest(point)
        assert index == expected
        np.testing.assert_array_equal(row, X[expected])


@pytest.mark.parametrize(("n_features", "n_rows"), [(1, 1), (2, 1000), (7, 4096)])
def test_rows_from_all_over_the_bounds(n_features, n_rows):
    low = np.arange(n_features) - 3.0
    bounds = np.column_stack([low, low + 2.0 ** np.arange(n_features)])
    X = CandidatePool.from_bounds(bounds, n_rows).X
    assert X.shape == (n_rows, n_features)
    assert ((X >= bounds[:, 0]) & (X <= bounds[:, 1])).all()
    unit = (X - low) / np.ptp(bounds, axis=1)
    assert len(np.unique(unit, axis=0)) == n_rows
    for column in unit.T:  # every tenth of each axis has its share
        shares = np.bincount((10 * column).astype(int), minlength=10) / n_rows
        np.testing.assert_allclose(shares, 0.1, atol=0.9 if n_rows == 1 else 0.005)
    np.testing.assert_array_equal(X, CandidatePool.from_bounds(bounds.tolist(), n_rows).X)


@pytest.mark.parametrize(
    ("bounds", "n_rows", "message"),
    [
        ([(0, 1), (2, 1)], 10, "bounds of feature 1 must be finite with low < high"),
        ([(0, np.inf)], 10, "bounds contains infinity"),
        ((0, 1), 10, "one .* for each feature here.*Repeat the pair"),
        (None, 10, "bounds is None"),
        ([(0, 1, 2)], 10, "bounds must hold one"),
        ([(0, 1)], 0, "n_rows == 0, must be >= 1"),
        ([(0, 1)], 2.5, "n_rows must be an instance of int"),
    ],
)
def test_no_rows_from_bad_bounds(bounds, n_rows, message):
    with pytest.raises((ValueError, TypeError), match=message):
        CandidatePool.from_bounds(bounds, n_rows)


def test_equal_rows_are_left_one_after_the_other():
    pool, box = CandidatePool([[0.1, 0.2], [0.5, 0.5], [0.1, 0.2]]), Box(None, 2)
    for observed, expected in (([], 0), ([[0.1, 0.2]], 2), ([[0.5, 0.5]], 0)):
        view = PoolView(pool, box, np.reshape(observed, (-1, 2)))
        index, row = view.equal(pool.X[2])
        assert index == expected
        np.testing.assert_array_equal(row, pool.X[2])
    assert PoolView(pool, box, pool.X[:1]).equal(pool.X[1])[0] == 1


@settings(deadline=None)
@given(seed=st.integers(0, 10**6), n_features=st.integers(1, 7), n=st.integers(1, 300))
def test_nearest_of_many_campaigns_equals_brute_force(seed, n_features, n):
    """One index, used again and again; repeated rows, and proposals on and between rows."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, n_features))
    X = np.vstack([X, X[rng.integers(n, size=n // 3)]])
    pool, box = CandidatePool(X), Box(None, n_features)
    for _ in range(3):
        observed = X[rng.integers(len(X), size=rng.integers(0, 20))]
        for point in (rng.random(n_features), X[rng.integers(len(X))], *observed[:2]):
            expected, _ = brute_force(X, observed, point)
            if expected is not None:
                index, row = PoolView(pool, box, observed).nearest(point)
                assert index == expected
                np.testing.assert_array_equal(row, X[expected])


@given(X=rows(30), observed=rows(12), point=arrays(float, 2, elements=grid), n=st.integers(1, 35))
def test_near_equals_brute_force(X, observed, point, n):
    _, left = brute_force(X, observed, point)
    if not left:
        return
    indices, points = PoolView(CandidatePool(X), Box(None, 2), observed).near(point, n)
    distance = ((X - point) ** 2).sum(axis=1)
    assert len(indices) == min(n, len(left))
    assert set(indices) <= set(left)
    np.testing.assert_array_equal(points, X[indices])
    np.testing.assert_allclose(distance[indices], np.sort(distance[left])[:n], rtol=1e-12)


@pytest.mark.parametrize("n", [3, 60, 150, 400])
def test_near_among_many_spent_rows(n):
    rng = np.random.default_rng(n)
    X = rng.random((300, 2))
    point, observed = X[0], X[rng.permutation(300)[:80]]
    _, left = brute_force(X, observed, point)
    indices, _ = PoolView(CandidatePool(X), Box(None, 2), observed).near(point, n)
    distance = np.linalg.norm(X[left] - point, axis=1)
    np.testing.assert_array_equal(indices, np.array(left)[np.argsort(distance)][:n])


@pytest.mark.parametrize("selection", [1, 2, 3])
def test_near_rows_of_a_spread_selection(selection):
    X = np.random.default_rng(0).random((110_000, 2))
    view = PoolView(CandidatePool(X), Box(None, 2), X[:200])
    assert view.n_selections == 5
    indices, points = view.near(X[0], len(X), selection)
    np.testing.assert_array_equal(points, X[indices])
    assert not set(indices) & set(range(200))
    assert abs(len(indices) / (len(X) / 8**selection) - 1) < 0.02
    # As many as there should be in each quarter of the square.
    counts = np.histogram2d(*points.T, bins=2, range=[(0, 1), (0, 1)])[0]
    assert counts.min() > 0.8 * len(indices) / 4
    assert (np.diff(np.linalg.norm(points - X[0], axis=1)) >= 0).all()
    np.testing.assert_array_equal(view.near(X[0], 40, selection)[0], indices[:40])


@pytest.mark.parametrize("rounded", [lambda x: x.astype("f4"), lambda x: np.round(x, 6)])
def test_a_row_that_comes_back_rounded_is_spent(rounded):
    pool, box = CandidatePool(np.random.default_rng(0).random((200, 2))), Box(None, 2)
    observed, indices = np.empty((0, 2)), []
    for _ in range(30):
        index, row = PoolView(pool, box, observed).nearest(np.array([0.3, 0.6]))
        indices.append(index)
        observed = np.vstack([observed, rounded(row)])
    assert len(set(indices)) == 30


def test_weights_may_change_between_queries():
    """One pool serves queriers that weigh the features in different ways."""
    pool, box, none = CandidatePool([[0.0, 0.5], [0.3, 0.0]]), Box(None, 2), np.empty((0, 2))
    for weights, expected in (((1, 0.1), 0), (None, 1), ((0.1, 1), 1), ((1, 0.1), 0)):
        assert PoolView(pool, box, none, weights).nearest(np.zeros(2))[0] == expected
        assert PoolView(pool, box, none, weights).near(np.zeros(2), 2)[0][0] == expected


@given(X=rows(30, 3), point=arrays(float, 3, elements=st.floats(0, 1)))
def test_all_rows_by_ascending_distance(X, point):
    view = PoolView(CandidatePool(X), Box(None, 3), np.empty((0, 3)))
    order = []
    while view.n_left:
        index, row = view.nearest(point)
        view.spend(row)
        order.append(index)
    assert sorted(order) == list(range(len(X)))
    distance = np.linalg.norm(X[order] - point, axis=1)
    assert (np.diff(distance) >= -1e-12).all()


def test_bounds_scale_the_distance_and_limit_the_rows():
    X = np.array([[0.0, 50.0], [9.0, 0.0], [10.0, 101.0]])
    pool = CandidatePool(X)
    view = PoolView(pool, Box([(0, 10), (0, 100)], 2), np.empty((0, 2)))
    assert view.n_outside == 1
    np.testing.assert_array_equal(view.indices, [0, 1])
    # In raw units the second row would be nearer to the origin, and the third to the corner.
    assert view.nearest(np.array([0.0, 0.0]))[0] == 0
    assert view.nearest(np.array([1.0, 1.0]))[0] == 1
    # One pool serves boxes in turn.
    assert PoolView(pool, Box([(0, 10), (0, 200)], 2), np.empty((0, 2))).n_left == 3
    assert PoolView(pool, Box([(0, 10), (0, 100)], 2), np.empty((0, 2))).n_left == 2
    with pytest.raises(PoolExhaustedError, match="none of the 3 rows of the pool lies inside"):
        PoolView(pool, Box((20, 30), 2), np.empty((0, 2)))


def test_one_observation_spends_one_of_equal_rows():
    pool = CandidatePool([[0.5, 0.5], [0.5, 0.5], [0.9, 0.9]])
    box, point = Box(None, 2), np.array([0.5, 0.5])
    seen = [PoolView(pool, box, np.tile(point, (k, 1))).nearest(point)[0] for k in range(4)]
    assert seen == [0, 1, 2, 2]


def test_what_counts_as_equal():
    pool = CandidatePool([[0.5, 0.5]])
    box = Box(None, 2)
    assert PoolView(pool, box, np.array([[0.5, 0.5 + 1e-6]])).n_left == 0
    assert PoolView(pool, box, np.array([[0.5, 0.5 + 1e-5]])).n_left == 1
    # Of two rows that close the nearer one is spent.
    pair = CandidatePool([[0.5, 0.5 + 4e-7], [0.5, 0.5]])
    np.testing.assert_array_equal(PoolView(pair, box, np.array([[0.5, 0.5]])).indices, [0])


def test_a_large_pool_mostly_spent():
    X = np.random.default_rng(0).random((3000, 2))
    view = PoolView(CandidatePool(X), Box(None, 2), X[np.arange(3000) != 1234])
    assert view.nearest(np.array([0.0, 1.0]))[0] == 1234


def test_immutable_and_picklable():
    X = np.array([[0.1, 0.2], [0.3, 0.4]])
    pool = CandidatePool(X)
    X[:] = 7
    assert pool.X[0, 0] == 0.1
    with pytest.raises(ValueError, match="read-only"):
        pool.X[0, 0] = 1.0
    box = Box(None, 2)
    view = PoolView(pool, box, pool.X[:1])
    copied = pickle.loads(pickle.dumps(pool))
    assert copied._indexed is None
    assert PoolView(copied, box, pool.X[:1]).nearest(np.zeros(2))[0] == 1
    index, row = view.nearest(np.zeros(2))
    row[:] = 9.0
    assert view.nearest(np.zeros(2))[0] == index
    np.testing.assert_array_equal(view.points, pool.X[1:])


def test_the_tree_is_built_once():
    pool = CandidatePool([[0.1, 0.2], [0.3, 0.4]])
    tree = PoolView(pool, Box(None, 2), np.empty((0, 2)))._trees
    assert PoolView(pool, Box((0, 1), 2), np.empty((0, 2)))._trees is tree


def test_length_names_and_text():
    frame = pd.DataFrame([[0.1, 0.2]], columns=["a", "b"])
    pool = CandidatePool(frame)
    assert len(pool) == 1
    assert pool.columns == ["a", "b"]
    assert CandidatePool([[0.1]]).columns is None
    assert repr(pool) == "CandidatePool(<1 candidates, 2 features>)"
    with pytest.raises(ValueError, match="pool: Expected 2D array"):
        CandidatePool([0.1, 0.2])
