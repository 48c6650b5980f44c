"""Random points of a polytope."""

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog

# Chains that run side by side, steps before the first point is kept, and steps between two.
_CHAINS, _BURN_IN, _THINNING = 256, 24, 2
# What is no wider than this has no inside.
_FLAT = 1e-12


class Polytope:
    """All points with ``lower <= x <= upper``, ``A @ x <= b`` and ``A_eq @ x == b_eq``.

    Parameters
    ----------
    lower, upper : ndarray of shape (d,)
        Equal where a coordinate is fixed.
    A : ndarray of shape (k, d)
    b : ndarray of shape (k,)
    A_eq : ndarray of shape (m, d)
    b_eq : ndarray of shape (m,)

    Attributes
    ----------
    is_empty : bool
        Whether there is no such point.
    is_flat : bool
        Whether inequalities leave a set of fewer dimensions than the equations do.
    """

    def __init__(self, lower, upper, A, b, A_eq, b_eq):
        d = len(lower)
        fixed = np.eye(d)[lower == upper]
        A_eq, b_eq = np.vstack([A_eq, fixed]), np.append(b_eq, lower[lower == upper])
        eye = np.eye(d)[lower < upper]
        G = np.vstack([A, eye, -eye])
        h = np.concatenate([b, upper[lower < upper], -lower[lower < upper]])
        # Within the solutions of the equations.
        self._basis = null_space(A_eq) if len(A_eq) else np.eye(d)
        size = np.linalg.norm(G @ self._basis, axis=1)
        # The centre of the largest ball inside.
        found = linprog(
            np.append(np.zeros(d), -1.0),
            A_ub=np.column_stack([G, size]),
            b_ub=h,
            A_eq=np.column_stack([A_eq, np.zeros(len(A_eq))]) if len(A_eq) else None,
            b_eq=b_eq if len(A_eq) else None,
            bounds=[(None, None)] * d + [(0.0, 1.0)],
        )
        self.is_empty = not found.success
        self.is_flat = not self.is_empty and self._basis.shape[1] > 0 and found.x[-1] <= _FLAT
        if not self.is_empty:
            self._centre = found.x[:-1]
            # Less what rounding makes of it.
            self._A = G @ self._basis
            self._b = np.maximum(h - G @ self._centre, 0.0)

    def draw(self, n, rng):
        """Points that are about uniform, by hit-and-run.

        Parameters
        ----------
        n : int
        rng : numpy.random.Generator

        Returns
        -------
        ndarray of shape (n, d)
            Neighbours in it are independent: each is of another chain.
        """
        k = self._basis.shape[1]
        if k == 0:
            return np.tile(self._centre, (n, 1))
        steps = -(-n // _CHAINS)
        y, kept = np.zeros((min(n, _CHAINS), k)), []
        for i in range(_BURN_IN + steps * _THINNING):
            way = rng.standard_normal(y.shape)
            slope, room = way @ self._A.T, self._b - y @ self._A.T
            with np.errstate(divide="ignore", invalid="ignore"):
                reach = room / slope
            last = np.where(slope > 0, reach, np.inf).min(axis=1)
            first = np.where(slope < 0, reach, -np.inf).max(axis=1)
            t = first + rng.random(len(y)) * (last - first)
            y = y + np.where(last > first, t, 0.0)[:, None] * way
            if i >= _BURN_IN and (i - _BURN_IN) % _THINNING == 0:
                kept.append(y)
        return self._centre + np.vstack(kept)[:n] @ self._basis.T
