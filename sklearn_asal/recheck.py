"""Whether rows of a pool near to a proposal are safe: Gaussian processes that need no fitting."""

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import ndtr

# What the typical lengthscale is multiplied by, and noise standard deviations at unit scale.
FACTORS = (0.5, 1.0, 2.0)
NOISES = (0.03, 0.1, 0.3)
# Margins beyond this are not at unit scale, and would let the evidence overflow.
LARGEST = 10.0


def probability_safe(X, margin, candidates, lengthscale):
    """Probability that each candidate is measured as safe, averaged over hyperparameters.

    Gaussian processes of zero mean, unit variance and an RBF kernel, one for each pair of a
    factor on the lengthscale and a noise, weighted by their marginal likelihoods.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        Observed inputs of the unit cube.
    margin : ndarray of shape (n,)
        Their safety margins at unit scale, safe from 0.
    candidates : ndarray of shape (m, n_features)
    lengthscale : float or ndarray of shape (n_features,)
        A typical one of safety functions.

    Returns
    -------
    ndarray of shape (m,)
    """
    scaled = X / lengthscale
    among = cdist(scaled, scaled, "sqeuclidean")
    across = cdist(scaled, candidates / lengthscale, "sqeuclidean")
    known = np.clip(margin, -LARGEST, LARGEST)
    scale = -0.5 / np.square(FACTORS)[:, None, None]
    noise = np.square(NOISES)[:, None, None]
    # (factors, noises, n, n), factorised at once.
    K = np.exp(scale * among)[:, None] + noise * np.eye(len(X))
    whitener = np.linalg.inv(np.linalg.cholesky(K))
    V = whitener @ np.exp(scale * across)[:, None]
    w = whitener @ known
    evidence = np.log(np.diagonal(whitener, axis1=-2, axis2=-1)).sum(-1) - 0.5 * (w**2).sum(-1)
    variance = np.maximum(1 - (V**2).sum(axis=-2), 0) + noise[..., 0]
    safe = ndtr((w[..., None, :] @ V)[..., 0, :] / np.sqrt(variance))
    weights = np.exp(evidence - evidence.max())
    return (weights[..., None] * safe).sum(axis=(0, 1)) / weights.sum()


def typical_lengthscale(header):
    """Mean lengthscale of the safety functions that a policy was trained on.

    Parameters
    ----------
    header : dict
        Of the policy.

    Returns
    -------
    float or ndarray of shape (n_features,)
    """
    prior = header.get("preset", {}).get("safety_lengthscale")
    if prior is None:
        return 0.3  # of the paper's prior
    part = {name: np.asarray(value) for name, value in prior.items() if name != "kind"}
    if prior["kind"] == "shifted-exponential":
        return part["shift"] + 1 / part["rate"]
    return 0.5 * (part["low"] + part["high"])
