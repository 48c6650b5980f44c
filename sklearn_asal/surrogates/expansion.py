"""Prediction, shared by all surrogates: each one is a sum of kernels at some centres."""

import numpy as np
from scipy.linalg.blas import dtrmm
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

# Rows predicted at a time: their kernel with 100 centres fits in a core's cache.
_ROWS = 1024


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

    def condition(self, X, y):
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
        ValueError
            Invalid data.
        """
        X, y = check_data(X, y)
        return self._condition(self._checked(X), y)

    def predict(self, X):
        """Mean and standard deviation of a measurement, noise included.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Any number of rows; they are worked on in blocks.

        Returns
        -------
        mean, std : ndarray of shape (n,)
        """
        X = self._checked(X)
        mean, std = np.empty((2, len(X)))
        for start in range(0, len(X), _ROWS):
            rows = slice(start, start + _ROWS)
            mean[rows], variance = _mixed(*self._moments(X[rows]))
            np.sqrt(variance, out=std[rows])
        return mean, std

    def predict_members(self, X):
        """Mean and standard deviation of a measurement for each member, noise included.

        Parameters
        ----------
        X : array-like of shape (n, n_features)

        Returns
        -------
        means, stds : ndarray of shape (n_members, n)
        """
        means, variances = self._moments(self._checked(X))
        return means, np.sqrt(variances)

    def covariance(self, A, B):
        """Covariance of noise-free values at two sets of points.

        Parameters
        ----------
        A : array-like of shape (n, n_features)
        B : array-like of shape (k, n_features)

        Returns
        -------
        covariance : ndarray of shape (n, k)
        """
        A, B = self._checked(A), self._checked(B)
        total = np.zeros((len(A), len(B)))
        means = []
        for b in range(len(self.weights_)):
            kA, kB = self._kernel(b, A, self.centres_), self._kernel(b, B, self.centres_)
            total += self._kernel(b, A, B)
            total -= (kA @ self.factors_[b].T) @ (kB @ self.factors_[b].T).T
            means.append((kA @ self.weights_[b], kB @ self.weights_[b]))
        mA, mB = (np.array(part) - np.mean(part, axis=0) for part in zip(*means, strict=True))
        return (total + mA.T @ mB) / len(self.weights_)

    def predict_gradient(self, x):
        """Mean and standard deviation at one point, and their gradients.

        Parameters
        ----------
        x : ndarray of shape (n_features,)

        Returns
        -------
        mean, std : float
        mean_gradient, std_gradient : ndarray of shape (n_features,)
        """
        means, stds, d_means, d_stds = self.predict_members_gradient(x)
        mean, variance = _mixed(means, np.square(stds))
        d_variances = stds[:, None] * d_stds + (means - mean)[:, None] * d_means  # half of it
        std = np.sqrt(variance)
        return float(mean), float(std), d_means.mean(axis=0), d_variances.mean(axis=0) / std

    def predict_members_gradient(self, x):
        """Mean and standard deviation of each member at one point, and their gradients.

        Parameters
        ----------
        x : ndarray of shape (n_features,)

        Returns
        -------
        means, stds : ndarray of shape (n_members,)
        mean_gradients, std_gradients : ndarray of shape (n_members, n_features)
        """
        difference = self.centres_ - x
        precision = self.lengthscale_**-2.0
        k = np.exp(-0.5 * precision @ np.square(difference).T)
        k *= np.square(self.signal_std_)[:, None]
        d_k = (k[:, None, :] * precision[:, :, None]) * difference.T  # (n_members, n_features, m)
        means = np.einsum("bm,bm->b", self.weights_, k)
        d_means = np.einsum("bm,bdm->bd", self.weights_, d_k)
        explained = self.factors_ @ k[:, :, None]
        d_explained = self.factors_ @ d_k.transpose(0, 2, 1)
        noise = np.square(self.noise_std_)
        latent = np.square(self.signal_std_) - np.square(explained).sum(axis=(1, 2))
        stds = np.sqrt(noise + np.maximum(latent, 0.0))
        return means, stds, d_means, -(explained * d_explained).sum(axis=1) / stds[:, None]

    def _checked(self, X):
        check_is_fitted(self, "centres_")
        X = _finite(X, "X", 2)
        if X.shape[1] != self.centres_.shape[1]:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} was fitted on "
                f"{self.centres_.shape[1]}."
            )
        return X

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
        # Minus half the squared distance, as one product; measured from the middle of the cube
        # its terms cancel least.
        A = (A - 0.5) / self.lengthscale_[b]
        B = (B - 0.5) / self.lengthscale_[b]
        halves = [-0.5 * np.einsum("ij,ij->i", C, C)[:, None] for C in (A, B)]
        A = np.hstack([A, halves[0], np.ones_like(halves[0])])
        B = np.hstack([B, np.ones_like(halves[1]), halves[1]])
        k = A @ B.T
        np.minimum(k, 0.0, out=k)
        np.exp(k, out=k)
        k *= self.signal_std_[b] ** 2
        return k


def _mixed(means, variances):
    """Moments of a mixture with equal weights; the first axis runs over its members."""
    mean = means.mean(axis=0)
    return mean, variances.mean(axis=0) + np.square(means - mean).mean(axis=0)


def check_data(X, y):
    """Validate training data; float64 arrays of shape ``(n, n_features)`` and ``(n,)``."""
    X, y = _finite(X, "X", 2), _finite(y, "y", 1)
    if len(X) != len(y) or len(X) == 0:
        raise ValueError(
            f"X and y must have one row for each observation, at least one; X has {len(X)}, y has "
            f"{len(y)}."
        )
    return X, y


def _finite(data, name, ndim):
    # scikit-learn's own checks take as long as three evaluations of the likelihood.
    array = np.asarray(data, dtype=np.float64)
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity; remove such rows.")
    return array
