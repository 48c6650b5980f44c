"""Finite candidates."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sklearn_asal import AmortizedSafeQuerier, CandidatePool, PoolExhaustedError, RandomQuerier
from sklearn_asal.box import Box
from sklearn_asal.pool import Candidates, sobol

from .common import QUERIERS, policy_file

# A coarse grid makes duplicates and ties frequent.
grid = st.integers(0, 4).map(lambda k: k / 4)


def rows(max_size, n_features=2):
    return st.integers(1, max_size).flatmap(lambda n: arrays(float, (n, n_features), elements=grid))


def candidates_of(X, observed=(), bounds=None, **options):
    X = np.asarray(X, dtype=float)
    observed = np.reshape(np.asarray(observed, dtype=float), (-1, X.shape[1]))
    return Candidates(CandidatePool(X), Box(bounds, X.shape[1]), observed, **options)


def rows_of(candidates, positions):
    return [candidates.row(position) for position in np.atleast_1d(positions)]


def lexicographic(X, left):
    """Rows by their values, and equal ones by their number."""
    return sorted(left, key=lambda i: (*X[i], i))


def rows_left(X, observed, told=None):
    """Rows that observations leave: each takes one row, the nearest of those that it equals."""
    told = np.full(len(observed), -1) if told is None else np.asarray(told)
    left = set(range(len(X))) - set(told.tolist())
    for seen in np.asarray(observed)[told < 0]:
        size = np.maximum(np.abs(X), np.abs(seen))
        same = (np.abs(X - seen) <= 2.0**-23 * size).all(axis=1)
        same = [i for i in lexicographic(X, left) if same[i]]
        if same:
            left.remove(min(same, key=lambda i: np.square(X[i] - seen).sum()))
    return lexicographic(X, left)


def by_distance(X, left, point, weights=1.0):
    """Those rows, nearest first; of equally near ones in lexicographic order."""
    distance = np.linalg.norm((X[left] - point) * weights, axis=1)
    return np.array(left)[np.argsort(distance.round(12), kind="stable")].tolist()


# ---- what is taken


@given(data=st.data(), X=rows(30), n=st.integers(0, 12))
def test_taken_equals_brute_force(data, X, n):
    observed = data.draw(arrays(float, (n, 2), elements=grid))
    told = data.draw(arrays(int, n, elements=st.integers(-1, len(X) - 1)))
    for index in (None, told):
        left = rows_left(X, observed, index)
        candidates = candidates_of(X, observed, index=index)
        assert candidates.n_available == len(left)
        assert rows_of(candidates, candidates.available) == left
        taken = {candidates.row(position) for position in candidates.taken}
        assert taken == set(range(len(X))) - set(left)
        everything = np.arange(len(candidates))
        free = candidates_of(X, observed, index=index).is_available(everything)
        assert sorted(rows_of(candidates, everything[free])) == sorted(left)
        np.testing.assert_array_equal(candidates.points, X[rows_of(candidates, everything)])


@given(data=st.data(), n=st.integers(1, 40), decimals=st.integers(2, 7))
def test_taken_by_float32_equals_brute_force(data, n, decimals):
    """Rows so close that some are equal in single precision."""
    seed = data.draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    X = 0.5 + 10.0**-decimals * rng.integers(0, 9, (n, 1)) + 0.5 * rng.integers(0, 2, (n, 1))
    observed = X[rng.integers(n, size=10)].astype("f4").astype(float)
    left = rows_left(X, observed)
    candidates = candidates_of(X, observed, bounds=(0, 2))
    assert rows_of(candidates, candidates.available) == left


@given(data=st.data(), X=rows(20), n=st.integers(0, 10), m=st.integers(0, 5))
def test_what_the_query_before_knew_is_made_use_of(data, X, n, m):
    """The answer is that from scratch, whatever has been told since."""
    observed = data.draw(arrays(float, (n + m, 2), elements=grid))
    told = data.draw(arrays(int, n + m, elements=st.integers(-1, len(X) - 1)))
    changed = observed.copy()
    if n and data.draw(st.booleans()):
        changed[0] = 0.25
    pool, box = CandidatePool(X), Box(None, 2)
    for before, now in ((None, None), (told, told), (None, told), (told, None)):
        known = Candidates(pool, box, observed[:n], None if before is None else before[:n])
        known.available  # noqa: B018
        for asked in (True, False):
            middle = Candidates(pool, box, changed, now, known=known)
            if asked:
                middle.available  # noqa: B018
            last = Candidates(pool, box, changed, now, known=middle)
            assert rows_of(last, last.available) == rows_left(X, changed, now)


def test_of_equal_rows_one_is_taken_after_the_other():
    X = [[0.5, 0.5], [0.9, 0.9], [0.5, 0.5]]
    point = np.array([0.5, 0.5])
    found = []
    for n in range(4):
        candidates = candidates_of(X, np.tile(point, (n, 1)))
        found += rows_of(candidates, candidates.nearest(point))
    assert found == [0, 2, 1, 1]
    # Unless it is said which one was measured.
    candidates = candidates_of(X, [point], index=np.array([2]))
    assert rows_of(candidates, candidates.nearest(point)) == [0]
    candidates = candidates_of(X, [point, point], index=np.array([-1, 0]))
    assert rows_of(candidates, candidates.available) == [1]


def test_a_row_that_was_told_is_taken_whatever_was_measured():
    X = np.random.default_rng(0).random((20, 2))
    observed = [X[3] + 0.1, X[4], X[4]]
    candidates = candidates_of(X, observed, index=np.array([3, 7, -1]))
    assert rows_of(candidates, candidates.available) == lexicographic(X, set(range(20)) - {3, 7, 4})
    # The same row told twice is one row, and one outside the bounds is none.
    bounds, twice = (0.0, X[3].max() - 1e-3), np.array([3, 3])
    candidates = candidates_of(X, observed[:2], index=twice)
    assert candidates.n_available == 19
    candidates = candidates_of(X, observed[:2], bounds, index=twice)
    assert candidates.n_available == len(candidates) < 20
    with pytest.raises(ValueError, match=r"index: row 20 was told to be measured, but .* 20 rows"):
        candidates_of(X, observed, index=np.array([3, 20, -1]))


@pytest.mark.parametrize(
    ("values", "bounds"),
    [
        ([1e-9, 1e-8, 1e-7], (0, 1)),
        ([0.0, 1e-30, 1e-12], (0, 1)),
        ([1e-9, 1.01e-9, 1.02e-9], (0, 1)),
        ([-1e-9, 0.0, 1e-9], (-1, 1)),
        ([0.5, 0.5 + 1e-6, 0.5 - 1e-6], (0, 1)),
        ([1e6 + 0.25, 1e6 + 0.5, 1e6 + 0.75], (1e6, 1e6 + 1)),
        ([-1e6 + 0.25, -1e6 + 0.5, -1e6 + 0.75], (-1e6, 1 - 1e6)),
        ([1e-20, 2e-20, 3e-20], (0, 4e-20)),
        ([1e30, 1.001e30, 1.002e30], (0, 1e31)),
    ],
)
@pytest.mark.parametrize("n_features", [1, 2])
def test_what_counts_as_equal(values, bounds, n_features):
    """Rounding to single precision, relative to the value and not to the bounds."""
    X = np.tile(np.array(values)[:, None], n_features)
    X[:, 1:] = np.mean(bounds)
    for i, row in enumerate(X):
        for measured in (row, row.astype("f4").astype(float), row * (1 + 1e-9)):
            candidates = candidates_of(X, [measured], bounds=bounds)
            taken = sorted(set(range(3)) - set(rows_of(candidates, candidates.available)))
            assert taken == [i]


@pytest.mark.parametrize(("value", "other"), [(0.5, 1e-6), (1e6, 0.25), (1e-9, 1e-14), (0, 1e-44)])
def test_what_differs_by_more_is_another_experiment(value, other):
    candidates = candidates_of([[value]], [[value + other]], bounds=(0, 2e6))
    assert candidates.n_available == 1


def test_all_features_have_to_be_equal():
    candidates = candidates_of([[0.5, 1e-9]], [[0.5, 2e-9]])
    assert candidates.n_available == 1


def test_of_rows_that_equal_an_observation_the_nearest_is_taken():
    X = [[0.5 + 4e-8], [0.5], [0.5 - 2e-8]]
    for row in range(3):
        candidates = candidates_of(X, [X[row]])
        assert row not in rows_of(candidates, candidates.available)
        assert candidates.n_available == 2


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rows_that_come_back_rounded_are_taken_one_by_one(dtype):
    X = np.random.default_rng(0).random((200, 2))
    observed, found = np.empty((0, 2)), []
    for _ in range(30):
        candidates = candidates_of(X, observed)
        (position,) = candidates.nearest(np.array([0.3, 0.6]))
        found.append(candidates.row(position))
        observed = np.vstack([observed, X[found[-1]].astype(dtype)])
    assert len(set(found)) == 30


# ---- what is near


@given(
    X=rows(30),
    observed=rows(12),
    point=arrays(float, 2, elements=grid),
    k=st.integers(1, 35),
    weights=st.sampled_from([(1.0, 1.0), (1.0, 0.25), (0.5, 1.0)]),
)
def test_nearest_equals_brute_force(X, observed, point, k, weights):
    left = rows_left(X, observed)
    candidates = candidates_of(X, observed, weights=weights)
    if not left:
        with pytest.raises(PoolExhaustedError, match=f"of its {len(X)} rows {len(X)} lie inside"):
            candidates.nearest(point, k)
        return
    expected = by_distance(X, left, point, weights)
    assert rows_of(candidates, candidates.nearest(point, k)) == expected[:k]
    some = candidates.available[::2]
    expected = by_distance(X, rows_of(candidates, some), point, weights)
    assert rows_of(candidates, candidates.nearest_first(some, point)) == expected


@settings(deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_features=st.integers(1, 7),
    n=st.integers(1, 300),
    k=st.sampled_from([1, 2, 16, 500]),
)
def test_nearest_of_many_campaigns_equals_brute_force(seed, n_features, n, k):
    """One index, used again and again; repeated rows, and proposals on and between rows."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, n_features))
    X = np.vstack([X, X[rng.integers(n, size=n // 3)]])
    pool, box = CandidatePool(X), Box(None, n_features)
    for _ in range(3):
        observed = X[rng.integers(len(X), size=rng.integers(0, 20))]
        left = rows_left(X, observed)
        for point in (rng.random(n_features), X[rng.integers(len(X))], *observed[:2]):
            if left:
                candidates = Candidates(pool, box, observed)
                found = rows_of(candidates, candidates.nearest(point, k))
                assert found == by_distance(X, left, point)[:k]


@pytest.mark.parametrize("k", [3, 60, 150, 400])
def test_nearest_among_many_taken_rows(k):
    rng = np.random.default_rng(k)
    X = rng.random((300, 2))
    point, observed = X[0], X[rng.permutation(300)[:80]]
    candidates = candidates_of(X, observed)
    found = rows_of(candidates, candidates.nearest(point, k))
    assert found == by_distance(X, rows_left(X, observed), point)[:k]


def test_a_large_pool_mostly_taken():
    X = np.random.default_rng(0).random((3000, 2))
    candidates = candidates_of(X, X[np.arange(3000) != 1234])
    assert rows_of(candidates, candidates.nearest(np.array([0.0, 1.0]))) == [1234]


@given(X=rows(30, 3), point=arrays(float, 3, elements=st.floats(0, 1)))
def test_all_rows_by_ascending_distance(X, point):
    """What has been proposed is not proposed again."""
    everything = candidates = candidates_of(X)
    order = []
    for left in range(len(X), 0, -1):
        assert candidates.n_available == left
        (position,) = candidates.nearest(point)
        candidates = candidates.without(position)
        order.append(candidates.row(position))
    assert sorted(order) == list(range(len(X)))
    distance = np.linalg.norm(X[order] - point, axis=1)
    assert (np.diff(distance) >= -1e-12).all()
    with pytest.raises(PoolExhaustedError, match="no row of the pool is left"):
        candidates.check_available()
    assert everything.n_available == len(X)


def test_weights_may_change_between_queries():
    """One pool serves queriers that weigh the features in different ways."""
    pool, box, none = CandidatePool([[0.0, 0.5], [0.3, 0.0]]), Box(None, 2), np.empty((0, 2))
    for weights, expected in (((1, 0.1), 0), (None, 1), ((0.1, 1), 1), ((1, 0.1), 0)):
        candidates = Candidates(pool, box, none, weights=weights)
        order = rows_of(candidates, candidates.nearest(np.zeros(2), 2))
        assert order == [expected, 1 - expected]


def test_bounds_scale_the_distance_and_limit_the_rows():
    X = np.array([[0.0, 50.0], [9.0, 0.0], [10.0, 101.0]])
    pool, none = CandidatePool(X), np.empty((0, 2))
    candidates = Candidates(pool, Box([(0, 10), (0, 100)], 2), none)
    assert candidates.n_outside == 1
    assert rows_of(candidates, candidates.available) == [0, 1]
    # In raw units the second row would be nearer to the origin, and the third to the corner.
    assert rows_of(candidates, candidates.nearest(np.array([0.0, 0.0]))) == [0]
    assert rows_of(candidates, candidates.nearest(np.array([1.0, 1.0]))) == [1]
    # One pool serves boxes in turn.
    assert Candidates(pool, Box([(0, 10), (0, 200)], 2), none).n_available == 3
    assert Candidates(pool, Box([(0, 10), (0, 100)], 2), none).n_available == 2
    with pytest.raises(PoolExhaustedError, match="none of the 3 rows of the pool lies inside"):
        Candidates(pool, Box((20, 30), 2), none)


# ---- what is all over the pool


@given(
    n=st.integers(1, 3000),
    m=st.integers(1, 3000),
    offset=st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, np.nextafter(1, 0), 1.0])),
)
def test_a_subsample_has_as_many_rows_as_asked_for(n, m, offset):
    positions = CANDIDATES[:m].subsample(n, offset)
    assert len(positions) == len(set(positions.tolist())) == min(n, m)
    assert positions.min() >= 0
    assert positions.max() < m


class _First(Candidates):
    """So many rows, without the time that an index takes."""

    is_drawn = False

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, part):
        return _First(part.stop)


CANDIDATES = _First(3000)


@pytest.mark.parametrize("seed", range(3))
def test_a_subsample_is_all_over_the_pool(seed):
    X = np.random.default_rng(seed).random((20_000, 2))
    candidates = candidates_of(X, X[:200])
    first, other = (candidates.subsample(2048, offset) for offset in (0.5, 0.1))
    assert not set(first) & set(other)
    for positions in (first, other):
        # As many as there should be in each sixteenth of the square.
        points = candidates.points[positions]
        counts = np.histogram2d(*points.T, bins=4, range=[(0, 1), (0, 1)])[0]
        assert counts.min() > 0.8 * 2048 / 16
    np.testing.assert_array_equal(candidates.subsample(20_000, 0.1), np.arange(20_000))


# ---- the order of the rows


def shuffled(rng, n_features, n=40):
    """A pool with equal rows and ties, the same in another order, and where its rows are there."""
    X = rng.random((n, n_features))
    X[::5] = X[::5].round(1)
    X = np.vstack([X, X[rng.integers(n, size=n // 4)]])
    order = rng.permutation(len(X))
    return X, X[order], order


@given(seed=st.integers(0, 10**6), n_features=st.integers(1, 7), k=st.integers(1, 60))
@settings(deadline=None)
def test_candidates_do_not_depend_on_the_order_of_the_rows(seed, n_features, k):
    rng = np.random.default_rng(seed)
    X, other, order = shuffled(rng, n_features)
    observed, point = X[rng.integers(len(X), size=9)], rng.random(n_features)
    one, two = candidates_of(X, observed), candidates_of(other, observed)
    np.testing.assert_array_equal(two.points, one.points)
    assert two.taken == one.taken
    np.testing.assert_array_equal(two.available, one.available)
    for where in (point, X[0], np.round(point)):
        np.testing.assert_array_equal(two.nearest(where, k), one.nearest(where, k))
    np.testing.assert_array_equal(two.subsample(k, 0.3), one.subsample(k, 0.3))
    everything = np.arange(len(one))
    np.testing.assert_array_equal(X[order[rows_of(two, everything)]], X[rows_of(one, everything)])


MAKERS = {
    **QUERIERS,
    **{
        f"AmortizedSafeQuerier, {n_candidates}, {gamma}": (
            lambda n_candidates=n_candidates, gamma=gamma, **params: AmortizedSafeQuerier(
                n_candidates=n_candidates, gamma=gamma, **params
            )
        )
        for n_candidates, gamma in ((1, 0.05), (1, 1.0), (4, 0.3), (16, 1.0))
    },
}
few = settings(max_examples=7, deadline=None, derandomize=True)


def querier_of(name, n_features, **params):
    if "Amortized" in name and "any" not in name:
        params["policy"] = policy_file("Safe" in name, n_features)
    return MAKERS[name](**params)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("n_features", range(1, 8))
@few
@given(seed=st.integers(0, 10**6))
def test_queries_do_not_depend_on_the_order_of_the_rows(name, n_features, seed):
    rng = np.random.default_rng(seed)
    X, other, _ = shuffled(rng, n_features)
    history = X[:4] + 0.001, rng.standard_normal(4), 1 + 0.3 * rng.standard_normal(4)
    querier = querier_of(name, n_features, random_state=seed).fit(*history)
    querier.tell(X[7], 0.3, 0.9)
    points, rows = querier.query(pool=X, n_queries=3, return_indices=True)
    np.testing.assert_array_equal(X[rows], points)
    assert len(set(rows)) == 3
    points_, rows = querier.query(pool=other, n_queries=3, return_indices=True)
    np.testing.assert_array_equal(points_, points)
    np.testing.assert_array_equal(other[rows], points)
    assert len(set(rows)) == 3


# ---- campaigns


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", MAKERS)
def test_of_two_equal_rows_the_first_is_taken_first(name):
    pool = CandidatePool([[0.45, 0.5], [0.55, 0.5], [0.45, 0.5], [0.55, 0.5]])

    def campaign(told):
        """The row of each query; the number of the row is told in the queries of ``told``."""
        querier = querier_of(name, 2, random_state=0)
        querier.fit([[0.5, 0.45], [0.5, 0.55]], [0.1, 0.2], [1.0, 1.1])
        found = []
        for n in range(4):
            x, row = querier.query(pool=pool, return_indices=True)
            found.append(int(row[0]))
            querier.tell(x, 0.1 * n, 1.0, index=row if n in told else None)
        assert sorted(found) == [0, 1, 2, 3]
        return found

    for told in ((), (0, 1, 2, 3), (1, 2)):
        found = campaign(told)
        assert found.index(0) < found.index(2)
        assert found.index(1) < found.index(3)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", MAKERS)
def test_who_counts_rows_and_who_does_not_agree(name):
    """Of many equal rows in any order the number of the row is that which ``tell`` takes."""
    rng = np.random.default_rng(0)
    X = np.repeat(0.3 + 0.4 * rng.random((80, 2)), 2, axis=0)[rng.permutation(160)]
    pool, counted = CandidatePool(X), []
    querier = querier_of(name, 2, random_state=0).fit([[0.5, 0.5]], [0.1], [1.0])
    for _ in range(8):
        x, rows = querier.query(pool=pool, n_queries=3, return_indices=True)
        for row, point in zip(rows, x, strict=True):
            equal = np.flatnonzero((X == point).all(axis=1))
            assert row == min(set(equal) - set(counted))
            counted.append(row)
        querier.tell(x, x.sum(axis=1) - 1, [1.0] * 3)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", MAKERS)
def test_a_row_may_be_told_by_its_number(name):
    pool = CandidatePool([[0.4, 0.5], [0.4, 0.5]])
    querier = querier_of(name, 2, random_state=0)
    querier.fit([[0.5, 0.45], [0.5, 0.55]], [0.1, 0.2], [1.0, 1.1])
    x = querier.query(pool=pool)
    querier.tell(x, 0.1, 1.0, index=1)
    assert querier.query(pool=pool, return_indices=True)[1] == [0]
    querier.tell(x + 0.2, 0.1, 1.0, index=0)
    with pytest.raises(PoolExhaustedError):
        querier.query(pool=pool)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", MAKERS)
def test_rows_that_are_measured_elsewhere_are_not_proposed_again(name):
    """Where the plant does not get quite where it was sent."""
    rng = np.random.default_rng(0)
    pool = CandidatePool(0.3 + 0.4 * rng.random((12, 2)))
    querier = querier_of(name, 2, random_state=0)
    querier.fit([[0.5, 0.45], [0.5, 0.55]], [0.1, 0.2], [1.0, 1.1])
    found = []
    for _ in range(4):
        x, row = querier.query(pool=pool, n_queries=3, return_indices=True)
        found += row.tolist()
        querier.tell(x + 0.01 * rng.standard_normal(x.shape), [0.1] * 3, [1.0] * 3, index=row)
    assert sorted(found) == list(range(12))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (1e6, 1e6 + 100), (0.0, 1e-7)])
def test_a_campaign_takes_each_row_once(dtype, bounds):
    low, high = bounds
    X = low + (high - low) * np.arange(1, 100, 4)[:, None] / 100
    querier = RandomQuerier(bounds=bounds, random_state=0).fit([[(low + high) / 2]], [0.0])
    pool, found = CandidatePool(X), []
    for _ in range(len(X)):
        x, row = querier.query(pool=pool, return_indices=True)
        found += row.tolist()
        querier.tell(x.astype(dtype), 0.0)
    assert sorted(found) == list(range(len(X)))


# ---- rows from all over the bounds


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


def test_sobol_points_of_more_begin_with_those_of_less():
    np.testing.assert_array_equal(sobol(1000, 3)[:7], sobol(7, 3))
    assert len(np.unique(sobol(1000, 3), axis=0)) == 1000


# ---- the pool itself


def test_immutable_and_picklable():
    X = np.array([[0.1, 0.2], [0.3, 0.4]])
    pool = CandidatePool(X)
    X[:] = 7
    assert pool.X[0, 0] == 0.1
    with pytest.raises(ValueError, match="read-only"):
        pool.X[0, 0] = 1.0
    box = Box(None, 2)
    candidates = Candidates(pool, box, pool.X[:1])
    copied = pickle.loads(pickle.dumps(pool))
    assert copied._index is None
    other = Candidates(copied, box, pool.X[:1])
    assert rows_of(other, other.nearest(np.zeros(2))) == [1]
    assert rows_of(candidates, candidates.nearest(np.zeros(2))) == [1]


def test_the_tree_is_built_once():
    pool = CandidatePool([[0.1, 0.2], [0.3, 0.4]])
    index = pool.index(Box(None, 2), np.ones(2))
    assert pool.index(Box((0, 1), 2), np.ones(2)) is index
    assert pool.index(Box((0, 2), 2), np.ones(2)) is not index


def test_length_names_and_text():
    frame = pd.DataFrame([[0.1, 0.2]], columns=["a", "b"])
    pool = CandidatePool(frame)
    assert len(pool) == 1
    assert pool.columns == ["a", "b"]
    assert CandidatePool([[0.1]]).columns is None
    assert repr(pool) == "CandidatePool(<1 candidates, 2 features>)"
    with pytest.raises(ValueError, match="pool: Expected 2D array"):
        CandidatePool([0.1, 0.2])


def test_an_index_that_contradicts_the_inputs_is_told_of():
    """An index that is off by one; not what differs from all rows, nor what is unknown."""
    pool = np.array([[0.2, 0.2], [0.4, 0.4], [0.6, 0.6], [0.8, 0.8], [0.5, 0.45]])
    querier = RandomQuerier(random_state=0).fit([[0.5, 0.5]], [0.0])
    querier.tell(pool[3], 1.0, index=2)
    with pytest.warns(UserWarning, match="observation 1 was told to be of row 2 .* another row"):
        querier.query(pool=pool)
    querier.fit([[0.5, 0.5]], [0.0]).tell(pool[3] + 0.01, 1.0, index=2)
    querier.tell(pool[:2], [1.0, 1.0], index=[0, -1])
    _, rows = querier.query(pool=pool, n_queries=2, return_indices=True)
    assert sorted(rows) == [3, 4]
