"""Repeated measurements: which point is repeated, the noise they show, and drift.

This is the only place where the order of measurement matters: that in which rows were told.
"""

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from .history import SAME

# How far beyond the bounds a point may lie that is repeated, by rounding.
_INSIDE = 1e-6


def reference_points(history):
    """Observations that may be repeated, the best one of each input, the best input first.

    Inputs inside the bounds, and with limits those whose measurements were all safe: first those
    that have been measured most often; of these, with limits, the one with the largest margin,
    each limit's in units of the root mean square of its margins; then the one told first.

    Parameters
    ----------
    history : History

    Returns
    -------
    list of int
        Of rows of ``history.observed``.
    """
    observed = history.observed
    X, margin = observed.X, observed.margin
    which = same_inputs(X)
    _, first, count = np.unique(which, return_index=True, return_counts=True)
    score = np.zeros(len(first))
    if margin is not None:
        size = np.sqrt(np.mean(np.square(margin), axis=0))
        score = np.full(len(first), np.inf)
        np.minimum.at(score, which, (margin / np.where(size > 0, size, 1.0)).min(axis=1))
    inside = ((X[first] >= -_INSIDE) & (X[first] <= 1 + _INSIDE)).all(axis=1)
    order = np.lexsort((first, -score, -count))
    return first[order[(inside & (score >= 0))[order]]].tolist()


def same_inputs(X):
    """Which input each observation has.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)

    Returns
    -------
    ndarray of int of shape (n,)
        The same number for inputs that are no farther apart than 1e-6, from 0.
    """
    pairs = cKDTree(X).query_pairs(SAME, p=np.inf, output_type="ndarray")
    graph = coo_matrix((np.ones(len(pairs)), pairs.T), shape=(len(X), len(X)))
    return connected_components(graph, directed=False)[1]


def pooled_std(X, y):
    """Standard deviation of repeated measurements about the mean of each input.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        In the unit cube.
    y : ndarray of shape (n,)

    Returns
    -------
    std : float or None
        None without repeats.
    dof : int
        Its degrees of freedom, the number of measurements less that of inputs.
    most : int
        Measurements of the input that was measured most often.
    """
    which = same_inputs(X)
    count = np.bincount(which)
    dof = len(X) - len(count)
    if not dof:
        return None, 0, 1
    centre = y.mean()
    mean = np.bincount(which, y - centre) / count
    return float(np.sqrt(np.sum((y - centre - mean[which]) ** 2) / dof)), dof, int(count.max())
