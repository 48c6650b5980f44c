"""Which rows of a pool are compared, and what they are worth."""

import numpy as np

# Of so many rows of a pool the best one is taken, by number of features: the more there are, the
# farther is the nearest from the proposal anyway.
_NEAR = {1: 1, 2: 4}
# From three features on so many of every eighth row: these are spread as all rows are, and most
# campaigns need no others. Smaller pools have none to spare, and some campaigns use them up: then
# every eighth of the nearest rows.
_MANY, _THINNED = 16, 8
_SPARE = 512
# Where none of these is safe enough, the next look is at so many,
_THEN = 64
# and the last one at so many: of a small pool all.
_LAST = 2048
# Variances that differ by less are those of equal rows.
_TIED = 1e-9

# From so many features on a policy's proposal is no better a place to look than others.
_WIDE = 6
# So many rows from all over a pool are compared, other ones at each query: of rows that are always
# the same the one that leads on may be missing.
_CANDIDATES = 256
# By what they tell of so many others, which stay the same.
_REFERENCES = 512
# A row that may be safe with a smaller probability is not worth to be known.
_POSSIBLY = 0.16
# What a row is worth falls by this factor (its logarithm) where its risk is the one allowed,
_AVERSION = 0.35
# and a row of so many times that risk is never taken.
_BEYOND = 6.0
_GOLDEN = 0.5 * (5**0.5 - 1)
# In place of a gain of nothing, whose logarithm is infinite.
_NOTHING = 1e-30


def first_look(view, n_features):
    """Of how many rows of a pool the best is taken, see :func:`look`."""
    n = _NEAR.get(n_features)
    if n:
        return n, 0, 1
    if view.n_rows >= _SPARE and view.has_left(_MANY, 1):
        return _MANY, 1, 1
    return _MANY * _THINNED, 0, _THINNED


def look(view, point, n, selection, step):
    """Every so many of the nearest rows of a selection, see :meth:`PoolView.near`."""
    return view.near(point, n, selection)[1][::step]


def looks(view, n_features, uncertain):
    """Looks for a safe row one after the other, see :func:`look`."""
    first = first_look(view, n_features) if uncertain else (_MANY, 0, 1)
    # Of those with as many rows as the last look takes, this selection reaches the farthest.
    enough = (i for i in range(view.n_selections) if view.has_left(_LAST, i))
    widest = max(enough, default=0)
    selections = [0]
    if view.n_rows > _LAST:
        _, start, _ = first
        selections = [*range(start, view.n_selections), *range(start)]
    return [first, *((_THEN, selection, 1) for selection in selections), (_LAST, widest, 1)]


def farther_first(looks):
    """The nearest one only where the others find nothing."""
    nearest, *others, last = looks
    return [*others, nearest, last]


def first_of_the_largest(values):
    """Position of the first of those that are largest but for rounding."""
    return np.flatnonzero(values >= values.max() - _TIED)[0]


def is_wide(n_features):
    """Whether rows from all over a pool are compared by default."""
    return n_features >= _WIDE


def candidates(view, n_observed):
    """Rows that are compared; others after another observation."""
    return view.spread(_CANDIDATES, n_observed * _GOLDEN % 1)


def references(view):
    """Rows that measurements are to tell of, always the same."""
    return view.spread(_REFERENCES)


def informative(view, rows, gain, price=0.0):
    """The row that is worth most, or None if none is left.

    Parameters
    ----------
    view : PoolView
    rows : ndarray of shape (k, n_features)
    gain : ndarray of shape (k,)
        What measuring each would tell.
    price : ndarray of shape (k,), default=0.0
        What the logarithm of the gain is lessened by.

    Returns
    -------
    ndarray of shape (n_features,) or None
    """
    value = np.log(gain + _NOTHING) - price
    while len(rows):
        best = first_of_the_largest(value)
        if view.is_left(rows[best]):
            return rows[best]
        rows, value = np.delete(rows, best, axis=0), np.delete(value, best)
    return None


def may_be_safe(positive):
    """Which rows are worth to be known, by their probability to be safe."""
    return (positive >= _POSSIBLY).astype(float)


def risky(safe, level):
    """Whether to take each row at all, and what the logarithm of its gain is lessened by.

    Parameters
    ----------
    safe : ndarray of shape (m,)
        Probability to be safe.
    level : float
        The share of queries that should be.

    Returns
    -------
    too_risky : bool ndarray of shape (m,)
    price : ndarray of shape (m,)
    """
    risk = (1.0 - safe) / max(1.0 - level, 1e-6)
    return risk > _BEYOND, _AVERSION * risk
