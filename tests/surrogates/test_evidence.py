"""Evidence and its gradient against scipy's multivariate t, and what must not change it."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import null_space
from scipy.stats import multivariate_t
from sklearn.gaussian_process.kernels import RBF

from sklearn_asal.surrogates.evidence import N_OWN, N_SHARED, Probed, features, unit

# A lengthscale for each pair of noises, in the order of the features.
PROBES = list(itertools.product((0.1, 0.2, 0.4, 0.8, 1.6), (0.03, 0.3)))
both = pytest.mark.parametrize("zero_mean", [False, True])
few = settings(max_examples=15, deadline=None, derandomize=True)


def data(n=9, n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, n_features))
    return X, np.sin(5 * X[:, 0]) + X.sum(axis=1) + 0.1 * rng.standard_normal(n)


def known(X, values, zero_mean):
    return features(Probed(X), values, zero_mean)


def covariance(X, lengthscales, noise):
    return RBF(lengthscales)(X) + noise**2 * np.eye(len(X))


def log_evidence(X, values, lengthscales, noise, zero_mean):
    """But for a constant: priors on the scale are improper, limits of those of t distributions."""
    K, n = covariance(X, lengthscales, noise), len(X)
    if zero_mean:  # an inverse gamma prior on the variance, of shape one
        return multivariate_t(np.zeros(n), 1e-12 * K, df=2).logpdf(values)
    # Of what a constant mean has no part in; with a prior of 1 / variance.
    contrasts = null_space(np.ones((1, n)))
    shape = contrasts.T @ K @ contrasts
    return multivariate_t(np.zeros(n - 1), shape, df=1e-10).logpdf(contrasts.T @ values)


@both
@pytest.mark.parametrize("n_features", [1, 2, 5])
def test_evidence_and_its_gradient(n_features, zero_mean):
    X, values = data(9, n_features)
    own, shared = (np.sinh(part) for part in known(X, values, zero_mean))
    assert own.shape == (n_features, N_OWN)
    assert shared.shape == (N_SHARED,)
    scale = max(np.sqrt(n_features / 2), 1.0)
    step, found = 1e-4, []
    for lengthscale, noise in PROBES:
        at = np.log(np.append(np.full(n_features, scale * lengthscale), noise))

        def value(at):
            return log_evidence(X, values, np.exp(at[:-1]), np.exp(at[-1]), zero_mean)

        slopes = [
            (value(at + move) - value(at - move)) / (2 * step)
            for move in step * np.eye(n_features + 1)
        ]
        found.append((value(at), *slopes))
    found = np.array(found)
    relative = found[:, 0] - found[:, 0].max()
    probability = np.exp(relative) / np.exp(relative).sum()
    np.testing.assert_allclose(3 * shared[:10], relative, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(shared[10:20], probability, atol=1e-6)
    np.testing.assert_allclose(3 * own[:, :10], found[:, 1:-1].T, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(3 * shared[20:30], found[:, -1], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(3 * own[:, -1], probability @ found[:, 1:-1], rtol=1e-4, atol=1e-4)
    assert np.median(np.abs(found[:, 1:])) > 0.05  # most are not zero by chance


@both
def test_what_else_is_known(zero_mean):
    X, values = data()
    own, shared = (np.sinh(part) for part in known(X, values, zero_mean))
    centred = values - (0.0 if zero_mean else values.mean())
    centred = centred / np.sqrt(np.mean(centred**2))
    scale = np.sqrt(1.5)
    for i, (lengthscale, noise) in enumerate(PROBES):
        inverse = np.linalg.inv(covariance(X, scale * lengthscale, noise))
        mean = 0.0 if zero_mean else inverse.sum(axis=0) @ centred / inverse.sum()
        squares = (centred - mean) @ inverse @ (centred - mean)
        np.testing.assert_allclose(shared[30 + i], np.log(squares / 9), rtol=1e-8)
    for i, (lengthscale, _) in enumerate(PROBES[::2]):
        kernel = RBF(scale * lengthscale)(X)
        for feature in range(3):
            apart = np.square(np.subtract.outer(X[:, feature], X[:, feature]))
            expected = (kernel * apart).sum() / (9 * (scale * lengthscale) ** 2)
            np.testing.assert_allclose(own[feature, 10 + i], expected, rtol=1e-8)
    np.testing.assert_allclose(own[:, 15], X.std(axis=0), rtol=1e-12)
    np.testing.assert_allclose(shared[40:], [np.log(9), np.log(3), zero_mean], rtol=1e-12)


@few
@given(
    seed=st.integers(0, 999),
    n=st.integers(2, 20),
    n_features=st.integers(1, 10),
    zero_mean=st.booleans(),
)
def test_neither_order_matters(seed, n, n_features, zero_mean):
    X, values = data(n, n_features, seed)
    own, shared = known(X, values, zero_mean)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(n), rng.permutation(n_features)
    found = known(X[rows], values[rows], zero_mean)
    np.testing.assert_allclose(found[0], own, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(found[1], shared, rtol=1e-7, atol=1e-7)
    found = known(X[:, columns], values, zero_mean)
    np.testing.assert_allclose(found[0], own[columns], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(found[1], shared, rtol=1e-7, atol=1e-7)


@few
@given(
    factor=st.floats(1e-6, 1e6),
    shift=st.floats(-1e3, 1e3),
    sign=st.sampled_from([-1.0, 1.0]),
    zero_mean=st.booleans(),
)
def test_units_of_the_values_do_not_matter(factor, shift, sign, zero_mean):
    X, values = data()
    shift = 0.0 if zero_mean else shift
    found = known(X, sign * factor * (values + shift), zero_mean)
    for one, other in zip(found, known(X, values, zero_mean), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@both
@pytest.mark.parametrize("n", [1, 2, 7])
def test_a_batch_is_a_loop(n, zero_mean):
    sets = [data(n, 3, seed) for seed in range(4)]
    own, shared = known(*(np.stack(part) for part in zip(*sets, strict=True)), zero_mean)
    for i, (X, values) in enumerate(sets):
        one = known(X, values, zero_mean)
        np.testing.assert_allclose(own[i], one[0], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(shared[i], one[1], rtol=1e-8, atol=1e-8)


@both
@pytest.mark.parametrize("more", [0, 1, 4, 5])
def test_more_rows(more, zero_mean):
    X, values = data(8 + more)
    found = Probed(X[:8]).of(X)
    for one, other in zip(
        features(found, values, zero_mean), known(X, values, zero_mean), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("other", ["fewer", "changed", "features"])
def test_other_rows(other):
    X, values = data(8)
    changed = {"fewer": X[:6], "changed": np.vstack([X[:7], X[:1]]), "features": X[:, :2]}[other]
    found = features(Probed(X).of(changed), values[: len(changed)], False)
    for one, expected in zip(found, known(changed, values[: len(changed)], False), strict=True):
        np.testing.assert_array_equal(one, expected)


@pytest.mark.filterwarnings("error")
@both
@pytest.mark.parametrize("n", [1, 2, 9])
@pytest.mark.parametrize("value", [0.0, 1.0, -1e-300, 1e100, 0.1 + 0.2])
def test_constant_values(n, value, zero_mean):
    X, _ = data()
    with np.errstate(all="raise", under="ignore"):
        for part in known(X[:n], np.full(n, value), zero_mean):
            assert np.isfinite(part).all()


@pytest.mark.filterwarnings("error")
@both
def test_repeated_inputs(zero_mean):
    X, values = data(30)
    for part in known(np.repeat(X[:3], 10, axis=0), values, zero_mean):
        assert np.isfinite(part).all()
    for part in known(np.repeat(X[:1], 30, axis=0), values, zero_mean):
        assert np.isfinite(part).all()


def test_units_of_length():
    """The distance of two random points grows with the number of features."""
    assert unit(1) == unit(2) == 1.0
    rng = np.random.default_rng(0)
    for n_features in (3, 8):
        apart = np.square(rng.random((20000, n_features)) - rng.random((20000, n_features)))
        expected = np.sqrt(apart.sum(axis=1).mean() / (2 / 6))
        assert unit(n_features) == pytest.approx(expected, rel=0.02)
