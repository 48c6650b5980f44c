"""The RBF kernel, from inputs or from their squared differences."""

import numpy as np
from scipy.spatial.distance import cdist


def rbf(A, B, lengthscale=1.0):
    """RBF kernel of unit variance at all pairs of rows.

    Parameters
    ----------
    A : ndarray of shape (n, n_features)
    B : ndarray of shape (k, n_features)
    lengthscale : float or ndarray of shape (n_features,), default=1.0

    Returns
    -------
    kernel : ndarray of shape (n, k)
        Of the type of the inputs, float32 or float64.
    """
    A, B = A / lengthscale, B / lengthscale
    if A.dtype != np.float32:
        kernel = cdist(A, B, "sqeuclidean")
        kernel *= -0.5
        return np.exp(kernel, out=kernel)
    # cdist knows no single precision: minus half the squared distance as one product. Measured
    # from the middle of the cube its terms cancel least.
    A, B = (part - np.float32(0.5) / lengthscale for part in (A, B))
    of_A, of_B = (-0.5 * np.einsum("ij,ij->i", part, part)[:, None] for part in (A, B))
    left = np.hstack([A, of_A, np.ones_like(of_A)])
    right = np.hstack([B, np.ones_like(of_B), of_B])
    kernel = left @ right.T
    np.minimum(kernel, 0.0, out=kernel)
    return np.exp(kernel, out=kernel)


def squared_differences(A, B):
    """Squared differences of all pairs of rows by feature.

    Parameters
    ----------
    A : ndarray of shape (n, n_features)
    B : ndarray of shape (k, n_features)

    Returns
    -------
    squares : ndarray of shape (n_features, n * k)
    """
    return np.square(A.T[:, :, None] - B.T[:, None, :]).reshape(A.shape[1], -1)


def rbf_of_squares(squares, lengthscale, n):
    """RBF kernel of unit variance from squared differences, which a search computes once.

    Parameters
    ----------
    squares : ndarray of shape (n_features, n * k)
        From :func:`squared_differences`.
    lengthscale : ndarray of shape (..., n_features)
    n : int
        Number of rows.

    Returns
    -------
    kernel : ndarray of shape (..., n, k)
    """
    kernel = (-0.5 / np.square(lengthscale)) @ squares
    return np.exp(kernel, out=kernel).reshape(*lengthscale.shape[:-1], n, -1)
