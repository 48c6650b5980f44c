"""Where alone a query may propose: what bounds, constraints, steps and slopes leave."""

import itertools

import numpy as np

from ..constraints import Constraints
from ..exceptions import PoolExhaustedError
from ..polytope import Polytope
from ..pool import CandidatePool, Candidates, sobol
from ..space import Space, by_feature

# Points that are drawn from all over the region, and as many near to observations; fewer where
# a function is asked about each.
_DRAWN, _FEW_DRAWN = 2048, 512
# Points that stand for the whole region.
_N_REFERENCE = 512
# Fewer points that satisfy all conditions, and others are drawn, so often at most.
_ENOUGH, _ROUNDS = 256, 12
# So many points of discrete features are listed.
_LISTED = 20_000


class Known:
    """What is worked out once of the constraints of a campaign; in its cache.

    Parameters
    ----------
    stated : object
        The querier's parameter.
    box : Box

    Attributes
    ----------
    constraints : Constraints or None
    reference : ndarray of shape (n, n_features) or None
        Points all over what they leave, in the unit cube.
    allowed : tuple (ndarray, bool ndarray) or None
        The rows of the last pool, and which of its rows satisfy them.
    """

    def __init__(self, stated, box):
        # The objects themselves, so that their identity stays theirs.
        self._key = stated, *(stated if isinstance(stated, (list, tuple)) else ()), box
        self.constraints = None if stated is None else Constraints(stated, len(box.lower))
        self.reference = self.allowed = None

    def is_of(self, stated, box):
        """Whether it is about the same objects."""
        key = stated, *(stated if isinstance(stated, (list, tuple)) else ()), box
        return len(key) == len(self._key) and all(map(lambda a, b: a is b, key, self._key))


class Offer:
    """What a query may propose where not everything may be.

    Parameters
    ----------
    region_from : callable
        Of the last point, in the user's units, a :class:`Region`.
    measured : ndarray of shape (n, n_features)
        Points that are measured or pending, in the user's units.
    last : ndarray of shape (n_features,)
        The point that a step begins at.
    weights : ndarray of shape (n_features,) or None
        See :class:`Candidates`.
    """

    def __init__(self, region_from, measured, last, weights):
        self._region_from, self._measured = region_from, measured
        self._last, self._weights = last, weights

    def candidates(self, rows, history, seed):
        """What may be proposed now.

        Parameters
        ----------
        rows : Candidates or None
            Of the pool, where there is one.
        history : History
        seed : int

        Returns
        -------
        Candidates
        """
        region = self._region_from(self._last)
        if rows is not None:
            return rows.only(region.rows(rows))
        # Others than those of the querier's own generator.
        rng = np.random.default_rng([seed, history.n_points, 1])
        return region.draw(history, self._measured, self._weights, rng)

    def after(self, x):
        """The same after one more proposal.

        Parameters
        ----------
        x : ndarray of shape (n_features,)
            In the user's units.

        Returns
        -------
        Offer
        """
        return Offer(self._region_from, np.vstack([self._measured, x]), x, self._weights)


def largest_step(max_step, names, n_features):
    """The largest change of each feature.

    Parameters
    ----------
    max_step : float, array-like of shape (n_features,), or dict
        In the user's units; features that a dict leaves out may change at will.
    names, n_features
        See :func:`~sklearn_asal.space.by_feature`.

    Returns
    -------
    ndarray of shape (n_features,)

    Raises
    ------
    ValueError, TypeError
        Not positive, or see :func:`~sklearn_asal.space.by_feature`.
    """
    step = np.full(n_features, np.inf)
    for j, value in by_feature(max_step, names, n_features, "max_step").items():
        if not value > 0:
            raise ValueError(f"max_step of feature {j} must be positive, got {value:g}.")
        step[j] = value
    return step


class Region:
    """Where alone a query may propose.

    Parameters
    ----------
    box : Box
    known : Known
    lower, upper : ndarray of shape (n_features,) or None
        Narrower limits in the unit cube, such as one step allows; None for none.
    fixed : dict of int to float
        Features at one value, in the user's units.
    certified : Certified or None
        What slopes that are known guarantee to be safe.
    """

    def __init__(self, box, known, lower=None, upper=None, fixed=None, certified=None):
        D = len(box.lower)
        self.box, self.known, self.certified = box, known, certified
        self.constraints = known.constraints
        self.lower = np.zeros(D) if lower is None else lower.copy()
        self.upper = np.ones(D) if upper is None else upper.copy()
        self.fixed = {} if fixed is None else fixed
        self._names = [
            name
            for name, there in (
                ("constraints", self.constraints is not None),
                ("max_step", lower is not None),
                ("fixed", bool(self.fixed)),
                ("lipschitz", certified is not None),
            )
            if there
        ]
        for j, value in self.fixed.items():
            row = np.where(np.arange(D) == j, value, box.lower)
            self.lower[j] = self.upper[j] = box.to_unit(row[None])[0, j]

    @classmethod
    def of(cls, box, known, last, max_step=None, fixed=None, certified=None):
        """The region that parameters of a querier leave.

        Parameters
        ----------
        box, known, fixed, certified
            See the class.
        last : ndarray of shape (n_features,)
            The point that a step begins at, in the user's units.
        max_step : ndarray of shape (n_features,) or None
            The largest change of each feature, in the user's units.

        Returns
        -------
        Region

        Raises
        ------
        ValueError
            The last point lies farther outside the bounds than one step, or the region is empty.
        """
        if max_step is None:
            return cls(box, known, fixed=fixed, certified=certified)
        low, high = np.maximum(last - max_step, box.lower), np.minimum(last + max_step, box.upper)
        if (low > high).any():
            j = np.flatnonzero(low > high)[0]
            raise ValueError(
                f"max_step: the last point has {last[j]:g} in feature {j}, which is more than one "
                f"step of {max_step[j]:g} outside its bounds. Measure a point inside, or raise "
                "max_step."
            )
        for j, value in ({} if fixed is None else fixed).items():
            if not low[j] <= value <= high[j]:
                raise ValueError(
                    f"fixed: {value:g} in feature {j} is more than one step of {max_step[j]:g} "
                    f"from the last point, which has {last[j]:g}."
                )
        return cls(box, known, *box.to_unit(np.array([low, high])), fixed, certified)

    def holds(self, X, strict=False):
        """Which points lie in the region.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
            In the user's units.
        strict : bool, default=False
            See :meth:`Constraints.holds`.

        Returns
        -------
        bool ndarray of shape (n,)
        """
        enough = self._within(X)
        if self.constraints is not None:
            enough[enough] = self.constraints.holds(X[enough], strict)
        return enough

    def _within(self, X):
        """Which points satisfy all but the constraints."""
        points, slack = self.box.to_unit(X), 1e-9
        enough = ((points >= self.lower - slack) & (points <= self.upper + slack)).all(axis=1)
        if isinstance(self.box, Space):
            enough &= self.box.holds(X)
        if self.certified is not None:
            enough[enough] = self.certified.holds(X[enough])
        return enough

    def rows(self, candidates):
        """The available rows of a pool that lie in the region.

        Parameters
        ----------
        candidates : Candidates

        Returns
        -------
        ndarray of int of shape (k,)
            Their positions.

        Raises
        ------
        PoolExhaustedError
            There is none.
        """
        positions = candidates.available
        if self.constraints is not None:
            allowed = self.known.allowed
            if allowed is None or allowed[0] is not candidates.points:
                rows = candidates.raw(np.arange(len(candidates)))
                allowed = self.known.allowed = candidates.points, self.constraints.holds(rows)
            positions = positions[allowed[1][positions]]
        positions = positions[self._within(candidates.raw(positions))]
        if not len(positions):
            raise PoolExhaustedError(
                f"no row of the pool that is left satisfies {self._stated()}. Pass other rows, or "
                "relax what is stated."
            )
        return positions

    def draw(self, history, measured, weights, rng):
        """Points of the region to choose from.

        Parameters
        ----------
        history : History
        measured : ndarray of shape (n, n_features)
            Points that are not to be repeated if features are discrete, in the user's units.
        weights : ndarray of shape (n_features,) or None
            See :class:`Candidates`.
        rng : numpy.random.Generator

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
        X = self._listed()
        if X is None:
            found, polytope = [], self._polytope()
            for _ in range(_ROUNDS):
                found.append(self._drawn(history, polytope, rng))
                if sum(map(len, found)) >= _ENOUGH:
                    break
            X = np.unique(np.vstack(found), axis=0)
        else:
            X = X[self.holds(X, strict=True)]
        free = X[history.is_free(self.box.to_unit(X))] if len(X) else X
        if not len(free):
            raise ValueError(
                f"no point inside bounds was found that satisfies {self._stated()}. Check each of "
                "them, or pass a pool."
            )
        pool, reference = CandidatePool(free), self._reference()
        candidates = Candidates(pool, self.box, measured, weights=weights, reference=reference)
        if not candidates.n_available:
            raise PoolExhaustedError(
                f"all {len(free)} points that {self._stated()} allow are measured or proposed. "
                "Stop here, or relax what is stated."
            )
        return candidates

    def _reference(self):
        """Points all over what constraints leave, the same each time."""
        if self.known.reference is None:
            self.known.reference = Region(self.box, self.known)._spread(_N_REFERENCE)
        return self.known.reference

    def _spread(self, n):
        if self.constraints is None:
            return self.box.to_unit(self.box.from_unit(sobol(n, len(self.lower))))
        rng, polytope, found = np.random.default_rng(0), self._polytope(), []
        for _ in range(_ROUNDS):
            found.append(self._measurable(self._all_over(n, polytope, rng), rng))
            if sum(map(len, found)) >= n:
                break
        return self.box.to_unit(np.vstack(found)[:n])

    def _stated(self):
        return " and ".join(self._names) or "bounds"

    def _drawn(self, history, polytope, rng):
        """Some points of the region, in the user's units."""
        n = _FEW_DRAWN if self.constraints is not None and self.constraints.nonlinear else _DRAWN
        points = self._all_over(n, polytope, rng, history.feature_rank)
        near = [self._between(history, points, rng)]
        if self.certified is not None:
            near.append(self.box.to_unit(self.certified.draw(n, rng)))
        if history.nearby is not None:
            near.append(history.nearby.draw(n, rng, history.feature_rank))
        points = np.vstack([points, *near])
        return self._measurable(points, rng)

    def _all_over(self, n, polytope, rng, rank=None):
        if polytope is not None:
            return polytope.draw(n, rng)
        points = rng.random((n, len(self.lower)))
        points = points if rank is None else points[:, rank]
        return self.lower + points * (self.upper - self.lower)

    def _between(self, history, points, rng):
        """Points on the way from an observation in the region's convex part to each of others."""
        X = history.observed.X.clip(0.0, 1.0)
        inside = ((X >= self.lower) & (X <= self.upper)).all(axis=1)
        if not inside.any():
            return points[:0]
        X = np.unique(X[inside], axis=0)  # in an order that does not depend on theirs
        origin = X[rng.integers(len(X), size=len(points))]
        return origin + rng.random((len(points), 1)) ** 2 * (points - origin)

    def _measurable(self, points, rng):
        """Points moved to values that features take, in the user's units; less all outside."""
        X = self.box.from_unit(points)
        for j, value in self.fixed.items():
            X[:, j] = value
        if self.constraints is not None:
            X = self._balanced(X, rng)
        return X[self.holds(X, strict=True)]

    def _balanced(self, X, rng):
        """Points for which an equation holds though features were moved to discrete values."""
        equations = np.flatnonzero(self.constraints.is_equation)
        if not isinstance(self.box, Space) or not len(equations):
            return X
        if len(equations) > 1:
            return X  # what does not satisfy both is left out
        row, value = self.constraints.A[equations[0]], self.constraints.low[equations[0]]
        some = np.array([j for j in np.flatnonzero(row) if j not in self.fixed], dtype=int)
        if not len(some):
            return X
        solved = some[rng.integers(len(some), size=len(X))]
        at = np.arange(len(X)), solved
        X[at] += (value - X @ row) / row[solved]
        # Rounding aside, the feature is at one of its values, or the point is left out.
        snapped = self.box.snapped(X)
        close = np.abs(snapped - X) <= 1e-9 * self.box.width
        return np.where(close, snapped, X)

    def _polytope(self):
        """The linear constraints in the unit cube, None without any."""
        constraints = self.constraints
        if constraints is None or not len(constraints.A):
            return None
        A, low, high = constraints.A, constraints.low, constraints.high
        equation = constraints.is_equation
        if isinstance(self.box, Space):
            curved = (A[:, self.box.is_log] != 0).any(axis=1)
            if (curved & equation).any():
                raise ValueError(
                    "constraints: an equation has a feature of a logarithmic scale, and no points "
                    "that satisfy it can be drawn. Pass a pool of points, or state the bounds of "
                    "the feature as a pair."
                )
            A, low, high, equation = (part[~curved] for part in (A, low, high, equation))
            if not len(A):
                return None
        scaled = A * self.box.width
        low, high = low - A @ self.box.lower, high - A @ self.box.lower
        size = np.linalg.norm(scaled, axis=1)
        size[size == 0] = 1.0
        scaled, low, high = scaled / size[:, None], low / size, high / size
        G, h = np.vstack([scaled, -scaled]), np.append(high, -low)
        G, h = G[np.tile(~equation, 2)], h[np.tile(~equation, 2)]
        G, h = G[h < np.inf], h[h < np.inf]
        found = Polytope(self.lower, self.upper, G, h, scaled[equation], low[equation])
        if found.is_empty:
            raise ValueError(
                f"no point inside bounds satisfies {self._stated()}. Check the signs and units of "
                "the constraints."
            )
        if found.is_flat:
            raise ValueError(
                f"{self._stated()} leave a set without an inside. State an equation as one "
                "LinearConstraint with lb == ub."
            )
        return found

    def _listed(self):
        """All points of discrete features, in the user's units; None where they are too many."""
        box = self.box
        if not isinstance(box, Space):
            return None
        free = [j for j in range(len(box.lower)) if j not in self.fixed]
        if not box.is_discrete[free].all() or np.prod([box.n_values(j) for j in free]) > _LISTED:
            return None
        values = [
            [self.fixed[j]] if j in self.fixed else box.values(j) for j in range(len(box.lower))
        ]
        return np.array(list(itertools.product(*values)), dtype=float)
