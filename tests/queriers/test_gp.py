"""GPQuerier and GPSafeQuerier, beyond the contract that all queriers share."""

import os
import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info

from sklearn_asal import (
    CandidatePool,
    GPQuerier,
    GPSafeQuerier,
    NoSafeCandidateError,
    PoolExhaustedError,
    SafetyWarning,
)
from sklearn_asal.surrogates import EnsembleGP, ExactGP, MixtureGP, SparseGP

from ..common import found_by_threes
from ..reference import NOISES, ReferenceEnsemble

BOUNDS = np.array([(0.0, 6.0), (-5.0, 30.0)])
SURROGATES = ["exact", "sparse", MixtureGP(n_members=3, n_steps=5)]
pytestmark = pytest.mark.filterwarnings("error")


def unit(X):
    return (X - BOUNDS[:, 0]) / (BOUNDS[:, 1] - BOUNDS[:, 0])


@pytest.fixture(scope="module")
def data():
    """Inputs around the centre in raw units, outputs, and margins of two limits, all safe."""
    rng = np.random.default_rng(0)
    U = 0.3 + 0.4 * rng.random((12, 2))
    X = BOUNDS[:, 0] + U * (BOUNDS[:, 1] - BOUNDS[:, 0])
    y = np.sin(8 * U[:, 0]) + U[:, 1] - 0.5
    Z = np.column_stack([1 - 6 * np.square(U - 0.5).sum(axis=1), U[:, 0]])
    return X, y, Z


@pytest.fixture(scope="module")
def pool():
    return BOUNDS[:, 0] + np.random.default_rng(1).random((500, 2)) * np.ptp(BOUNDS, axis=1)


def fitted(surrogate, X, values):
    """The surrogate on sorted data, as the querier fits it."""
    model = {"exact": ExactGP(), "sparse": SparseGP()}.get(surrogate, surrogate)
    order = np.lexsort((values, *unit(X).T))
    return clone(model).fit(unit(X)[order], values[order])


@pytest.mark.parametrize("surrogate", SURROGATES, ids=str)
def test_choice_is_the_best_of_all_safe_rows(data, pool, surrogate):
    X, y, Z = data
    z = Z[:, 0]
    querier = GPSafeQuerier(surrogate, bounds=BOUNDS)
    _, index = querier.query(X, y, z, pool=pool, return_indices=True)
    means, stds = fitted(surrogate, X, z).predict_members(unit(pool))
    safe = norm.sf(0, means, stds).mean(axis=0) >= 0.95
    assert 0.02 < safe.mean() < 0.8
    score = fitted(surrogate, X, y).predict(unit(pool))[1]
    assert index[0] == np.where(safe, score, -1).argmax()
    assert score.argmax() != index[0]
    _, free = GPQuerier(surrogate, bounds=BOUNDS).query(X, y, pool=pool, return_indices=True)
    assert free[0] == score.argmax()


def test_several_limits_are_kept_jointly(data):
    X, y, Z = data
    pool = BOUNDS[:, 0] + np.random.default_rng(1).random((3000, 2)) * np.ptp(BOUNDS, axis=1)
    querier = GPSafeQuerier(bounds=BOUNDS, gamma=0.1)
    _, index = querier.query(X, y, Z, pool=pool, return_indices=True)
    parts = [norm.sf(0, *fitted("exact", X, column).predict(unit(pool))) for column in Z.T]
    std = fitted("exact", X, y).predict(unit(pool))[1]
    assert index[0] == np.where(parts[0] * parts[1] >= 0.9, std, -1).argmax()
    # Neither limit alone, nor each for itself, gives the same.
    first, second = parts[0] >= 0.9, parts[1] >= 0.9
    for other in (first, second, first & second):
        assert index[0] != np.where(other, std, -1).argmax()


def test_smaller_tolerance_is_safer(data):
    X, y, Z = data
    p_safe = [
        GPSafeQuerier(bounds=BOUNDS, gamma=gamma).query(X, y, Z, return_report=True)[1].p_safe[0]
        for gamma in (0.4, 0.05, 0.01)
    ]
    assert 0.6 <= p_safe[0] < 0.9
    assert 0.95 <= p_safe[1] < 0.99 <= p_safe[2]


@pytest.mark.parametrize("surrogate", SURROGATES, ids=str)
@pytest.mark.parametrize("acquisition", ["entropy", "variance_reduction", "random", "min_unsafe"])
def test_acquisitions(data, pool, surrogate, acquisition):
    X, y, Z = data
    querier = GPSafeQuerier(surrogate, acquisition=acquisition, bounds=BOUNDS, n_candidates=300)
    for candidates in (None, pool):
        point, report = querier.query(X, y, Z, pool=candidates, return_report=True)
        assert ((point >= BOUNDS[:, 0]) & (point <= BOUNDS[:, 1])).all()
        # A price on risk lets single queries be riskier, and "min_unsafe" all of them.
        least = {"min_unsafe": 0.0, "variance_reduction": 0.7}.get(acquisition, 0.95)
        assert report.p_safe[0] >= least
        np.testing.assert_array_equal(point, querier.query(X, y, Z, pool=candidates))


def test_min_unsafe_is_the_best_score_of_all_rows(data, pool):
    X, y, Z = data
    z = Z[:, 0]
    _, index = GPSafeQuerier(acquisition="min_unsafe", bounds=BOUNDS).query(
        X, y, z, pool=pool, return_indices=True
    )
    unsafe = norm.cdf(0, *fitted("exact", X, z).predict(unit(pool)))
    std = fitted("exact", X, y).predict(unit(pool))[1]
    assert index[0] == (np.log(std) - np.log(np.maximum(0.05, unsafe))).argmax()


def test_safe_random_spreads_over_the_safe_rows(data, pool):
    X, y, Z = data
    picked = [
        GPSafeQuerier(acquisition="random", bounds=BOUNDS, random_state=seed).query(
            X, y, Z[:, 0], pool=pool, return_indices=True
        )[1][0]
        for seed in range(40)
    ]
    safe = norm.sf(0, *fitted("exact", X, Z[:, 0]).predict(unit(pool))) >= 0.95
    assert safe[picked].all()
    assert len(set(picked)) > 20


def test_safe_random_finds_the_only_safe_rows_of_a_large_pool(data):
    X, y, z = data[0], data[1], data[2][:, 0]
    order = z.argsort()
    limit = (z[order[0]] + z[order[-2]]) / 2
    # More unsafe rows than are asked at once.
    pool = np.vstack([np.repeat(X[order[:1]], 20_000, axis=0), X[order[-2:]]])
    querier = GPSafeQuerier(acquisition="random", gamma=0.5, bounds=BOUNDS, safety_threshold=limit)
    p_safe = querier.assess(pool[-3:], X, y, z).p_safe
    assert p_safe[0] < 0.5 <= p_safe[1:].min()
    rest = X[order[1:-2]], y[order[1:-2]], z[order[1:-2]]
    picked = {
        int(
            querier.set_params(random_state=seed).query(*rest, pool=pool, return_indices=True)[1][0]
        )
        for seed in range(20)
    }
    assert picked == {20_000, 20_001}


def test_report_in_the_units_of_the_user(data):
    X, y, Z = data
    raw_y, raw_z = 50 + 20 * y, np.column_stack([7 + 2 * Z[:, 0], 300 - 40 * Z[:, 1]])
    querier = GPSafeQuerier(
        bounds=BOUNDS,
        y_loc=50,
        y_scale=20,
        safety_threshold=(7, 300),
        safe_when=("above", "below"),
        z_scale=[2, 40],
    ).fit(X, raw_y, raw_z)
    x = X[:4] + 0.1
    report = querier.assess(x)
    mean, std = fitted("exact", X, y).predict(unit(x))
    np.testing.assert_allclose(report.y_mean, 50 + 20 * mean, rtol=1e-6)
    np.testing.assert_allclose(report.y_std, 20 * std, rtol=1e-6)
    margins = [fitted("exact", X, column).predict(unit(x)) for column in Z.T]
    np.testing.assert_allclose(report.z_mean[:, 0], 7 + 2 * margins[0][0], rtol=1e-6)
    np.testing.assert_allclose(report.z_mean[:, 1], 300 - 40 * margins[1][0], rtol=1e-6)
    np.testing.assert_allclose(report.z_std[:, 0], 2 * margins[0][1], rtol=1e-5)
    np.testing.assert_allclose(report.z_std[:, 1], 40 * margins[1][1], rtol=1e-5)
    p_safe = norm.sf(0, *margins[0]) * norm.sf(0, *margins[1])
    np.testing.assert_allclose(report.p_safe, p_safe, rtol=1e-5)
    # Near what was measured, the predictions are what was measured.
    at = querier.assess(X)
    np.testing.assert_allclose(at.y_mean, raw_y, atol=4)
    np.testing.assert_allclose(at.z_mean, raw_z, atol=8)


@pytest.mark.parametrize("auto", [False, True])
def test_report_of_one_limit(data, auto):
    X, y, Z = data
    z = 7 - 2 * Z[:, 0]
    params = dict(y_loc="auto", y_scale="auto", z_scale="auto") if auto else dict(z_scale=2.0)
    querier = GPSafeQuerier(bounds=BOUNDS, safety_threshold=7, safe_when="below", **params)
    points, indices, report = querier.query(
        X, y, z, pool=X + 0.2, n_queries=3, return_indices=True, return_report=True
    )
    np.testing.assert_array_equal(points, X[indices] + 0.2)
    for part in (report.p_safe, report.y_mean, report.y_std, report.z_mean, report.z_std):
        assert part.shape == (3,)
    np.testing.assert_allclose(report.p_safe, norm.cdf(7, report.z_mean, report.z_std), rtol=1e-6)
    again = querier.assess(points, X, y, z)
    np.testing.assert_array_equal(again.p_safe, report.p_safe)
    np.testing.assert_allclose(querier.assess(X, X, y, z).z_mean, z, atol=0.5)
    np.testing.assert_allclose(querier.assess(X, X, y, z).y_mean, y, atol=0.3)


def test_report_without_limits(data):
    X, y, _ = data
    querier = GPQuerier(bounds=BOUNDS).fit(X, y)
    point, report = querier.query(return_report=True)
    assert point.shape == (1, 2)
    assert report.p_safe is report.z_mean is report.z_std is None
    single = querier.assess(point[0])
    np.testing.assert_array_equal(single.y_std, report.y_std)


def test_assess_takes_no_columns_in_another_order(data):
    pd = pytest.importorskip("pandas")
    X, y, Z = data
    frame = pd.DataFrame(X, columns=["a", "b"])
    querier = GPSafeQuerier(bounds=BOUNDS).fit(frame, y, Z)
    expected = querier.assess(X[:3]).p_safe
    np.testing.assert_array_equal(querier.assess(frame[:3]).p_safe, expected)
    np.testing.assert_array_equal(querier.assess(frame.iloc[0]).p_safe, querier.assess(X[0]).p_safe)
    swapped = frame[["b", "a"]]
    for call in (
        lambda: querier.assess(swapped),
        lambda: querier.assess(swapped.iloc[0]),
        lambda: querier.assess(frame, swapped, y, Z),
    ):
        with pytest.raises(ValueError, match="feature names should match"):
            call()
    with pytest.raises(ValueError, match="X has 1 features, but GPSafeQuerier is expecting 2"):
        querier.assess([0.1], X[:, :1], y, Z)


def test_assess_says_what_is_wrong(data):
    X, y, Z = data
    with pytest.raises(NotFittedError, match="has no data yet"):
        GPSafeQuerier().assess(X)
    querier = GPSafeQuerier(bounds=BOUNDS).fit(X, y, Z)
    with pytest.raises(ValueError, match="x has 3 features, but GPSafeQuerier is expecting 2"):
        querier.assess([0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="Input x contains NaN"):
        querier.assess([0.1, np.nan])


def test_no_safe_candidate(data, pool):
    X, y, Z = data
    far = pool[np.square(unit(pool) - 0.5).sum(axis=1) > 0.25]
    querier = GPSafeQuerier(bounds=BOUNDS).fit(X, y, Z)
    with pytest.raises(NoSafeCandidateError, match=r"safe means z >= 0\.0.*least unsafe") as error:
        querier.query(pool=far)
    p_safe = querier.assess(far).p_safe
    assert p_safe.max() < 0.95
    np.testing.assert_allclose(error.value.candidate, far[p_safe.argmax()])
    np.testing.assert_allclose(error.value.probability, p_safe.max())
    assert error.value.required == 0.95
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)
    querier.set_params(on_no_safe="least_unsafe")
    _, index = querier.query(pool=far, return_indices=True)
    assert index[0] == p_safe.argmax()


def test_parameters_after_the_surrogate_are_named():
    for Querier in GPQuerier, GPSafeQuerier:
        with pytest.raises(TypeError):
            Querier("exact", "entropy")


def test_no_safe_candidate_in_the_whole_space(data):
    X, y, Z = data
    querier = GPSafeQuerier(bounds=BOUNDS, n_candidates=200, safety_threshold=2.0)
    with pytest.warns(UserWarning, match="none of the 12 observations is safe"):
        querier.fit(X, y, Z[:, 0])
    with pytest.raises(NoSafeCandidateError):
        querier.query()


@pytest.mark.parametrize("surrogate", ["exact", "ensemble"])
def test_small_safe_sets_are_found(surrogate):
    # The safe ball holds about one in two hundred thousand points of the cube.
    rng = np.random.default_rng(0)
    X = 0.5 + 0.05 * rng.standard_normal((40, 8))
    z = 1 - 30 * np.square(X - 0.5).sum(axis=1)
    querier = GPSafeQuerier(surrogate, n_candidates=500).fit(X, X[:, 0], z)
    assert querier.assess(rng.random((5000, 8))).p_safe.max() < 0.95
    _, report = querier.query(return_report=True)
    assert report.p_safe[0] >= 0.95


def test_campaign_on_a_function_is_safe_and_learns():
    def measure(X):
        return np.sin(6 * X[:, 0]) * X[:, 1], 1.2 - 5 * np.square(X - 0.5).sum(axis=1)

    rng = np.random.default_rng(0)
    X = 0.4 + 0.2 * rng.random((5, 2))
    querier = GPSafeQuerier(n_candidates=1000, random_state=0).fit(X, *measure(X))
    test = rng.random((300, 2))
    test = test[measure(test)[1] > 0]
    errors = []
    for _ in range(20):
        errors.append(np.abs(querier.assess(test).y_mean - measure(test)[0]).mean())
        x = querier.query()
        querier.tell(x, *measure(x))
    assert np.mean(querier.z_ >= 0) >= 0.9
    assert querier.z_.min() > -0.1  # a random point has -0.4 on average, a corner -1.3
    assert errors[-1] < 0.25 * errors[0]


def test_given_surrogate_is_cloned_and_never_warm(data):
    X, y, Z = data
    model = ExactGP(warm_start=True).fit(unit(X), 3 * y)
    querier = GPSafeQuerier(model, bounds=BOUNDS)
    before = pickle.dumps(model)
    first = querier.fit(X, y, Z).query()
    np.testing.assert_array_equal(GPSafeQuerier(ExactGP(), bounds=BOUNDS).query(X, y, Z), first)
    assert pickle.dumps(model) == before
    assert querier.surrogate is model


def test_million_rows_in_bounded_memory():
    # A tenth of them, by the memory that each row takes.
    rng = np.random.default_rng(0)
    pool = CandidatePool(rng.random((100_000, 7)))
    X = rng.random((100, 7))
    querier = GPSafeQuerier().fit(X, X[:, 0], 0.5 + X[:, 1])
    querier.query(pool=pool)  # builds the index
    tracemalloc.start()
    querier.query(pool=pool)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


# ---- several queries at once: what is pending is no evidence


@pytest.mark.parametrize("surrogate", SURROGATES, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_every_one_of_several_proposals_is_safe(surrogate, seed):
    rng = np.random.default_rng(seed)
    X = 0.35 + 0.3 * rng.random((8, 2))
    y, z = np.sin(8 * X[:, 0]), 0.5 - 4 * np.square(X - 0.5).sum(axis=1)
    querier = GPSafeQuerier(surrogate, n_candidates=800, random_state=seed).fit(X, y, z)
    pool = rng.random((600, 2))
    for params in {}, {"pool": pool}:
        points, report = querier.query(n_queries=6, return_report=True, **params)
        p_safe = norm.sf(0, *fit_unit(surrogate, X, z).predict_members(points)).mean(axis=0)
        assert p_safe.min() >= 0.95 - 1e-9
        np.testing.assert_allclose(report.p_safe, p_safe)
        assert len(np.unique(points.round(6), axis=0)) == 6


def fit_unit(surrogate, X, values):
    model = {"exact": ExactGP(), "sparse": SparseGP()}.get(surrogate, surrogate)
    order = np.lexsort((values, *X.T))
    return clone(model).fit(X[order], values[order])


class Recorder(ExactGP):
    """Writes down what it is fitted to and conditioned on."""

    def fit(self, X, y):
        log.append(("fit", len(X)))
        return super().fit(X, y)

    def condition(self, X, y):
        log.append(("condition", len(X)))
        return super().condition(X, y)


log = []


def test_pending_points_change_neither_hyperparameters_nor_limits(data):
    X, y, Z = data
    log.clear()
    GPSafeQuerier(Recorder(), bounds=BOUNDS, n_candidates=50).query(X, y, Z[:, 0], n_queries=3)
    fits = [("fit", 12), ("fit", 12)]
    assert log == [*fits, *fits, ("condition", 13), *fits, ("condition", 14)]
    log.clear()
    GPQuerier(Recorder(), bounds=BOUNDS, n_candidates=50).query(X, y, n_queries=2)
    assert log == [("fit", 12), ("fit", 12), ("condition", 13)]


def test_pending_points_make_the_output_less_uncertain(data):
    X, y, _ = data
    pool = np.array([[0.3, -3.0], [0.31, -3.0], [4.6, 22.0]])
    std = GPQuerier(bounds=BOUNDS).assess(pool, X, y).y_std
    assert std[:2].min() > std[2]
    for surrogate in [*SURROGATES, Plain()]:
        querier = GPQuerier(surrogate, bounds=BOUNDS)
        _, indices = querier.query(X, y, pool=pool, n_queries=2, return_indices=True)
        assert set(indices) in ({0, 2}, {1, 2})


# ---- surrogates of others


class Plain(BaseEstimator):
    """The least that a surrogate has to do."""

    def fit(self, X, y):
        self.model_ = ExactGP().fit(X, y)
        return self

    def predict(self, X):
        return self.model_.predict(X)


class Spoilt(Plain):
    """Answers with something else in place of mean and standard deviation."""

    def __init__(self, spoil=None):
        self.spoil = spoil

    def predict(self, X):
        return self.spoil(*super().predict(X))


def test_the_least_surrogate_is_as_good_as_ours(data, pool):
    X, y, Z = data
    plain, ours = (GPSafeQuerier(model, bounds=BOUNDS) for model in (Plain(), "exact"))
    np.testing.assert_array_equal(plain.query(X, y, Z), ours.query(X, y, Z))


def no_deviation(mean, std):
    return mean


SPOILT = {
    "mean only": (no_deviation, r"two arrays of shape \(n,\).*returned ndarray of shape \(\d+,\)"),
    "columns": (lambda mean, std: (mean[:, None], std[:, None]), "returned tuple of ndarray of"),
    "one for all": (lambda mean, std: (mean, std[0]), "two arrays of shape"),
    "None": (lambda mean, std: None, "returned NoneType"),
    "NaN": (lambda mean, std: (mean * np.nan, std), "finite.*means and 0 deviations that are not"),
    "zero": (lambda mean, std: (mean, 0 * std), "standard deviations > 0"),
}


@pytest.mark.parametrize("name", SPOILT)
@pytest.mark.parametrize("Querier", [GPQuerier, GPSafeQuerier])
def test_predictions_that_are_none(data, pool, name, Querier):
    X, y, Z = data
    spoil, message = SPOILT[name]
    querier = Querier(Spoilt(spoil), bounds=BOUNDS, n_candidates=50).fit(X, y, Z)
    for call in (
        querier.query,
        lambda: querier.query(pool=pool),
        lambda: querier.query(pool=pool[:2]),
        lambda: querier.assess(X[:2]),
    ):
        with pytest.raises(ValueError, match=f"surrogate Spoilt: .*{message}"):
            call()


def test_a_regressor_of_scikit_learn_is_a_surrogate(data, pool):
    X, y, Z = data
    kernel = ConstantKernel(1.0) * RBF(0.3) + WhiteKernel(0.01)
    regressor = GaussianProcessRegressor(kernel, optimizer=None)
    std = clone(regressor).fit(unit(X), y).predict(unit(pool), return_std=True)[1]
    querier = GPQuerier(regressor, bounds=BOUNDS).fit(X, y)
    assert querier.query(pool=pool, return_indices=True)[1] == std.argmax()
    margin = Z[:, 0]
    p_safe = norm.sf(0, *clone(regressor).fit(unit(X), margin).predict(unit(pool), return_std=True))
    assert 0.01 < (p_safe >= 0.95).mean() < 0.9
    safe = GPSafeQuerier(regressor, bounds=BOUNDS).fit(X, y, margin)
    expected = np.where(p_safe >= 0.95, std, -1).argmax()
    assert safe.query(pool=pool, return_indices=True)[1] == expected
    assert not hasattr(regressor, "X_train_")


def test_variance_reduction_needs_covariances(data):
    X, y, Z = data
    for Querier in GPQuerier, GPSafeQuerier:
        querier = Querier(Plain(), acquisition="variance_reduction", bounds=BOUNDS)
        for call in querier.fit, querier.query:
            with pytest.raises(ValueError, match=r"acquisition='variance_reduction' .* surrogate"):
                call(X, y, Z)


def test_empty_pool(data, pool):
    X, y, Z = data
    for querier in (GPSafeQuerier(bounds=BOUNDS), GPQuerier(bounds=BOUNDS)):
        with pytest.raises(PoolExhaustedError, match="no row of the pool is left"):
            querier.query(X, y, Z, pool=X[:3])


def test_threads_are_left_as_they_were(data):
    before = [pool["num_threads"] for pool in threadpool_info()]
    X, y, Z = data
    GPSafeQuerier(bounds=BOUNDS, n_candidates=50).query(X, y, Z)
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_threads_are_left_as_they_were_by_queries_at_once(data):
    # In a process of its own, for the number found at the start depends on the environment.
    code = (
        "import numpy as np; from concurrent.futures import ThreadPoolExecutor\n"
        "from threadpoolctl import threadpool_info; from sklearn_asal import GPQuerier\n"
        "from sklearn_asal.surrogates import MixtureGP\n"
        "def threads(): return [pool['num_threads'] for pool in threadpool_info()]\n"
        "before, X = threads(), np.random.default_rng(0).random((8, 2))\n"
        "querier = GPQuerier(MixtureGP(n_members=3, n_steps=5), n_candidates=50).fit(X, X[:, 0])\n"
        "with ThreadPoolExecutor(6) as pool:\n"
        "    list(pool.map(lambda _: querier.query(), range(48)))\n"
        "assert threads() == before, (before, threads())"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "OMP_NUM_THREADS": "2"}
    )


def test_torch_is_not_needed(data):
    code = (
        "import sys, numpy as np; from sklearn_asal import GPSafeQuerier\n"
        "data = np.full((2, 2), 0.5), [0.1, 0.2], [1.0, 1.1]\n"
        "for s in ('exact', 'sparse', 'mixture', 'ensemble', 'amortized'):\n"
        "    GPSafeQuerier(s, n_candidates=20).query(*data)\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"surrogate": "exakt"},
            "one of 'exact', 'sparse', .*'pfn', 'tabpfn', an estimator",
        ),
        ({"surrogate": ExactGP}, None),
        ({"surrogate": 3}, "surrogate must be one of"),
        (
            {"surrogate": StandardScaler()},
            "surrogate must be one of .*, an estimator whose predict",
        ),
        ({"acquisition": "variance"}, "acquisition must be one of 'entropy', .*'min_unsafe'"),
        ({"n_candidates": 0}, "n_candidates == 0, must be >= 1"),
        ({"surrogate": "ensemble", "n_candidates": -1}, "n_candidates == -1, must be >= 1"),
        ({"gamma": 0.0}, "gamma == 0.0, must be > 0"),
        ({"gamma": 1.0}, "gamma == 1.0, must be < 1"),
        ({"on_no_safe": "ignore"}, "on_no_safe must be 'raise' or 'least_unsafe', got 'ignore'"),
    ],
)
def test_invalid_parameters(data, params, message):
    X, y, Z = data
    querier = GPSafeQuerier(bounds=BOUNDS, **params)
    if message is None:
        message = "surrogate must be an instance"
    for call in (querier.fit, querier.query):
        with pytest.raises(ValueError, match=message):
            call(X, y, Z)


def test_only_safe_queriers_know_limits(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="acquisition must be one of 'entropy', 'variance_red"):
        GPQuerier(acquisition="min_unsafe", bounds=BOUNDS).fit(X, y)


# ---- the ensemble: what lowers the variance most, of a few candidates


def margin_of(X):
    return 0.6 - np.square(X - 0.5).sum(axis=1)


def worth(outputs, margins, points, gamma=0.05):
    """Logarithm of the gain, less the price of risk; by scikit-learn, in double precision."""
    weights = (margins.probability_at(points) >= 0.16).astype(float)
    gain = outputs.variance_reduction(points, points, weights) / weights.sum()
    risk = (1 - margins.probability_of_positive(points)) / gamma
    return np.where(risk > 6, -np.inf, np.log(gain) - 0.35 * risk)


def ensemble(**params):
    return GPSafeQuerier("ensemble", acquisition="variance_reduction", **params)


def test_the_most_informative_row_of_a_campaign():
    """That of brute force, and the same without a campaign."""
    rng = np.random.default_rng(0)
    pool = rng.uniform(0.05, 0.95, (250, 7))
    querier, X = ensemble(budget=40, gamma=0.02), rng.uniform(0.45, 0.55, (10, 7))
    querier.fit(X, X.sum(axis=1) - 3.5, margin_of(X))
    candidates, taken, scale = CandidatePool(pool), [], 0.3 * np.sqrt(3.5)
    for _ in range(12):
        x, row = querier.query(pool=candidates, return_indices=True)
        data = querier.X_, querier.y_, querier.z_
        outputs, margins = (ReferenceEnsemble(data[0], part, scale) for part in data[1:])
        score = worth(outputs, margins, pool, gamma=0.02)
        assert np.isinf(score).any()
        score[taken] = -np.inf
        assert row == [score.argmax()]
        again = querier.query(*data, pool=pool, return_indices=True)[1]
        assert again == row
        taken.append(row[0])
        querier.tell(x, x.sum(axis=1) - 3.5, margin_of(x))
    assert (querier.z_ > 0).mean() > 0.8


def test_what_may_not_be_safe_is_not_worth_to_be_known():
    """With the same gain for all of a reference set, other rows would be taken."""
    chosen = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, pool = rng.random((12, 2)), rng.random((250, 2))
        margin = np.sin(5 * X[:, 0])  # unsafe on the right
        outputs, margins = ReferenceEnsemble(X, X[:, 0], 0.3), ReferenceEnsemble(X, margin, 0.3)
        row = ensemble(gamma=0.3).query(X, X[:, 0], margin, pool=pool, return_indices=True)[1]
        assert row == worth(outputs, margins, pool, 0.3).argmax()
        margins.probability_at = lambda points: np.ones(len(points))
        chosen += row[0] != worth(outputs, margins, pool, 0.3).argmax()
    assert chosen > 0


def test_rows_of_a_batch_tell_different_things():
    """What is pending counts as measured."""
    rng = np.random.default_rng(0)
    pool = np.repeat(rng.uniform(0.3, 0.7, (40, 7)), 2, axis=0)
    pool[1::2] += 1e-3
    X = rng.uniform(0.45, 0.55, (10, 7))
    querier = ensemble().fit(X, X.sum(axis=1) - 3.5, margin_of(X))
    rows = querier.query(pool=pool, n_queries=10, return_indices=True)[1]
    assert len(set(rows // 2)) == 10
    np.testing.assert_array_equal(rows[:1], querier.query(pool=pool, return_indices=True)[1])
    outputs = ReferenceEnsemble(X, X.sum(axis=1) - 3.5, 0.3 * np.sqrt(3.5), pending=pool[rows[:9]])
    margins = ReferenceEnsemble(X, margin_of(X), 0.3 * np.sqrt(3.5))
    score = worth(outputs, margins, pool)
    score[rows[:9]] = -np.inf
    assert rows[9] == score.argmax()


@pytest.mark.parametrize("safe", [True, False])
def test_every_row_of_a_pool_is_found(safe):
    """Of equal ones, too; after that the pool is exhausted."""
    rng = np.random.default_rng(0)
    Querier = GPSafeQuerier if safe else GPQuerier
    pool = CandidatePool(np.repeat(0.4 + 0.2 * rng.random((6, 2)), 2, axis=0))
    querier = Querier("ensemble", acquisition="variance_reduction", budget=60)
    querier.fit([[0.5, 0.5]], [0.0], [1.5])
    assert sorted(found_by_threes(querier, pool, 4)) == list(range(12))


def test_candidates_of_a_large_pool_are_others_at_each_query():
    """Of a constant choice some rows would never be looked at."""
    X = np.full((20, 1), 0.5)
    pool = CandidatePool(np.linspace(0, 1, 999)[:, None])
    querier = GPQuerier("ensemble", n_candidates=1)
    points = [querier.query(X[:n], np.zeros(n), pool=pool)[0, 0] for n in range(1, 21)]
    # All of these know the same: one of many rows is the only candidate.
    assert len(set(points)) == 20
    assert np.diff(np.sort([0, *points, 1])).max() < 0.13
    again = [querier.query(X[:n], np.zeros(n), pool=pool)[0, 0] for n in range(1, 21)]
    assert again == points


def test_a_taken_candidate_is_replaced():
    pool = CandidatePool(np.linspace(0, 1, 999)[:, None])
    querier = GPQuerier("ensemble", n_candidates=1).fit([[0.5]], [0.0])
    only = querier.query(pool=pool)
    querier.fit(np.vstack([only]), [0.0])
    point = querier.query(pool=pool)
    assert point != only
    assert point in pool.X


@pytest.mark.parametrize("acquisition", ["entropy", "variance_reduction", "random"])
@pytest.mark.parametrize("n", [257, 3000, 20_000])
def test_more_candidates_are_looked_at_where_none_is_safe(acquisition, n):
    """The only row that is safe is found, wherever it is."""
    rng = np.random.default_rng(n)
    X = 0.5 + 0.05 * rng.standard_normal((12, 2))
    margin = 1 - 60 * np.square(X - 0.5).sum(axis=1)
    querier = GPSafeQuerier("ensemble", acquisition=acquisition, bounds=(0, 1), z_scale="auto")
    querier.fit(X, X[:, 0], margin)
    pool = rng.random((n, 2))
    pool = pool[np.square(pool - 0.5).sum(axis=1) > 0.16]
    assert querier.assess(pool).p_safe.max() < 0.69
    for place in (0, len(pool) // 3, len(pool)):
        rows = np.insert(pool, place, [0.51, 0.5], axis=0)
        assert querier.query(pool=rows, return_indices=True)[1] == [place]
    with pytest.raises(NoSafeCandidateError) as error:
        querier.query(pool=pool)
    # Of all rows, not of the candidates that were looked at first.
    p_safe = querier.assess(pool).p_safe
    np.testing.assert_allclose(error.value.probability, p_safe.max(), atol=2e-3)
    (near,) = querier.assess(error.value.candidate).p_safe
    assert near > p_safe.max() - 2e-3
    querier.set_params(on_no_safe="least_unsafe")
    point, report = querier.query(pool=pool, return_report=True)
    np.testing.assert_array_equal(point[0], error.value.candidate)
    assert report.p_safe == near


@pytest.mark.parametrize("acquisition", ["entropy", "random"])
def test_gamma_holds_for_every_query_of_the_ensemble(acquisition):
    rng = np.random.default_rng(0)
    X = 0.4 + 0.2 * rng.random((8, 2))
    margin = 0.5 - 4 * np.square(X - 0.5).sum(axis=1)
    p_safe = []
    for gamma in (0.4, 0.05, 0.01):
        querier = GPSafeQuerier("ensemble", acquisition=acquisition, gamma=gamma, random_state=0)
        querier.fit(X, X[:, 0], margin)
        for pool in (None, rng.random((3000, 2))):
            points = querier.query(pool=pool, n_queries=5)
            safe = ReferenceEnsemble(X, margin, 0.3).probability_of_positive(points)
            assert safe.min() >= 1 - gamma - 2e-3  # single precision
            p_safe.append(safe.min())
    assert p_safe[0] < 0.8


def test_a_price_on_risk_holds_up_to_a_limit():
    rng = np.random.default_rng(0)
    X = 0.4 + 0.2 * rng.random((8, 2))
    margin = 0.5 - 4 * np.square(X - 0.5).sum(axis=1)
    lowest = {}
    for gamma in (0.01, 0.05):
        points = ensemble(gamma=gamma).query(X, X[:, 0], margin, pool=rng.random((3000, 2)))
        (lowest[gamma],) = ReferenceEnsemble(X, margin, 0.3).probability_of_positive(points)
        assert lowest[gamma] >= 1 - 6 * gamma - 2e-3
    assert lowest[0.05] < lowest[0.01]


def test_several_limits_of_the_ensemble_are_kept_jointly(data):
    X, y, Z = data
    pool = BOUNDS[:, 0] + np.random.default_rng(1).random((256, 2)) * np.ptp(BOUNDS, axis=1)
    querier = GPSafeQuerier("ensemble", bounds=BOUNDS, gamma=0.2)
    _, index = querier.query(X, y, Z, pool=pool, return_indices=True)
    parts = [ReferenceEnsemble(unit(X), column, 0.3) for column in Z.T]
    p_safe = np.prod([part.probability_of_positive(unit(pool)) for part in parts], axis=0)
    std = ReferenceEnsemble(unit(X), y, 0.3).predict(unit(pool))[1]
    assert index[0] == np.where(p_safe >= 0.8, std, -1).argmax()


def test_models_of_a_campaign_are_extended(data, monkeypatch):
    """Not made anew, by queries and tells in turn; nor again for the same data."""
    X, y, Z = data
    querier = ensemble(bounds=BOUNDS).fit(X, y, Z)
    pool = X + 0.05
    querier.query(pool=pool)
    monkeypatch.setattr("sklearn_asal.surrogates.factors.dtrtri", None)  # nothing works without
    for i in range(3):
        querier.query(pool=pool, n_queries=3)
        querier.tell(X[i] + 0.1, y[i], Z[i])
    expected = querier.query(pool=pool)
    monkeypatch.undo()
    again = ensemble(bounds=BOUNDS).query(querier.X_, querier.y_, querier.z_, pool=pool)
    np.testing.assert_array_equal(again, expected)


def test_an_ensemble_of_ones_own(data):
    """Its parameters count, whenever they are set."""
    X, y, _ = data
    pool = BOUNDS[:, 0] + np.random.default_rng(1).random((256, 2)) * np.ptp(BOUNDS, axis=1)
    querier = GPQuerier(EnsembleGP(0.1), bounds=BOUNDS).fit(X, y)
    for lengthscale, noises in ((0.1, NOISES), (np.array([0.1, 0.6]), NOISES), (0.3, (0.05,))):
        querier.surrogate.set_params(lengthscale=lengthscale, noise_std=noises)
        std = ReferenceEnsemble(unit(X), y, lengthscale, noises).predict(unit(pool))[1]
        np.testing.assert_allclose(querier.assess(pool).y_std, std, rtol=1e-6)
        assert querier.query(pool=pool, return_indices=True)[1] == [std.argmax()]
    assert not hasattr(querier.surrogate, "X_")


def test_rows_all_over_the_bounds_need_no_plan():
    pool = CandidatePool.from_bounds([(0, 1), (0, 1)], n_rows=500)
    querier = GPQuerier("ensemble", acquisition="variance_reduction", budget=60)
    X, y = [[0.4, 0.5], [0.6, 0.5], [0.5, 0.55]], [0.1, -0.3, 0.8]
    points = querier.fit(X, y).query(pool=pool, n_queries=3)
    querier.query(X, y, budget=50, pool=pool)
    assert not np.isin(points, querier.query(pool=CandidatePool(np.eye(2)))).all(axis=1).any()
    assert ((querier.query() >= 0) & (querier.query() <= 1)).all()


def test_a_campaign_of_the_ensemble_is_safe_and_learns():
    def measure(X):
        return np.sin(6 * X[:, 0]) * X[:, 1], 1.2 - 5 * np.square(X - 0.5).sum(axis=1)

    rng = np.random.default_rng(0)
    X = 0.4 + 0.2 * rng.random((5, 2))
    test = rng.random((300, 2))
    test = test[measure(test)[1] > 0]
    for pool in (None, CandidatePool(rng.random((5000, 2)))):
        querier, errors = ensemble(random_state=0).fit(X, *measure(X)), []
        for _ in range(20):
            errors.append(np.abs(querier.assess(test).y_mean - measure(test)[0]).mean())
            x = querier.query(pool=pool)
            querier.tell(x, *measure(x))
        assert np.mean(querier.z_ >= 0) >= 0.8
        assert querier.z_.min() > -0.3
        assert errors[-1] < 0.25 * errors[0]


@pytest.mark.parametrize("surrogate", ["ensemble", "amortized"])
def test_noise_free_campaigns_go_all_over_the_bounds(surrogate):
    """Gains get ever smaller, and must not tie for that."""
    querier = GPQuerier(surrogate, acquisition="variance_reduction", random_state=0)
    querier.fit([[0.5]], np.sin([3.0]))
    for _ in range(60):
        x = querier.query()
        querier.tell(x, np.sin(6 * x[:, 0]))
    assert np.histogram(querier.X_, bins=10, range=(0, 1))[0].max() <= 18


def test_the_error_names_the_bound_that_was_used():
    """Risk with a price is tolerated up to six times gamma."""
    X, y = [[0.5, 0.5], [0.52, 0.5]], [0.1, 0.2]
    for acquisition, required in (("entropy", 0.95), ("variance_reduction", 0.7)):
        querier = GPSafeQuerier("ensemble", acquisition=acquisition, random_state=0)
        with pytest.warns(SafetyWarning), pytest.raises(NoSafeCandidateError) as error:
            querier.query(X, y, [-1.0, -1.1])
        assert error.value.required == pytest.approx(required)
