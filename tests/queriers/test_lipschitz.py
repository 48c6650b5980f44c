"""A limit that is known by assumption: what it guarantees, where it is right."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint
from sklearn.base import clone

from sklearn_asal import (
    AmortizedSafeQuerier,
    Integer,
    LipschitzBound,
    PoolExhaustedError,
)
from sklearn_asal.queriers.lipschitz import Certified

from ..common import QUERIERS, policy_file

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
some = settings(max_examples=40, deadline=None, derandomize=True)
few = settings(max_examples=6, deadline=None, derandomize=True)
NAMES = [name for name in QUERIERS if "Safe" in name and name != "BestSafeQuerier"]
seeds = st.integers(0, 10**6)


@pytest.fixture(params=NAMES)
def make(request):
    """A constructor of each safe querier that has the parameter."""
    return QUERIERS[request.param]


class Rig:
    """A safety signal whose largest slopes are known.

    Along each axis a sum of zigzags, as steep as they may be nearly everywhere: nothing smooth.
    """

    def __init__(self, seed, low, high, noise=0.0):
        rng = np.random.default_rng(seed)
        d = len(low)
        self.low, self.high, self.noise = np.array(low), np.array(high), noise
        self.slope = rng.uniform(0.5, 3.0, d) / (self.high - self.low)
        self._period = (self.high - self.low) * rng.uniform(0.3, 1.0, d)
        self._shift = rng.random(d)
        self._rng = rng
        grid = rng.uniform(low, high, (4000, d))
        values = self._zigzag(grid)
        self.start = grid[values.argmax()]
        self._level = np.quantile(values, 0.5)

    def _zigzag(self, x):
        phase = (x / self._period + self._shift) % 1.0
        return (np.minimum(phase, 1 - phase) * self.slope * self._period).sum(axis=1)

    def __call__(self, x):
        """The true signal, safe where it is not negative."""
        return self._zigzag(np.atleast_2d(x)) - self._level

    def measure(self, x):
        return self(x) + self._rng.uniform(-self.noise, self.noise, len(x))


def test_the_rig_is_no_steeper_than_it_says():
    rig = Rig(0, [0.0, -5.0], [6.0, 30.0])
    rng = np.random.default_rng(0)
    a, b = rng.uniform(rig.low, rig.high, (2, 20_000, 2))
    change = np.abs(rig(a) - rig(b))
    assert (change <= np.abs(a - b) @ rig.slope + 1e-12).all()
    assert 0.4 < (rig(a) < 0).mean() < 0.6


# ---- campaigns


@few
@given(seed=seeds, noisy=st.booleans())
@pytest.mark.parametrize("name", NAMES)
def test_no_violation_where_the_slope_is_right(name, seed, noisy):
    rig = Rig(seed, [0.0, -5.0], [6.0, 30.0], noise=0.02 if noisy else 0.0)
    bound = LipschitzBound(rig.slope, rig.noise) if noisy else rig.slope
    bounds = list(zip(rig.low, rig.high, strict=True))
    querier = QUERIERS[name](bounds=bounds, lipschitz=bound)
    querier.fit(rig.start[None], [0.0], rig.measure(rig.start[None]))
    for i in range(3):
        x = querier.query(n_queries=1 + i % 3)
        assert (rig(x) >= -1e-12).all()
        assert ((x >= rig.low) & (x <= rig.high)).all()
        querier.tell(x, np.sin(x.sum(axis=1)), rig.measure(x))


def test_no_violation_in_many_campaigns():
    """It has nothing to learn first. Where the slope is wrong it guarantees nothing."""
    n_unsafe = {}
    for part in (None, 1.0, 0.02):
        n_unsafe[part] = 0
        for seed in range(12):
            rig = Rig(seed, [0.0, 0.0], [1.0, 1.0])
            lipschitz = None if part is None else part * rig.slope
            querier = AmortizedSafeQuerier(lipschitz=lipschitz, gamma=0.3, n_candidates=100)
            querier.fit(rig.start[None], [0.0], rig(rig.start))
            for _ in range(6):
                x = querier.query()
                querier.tell(x, np.sin(x.sum(axis=1)), rig(x))
            n_unsafe[part] += (querier.z_ < 0).sum()
    assert n_unsafe[1.0] == 0
    assert n_unsafe[None] > 0
    assert n_unsafe[0.02] > 0


def test_several_limits_in_their_own_units():
    first, second = Rig(1, [0.0, 0.0], [1.0, 1.0]), Rig(2, [0.0, 0.0], [1.0, 1.0])
    grid = np.random.default_rng(0).random((2000, 2))
    start = grid[np.minimum(first(grid), second(grid)).argmax()][None]

    def measure(x):
        return np.column_stack([100 + first(x), 7 - 1000 * second(x)])

    querier = AmortizedSafeQuerier(
        safety_threshold=[100, 7],
        safe_when=["above", "below"],
        lipschitz=[first.slope, 1000 * second.slope],
    ).fit(start, [0.0], measure(start))
    for _ in range(8):
        x = querier.query(n_queries=2)
        assert (first(x) >= -1e-12).all()
        assert (second(x) >= -1e-12).all()
        querier.tell(x, np.sin(x.sum(axis=1)), measure(x))


@pytest.mark.parametrize("params", [{"guard": True}, {"max_violations": 0}])
@pytest.mark.parametrize("policy", [policy_file(True), "auto"])
def test_with_a_guard_a_last_resort_and_a_pool(params, policy):
    rig = Rig(5, [0.0, 0.0], [1.0, 1.0])
    querier = AmortizedSafeQuerier(policy, lipschitz=rig.slope, **params)
    querier.fit(rig.start[None], [0.0], rig(rig.start))
    pool = np.vstack([np.random.default_rng(0).random((500, 2)), rig.start + 1e-3 * np.eye(2)])
    for i in range(4):
        x = querier.query(pool=pool if i % 2 else None, n_queries=2)
        assert (rig(x) >= -1e-12).all()
        querier.tell(x, np.sin(x.sum(axis=1)), rig(x))


def test_with_whole_numbers_constraints_steps_and_fixed_features():
    rig = Rig(8, [0.0, 0.0], [40.0, 1.0])
    start = np.array([np.round(rig.start[0]), rig.start[1]])[None]
    querier = AmortizedSafeQuerier(
        bounds=[Integer(0, 40), (0.0, 1.0)],
        lipschitz=rig.slope,
        max_step=[5, 0.3],
        constraints=LinearConstraint([1 / 40, 1], -np.inf, 1.9),
    ).fit(start, [0.0], rig(start))
    for i in range(6):
        fixed = {1: querier.X_[-1, 1]} if i % 3 == 2 else None
        last, x = querier.X_[-1], querier.query(fixed=fixed)
        assert (rig(x) >= -1e-12).all()
        assert (np.abs(x - last) <= [5, 0.3 + 1e-9]).all()
        assert x[0, 0] == round(x[0, 0])
        assert fixed is None or x[0, 1] == last[1]
        querier.tell(x, 0.1, rig(x))


def test_runs_that_were_cut_short_guarantee_nothing():
    querier = AmortizedSafeQuerier(lipschitz=10.0).fit([[0.5, 0.5]], [0.3], [1.0])
    expected = np.abs(querier.query() - 0.5).sum()
    querier.tell([0.9, 0.9], status="aborted").tell([0.1, 0.1], status="failed")
    x = querier.query(n_queries=4)
    assert (np.abs(x - 0.5).sum(axis=1) <= 0.1).all()
    assert expected <= 0.1


# ---- what is certified


@some
@given(seed=seeds, n=st.integers(1, 6), d=st.integers(1, 4), k=st.integers(1, 3))
def test_certified_equals_brute_force(seed, n, d, k):
    rng = np.random.default_rng(seed)
    X, points = rng.random((n, d)), rng.random((100, d))
    spare, slope = rng.uniform(-0.5, 1.0, (n, k)), rng.uniform(0.3, 3.0, (k, d))
    spare[0] = 0.5
    expected = [
        all(
            any(spare[i, j] >= (slope[j] * np.abs(x - X[i])).sum() for i in range(n))
            for j in range(k)
        )
        for x in points
    ]
    certified = Certified(X, spare, slope)
    np.testing.assert_array_equal(certified.holds(points), expected)
    order = rng.permutation(n)
    again = Certified(X[order], spare[order], slope)
    rank = rng.permutation(d)
    drawn = certified.draw(300, np.random.default_rng(0), rank)
    np.testing.assert_array_equal(again.draw(300, np.random.default_rng(0), rank), drawn)
    # About one measurement each, inside what it guarantees by itself.
    assert certified.holds(drawn + 1e-12 * (X[0] - drawn)).mean() > 0.99


def test_drawn_points_fill_the_ball():
    certified = Certified(np.array([[0.5, 0.5]]), np.array([[1.0]]), np.array([[2.0, 10.0]]))
    x = certified.draw(20_000, np.random.default_rng(0), np.arange(2)) - 0.5
    share = np.abs(x * [2.0, 10.0]).sum(axis=1)
    assert share.max() <= 1 + 1e-12
    # Of a disc the share of points within a radius is its square.
    np.testing.assert_allclose(
        np.quantile(share, [0.25, 0.5, 0.75]) ** 2, [0.25, 0.5, 0.75], atol=0.02
    )
    np.testing.assert_allclose(x.mean(axis=0) * [2, 10], 0, atol=0.02)


def test_noise_is_kept_away_from():
    querier = AmortizedSafeQuerier(lipschitz=LipschitzBound(4.0, noise=0.6))
    x = querier.query([[0.5, 0.5]], [0.3], [1.0], n_queries=5)
    assert (np.abs(x - 0.5).sum(axis=1) <= 0.1 + 1e-12).all()
    with pytest.raises(ValueError, match="farther on the safe side of a limit than the noise"):
        querier.query([[0.5, 0.5]], [0.3], [0.5])


def test_no_row_is_guaranteed_to_be_safe():
    querier = AmortizedSafeQuerier(lipschitz=10.0).fit([[0.5, 0.5]], [0.3], [1.0])
    with pytest.raises(PoolExhaustedError, match="no row of the pool that is left satisfies lips"):
        querier.query(pool=[[0.1, 0.1], [0.9, 0.9]])


# ---- the parameter


@pytest.mark.parametrize("bound", [LipschitzBound([4.0, 2.0], noise=0.1), 4.0, [4.0, 2.0]])
def test_copies(make, bound):
    querier = make(lipschitz=bound).fit([[0.5, 0.5], [0.4, 0.5]], [0.3, 0.1], [1.0, 0.9])
    expected = querier.query(n_queries=2)
    others = pickle.loads(pickle.dumps(querier)), copy.deepcopy(querier)
    for other in others:
        assert other.get_params() == querier.get_params()
        np.testing.assert_array_equal(other.query(n_queries=2), expected)
    other = clone(querier).fit(querier.X_, querier.y_, querier.z_)
    np.testing.assert_array_equal(other.query(n_queries=2), expected)


def test_bounds_are_values():
    bound = LipschitzBound(np.array([4, 2]), noise=0)
    assert bound == LipschitzBound([4.0, 2.0]) == pickle.loads(pickle.dumps(bound))
    assert hash(bound) == hash(copy.deepcopy(bound))
    assert repr(bound) == "LipschitzBound(slope=(4.0, 2.0), noise=0.0)"
    assert LipschitzBound(np.float64(3)).slope == 3.0
    assert LipschitzBound([[1, 2], [3, 4]]).slope == ((1.0, 2.0), (3.0, 4.0))
    with pytest.raises(AttributeError):
        bound.slope = 3.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0,), "the slope of lipschitz must be positive"),
        (([1.0, -1.0],), "the slope of lipschitz must be positive"),
        ((np.inf,), "the slope of lipschitz contains infinity"),
        (("steep",), "the slope of lipschitz"),
        ((None,), "the slope of lipschitz"),
        ((1.0, -0.1), "the noise of lipschitz must not be negative"),
        ((1.0, np.nan), "the noise of lipschitz contains NaN"),
    ],
)
def test_bad_bounds(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        LipschitzBound(*arguments)
    if len(arguments) == 1 and arguments[0] is not None:
        with pytest.raises(ValueError, match=message):
            make(lipschitz=arguments[0]).fit([[0.5, 0.5]], [0.3], [1.0])


def test_bounds_of_other_shapes(make):
    data = [[0.5, 0.5]], [0.3], [1.0]
    with pytest.raises(ValueError, match=r"the slope of lipschitz has shape \(3,\); .* \(1, 2\)"):
        make(lipschitz=[1.0, 2.0, 3.0]).query(*data)
    with pytest.raises(ValueError, match=r"the noise of lipschitz has shape \(2,\); .* \(1,\)"):
        make(lipschitz=LipschitzBound(1.0, [1.0, 2.0])).query(*data)


def test_booleans_have_no_distance(make):
    querier = make(lipschitz=1.0).fit([[0.5, 0.5]], [0.3], [True])
    with pytest.raises(ValueError, match="lipschitz needs safety measurements that are numbers"):
        querier.query()
