"""What is known of rows of a pool: Gaussian processes that need no fitting."""

import copy

import numpy as np
from scipy.linalg.lapack import dtrtri
from scipy.spatial.distance import cdist
from scipy.special import ndtr

# What the typical lengthscale is multiplied by, each twice the one before, and noise standard
# deviations at unit scale.
FACTORS = (0.5, 1.0, 2.0)
NOISES = (0.03, 0.1, 0.3)
# Values beyond this are not at unit scale, and would let the evidence overflow.
LARGEST = 10.0
# A weight that changes no probability.
_NEGLIGIBLE = 1e-9
# Rows that are quicker added to the factors than all of them made anew.
_FEW = 4

_NOISE = np.square(NOISES)[:, None, None]


class Factors:
    """Inverse Cholesky factors of the covariances of one list of inputs, for all processes.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        Inputs of the unit cube.
    lengthscale : float or ndarray of shape (n_features,)
    """

    def __init__(self, X, lengthscale):
        self.X, self.lengthscale = X.copy(), lengthscale
        among = _kernel(self.X / lengthscale, self.X / lengthscale)
        K = among.reshape(-1, 1, *among.shape[1:]) + _NOISE * np.eye(len(X))
        # One process after the other, factors outside; (processes, n, n).
        factors = np.linalg.cholesky(K.reshape(-1, *K.shape[-2:]))
        # Three times as fast as a general inverse.
        self.inverse = np.stack([dtrtri(factor, lower=True)[0] for factor in factors])

    def of(self, X, lengthscale):
        """Those of other inputs; quick where they begin with these, and few are new."""
        known = len(self.X)
        if (
            not 0 <= len(X) - known <= _FEW
            or not np.array_equal(lengthscale, self.lengthscale)
            or not np.array_equal(X[:known], self.X)
        ):
            return Factors(X, lengthscale)
        factors = self
        for n in range(known + 1, len(X) + 1):
            factors = factors._extended(X[:n])
        return factors

    def _extended(self, X):
        """With one more row."""
        n = len(self.X)
        scaled = X / self.lengthscale
        across = np.repeat(_kernel(scaled[:n], scaled[n:]), len(NOISES), axis=0)
        V = self.inverse @ across
        pivot = np.sqrt(1 + np.tile(_NOISE.ravel(), len(FACTORS)) - (V**2).sum(axis=(1, 2)))
        extended = copy.copy(self)
        extended.X = X.copy()
        extended.inverse = np.zeros((len(pivot), n + 1, n + 1))
        extended.inverse[:, :n, :n] = self.inverse
        extended.inverse[:, n, :n] = -(V.transpose(0, 2, 1) @ self.inverse)[:, 0] / pivot[:, None]
        extended.inverse[:, n, n] = 1 / pivot
        return extended


def _kernel(A, B):
    """RBF kernel for each factor on the lengthscale, ``(n_factors, len(A), len(B))``."""
    kernel = np.empty((len(FACTORS), len(A), len(B)))
    kernel[-1] = np.exp(cdist(A, B, "sqeuclidean") * (-0.5 / FACTORS[-1] ** 2))
    for i in range(len(FACTORS) - 1, 0, -1):
        # Half the lengthscale is the fourth power.
        np.square(kernel[i], out=kernel[i - 1])
        np.square(kernel[i - 1], out=kernel[i - 1])
    return kernel


class TypicalProcesses:
    """Gaussian processes with the hyperparameters that are typical of what a policy was trained on.

    They have zero mean, unit variance and an RBF kernel, one for each pair of a factor on the
    lengthscale and a noise, weighted by their marginal likelihoods.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        Observed inputs of the unit cube.
    values : ndarray of shape (n,)
        Their outputs or safety margins at unit scale.
    lengthscale : float or ndarray of shape (n_features,)
        The typical one.
    factors : Factors, optional
        Those of the first of these inputs, or of any others, to start from.
    pending : ndarray of shape (n_pending, n_features), optional
        Inputs that will be observed, too. They make the function there less uncertain, but are no
        evidence of its values.

    Attributes
    ----------
    factors : Factors
        Those of ``X``.
    """

    def __init__(self, X, values, lengthscale, factors=None, pending=()):
        self.factors = (factors or Factors(X, lengthscale)).of(X, lengthscale)
        whitener = self.factors.inverse
        known = whitener @ np.clip(values, -LARGEST, LARGEST)
        determinant = np.log(np.diagonal(whitener, axis1=-2, axis2=-1)).sum(-1)
        evidence = determinant - 0.5 * (known**2).sum(-1)
        weights = np.exp(evidence - evidence.max())
        weights /= weights.sum()
        # Mostly a few processes explain the data, and the others are not worth their time.
        kept = np.flatnonzero(weights > _NEGLIGIBLE)
        self._X, self._n_observed = X, len(X)
        if len(pending):
            self._X = np.vstack([X, pending])
            # The first rows of the larger factors are the smaller ones.
            whitener = self.factors.of(self._X, lengthscale).inverse
        self._weights, self._whitener, self._known = weights[kept], whitener[kept], known[kept]
        self._factor, noise = np.divmod(kept, len(NOISES))
        self._noise = _NOISE[noise, 0]

    def predict(self, candidates):
        """What is known of candidates, averaged over hyperparameters.

        Parameters
        ----------
        candidates : ndarray of shape (m, n_features)

        Returns
        -------
        variance : ndarray of shape (m,)
            Of the function there, once all that is pending is observed.
        positive : ndarray of shape (m,)
            Probability that a measurement is positive; of a margin, that it is safe.
        """
        scale = self.factors.lengthscale
        V = self._whitener @ _kernel(self._X / scale, candidates / scale)[self._factor]
        known = V[:, : self._n_observed]
        variance = np.maximum(1 - (known**2).sum(axis=1), 0)
        mean = (self._known[:, None] @ known)[:, 0]
        positive = self._weights @ ndtr(mean / np.sqrt(variance + self._noise))
        if self._n_observed < len(self._X):
            variance = np.maximum(1 - (V**2).sum(axis=1), 0)
        # Of a mixture: what the processes do not know, and what they disagree on.
        apart = mean - self._weights @ mean
        return self._weights @ (variance + apart**2), positive


def typical_lengthscale(header, function="safety_lengthscale"):
    """Mean lengthscale of the functions that a policy was trained on.

    Parameters
    ----------
    header : dict
        Of the policy.
    function : {"safety_lengthscale", "lengthscale"}
        Which of them.

    Returns
    -------
    float or ndarray of shape (n_features,)
    """
    prior = header.get("preset", {}).get(function)
    if prior is None:
        return 0.3  # of the paper's prior
    part = {name: np.asarray(value) for name, value in prior.items() if name != "kind"}
    if prior["kind"] == "shifted-exponential":
        return part["shift"] + 1 / part["rate"]
    if prior["kind"] == "log-uniform":
        return (part["high"] - part["low"]) / np.log(part["high"] / part["low"])
    return 0.5 * (part["low"] + part["high"])
