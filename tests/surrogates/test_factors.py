"""Inverse factors against NumPy, and what grows against what is made at once."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from sklearn_asal.surrogates.factors import (
    InverseFactors,
    ReferenceSet,
    inverse_factors,
    rbf_of_members,
)

X = np.random.default_rng(0).random((12, 3))
LENGTHSCALES = np.array([[0.3, 0.3, 0.3], [0.2, 0.5, 1.5]])
NOISES = np.array([0.05, 0.2, 0.1])
WHICH = np.array([1, 0, 1])
SETS = {
    "one each": (LENGTHSCALES, NOISES[:2], np.array([0, 1])),
    "shared": (LENGTHSCALES, NOISES, WHICH),
}


def kernel(A, B, member):
    return RBF(LENGTHSCALES[WHICH[member]])(A, B)


@pytest.mark.parametrize("hyperparameters", SETS.values(), ids=SETS)
def test_factors_that_grow_are_those_made_anew(hyperparameters):
    factors = InverseFactors(X[:3], *hyperparameters)
    for n in (4, 5, 8, 12, 6):
        factors = factors.of(X[:n])
        expected = InverseFactors(X[:n], *hyperparameters)
        for name in ("inverse", "log_determinant"):
            np.testing.assert_allclose(
                getattr(factors, name), getattr(expected, name), rtol=1e-9, atol=1e-9
            )


def test_they_are_inverse_cholesky_factors():
    factors = InverseFactors(X, LENGTHSCALES, NOISES, WHICH)
    for i, noise in enumerate(NOISES):
        L = np.linalg.cholesky(kernel(X, X, i) + noise**2 * np.eye(12))
        np.testing.assert_allclose(factors.inverse[i] @ L, np.eye(12), atol=1e-9)
        np.testing.assert_allclose(factors.log_determinant[i], -np.log(np.diag(L)).sum())


@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-9), (np.float32, 1e-4)])
def test_whitened_covariances(dtype, atol):
    factors, points = InverseFactors(X, LENGTHSCALES, NOISES, WHICH), X[:5] + 0.03
    found = factors.whitened(points, np.array([2, 1]), dtype)
    assert found.dtype == dtype
    for V, member in zip(found, (2, 1), strict=True):
        expected = factors.inverse[member] @ kernel(X, points, member)
        np.testing.assert_allclose(V, expected, rtol=0, atol=atol)


def test_hyperparameters_are_compared():
    factors = InverseFactors(X, LENGTHSCALES, NOISES, WHICH)
    assert factors.has(LENGTHSCALES.copy(), NOISES.copy(), WHICH.copy())
    assert not factors.has(2 * LENGTHSCALES, NOISES, WHICH)
    assert not factors.has(LENGTHSCALES, 2 * NOISES, WHICH)
    assert not factors.has(LENGTHSCALES, NOISES, 1 - WHICH)


def test_some_of_the_members():
    factors = InverseFactors(X[:9], LENGTHSCALES, NOISES, WHICH)
    few = factors.subset(np.array([2, 1]))
    expected = InverseFactors(X[:9], LENGTHSCALES[WHICH[[2, 1]]], NOISES[[2, 1]], np.arange(2))
    assert few.has(expected.lengthscales, expected.noises, expected.which)
    for found, other in ((few, expected), (few.of(X), expected.of(X))):
        np.testing.assert_array_equal(found.X, other.X)
        np.testing.assert_allclose(found.inverse, other.inverse, rtol=1e-12)
        np.testing.assert_allclose(found.log_determinant, other.log_determinant, rtol=1e-12)


def test_many_kernels_at_once():
    kernels = np.array([[kernel(rows, rows, i) for i in range(3)] for rows in (X[:5], X[5:10])])
    found = inverse_factors(kernels, NOISES)
    assert found.shape == (2, 3, 5, 5)
    for b in range(2):
        for i, noise in enumerate(NOISES):
            L = np.linalg.cholesky(kernels[b, i] + noise**2 * np.eye(5))
            np.testing.assert_allclose(found[b, i] @ L, np.eye(5), atol=1e-9)


def test_kernels_of_members_in_single_precision():
    points, lengthscales = np.vstack([X[:5] + 0.01, X[:2]]), LENGTHSCALES[WHICH]
    found = rbf_of_members(X, points, lengthscales)
    assert found.dtype == np.float32
    assert found.shape == (3, 12, 7)
    assert found.max() <= 1.0
    for i in range(3):
        np.testing.assert_allclose(found[i], kernel(X, points, i), rtol=1e-4, atol=1e-6)


def test_a_reference_set_follows_the_inputs():
    """More of them, fewer, others, and members in turn."""
    points = np.random.default_rng(1).random((7, 3))
    reference = ReferenceSet(points)
    for rows in (X[:3], X[:4], X[:12], X[:5], X[3:9], X[:6]):
        factors = InverseFactors(rows, LENGTHSCALES, NOISES, WHICH)
        for member in (0, 2, 1):
            expected = factors.inverse[member] @ kernel(rows, points, member)
            found = reference.whitened(factors, member)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
    assert reference.is_of(points.copy())
    assert not reference.is_of(points[:3])
