"""Proposals with no more digits than anybody can set."""

import math

import numpy as np

from ..space import Grid, Integer, Log

# A proposal is rounded to this part of the width of the bounds, on a logarithmic scale to so many
# digits; to more, up to so many, where rounding would leave what is stated.
_PART, _DIGITS, _MORE = 1e-3, 4, 12


def rounded(points, bounds, fixed, constraints, allowed):
    """Proposals with no more digits than anybody can set.

    Parameters
    ----------
    points : ndarray of shape (n, n_features)
    bounds : sequence of (tuple of float, Integer, Log or Grid)
    fixed : dict of int to float
        Features that keep their value.
    constraints : Constraints or None
    allowed : callable
        Of such points, whether all of them are allowed besides.

    Returns
    -------
    ndarray of shape (n, n_features)
        Within the bounds and constraints, and allowed.
    """
    for more in range(_MORE):
        X = np.array(points)
        for j, feature in enumerate(bounds):
            X[:, j] = fixed[j] if j in fixed else _rounded(X[:, j], feature, more)
        if constraints is not None:
            if constraints.is_equation.sum() == 1:
                X = _balanced(X, bounds, fixed, constraints)
            if not constraints.holds(X, strict=True).all():
                continue
        if allowed(X):
            return X
    return points


def _rounded(values, feature, more):
    if isinstance(feature, (Integer, Grid)):
        return values
    if isinstance(feature, Log):
        values = [float(f"{value:.{_DIGITS - 1 + more}e}") for value in values]
        return np.clip(values, feature.low, feature.high)
    low, high = feature
    return np.clip(np.round(values, decimals(high - low) + more), low, high)


def decimals(width):
    """Decimals that a feature is rounded to.

    Parameters
    ----------
    width : float
        Of its bounds.

    Returns
    -------
    int
        0 or more.
    """
    return max(0, math.ceil(-math.log10(_PART * width)))


def _balanced(X, bounds, fixed, constraints):
    """Move the widest feature of an equation so that it holds after rounding."""
    k = np.flatnonzero(constraints.is_equation)[0]
    row = constraints.A[k]
    plain = [isinstance(one, tuple) and j not in fixed for j, one in enumerate(bounds)]
    weight = np.where(plain, np.abs(row), 0.0) * [_width(one) for one in bounds]
    if not weight.any():
        return X
    j = weight.argmax()
    moved = X[:, j] + (constraints.low[k] - X @ row) / row[j]
    low, high = bounds[j]
    # Less the last digits, which rounding makes.
    X[:, j] = np.clip(np.round(moved, decimals(high - low) + 9), low, high)
    return X


def _width(feature):
    low, high = feature if isinstance(feature, tuple) else (feature.low, feature.high)
    return high - low
