"""The candidate that a network finds most worth to be measured."""

import numpy as np

from ..acquisition import argbest
from ..policies.runtime import LARGEST

# Points that are compared without a pool, where that is not stated; and inputs of the unit cube
# whose outputs matter, as many as in training.
_N_CANDIDATES, _N_TARGETS = 512, 32


def pick(runtime, history, candidates, rng, n=None):
    """The most probable candidate: a point of the unit cube, or the position of a row.

    Parameters
    ----------
    runtime : ALINERuntime
    history : History
    candidates : Candidates or None
        Rows to choose from; all that are available are compared.
    rng : Generator
        For points to choose from where there are no rows.
    n : int or None
        Number of these; None means 512.

    Returns
    -------
    ndarray of shape (n_features,) or int
    """
    positions = None
    if candidates is not None:
        positions = candidates.available
        points = candidates.points[positions]
    elif history.nearby is not None:
        points = history.nearby.draw(n or _N_CANDIDATES, rng, history.feature_rank)
    else:
        points = rng.random((n or _N_CANDIDATES, history.X.shape[1]))
        free = history.is_free(points)
        points = points[free] if free.any() else points
    y = np.clip(history.y, -LARGEST, LARGEST)
    scores = runtime.scores(history.X, y, history.reference(_N_TARGETS), points)
    best = argbest(scores, points)
    return points[best] if positions is None else positions[best]
