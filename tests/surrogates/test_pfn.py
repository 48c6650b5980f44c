"""The prior-data fitted network as a surrogate."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from sklearn_asal import AmortizedQuerier, GPQuerier, GPSafeQuerier
from sklearn_asal.acquisition import predicted_entropy, probability_of_feasibility
from sklearn_asal.exceptions import PolicyFileError, PolicyNotFoundError
from sklearn_asal.policies.registry import load_inference, load_pfn, locate, locate_pfn
from sklearn_asal.surrogates import PFNSurrogate

few = settings(max_examples=25, deadline=None, derandomize=True)


def test_close_to_the_exact_posterior():
    """On average over functions it comes close to the best log density there is."""
    rng, kernel = np.random.default_rng(0), RBF(0.3) + WhiteKernel(0.1**2)
    for n_features, n in ((1, 12), (2, 40)):
        errors, losses = [], []
        for seed in range(8):
            X = rng.random((n + 100, n_features))
            y = GaussianProcessRegressor(kernel).sample_y(X, random_state=seed)[:, 0]
            exact = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X[:n], y[:n])
            mean, std = PFNSurrogate().fit(X[:n], y[:n]).predict(X[n:])
            true_mean, true_std = exact.predict(X[n:], return_std=True)
            errors.append(np.sqrt(np.mean((mean - true_mean) ** 2)))
            best = norm.logpdf(y[n:], true_mean, true_std)
            losses.append(np.mean(best - norm.logpdf(y[n:], mean, std)))
        assert np.mean(errors) < 0.2
        assert np.mean(losses) < 0.3


def test_near_data_these_and_far_from_them_the_prior(data):
    X, y = data(30, 2)
    model = PFNSurrogate().fit(0.2 * X, 0.0 * y + 1.0)
    mean, std = model.predict([[0.1, 0.1], [1.0, 1.0]])
    assert abs(mean[0] - 1.0) < 0.15
    assert abs(mean[1]) < abs(mean[0])
    assert std[0] < 0.4
    assert 2 * std[0] < std[1]


@few
@given(n_features=st.integers(1, 8), n=st.integers(1, 20), seed=st.integers(0, 999))
def test_order_of_rows_and_features_is_of_no_consequence(n_features, n, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.random((n, n_features)), rng.standard_normal(n)
    test = rng.random((20, n_features))
    expected = PFNSurrogate().fit(X, y).predict_bars(test)
    rows, features = rng.permutation(n), rng.permutation(n_features)
    found = PFNSurrogate().fit(X[rows][:, features], y[rows]).predict_bars(test[:, features])
    np.testing.assert_allclose(found, expected, atol=1e-5)


DESIGN = np.array([[i, j, k] for i in (0.2, 0.8) for j in (0.2, 0.8) for k in (0.2, 0.8)])


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.array([[0.3, 0.3, 0.3]]), np.ones(1)),
        (np.repeat(np.random.default_rng(0).random((5, 1)), 3, axis=1), np.arange(5.0) - 2),
        (DESIGN, np.zeros(8)),
        (DESIGN, DESIGN.sum(axis=1)),
        (DESIGN, DESIGN[:, 0] * DESIGN[:, 2]),
    ],
    ids=["a point", "the same column", "a constant", "a sum", "a product"],
)
def test_features_that_the_data_do_not_tell_apart(X, y):
    test = np.random.default_rng(1).random((20, 3))
    expected = PFNSurrogate().fit(X, y).predict_bars(test)
    for order in ([1, 2, 0], [2, 1, 0], [0, 2, 1]):
        found = PFNSurrogate().fit(X[:, order], y).predict_bars(test[:, order])
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_answers_are_those_of_the_histogram(data):
    X, y = data(15, 3)
    test = np.random.default_rng(1).random((5000, 3))
    model = PFNSurrogate().fit(X, y)
    p, bars = model.predict_bars(test), model.bars_
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    mean, std = model.predict(test)
    np.testing.assert_array_equal(mean, bars.mean(p))
    np.testing.assert_array_equal(std**2, np.sqrt(bars.variance(p)) ** 2)
    np.testing.assert_array_equal(predicted_entropy(model, test), bars.entropy(p))
    p_safe = probability_of_feasibility([model], test)
    np.testing.assert_allclose(p_safe, 1 - bars.cdf(p, 0.0), atol=1e-6)
    # Each point is predicted by itself.
    np.testing.assert_allclose(model.predict_bars(test[-3:]), p[-3:], atol=1e-6)


def test_entropy_decides(data):
    X, y = data(10, 2)
    pool = np.random.default_rng(1).random((200, 2))
    querier = GPQuerier(surrogate="pfn", random_state=0)
    _, row = querier.query(X, y, pool=pool, return_indices=True)
    in_order = np.lexsort(X.T[::-1])
    model = PFNSurrogate().fit(X[in_order], y[in_order])
    assert row[0] == model.entropy(pool).argmax()
    safe = GPSafeQuerier(surrogate="pfn", gamma=0.3, random_state=0)
    _, row = safe.query(X, y, y + 1, pool=pool, return_indices=True)
    margin = PFNSurrogate().fit(X, y + 1)
    eligible = margin.probability_of_positive(pool) >= 0.7
    assert 0 < eligible.sum() < 200
    assert row[0] == np.where(eligible, model.entropy(pool), -np.inf).argmax()


def test_copies(data):
    X, y = data(10)
    model = PFNSurrogate().fit(X, y)
    same = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    with pytest.raises(NotFittedError):
        PFNSurrogate().predict(X)


def test_what_it_cannot_do(data, tmp_path):
    X, y = data(10, 9)
    with pytest.raises(ValueError, match="X has 9 features, and the network 'pfn' takes at most 8"):
        PFNSurrogate().fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features, but PFNSurrogate was fitted on 2"):
        PFNSurrogate().fit(X[:, :2], y).predict(X[:, :3])
    with pytest.raises(ValueError, match=r"covariance.* lacks; .*'ensemble', 'amortized'\.$"):
        GPQuerier(surrogate="pfn", acquisition="variance_reduction").query(X[:, :2], y)
    with pytest.raises(PolicyNotFoundError, match="neither 'pfn' nor a file"):
        PFNSurrogate("2d").fit(X[:, :2], y)
    with pytest.raises(PolicyNotFoundError, match="is a folder"):
        PFNSurrogate(tmp_path).fit(X[:, :2], y)


def test_it_is_no_policy(data):
    X, y = data(5)
    path = locate_pfn("pfn")
    assert path == locate_pfn(path)
    with pytest.raises(PolicyFileError, match="proposes nothing by itself"):
        AmortizedQuerier(path).query(X, y)
    with pytest.raises(PolicyFileError, match="infers no hyperparameters"):
        load_inference(path)
    with pytest.raises(PolicyFileError, match="holds a policy and no prior-data fitted network"):
        load_pfn(locate("2d", safe=False))
