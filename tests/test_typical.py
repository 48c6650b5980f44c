import numpy as np
import pytest
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from sklearn_asal import AmortizedQuerier, AmortizedSafeQuerier, CandidatePool, pool_choice, typical
from sklearn_asal.exceptions import SafetyWarning
from sklearn_asal.pool import PoolView
from sklearn_asal.space import Box
from sklearn_asal.typical import FACTORS, NOISES, Factors, TypicalProcesses, typical_lengthscale

from .common import found_by_threes, policy_file

rng = np.random.default_rng(0)
X = rng.random((12, 2))
MARGIN = np.sin(5 * X[:, 0]) + X[:, 1] - 0.5


@pytest.mark.parametrize("lengthscale", [0.3, np.array([0.2, 0.5])])
def test_average_of_scikit_learn_s_processes(lengthscale):
    candidates = rng.random((30, 2))
    evidence, means, variances, safe = [], [], [], []
    for factor in FACTORS:
        for noise in NOISES:
            kernel = RBF(factor * lengthscale) + WhiteKernel(noise**2)
            model = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X, MARGIN)
            mean, std = model.predict(candidates, return_std=True)
            evidence.append(model.log_marginal_likelihood_value_)
            means.append(mean)
            variances.append(std**2 - noise**2)
            safe.append(norm.cdf(mean / std))
    weights = np.exp(np.array(evidence) - max(evidence))
    weights /= weights.sum()
    variance, positive = TypicalProcesses(X, MARGIN, lengthscale).predict(candidates)
    np.testing.assert_allclose(positive, weights @ safe, atol=1e-7)
    square = weights @ (np.array(variances) + np.square(means))
    np.testing.assert_allclose(variance, square - (weights @ means) ** 2, atol=1e-7)


def test_factors_that_grow_are_those_made_anew():
    for hyperparameters in ((0.3,), (0.2, (0.05, 0.1, 0.2))):
        factors = Factors(X[:3], *hyperparameters)
        for n in (4, 5, 8, 12, 6):
            factors = factors.of(X[:n])
            expected = Factors(X[:n], *hyperparameters)
            for name in ("inverse", "log_determinant"):
                np.testing.assert_allclose(
                    getattr(factors, name), getattr(expected, name), rtol=1e-9, atol=1e-9
                )
        assert factors.key == expected.key != Factors(X[:3], 0.5).key
    swapped = X[[1, 0, *range(2, 7)]]
    np.testing.assert_array_equal(
        factors.of(swapped).inverse, Factors(swapped, *hyperparameters).inverse
    )
    # A measurement repeated many times is the worst that can happen to the last digits.
    factors = Factors(X[:1], 0.2)
    for n in range(2, 60):
        factors = factors.of(np.repeat(X[:1], n, axis=0))
    expected = Factors(factors.X, 0.2).inverse
    np.testing.assert_allclose(factors.inverse, expected, rtol=1e-6, atol=1e-6)


def test_known_factors_are_not_made_again(monkeypatch):
    """Neither for the same inputs, nor for one more; whatever the margins."""
    querier = AmortizedSafeQuerier(policy_file(True), z_scale="auto").fit(X, MARGIN, MARGIN)
    querier.query(pool=X + 0.01)
    monkeypatch.setattr(typical, "dtrtri", None)
    querier.query(pool=X + 0.01)
    querier.tell([0.5, 0.5], 0.3, 0.5).query(pool=X + 0.01)


def test_extreme_margins_stay_finite():
    processes = TypicalProcesses(np.repeat(X, 2, axis=0), np.repeat(1e300 * MARGIN, 2), 0.3)
    variance, safe = processes.predict(X)
    assert ((safe >= 0) & (safe <= 1)).all()
    assert np.isfinite(variance).all()


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
    _, safe = TypicalProcesses(X, MARGIN, 0.3).predict(pool[near])
    # A level that the nearest rows miss, one that none reaches, and none.
    level = np.sort(safe)[-20]
    assert safe[0] < level
    for wanted, expected in (
        (level, near[np.flatnonzero(safe >= level)[0]]),
        (1.0, near[safe.argmax()]),
        (None, order[0]),
    ):
        querier = AmortizedSafeQuerier(file, pool_safety=wanted, pool_choice="nearest")
        _, index = querier.query(X, MARGIN, MARGIN, pool=pool, return_indices=True)
        assert index == [expected]


@pytest.mark.parametrize("safe", [True, False])
def test_of_the_nearest_rows_the_least_certain_is_taken(safe):
    """Of those that are safe enough."""
    kind = AmortizedSafeQuerier if safe else AmortizedQuerier
    pool, lengthscale, taken = rng.random((300, 2)), 0.3, []
    for seed in range(20):
        shuffled = np.random.default_rng(seed).permutation(len(X))[:6]
        margin = MARGIN[shuffled] + 0.5
        history = X[shuffled], margin, margin
        querier = kind(policy_file(safe), **({"pool_safety": 0.5} if safe else {}))
        free = querier.query(*history)[0]
        near = np.argsort(np.linalg.norm(pool - free, axis=1))[:4]
        variance, positive = TypicalProcesses(*history[:2], lengthscale).predict(pool[near])
        enough = positive >= 0.5 if safe else np.ones(4, dtype=bool)
        if not enough.any():
            continue
        expected = near[enough][variance[enough].argmax()]
        _, index = querier.query(*history, pool=pool, return_indices=True)
        assert index == [expected]
        taken.append(expected != near[0])
    assert any(taken)


@pytest.mark.parametrize("n_features", [2, 3])
@pytest.mark.parametrize("safe", [True, False])
def test_every_row_of_a_pool_is_found(n_features, safe):
    """Also where a selection is spent, and equal rows one after the other."""
    kind = AmortizedSafeQuerier if safe else AmortizedQuerier
    centre = np.full((1, n_features), 0.5)
    pool = CandidatePool(np.repeat(0.3 + 0.4 * rng.random((10, n_features)), 3, axis=0))
    querier = kind(f"{n_features}d", budget=60) if n_features == 2 or safe else kind("2d")
    if querier.policy == "2d":
        centre, pool = centre[:, :2], CandidatePool(pool.X[:, :2])
    querier.fit(centre, [0.0], [1.0])
    found = found_by_threes(querier, pool, 10)
    assert sorted(found) == list(range(30))
    # The first of equal rows comes first.
    assert all(found.index(i) < found.index(i + 1) for i in range(29) if i % 3 < 2)


def test_no_selection_is_the_last_resort():
    pool = CandidatePool(np.random.default_rng(0).random((2100, 3)))
    querier = AmortizedSafeQuerier("3d", budget=300).fit([[0.5, 0.5, 0.5]], [0.0], [1.0])
    view = PoolView(pool, Box(None, 3), np.empty((0, 3)))
    spent = np.vstack([view.near(np.zeros(3), 300, selection)[1] for selection in (1, 2)])
    querier.tell(spent, np.zeros(len(spent)), np.ones(len(spent)))
    point = querier.query(pool=pool)
    assert not (spent == point).all(axis=1).any()


def test_what_is_safe_is_found_before_the_warning(recwarn):
    """Whether or not a pool is searched in selections."""
    centre = np.full(3, 0.5)

    def margin(x):
        return 1 - np.square(x - 0.5).sum(axis=1) / (3 * 0.16**2)

    rows = np.random.default_rng(2).random((2100, 3))
    for n in (2048, 2049, 2100):
        querier = AmortizedSafeQuerier("3d", budget=20)
        first = centre + 0.05 * np.random.default_rng(3).standard_normal((5, 3))
        querier.fit(first, first.sum(axis=1) - 1.5, margin(first))
        for _ in range(20):
            x = querier.query(pool=rows[:n])
            querier.tell(x, x.sum(axis=1) - 1.5, margin(x))
    assert not any("the safest of those near" in str(warning.message) for warning in recwarn)


@pytest.mark.parametrize("known", [3, 12])
def test_pending_inputs_only_lessen_the_variance(known):
    """As if each had been observed to be what was expected there."""
    candidates, pending = rng.random((20, 2)), rng.random((4, 2))
    plain = TypicalProcesses(X[:known], MARGIN[:known], 0.3)
    waiting = TypicalProcesses(X[:known], MARGIN[:known], 0.3, pending=pending)
    np.testing.assert_allclose(plain.predict(candidates)[1], waiting.predict(candidates)[1])
    assert len(waiting.factors.X) == known
    variances = []
    for i in range(len(plain._weights)):
        factor = FACTORS[plain._factor[i]]
        kernel = RBF(factor * 0.3) + WhiteKernel(plain._noise[i, 0])
        everything = np.vstack([X[:known], pending])
        model = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0)
        model.fit(everything, np.zeros(known + 4))
        small = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0)
        mean = small.fit(X[:known], MARGIN[:known]).predict(candidates)
        std = model.predict(candidates, return_std=True)[1]
        variances.append((std**2 - plain._noise[i, 0], mean))
    parts, means = map(np.array, zip(*variances, strict=True))
    spread = np.square(means - plain._weights @ means)
    np.testing.assert_allclose(
        waiting.predict(candidates)[0], plain._weights @ (parts + spread), atol=1e-7
    )


@pytest.mark.parametrize("safe", [True, False])
def test_of_many_observations_those_nearby_are_asked(safe, monkeypatch):
    """The far ones would change nothing."""
    many = np.random.default_rng(1).random((700, 2))
    margin = np.sin(5 * many[:, 0]) + many[:, 1] + 1
    querier = (AmortizedSafeQuerier if safe else AmortizedQuerier)(policy_file(safe))
    data, pool = (many, margin, margin), rng.random((2000, 2))
    near = querier.fit(*data).query(pool=pool)
    np.testing.assert_array_equal(near, querier.query(*data, pool=pool))
    querier.tell(near, 1.0, 1.0).query(pool=pool)
    assert querier not in pool_choice._factors
    monkeypatch.setattr(pool_choice, "_HEARD", 1000)
    np.testing.assert_array_equal(near, querier.query(*data, pool=pool))


def test_bad_choice():
    with pytest.raises(
        ValueError, match=r"pool_choice must be one of .*'uncertain', 'nearest'.*, got 1"
    ):
        AmortizedQuerier(policy_file(False), pool_choice=1).query(X, MARGIN)


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
    querier = AmortizedSafeQuerier(policy_file(True), pool_choice="nearest")
    rng = np.random.default_rng(1)
    free = querier.query(X, MARGIN, MARGIN)[0]
    X_, margin = np.vstack([X, free]), np.append(MARGIN, -1.0)
    proposal = querier.query(X_, margin, margin)[0]
    crowd = proposal + 1e-3 * rng.random((100, 2))
    spread = rng.random((100_000, 2))
    processes = TypicalProcesses(X_, margin, 0.3)
    assert processes.predict(crowd)[1].max() < 0.95
    _, index = querier.query(
        X_, margin, margin, pool=np.vstack([crowd, spread]), return_indices=True
    )
    assert index >= 100
    taken, safe = spread[index - 100], processes.predict(spread)[1] >= 0.95
    assert processes.predict(taken)[1] >= 0.95
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
