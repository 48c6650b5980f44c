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
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info

from sklearn_asal import (
    CandidatePool,
    GPQuerier,
    GPSafeQuerier,
    NoSafeCandidateError,
    PoolExhaustedError,
)
from sklearn_asal.surrogates import ExactGP, MixtureGP, SparseGP

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
    querier = GPSafeQuerier(surrogate, acquisition, bounds=BOUNDS, candidates=300)
    for candidates in (None, pool):
        point, report = querier.query(X, y, Z, pool=candidates, return_report=True)
        assert ((point >= BOUNDS[:, 0]) & (point <= BOUNDS[:, 1])).all()
        assert acquisition == "min_unsafe" or report.p_safe[0] >= 0.95
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


@pytest.mark.parametrize("acquisition", ["entropy", "min_unsafe"])
def test_refinement_gains(data, acquisition):
    X, y, Z = data
    z = Z[:, 0]
    plain = GPSafeQuerier("exact", acquisition, 100, bounds=BOUNDS, random_state=0)
    better = clone(plain).set_params(refine=3)
    reports = [querier.query(X, y, z, return_report=True)[1] for querier in (plain, better)]
    scores = [
        np.log(report.y_std[0]) - np.log(max(0.05, 1 - report.p_safe[0])) for report in reports
    ]
    assert scores[1] > scores[0] + 1e-3
    assert acquisition == "min_unsafe" or reports[1].p_safe[0] >= 0.95 - 1e-9


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


def test_no_safe_candidate_in_the_whole_space(data):
    X, y, Z = data
    querier = GPSafeQuerier(bounds=BOUNDS, candidates=200, safety_threshold=2.0)
    with pytest.warns(UserWarning, match="none of the 12 observations is safe"):
        querier.fit(X, y, Z[:, 0])
    with pytest.raises(NoSafeCandidateError):
        querier.query()


def test_small_safe_sets_are_found():
    # The safe ball holds about one in two hundred thousand points of the cube.
    rng = np.random.default_rng(0)
    X = 0.5 + 0.03 * rng.standard_normal((25, 8))
    z = 1 - 30 * np.square(X - 0.5).sum(axis=1)
    querier = GPSafeQuerier(candidates=500)
    _, report = querier.query(X, X[:, 0], z, return_report=True)
    assert report.p_safe[0] >= 0.95


def test_campaign_on_a_function_is_safe_and_learns():
    def measure(X):
        return np.sin(6 * X[:, 0]) * X[:, 1], 1.2 - 5 * np.square(X - 0.5).sum(axis=1)

    rng = np.random.default_rng(0)
    X = 0.4 + 0.2 * rng.random((5, 2))
    querier = GPSafeQuerier(candidates=1000, random_state=0).fit(X, *measure(X))
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
    querier = GPSafeQuerier(surrogate, candidates=800, random_state=seed).fit(X, y, z)
    pool = rng.random((600, 2))
    for params in {}, {"pool": pool}:
        points, report = querier.query(n_queries=6, return_report=True, **params)
        p_safe = norm.sf(0, *fit_unit(surrogate, X, z).predict_members(points)).mean(axis=0)
        assert p_safe.min() >= 0.95 - 1e-9
        np.testing.assert_allclose(report.p_safe, p_safe)
        assert len(np.unique(points.round(6), axis=0)) == 6
    refined = querier.set_params(refine=2).query(n_queries=3, return_report=True)[1]
    assert refined.p_safe.min() >= 0.95 - 1e-9


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
    GPSafeQuerier(Recorder(), bounds=BOUNDS, candidates=50).query(X, y, Z[:, 0], n_queries=3)
    fits = [("fit", 12), ("fit", 12)]
    assert log == [*fits, *fits, ("condition", 13), *fits, ("condition", 14)]
    log.clear()
    GPQuerier(Recorder(), bounds=BOUNDS, candidates=50).query(X, y, n_queries=2)
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
    for params in {}, {"refine": 2}:
        plain = GPSafeQuerier(Plain(), bounds=BOUNDS, **params).query(X, y, Z, n_queries=1)
        np.testing.assert_array_equal(plain, GPSafeQuerier(bounds=BOUNDS).query(X, y, Z))


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
    querier = Querier(Spoilt(spoil), bounds=BOUNDS, candidates=50).fit(X, y, Z)
    for call in (
        querier.query,
        lambda: querier.query(pool=pool),
        lambda: querier.query(pool=pool[:2]),
        lambda: querier.assess(X[:2]),
    ):
        with pytest.raises(ValueError, match=f"surrogate Spoilt: .*{message}"):
            call()


@pytest.mark.parametrize("n", [1, 2, 50])
def test_a_regressor_of_scikit_learn_is_refused(data, n):
    X, y, _ = data
    querier = GPQuerier(GaussianProcessRegressor(optimizer=None), bounds=BOUNDS, candidates=n).fit(
        X, y
    )
    with pytest.raises(ValueError, match=r"surrogate GaussianProcessRegressor.*return_std=True"):
        querier.query()


def test_variance_reduction_needs_covariances(data):
    X, y, Z = data
    for Querier in GPQuerier, GPSafeQuerier:
        querier = Querier(Plain(), "variance_reduction", bounds=BOUNDS)
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
    GPSafeQuerier(bounds=BOUNDS, candidates=50).query(X, y, Z)
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_threads_are_left_as_they_were_by_queries_at_once(data):
    # In a process of its own, for the number found at the start depends on the environment.
    code = (
        "import numpy as np; from concurrent.futures import ThreadPoolExecutor\n"
        "from threadpoolctl import threadpool_info; from sklearn_asal import GPQuerier\n"
        "from sklearn_asal.surrogates import MixtureGP\n"
        "def threads(): return [pool['num_threads'] for pool in threadpool_info()]\n"
        "before, X = threads(), np.random.default_rng(0).random((8, 2))\n"
        "querier = GPQuerier(MixtureGP(n_members=3, n_steps=5), candidates=50).fit(X, X[:, 0])\n"
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
        "for s in ('exact', 'sparse', 'mixture'):\n"
        "    GPSafeQuerier(s, candidates=20).query(np.full((2, 2), 0.5), [0.1, 0.2], [1.0, 1.1])\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"surrogate": "exakt"}, "surrogate must be one of 'exact', 'sparse', 'mixture' or an"),
        ({"surrogate": ExactGP}, None),
        ({"surrogate": 3}, "surrogate must be one of"),
        (
            {"surrogate": StandardScaler()},
            "surrogate must be one of .* or an estimator whose predict",
        ),
        ({"acquisition": "variance"}, "acquisition must be one of 'entropy', .*'min_unsafe'"),
        ({"candidates": 0}, "candidates == 0, must be >= 1"),
        ({"refine": -1}, "refine == -1, must be >= 0"),
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
