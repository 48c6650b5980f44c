"""Networks that pick one of several candidates (ALINE), as queriers."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint

from sklearn_asal import AmortizedQuerier, AmortizedSafeQuerier, CandidatePool
from sklearn_asal.exceptions import DataScaleWarning, PolicyFileError
from sklearn_asal.policies.aline import ALINENetwork
from sklearn_asal.policies.checkpoint import save_policy
from sklearn_asal.policies.registry import baselines, load_runtime, picks
from sklearn_asal.pool import sobol

BOUNDS = [(-5.0, 10.0), (0.0, 15.0)]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    torch.manual_seed(0)
    network = ALINENetwork(2, embedding=8, hidden=12, heads=2, layers=2, max_budget=10)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    file = tmp_path_factory.mktemp("aline") / "policy.safetensors"
    save_policy(network, file, {"n_init": 1})
    return file


def data(n=6, seed=0):
    rng = np.random.default_rng(seed)
    return unscaled(rng.random((n, 2))), rng.normal(size=n)


def unscaled(x):
    low, high = np.array(BOUNDS).T
    return low + x * (high - low)


def scores(path, X, y, points):
    """Of points in the user's units."""
    low, high = np.array(BOUNDS).T
    runtime, _ = load_runtime(path, safe=False)
    X, points = ((part - low) / (high - low) for part in (X, points))
    both = sobol(32, 2), sobol(32, 2)[:, ::-1]
    return [runtime.scores(X, y, targets, points) for targets in both]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_of_a_pool_the_best_row_whatever_the_order(path, seed):
    X, y = data(seed=seed)
    rng = np.random.default_rng([seed, 1])
    rows = unscaled(rng.random((40, 2)))
    querier = AmortizedQuerier(path, bounds=BOUNDS)
    point, (index,) = querier.query(X, y, pool=rows, return_indices=True)
    np.testing.assert_array_equal(point[0], rows[index])
    # Targets go to the features in an order of their own.
    assert any(index == found.argmax() for found in scores(path, X, y, rows))
    of_rows, of_data = rng.permutation(40), rng.permutation(len(X))
    moved = querier.query(X[of_data], y[of_data], pool=rows[of_rows])
    np.testing.assert_array_equal(moved, point)


def test_measured_rows_are_not_picked_again(path):
    X, y = data()
    rows = unscaled(np.random.default_rng(1).random((5, 2)))
    querier = AmortizedQuerier(path, bounds=BOUNDS).fit(X, y)
    pool, taken = CandidatePool(rows), []
    for _ in range(5):
        point, index = querier.query(pool=pool, return_indices=True)
        querier.tell(point, [0.1], index=index)
        taken += index.tolist()
    assert sorted(taken) == [0, 1, 2, 3, 4]


def test_without_a_pool_candidates_are_drawn(path):
    X, y = data()
    querier = AmortizedQuerier(path, bounds=BOUNDS, random_state=3)
    point = querier.query(X, y)
    np.testing.assert_array_equal(point, querier.query(X, y))
    np.testing.assert_array_equal(point, querier.query(X[::-1], y[::-1]))
    low, high = np.array(BOUNDS).T
    assert ((point >= low) & (point <= high)).all()
    others = [
        AmortizedQuerier(path, bounds=BOUNDS, random_state=seed).query(X, y)[0] for seed in range(8)
    ]
    few = [
        AmortizedQuerier(path, bounds=BOUNDS, random_state=seed, n_candidates=1).query(X, y)[0]
        for seed in range(8)
    ]
    # The more are compared, the better the best of them.
    assert np.mean(scores(path, X, y, others)) > np.mean(scores(path, X, y, few))


def test_several_queries_differ(path):
    X, y = data()
    querier = AmortizedQuerier(path, bounds=BOUNDS, budget=5).fit(X, y)
    assert len(np.unique(querier.query(n_queries=4), axis=0)) == 4


def test_propose_many_is_a_loop_of_queries(path):
    histories = [data(n, seed=n) for n in (3, 5, 3)]
    querier = AmortizedQuerier(path, bounds=BOUNDS)
    expected = [querier.query(*history, budget=4)[0] for history in histories]
    np.testing.assert_array_equal(querier.propose_many(histories, budgets=4), expected)


def test_constraints_and_steps_hold(path):
    X, y = data()
    querier = AmortizedQuerier(
        path, bounds=BOUNDS, constraints=LinearConstraint([[1, 1]], -np.inf, 8), max_step=2.0
    )
    querier.fit(X, y).tell([0.0, 4.0], 0.2)
    point = querier.query()[0]
    assert point.sum() <= 8 + 1e-9
    assert (np.abs(point - [0.0, 4.0]) <= 2 + 1e-9).all()


def test_reports_and_copies(path):
    X, y = data()
    querier = AmortizedQuerier.from_pretrained(path, bounds=BOUNDS).fit(X, y)
    point, report = querier.query(return_report=True)
    assert report.y_std.shape == (1,)
    assert querier.policy_header_["architecture"]["kind"] == "aline"
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(querier)).query(), point)


def test_outliers_do_not_break_it(path):
    X, y = data()
    y[0] = 1e12
    with pytest.warns(DataScaleWarning):
        point = AmortizedQuerier(path, bounds=BOUNDS).query(X, y)
    assert np.isfinite(point).all()


def test_campaigns_longer_than_in_training_are_warned_of(path):
    X, y = data()
    with pytest.warns(DataScaleWarning, match="budget=11 is more than the 10 queries"):
        AmortizedQuerier(path, bounds=BOUNDS, budget=11).fit(X, y)


def test_no_notion_of_safety(path):
    X, y = data()
    with pytest.raises(PolicyFileError, match="AmortizedQuerier"):
        AmortizedSafeQuerier(path, bounds=BOUNDS).query(X, y, np.ones(len(X)))
    for name in baselines():
        with pytest.raises(PolicyFileError, match="has no notion of safety"):
            AmortizedSafeQuerier.from_pretrained(name)


def test_another_number_of_features(path):
    with pytest.raises(ValueError, match=r"X has 3 features, but policy .* takes 2\. 'any' fits"):
        AmortizedQuerier(path).query(np.zeros((1, 3)), [0.0])


def test_which_policies_pick(path, tmp_path):
    assert picks(path)
    assert picks(str(path))
    for other in ("any", "auto", "2d", "dad-2d", tmp_path / "none", None):
        assert not picks(other)
    for name in baselines():
        assert picks(name) == name.startswith("aline")
