"""The RBF kernel against scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

from sklearn_asal.surrogates.kernels import rbf, rbf_of_squares, squared_differences


@given(st.integers(1, 8), st.integers(1, 20), st.integers(1, 20), st.integers(0, 10**6))
def test_rbf(n_features, n, k, seed):
    rng = np.random.default_rng(seed)
    A, B = rng.uniform(-1, 2, (n, n_features)), rng.uniform(-1, 2, (k, n_features))
    lengthscale = np.exp(rng.uniform(np.log(0.02), np.log(50), n_features))
    expected = RBF(lengthscale)(A, B)
    np.testing.assert_allclose(rbf(A, B, lengthscale), expected, rtol=1e-9, atol=1e-9)
    squares = squared_differences(A, B)
    np.testing.assert_allclose(rbf_of_squares(squares, lengthscale, n), expected, rtol=1e-9)
    assert (rbf(A, A, lengthscale) <= 1).all()


def test_one_lengthscale_for_all():
    A = np.random.default_rng(0).random((5, 3))
    np.testing.assert_allclose(rbf(A, A, 0.3), RBF(0.3)(A), rtol=1e-12)
    np.testing.assert_allclose(rbf(A, A), RBF(1.0)(A), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_single_precision_stays(dtype):
    A = np.random.default_rng(0).random((5, 3)).astype(dtype)
    assert rbf(A, A).dtype == rbf(A, A, dtype(0.5)).dtype == dtype
    np.testing.assert_allclose(rbf(A, A), RBF(1.0)(A.astype(float)), rtol=1e-5)


def test_squared_differences():
    A, B = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([[1.0, 1.0]])
    np.testing.assert_array_equal(squared_differences(A, B), [[1.0, 1.0], [0.0, 4.0]])
