"""Rows of another package's data, chosen by a querier."""

import numpy as np
from sklearn.base import clone

from ..pool import CandidatePool
from ..queriers import AmortizedQuerier, AmortizedSafeQuerier


def ready(querier, safe, *points):
    """A clone that can be asked.

    Parameters
    ----------
    querier : querier or None
        None stands for ``AmortizedSafeQuerier()`` or ``AmortizedQuerier()``.
    safe : bool
        Which of the two.
    *points : ndarray of shape (n, n_features)
        Their range is taken for bounds where the querier has none.

    Returns
    -------
    querier
    """
    if querier is None:
        querier = AmortizedSafeQuerier() if safe else AmortizedQuerier()
    querier = clone(querier)
    if points and querier.bounds is None:
        low = np.min([part.min(axis=0) for part in points], axis=0)
        high = np.max([part.max(axis=0) for part in points], axis=0)
        # A feature that is constant in all of them has a width all the same.
        same = low == high
        size = 0.5 * np.maximum(np.abs(low), 1.0)
        querier.set_params(bounds=np.column_stack([low - same * size, high + same * size]).tolist())
    return querier


def chosen(querier, X, y, z, rows, n_rows):
    """The rows that a querier would have measured, of data that other observations are part of.

    Unlike rows of a :class:`~sklearn_asal.CandidatePool`, a row that equals an observation may be
    chosen: other packages take what was measured out of the candidates, and repetitions stay.

    Parameters
    ----------
    querier : querier
    X, y, z : ndarray
        Observations; ``z`` may be None.
    rows : ndarray of shape (n_candidates, n_features)
    n_rows : int

    Returns
    -------
    ndarray of int of shape (n_rows,)
        In the order in which they were chosen.
    """
    # Each observation takes the row that it is, and leaves the others.
    pool = CandidatePool(np.vstack([X, rows]))
    _, indices = querier.query(X, y, z, pool=pool, n_queries=n_rows, return_indices=True)
    return indices - len(X)
