import numpy as np
import pytest
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from sklearn_asal import AmortizedSafeQuerier, CandidatePool, recheck
from sklearn_asal.exceptions import SafetyWarning
from sklearn_asal.pool import PoolView
from sklearn_asal.recheck import FACTORS, NOISES, Factors, MarginProcesses, typical_lengthscale
from sklearn_asal.space import Box

from .queriers import policy_file

rng = np.random.default_rng(0)
X = rng.random((12, 2))
MARGIN = np.sin(5 * X[:, 0]) + X[:, 1] - 0.5


@pytest.mark.parametrize("lengthscale", [0.3, np.array([0.2, 0.5])])
def test_average_of_scikit_learn_s_processes(lengthscale):
    candidates = rng.random((30, 2))
    evidence, safe = [], []
    for factor in FACTORS:
        for noise in NOISES:
            kernel = RBF(factor * lengthscale) + WhiteKernel(noise**2)
            model = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X, MARGIN)
            mean, std = model.predict(candidates, return_std=True)
            evidence.append(model.log_marginal_likelihood_value_)
            safe.append(norm.cdf(mean / std))
    weights = np.exp(np.array(evidence) - max(evidence))
    expected = weights @ np.array(safe) / weights.sum()
    result = MarginProcesses(X, MARGIN, lengthscale).probability_safe(candidates)
    np.testing.assert_allclose(result, expected, atol=1e-7)


def test_factors_that_grow_are_those_made_anew():
    factors = Factors(X[:3], 0.3)
    for n, lengthscale in ((4, 0.3), (5, 0.3), (8, 0.3), (12, 0.3), (12, 0.2), (6, 0.2)):
        factors = factors.of(X[:n], lengthscale)
        expected = Factors(X[:n], lengthscale).inverse
        np.testing.assert_allclose(factors.inverse, expected, rtol=1e-9, atol=1e-9)
    swapped = X[[1, 0, *range(2, 7)]]
    np.testing.assert_array_equal(factors.of(swapped, 0.2).inverse, Factors(swapped, 0.2).inverse)
    # A measurement repeated many times is the worst that can happen to the last digits.
    for n in range(2, 60):
        factors = factors.of(np.repeat(X[:1], n, axis=0), 0.2)
    expected = Factors(factors.X, 0.2).inverse
    np.testing.assert_allclose(factors.inverse, expected, rtol=1e-6, atol=1e-6)


def test_known_factors_are_not_made_again(monkeypatch):
    """Neither for the same inputs, nor for one more; whatever the margins."""
    querier = AmortizedSafeQuerier(policy_file(True), z_scale="auto").fit(X, MARGIN, MARGIN)
    querier.query(pool=X + 0.01)
    monkeypatch.setattr(recheck, "dtrtri", None)
    querier.query(pool=X + 0.01)
    querier.tell([0.5, 0.5], 0.3, 0.5).query(pool=X + 0.01)


def test_extreme_margins_stay_finite():
    safe = MarginProcesses(
        np.repeat(X, 2, axis=0), np.repeat(1e300 * MARGIN, 2), 0.3
    ).probability_safe(X)
    assert ((safe >= 0) & (safe <= 1)).all()


@pytest.mark.parametrize(
    ("prior", "expected"),
    [
        (None, 0.3),
        ({"kind": "shifted-exponential", "shift": 0.1, "rate": 10.0}, 0.2),
        ({"kind": "uniform", "low": [0.1, 0.3], "high": [0.3, 0.5]}, [0.2, 0.4]),
        ({"kind": "log-uniform", "low": 0.1, "high": 1.0}, 0.9 / np.log(10)),
    ],
)
def test_typical_lengthscale(prior, expected):
    header = {} if prior is None else {"preset": {"safety_lengthscale": prior}}
    np.testing.assert_allclose(typical_lengthscale(header), expected)


def test_the_nearest_row_that_is_safe_enough_is_taken():
    file = policy_file(True)
    free = AmortizedSafeQuerier(file).query(X, MARGIN, MARGIN)[0]
    pool = rng.random((400, 2))
    order = np.argsort(np.linalg.norm(pool - free, axis=1))
    near = order[:400]
    safe = MarginProcesses(X, MARGIN, 0.3).probability_safe(pool[near])
    # A level that the nearest rows miss, one that none reaches, and none.
    level = np.sort(safe)[-20]
    assert safe[0] < level
    for wanted, expected in (
        (level, near[np.flatnonzero(safe >= level)[0]]),
        (1.0, near[safe.argmax()]),
        (None, order[0]),
    ):
        querier = AmortizedSafeQuerier(file, pool_safety=wanted)
        _, index = querier.query(X, MARGIN, MARGIN, pool=pool, return_indices=True)
        assert index == [expected]


def test_policies_of_one_system_weigh_the_features():
    """By the lengthscales that they know; rows are compared where the function varies."""
    querier = AmortizedSafeQuerier("7d-fluid")
    scale = typical_lengthscale(querier._load(7)[1], "lengthscale")
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0.4, 0.6, (10, 7)), 0.3 * rng.standard_normal(10)
    pool = rng.random((500, 7))
    free = querier.query(X, y, y + 1)[0]
    querier.set_params(pool_safety=None)
    _, index = querier.query(X, y, y + 1, pool=pool, return_indices=True)
    assert index == np.linalg.norm((pool - free) / scale, axis=1).argmin()
    assert index != np.linalg.norm(pool - free, axis=1).argmin()


def test_a_pool_without_safe_rows_is_warned_of():
    dangerous = X[MARGIN < -0.3] + 1e-4
    querier = AmortizedSafeQuerier(policy_file(True))
    with pytest.warns(SafetyWarning, match="pool_safety=0.95; the safest of those near"):
        querier.query(X, MARGIN, MARGIN, pool=dangerous)


def test_a_measured_row_is_not_taken_again():
    querier = AmortizedSafeQuerier(policy_file(True), pool_safety=0.5).fit(X, MARGIN, MARGIN)
    pool = np.vstack([X, rng.random((3, 2))])
    found = querier.query(pool=pool, n_queries=3, return_indices=True)[1]
    assert sorted(found) == [12, 13, 14]


def test_a_large_pool_is_searched_far_and_wide():
    """Where a hundred rows are nearer to the proposal than any that is safe."""
    querier, rng = AmortizedSafeQuerier(policy_file(True)), np.random.default_rng(1)
    free = querier.query(X, MARGIN, MARGIN)[0]
    X_, margin = np.vstack([X, free]), np.append(MARGIN, -1.0)
    proposal = querier.query(X_, margin, margin)[0]
    crowd = proposal + 1e-3 * rng.random((100, 2))
    spread = rng.random((100_000, 2))
    processes = MarginProcesses(X_, margin, 0.3)
    assert processes.probability_safe(crowd).max() < 0.95
    _, index = querier.query(
        X_, margin, margin, pool=np.vstack([crowd, spread]), return_indices=True
    )
    assert index >= 100
    taken, safe = spread[index - 100], processes.probability_safe(spread) >= 0.95
    assert processes.probability_safe(taken) >= 0.95
    # Few rows are asked, so it is not quite the nearest.
    nearest = np.linalg.norm(spread[safe] - proposal, axis=1).min()
    assert np.linalg.norm(taken - proposal) < 1.5 * nearest


def test_a_selection_may_be_spent():
    """Rows of a large pool are still found where all of its coarsest selection are measured."""
    pool = CandidatePool(rng.random((3000, 2)))
    view = PoolView(pool, Box(None, 2), X)
    coarsest = view.near(X[0], len(pool), view.n_selections - 1)[1]
    X_ = np.vstack([X, coarsest])
    margin = np.append(MARGIN, np.zeros(len(coarsest)))
    querier = AmortizedSafeQuerier(policy_file(True), pool_safety=1.0)
    with pytest.warns(SafetyWarning, match="the safest of those near"):
        point = querier.query(X_, margin, margin, pool=pool)
    assert not (coarsest == point).all(axis=1).any()


@pytest.mark.parametrize(
    ("value", "error"), [(1.5, ValueError), (np.nan, ValueError), ("high", TypeError)]
)
def test_bad_level(value, error):
    with pytest.raises(error, match="pool_safety"):
        AmortizedSafeQuerier(policy_file(True), pool_safety=value).query(X, MARGIN, MARGIN)
