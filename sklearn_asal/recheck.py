"""Whether rows of a pool near to a proposal are safe: Gaussian processes that need no fitting."""

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import ndtr

# What the typical lengthscale is multiplied by, and noise standard deviations at unit scale.
FACTORS = (0.5, 1.0, 2.0)
NOISES = (0.03, 0.1, 0.3)
# Margins beyond this are not at unit scale, and would let the evidence overflow.
LARGEST = 10.0


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
        # (factors, noises, n, n), factorised at once.
        self._scale = -0.5 / np.square(FACTORS)[:, None, None]
        self._noise = np.square(NOISES)[:, None, None]
        among = np.exp(self._scale * cdist(self._X, self._X, "sqeuclidean"))
        K = among[:, None] + self._noise * np.eye(len(X))
        self._whitener = np.linalg.inv(np.linalg.cholesky(K))
        self._known = self._whitener @ np.clip(margin, -LARGEST, LARGEST)
        determinant = np.log(np.diagonal(self._whitener, axis1=-2, axis2=-1)).sum(-1)
        evidence = determinant - 0.5 * (self._known**2).sum(-1)
        weights = np.exp(evidence - evidence.max())
        self._weights = (weights / weights.sum())[..., None]

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
        V = self._whitener @ np.exp(self._scale * across)[:, None]
        variance = np.maximum(1 - (V**2).sum(axis=-2), 0) + self._noise[..., 0]
        safe = ndtr((self._known[..., None, :] @ V)[..., 0, :] / np.sqrt(variance))
        return (self._weights * safe).sum(axis=(0, 1))


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
