"""Random points of a polytope."""

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog

# Chains that run side by side; steps before the first point is kept, more for each dimension; and
# steps between two.
_CHAINS, _BURN_IN, _MORE, _THINNING = 256, 32, 4, 2
# A set that holds no ball of this radius has no inside.
_FLAT = 1e-9
# What an inequality has to spare somewhere, relative to that, or it is an equation.
_SPARE = 0.1
_EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class Polytope:
    """All points with ``lower <= x <= upper``, ``A @ x <= b`` and ``A_eq @ x == b_eq``.

    Parameters
    ----------
    lower, upper : ndarray of shape (d,)
        Equal where a coordinate is fixed.
    A : ndarray of shape (k, d)
        Rows of about unit length, as those of the next.
    b : ndarray of shape (k,)
    A_eq : ndarray of shape (m, d)
    b_eq : ndarray of shape (m,)

    Attributes
    ----------
    is_empty : bool
        Whether there is no such point.

    Notes
    -----
    Points are drawn by hit-and-run [1]_ within the affine hull of the set. Directions have the
    covariance of the chains' positions, so that long and thin sets are no harder than cubes.

    References
    ----------
    .. [1] Smith (1984). "Efficient Monte Carlo Procedures for Generating Points Uniformly
       Distributed over Bounded Regions".
    """

    def __init__(self, lower, upper, A, b, A_eq, b_eq):
        eye, fixed = np.eye(len(lower)), lower == upper
        self._E, self._e = np.vstack([A_eq, eye[fixed]]), np.append(b_eq, lower[fixed])
        self._G = np.vstack([A, eye[~fixed], -eye[~fixed]])
        self._h = np.concatenate([b, upper[~fixed], -lower[~fixed]])
        radius = self._find_centre()
        self.is_empty = radius is None
        if self.is_empty:
            return
        if radius <= _FLAT and self._basis.shape[1]:
            tight = self._always_tight()
            self._E = np.vstack([self._E, self._G[tight]])
            self._e = np.append(self._e, self._h[tight])
            self._G, self._h = self._G[~tight], self._h[~tight]
            self._find_centre()
        self._A = self._G @ self._basis
        # Less what rounding makes of it.
        self._b = np.maximum(self._h - self._G @ self._centre, 0.0)

    def _find_centre(self):
        """The centre of the largest ball inside; returns its radius, None if there is no point."""
        E, e, G = self._E, self._e, self._G
        self._basis = null_space(E) if len(E) else np.eye(G.shape[1])
        size = np.linalg.norm(G @ self._basis, axis=1)
        found = linprog(
            np.append(np.zeros(G.shape[1]), -1.0),
            A_ub=np.column_stack([G, size]),
            b_ub=self._h,
            A_eq=np.column_stack([E, np.zeros(len(E))]) if len(E) else None,
            b_eq=e if len(E) else None,
            bounds=[(None, None)] * G.shape[1] + [(0.0, 1.0)],
            options=_EXACT,
        )
        if not found.success:
            return None
        self._centre = found.x[:-1]
        if len(E):
            self._centre += np.linalg.lstsq(E, e - E @ self._centre)[0]
        return found.x[-1]

    def _always_tight(self):
        """Which inequalities hold with equality at all points, bool ndarray.

        The sum of what they have to spare is largest, for the whole set scaled up, where each that
        can have something to spare has (Freund, Roundy, Todd, 1985).
        """
        G, h, E, e = self._G, self._h, self._E, self._e
        k, d = G.shape
        found = linprog(
            np.concatenate([np.zeros(d), -np.ones(k), [0.0]]),
            A_ub=np.column_stack([G, np.eye(k), -h]),
            b_ub=np.zeros(k),
            A_eq=np.column_stack([E, np.zeros((len(E), k)), -e]) if len(E) else None,
            b_eq=np.zeros(len(E)) if len(E) else None,
            bounds=[(None, None)] * d + [(0.0, 1.0)] * k + [(1.0, _SPARE / _FLAT)],
            options=_EXACT,
        )
        return found.x[d:-1] < 0.5 if found.success else np.zeros(k, dtype=bool)

    def draw(self, n, rng):
        """Points that are about uniform.

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
        burn_in, steps = _BURN_IN + _MORE * k, -(-n // _CHAINS)
        y, spread, kept = np.zeros((_CHAINS, k)), np.eye(k), []
        for i in range(burn_in + steps * _THINNING):
            if 0 < i <= burn_in // 2:
                spread = _root_of_covariance(y)
            way = rng.standard_normal(y.shape) @ spread
            slope, room = way @ self._A.T, self._b - y @ self._A.T
            with np.errstate(divide="ignore", invalid="ignore"):
                reach = room / slope
            last = np.where(slope > 0, reach, np.inf).min(axis=1)
            first = np.where(slope < 0, reach, -np.inf).max(axis=1)
            t = first + rng.random(len(y)) * (last - first)
            y = y + np.where(last > first, t, 0.0)[:, None] * way
            if i >= burn_in and (i - burn_in) % _THINNING == 0:
                kept.append(y)
        return self._centre + np.vstack(kept)[:n] @ self._basis.T


def _root_of_covariance(y):
    """What turns standard normal rows into rows with the covariance of others."""
    values, vectors = np.linalg.eigh(np.cov(y.T).reshape(y.shape[1], -1))
    least = 1e-16 * values.max()
    return np.sqrt(np.maximum(values, least))[:, None] * vectors.T
