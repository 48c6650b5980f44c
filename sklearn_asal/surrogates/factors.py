"""Inverse Cholesky factors for several fixed hyperparameters, extended row by row."""

import copy

import numpy as np
from scipy.linalg.lapack import dtrtri

from .kernels import rbf, rbf_of_squares, squared_differences

# Rows that are quicker added to the factors than all of them made anew.
_FEW = 4
# What lies farther away is as far in single precision.
_FAR = 1e6
# Kernels of so many lengthscales are quicker made together.
_MANY = 8


class InverseFactors:
    """Of covariances of one list of inputs, for members with fixed hyperparameters.

    Members have unit signal variance.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        Inputs of the unit cube.
    lengthscales : ndarray of shape (n_lengthscales, n_features)
    noises : ndarray of shape (n_members,)
        Standard deviation of each member's noise.
    which : ndarray of int of shape (n_members,)
        Which of the lengthscales each member has.

    Attributes
    ----------
    inverse : ndarray of shape (n_members, n, n)
        Lower triangular.
    log_determinant : ndarray of shape (n_members,)
        Of the inverse factors.
    """

    def __init__(self, X, lengthscales, noises, which):
        self.X, self.lengthscales, self.noises, self.which = X.copy(), lengthscales, noises, which
        self.inverse = inverse_factors(self._kernels(X, X)[which], noises)
        self.log_determinant = np.log(np.diagonal(self.inverse, axis1=1, axis2=2)).sum(axis=1)

    def has(self, lengthscales, noises, which):
        """Whether they are of these hyperparameters.

        Parameters
        ----------
        lengthscales : ndarray of shape (n_lengthscales, n_features)
        noises : ndarray of shape (n_members,)
        which : ndarray of int of shape (n_members,)

        Returns
        -------
        bool
        """
        own = self.lengthscales, self.noises, self.which
        return all(map(np.array_equal, own, (lengthscales, noises, which)))

    def of(self, X):
        """Those of other inputs; quick where they begin with these, and few are new.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)

        Returns
        -------
        InverseFactors
        """
        return grown(self, X) or InverseFactors(X, self.lengthscales, self.noises, self.which)

    def with_row(self, X):
        """With one more row (block inversion).

        Parameters
        ----------
        X : ndarray of shape (n + 1, n_features)

        Returns
        -------
        InverseFactors
        """
        n = len(X) - 1
        V = self.inverse @ self._kernels(X[:n], X[n:])[self.which]
        pivot = np.sqrt(1 + self.noises**2 - (V**2).sum(axis=(1, 2)))
        extended = copy.copy(self)
        extended.X = X.copy()
        extended.inverse = np.zeros((len(pivot), n + 1, n + 1))
        extended.inverse[:, :n, :n] = self.inverse
        extended.inverse[:, n, :n] = -(V.transpose(0, 2, 1) @ self.inverse)[:, 0] / pivot[:, None]
        extended.inverse[:, n, n] = 1 / pivot
        extended.log_determinant = self.log_determinant - np.log(pivot)
        return extended

    def subset(self, members):
        """Those of some members.

        Parameters
        ----------
        members : ndarray of int of shape (k,)

        Returns
        -------
        InverseFactors
        """
        found = copy.copy(self)
        found.lengthscales = self.lengthscales[self.which[members]]
        found.which, found.noises = np.arange(len(members)), self.noises[members]
        found.inverse = self.inverse[members]
        found.log_determinant = self.log_determinant[members]
        return found

    def lengthscale(self, member):
        """Lengthscales of a member.

        Parameters
        ----------
        member : int

        Returns
        -------
        ndarray of shape (n_features,)
        """
        return self.lengthscales[self.which[member]]

    def whitened(self, X, members, dtype):
        """Covariances of some members with points, multiplied with the inverse factors.

        Parameters
        ----------
        X : ndarray of shape (m, n_features)
        members : ndarray of int of shape (k,)
        dtype : dtype
            Single precision is twice as fast.

        Returns
        -------
        ndarray of shape (k, n, m)
        """
        A, B, scales = (part.astype(dtype, copy=False) for part in (self.X, X, self.lengthscales))
        which = self.which[members]
        kernels = {i: rbf(A, B, scales[i]) for i in np.unique(which).tolist()}
        inverse = self.inverse[members].astype(dtype, copy=False)
        return inverse @ np.stack([kernels[i] for i in which.tolist()])

    def _kernels(self, A, B):
        """Of each lengthscale, ``(n_lengthscales, len(A), len(B))``."""
        if len(self.lengthscales) < _MANY:
            return np.stack([rbf(A, B, scale) for scale in self.lengthscales])
        return rbf_of_squares(squared_differences(A, B), self.lengthscales, len(A))


def grown(known, X):
    """What is known of some inputs, extended row by row where that is quick.

    Parameters
    ----------
    known : object
        With an attribute ``X`` and a method ``with_row``.
    X : ndarray of shape (n, n_features)

    Returns
    -------
    object or None
        None where these inputs do not begin with those, or too many are new.
    """
    n = len(known.X)
    if not 0 <= len(X) - n <= _FEW or not np.array_equal(X[:n], known.X):
        return None
    for end in range(n + 1, len(X) + 1):
        known = known.with_row(X[:end])
    return known


def inverse_factors(kernels, noises):
    """Inverse Cholesky factors of kernels with noise.

    Parameters
    ----------
    kernels : ndarray of shape (..., k, n, n)
    noises : ndarray of shape (k,)
        Standard deviations.

    Returns
    -------
    ndarray of shape (..., k, n, n)
        Lower triangular.
    """
    n = kernels.shape[-1]
    factors = np.linalg.cholesky(kernels + (noises**2)[:, None, None] * np.eye(n))
    # Three times as fast as a general inverse.
    inverse = [dtrtri(L, lower=True)[0] for L in factors.reshape(-1, n, n)]
    return np.stack(inverse).reshape(factors.shape)


class ReferenceSet:
    """Whitened covariances of a fixed set of points with observations, for one member each.

    Inverse factors are triangular, so that what is known of an observation stays as it was.

    Parameters
    ----------
    points : ndarray of shape (r, n_features)
    """

    def __init__(self, points):
        self.points = points
        self._of_member = {}

    def is_of(self, points):
        """Whether it is about these points.

        Parameters
        ----------
        points : ndarray of shape (r, n_features)

        Returns
        -------
        bool
        """
        return self.points is points or np.array_equal(self.points, points)

    def whitened(self, factors, member):
        """Covariances with the inputs of some factors.

        Parameters
        ----------
        factors : InverseFactors
            Leading rows that are known are taken over.
        member : int

        Returns
        -------
        ndarray of float32 of shape (n, r)
            A later call may overwrite it.
        """
        X, n = factors.X, len(factors.X)
        known_X, covariance, whitened = self._of_member.get(member, (X[:0], None, None))
        shared = min(len(known_X), n)
        same = (known_X[:shared] == X[:shared]).all(axis=1)
        shared = shared if same.all() else int(same.argmin())
        if shared < n:
            if whitened is None or len(whitened) < n:
                covariance = self._grown(covariance, 2 * n, shared)
                whitened = self._grown(whitened, 2 * n, shared)
            covariance[shared:n] = rbf_single(X[shared:], self.points, factors.lengthscale(member))
            new = factors.inverse[member, shared:].astype(np.float32)
            whitened[shared:n] = new @ covariance[:n]
            self._of_member[member] = X, covariance, whitened
        return whitened[:n]

    def _grown(self, rows, capacity, n):
        """Room for more rows; the first ``n`` are kept."""
        grown = np.empty((capacity, len(self.points)), np.float32)
        if n:
            grown[:n] = rows[:n]
        return grown


def rbf_of_members(A, B, lengthscales):
    """RBF kernels of several lengthscales, in single precision and in one call.

    Parameters
    ----------
    A : ndarray of shape (n, n_features)
    B : ndarray of shape (m, n_features)
    lengthscales : ndarray of shape (k, n_features)

    Returns
    -------
    ndarray of float32 of shape (k, n, m)
    """
    # Minus half the squared distance as one product; from the middle of the cube its terms
    # cancel least.
    A, B = (np.minimum(np.maximum(part - 0.5, -_FAR), _FAR) for part in (A, B))
    A, B, inverse = (part.astype(np.float32) for part in (A, B, 1 / lengthscales))
    k, n_features = inverse.shape
    left = np.ones((k, len(A), n_features + 2), np.float32)
    right = np.ones((k, n_features + 2, len(B)), np.float32)
    np.multiply(A, inverse[:, None], out=left[:, :, :n_features])
    np.multiply(B.T, inverse[:, :, None], out=right[:, :n_features])
    squares = -0.5 * np.square(inverse)
    left[:, :, n_features] = squares @ np.square(A).T
    right[:, n_features + 1] = squares @ np.square(B).T
    kernel = left @ right
    np.minimum(kernel, 0.0, out=kernel)
    return np.exp(kernel, out=kernel)


def rbf_single(A, B, lengthscale):
    """RBF kernel in single precision.

    Parameters
    ----------
    A : ndarray of shape (n, n_features)
    B : ndarray of shape (m, n_features)
    lengthscale : ndarray of shape (n_features,)

    Returns
    -------
    ndarray of float32 of shape (n, m)
    """
    return rbf(*(np.asarray(part, dtype=np.float32) for part in (A, B, lengthscale)))
