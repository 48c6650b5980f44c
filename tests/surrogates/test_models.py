"""The surrogates: against scikit-learn, closed forms and each other, and on awkward data."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from sklearn_asal.surrogates import (
    SURROGATES,
    AmortizedGP,
    EnsembleGP,
    ExactGP,
    MixtureGP,
    PFNSurrogate,
    SparseGP,
    TabPFNSurrogate,
)
from sklearn_asal.surrogates.likelihood import Prior
from sklearn_asal.surrogates.sparse import cluster_centres
from sklearn_asal.surrogates.validation import check_data

from .conftest import finite_data

MODELS = [
    ExactGP(),
    ExactGP(prior=False),
    SparseGP(n_inducing=8),
    MixtureGP(n_members=4, n_steps=3),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)
# Those that fit nothing.
QUICK = [EnsembleGP(), AmortizedGP(), AmortizedGP(zero_mean=True), PFNSurrogate()]


def reference(model, member=0):
    """Scikit-learn's GP with the hyperparameters of one member."""
    kernel = ConstantKernel(model.signal_std_[member] ** 2) * RBF(model.lengthscale_[member])
    kernel += WhiteKernel(model.noise_std_[member] ** 2)
    return GaussianProcessRegressor(kernel, optimizer=None, alpha=1e-12)


@pytest.mark.parametrize("n_features", [1, 2, 4])
@pytest.mark.parametrize("prior", [True, False])
def test_exact_predicts_like_scikit_learn(data, n_features, prior):
    X, y = data(25, n_features)
    model = ExactGP(prior=prior).fit(X, y)
    test = np.random.default_rng(1).uniform(-0.5, 1.5, (50, n_features))
    mean, std = model.predict(test)
    expected = reference(model).fit(X, y).predict(test, return_std=True)
    np.testing.assert_allclose(mean, expected[0], atol=1e-5)
    np.testing.assert_allclose(std, expected[1], atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_exact_finds_the_optimum_of_scikit_learn(data, seed):
    X, y = data(30, seed=seed)
    kernel = ConstantKernel(1.0, (1e-6, 1e6)) * RBF([0.3, 0.3], (0.02, 50.0))
    kernel += WhiteKernel(0.01, (1e-8, 100.0))
    theirs = GaussianProcessRegressor(kernel, n_restarts_optimizer=3, random_state=0).fit(X, y)
    ours = ExactGP(prior=False).fit(X, y)
    np.testing.assert_allclose(
        reference(ours).fit(X, y).log_marginal_likelihood_value_, ours.objective_, atol=1e-4
    )
    assert ours.objective_ > theirs.log_marginal_likelihood_value_ - 1e-3


def test_exact_optimum_with_a_prior_has_no_slope(data):
    X, y = data(20)
    model = ExactGP().fit(X, y)
    prior = Prior(2)
    at = reference(model).fit(X, y)
    # scikit-learn's theta holds logarithms of variances where ours holds those of deviations.
    _, slope = at.log_marginal_likelihood(at.kernel_.theta, eval_gradient=True)
    slope = np.append(slope[1:3], 2 * slope[[0, 3]])
    np.testing.assert_allclose(slope + prior(model.theta_)[1], 0, atol=2e-3)
    np.testing.assert_allclose(
        model.objective_, at.log_marginal_likelihood_value_ + prior(model.theta_)[0], atol=1e-4
    )


def test_exact_closed_form_of_one_point():
    model = ExactGP().fit([[0.5]], [2.0])
    signal, noise = model.signal_std_[0] ** 2, model.noise_std_[0] ** 2
    k = signal * np.exp(-0.5 * (0.3 / model.lengthscale_[0, 0]) ** 2)
    mean, std = model.predict([[0.8]])
    np.testing.assert_allclose(mean, k / (signal + noise) * 2.0, rtol=1e-6)
    np.testing.assert_allclose(std**2, signal + noise - k**2 / (signal + noise), rtol=1e-6)


def test_priors_keep_few_points_doubtful():
    X = np.array([[0.4, 0.5], [0.5, 0.45], [0.6, 0.55]])
    y = np.array([1.0, 1.0, 1.0])
    far = np.array([[0.0, 0.0]])
    assert ExactGP(prior=False).fit(X, y).predict(far)[1] < 0.1
    assert ExactGP().fit(X, y).predict(far)[1] > 0.3


def test_warm_start(data, monkeypatch):
    X, y = data(30)
    cold = ExactGP().fit(X, y)
    calls = []
    import sklearn_asal.surrogates.exact as module

    likelihood = module.exact_likelihood
    monkeypatch.setattr(
        module, "exact_likelihood", lambda *args: calls.append(1) or likelihood(*args)
    )
    ExactGP().fit(X, y)
    n_cold = len(calls)
    warm = ExactGP(warm_start=True).fit(X[:-1], y[:-1])
    calls.clear()
    warm.fit(X, y)
    assert len(calls) < n_cold
    np.testing.assert_allclose(warm.objective_, cold.objective_, atol=1e-5)
    # Other data, of another number of features, simply start anew.
    assert warm.fit(X[:, :1], y).lengthscale_.shape == (1, 1)


def test_sparse_with_all_points_is_exact(data):
    X, y = data(20)
    sparse, exact = SparseGP(n_inducing=20).fit(X, y), ExactGP().fit(X, y)
    test = np.random.default_rng(1).random((30, 2))
    np.testing.assert_allclose(sparse.objective_, exact.objective_, atol=1e-3)
    np.testing.assert_allclose(sparse.predict(test), exact.predict(test), atol=2e-3)


def test_sparse_predicts_by_its_formula(data):
    X, y = data(40)
    model = SparseGP(n_inducing=7).fit(X, y)
    assert model.centres_.shape == (7, 2)
    signal, noise = model.signal_std_[0] ** 2, model.noise_std_[0] ** 2
    Z, test = model.centres_, np.random.default_rng(1).random((9, 2))

    def rbf(A, B):
        return signal * np.exp(
            -0.5 * np.square((A[:, None] - B) / model.lengthscale_[0]).sum(axis=2)
        )

    Kmm = rbf(Z, Z) + 1e-8 * signal * np.eye(7)
    Sigma = np.linalg.inv(Kmm + rbf(Z, X) @ rbf(X, Z) / noise)
    k = rbf(test, Z)
    mean, std = model.predict(test)
    np.testing.assert_allclose(mean, k @ Sigma @ rbf(Z, X) @ y / noise, atol=1e-6)
    inner = np.linalg.inv(Kmm) - Sigma
    np.testing.assert_allclose(std**2, signal + noise - np.diag(k @ inner @ k.T), atol=1e-6)


def test_cluster_centres():
    rng = np.random.default_rng(0)
    true = np.array([[0.1, 0.1], [0.9, 0.2], [0.5, 0.9]])
    X = np.repeat(true, 20, axis=0) + 0.01 * rng.standard_normal((60, 2))
    found = cluster_centres(X, 3)
    groups = X.reshape(3, 20, 2).mean(axis=1)
    np.testing.assert_allclose(found[np.lexsort(found.T)], groups[np.lexsort(groups.T)])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("X", "expected"),
    [
        ([[0.2], [0.7], [0.2], [0.7], [0.7]], [[0.2], [0.7]]),
        ([[0.5, 0.5]] * 30, [[0.5, 0.5]]),
        ([[0.3], [0.3 + 1e-12], [0.9], [0.9 + 1e-15]], [[0.3], [0.9]]),
        ([[1e-99], [2e-99], [2e-99]], [[1e-99], [2e-99]]),
        ([[1e100], [2e100], [2e100 + 1e88]], [[1e100], [2e100]]),
    ],
)
def test_few_distinct_rows_are_the_centres(X, expected):
    found = cluster_centres(np.array(X), 4)
    np.testing.assert_array_equal(found[np.lexsort(found.T)], expected)


@pytest.mark.filterwarnings("error")
@settings(deadline=None)
@given(finite_data(), st.integers(1, 10), st.integers(0, 100))
def test_centres_do_not_depend_on_the_order_of_rows(drawn, n_clusters, seed):
    X, _ = check_data(*drawn)
    found = cluster_centres(X, n_clusters)
    assert found.shape == (min(n_clusters, len(found)), X.shape[1])
    shuffled = np.random.default_rng(seed).permutation(X)
    np.testing.assert_array_equal(cluster_centres(shuffled, n_clusters), found)


def test_rows_count_as_often_as_they_come():
    X = np.array([[0.0], [0.0], [0.0], [0.4], [1.0]])
    found = np.sort(cluster_centres(X, 2)[:, 0])
    np.testing.assert_allclose(found, [0.1, 1.0])


def test_centres_do_not_depend_on_threads():
    code = (
        "import sys, numpy as np; from sklearn_asal.surrogates.sparse import cluster_centres\n"
        "X = np.random.default_rng(0).random((20000, 3))\n"
        "sys.stdout.write(cluster_centres(X, 15).tobytes().hex())"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "OMP_NUM_THREADS": threads},
            capture_output=True,
            check=True,
        ).stdout
        for threads in ("1", "4", "7")
    ]
    assert found[0] == found[1] == found[2] != b""


def test_mixture_has_the_moments_of_its_members(data):
    X, y = data(15)
    model = MixtureGP(n_members=5, n_steps=4).fit(X, y)
    test = np.random.default_rng(1).random((20, 2))
    members = [reference(model, b).fit(X, y).predict(test, return_std=True) for b in range(5)]
    means, stds = np.array(members).transpose(1, 0, 2)
    mean, std = model.predict(test)
    np.testing.assert_allclose(mean, means.mean(axis=0), atol=1e-5)
    second = (means**2 + stds**2).mean(axis=0)
    np.testing.assert_allclose(std, np.sqrt(second - mean**2), atol=1e-5)


def test_mixture_members_differ_and_are_tuned(data):
    X, y = data(15)

    def likelihoods(n_steps):
        model = MixtureGP(n_steps=n_steps, prior=False).fit(X, y)
        return [reference(model, b).fit(X, y).log_marginal_likelihood_value_ for b in range(30)]

    start, tuned = likelihoods(0), likelihoods(30)
    assert len(np.unique(start)) == 30
    assert np.mean(np.array(tuned) > start) == 1
    first, second = (MixtureGP(n_steps=n).fit(X, y).theta_ for n in (0, 1))
    # The first step of Adam has the length of the learning rate, whatever the gradient.
    np.testing.assert_allclose(np.abs(second - first), 0.01, rtol=1e-4)


@every_model
def test_members_make_up_the_mixture(data, model):
    X, y = data(20)
    model = clone(model).fit(X, y)
    test = np.random.default_rng(1).random((9, 2))
    means, stds = model.predict_members(test)
    assert means.shape == stds.shape == (len(model.weights_), 9)
    mean, std = model.predict(test)
    np.testing.assert_allclose(means.mean(axis=0), mean)
    np.testing.assert_allclose((means**2 + stds**2).mean(axis=0), mean**2 + std**2)


@every_model
def test_condition_keeps_hyperparameters(data, model):
    X, y = data(12)
    model = clone(model).fit(X[:10], y[:10])
    theta, before = model.theta_, model.predict(X)
    assert model.condition(X, y) is model
    np.testing.assert_array_equal(model.theta_, theta)
    assert (model.predict(X[10:])[1] < before[1][10:]).all()
    expected = np.array(reference(model).fit(X, y).predict(X, return_std=True))
    if isinstance(model, ExactGP) and not isinstance(model, MixtureGP):
        np.testing.assert_allclose(model.predict(X), expected, atol=1e-5)
    model.condition(X[:10], y[:10])
    np.testing.assert_array_equal(model.predict(X), before)
    with pytest.raises(ValueError, match="X has 1 features"):
        model.condition(X[:, :1], y)
    with pytest.raises(NotFittedError):
        clone(model).condition(X, y)


@every_model
def test_covariance_agrees_with_predictions(data, model):
    X, y = data(20)
    model = clone(model).fit(X, y)
    A = np.random.default_rng(1).random((6, 2))
    covariance = model.covariance(A, A)
    noise = np.mean(model.noise_std_**2)
    np.testing.assert_allclose(np.diag(covariance) + noise, model.predict(A)[1] ** 2, atol=1e-7)
    np.testing.assert_allclose(covariance, covariance.T, atol=1e-10)
    np.testing.assert_allclose(model.covariance(A, A[:2]), covariance[:, :2], atol=1e-10)
    assert np.linalg.eigvalsh(covariance).min() > -1e-7


def test_covariance_is_what_a_further_point_would_change(data):
    X, y = data(20)
    model = ExactGP().fit(X, y)
    x, test = np.array([[0.2, 0.3]]), np.random.default_rng(1).random((5, 2))
    before = model.predict(test)[1] ** 2
    more = reference(model).fit(np.vstack([X, x]), np.append(y, 0.0))
    after = more.predict(test, return_std=True)[1] ** 2
    gain = model.covariance(test, x)[:, 0] ** 2 / model.predict(x)[1] ** 2
    np.testing.assert_allclose(before - after, gain, atol=1e-6)


def test_predictions_are_calibrated():
    rng = np.random.default_rng(0)
    hits = []
    for _ in range(10):
        X = rng.random((40, 2))
        K = np.exp(-0.5 * np.square((X[:, None] - X) / 0.3).sum(axis=2)) + 0.01 * np.eye(40)
        y = multivariate_normal(np.zeros(40), K).rvs(random_state=rng)
        mean, std = ExactGP().fit(X[:25], y[:25]).predict(X[25:])
        hits.append(np.abs(y[25:] - mean) < 1.645 * std)
    assert 0.8 < np.mean(hits) < 0.97


@every_model
def test_many_rows_in_blocks(data, model):
    X, y = data(10)
    model = clone(model).fit(X, y)
    test = np.random.default_rng(1).random((2500, 2))
    parts = [model.predict(test[i : i + 700]) for i in range(0, 2500, 700)]
    np.testing.assert_allclose(model.predict(test), np.hstack(parts), rtol=1e-9, atol=1e-9)


line = np.linspace(0, 1, 12)[:, None]
AWKWARD = {
    "one point": ([[0.5, 0.5]], [0.3]),
    "two points": ([[0.1, 0.5], [0.9, 0.5]], [1.0, -1.0]),
    "the same point, the same value": (np.full((40, 2), 0.5), np.full(40, 0.3)),
    "the same point, other values": (np.full((6, 2), 0.5), np.arange(6.0)),
    "pairs 1e-12 apart": (np.vstack([line, line + 1e-12]), np.sin(np.tile(line[:, 0], 2))),
    "constant": (line, np.full(12, 2.0)),
    "zero": (line, np.zeros(12)),
    "offset 1e6": (line, 1e6 + np.sin(5 * line[:, 0])),
    "scale 1e-9": (line, 1e-9 * np.sin(5 * line[:, 0])),
    "scale 1e9": (line, 1e9 * np.sin(5 * line[:, 0])),
    "scale 1e100": (line, 1e100 * np.sin(5 * line[:, 0])),
    "scale 1e-100": (line, 1e-100 * np.sin(5 * line[:, 0])),
    "inputs far outside": (1e100 * line - 1e99, np.sin(5 * line[:, 0])),
    "straight": (np.linspace(0, 1, 200)[:, None], np.linspace(-1, 1, 200)),
    "one outlier": (line, np.eye(12)[3] * 1e6),
    "noise": (np.tile(line, (1, 7)), np.random.default_rng(0).standard_normal(12)),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("model", [*MODELS, *QUICK], ids=repr)
def test_awkward_data(model, name):
    X, y = map(np.asarray, AWKWARD[name])
    model = clone(model).fit(X, y)
    test = np.vstack([np.random.default_rng(0).random((20, X.shape[1])), X])
    mean, std = model.predict(test)
    assert np.isfinite(mean).all()
    assert (std > 0).all()
    assert np.isfinite(std).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("model", [*MODELS, *QUICK], ids=repr)
@settings(max_examples=60, deadline=None)
@given(finite_data())
def test_any_finite_data(model, drawn):
    X, y = drawn
    model = clone(model).fit(X, y)
    test = np.vstack([np.random.default_rng(0).random((5, X.shape[1])), X])
    for _ in range(2):
        mean, std = model.predict(test)
        assert np.isfinite([mean, std]).all()
        assert (std > 0).all()
        if hasattr(model, "predict_members"):
            assert np.isfinite(model.predict_members(test)).all()
        if hasattr(model, "covariance"):
            assert np.isfinite(model.covariance(test, test)).all()
        more = getattr(model, "condition", model.fit)
        more(np.vstack([X, X[:1]]), np.append(y, y[0]))


@pytest.mark.parametrize("n_features", [1, 2, 3])
@pytest.mark.parametrize("n_distinct", [1, 3, 30])
@pytest.mark.parametrize("value", [0.1 + 0.2, -2.7, 1e-5, 1e5, 1e100, 1e-300, 0.0])
@pytest.mark.parametrize(
    "model", [*MODELS, SparseGP(), SparseGP(prior=False), AmortizedGP()], ids=repr
)
def test_constants_are_predicted(model, value, n_distinct, n_features):
    X = np.random.default_rng(0).random((n_distinct, n_features))[np.arange(30) % n_distinct]
    mean, std = clone(model).fit(X, np.full(30, value)).predict(X)
    np.testing.assert_allclose(mean, value, rtol=0.05, atol=1e-100)
    assert (std > 0).all()


@pytest.mark.parametrize("n", [2000, 20000])
def test_constant_of_many_observations(n):
    X = np.random.default_rng(0).random((n, 2))
    mean, std = SparseGP(max_iter=20).fit(X, np.full(n, 0.1 + 0.2)).predict(X[:50])
    np.testing.assert_allclose(mean, 0.3, rtol=0.01)
    assert (std > 0).all()


@every_model
def test_estimator(data, model):
    X, y = data(10)
    fresh = clone(model)
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    before = X.copy(), y.copy()
    assert fresh.fit(X, y) is fresh
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])
    again = clone(model).fit(X.tolist(), y.tolist())
    np.testing.assert_array_equal(again.predict(X), fresh.predict(X))
    assert fresh.get_params() == model.get_params()
    with pytest.raises(ValueError, match=r"X has 3 features, but .* was fitted on 2"):
        fresh.predict(np.ones((4, 3)))


@every_model
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.1, np.nan]], [0.1], "X contains NaN"),
        ([[0.1, 0.2]], [np.inf], "y contains NaN or infinity"),
        ([0.1, 0.2], [0.1, 0.2], r"X must have 2 dimension\(s\), got shape \(2,\)"),
        ([[0.1], [0.2]], [[0.1], [0.2]], "y must have 1 dimension"),
        ([[0.1], [0.2]], [0.1], "X has 2, y has 1"),
        (np.empty((0, 2)), [], "at least one; X has 0"),
        ([[2e120, 0.2]], [0.1], r"X contains numbers beyond 1e\+120; .* unit cube"),
        ([[0.1, 0.2]], [-1e200], r"y contains numbers beyond 1e\+120; .* unit scale"),
    ],
)
def test_invalid_data(model, X, y, message):
    with pytest.raises(ValueError, match=message):
        clone(model).fit(X, y)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SparseGP(n_inducing=0), "n_inducing == 0, must be >= 1"),
        (MixtureGP(n_members=0), "n_members == 0, must be >= 1"),
        (MixtureGP(n_steps=-1), "n_steps == -1, must be >= 0"),
        (MixtureGP(learning_rate=-1.0), "learning_rate == -1.0, must be >= 0"),
    ],
)
def test_invalid_parameters(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit([[0.5]], [0.1])


def test_names():
    assert SURROGATES == {
        "exact": ExactGP,
        "sparse": SparseGP,
        "mixture": MixtureGP,
        "ensemble": EnsembleGP,
        "amortized": AmortizedGP,
        "pfn": PFNSurrogate,
        "tabpfn": TabPFNSurrogate,
    }
