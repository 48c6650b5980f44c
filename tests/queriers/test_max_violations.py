"""After ``max_violations`` violations only points near to what was safe are proposed."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sklearn_asal import AmortizedSafeQuerier, CandidatePool, GPSafeQuerier, SafetyWarning
from sklearn_asal.queriers.neighbourhood import Neighbourhood

from ..common import QUERIERS

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
BOUNDS = [(0.0, 6.0), (-5.0, 30.0)]
LOW, WIDTH = np.array([0.0, -5.0]), np.array([6.0, 35.0])
RADIUS = 0.05 * np.sqrt(2)
WITH_LIMITS = {
    **{n: m for n, m in QUERIERS.items() if "max_violations" in m().get_params()},
    "AmortizedSafeQuerier, 2d": lambda **params: AmortizedSafeQuerier("2d", **params),
    "GPSafeQuerier, random": lambda **params: GPSafeQuerier(
        acquisition="random", on_no_safe="least_unsafe", **params
    ),
}


@pytest.fixture(params=WITH_LIMITS)
def make(request):
    return lambda **params: WITH_LIMITS[request.param](bounds=BOUNDS, **params)


def campaign(seed=0, n_safe=4, n_unsafe=2):
    """Safe observations about the centre, and unsafe ones, in raw units."""
    rng = np.random.default_rng(seed)
    unit = np.vstack([rng.uniform(0.4, 0.6, (n_safe, 2)), rng.uniform(0.0, 0.3, (n_unsafe, 2))])
    z = np.append(rng.uniform(0.5, 1.5, n_safe), rng.uniform(-1.5, -0.5, n_unsafe))
    return LOW + WIDTH * unit, rng.normal(size=len(z)), z


def away(points, querier):
    """Distance in the unit cube from the nearest measurement that was safe."""
    unit, safe = (points - LOW) / WIDTH, (querier.X_[querier.z_ >= 0] - LOW) / WIDTH
    return np.linalg.norm(unit[:, None] - safe[None], axis=2).min(axis=1)


def restricted(call, *args, **kwargs):
    """What a call returns, and the warnings about the neighbourhood."""
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        answer = call(*args, **kwargs)
    found = [str(w.message) for w in record if "max_violations" in str(w.message)]
    assert all(w.category is SafetyWarning for w in record if "max_violations" in str(w.message))
    return answer, found


def test_all_safe_queriers_have_it():
    assert {"AmortizedSafeQuerier", "AmortizedSafeQuerier, any", "GPSafeQuerier"} <= {*WITH_LIMITS}


@pytest.mark.parametrize("n_queries", [1, 3])
def test_only_near_to_what_was_safe(make, n_queries):
    querier = make(max_violations=2, budget=40).fit(*campaign())
    words = set()
    for _ in range(5):
        points, found = restricted(querier.query, n_queries=n_queries)
        assert len(found) == 1
        words.update(found)
        assert away(points, querier).max() <= RADIUS * (1 + 1e-6)
        known = np.vstack([querier.X_, points]) / WIDTH
        gaps = np.abs(known[:, None] - known[None]).max(axis=2)[np.triu_indices(len(known), 1)]
        # Of proposals from far away not one is made twice; a guard brings them closer together.
        assert gaps.min() > (1e-6 if getattr(querier, "guard", False) else 1e-4)
        querier.tell(points, np.zeros(n_queries), np.full(n_queries, -0.3))
    assert len(words) == 1


def test_no_sooner(make):
    X, y, z = campaign()
    free = make(budget=20).fit(X, y, z)
    querier = make(max_violations=3, budget=20).fit(X, y, z)
    points, found = restricted(querier.query)
    assert found == []
    np.testing.assert_array_equal(points, free.query())
    point = LOW + WIDTH * [0.9, 0.9]
    querier.tell(point, status="aborted")
    points, found = restricted(querier.query)
    assert len(found) == 1
    assert away(points, querier).max() <= RADIUS * (1 + 1e-6)
    # A failed run and a missing output violate nothing.
    querier = make(max_violations=3).fit(X, y, z).tell(point, status="failed").tell(point, z=1.0)
    assert restricted(querier.query)[1] == []


def test_nought_means_from_the_beginning(make):
    querier = make(max_violations=0).fit(*campaign(n_unsafe=0))
    points, found = restricted(querier.query)
    assert len(found) == 1
    assert away(points, querier).max() <= RADIUS * (1 + 1e-6)


def test_data_passed_and_copies_agree(make):
    X, y, z = campaign()
    querier = make(max_violations=1, budget=9).fit(X, y, z)
    before = pickle.dumps(querier)
    expected = querier.query(n_queries=2)
    assert pickle.dumps(querier) == before
    passed = make(max_violations=1, budget=9).query(X, y, z, n_queries=2)
    np.testing.assert_allclose(passed, expected, rtol=0, atol=35e-5)
    np.testing.assert_array_equal(pickle.loads(before).query(n_queries=2), expected)
    order = [5, 2, 0, 4, 1, 3]
    other = make(max_violations=1, budget=9).query(X[order], y[order], z[order])
    np.testing.assert_allclose(other, expected[:1], rtol=0, atol=35e-4)


def test_a_failed_point_is_not_proposed_again_there(make):
    querier = make(max_violations=0, budget=30).fit(*campaign(n_safe=1, n_unsafe=1))
    failed = np.empty((0, 2))
    for _ in range(4):
        point = querier.query()
        assert away(point, querier).max() <= RADIUS * (1 + 1e-6)
        for one in failed:
            assert np.abs((point - one) / WIDTH).max() >= 0.01 - 1e-9
        failed = np.vstack([failed, point])
        querier.tell(point, status="failed")


@pytest.mark.parametrize("n_queries", [1, 2])
def test_rows_of_a_pool(make, n_queries):
    rng = np.random.default_rng(1)
    pool = CandidatePool(LOW + WIDTH * rng.random((500, 2)))
    querier = make(max_violations=1, budget=30).fit(*campaign())
    order = rng.permutation(500)
    shuffled = make(max_violations=1, budget=30).fit(*campaign())
    near = int((away(pool.X, querier) <= RADIUS).sum())
    assert 4 < near < 100
    for _ in range(2):
        (points, rows), found = restricted(
            querier.query, pool=pool, n_queries=n_queries, return_indices=True
        )
        assert len(found) == 1
        np.testing.assert_array_equal(points, pool.X[rows])
        assert away(points, querier).max() <= RADIUS
        np.testing.assert_array_equal(
            shuffled.query(pool=pool.X[order], n_queries=n_queries), points
        )
        for one in querier, shuffled:
            one.tell(points, np.zeros(n_queries), np.full(n_queries, -0.3))


def test_the_nearest_row_where_none_is_near(make):
    querier = make(max_violations=1).fit(*campaign(n_safe=2))
    rng = np.random.default_rng(2)
    pool = LOW + WIDTH * rng.uniform(0.75, 1.0, (30, 2))
    expected = np.argsort(away(pool, querier))[:3]
    (_, rows), _ = restricted(querier.query, pool=pool, n_queries=3, return_indices=True)
    np.testing.assert_array_equal(rows, expected)


def test_nothing_safe_to_stay_near_to(make):
    X, y, z = campaign()
    with pytest.raises(ValueError, match=r"max_violations=2 is reached and no observation is safe"):
        make(max_violations=2).query(X, y, -np.abs(z))


@pytest.mark.parametrize(("value", "error"), [(-1, ValueError), (1.5, TypeError), ("2", TypeError)])
def test_bad_values(make, value, error):
    with pytest.raises(error, match="max_violations"):
        make(max_violations=value).fit(*campaign())


@pytest.mark.parametrize("policy", ["2d", "any"])
def test_many_campaigns(policy):
    params = {"bounds": BOUNDS, "max_violations": 2}
    histories = [campaign(seed, n_unsafe=n) for seed, n in enumerate([1, 2, 3, 0])]
    querier = AmortizedSafeQuerier(policy, **params)
    points, found = restricted(querier.propose_many, histories, budgets=9)
    assert len(found) == 1
    for history, point in zip(histories, points, strict=True):
        one = AmortizedSafeQuerier(policy, **params).query(*history, budget=9)
        np.testing.assert_allclose(point, one[0], rtol=0, atol=1e-4)


# ---- the neighbourhood itself

unit = st.floats(0, 1)


@settings(deadline=None, derandomize=True)
@given(data=st.data(), n=st.integers(1, 5), n_features=st.integers(1, 4))
def test_points_are_moved_straight_to_the_nearest_centre(data, n, n_features):
    X = data.draw(arrays(float, (n, n_features), elements=unit))
    point = data.draw(arrays(float, n_features, elements=unit))
    nearby = Neighbourhood(X)
    moved = nearby.moved(point)
    distance, radius = np.linalg.norm(X - point, axis=1), 0.05 * np.sqrt(n_features)
    assert nearby.holds(moved[None])[0]
    assert bool(nearby.holds(point[None])[0]) == (distance.min() <= radius * (1 + 1e-9))
    # No farther than needed, and on the segment.
    expected = max(distance.min() - radius, 0.0)
    assert np.linalg.norm(moved - point) == pytest.approx(expected, abs=1e-9)
    drawn = nearby.draw(50, np.random.default_rng(0), np.arange(n_features))
    assert nearby.holds(drawn).all()
    assert ((drawn >= 0) & (drawn <= 1)).all()
    assert nearby.holds(nearby.about(point, drawn)).all()


def test_safe_measurements_outside_the_bounds():
    """Those inside count; without any, the points of the cube nearest to them."""
    np.testing.assert_array_equal(
        Neighbourhood(np.array([[1.5, 0.5], [0.2, 0.2]])).centres, [[0.2, 0.2]]
    )
    np.testing.assert_array_equal(Neighbourhood(np.array([[1.5, 0.5]])).centres, [[1.0, 0.5]])
