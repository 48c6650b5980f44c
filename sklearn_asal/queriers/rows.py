"""Which row of a pool is taken near to a policy's proposal."""

import math

import numpy as np

from ..acquisition import TIE, argbest
from ..surrogates import EnsembleGP

# A proposal has so many rows to choose from, where that is not stated.
_N_CANDIDATES = 16
# Of so many nearest rows per candidate, every so many-th is a candidate: neighbours are alike.
_SPACING = 8
# Where no row is safe enough, candidates are spread over so many times as many nearest rows,
_WIDER = 8
# until there are this many; after that, so many rows from all over the pool are compared.
_FARTHEST, _ALL_OVER = 8192, 2048
# With more observations than these, models of rows near a point use so many nearest ones.
_MANY, _NEAREST = 512, 256


def uncertain_row(candidates, point, history, policy, n):
    """Of the rows near to a proposal the one whose output is least certain.

    Parameters
    ----------
    candidates : Candidates
    point : ndarray of shape (n_features,)
        The proposal.
    history : History
    policy : Policy
        Its training says which lengthscales are typical.
    n : int or None
        Rows that are compared; None means 16.

    Returns
    -------
    int
        Its position.
    """
    positions = next(_rows_near(candidates, point, n))
    if len(positions) == 1:
        return positions[0]
    points = candidates.points[positions]
    model = _model_near(point, "output", history, policy)
    _, std = model.probability_and_std(points, history.pending)
    return positions[argbest(std, points)]


def safe_row(candidates, point, history, policy, n, gamma):
    """Of the rows near to a proposal, the safe enough one whose margin is least certain.

    Parameters
    ----------
    candidates, point, history, policy, n
        See :func:`uncertain_row`.
    gamma : float
        The tolerated probability of being unsafe.

    Returns
    -------
    position : int
        Of the safest row where none is safe enough.
    p_safe : float or None
        Its probability of being safe in that case.
    """
    model, most = _model_near(point, "margin", history, policy), -1.0
    for positions in _rows_near(candidates, point, n):
        points = candidates.points[positions]
        p_safe, std = model.probability_and_std(points, history.pending)
        enough = np.flatnonzero(p_safe >= 1.0 - gamma)
        if len(enough):
            if n == 1 or len(enough) == 1:
                return positions[enough[0]], None
            return positions[enough[argbest(std[enough], points[enough])]], None
        safest = argbest(p_safe, points)
        if p_safe[safest] > most + TIE:
            most, taken = p_safe[safest], positions[safest]
    return taken, float(most)


def update_models(history, policy):
    """Tell new observations to the models of the queries before.

    Parameters
    ----------
    history : History
    policy : Policy
    """
    if len(history.X) <= _MANY:
        for role, (made_for, _) in list(history.cache.models.items()):
            if made_for is policy:
                _model(role, _known(role, history), policy)


def _rows_near(candidates, point, n):
    """Positions of the rows that are compared, then of ever more where none of them will do."""
    n, m = n or _N_CANDIDATES, len(candidates)
    # In a line the nearest row will do; in more dimensions there are more to choose from.
    k = min(4 ** (len(point) - 1), n * _SPACING) if n > 1 else 1
    # One candidate means the nearest safe row, which is not to be missed by much.
    n = n if n > 1 else _SPACING**2
    while True:
        yield candidates.nearest(point, k)[:: math.ceil(k / n)]
        if k >= min(m, _FARTHEST):
            break
        k *= _WIDER
    positions = candidates.subsample(_ALL_OVER)
    positions = positions[candidates.is_available(positions)]
    if len(positions):
        yield candidates.nearest_first(positions, point)


def _model_near(point, role, history, policy):
    """What is known of rows near a point."""
    observed = _known(role, history.observed)
    if len(observed.X) <= _MANY:
        return _model(role, observed, policy)
    model = _ensemble(role, policy)
    away = np.square((observed.X - point) / model.lengthscale).sum(axis=1)
    near = np.lexsort((*observed.X.T, away))[:_NEAREST]
    return model.fit(observed.X[near], _values(role, observed)[near])


def _model(role, history, policy):
    """A model of outputs ("output") or of worst margins ("margin")."""
    models = history.cache.models
    known = models.get(role)
    if known is None or known[0] is not policy:
        known = models[role] = policy, _ensemble(role, policy)
    return known[1].update(history.X, _values(role, history))


def _known(role, history):
    """The observations that say something; margins all have."""
    return history.complete if role == "output" else history


def _values(role, history):
    return history.y if role == "output" else history.worst_margin


def _ensemble(role, policy):
    """Gaussian processes that are typical of what a policy was trained on."""
    lengthscale = policy.lengthscale if role == "output" else policy.safety_lengthscale
    return EnsembleGP(lengthscale, policy.noise_std)
