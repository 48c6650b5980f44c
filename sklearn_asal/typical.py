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
# The same where a probability may be off by a thousandth.
_LITTLE = 1e-3
# Rows that are quicker added to the factors than all of them made anew.
_FEW = 4


class Factors:
    """Inverse Cholesky factors of the covariances of one list of inputs, for all processes.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        Inputs of the unit cube.
    lengthscale : float or ndarray of shape (n_features,)
    noises : tuple of float, default=NOISES
        Standard deviations, as many as there.
    """

    def __init__(self, X, lengthscale, noises=NOISES):
        self.X, self.lengthscale, self.noises = X.copy(), lengthscale, noises
        self.variances = np.square(noises)
        among = kernels(self.X / lengthscale, self.X / lengthscale)
        K = among.reshape(-1, 1, *among.shape[1:])
        K = K + self.variances[:, None, None] * np.eye(len(X))
        # One process after the other, factors outside; (processes, n, n).
        factors = np.linalg.cholesky(K.reshape(-1, *K.shape[-2:]))
        # Three times as fast as a general inverse.
        self.inverse = np.stack([dtrtri(factor, lower=True)[0] for factor in factors])
        self.log_determinant = np.log(np.diagonal(self.inverse, axis1=1, axis2=2)).sum(axis=1)

    @property
    def key(self):
        """What tells factors of other hyperparameters from these."""
        return self.key_of(self.lengthscale, self.noises)

    @staticmethod
    def key_of(lengthscale, noises):
        """Key of the factors of these hyperparameters."""
        return np.asarray(lengthscale).tobytes(), noises

    def of(self, X):
        """Those of other inputs; quick where they begin with these, and few are new."""
        known = len(self.X)
        if not 0 <= len(X) - known <= _FEW or not np.array_equal(X[:known], self.X):
            return Factors(X, self.lengthscale, self.noises)
        factors = self
        for n in range(known + 1, len(X) + 1):
            factors = factors._extended(X[:n])
        return factors

    def _extended(self, X):
        """With one more row."""
        n = len(self.X)
        scaled = X / self.lengthscale
        across = np.repeat(kernels(scaled[:n], scaled[n:]), len(self.noises), axis=0)
        V = self.inverse @ across
        pivot = np.sqrt(1 + np.tile(self.variances, len(FACTORS)) - (V**2).sum(axis=(1, 2)))
        extended = copy.copy(self)
        extended.X = X.copy()
        extended.inverse = np.zeros((len(pivot), n + 1, n + 1))
        extended.inverse[:, :n, :n] = self.inverse
        extended.inverse[:, n, :n] = -(V.transpose(0, 2, 1) @ self.inverse)[:, 0] / pivot[:, None]
        extended.inverse[:, n, n] = 1 / pivot
        extended.log_determinant = self.log_determinant - np.log(pivot)
        return extended


def kernels(A, B):
    """RBF kernel for each factor on the lengthscale, ``(n_factors, len(A), len(B))``."""
    kernel = np.empty((len(FACTORS), len(A), len(B)))
    kernel[-1] = np.exp(cdist(A, B, "sqeuclidean") * (-0.5 / FACTORS[-1] ** 2))
    for i in range(len(FACTORS) - 1, 0, -1):
        # Half the lengthscale is the fourth power.
        np.square(kernel[i], out=kernel[i - 1])
        np.square(kernel[i - 1], out=kernel[i - 1])
    return kernel


def _kernel(A, B):
    """RBF kernel of lengthscale one in single precision, by one product of matrices."""
    A, B = A - 0.5, B - 0.5  # of small numbers less is lost
    of_A, of_B = (-0.5 * np.einsum("ij,ij->i", part, part)[:, None] for part in (A, B))
    left = np.hstack([A, of_A, np.ones_like(of_A)], dtype=np.float32)
    right = np.hstack([B, np.ones_like(of_B), of_B], dtype=np.float32)
    exponent = left @ right.T
    return np.exp(exponent, out=exponent)


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
        Those of the first of these inputs, or of any others, to start from; of these
        hyperparameters.
    pending : ndarray of shape (n_pending, n_features), optional
        Inputs that will be observed, too. They make the function there less uncertain, but are no
        evidence of its values.
    noises : tuple of float, default=NOISES
        Standard deviations, as many as there.

    Attributes
    ----------
    factors, expected : Factors
        Those of ``X``, and of ``X`` and ``pending``.
    n_observed : int
    """

    def __init__(self, X, values, lengthscale, factors=None, pending=(), noises=NOISES):
        self.factors = (factors or Factors(X, lengthscale, noises)).of(X)
        values = np.minimum(np.maximum(values, -LARGEST), LARGEST)
        known = self.factors.inverse @ values
        evidence = self.factors.log_determinant - 0.5 * np.einsum("pi,pi->p", known, known)
        weights = np.exp(evidence - evidence.max())
        weights /= weights.sum()
        # Mostly a few processes explain the data, and the others are not worth their time.
        self._kept = kept = np.flatnonzero(weights > _NEGLIGIBLE)
        self._weights, self._known = weights[kept], known[kept]
        self.n_observed = len(X)
        # The first rows of the larger factors are the smaller ones.
        self.expected = self.factors.of(np.vstack([X, pending])) if len(pending) else self.factors
        self._factor, noise = np.divmod(kept, len(noises))
        self._noise = self.factors.variances[noise, None]

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
        scale, X = self.factors.lengthscale, self.expected.X
        V = self.expected.inverse[self._kept] @ kernels(X / scale, candidates / scale)[self._factor]
        known = V[:, : self.n_observed]
        variance = np.maximum(1 - (known**2).sum(axis=1), 0)
        mean = (self._known[:, None] @ known)[:, 0]
        positive = self._weights @ ndtr(mean / np.sqrt(variance + self._noise))
        if self.n_observed < len(X):
            variance = np.maximum(1 - (V**2).sum(axis=1), 0)
        # Of a mixture: what the processes do not know, and what they disagree on.
        apart = mean - self._weights @ mean
        return self._weights @ (variance + apart**2), positive

    def positive(self, candidates):
        """The probability of :meth:`predict` in single precision, for many candidates."""
        scale = FACTORS[-1] * self.factors.lengthscale
        X, candidates = (
            (points / scale).astype(np.float32) for points in (self.factors.X, candidates)
        )
        kernel = {FACTORS[-1]: _kernel(X, candidates)}
        for factor in reversed(FACTORS[:-1]):
            kernel[factor] = np.square(np.square(kernel[2 * factor]))
        positive = total = 0.0
        for i in np.flatnonzero(self._weights > _LITTLE * self._weights.max()):
            whitener = self.factors.inverse[self._kept[i]].astype(np.float32)
            V = whitener @ kernel[FACTORS[self._factor[i]]]
            positive += self._weights[i] * self._positive(i, V)
            total += self._weights[i]
        return positive / total

    def likely(self, overview):
        """Probability that measurements of the rows of an overview are positive.

        By the process that explains the observations best.

        Parameters
        ----------
        overview : Overview
            It has seen what these processes expect.

        Returns
        -------
        ndarray of shape (r,)
        """
        best = self._weights.argmax()
        return self._positive(best, overview.whitened(self._kept[best])[: self.n_observed])

    def _positive(self, i, V):
        """Probability by one process, from covariances with what is observed, whitened."""
        variance = np.maximum(1 - np.einsum("ij,ij->j", V, V), 0) + self._noise[i]
        return ndtr(self._known[i].astype(V.dtype) @ V / np.sqrt(variance))

    def gain(self, candidates, overview, weights):
        """How much measuring each candidate would lessen what is not known of other rows.

        By the process that explains the observations best.

        Parameters
        ----------
        candidates : ndarray of shape (m, n_features)
        overview : Overview
            It has seen what these processes expect.
        weights : ndarray of shape (r,)
            What each of its rows counts.

        Returns
        -------
        ndarray of shape (m,)
            Weighted sums of reductions in variance.
        """
        best = self._weights.argmax()
        process, scale = self._kept[best], FACTORS[self._factor[best]] * self.factors.lengthscale
        # Single precision, twice as fast, is enough to tell rows from each other.
        X, candidates, rows = (
            part / scale for part in (self.expected.X, candidates, overview.rows)
        )
        V = self.expected.inverse[process].astype(np.float32) @ _kernel(X, candidates)
        covariance = _kernel(candidates, rows)
        covariance -= V.T @ overview.whitened(process)
        left = np.maximum(1 - np.einsum("ij,ij->j", V, V), 0) + self._noise[best]
        return np.square(covariance, out=covariance) @ weights.astype(np.float32) / left


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


def typical_noises(header):
    """Noise standard deviations that stand for those a policy was trained with."""
    if "noise_std" not in header:
        return NOISES
    low, high = header["noise_std"]
    parts = (np.arange(len(NOISES)) + 0.5) / len(NOISES)
    return tuple((low + (high - low) * parts).tolist())
