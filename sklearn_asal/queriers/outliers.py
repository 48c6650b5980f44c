"""Measurements far beyond what all others allow, such as a sensor's 9999."""

import numpy as np

from ..limits import boolean_limits

# How many times the range of the others, and the largest of them in size: zero may be anywhere.
_TIMES, _TIMES_OF_SIZE = 12.0, 4.0
# Fewer distinct values say nothing about a range.
_LEAST = 5
# How many times their range values may grow on the way to inputs far from all others.
_MOST_GROWTH = 100.0


def far_beyond(X, values, n, box):
    """Values told later that are far beyond the first ones.

    That is, beyond their range by more than 12 times this range, and by more than 4 times the
    largest of them in size. Where the input is farther from all of theirs than these are from each
    other, the range counts as larger by the ratio of these distances, for campaigns may begin with
    points close together. Of fewer than five distinct values nothing is said.

    Parameters
    ----------
    X : ndarray of shape (n_observations, n_features)
        Inputs in the user's units.
    values : ndarray of shape (n_observations,)
        NaN where nothing was measured.
    n : int
        The first so many are known.
    box : Box

    Returns
    -------
    list of int
        Positions, from ``n`` on.
    """
    known = values[:n]
    low, high = float(np.fmin.reduce(known)), float(np.fmax.reduce(known))
    reach = max(_TIMES * (high - low), _TIMES_OF_SIZE * max(high, -low))
    least, most = low - reach, high + reach
    # No comparison with NaN is true.
    found = [n + i for i, value in enumerate(values[n:].tolist()) if value < least or value > most]
    return [i for i in found if _is_far(box.to_unit(X), values, slice(n), i)] if found else found


def far_among(X, values, box):
    """Values that are far beyond most of the others.

    As :func:`far_beyond`, were they told in the order of their distances from the median.

    Parameters
    ----------
    X, values, box
        See :func:`far_beyond`.

    Returns
    -------
    list of int
        Positions.
    """
    measured = np.flatnonzero(~np.isnan(values))
    with np.errstate(over="ignore"):
        away = np.abs(values[measured] - np.median(values[measured]))
        order = measured[np.argsort(away, kind="stable")]
        ordered, first = values[order], max((len(order) + 1) // 2, _LEAST)
        low, high = np.minimum.accumulate(ordered), np.maximum.accumulate(ordered)
        reach = np.maximum(_TIMES * (high - low), _TIMES_OF_SIZE * np.maximum(high, -low))
        beyond = (ordered[1:] < (low - reach)[:-1]) | (ordered[1:] > (high + reach)[:-1])
    for k in np.flatnonzero(beyond[first - 1 :]) + first:
        found = far_beyond(X[order], ordered, k, box)
        if found:
            return np.sort(order[found]).tolist()
    return []


def warnings_of(told, has_z, box, n=None, order=None):
    """What to say of measurements that are far beyond the others.

    Parameters
    ----------
    told : Told
    has_z : bool
        Whether there are safety measurements beside the outputs.
    box : Box
    n : int, optional
        The first so many are known, and the others are in question; by default each is.
    order : ndarray of int of shape (n_observations,), optional
        The order in which to count.

    Returns
    -------
    list of str
    """
    X, y, z, _ = told.data
    columns = [("y", y), *_numbers(z)] if has_z else [("y", y)]
    said = []
    for name, values in columns:
        if order is not None:
            found = [order[i] for i in far_beyond(X[order], values[order], n, box)]
        elif n is None:
            found = far_among(X, values, box)
        else:
            found = far_beyond(X, values, n, box)
        if found:
            said.append(_message(name, values, sorted(map(int, found))))
    return said


def _numbers(z):
    """Columns of safety measurements that are numbers, with their names."""
    if z.dtype == np.float64:
        return [("z", z)] if z.ndim == 1 else [(f"z[{j}]", z[:, j]) for j in range(z.shape[1])]
    columns = z.reshape(len(z), -1).T
    numbers = np.flatnonzero(~boolean_limits(z)).tolist()
    return [(f"z[{j}]", columns[j].astype(np.float64)) for j in numbers]


def _message(name, values, found):
    others = np.delete(values, found)
    low, high = np.nanmin(others), np.nanmax(others)
    those = ", ".join(f"{values[i]:.6g}" for i in found[:3]) + ", ..." * (len(found) > 3)
    which = found[0] if len(found) == 1 else found
    return (
        f"{name} of observation {', '.join(map(str, found))} is {those}, far beyond all others, "
        f"which reach from {low:.6g} to {high:.6g}. If that is no measurement, take it back by "
        f"forget({which}), or mend it by correct({which}, {name[0]}=...)."
    )


def _is_far(points, values, known, i):
    """The same of one value, once it lies beyond; ``points`` are inputs of the unit cube."""
    points_, values_ = points[known], values[known]
    measured = ~np.isnan(values_)
    points_, values_ = points_[measured], values_[measured]
    if len(np.unique(values_)) < _LEAST:
        return False
    extent = float(np.linalg.norm(np.ptp(points_, axis=0)))
    away = float(np.linalg.norm(points_ - points[i], axis=1).min())
    growth = 1.0
    if away > extent:
        growth = min(away / extent, _MOST_GROWTH) if extent > 0 else _MOST_GROWTH
    low, high = float(values_.min()), float(values_.max())
    beyond = max(low - values[i], values[i] - high)
    return bool(beyond > _TIMES * growth * (high - low))
