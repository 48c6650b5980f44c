"""Whether rows of a pool near to a proposal are safe: Gaussian processes that need no fitting."""

import numpy as np
from scipy.linalg.lapack import dtrtri
from scipy.spatial.distance import cdist
from scipy.special import ndtr

# What the typical lengthscale is multiplied by, and noise standard deviations at unit scale.
FACTORS = (0.5, 1.0, 2.0)
NOISES = (0.03, 0.1, 0.3)
# Margins beyond this are not at unit scale, and would let the evidence overflow.
LARGEST = 10.0
# A weight that changes no probability.
_NEGLIGIBLE = 1e-9


class MarginProcesses:
    """Gaussian processes of the safety margin that need no fitting.

    They have zero mean, unit variance and an RBF kernel, one for each pair of a factor on the
    lengthscale and a noise, weighted by their marginal likelihoods.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        Observed inputs of the unit cube.
    margin : ndarray of shape (n,)
        Their safety margins at unit scale, safe from 0.
    lengthscale : float or ndarray of shape (n_features,)
        A typical one of safety functions.
    """

    def __init__(self, X, margin, lengthscale):
        self.lengthscale = lengthscale
        self._X = X / lengthscale
        scale = -0.5 / np.square(FACTORS)[:, None, None]
        noise = np.square(NOISES)
        among = np.exp(scale * cdist(self._X, self._X, "sqeuclidean"))
        K = among[:, None] + noise[:, None, None] * np.eye(len(X))
        # One process after the other, factors outside; (processes, n, n).
        factors = np.linalg.cholesky(K.reshape(-1, *K.shape[-2:]))
        # Three times as fast as a general inverse.
        whitener = np.stack([dtrtri(factor, lower=True)[0] for factor in factors])
        known = whitener @ np.clip(margin, -LARGEST, LARGEST)
        determinant = np.log(np.diagonal(whitener, axis1=-2, axis2=-1)).sum(-1)
        evidence = determinant - 0.5 * (known**2).sum(-1)
        weights = np.exp(evidence - evidence.max())
        weights /= weights.sum()
        # Mostly a few processes explain the data, and the others are not worth their time.
        kept = weights > _NEGLIGIBLE
        self._weights, self._whitener, self._known = weights[kept], whitener[kept], known[kept]
        self._scale = np.repeat(scale, len(NOISES), axis=0)[kept]
        self._noise = np.tile(noise, len(FACTORS))[kept, None]

    def probability_safe(self, candidates):
        """Probability that each candidate is measured as safe, averaged over hyperparameters.

        Parameters
        ----------
        candidates : ndarray of shape (m, n_features)

        Returns
        -------
        ndarray of shape (m,)
        """
        across = cdist(self._X, candidates / self.lengthscale, "sqeuclidean")
        V = self._whitener @ np.exp(self._scale * across)
        variance = np.maximum(1 - (V**2).sum(axis=1), 0) + self._noise
        mean = (self._known[:, None] @ V)[:, 0]
        return self._weights @ ndtr(mean / np.sqrt(variance))


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
