"""Proposals where not everything may be proposed: kinds of features, constraints, steps."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, NonlinearConstraint
from sklearn.base import clone

from sklearn_asal import (
    AmortizedQuerier,
    AmortizedSafeQuerier,
    CandidatePool,
    GPQuerier,
    GPSafeQuerier,
    Grid,
    Integer,
    Log,
    PoolExhaustedError,
    RandomQuerier,
)
from sklearn_asal.queriers.history import Cache, History
from sklearn_asal.queriers.region import Known, Offer, Region, largest_step
from sklearn_asal.space import box_of

from ..common import QUERIERS, policy_file

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
few = settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
BOUNDS = [(0.0, 6.0), (-5.0, 30.0)]
LOW, HIGH = np.transpose(BOUNDS)
seeds = st.integers(0, 10**6)


def campaign(seed, n=6, low=LOW, high=HIGH):
    """Inputs around the middle of the bounds, and arbitrary outcomes, most of them safe."""
    rng = np.random.default_rng(seed)
    X = low + (high - low) * rng.uniform(0.3, 0.7, (n, len(low)))
    return X, rng.normal(size=n), rng.normal(1.0, 0.5, n)


def outcomes(x):
    """What is measured at proposals."""
    return np.sin(np.sum(x, axis=1)), np.ones(len(x))


# ---- constraints

# In raw units: the sum of unit coordinates is at most one; a disc is left out.
SHARES = LinearConstraint(1 / (HIGH - LOW), -np.inf, 1 + (LOW / (HIGH - LOW)).sum())
OUTSIDE = NonlinearConstraint(
    lambda x: np.square((x - [3.0, 10.0]) / (HIGH - LOW)).sum(), 0.1**2, np.inf
)
MIXTURE = LinearConstraint(1 / (HIGH - LOW), *[1 + (LOW / (HIGH - LOW)).sum()] * 2)


@few
@given(seed=seeds, n_queries=st.integers(1, 4), pooled=st.booleans())
def test_no_proposal_violates_a_constraint(make, seed, n_queries, pooled):
    X, y, z = campaign(seed)
    querier = make(bounds=BOUNDS, constraints=[SHARES, OUTSIDE]).fit(X, y, z)
    pool = np.random.default_rng(seed).uniform(LOW, HIGH, (60, 2)) if pooled else None
    for _ in range(2):
        points = querier.query(pool=pool, n_queries=n_queries)
        assert points.shape == (n_queries, 2)
        assert ((points >= LOW) & (points <= HIGH)).all()
        assert (points @ SHARES.A.T <= SHARES.ub).all()
        assert all(OUTSIDE.fun(x) >= OUTSIDE.lb for x in points)
        assert len(np.unique(points, axis=0)) == n_queries
        np.testing.assert_array_equal(querier.query(pool=pool, n_queries=n_queries), points)
        querier.tell(points, *outcomes(points))


@few
@given(seed=seeds)
def test_equations_hold(make, seed):
    querier = make(bounds=BOUNDS, constraints=MIXTURE).fit(*campaign(seed))
    for _ in range(2):
        points = querier.query(n_queries=2)
        np.testing.assert_allclose(points @ MIXTURE.A.T, MIXTURE.ub[0], rtol=0, atol=1e-9)
        assert ((points >= LOW) & (points <= HIGH)).all()
        querier.tell(points, *outcomes(points))


@few
@given(seed=seeds)
def test_neither_query_nor_copies_nor_the_order_of_constraints_matter(make, seed):
    X, y, z = campaign(seed)
    ones = [SHARES, LinearConstraint([1, 0], 0.5), LinearConstraint([1.0, 0.1], -np.inf, 6)]
    querier = make(bounds=BOUNDS, constraints=ones, random_state=3).fit(X, y, z)
    before = pickle.dumps(querier)
    expected = querier.query(n_queries=2)
    querier.query(X[:3], y[:3], z[:3], fixed={0: 2.0})
    np.testing.assert_array_equal(querier.query(n_queries=2), expected)
    assert pickle.dumps(querier) == before
    others = (
        pickle.loads(before),
        copy.deepcopy(querier),
        clone(querier).fit(X, y, z),
        make(bounds=BOUNDS, constraints=tuple(ones[::-1]), random_state=3).fit(X, y, z),
    )
    for other in others:
        np.testing.assert_allclose(other.query(n_queries=2), expected, rtol=0, atol=1e-9)
    # Data passed to a query agree with those of a campaign, in any order.
    stateless = make(bounds=BOUNDS, constraints=ones, random_state=3)
    np.testing.assert_allclose(stateless.query(X, y, z, n_queries=2), expected, atol=1e-9)
    turned = make(bounds=BOUNDS, constraints=ones, random_state=None)
    np.testing.assert_allclose(
        turned.query(X[::-1], y[::-1], z[::-1]), turned.query(X, y, z), rtol=0, atol=35e-4
    )


def test_a_guard_and_a_last_resort_keep_to_constraints():
    X, y, z = campaign(0, n=12)
    z[:6] = -1.0
    for params in ({"guard": True}, {"max_violations": 0}, {"guard": True, "max_violations": 0}):
        for policy in ("auto", policy_file(True)):
            querier = AmortizedSafeQuerier(
                policy, bounds=BOUNDS, constraints=[SHARES, OUTSIDE], **params
            ).fit(X, y, z)
            points = querier.query(n_queries=4)
            assert (points @ SHARES.A.T <= SHARES.ub).all()
            assert all(OUTSIDE.fun(x) >= OUTSIDE.lb for x in points)
            if "max_violations" in params:
                unit = (points - LOW) / (HIGH - LOW)
                known = (X[z >= 0] - LOW) / (HIGH - LOW)
                away = np.linalg.norm(unit[:, None] - known, axis=2).min(axis=1)
                safe = known[[SHARES.A[0] @ x <= SHARES.ub[0] for x in X[z >= 0]]]
                if len(safe):
                    assert away.max() <= 0.05 * np.sqrt(2) + 1e-9


def test_many_campaigns_keep_to_constraints():
    histories = [campaign(seed) for seed in range(5)]
    for policy in ("auto", policy_file(True)):
        querier = AmortizedSafeQuerier(policy, bounds=BOUNDS, constraints=SHARES)
        points = querier.propose_many(histories, budgets=9)
        assert (points @ SHARES.A.T <= SHARES.ub).all()
        expected = [querier.query(*history, budget=9)[0] for history in histories]
        np.testing.assert_array_equal(points, expected)
        wrong = AmortizedSafeQuerier(
            policy, bounds=BOUNDS, constraints=LinearConstraint([1, 1], 99)
        )
        with pytest.raises(ValueError, match=r"campaign 0: no point inside bounds"):
            wrong.propose_many(histories)


@pytest.mark.parametrize(
    "name", ["AmortizedQuerier, any", "AmortizedSafeQuerier, any", "GPQuerier"]
)
@pytest.mark.parametrize("kind", ["inequality", "equation", "step", "whole"])
def test_order_of_features_is_of_no_consequence(name, kind):
    bounds, A = [(0.0, 1.0), (0.0, 2.0), (-1.0, 1.0)], np.array([1.0, 0.7, -0.4])
    X, y, z = campaign(3, 7, *np.transpose(bounds))
    for order in ([0, 1, 2], [2, 0, 1], [1, 0, 2]):
        params = {
            "inequality": {"constraints": LinearConstraint(A[order], -0.1, 0.9)},
            "equation": {"constraints": LinearConstraint(A[order], 0.8, 0.8)},
            "step": {"max_step": np.array([0.1, 0.3, 0.2])[order]},
            "whole": {},
        }[kind]
        box = bounds if kind != "whole" else [Integer(0, 9), Grid([0.0, 0.3, 2.0]), (-1.0, 1.0)]
        inputs = X if kind != "whole" else box_of(box, 3).snapped(9 * X)
        box, inputs = [box[j] for j in order], inputs[:, order]
        found = QUERIERS[name](bounds=box, **params).query(inputs, y, z, n_queries=3)
        found = found[:, np.argsort(order)]
        if order == [0, 1, 2]:
            expected = found
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)


# ---- kinds of features


@few
@given(seed=seeds, n_queries=st.integers(1, 3))
def test_kinds_of_features(make, seed, n_queries):
    bounds = [Integer(1, 8), Grid([0.1, 0.2, 0.7])]
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(1, 9, 5), rng.choice([0.1, 0.2, 0.7], 5)])
    querier = make(bounds=bounds).fit(X, rng.normal(size=5), rng.uniform(0.5, 1, 5))
    known = {tuple(x) for x in X.tolist()}
    for _ in range(3):
        points = querier.query(n_queries=n_queries)
        for x in points.tolist():
            assert x[0] in range(1, 9)
            assert x[1] in (0.1, 0.2, 0.7)
            assert tuple(x) not in known
            known.add(tuple(x))
        querier.tell(points, *outcomes(points))


def test_all_values_are_proposed_once(make):
    querier = make(bounds=[Integer(1, 3), Grid([0.5, 1.0])], budget=20)
    querier.fit([[2, 0.5]], [0.3], [1.0])
    seen = {(2.0, 0.5)}
    while len(seen) < 6:
        points = querier.query(n_queries=min(2, 6 - len(seen)))
        seen |= {tuple(x) for x in points.tolist()}
        querier.tell(points, *outcomes(points))
    assert len(seen) == len(querier.X_) == 6
    with pytest.raises(PoolExhaustedError, match="all 6 points that bounds allow are measured"):
        querier.query()
    # A repetition has to be asked for by a pool.
    np.testing.assert_array_equal(querier.query(pool=[[2, 0.5], [2, 0.5]]), [[2, 0.5]])


def test_exhausted_by_a_batch(make):
    querier = make(bounds=Integer(0, 1)).fit([[0, 0]], [0.1], [1.0])
    assert len({tuple(x) for x in querier.query(n_queries=3).tolist()}) == 3
    with pytest.raises(PoolExhaustedError, match="all 4 points that bounds allow"):
        querier.query(n_queries=4)


def test_more_values_than_can_be_listed():
    bounds = [Integer(-(10**6), 10**6), Grid(np.linspace(0, 1, 101))]
    querier = AmortizedQuerier(bounds=bounds).fit([[0, 0.5]], [0.3])
    for _ in range(5):
        x = querier.query()
        assert x[0, 0] == round(x[0, 0])
        assert x[0, 1] in np.linspace(0, 1, 101)
        querier.tell(x, outcomes(x)[0])


def test_a_logarithmic_scale_is_covered_by_ratios(make):
    querier = make(bounds=[Log(1e-9, 1e-3), Log(1, 100)], random_state=0)
    querier.fit([[1e-6, 10.0], [2e-6, 9.0]], [0.3, 0.1], [1.0, 1.1])
    points = querier.query(n_queries=6)
    assert ((points >= [1e-9, 1]) & (points <= [1e-3, 100])).all()
    np.testing.assert_array_equal(querier.query(n_queries=6), points)
    # As the same campaign in the logarithms themselves.
    logs = make(bounds=[(-9, -3), (0, 2)], random_state=0)
    logs.fit(np.log10([[1e-6, 10.0], [2e-6, 9.0]]), [0.3, 0.1], [1.0, 1.1])
    np.testing.assert_allclose(np.log10(points), logs.query(n_queries=6), rtol=0, atol=1e-4)


def test_random_points_of_a_logarithmic_scale():
    querier = RandomQuerier(bounds=Log(1e-9, 1e-3)).fit([[1e-6]], [0.3])
    points = np.log10(querier.query(n_queries=600)[:, 0])
    counts = np.histogram(points, bins=6, range=(-9, -3))[0]
    assert counts.min() > 60


def test_whole_numbers_on_a_logarithmic_scale():
    querier = RandomQuerier(bounds=Integer(1, 10**6, log=True)).fit([[1000]], [0.3])
    points = querier.query(n_queries=50)[:, 0]
    np.testing.assert_array_equal(points, points.round())
    assert 0.25 < (points < 1000).mean() < 0.75


def test_values_of_a_pool_that_a_feature_cannot_have():
    querier = RandomQuerier(bounds=[Integer(1, 8), (0, 1)]).fit([[2, 0.5]], [0.3])
    pool = [[2.5, 0.1], [3.0, 0.2], [3.1, 0.3]]
    point, row = querier.query(pool=pool, return_indices=True)
    assert (point.tolist(), row.tolist()) == ([pool[1]], [1])
    with pytest.raises(
        PoolExhaustedError, match="no row of the pool that is left satisfies bounds"
    ):
        querier.tell(point, 0.2).query(pool=pool)


def test_kinds_are_parameters(make):
    bounds = [Integer(1, 8), Grid([0.1, 0.2, 0.7])]
    querier = make(bounds=bounds).fit([[2, 0.1]], [0.3], [1.0])
    expected = querier.query()
    assert querier.bounds is bounds
    for other in (pickle.loads(pickle.dumps(querier)), copy.deepcopy(querier)):
        assert other.get_params()["bounds"] == bounds
        np.testing.assert_array_equal(other.query(), expected)
    other = clone(querier)
    assert other.bounds == bounds
    np.testing.assert_array_equal(other.fit([[2, 0.1]], [0.3], [1.0]).query(), expected)
    assert "Grid([0.1, 0.2, 0.7])" in repr(querier)


def test_measurements_on_a_logarithmic_scale_are_positive():
    querier = RandomQuerier(bounds=Log(1, 10)).fit([[2.0]], [0.3])
    with pytest.raises(ValueError, match="feature 0 is on a logarithmic scale"):
        querier.tell([0.0], 0.1)
    assert len(querier.X_) == 1
    with pytest.raises(ValueError, match="feature 0 is on a logarithmic scale"):
        RandomQuerier(bounds=Log(1, 10)).fit([[-2.0]], [0.3])


# ---- mixtures of kinds and equations


@few
@given(seed=seeds)
def test_whole_numbers_in_an_equation(make, seed):
    """Of 12 parts, whole numbers each, and a fourth that is any number."""
    bounds = [Integer(0, 12)] * 3 + [(0.0, 12.0)]
    total = LinearConstraint(np.ones(4), 12, 12)
    X = [[3, 3, 3, 3.0], [4, 4, 2, 2.0]]
    params = {} if "policy" not in make().get_params() else {"policy": "auto"}
    querier = make(bounds=bounds, constraints=total, random_state=seed, **params)
    querier.fit(X, [0.1, 0.2], [1.0, 1.1])
    points = querier.query(n_queries=3)
    np.testing.assert_array_equal(points[:, :3], points[:, :3].round())
    np.testing.assert_allclose(points.sum(axis=1), 12, rtol=0, atol=1e-9)
    assert points.min() >= 0


def test_an_equation_may_leave_few_points():
    """Two whole numbers, and a third feature that makes up for the rest."""
    total = LinearConstraint(np.ones(3), 2, 2)
    querier = RandomQuerier(bounds=[Integer(0, 2)] * 2 + [(0.0, 2.0)], constraints=total)
    points = querier.fit([[1, 1, 0]], [0.1]).query(n_queries=5)
    found = {tuple(x) for x in points.round(9).tolist()}
    assert found == {(0, 0, 2), (0, 1, 1), (1, 0, 1), (0, 2, 0), (2, 0, 0)}
    with pytest.raises(PoolExhaustedError, match="all points that were found that constraints"):
        querier.query(n_queries=6)


@pytest.mark.parametrize("n", [30, 300])
def test_discrete_features_alone_in_an_equation(n):
    """All points of a few are listed; of many they are drawn, and one feature has to give."""
    total = LinearConstraint(np.ones(3), n, n)
    querier = RandomQuerier(bounds=Integer(0, n), constraints=total)
    points = querier.fit([[n, 0, 0]], [0.1]).query(n_queries=20)
    np.testing.assert_array_equal(points.sum(axis=1), n)
    np.testing.assert_array_equal(points, points.round())
    assert len(np.unique(points, axis=0)) == 20


def test_two_equations_with_whole_numbers():
    ones = [LinearConstraint([1, 1, 1, 1], 10, 10), LinearConstraint([1, -1, 0, 0.5], 1, 1)]
    querier = RandomQuerier(bounds=[Integer(0, 10)] * 2 + [(0, 10)] * 2, constraints=ones)
    points = querier.fit([[3, 3, 2, 2]], [0.1]).query(n_queries=14)
    assert len(np.unique(points.round(9), axis=0)) == 14  # of 15, one of which is measured
    np.testing.assert_array_equal(points[:, :2], points[:, :2].round())
    for one in ones:
        np.testing.assert_allclose(points @ one.A.T, one.ub[0], rtol=0, atol=1e-8)


def test_an_equation_of_a_logarithmic_scale():
    bounds = [Log(1, 10), (0, 10)]
    constraints = LinearConstraint([1, 1], 11, 11)
    querier = RandomQuerier(bounds=bounds, constraints=constraints).fit([[5, 6]], [0.1])
    with pytest.raises(ValueError, match=r"an equation has a feature of a log.* Pass a pool"):
        querier.query()
    np.testing.assert_array_equal(querier.query(pool=[[4, 7], [4, 8]]), [[4, 7]])
    # Where it is fixed its scale is of no consequence.
    np.testing.assert_allclose(querier.query(fixed={0: 3.0}), [[3, 8]], rtol=0, atol=1e-9)


def test_an_inequality_of_a_logarithmic_scale():
    constraints = [LinearConstraint([1, 1], -np.inf, 0.02), LinearConstraint([0, 1], 0.001)]
    querier = RandomQuerier(bounds=[Log(1e-6, 1), (0, 1)], constraints=constraints)
    points = querier.fit([[1e-3, 0.01]], [0.1]).query(n_queries=20)
    assert (points.sum(axis=1) <= 0.02).all()
    assert (points[:, 1] >= 0.001).all()
    assert points[:, 0].min() < 1e-5


# ---- 100,000 points


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    seed=seeds,
    d=st.integers(1, 7),
    k=st.integers(1, 5),
    m=st.integers(0, 2),
    whole=st.booleans(),
    curved=st.booleans(),
    safe=st.booleans(),
    near=st.booleans(),
)
def test_what_is_drawn_satisfies_all(seed, d, k, m, whole, curved, safe, near):
    """80 times 3 draws of 256 to 2,048 points."""
    rng = np.random.default_rng(seed)
    low = rng.uniform(-50, 50, d)
    high = low + 10.0 ** rng.uniform(-2, 3, d)
    bounds = np.column_stack([low, high]).tolist()
    if whole:
        bounds[0] = Integer(int(low[0]), int(low[0]) + 40)
    box = box_of(bounds, d)
    inside = box.from_unit(rng.uniform(0.2, 0.8, (1, d)))[0]
    A, A_eq = (rng.standard_normal((n, d)) / box.width for n in (k, min(m, d - 1)))
    ones = [
        LinearConstraint(A, A @ inside - rng.exponential(0.5, k), A @ inside + 0.3),
        LinearConstraint(A_eq, A_eq @ inside, A_eq @ inside),
    ]
    if curved:

        def fun(x):
            return np.square((x - inside) / box.width).sum()

        ones.append(NonlinearConstraint(fun, -np.inf, 0.2))
    X = box.to_unit(np.array([inside]))
    margin = np.ones((1, 1)) if safe else None
    history = History(X, np.zeros(1), margin, 1, box, Cache())
    step = rng.uniform(0.2, 0.5, d) * box.width if near else None
    region = Region.of(box, Known(ones, box), inside, step)
    offer = Offer(lambda last: region, inside[None], inside, None)
    try:
        drawn = [offer.candidates(None, history, seed + i) for i in range(3)]
    except PoolExhaustedError:
        assert box.has_discrete
        return
    points = np.vstack([one.raw(np.arange(len(one))) for one in drawn])
    wrong = ~((points >= box.lower) & (points <= box.upper)).all(axis=1)
    wrong |= (points @ A.T > ones[0].ub).any(axis=1) | (points @ A.T < ones[0].lb).any(axis=1)
    size = np.abs(A_eq) @ np.maximum(np.abs(box.lower), np.abs(box.upper))
    wrong |= (np.abs(points @ A_eq.T - ones[1].ub) > 1e-9 * size).any(axis=1)
    if whole:
        wrong |= points[:, 0] != points[:, 0].round()
    if curved:
        wrong |= np.array([fun(x) > 0.2 for x in points])
    if near:
        wrong |= (np.abs(points - inside) > step * (1 + 1e-9)).any(axis=1)
    assert not wrong.any()


def test_candidates_are_all_over_what_constraints_leave():
    """Without limits they are uniform, so that a random querier is."""
    querier = RandomQuerier(constraints=LinearConstraint([1, 1], -np.inf, 0.5))
    querier.fit([[0.1, 0.1]], [0.3])
    x = querier.query(n_queries=100)
    np.testing.assert_allclose(x.mean(axis=0), 1 / 6, atol=0.05)
    np.testing.assert_allclose(x.std(axis=0), 0.5 / np.sqrt(18), atol=0.03)


# ---- what cannot be


@pytest.mark.parametrize("n_features", [1, 2])
def test_nothing_satisfies_constraints(make, n_features):
    if "policy" in make().get_params() and n_features == 1:
        pytest.skip("the untrained policy is for two features")
    constraints = LinearConstraint(np.ones(n_features), 3)
    querier = make(constraints=constraints).fit(np.full((1, n_features), 0.5), [0.3], [1.0])
    with pytest.raises(ValueError, match="no point inside bounds satisfies constraints"):
        querier.query()
    assert querier.tell(np.full(n_features, 0.4), 0.2, 1.0).n_told_ == 1


def test_no_point_is_found_that_satisfies_a_function():
    never = NonlinearConstraint(lambda x: -1.0, 0, 1)
    querier = RandomQuerier(constraints=never).fit([[0.5]], [0.3])
    with pytest.raises(
        ValueError, match=r"no point inside bounds was found .* constraints\. Check"
    ):
        querier.query()
    with pytest.raises(PoolExhaustedError, match="no row of the pool that is left satisfies const"):
        querier.query(pool=[[0.1], [0.2]])
    exactly = NonlinearConstraint(lambda x: x[0] ** 2, 0.25, 0.25)
    querier = RandomQuerier(constraints=exactly).fit([[0.1]], [0.3])
    with pytest.raises(ValueError, match=r"NonlinearConstraint with lb == ub .* Pass a pool"):
        querier.query()
    np.testing.assert_array_equal(querier.query(pool=[[0.4], [0.5]]), [[0.5]])


def test_a_single_point():
    querier = RandomQuerier(constraints=LinearConstraint([1, 1], 2, 2)).fit([[0.5, 0.5]], [0.3])
    np.testing.assert_allclose(querier.query(), [[1, 1]], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"constraints": 3}, TypeError, "constraints must be a scipy.optimize"),
        ({"constraints": LinearConstraint([1, 1, 1])}, ValueError, r"constraints\[0\]: A must"),
        ({"max_step": 0}, ValueError, "max_step of feature 0 must be positive, got 0"),
        ({"max_step": [1, -1]}, ValueError, "max_step of feature 1 must be positive, got -1"),
        ({"max_step": [1, 1, 1]}, ValueError, "max_step must be one number, or one for each of"),
        ({"max_step": {"T": 1}}, ValueError, "max_step has a feature 'T'; state its position"),
        ({"max_step": "slow"}, ValueError, "max_step"),
    ],
)
def test_bad_parameters(make, params, error, message):
    querier = make(**params)
    for call in querier.fit, querier.query:
        with pytest.raises(error, match=message):
            call([[0.1, 0.2]], [0.3])
    assert not hasattr(querier, "X_")


def test_constraints_may_be_replaced_during_a_campaign():
    X, y, z = campaign(0)
    querier = AmortizedSafeQuerier(bounds=BOUNDS, constraints=SHARES).fit(X, y, z)
    querier.query()
    turned = LinearConstraint(-SHARES.A, -np.inf, -SHARES.ub)
    expected = AmortizedSafeQuerier(bounds=BOUNDS, constraints=[turned]).fit(X, y, z).query()
    np.testing.assert_array_equal(querier.set_params(constraints=[turned]).query(), expected)
    assert (expected @ SHARES.A.T >= SHARES.ub).all()
    pool = CandidatePool(np.random.default_rng(0).uniform(LOW, HIGH, (50, 2)))
    for constraints in (SHARES, turned, SHARES):
        point = querier.set_params(constraints=constraints).query(pool=pool)
        assert (point @ constraints.A.T <= constraints.ub).all()


def test_near_to_a_run_that_failed():
    querier = RandomQuerier(bounds=Integer(0, 3), constraints=LinearConstraint([1], 1))
    querier.fit([[1], [2]], [0.1, 0.2]).tell([3], status="failed")
    message = "satisfies constraints and is not near to a run that failed|are measured or proposed"
    with pytest.raises(ValueError, match=message):
        querier.query()
    querier = RandomQuerier(max_step=0.005).fit([[0.5]], [0.3]).tell([0.5], status="failed")
    with pytest.raises(ValueError, match="max_step and is not near to a run that failed"):
        querier.query()


# ---- steps


@few
@given(seed=seeds, n_queries=st.integers(1, 4), pooled=st.booleans())
def test_no_step_is_too_large(make, seed, n_queries, pooled):
    X, y, z = campaign(seed)
    step = np.array([1.0, 4.0])
    querier = make(bounds=BOUNDS, max_step=step).fit(X, y, z)
    rng = np.random.default_rng(seed)
    pool = rng.uniform(LOW, HIGH, (3000, 2)) if pooled else None
    for _ in range(2):
        points = querier.query(pool=pool, n_queries=n_queries)
        way = np.vstack([querier.X_[-1], points])
        assert (np.abs(np.diff(way, axis=0)) <= step * (1 + 1e-9)).all()
        assert ((points >= LOW) & (points <= HIGH)).all()
        querier.tell(points, *outcomes(points))
    # From the last row of data that are passed.
    point = querier.query(X[::-1], y, z, pool=pool)
    assert (np.abs(point - X[0]) <= step * (1 + 1e-9)).all()


def test_steps_by_name_and_of_some_features():
    querier = RandomQuerier(bounds={"T": (0, 100), "p": (0, 1)}, max_step={"T": 2.0})
    points = querier.fit([[50, 0.5]], [0.3]).query(n_queries=30)
    steps = np.abs(np.diff(np.vstack([[50, 0.5], points]), axis=0))
    assert steps[:, 0].max() <= 2 + 1e-9
    assert steps[:, 1].max() > 0.3
    np.testing.assert_array_equal(largest_step({"T": 2}, ["T", "p"], 2), [2, np.inf])
    np.testing.assert_array_equal(largest_step(0.5, None, 2), [0.5, 0.5])


@pytest.mark.parametrize("bounds", [Integer(0, 10**9), Grid(np.arange(100) / 10)])
def test_steps_of_discrete_features(bounds):
    step = 0.2 if isinstance(bounds, Grid) else 2
    querier = RandomQuerier(bounds=bounds, max_step=step).fit([[5.0]], [0.3])
    for _ in range(4):
        x, last = querier.query(), querier.X_[-1]
        assert abs(x - last) <= step + 1e-9
        assert box_of(bounds, 1).holds(x)
        querier.tell(x, 0.1)
    querier = RandomQuerier(bounds=Integer(0, 9), max_step=0.5).fit([[5.0]], [0.3])
    with pytest.raises(PoolExhaustedError, match="all 1 points that max_step allow are measured"):
        querier.query()


def test_steps_on_a_logarithmic_scale_are_in_the_user_s_units():
    querier = RandomQuerier(bounds=Log(1e-3, 1e3), max_step=1.0).fit([[2.0]], [0.3])
    points = querier.query(n_queries=50)
    assert (np.abs(np.diff(np.append(2.0, points))) <= 1 + 1e-9).all()


def test_back_inside_the_bounds_in_one_step():
    with pytest.warns(UserWarning, match="outside bounds"):
        querier = RandomQuerier(max_step=0.2).fit([[1.1]], [0.3])
    assert 0.9 <= querier.query()[0, 0] <= 1.0
    querier.set_params(max_step=0.05)
    with pytest.raises(ValueError, match=r"max_step: the last point has 1.1 in feature 0.*outside"):
        querier.query()


# ---- features that are fixed


@few
@given(seed=seeds, value=st.floats(0.0, 6.0), n_queries=st.integers(1, 3))
def test_fixed_values_to_the_last_bit(make, seed, value, n_queries):
    querier = make(bounds=BOUNDS).fit(*campaign(seed))
    expected = querier.query()
    points = querier.query(fixed={0: value}, n_queries=n_queries)
    assert (points[:, 0] == value).all()
    assert ((points[:, 1] >= -5) & (points[:, 1] <= 30)).all()
    assert len(np.unique(points[:, 1])) == n_queries
    np.testing.assert_array_equal(querier.query(), expected)


def test_fixed_by_name_with_all_else(make):
    bounds = {"T": (0, 6), "n": Integer(0, 40)}
    querier = make(
        bounds=bounds, constraints=LinearConstraint([5, 1], -np.inf, 40), max_step={"n": 8}
    )
    querier.fit([[2.0, 10], [3.0, 12]], [0.1, 0.2], [1.0, 1.1])
    points = querier.query(fixed={"T": 1 / 3}, n_queries=2)
    assert (points[:, 0] == 1 / 3).all()
    steps = np.abs(np.diff(np.append(12, points[:, 1])))
    assert steps.max() <= 8
    np.testing.assert_array_equal(points[:, 1], points[:, 1].round())
    assert (points @ [5, 1] <= 40).all()
    pool = np.array([[1 / 3, 11], [1 / 2, 11], [1 / 3, 39.0]])
    np.testing.assert_array_equal(querier.query(pool=pool, fixed={"T": 1 / 3}), pool[:1])


def test_nothing_fixed_is_no_restriction(make):
    querier = make(bounds=BOUNDS).fit(*campaign(0))
    np.testing.assert_array_equal(querier.query(fixed={}), querier.query())


def test_everything_fixed():
    querier = RandomQuerier(bounds=BOUNDS).fit(*campaign(0))
    np.testing.assert_array_equal(querier.query(fixed={0: 1.5, 1: 7}), [[1.5, 7]])
    querier = RandomQuerier(bounds=Integer(0, 3)).fit([[1, 2]], [0.3])
    np.testing.assert_array_equal(querier.query(fixed={0: 3, 1: 0}), [[3, 0]])
    with pytest.raises(PoolExhaustedError, match="all 1 points that fixed allow"):
        querier.query(fixed={0: 1, 1: 2})


@pytest.mark.parametrize(
    ("fixed", "error", "message"),
    [
        ([1.0, 2.0], TypeError, "fixed must be a dict"),
        (1.0, TypeError, "fixed must be a dict"),
        ({2: 1.0}, ValueError, "fixed has a feature 2; state its position, 0 to 1, or one of T, n"),
        ({"p": 1.0}, ValueError, "fixed has a feature 'p'"),
        ({"T": "hot"}, ValueError, "fixed of feature 'T' must be a finite number, got 'hot'"),
        ({"T": 7.0}, ValueError, r"fixed: 7 in feature 'T' is outside its bounds \(0, 6\)"),
        (
            {"n": 2.5},
            ValueError,
            r"fixed: feature 'n' is Integer\(low=0, .* has no value 2.5",
        ),
        ({"n": 39}, ValueError, r"fixed: 39 in feature 'n' is more than one step of 8 .*max_step"),
    ],
)
def test_bad_fixed_values(fixed, error, message):
    bounds = {"T": (0, 6), "n": Integer(0, 40)}
    querier = RandomQuerier(bounds=bounds, max_step={"n": 8}).fit([[2.0, 10]], [0.1])
    with pytest.raises(error, match=message):
        querier.query(fixed=fixed)


# ---- policies by name, models


def test_a_policy_keeps_near_to_its_proposal():
    """Where the constraint leaves its proposal alone, about that is proposed."""
    X, y, z = campaign(1)
    for kind, safe in ((AmortizedQuerier, {}), (AmortizedSafeQuerier, {"gamma": 1.0})):
        bare = kind(policy_file(bool(safe)), bounds=BOUNDS, n_candidates=1, **safe).fit(X, y, z)
        free = bare.query()
        around = LinearConstraint(np.eye(2), -np.inf, np.inf)
        held = clone(bare).set_params(constraints=around).fit(X, y, z).query()
        assert (np.abs(held - free) / (HIGH - LOW)).max() < 0.1


def test_a_policy_s_proposal_is_replaced_by_a_point():
    """There is no pool to speak of."""
    X, y, z = campaign(0, n=12)
    params = {"bounds": BOUNDS, "constraints": SHARES, "on_no_safe": "least_unsafe"}
    querier = AmortizedSafeQuerier(policy_file(True), **params)
    with pytest.warns(UserWarning, match="no point near to a proposal is safe .* many points"):
        querier.query(X, y, z - 3)


def test_models_look_at_what_constraints_leave():
    """Variance is to be lowered where measurements are possible at all."""
    constraints = LinearConstraint([1, 1], -np.inf, 0.6)
    for kind in (GPQuerier, GPSafeQuerier):
        querier = kind("ensemble", acquisition="variance_reduction", constraints=constraints)
        querier.fit([[0.1, 0.1], [0.2, 0.2]], [0.3, 0.1], [1.0, 1.1])
        querier.query()
        reference = querier._cache.candidates.reference(512)
        assert len(reference) == 512
        assert (reference.sum(axis=1) <= 0.6).all()
        np.testing.assert_allclose(reference.mean(axis=0), 0.2, atol=0.03)
