"""Likelihoods against dense formulas, gradients against differences."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from sklearn_asal.surrogates.kernels import squared_differences
from sklearn_asal.surrogates.likelihood import (
    JITTER,
    Prior,
    cholesky,
    covariance,
    exact_likelihood,
    inverse_cholesky,
    maximise,
    sparse_bound,
    with_prior,
)

THETA = np.log([0.3, 0.6, 0.8, 0.15])


def rbf(A, B, theta=THETA):
    scaled = (A[:, None] - B) / np.exp(theta[:-2])
    return np.exp(2 * theta[-2]) * np.exp(-0.5 * np.square(scaled).sum(axis=2))


def differences(function, theta, step=1e-5):
    return np.array(
        [
            (function(theta + step * unit)[0] - function(theta - step * unit)[0]) / (2 * step)
            for unit in np.eye(len(theta))
        ]
    )


@pytest.mark.parametrize("n", [1, 2, 25])
def test_exact_likelihood(data, n):
    X, y = data(n)
    squares = squared_differences(X, X)
    value, gradient = exact_likelihood(THETA, squares, y)
    np.testing.assert_allclose(covariance(THETA, squares, n), rbf(X, X), rtol=1e-12)
    signal, noise = np.exp(2 * THETA[-2:])
    K = rbf(X, X) + (noise + JITTER * signal) * np.eye(n)
    np.testing.assert_allclose(value, multivariate_normal(np.zeros(n), K).logpdf(y), rtol=1e-10)
    numeric = differences(lambda theta: exact_likelihood(theta, squares, y), THETA)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("n", "m"), [(25, 6), (25, 25), (3, 2), (2, 1)])
def test_sparse_bound(data, n, m):
    X, y = data(n)
    Z = X[:m] + 0.01
    arguments = squared_differences(Z, Z), squared_differences(Z, X), y
    value, gradient = sparse_bound(THETA, *arguments)
    signal, noise = np.exp(2 * THETA[-2:])
    noise += JITTER * signal
    Q = rbf(X, Z) @ np.linalg.solve(rbf(Z, Z) + JITTER * signal * np.eye(m), rbf(Z, X))
    expected = multivariate_normal(np.zeros(n), Q + noise * np.eye(n)).logpdf(y)
    expected -= (n * signal - np.trace(Q)) / (2 * noise)
    np.testing.assert_allclose(value, expected, rtol=1e-8)
    numeric = differences(lambda theta: sparse_bound(theta, *arguments), THETA)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-4)
    squares = squared_differences(X, X)
    assert value < exact_likelihood(THETA, squares, y)[0]


@pytest.mark.parametrize("n_features", [1, 2, 7])
def test_prior(n_features):
    prior = Prior(n_features)
    theta = prior.mean + np.linspace(-1, 2, n_features + 2)
    np.testing.assert_allclose(prior(theta)[1], differences(prior, theta), rtol=1e-6, atol=1e-9)
    assert prior(prior.mean)[0] == 0 > prior(theta)[0]
    # Distances of random points grow with the root of the number of features.
    np.testing.assert_allclose(np.exp(prior.mean[0]), 0.3 * np.sqrt(n_features / 2))


def test_with_prior(data):
    X, y = data()
    squares, prior = squared_differences(X, X), Prior(2)

    def likelihood(theta):
        return exact_likelihood(theta, squares, y)

    assert with_prior(likelihood, None) is likelihood
    value, gradient = with_prior(likelihood, prior)(THETA)
    np.testing.assert_allclose(value, likelihood(THETA)[0] + prior(THETA)[0])
    np.testing.assert_allclose(gradient, likelihood(THETA)[1] + prior(THETA)[1])


def test_cholesky(data):
    X, _ = data()
    K = rbf(X, X)
    L = cholesky(K, 0.01)
    np.testing.assert_allclose(L, np.linalg.cholesky(K + 0.01 * np.eye(len(K))), atol=1e-12)
    np.testing.assert_allclose(inverse_cholesky(L) @ L, np.eye(len(K)), atol=1e-10)
    np.testing.assert_array_equal(K, rbf(X, X))
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        cholesky(-K, 0.0)


def test_maximise_finds_the_top_and_keeps_to_the_box():
    top = np.log([0.2, 0.7, 1.5, 0.3])

    def hill(theta):
        return -np.square(theta - top).sum(), -2 * (theta - top)

    y = np.array([1.0, -1.0])
    theta, value = maximise(hill, 2, y)
    np.testing.assert_allclose(theta, top, atol=1e-4)
    assert -1e-8 < value <= 0
    theta, _ = maximise(lambda theta: (theta.sum(), np.ones(4)), 2, y)
    np.testing.assert_allclose(np.exp(theta), [50, 50, 1e3, 10])
    theta, _ = maximise(lambda theta: (-theta.sum(), -np.ones(4)), 2, 1e3 * y)
    np.testing.assert_allclose(np.exp(theta), [0.02, 0.02, 1e-3, 1e-4])


def test_restarts_never_do_worse(data):
    X, y = data(8, seed=3)
    squares = squared_differences(X, X)
    values = [
        maximise(lambda theta: exact_likelihood(theta, squares, y), 2, y, n_restarts=k)[1]
        for k in (0, 3)
    ]
    assert values[1] >= values[0]
