"""Checks of the data that surrogates get."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray

# Sizes of numbers whose squares and their ratios are far from the limits of float64.
SMALLEST, LARGEST = 1e-100, 1e120


def check_data(X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Validate training data.

    Parameters
    ----------
    X : array-like of shape (n, n_features)
    y : array-like of shape (n,)

    Returns
    -------
    X : ndarray of float64 of shape (n, n_features)
    y : ndarray of float64 of shape (n,)
        Numbers below 1e-100 are zero in both.

    Raises
    ------
    ValueError
        Other shapes, no rows, NaN, infinity, or numbers beyond 1e120.
    """
    X, y = check_array(X, "X", 2), check_array(y, "y", 1)
    if len(X) != len(y) or len(X) == 0:
        raise ValueError(
            f"X and y must have one row for each observation, at least one; X has {len(X)}, y has "
            f"{len(y)}."
        )
    X, y = (np.where(np.abs(part) < SMALLEST, 0.0, part) for part in (X, y))
    return X, y


def check_array(data: ArrayLike, name: str, ndim: int) -> FloatArray:
    """Validate an array of numbers.

    Parameters
    ----------
    data : array-like
    name : str
        What errors call it.
    ndim : int

    Returns
    -------
    array : ndarray of float64

    Raises
    ------
    ValueError
        Another number of dimensions, NaN, infinity, or numbers beyond 1e120.
    """
    # scikit-learn's own checks take as long as three evaluations of the likelihood.
    array = np.asarray(data, dtype=np.float64)
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {array.shape}.")
    low, high = array.min(initial=0.0), array.max(initial=0.0)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError(f"{name} contains NaN or infinity; remove such rows.")
    if max(-low, high) > LARGEST:
        raise ValueError(
            f"{name} contains numbers beyond {LARGEST:g}; surrogates expect inputs of the unit "
            "cube and values of unit scale."
        )
    return array


def check_rows(model: Any, X: ArrayLike, name: str, n_features: int) -> FloatArray:
    """Validate inputs that a fitted model is asked about.

    Parameters
    ----------
    model : surrogate
    X : array-like of shape (n, n_features)
    name : str
        What errors call it.
    n_features : int
        Of the data it was fitted on.

    Returns
    -------
    X : ndarray of float64 of shape (n, n_features)

    Raises
    ------
    ValueError
        Another number of features, NaN, infinity, or numbers beyond 1e120.
    """
    X = check_array(X, name, 2)
    if X.shape[1] != n_features:
        raise ValueError(
            f"{name} has {X.shape[1]} features, but {type(model).__name__} was fitted on "
            f"{n_features}."
        )
    return X
