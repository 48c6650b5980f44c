"""Whether rows of a pool near to a proposal are safe: Gaussian processes that need no fitting."""

import numpy as np
from scipy.linalg import solve_triangular
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
    among, across = (_square_distances(X / lengthscale, Z / lengthscale) for Z in (X, candidates))
    known = np.clip(margin, -LARGEST, LARGEST)
    evidence, safe = [], []
    for factor in FACTORS:
        K, k = (np.exp(-0.5 / factor**2 * square) for square in (among, across))
        for noise in NOISES:
            L = np.linalg.cholesky(K + noise**2 * np.eye(len(X)))
            solved = solve_triangular(L, np.column_stack([known, k]), lower=True)
            w, V = solved[:, 0], solved[:, 1:]
            evidence.append(-0.5 * w @ w - np.log(np.diag(L)).sum())
            variance = np.maximum(1 - (V**2).sum(axis=0), 0) + noise**2
            safe.append(ndtr(V.T @ w / np.sqrt(variance)))
    weights = np.exp(np.array(evidence) - max(evidence))
    return weights @ np.array(safe) / weights.sum()


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


def _square_distances(A, B):
    return ((A[:, None] - B[None]) ** 2).sum(axis=-1)
