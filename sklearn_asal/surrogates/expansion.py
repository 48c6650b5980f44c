"""Prediction, shared by all surrogates: each one is a sum of kernels at some centres."""

from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.blas import dtrmm
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._typing import FloatArray
from ..settings import own_settings
from .kernels import rbf
from .validation import check_data, check_rows

# Rows predicted at a time: their kernel with 100 centres fits in a core's cache.
_ROWS = 1024

_E = TypeVar("_E", bound="Expansion")


class Expansion(BaseEstimator):
    """Gaussian predictions whose mean and variance come from kernels at some centres.

    With k the kernel's values at the centres, the mean is ``weights_[b] @ k`` and
    the variance ``signal^2 + noise^2 - |factors_[b] @ k|^2`` (eqS-gp_posterior) for
    each member b. Several members form a mixture with equal weights.

    A subclass chooses ``theta_`` in ``fit``, and calls ``_set`` in ``_condition(X, y)``.

    Attributes
    ----------
    centres_ : ndarray of shape (m, n_features)
    lengthscale_ : ndarray of shape (n_members, n_features)
    signal_std_, noise_std_ : ndarray of shape (n_members,)
    weights_ : ndarray of shape (n_members, m)
    factors_ : ndarray of shape (n_members, m, m)
        Lower triangular.
    """

    def _set(self, centres, thetas, weights, factors):
        self.centres_ = centres
        self.lengthscale_ = np.exp(thetas[:, :-2])
        self.signal_std_, self.noise_std_ = np.exp(thetas[:, -2:]).T
        self.weights_ = np.array(weights)
        self.factors_ = np.array(factors)
        return self

    @own_settings()
    def condition(self: _E, X: ArrayLike, y: ArrayLike) -> _E:
        """Take other data, with the hyperparameters that ``fit`` chose.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,)

        Returns
        -------
        self

        Raises
        ------
        sklearn.exceptions.NotFittedError
        ValueError
            Invalid data.
        """
        X, y = check_data(X, y)
        return self._condition(self._checked(X), y)

    @own_settings()
    def predict(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of a measurement, noise included.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Any number of rows; they are worked on in blocks.

        Returns
        -------
        mean, std : ndarray of shape (n,)

        Raises
        ------
        sklearn.exceptions.NotFittedError
        ValueError
            Invalid X.
        """
        X = self._checked(X)
        mean, std = np.empty((2, len(X)))
        for start in range(0, len(X), _ROWS):
            rows = slice(start, start + _ROWS)
            mean[rows], variance = _mixed(*self._moments(X[rows]))
            np.sqrt(variance, out=std[rows])
        return mean, std

    @own_settings()
    def predict_members(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of a measurement for each member, noise included.

        Parameters
        ----------
        X : array-like of shape (n, n_features)

        Returns
        -------
        means, stds : ndarray of shape (n_members, n)

        Raises
        ------
        sklearn.exceptions.NotFittedError
        ValueError
            Invalid X.
        """
        means, variances = self._moments(self._checked(X))
        return means, np.sqrt(variances)

    @own_settings()
    def covariance(self, A: ArrayLike, B: ArrayLike) -> FloatArray:
        """Covariance of noise-free values at two sets of points.

        Parameters
        ----------
        A : array-like of shape (n, n_features)
        B : array-like of shape (k, n_features)

        Returns
        -------
        covariance : ndarray of shape (n, k)

        Raises
        ------
        sklearn.exceptions.NotFittedError
        ValueError
            Invalid A or B.
        """
        A, B = self._checked(A, "A"), self._checked(B, "B")
        total = np.zeros((len(A), len(B)))
        means = []
        for b in range(len(self.weights_)):
            kA, kB = self._kernel(b, A, self.centres_), self._kernel(b, B, self.centres_)
            total += self._kernel(b, A, B)
            total -= (kA @ self.factors_[b].T) @ (kB @ self.factors_[b].T).T
            means.append((kA @ self.weights_[b], kB @ self.weights_[b]))
        mA, mB = (np.array(part) - np.mean(part, axis=0) for part in zip(*means, strict=True))
        return (total + mA.T @ mB) / len(self.weights_)

    def _checked(self, X: ArrayLike, name: str = "X") -> FloatArray:
        check_is_fitted(self, "centres_")
        return check_rows(self, X, name, self.centres_.shape[1])

    def _moments(self, X):
        means, explained = np.empty((2, len(self.weights_), len(X)))
        for b in range(len(self.weights_)):
            k = self._kernel(b, X, self.centres_)
            np.dot(k, self.weights_[b], out=means[b])
            # The factor is triangular: half the work of a general product.
            k = dtrmm(1.0, self.factors_[b].T, k.T, lower=0, trans_a=1, overwrite_b=1)
            np.einsum("ij,ij->j", k, k, out=explained[b])
        latent = np.square(self.signal_std_)[:, None] - explained
        # Rounding may take away a little more than there is.
        return means, np.maximum(latent, 0.0) + np.square(self.noise_std_)[:, None]

    def _kernel(self, b, A, B):
        kernel = rbf(A, B, self.lengthscale_[b])
        kernel *= self.signal_std_[b] ** 2
        return kernel


def _mixed(means, variances):
    """Moments of a mixture with equal weights; the first axis runs over its members."""
    mean = means.mean(axis=0)
    return mean, variances.mean(axis=0) + np.square(means - mean).mean(axis=0)
