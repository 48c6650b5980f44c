"""Where alone a querier proposes after ``max_violations`` violations."""

import numpy as np
from scipy.spatial import cKDTree

from ..acquisition import argbest

# Radius about a safe measurement in the unit cube, for one feature.
_RADIUS = 0.05
# What counts as inside the bounds, and as within the radius, by rounding.
_INSIDE, _WITHIN = 1e-6, 1 + 1e-9


class Neighbourhood:
    """All points of the unit cube near to a measurement that was safe.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        Inputs that were measured as safe, at least one.

    Attributes
    ----------
    centres : ndarray of shape (n_centres, n_features)
        Those inside the unit cube; of inputs all outside, the points of the cube nearest to them.
    radius : float
        ``0.05 * sqrt(n_features)``.
    """

    def __init__(self, X):
        inside = ((X >= -_INSIDE) & (X <= 1 + _INSIDE)).all(axis=1)
        centres = np.clip(X[inside] if inside.any() else X, 0.0, 1.0)
        # Nothing may depend on the order of the observations.
        self.centres = centres[np.lexsort(centres.T)]
        self.radius = _RADIUS * np.sqrt(X.shape[1])
        self._tree = cKDTree(self.centres)

    def holds(self, points):
        """Which points lie in it.

        Parameters
        ----------
        points : ndarray of shape (n, n_features)

        Returns
        -------
        bool ndarray of shape (n,)
        """
        return self._tree.query(points)[0] <= self.radius * _WITHIN

    def nearest(self, point):
        """The centre nearest to a point.

        Parameters
        ----------
        point : ndarray of shape (n_features,)

        Returns
        -------
        ndarray of shape (n_features,)
        """
        away = np.linalg.norm(self.centres - point, axis=1)
        return self.centres[argbest(-away, self.centres)]

    def moved(self, point):
        """A point, moved straight towards the nearest centre until it lies in here.

        Parameters
        ----------
        point : ndarray of shape (n_features,)

        Returns
        -------
        ndarray of shape (n_features,)
        """
        if self.holds(point[None])[0]:
            return point
        centre = self.nearest(point)
        return centre + (point - centre) * (self.radius / np.linalg.norm(point - centre))

    def draw(self, n, rng, rank, part=1.0):
        """Random points about random centres.

        Parameters
        ----------
        n : int
        rng : numpy.random.Generator
        rank : ndarray of int of shape (n_features,)
            Of the features, so that their order is of no consequence.
        part : float, default=1.0
            Of the radius.

        Returns
        -------
        ndarray of shape (n, n_features)
        """
        D = len(rank)
        centres = self.centres[np.lexsort(self.centres[:, np.argsort(rank)].T)]
        centres = centres[rng.integers(len(centres), size=n)]
        steps = rng.standard_normal((n, D))[:, rank]
        lengths = part * self.radius * rng.random((n, 1)) ** (1 / D)
        steps *= lengths / np.linalg.norm(steps, axis=1, keepdims=True)
        # Cut off at the bounds a point comes nearer to its centre.
        return np.clip(centres + steps, 0.0, 1.0)

    def about(self, point, spread):
        """Points of the unit cube, mapped into here, about the centre nearest to a point.

        Parameters
        ----------
        point : ndarray of shape (n_features,)
        spread : ndarray of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, n_features)
        """
        half = self.radius / np.sqrt(len(point))
        return np.clip(self.nearest(point) + half * (2 * spread - 1), 0.0, 1.0)

    def rows(self, candidates):
        """The available rows of a pool that lie in here; if there are none, the nearest one.

        Parameters
        ----------
        candidates : Candidates
            At least one is available.

        Returns
        -------
        ndarray of int of shape (k,)
            Their positions.
        """
        positions = candidates.within(self.centres, self.radius * _WITHIN)
        positions = positions[self.holds(candidates.points[positions])]
        positions = positions[candidates.is_available(positions)]
        if len(positions):
            return positions
        positions = candidates.available
        points = candidates.points[positions]
        return positions[[argbest(-self._tree.query(points)[0], points)]]
