"""Random points of a region, where there is no pool."""

import contextlib
import itertools
import math

import numpy as np

from ..exceptions import PoolExhaustedError
from ..polytope import Polytope
from ..pool import CandidatePool, Candidates, sobol

# Points that are drawn from all over the region, and as many near to observations; fewer where
# a function is asked about each.
_DRAWN, _FEW_DRAWN = 1024, 512
# Points that stand for the whole region.
_N_REFERENCE = 512
# Fewer points that satisfy all conditions, and others are drawn, so often at most.
_ENOUGH, _ROUNDS = 256, 12
# So many points of discrete features are listed.
_LISTED = 20_000
# Of so many times as many points of a box enough may satisfy inequalities.
_TRIED = 4
# What a value is rounded by, relative to its size, and digits of a coordinate that are kept.
_ROUNDING, _DIGITS = 1e-9, 12


class Drawing:
    """Draws points of a region for one query.

    Features are dealt with by their rank, so that their order is of no consequence.

    Parameters
    ----------
    region : Region
    history : History
    rng : numpy.random.Generator
    """

    def __init__(self, region, history, rng):
        self._region, self._history, self._rng = region, history, rng
        self._box, self._constraints = region.box, region.constraints
        self._rank = history.feature_rank
        self._order = np.argsort(self._rank)

    def candidates(self, measured, weights):
        """Points of the region to choose from.

        Parameters
        ----------
        measured : ndarray of shape (n, n_features)
            Points that are not to be repeated if features are discrete, in the user's units.
        weights : ndarray of shape (n_features,) or None
            See :class:`Candidates`.

        Returns
        -------
        Candidates

        Raises
        ------
        ValueError
            There is none.
        PoolExhaustedError
            All are measured.
        """
        region, history = self._region, self._history
        discrete = self._box.has_discrete
        is_finite = discrete and self._box.is_discrete[region.is_free].all()
        listed = self._listed() if is_finite else None
        X = self._found() if listed is None else listed[region.holds(listed, strict=True)]
        X = X[history.is_free(self._box.to_unit(X))] if len(X) else X
        if not len(X):
            away = " and is not near to a run that failed" if history.failed is not None else ""
            raise ValueError(
                f"no point inside bounds was found that satisfies {region.stated}{away}. Check "
                "each of them, or pass a pool."
            )
        found = Candidates(
            CandidatePool(X),
            self._box,
            measured if discrete else measured[:0],
            weights=weights,
            reference=self._reference(X),
        )
        if discrete and not found.n_available:
            points = "points that were found" if listed is None else f"{len(X)} points"
            raise PoolExhaustedError(
                f"all {points} that {region.stated} allow are measured or proposed. Stop here, "
                "relax what is stated, or pass a pool of points to be repeated."
            )
        return found

    def _reference(self, X):
        """Points all over what constraints leave, the same each time."""
        region, known = self._region, self._region.known
        if known.reference is None or not np.array_equal(known.reference[0], self._rank):
            # Whatever a step, or features that are fixed now, leave.
            everything, points = type(region)(self._box, known), ()
            with contextlib.suppress(ValueError):  # they may be all that can be drawn
                points = Drawing(everything, self._history, np.random.default_rng(0)).spread()
            if not len(points):
                return self._box.to_unit(X[:_N_REFERENCE])
            known.reference = self._rank, points
        return known.reference[1]

    def spread(self):
        """Points all over the region, ``(k, n_features)`` in the unit cube."""
        if self._constraints is None:
            points = sobol(_N_REFERENCE, len(self._rank))[:, self._rank]
            return self._box.to_unit(self._box.from_unit(points))
        found = np.empty((0, len(self._rank)))
        for _ in range(_ROUNDS):
            found = np.vstack([found, self._measurable(self._all_over(_N_REFERENCE))])
            if len(found) >= _N_REFERENCE:
                break
        return self._box.to_unit(found[:_N_REFERENCE])

    def _listed(self):
        """All points of discrete features, in the user's units; None where they are too many."""
        box, fixed = self._box, self._region.fixed
        limits = zip(range(len(self._rank)), self._region.low, self._region.high, strict=True)
        limits = [limit for limit in limits if limit[0] not in fixed]
        if math.prod(box.n_values(*limit) for limit in limits) > _LISTED:
            return None
        values = {limit[0]: box.values(*limit) for limit in limits}
        values |= {j: [value] for j, value in fixed.items()}
        X = itertools.product(*(values[j] for j in range(len(self._rank))))
        return self._sorted(np.array(list(X), dtype=float).reshape(-1, len(self._rank)))

    def _found(self):
        """Random points of the region, in the user's units."""
        constraints, history = self._constraints, self._history
        if constraints is not None and constraints.has_curved_equation:
            raise ValueError(
                "constraints: a NonlinearConstraint with lb == ub is an equation, and no points "
                "that satisfy it can be drawn. Pass a pool of points that do."
            )
        n = _FEW_DRAWN if constraints is not None and constraints.nonlinear else _DRAWN
        found = np.empty((0, len(self._rank)))
        for i in range(_ROUNDS):
            points = self._all_over(n)
            # Without limits near points are drawn only if there are few others.
            if i or history.margin is not None:
                points = np.vstack([points, *self._near(points)])
            found = np.vstack([found, self._measurable(points)])
            if len(found) >= _ENOUGH:
                break
        apart = history.is_apart(self._box.to_unit(found)) if len(found) else found
        found = found[apart] if np.any(apart) else found
        return self._sorted(found) if self._box.has_discrete else found

    def _near(self, points):
        """Points near to observations, of several kinds."""
        n, history, certified = len(points), self._history, self._region.certified
        near = [self._between(points)]
        if certified is not None:
            X = certified.draw(n, self._rng, self._rank)
            near.append(self._box.to_unit(X.clip(self._box.lower, self._box.upper)))
        if history.nearby is not None:
            near.append(history.nearby.draw(n, self._rng, self._rank))
        return near

    def _between(self, points):
        """Points on the way from an observation, at the fixed values, to each of others."""
        region, X = self._region, self._history.observed.X.clip(0.0, 1.0)
        X[:, ~region.is_free] = region.lower[~region.is_free]
        X = X[((X >= region.lower) & (X <= region.upper)).all(axis=1)]
        if not len(X):
            return points[:0]
        X = X[np.lexsort(X[:, self._order].T)]  # nothing depends on the order of observations
        origin = X[self._rng.integers(len(X), size=len(points))]
        return origin + self._rng.random((len(points), 1)) ** 2 * (points - origin)

    def _all_over(self, n):
        """Points of the unit cube all over the limits and what linear constraints leave."""
        constraints = self._constraints
        if constraints is None or not len(constraints.A):
            return self._of_box(n)
        if not constraints.is_equation.any():
            points = self._of_box(_TRIED * n)
            points = points[constraints.linear_hold(self._box.from_unit(points))]
            if len(points) >= n:
                return points[:n]
        polytope = self._polytope()
        return self._of_box(n) if polytope is None else polytope.draw(n, self._rng)[:, self._rank]

    def _of_box(self, n):
        lower, upper = self._region.lower, self._region.upper
        points = self._rng.random((n, len(self._rank)))[:, self._rank]
        return lower + points * (upper - lower)

    def _measurable(self, points):
        """Points moved to values that features take, in the user's units; less all outside."""
        X = self._box.from_unit(points)
        for j, value in self._region.fixed.items():
            X[:, j] = value
        if self._constraints is not None and self._constraints.is_equation.any():
            X = self._balanced(X)
        return X[self._region.holds(X, strict=True)]

    def _balanced(self, X):
        """Points moved so that equations hold with discrete features at their values."""
        box, is_free, equations = self._box, self._region.is_free, self._constraints.is_equation
        A, value = self._constraints.A[equations], self._constraints.low[equations]
        free = self._order[is_free[self._order]]
        smooth = free[~(box.is_discrete | box.is_log)[free]]
        if len(smooth):
            X[:, smooth] += (value - X @ A.T) @ np.linalg.pinv(A[:, smooth]).T
        alone = np.flatnonzero((A[:, smooth] == 0).all(axis=1))
        if len(alone) == 1:
            # One of its features, which are discrete, has to give.
            row, value = A[alone[0]], value[alone[0]]
            some = free[row[free] != 0]
            if len(some):
                solved = some[self._rng.integers(len(some), size=len(X))]
                X[np.arange(len(X)), solved] += (value - X @ row) / row[solved]
        if box.has_discrete:
            # Rounding aside, a feature is at one of its values, or the point is left out.
            snapped = box.snapped(X)
            close = np.abs(snapped - X) <= _ROUNDING * np.maximum(np.abs(X), box.width)
            X = np.where(close & is_free, snapped, X)
            # Where equations leave few points each is to be found with the same digits.
            low, width = box.lower[smooth], box.width[smooth]
            X[:, smooth] = low + ((X[:, smooth] - low) / width).round(_DIGITS) * width
        return np.clip(X, box.lower, box.upper)

    def _polytope(self):
        """The linear constraints in the unit cube, its features by rank; None without any."""
        region, known = self._region, self._region.known.polytope
        key = region.lower.tobytes(), region.upper.tobytes(), self._rank.tobytes()
        if known is None or known[0] != key:
            known = region.known.polytope = key, self._made_polytope()
        return known[1]

    def _made_polytope(self):
        region, box, stated, order = self._region, self._box, self._constraints, self._order
        is_free = region.is_free[order]
        # In this order from the start, for the last digit of a sum depends on it.
        A, low, high, equation = stated.A[:, order], stated.low, stated.high, stated.is_equation
        curved = (A[:, box.is_log[order] & is_free] != 0).any(axis=1)
        if (curved & equation).any():
            raise ValueError(
                "constraints: an equation has a feature of a logarithmic scale, and no points that "
                "satisfy it can be drawn. Pass a pool of points, or state the bounds of the "
                "feature as a pair."
            )
        A, low, high, equation = (part[~curved] for part in (A, low, high, equation))
        if not len(A):
            return None
        start = np.where(is_free, box.lower[order], region.low[order])
        low, high = low - A @ start, high - A @ start
        A = A * (box.width[order] * is_free)
        size = np.linalg.norm(A, axis=1)
        size[size == 0] = 1.0
        A, low, high = A / size[:, None], low / size, high / size
        G, h = np.vstack([A, -A]), np.append(high, -low)
        stays = np.tile(~equation, 2) & (h < np.inf)
        parts = *_in_order(G[stays], h[stays]), *_in_order(A[equation], low[equation])
        found = Polytope(region.lower[order], region.upper[order], *parts)
        if found.is_empty:
            raise ValueError(
                f"no point inside bounds satisfies {region.stated}. Check the signs and units of "
                "the constraints."
            )
        return found

    def _sorted(self, X):
        """Different points in an order that does not depend on that of the features."""
        return np.unique(X[:, self._order], axis=0)[:, self._rank]


def _in_order(A, b):
    """Rows of linear constraints in an order that depends on their numbers alone."""
    rows = np.unique(np.column_stack([A, b]), axis=0)
    return rows[:, :-1], rows[:, -1]
