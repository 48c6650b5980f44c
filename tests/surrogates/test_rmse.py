"""Errors against samples of the posterior, drawn from kernels by the textbook."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_asal.surrogates import AmortizedGP
from sklearn_asal.surrogates.rmse import RootMeanSquareError, noise_std


def observed(n=15, n_features=2, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, n_features))
    return X, np.sin(5 * X[:, 0]) + X[:, -1] + noise * rng.standard_normal(n)


def rbf(A, B, lengthscales):
    return np.exp(-0.5 * np.square((A[:, None] - B) / lengthscales).sum(axis=-1))


def sampled(model, y, points, pending=(), n=4000, seed=0):
    """Root mean square errors of functions drawn from the posterior of every member."""
    rng, X = np.random.default_rng(seed), model.X_
    everything = np.vstack([X, *pending])
    mean = model.predict(points)[0]
    weights = np.sqrt(model.member_weights_)
    found, dof = [], len(X) - 1.0
    counts = rng.multinomial(n, weights / weights.sum())
    hyperparameters = zip(model.lengthscales_, model.noises_, counts, strict=True)
    for lengthscales, noise, count in hyperparameters:
        K = rbf(X, X, lengthscales) + noise**2 * np.eye(len(X))
        ones = np.linalg.solve(K, np.ones(len(X)))
        location = ones @ y / ones.sum()
        weighted = np.linalg.solve(K, y - location)
        scale = np.sqrt((y - location) @ weighted / dof)
        located = location + rbf(points, X, lengthscales) @ weighted
        K = rbf(everything, everything, lengthscales) + noise**2 * np.eye(len(everything))
        k, ones = rbf(everything, points, lengthscales), np.linalg.solve(K, np.ones(len(K)))
        across = 1 - ones @ k
        C = rbf(points, points, lengthscales) - k.T @ np.linalg.solve(K, k)
        C += np.multiply.outer(across, across) / ones.sum()
        root = np.linalg.cholesky(C + 1e-9 * np.eye(len(C)))
        more = dof + len(pending)
        scales = scale * np.sqrt(more / rng.chisquare(more, (count, 1)))
        functions = located + scales * (rng.standard_normal((count, len(points))) @ root.T)
        found.append(np.sqrt(np.square(functions - mean).mean(axis=1)))
    return np.concatenate(found)


@pytest.mark.parametrize(("n", "n_features"), [(6, 1), (15, 2), (30, 3)])
def test_quantiles_against_samples(n, n_features):
    X, y = observed(n, n_features)
    model = AmortizedGP().fit(X, y)
    points = np.random.default_rng(1).random((60, n_features))
    q = [0.25, 0.5, 0.85]
    found = RootMeanSquareError(model, points).quantiles(q)
    assert found == pytest.approx(np.quantile(sampled(model, y, points), q), rel=0.08)


def test_variance_of_pending_points_against_samples():
    X, y = observed(12)
    model = AmortizedGP(n_sets=1).fit(X, y)  # one member, which agrees with itself
    points, pending = np.random.default_rng(1).random((2, 60, 2))
    error = RootMeanSquareError(model, points)
    found = error.quantiles_after(pending[:3], [0.5])
    expected = np.median(sampled(model, y, points, pending[:3]))
    assert found == pytest.approx([expected], rel=0.05)
    assert found < error.quantiles([0.5])


def test_what_is_pending_changes_nothing_for_good():
    X, y = observed()
    model, points = AmortizedGP().fit(X, y), np.random.default_rng(1).random((40, 2))
    error = RootMeanSquareError(model, points)
    before = error.quantiles([0.3, 0.7])
    error.quantiles_after(points[:2], [0.5])
    assert (error.quantiles([0.3, 0.7]) == before).all()
    assert (RootMeanSquareError(model.update(X, y), points).quantiles([0.3, 0.7]) == before).all()


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(0, 99))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_units_and_order(loc, scale, seed):
    X, y = observed(10, seed=seed)
    points = np.random.default_rng(seed).random((20, 2))
    first = AmortizedGP().fit(X, y)
    order = np.random.default_rng(seed).permutation(len(X))
    loc *= scale  # or the values would be lost in rounding
    second = AmortizedGP().fit(X[order], loc * 1e-3 + scale * y[order])
    expected = RootMeanSquareError(first, points).quantiles([0.5, 0.9])
    found = RootMeanSquareError(second, points[::-1]).quantiles([0.5, 0.9])
    assert found == pytest.approx(scale * expected, rel=1e-3)
    assert noise_std(second) == pytest.approx(scale * noise_std(first), rel=1e-3)


def test_noise():
    X, y = observed(60, noise=0.2)
    assert noise_std(AmortizedGP().fit(X, y)) == pytest.approx(0.2, rel=0.2)


@pytest.mark.parametrize("y", [[1.0], [2.0, 2.0, 2.0]])
def test_nothing_is_known_of_the_scale(y):
    model = AmortizedGP().fit(np.linspace(0, 1, len(y))[:, None], y)
    error = RootMeanSquareError(model, np.array([[0.3], [0.9]]))
    assert np.isinf(error.quantiles([0.1, 0.5])).all()
    assert np.isinf(error.quantiles_after(np.array([[0.5]]), [0.5])).all()
    assert np.isnan(noise_std(model))
