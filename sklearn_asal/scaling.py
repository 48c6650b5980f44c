"""Outputs at the scale that policies and models expect: zero mean and unit variance."""

import numpy as np

from .validation import finite_number

# Unit-scale values are kept below this, so that later squares and sums stay finite. As an array,
# for NumPy takes half a microsecond to make one of a plain number.
_LARGEST = np.array(1e100)
_LEAST = -_LARGEST
# Policies see values of about -4 to 4 in training. Beyond 10 a scale is wrong rather than a tail
# long; a spread below 0.02 over half the domain is less than the noise they are trained with.
_TOO_LARGE = 10.0
_TOO_SMALL = 0.02
# Differences of so many units in the last place come from rounding.
_ROUNDING = 64 * np.finfo(np.float64).eps


def standardized(y, loc, scale):
    """Outputs at the scale the policies are trained on: ``(y - loc) / scale``.

    Parameters
    ----------
    y : ndarray of shape (n,)
    loc, scale : float or "auto"
        "auto" takes the mean and the standard deviation of ``y`` itself, see :func:`moments`.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    ValueError
        ``y_loc`` not finite, ``y_scale`` not finite or not positive.
    """
    if is_auto(loc) or is_auto(scale):
        mean, deviation = moments(y)
    loc = mean if is_auto(loc) else finite_number(loc, "y_loc", auto=True)
    scale = deviation if is_auto(scale) else finite_number(scale, "y_scale", True, auto=True)
    return unit_distance(y, loc, scale)


def moments(y):
    """Mean and standard deviation.

    Parameters
    ----------
    y : ndarray of shape (n,)

    Returns
    -------
    mean, deviation : float
        1 in place of a deviation that is nothing but rounding.
    """
    largest = np.abs(y).max() or 1.0  # divided out first: moments of huge values overflow
    parts = y / largest
    mean = np.mean(parts)
    apart = np.abs(parts - mean).max() > _ROUNDING
    return largest * mean, largest * np.std(parts) if apart else 1.0


def root_mean_square(distances, largest):
    """Root mean square of each column, with 1 in place of one that is nothing but rounding.

    Parameters
    ----------
    distances : ndarray of shape (n, k)
    largest : ndarray of shape (k,)
        Size of the numbers that they are differences of.

    Returns
    -------
    ndarray of shape (k,)
    """
    size = np.abs(distances).max(axis=0)
    apart = size > _ROUNDING * largest
    size = np.where(apart, size, 1.0)  # divided out first, as above
    return np.where(apart, size * np.sqrt(np.mean((distances / size) ** 2, axis=0)), 1.0)


def bounded_ratio(values, loc, scale):
    """``(values - loc) / scale``, kept within 1e100.

    Parameters
    ----------
    values, loc, scale : array-like
        Of shapes that go together.

    Returns
    -------
    ndarray
    """
    with np.errstate(over="ignore"):
        ratio = (values - loc) / scale
    # np.clip would take three times as long.
    return np.minimum(np.maximum(ratio, _LEAST, out=ratio), _LARGEST, out=ratio)


def unit_distance(values, loc, scale):
    """As :func:`bounded_ratio`, but zero in columns whose differences are nothing but rounding.

    Models would fit these, however small they are.

    Parameters
    ----------
    values : ndarray of shape (n,) or (n, k)
    loc, scale : float or ndarray of shape (k,)

    Returns
    -------
    ndarray of the same shape
    """
    ratio = bounded_ratio(values, loc, scale)
    if isinstance(loc, float) and loc == 0.0:
        return ratio  # nothing is subtracted, so nothing is rounded
    with np.errstate(over="ignore", under="ignore"):
        apart = np.abs(values - loc).max(axis=0)
        apart = apart > _ROUNDING * np.maximum(np.abs(values).max(axis=0), np.abs(loc))
    return ratio if apart.all() else np.where(apart, ratio, 0.0)


def is_auto(value):
    """Whether a scaling parameter is to be estimated; also right for arrays.

    Parameters
    ----------
    value : object

    Returns
    -------
    bool
    """
    return isinstance(value, str) and value == "auto"


def off_scale(unit, values, centre=None):
    """Whether values are far larger or smaller than unit scale.

    Too small is said of five or more distances from ``centre``. Of values about their mean it is
    said only of ten or more points that reach over half the domain, unless they are all the same:
    points close together may well have equal outputs.

    Parameters
    ----------
    unit : ndarray of shape (n, n_features)
        Inputs at unit scale.
    values : ndarray of shape (n,) or (n, k)
    centre : float, optional
        What the spread is measured from; the mean by default.

    Returns
    -------
    bool
    """
    if np.abs(values).max() > _TOO_LARGE:
        return True
    if len(values) < (10 if centre is None else 5):
        return False
    deviations = values - (values.mean() if centre is None else centre)
    if np.vdot(deviations, deviations) >= values.size * _TOO_SMALL**2:  # the usual
        return False
    if np.abs(deviations).max() <= _ROUNDING * np.abs(values).max():
        return False  # what is constant has no scale
    return centre is not None or np.ptp(unit, axis=0).max() >= 0.5
