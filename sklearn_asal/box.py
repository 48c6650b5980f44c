"""The box that queries are chosen from, and its map to the unit cube."""

import functools

import numpy as np

from .names import titled
from .scaling import bounded_ratio
from .validation import finite_array

# Overshoot, in widths of the box, that counts as rounding.
_ROUNDING = 1e-6


class Box:
    """The box that queries are chosen from, and its map to the unit cube.

    Parameters
    ----------
    bounds : None, pair of float, or array-like of shape (n_features, 2)
        Lower and upper limit of each feature in the user's units. One pair
        holds for every feature, None means ``(0, 1)``.
    n_features : int

    Attributes
    ----------
    lower, upper, width : ndarray of shape (n_features,)
    kinds : tuple of shape (n_features,)
        Of features; None, as here, for a plain interval.
    is_discrete, is_log : bool ndarray of shape (n_features,)
        Which features take some values only, or are on a logarithmic scale: here none.
    has_discrete : bool
        Whether any takes some values only.
    key : tuple
        What tells the map to the unit cube from that of other boxes.

    Raises
    ------
    ValueError
        Limits that are not finite, not ordered, or of the wrong number.

    Examples
    --------
    >>> from sklearn_asal.box import Box
    >>> box = Box([(0, 6), (-5, 30)], n_features=2)
    >>> box.to_unit([[3, 30]])
    array([[0.5, 1. ]])
    >>> box.from_unit([[0.5, 0.0]])
    array([[ 3., -5.]])
    """

    def __init__(self, bounds, n_features):
        limits = limits_of(bounds)
        if limits.shape == (2,):
            limits = np.tile(limits, (n_features, 1))
        if limits.shape != (n_features, 2):
            raise ValueError(
                f"bounds must hold one (low, high) pair for each of the {n_features} features, "
                f"shape ({n_features}, 2); its shape is {limits.shape}."
            )
        self.lower, self.upper = limits.T.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            self.width = self.upper - self.lower
        for j in np.flatnonzero(~((self.width > 0) & np.isfinite(self.width))):
            raise ValueError(
                f"bounds of feature {j} must be finite with low < high, got "
                f"({self.lower[j]:g}, {self.upper[j]:g})."
            )
        self.kinds = (None,) * n_features
        self.is_discrete = self.is_log = np.zeros(n_features, dtype=bool)
        self.has_discrete = False
        self.key = (*self.lower.tolist(), *self.upper.tolist())

    @classmethod
    def of(cls, bounds, n_features):
        """The box of these arguments, the same object where one has been made already.

        Parameters
        ----------
        bounds, n_features
            See the class.

        Returns
        -------
        Box
        """
        limits = limits_of(bounds)
        return _box(limits.tobytes(), limits.shape, n_features)

    def to_unit(self, X):
        """Map points so that the box is the unit cube.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            In the user's units.

        Returns
        -------
        ndarray of shape (n, n_features)
        """
        return bounded_ratio(X, self.lower, self.width)

    def from_unit(self, points):
        """Map points of the unit cube to the user's units, never outside the bounds.

        Parameters
        ----------
        points : array-like of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, n_features)
        """
        X = np.asarray(points) * self.width
        X += self.lower
        np.maximum(X, self.lower, out=X)
        return np.minimum(X, self.upper, out=X)

    def outside(self, X, tolerance=_ROUNDING):
        """Which points lie beyond the bounds.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
            In the user's units.
        tolerance : float, default=1e-6
            In widths of the box.

        Returns
        -------
        bool ndarray of shape (n,)
        """
        slack = tolerance * self.width
        low, high = self.lower - slack, self.upper + slack
        columns = np.ascontiguousarray(np.transpose(X))  # loops over few features are slow
        return ((columns < low[:, None]) | (columns > high[:, None])).any(axis=0)

    def unit_reach(self, x, slack):
        """What small distances in the user's units are at unit scale.

        Parameters
        ----------
        x, slack : ndarray of shape (n_features,)
            A point, and the distance along each feature.

        Returns
        -------
        ndarray of shape (n_features,)
        """
        return slack / self.width

    def complaint(self, X, names=None):
        """What to say about measured points that would not be proposed.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
        names : sequence of str, optional
            Of the features.

        Returns
        -------
        str or None
            None if there are no such points.
        """
        outside = self.outside(X)
        if not outside.any():
            return None
        j = np.abs(self.to_unit(X) - 0.5).max(axis=0).argmax()
        if len(X) == 1:
            return (
                f"the measured point lies outside bounds: {titled(j, names)} is {X[0, j]:.6g}, but "
                f"its bounds are ({self.lower[j]:.6g}, {self.upper[j]:.6g}). The point is kept and "
                "used; proposals stay inside. If queries may lie there, set bounds="
                "[(low, high), ...] in the units of X."
            )
        return (
            f"{outside.sum()} of {len(X)} measured points lie outside bounds: {titled(j, names)} "
            f"reaches from {X[:, j].min():.6g} to {X[:, j].max():.6g}, but its bounds are "
            f"({self.lower[j]:.6g}, {self.upper[j]:.6g}). The points are kept and used; proposals "
            "stay inside. If X has other units, or queries may lie there, set "
            "bounds=[(low, high), ...] in the units of X."
        )


def limits_of(bounds):
    """Bounds as an array.

    Parameters
    ----------
    bounds : None, pair of float, or array-like of shape (n_features, 2)

    Returns
    -------
    ndarray of float, of the same shape
        ``(0, 1)`` for None.

    Raises
    ------
    ValueError
        Not finite numbers.
    """
    if bounds is None:
        return np.array((0.0, 1.0))
    try:
        if type(bounds) is np.ndarray and bounds.dtype.kind in "iuf":
            return np.asarray(bounds, dtype=np.float64)
        # Anything else may hide masks, dates or text in that conversion.
        plain = _is_plain(bounds)
        return np.array(bounds, float) if plain else finite_array(bounds, "bounds", ndim=1)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"bounds must hold one (low, high) pair of numbers for each feature: {error}"
        ) from error


def _is_plain(bounds):
    """Whether they are lists and tuples of plain numbers."""
    if isinstance(bounds, (list, tuple)):
        return all(map(_is_plain, bounds))
    return isinstance(bounds, (int, float))


@functools.lru_cache(maxsize=64)
def _box(limits, shape, n_features):
    return Box(np.frombuffer(limits).reshape(shape), n_features)
