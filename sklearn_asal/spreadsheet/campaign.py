"""What a querier proposes for the experiments of a table."""

from typing import Any

import numpy as np

from ..constraints import Constraints
from ..policies.registry import infers
from ..queriers import AmortizedQuerier, AmortizedSafeQuerier
from ..queriers.cut_short import OK
from .flags import thresholds
from .proposals import rounded

# Rounding moves a proposal by this part of a largest step at most.
_COARSE = 0.05


def propose(stated, seen, n, pool=None):
    """The next experiments.

    Parameters
    ----------
    stated : Stated
    seen : Observed
    n : int
        How many.
    pool : ndarray of shape (n_candidates, n_features) or None
        The only points that may be proposed.

    Returns
    -------
    X : ndarray of shape (n, n_features)
        Rounded, but for rows of the pool.
    indices : ndarray of int of shape (n,) or None
        Rows of the pool.
    report : Report

    Raises
    ------
    ValueError
        What is stated leaves nothing to propose.
    """
    querier = querier_of(stated)
    _tell(querier, seen)
    last = querier.X_[-1]
    if stated.max_step and (last != seen.X[-1]).any():
        raise ValueError(
            "--max-step begins at the last row that was measured, and for that a row before it "
            "needs its output, too, where other runs were cut short. Leave --max-step out for now."
        )
    X = querier.query(
        n_queries=n,
        pool=pool,
        fixed=stated.fixed or None,
        pending=seen.pending if len(seen.pending) else None,
        return_indices=pool is not None,
    )
    if pool is not None:
        X, indices = X
        return X, indices, querier.assess(X)
    names = list(stated.bounds)
    step = np.array([stated.max_step.get(name, np.inf) for name in names])
    fixed = {names.index(name): value for name, value in stated.fixed.items()}
    constraints = Constraints(stated.constraints, len(names)) if stated.constraints else None

    def allowed(near):
        # Not so coarse that short steps come to nothing.
        return _within_steps(near, last, step) and (np.abs(near - X) <= _COARSE * step).all()

    near = rounded(X, list(stated.bounds.values()), fixed, constraints, allowed)
    return near, None, querier.assess(near)


def querier_of(stated):
    """The querier, without data.

    Parameters
    ----------
    stated : Stated

    Returns
    -------
    AmortizedQuerier or AmortizedSafeQuerier
    """
    params: dict[str, Any] = {"bounds": stated.bounds}
    if stated.constraints:
        params["constraints"] = stated.constraints
    if stated.max_step:
        params["max_step"] = stated.max_step
    by_name = not infers(stated.policy)
    if by_name:
        params |= {"y_loc": "auto", "y_scale": "auto"}
    if not stated.limits:
        return AmortizedQuerier(stated.policy, **params)
    if by_name:
        params["z_scale"] = "auto"
    threshold, when = thresholds(stated.limits)
    return AmortizedSafeQuerier(
        stated.policy,
        safety_threshold=threshold,
        safe_when=when,
        gamma=stated.gamma,
        **params,
    )


def _tell(querier, seen):
    """Start the campaign; what was measured last is told last, for steps begin there."""
    first = seen.status == OK
    if first[-1] and not first.all() and np.isfinite(seen.y[:-1][first[:-1]]).any():
        first[-1] = False
    first, rest = np.flatnonzero(first), np.flatnonzero(~first)

    def z(rows):
        return None if seen.z is None else seen.z[rows]

    querier.fit(seen.X[first], seen.y[first], z(first))
    if len(rest):
        statuses = seen.status[rest].tolist()
        querier.tell(seen.X[rest], seen.y[rest], z(rest), status=statuses)


def _within_steps(X, last, step):
    """Whether each point is within one step of the one before."""
    change = np.abs(np.diff(np.vstack([last, X]), axis=0))
    return bool((change <= step * (1 + 1e-9)).all())
