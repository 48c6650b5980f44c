"""Experiments that run at the same time: what is pending, and what becomes of it."""

import copy
import pickle
import threading

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint
from sklearn.exceptions import NotFittedError

from sklearn_asal import (
    AmortizedSafeQuerier,
    BudgetExhaustedError,
    CandidatePool,
    Integer,
    PoolExhaustedError,
    RandomQuerier,
)

from ..common import policy_file

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


def campaign(seed, n=6):
    rng = np.random.default_rng(seed)
    X = rng.uniform(LOW + 0.3 * (HIGH - LOW), LOW + 0.7 * (HIGH - LOW), (n, 2))
    return X, rng.normal(size=n), rng.normal(1.0, 0.5, n)


def outcomes(x):
    """An output without noise, and what is safe."""
    return np.sin(np.sum(x, axis=1)), np.ones(len(x))


def apart(a, b):
    """The least distance of points, the largest along any axis, in widths of the bounds."""
    return np.abs((a[:, None] - b) / (HIGH - LOW)).max(axis=2).min(initial=np.inf)


def test_asked_is_queried_and_pending(make):
    querier = make(bounds=BOUNDS).fit(*campaign(0))
    assert querier.pending_.shape == (0, 2)
    expected = querier.query()
    first = querier.ask()
    np.testing.assert_array_equal(first, expected)
    np.testing.assert_array_equal(querier.pending_, first)
    assert not querier.pending_.flags.writeable
    # As it is for proposals of one query, and for points that are passed.
    together = make(bounds=BOUNDS).fit(*campaign(0)).query(n_queries=3)
    np.testing.assert_allclose(querier.ask(), together[1:2], rtol=0, atol=35e-5)
    passed = make(bounds=BOUNDS).fit(*campaign(0)).query(pending=together[:2])
    np.testing.assert_allclose(passed, together[2:], rtol=0, atol=35e-5)
    np.testing.assert_allclose(querier.query(), together[2:], rtol=0, atol=35e-5)
    assert len(querier.pending_) == 2


@few
@given(seed=seeds, n_rigs=st.integers(2, 4), data=st.data())
def test_rigs_that_end_in_any_order(make, seed, n_rigs, data):
    """No proposal is near to one that is pending, nor is any lost."""
    querier = make(bounds=BOUNDS, budget=12).fit(*campaign(seed))
    running = []
    for _ in range(8):
        if len(running) < n_rigs:
            before = querier.pending_
            x = querier.ask()
            assert apart(x, before) > 1e-3
            running.append(x)
        else:
            x = running.pop(data.draw(st.integers(0, n_rigs - 1)))
            wear = 1e-4 * (HIGH - LOW)  # what a rig sets is not quite what it was asked
            querier.tell(x + np.where(x + wear > HIGH, -wear, wear), *outcomes(x))
        pending = sorted(map(tuple, querier.pending_.tolist()))
        assert pending == sorted(tuple(one[0].tolist()) for one in running)


@pytest.mark.parametrize("policy", [policy_file(True), "2d"])
def test_a_policy_that_repeats_itself_is_moved(policy):
    """Cut off at the bounds, or next to what is pending by less than a thousandth."""
    querier = AmortizedSafeQuerier(policy).fit(*(part[:5] for part in (X01, Y01, Z01)))
    x = querier.query()
    for shift in (0.0, 1e-5, 9e-4):
        pending = np.clip(x + shift, 0, 1)
        again = querier.query(pending=pending)
        assert np.abs(again - pending).max() > 1e-3
    many = np.vstack([querier.ask() for _ in range(12)])
    away = np.abs(many[:, None] - many).max(axis=2)[np.triu_indices(12, 1)]
    assert away.min() > 1e-3


X01 = np.random.default_rng(0).uniform(0.4, 0.6, (5, 2))
Y01, Z01 = np.sin(X01.sum(axis=1)), np.ones(5)


def test_random_points_in_one_dimension_stay_apart():
    """Where one in a few would come too near."""
    querier = RandomQuerier().fit([[0.5]], [0.3])
    points = querier.query(n_queries=60)
    away = np.abs(points - points.T)[np.triu_indices(60, 1)]
    assert away.min() > 1e-3


def test_all_that_is_pending_counts_against_the_budget(make):
    querier = make(bounds=BOUNDS, budget=4).fit(*campaign(0))
    asked = querier.ask(n_queries=2)
    querier.query(n_queries=2)
    message = r"2 queries are left \(0 of budget=4 are told and 2 pending\), but n_queries=3"
    with pytest.raises(BudgetExhaustedError, match=message):
        querier.query(n_queries=3)
    with pytest.raises(BudgetExhaustedError, match="1 queries are left"):
        querier.query(n_queries=2, pending=[[1.0, 2.0]])
    querier.tell(asked[:1], *outcomes(asked[:1]))
    querier.ask(n_queries=2)
    with pytest.raises(BudgetExhaustedError, match="1 of budget=4 are told and 3 pending"):
        querier.ask()
    assert len(querier.pending_) == 3
    # What is stated in a call is what is left, as ever.
    assert querier.query(budget=1).shape == (1, 2)
    querier.withdraw(querier.pending_[:1]).ask()


def test_told_points_are_settled(make):
    querier = make(bounds=BOUNDS).fit(*campaign(0))
    asked = np.vstack([querier.ask() for _ in range(4)])
    querier.tell(asked[1], 0.1, 1.0)
    np.testing.assert_array_equal(querier.pending_, asked[[0, 2, 3]])
    querier.tell(asked[3], status="failed")
    np.testing.assert_array_equal(querier.pending_, asked[[0, 2]])
    querier.tell(asked[[2, 0]], [0.1, 0.2], [1.0, 1.0])
    assert querier.pending_.shape == (0, 2)
    assert querier.fit(*campaign(1)).ask().shape == (1, 2)
    assert len(querier.fit(*campaign(0)).pending_) == 0


def test_what_was_measured_need_not_be_what_was_proposed():
    querier = RandomQuerier(bounds=BOUNDS).fit(*campaign(0)[:2])
    querier._pending = LOW + (HIGH - LOW) * [[0.2, 0.2], [0.5, 0.5]]
    querier.tell(LOW + (HIGH - LOW) * [0.219, 0.181], 0.1)
    np.testing.assert_allclose(querier.pending_, (LOW + HIGH)[None] / 2)
    # What is far from all that is pending is something else.
    querier.tell(LOW + (HIGH - LOW) * [0.5, 0.53], 0.1)
    assert len(querier.pending_) == 1


def test_one_of_two_that_lie_close_together():
    querier = RandomQuerier().fit([[0.5, 0.5]], [0.3])
    querier._pending = np.array([[0.2, 0.2], [0.21, 0.2], [0.8, 0.8]])
    querier.tell([0.209, 0.2], 0.1)
    np.testing.assert_array_equal(querier.pending_, [[0.2, 0.2], [0.8, 0.8]])
    querier._pending = np.array([[0.2, 0.2], [0.21, 0.2], [0.8, 0.8]])
    querier.tell([[0.209, 0.2], [0.2, 0.2], [0.209, 0.2]], [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(querier.pending_, [[0.8, 0.8]])


def test_withdraw(make):
    querier = make(bounds=BOUNDS).fit(*campaign(0))
    expected, asked = querier.query(), querier.ask(n_queries=3)
    with pytest.raises(ValueError, match=r"x: not all of .* are pending; pending_ has"):
        querier.withdraw([*asked[:1], [0.0, 0.0]])
    with pytest.raises(ValueError, match="x has 3 features"):
        querier.withdraw([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(querier.pending_, asked)
    assert querier.withdraw(asked[1]) is querier
    np.testing.assert_array_equal(querier.pending_, asked[[0, 2]])
    assert len(querier.withdraw().pending_) == 0
    np.testing.assert_array_equal(querier.query(), expected)
    with pytest.raises(ValueError, match="x: not all"):
        querier.withdraw(asked[0])
    querier.withdraw()


def test_a_query_that_fails_leaves_nothing_pending(make):
    querier = make(bounds=BOUNDS, budget=3).fit(*campaign(0))
    before = pickle.dumps(querier)
    for options in ({"n_queries": 4}, {"pool": [[np.nan, 1.0]]}, {"fixed": {"T": 1}}):
        with pytest.raises(ValueError):
            querier.ask(**options)
    for name in "Xyz":
        with pytest.raises(TypeError, match=f"takes no {name}"):
            querier.ask(**{name: [[1.0, 2.0]]})
    assert pickle.dumps(querier) == before
    for call in (make().ask, make().withdraw):
        with pytest.raises(NotFittedError, match=r"call fit\(X, y\) before"):
            call()


def test_copies_know_what_is_pending(make):
    querier = make(bounds=BOUNDS).fit(*campaign(0))
    querier.ask(n_queries=2)
    expected = querier.query()
    for other in (pickle.loads(pickle.dumps(querier)), copy.deepcopy(querier)):
        np.testing.assert_array_equal(other.pending_, querier.pending_)
        np.testing.assert_allclose(other.query(), expected, rtol=0, atol=35e-5)
        other.withdraw()
        assert len(querier.pending_) == 2


@few
@given(seed=seeds)
def test_the_order_of_what_is_pending_is_of_no_consequence(make, seed):
    querier = make(bounds=BOUNDS).fit(*campaign(seed))
    pending = np.random.default_rng(seed).uniform(LOW, HIGH, (4, 2))
    expected = querier.query(pending=pending)
    np.testing.assert_array_equal(querier.query(pending=pending[::-1]), expected)
    np.testing.assert_array_equal(
        querier.query(*campaign(seed), pending=pending[[2, 0, 3, 1]]),
        make(bounds=BOUNDS).query(*campaign(seed), pending=pending),
    )


def test_nothing_pending(make):
    querier = make(bounds=BOUNDS).fit(*campaign(0))
    expected = querier.query()
    for pending in ([], np.empty((0, 2)), pd.DataFrame({"a": [], "b": []})):
        np.testing.assert_array_equal(querier.query(pending=pending), expected)
    asked = querier.ask()
    np.testing.assert_array_equal(querier.query(pending=[]), querier.query(pending=None))
    assert apart(querier.query(pending=[]), asked) > 1e-3


@pytest.mark.parametrize(
    ("pending", "message"),
    [
        ([[1.0, np.nan]], "Input pending contains NaN"),
        ([1.0, 2.0, 3.0], "pending has 3 features, but .* is expecting 2"),
        ([["a", "b"]], "pending"),
    ],
)
def test_bad_pending_points(make, pending, message):
    with pytest.raises(ValueError, match=message):
        make(bounds=BOUNDS).fit(*campaign(0)).query(pending=pending)


# ---- with pools, kinds of features, constraints


def test_rows_of_a_pool(make):
    pool = CandidatePool(np.random.default_rng(0).uniform(LOW, HIGH, (6, 2)))
    querier = make(bounds=BOUNDS).fit(*campaign(0))
    taken = set()
    for _ in range(3):
        _, rows = querier.ask(pool=pool, n_queries=2, return_indices=True)
        taken |= set(rows.tolist())
    assert taken == set(range(6))
    with pytest.raises(PoolExhaustedError):
        querier.query(pool=pool)
    querier.withdraw(pool.X[2])
    np.testing.assert_array_equal(querier.query(pool=pool), pool.X[2:3])
    querier.tell(pool.X[4], 0.1, 1.0)
    np.testing.assert_array_equal(querier.query(pool=pool), pool.X[2:3])


def test_of_equal_rows_each_is_pending_once():
    querier = RandomQuerier().fit([[0.5]], [0.3])
    pool = [[0.2], [0.2], [0.2]]
    for _ in range(3):
        np.testing.assert_array_equal(querier.ask(pool=pool), [[0.2]])
    with pytest.raises(PoolExhaustedError):
        querier.ask(pool=pool)


def test_whole_numbers_are_asked_once(make):
    querier = make(bounds=Integer(0, 2)).fit([[1, 1]], [0.3], [1.0])
    seen = {tuple(querier.ask()[0].tolist()) for _ in range(8)}
    assert len(seen) == 8
    assert (1.0, 1.0) not in seen
    with pytest.raises(PoolExhaustedError, match="all 9 points that bounds allow are measured or"):
        querier.ask()


def test_with_constraints(make):
    querier = make(bounds=BOUNDS, constraints=LinearConstraint([1, 0], -np.inf, 3))
    querier.fit(*campaign(0))
    for _ in range(5):
        before = querier.pending_
        x = querier.ask()
        assert x[0, 0] <= 3
        assert apart(x, before) > 1e-3


def test_where_there_is_no_room_to_stay_apart():
    querier = RandomQuerier(max_step=2e-4).fit([[0.5]], [0.3])
    points = np.vstack([querier.ask() for _ in range(3)])
    assert (np.abs(points - 0.5) <= 2e-4 + 1e-12).all()


def test_steps_begin_at_what_was_told():
    querier = RandomQuerier(max_step=0.1).fit([[0.5, 0.5]], [0.3])
    for _ in range(20):
        assert np.abs(querier.ask() - 0.5).max() <= 0.1 + 1e-12
    querier.tell([0.55, 0.5], 0.1)
    assert np.abs(querier.ask() - [0.55, 0.5]).max() <= 0.1 + 1e-12


# ---- threads


def test_ask_is_atomic():
    querier = RandomQuerier(budget=64).fit([[0.5, 0.5]], [0.3])
    asked, errors, gate = [], [], threading.Barrier(8)

    def rig():
        gate.wait()
        try:
            for _ in range(8):
                x = querier.ask()
                asked.append(x)
                if len(asked) % 3 == 0:
                    querier.tell(x, 0.1)
        except Exception as error:
            errors.append(error)

    rigs = [threading.Thread(target=rig) for _ in range(8)]
    for one in rigs:
        one.start()
    for one in rigs:
        one.join()
    assert not errors
    points = np.vstack(asked)
    assert len(np.unique(points, axis=0)) == 64
    away = np.abs(points[:, None] - points).max(axis=2)[np.triu_indices(64, 1)]
    assert away.min() > 0
    assert querier.n_told_ + len(querier.pending_) == 64
    with pytest.raises(BudgetExhaustedError):
        querier.ask()
