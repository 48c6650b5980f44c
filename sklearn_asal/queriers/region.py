"""Where alone a query may propose: what bounds, constraints, steps and slopes leave."""

import numpy as np

from ..constraints import Constraints
from ..exceptions import PoolExhaustedError
from ..names import titled
from ..space import by_feature
from .drawing import Drawing

# What a value may be beyond a limit, relative to its size, by rounding: one that is drawn, and one
# of a row, as of float32.
_DRAWN_BEYOND, _ROW_BEYOND = 1e-12, 2.0**-23


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
    reference : tuple (rank of the features, ndarray of shape (n, n_features)) or None
        Points all over what they leave, in the unit cube.
    polytope : tuple (key, Polytope) or None
        The last one.
    allowed : tuple (ndarray, bool ndarray) or None
        The rows of the last pool, and which of its rows satisfy them.
    """

    def __init__(self, stated, box):
        # The objects themselves, so that their identity stays theirs.
        self._key = stated, *(stated if isinstance(stated, (list, tuple)) else ()), box
        self.constraints = None if stated is None else Constraints(stated, len(box.lower))
        self.reference = self.polytope = self.allowed = None

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
        drawn = Drawing(region, history, rng).candidates(self._measured, self._weights)
        history.cache.candidates = drawn  # for ``_prepare``, which needs the reference set
        return drawn

    def holds(self, X):
        """Whether a point may be proposed now.

        Parameters
        ----------
        X : ndarray of shape (1, n_features)
            In the user's units.

        Returns
        -------
        bool
        """
        return bool(self._region_from(self._last).holds(X)[0])

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
            raise ValueError(f"max_step of {titled(j, names)} must be positive, got {value:g}.")
        step[j] = value
    return step


class Region:
    """Where alone a query may propose.

    Parameters
    ----------
    box : Box
    known : Known
    low, high : ndarray of shape (n_features,) or None
        Narrower limits, such as one step allows; None for those of the box.
    fixed : dict of int to float
        Features at one value, in the user's units.
    certified : Certified or None
        What slopes that are known guarantee to be safe.

    Attributes
    ----------
    lower, upper : ndarray of shape (n_features,)
        The limits in the unit cube.
    is_free : bool ndarray of shape (n_features,)
        Which features are not fixed.
    stated : str
        What leaves no more than the region, in words.
    """

    def __init__(self, box, known, low=None, high=None, fixed=None, certified=None):
        self.box, self.known, self.certified = box, known, certified
        self.constraints, self.fixed = known.constraints, {} if fixed is None else fixed
        self.low, self.high = (box.lower, box.upper) if low is None else (low, high)
        self.is_free = np.ones(len(self.low), dtype=bool)
        if self.fixed:
            at = list(self.fixed)
            self.low, self.high = self.low.copy(), self.high.copy()
            self.low[at] = self.high[at] = list(self.fixed.values())
            self.is_free[at] = False
        self.lower, self.upper = box.to_unit(np.array([self.low, self.high]))
        parts = (
            ("constraints", self.constraints is not None),
            ("max_step", low is not None),
            ("fixed", bool(self.fixed)),
            ("lipschitz", certified is not None),
        )
        self.stated = " and ".join(name for name, there in parts if there) or "bounds"

    @classmethod
    def of(cls, box, known, last, max_step=None, fixed=None, certified=None, names=None):
        """The region that parameters of a querier leave.

        Parameters
        ----------
        box, known, fixed, certified
            See the class.
        last : ndarray of shape (n_features,)
            The point that a step begins at, in the user's units.
        max_step : ndarray of shape (n_features,) or None
            The largest change of each feature, in the user's units.
        names : sequence of str, optional
            Of the features, for messages.

        Returns
        -------
        Region

        Raises
        ------
        ValueError
            The last point lies farther outside the bounds than one step, or a feature is fixed at
            a value that it cannot have.
        """
        fixed = {} if fixed is None else fixed
        for j, value in fixed.items():
            _check_fixed(box, j, value, names)
        if max_step is None:
            return cls(box, known, fixed=fixed, certified=certified)
        low, high = np.maximum(last - max_step, box.lower), np.minimum(last + max_step, box.upper)
        if (low > high).any():
            j = np.flatnonzero(low > high)[0]
            raise ValueError(
                f"max_step: the last point has {last[j]:g} in {titled(j, names)}, which is more "
                f"than one step of {max_step[j]:g} outside its bounds. Measure a point inside, or "
                "raise max_step."
            )
        for j, value in fixed.items():
            slack = _ROW_BEYOND * abs(value)
            if not low[j] - slack <= value <= high[j] + slack:
                raise ValueError(
                    f"fixed: {value:g} in {titled(j, names)} is more than one step of "
                    f"{max_step[j]:g} from the last point, which has {last[j]:g}. Leave a feature "
                    "that you do not set out of max_step, a dict then, or raise it."
                )
        return cls(box, known, low, high, fixed, certified)

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
        enough = self._within(X, strict)
        if self.constraints is not None:
            enough[enough] = self.constraints.holds(X[enough], strict)
        return enough

    def _within(self, X, strict=False):
        """Which points satisfy all but the constraints."""
        slack = np.maximum(np.abs(self.low), np.abs(self.high))
        slack *= _DRAWN_BEYOND if strict else _ROW_BEYOND
        enough = ((X >= self.low - slack) & (X <= self.high + slack)).all(axis=1)
        if self.box.has_discrete:
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
                f"no row of the pool that is left satisfies {self.stated}. Pass other rows, or "
                "relax what is stated."
            )
        return positions


def _check_fixed(box, j, value, names):
    if not box.lower[j] <= value <= box.upper[j]:
        raise ValueError(
            f"fixed: {value:g} in {titled(j, names)} is outside its bounds ({box.lower[j]:g}, "
            f"{box.upper[j]:g}). State bounds that it keeps to."
        )
    row = box.lower.copy()
    row[j] = value
    if box.has_discrete and not box.holds(row[None])[0]:
        raise ValueError(
            f"fixed: {titled(j, names)} is {box.kinds[j]}, which has no value {value:g}."
        )
