"""The way from the last point to the next."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from sklearn_asal import AmortizedSafeQuerier, Grid, Integer, Log, RandomQuerier
from sklearn_asal.queriers.approach import way_to
from sklearn_asal.space import box_of

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
some = settings(max_examples=40, deadline=None, derandomize=True)
BOUNDS = [(0.0, 6.0), (-5.0, 30.0)]
X = np.array([[3.0, 10.0], [2.5, 12.0], [3.5, 8.0]])
Y, Z = np.array([0.3, 0.1, 0.2]), np.array([1.0, 0.9, 1.1])


def test_the_way_to_a_proposal(make):
    querier = make(bounds=BOUNDS).fit(X, Y, Z)
    x, way = querier.query(path=True)
    np.testing.assert_array_equal(x, querier.query())
    assert way.points.shape == (10, 2)
    np.testing.assert_array_equal(way.points[-1:], x)
    steps = np.diff(np.vstack([X[-1], way.points]), axis=0)
    np.testing.assert_allclose(steps, np.tile((x - X[-1]) / 10, (10, 1)), atol=1e-9)
    again = querier.approach(x)
    np.testing.assert_array_equal(again.points, way.points)
    np.testing.assert_array_equal(querier.approach(x[0], n_steps=4).points[-1:], x)
    assert len(querier.approach(x, n_steps=4).points) == 4
    assert (way.p_safe is None) == (not hasattr(querier, "guard"))
    if way.p_safe is not None:
        np.testing.assert_array_equal(way.p_safe, querier.assess(way.points).p_safe)
        np.testing.assert_array_equal(again.p_safe, way.p_safe)


def test_of_data_that_are_passed(make):
    querier = make(bounds=BOUNDS)
    x, way = querier.query(X, Y, Z, path=True)
    np.testing.assert_array_equal(way.points, querier.approach(x, X, Y, Z).points)
    turned = querier.approach(x, X[::-1], Y[::-1], Z[::-1])
    np.testing.assert_allclose(turned.points[0], X[0] + (x[0] - X[0]) / 10)


def test_with_all_else_that_a_query_returns():
    querier = AmortizedSafeQuerier(bounds=BOUNDS).fit(X, Y, Z)
    pool = np.array([[1.0, 2.0], [3.0, 4.0]])
    x, rows, report, way = querier.query(
        pool=pool, return_indices=True, return_report=True, path=True
    )
    np.testing.assert_array_equal(x, pool[rows])
    np.testing.assert_array_equal(way.points[-1:], x)
    assert report.p_safe[0] == pytest.approx(way.p_safe[-1], abs=1e-5)
    x, rows, way = (
        RandomQuerier().fit(X / 40, Y).query(pool=pool / 40, return_indices=True, path=True)
    )
    np.testing.assert_array_equal(way.points[-1:], x)


def test_from_where_the_run_ended_that_was_told_last():
    querier = RandomQuerier(bounds=BOUNDS).fit(X, Y).tell([1.0, 1.0], status="failed")
    np.testing.assert_allclose(querier.approach([2.0, 2.0], n_steps=2).points[0], [1.5, 1.5])


@some
@given(
    start=st.tuples(st.integers(1, 8), st.floats(1e-9, 1e-3), st.sampled_from([0.1, 0.2, 0.7])),
    end=st.tuples(st.integers(1, 8), st.floats(1e-9, 1e-3), st.sampled_from([0.1, 0.2, 0.7])),
    n_steps=st.integers(1, 20),
)
def test_only_points_that_may_be_measured(start, end, n_steps):
    box = box_of([Integer(1, 8), Log(1e-9, 1e-3), Grid([0.1, 0.2, 0.7])], 3)
    start, end = np.array(start), np.array(end)
    points = way_to(box, start, end, n_steps)
    assert box.holds(points).all()
    assert 1 <= len(points) <= n_steps
    np.testing.assert_array_equal(points[-1], end)
    way = np.vstack([start, points])
    if not np.array_equal(start, end):
        assert (way[1:] != way[:-1]).any(axis=1).all()
    # Never past the end, nor back.
    np.testing.assert_array_less(-1e-12, (np.diff(way, axis=0) * np.sign(end - start)))


def test_discrete_features_leave_fewer_steps():
    box = box_of([Integer(0, 9)], 1)
    np.testing.assert_array_equal(way_to(box, np.array([3.0]), np.array([5.0]), 10), [[4], [5]])
    np.testing.assert_array_equal(way_to(box, np.array([3.0]), np.array([3.0]), 10), [[3]])


def test_from_outside_the_bounds():
    points = way_to(box_of(None, 1), np.array([1.5]), np.array([0.5]), 4)
    np.testing.assert_allclose(points, [[1.0], [0.75], [0.5]])


def test_bad_arguments(make):
    querier = make(bounds=BOUNDS)
    with pytest.raises(NotFittedError, match=r"pass data to approach\(x, X, y\)"):
        querier.approach([1.0, 1.0])
    querier.fit(X, Y, Z)
    with pytest.raises(ValueError, match="path=True is about one proposal; leave n_queries at 1"):
        querier.query(n_queries=2, path=True)
    with pytest.raises(ValueError, match="x must be one point; it has 3 rows"):
        querier.approach(X)
    with pytest.raises(ValueError, match=r"x has 3 features, but .* is expecting 2"):
        querier.approach([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="Input x contains NaN"):
        querier.approach([1.0, np.nan])
    with pytest.raises(ValueError, match="n_steps == 0, must be >= 1"):
        querier.approach([1.0, 2.0], n_steps=0)
