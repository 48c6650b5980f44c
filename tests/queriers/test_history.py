"""Observations at unit scale, pending points, repeated experiments, and what a campaign keeps."""

import copy
import itertools
import os
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sklearn_asal.box import Box
from sklearn_asal.queriers.history import SAME, Cache, History, unrepeated

from ..common import UniformQuerier

# A coarse grid makes equally near observations, and repetitions, frequent.
grid = st.integers(0, 4).map(lambda k: k / 4)


def history_of(X, y=None, margin=None, n_observed=None):
    X = np.asarray(X, dtype=float)
    y = np.zeros(len(X)) if y is None else np.asarray(y, dtype=float)
    margin = None if margin is None else np.asarray(margin, dtype=float).reshape(len(X), -1)
    n_observed = len(X) if n_observed is None else n_observed
    return History(X, y, margin, n_observed, Box.of(None, X.shape[1]), Cache())


# ---- features


@settings(deadline=None, derandomize=True)
@given(data=st.data(), n=st.integers(1, 6), n_features=st.integers(1, 5), pending=st.booleans())
def test_ranks_of_features_go_with_them(data, n, n_features, pending):
    """And neither the order of rows nor units of the outputs have a part in them."""
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    # A coarse grid makes equal columns frequent; outcomes tell them apart.
    X, y = rng.integers(0, 3, (n, n_features)) / 2, rng.normal(size=n)
    columns, rows = data.draw(st.permutations(range(n_features))), rng.permutation(n)
    history, other = history_of(X, y), history_of(X[rows][:, columns], 1e3 * y[rows] - 7)
    if pending:
        point = rng.random(n_features)
        history, other = history.with_pending(point), other.with_pending(point[columns])
    rank = history.feature_rank
    assert sorted(rank) == list(range(n_features))
    # Columns that are equal altogether may change places.
    expected, found = history.X[:, np.argsort(rank)], other.X[:, np.argsort(other.feature_rank)]
    np.testing.assert_array_equal(found[:n], expected[:n][rows])
    np.testing.assert_array_equal(found[n:], expected[n:])


def test_outcomes_rank_features_of_equal_values():
    factorial = [[0, 0], [0, 1], [1, 0], [1, 1]]
    rank = history_of(factorial, [0.0, 1.0, 0.1, 0.2]).feature_rank
    turned = history_of(np.array(factorial)[:, ::-1], [0.0, 1.0, 0.1, 0.2]).feature_rank
    np.testing.assert_array_equal(turned, rank[::-1])


def test_reference_points():
    history = history_of([[0.7, 0.1, 0.4], [0.8, 0.2, 0.3]])
    points = history.reference(64)
    assert points.shape == (64, 3)
    np.testing.assert_allclose(points.mean(axis=0), 0.5, atol=0.02)
    order = [2, 0, 1]
    other = history_of(history.X[:, order])
    np.testing.assert_array_equal(other.reference(64), points[:, order])
    # Those of a campaign stay the same array as long as the ranks do.
    assert history.with_pending(np.array([0.75, 0.3, 0.5])).reference(64) is points
    assert history.reference(32).shape == (32, 3)
    # What is pending tells apart what is equal otherwise, and nothing else.
    alike = history_of([[0.5, 0.5, 0.5]])
    changed = alike.with_pending(np.array([0.9, 0.3, 0.5]))
    np.testing.assert_array_equal(changed.feature_rank, [2, 0, 1])
    pended = history.with_pending(np.array([0.0, 0.3, 0.5]))
    np.testing.assert_array_equal(pended.feature_rank, history.feature_rank)


# ---- pending points


def test_a_pending_point_has_the_outcome_of_the_nearest_observation():
    history = history_of([[0.1, 0.1], [0.9, 0.9]], [1, 2], [[3, -1], [4, 5]])
    more = history.with_pending(np.array([0.3, 0.2]))
    np.testing.assert_array_equal(more.X, [[0.1, 0.1], [0.9, 0.9], [0.3, 0.2]])
    np.testing.assert_array_equal(more.y, [1, 2, 1])
    np.testing.assert_array_equal(more.margin, [[3, -1], [4, 5], [3, -1]])
    assert (more.n_observed, more.cache) == (2, history.cache)
    np.testing.assert_array_equal(more.pending, [[0.3, 0.2]])
    assert len(history.X) == 2
    assert history.pending.shape == (0, 2)


def test_of_equally_near_observations_the_mean_output_and_the_worst_margins():
    history = history_of(
        [[0.1, 0.5], [0.9, 0.5], [0.5, 0.9], [0.5, 1.0]],
        [1, 2, 6, 100],
        [[3, -1], [4, 5], [2, 7], [-9, -9]],
    )
    more = history.with_pending(np.array([0.5, 0.5]))
    assert more.y[-1] == 3
    np.testing.assert_array_equal(more.margin[-1], [2, -1])
    # An observation that is nearer by more than rounding is asked alone.
    more = history.with_pending(np.array([0.5, 0.5 + 1e-6]))
    assert more.y[-1] == 6
    np.testing.assert_array_equal(more.margin[-1], [2, 7])


def test_replicates_are_equally_near():
    history = history_of([[0.2, 0.2], [0.8, 0.8], [0.2, 0.2]], [1, 5, 2], [3, 4, -1])
    more = history.with_pending(np.array([0.2, 0.2]))
    assert more.y[-1] == 1.5
    assert more.margin[-1] == -1


def test_guesses_are_not_handed_on():
    history = history_of([[0.1, 0.5], [0.85, 0.5]], [1, 2], [3, 4])
    for point in (0.45, 0.5), (0.55, 0.5), (0.5, 0.5):
        history = history.with_pending(np.array(point))
    # The second is nearer to the first than to any observation.
    np.testing.assert_array_equal(history.y, [1, 2, 1, 2, 2])
    np.testing.assert_array_equal(history.margin[:, 0], [3, 4, 3, 4, 4])


outcomes = st.floats(-4, 4)


@given(data=st.data(), n=st.integers(1, 8), n_features=st.integers(1, 3))
def test_pending_points_do_not_depend_on_the_order_of_observations(data, n, n_features):
    X = data.draw(arrays(float, (n, n_features), elements=grid))
    y = data.draw(arrays(float, n, elements=outcomes))
    margin = data.draw(arrays(float, (n, 2), elements=outcomes))
    order = data.draw(st.permutations(range(n)))
    points = data.draw(arrays(float, (3, n_features), elements=grid))
    one, other = history_of(X, y, margin), history_of(X[order], y[order], margin[order])
    for point in points:
        one, other = one.with_pending(point), other.with_pending(point)
    np.testing.assert_array_equal(other.y[n:], one.y[n:])
    np.testing.assert_array_equal(other.margin[n:], one.margin[n:])
    apart = np.linalg.norm(X - points[-1], axis=1)
    nearest = np.isclose(apart, apart.min())
    np.testing.assert_allclose(one.y[-1], y[nearest].mean(), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(one.margin[-1], margin[nearest].min(axis=0))


# ---- parts and orders


def test_observed_and_worst_margin():
    history = history_of([[0.1], [0.2]], [1, 2], [[3, -1], [4, 5]])
    assert history.observed is history
    more = history.with_pending(np.array([0.3])).with_pending(np.array([0.4]))
    for name in ("X", "y", "margin"):
        np.testing.assert_array_equal(getattr(more.observed, name), getattr(history, name))
    assert more.observed.n_observed == 2
    np.testing.assert_array_equal(more.worst_margin, [-1, 4, 4, 4])
    assert history_of([[0.1]]).worst_margin is None
    assert history_of([[0.1]]).with_pending(np.array([0.3])).observed.margin is None


@given(data=st.data(), n=st.integers(1, 8))
def test_in_order_is_the_same_for_every_order(data, n):
    X = data.draw(arrays(float, (n, 2), elements=grid))
    y = data.draw(arrays(float, n, elements=st.integers(0, 2).map(float)))
    margin = data.draw(arrays(float, (n, 2), elements=st.integers(0, 2).map(float)))
    order = data.draw(st.permutations(range(n)))
    pending = np.array([0.0, 0.0])  # first by its value, and last all the same
    one = history_of(X, y, margin).with_pending(pending).in_order()
    other = history_of(X[order], y[order], margin[order]).with_pending(pending).in_order()
    for name in ("X", "y", "margin"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.pending, [pending])
    rows = np.column_stack([one.X, one.y, one.margin])[:n].tolist()
    assert sorted(rows) == sorted(np.column_stack([X, y, margin]).tolist())


# ---- repeated experiments


def test_a_measured_point_is_repeated():
    history = history_of([[0.2, 0.3], [0.7, 0.3]], [1, 2])
    assert history.is_repeated(np.array([0.2, 0.3]))
    assert history.is_repeated(np.array([0.2 + 0.9 * SAME, 0.3 - 0.9 * SAME]))
    for other in ([0.2, 0.3 + 2 * SAME], [0.2 - 2 * SAME, 0.3], [0.2, 0.7]):
        assert not history.is_repeated(np.array(other))


def test_noisy_measurements_may_be_repeated():
    """Only replicates with other outcomes show noise, wherever they are."""
    X = [[0.2, 0.3], [0.7, 0.3], [0.7, 0.3 + 0.5 * SAME]]
    point = np.array([0.2, 0.3])
    assert not history_of(X, [1, 2, 2.1]).is_repeated(point)
    assert history_of(X, [1, 2, 2]).is_repeated(point)
    assert history_of(X, [1, 2, 2 + 1e-12]).is_repeated(point)  # rounding is no noise
    assert not history_of(X, [1e-15, 2e-15, 2.1e-15]).is_repeated(point)  # relative to the values
    assert history_of(X, np.zeros(3)).is_repeated(point)
    # Points apart say nothing about noise.
    assert history_of([*X[:2], [0.7, 0.3 + 3 * SAME]], [1, 2, 2.1]).is_repeated(point)


def test_a_pending_point_is_repeated_whatever_the_noise():
    noisy = history_of([[0.2, 0.3], [0.2, 0.3]], [1, 2])
    assert not noisy.is_repeated(np.array([0.2, 0.3]))
    pending = noisy.with_pending(np.array([0.2, 0.3]))
    assert pending.is_repeated(np.array([0.2, 0.3]))
    # Guessed outcomes are no replicates.
    plain = history_of([[0.2, 0.3], [0.25, 0.3]], [1, 2])
    for point in ([0.2, 0.3], [0.24, 0.3]):
        assert plain.with_pending(np.array([0.24, 0.3])).is_repeated(np.array(point))
    # Not even of two observations that are as near to the guess as replicates are.
    apart = history_of([[0.2], [0.2 + 1.6 * SAME], [0.7]], [1, 2, 3])
    guess = apart.with_pending(np.array([0.2 + 0.8 * SAME]))
    assert guess.y[-1] == 1.5
    assert guess.is_repeated(np.array([0.7]))


@given(data=st.data(), n=st.integers(1, 8), noisy=st.booleans())
def test_is_repeated_does_not_depend_on_the_order_of_observations(data, n, noisy):
    X = data.draw(arrays(float, (n, 2), elements=grid))
    y = data.draw(arrays(float, n, elements=outcomes)) if noisy else X.sum(axis=1)
    order = data.draw(st.permutations(range(n)))
    point = data.draw(arrays(float, 2, elements=grid))
    expected = history_of(X, y).is_repeated(point)
    assert history_of(X[order], y[order]).is_repeated(point) == expected
    if not noisy:
        assert expected == (X == point).all(axis=1).any()


# ---- proposals that are moved


def test_a_new_point_is_left_where_it_is():
    point = np.array([0.5, 0.5])
    assert unrepeated(point, history_of([[0.2, 0.3]])) is point
    noisy = history_of([[0.5, 0.5], [0.5, 0.5]], [1, 2])
    assert unrepeated(point, noisy) is point


@pytest.mark.parametrize("point", [[0.5, 0.5], [0.0, 1.0], [1.0], [0.0, 0.3, 1.0]])
def test_a_repeated_point_is_moved_a_little_along_an_axis(point):
    point = np.array(point)
    moved = unrepeated(point, history_of([point]))
    step = moved - point
    assert np.count_nonzero(step) == 1
    np.testing.assert_allclose(np.abs(step).max(), 0.02)
    assert ((moved >= 0) & (moved <= 1)).all()


def test_the_free_side_is_taken():
    X = [[0.5, 0.5], [0.52, 0.5], [0.5, 0.48], [0.5, 0.52]]
    np.testing.assert_allclose(unrepeated(np.array([0.5, 0.5]), history_of(X)), [0.48, 0.5])
    # Where none is free, the step grows.
    moved = unrepeated(np.array([0.5, 0.5]), history_of([*X, [0.48, 0.5]]))
    assert np.abs(moved - X).max(axis=1).min() >= 0.02 - 1e-12


@settings(deadline=None)
@given(data=st.data(), D=st.integers(1, 4), all_pending=st.booleans())
def test_a_moved_point_is_new_and_in_the_cube(data, D, all_pending):
    """Also where all corners are measured, and points around them."""
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=D)))
    more = data.draw(
        arrays(float, (data.draw(st.integers(0, 12)), D), elements=st.sampled_from(STEPS))
    )
    X = np.vstack([corners, more])
    history = history_of(X, n_observed=1 if all_pending else len(X))
    for point in (corners[data.draw(st.integers(0, 2**D - 1))], X[-1]):
        moved = unrepeated(point, history)
        assert ((moved >= 0) & (moved <= 1)).all()
        assert not history.is_repeated(moved)
        assert np.abs(moved - X).max(axis=1).min() > SAME
        order = data.draw(st.permutations(range(len(X))))
        again = history_of(X[order], n_observed=1 if all_pending else len(X))
        np.testing.assert_array_equal(unrepeated(point, again), moved)


# Where steps from corners and from each other lead.
STEPS = [0.0, 0.02, 0.04, 0.06, 0.08, 0.16, 0.32, 0.36, 0.5, 0.64, 0.68, 0.92, 0.98, 1.0]


@pytest.mark.parametrize("D", [1, 2, 3])
def test_proposals_at_a_corner_never_run_out(D):
    """Each is told, and proposed again."""
    corner, history = np.ones(D), history_of([np.ones(D)])
    for _ in range(40):
        moved = unrepeated(corner, history)
        assert ((moved >= 0) & (moved <= 1)).all()
        assert np.abs(history.X - moved).max(axis=1).min() > SAME
        history = history_of(np.vstack([history.X, moved]))


# ---- what a campaign keeps


def test_a_cache_is_no_part_of_the_state():
    querier = UniformQuerier().fit([[0.1, 0.2]], [0.3])
    state = pickle.dumps(querier)
    querier.query(pool=[[0.5, 0.5], [0.6, 0.6]])
    assert querier._cache.candidates is not None
    assert pickle.dumps(querier) == state
    for other in (copy.deepcopy(querier), pickle.loads(pickle.dumps(querier))):
        assert "_cache" not in vars(other)
        np.testing.assert_array_equal(other.query(), querier.query())


def test_a_new_campaign_has_a_new_cache():
    querier = UniformQuerier().fit([[0.1, 0.2]], [0.3])
    querier.query(pool=[[0.5, 0.5]])
    known = querier._cache
    assert querier.tell([0.3, 0.3], 0.1)._cache is known
    assert querier.fit([[0.1, 0.2]], [0.3])._cache is not known


def test_data_that_are_passed_leave_no_trace():
    querier = UniformQuerier().fit([[0.1, 0.2]], [0.3])
    querier.query(pool=[[0.5, 0.5]])
    known = querier._cache.candidates, querier._cache.history
    querier.query([[0.7, 0.2]], [0.3], pool=[[0.4, 0.4]])
    assert (querier._cache.candidates, querier._cache.history) == known


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_does_not_wait_for_a_lock_of_its_parent():
    querier = UniformQuerier().fit([[0.1, 0.2]], [0.3])
    cache = querier._campaign_cache()
    assert not cache.is_inherited
    with cache.lock:  # of a thread that is not in the child
        child = os.fork()
        if child == 0:
            own = querier._campaign_cache()
            os._exit(
                0 if cache.is_inherited and own is not cache and own.lock.acquire(timeout=1) else 1
            )
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert querier._campaign_cache() is cache
