"""Kinds of features: whole numbers, logarithmic scales, fixed settings; and the box they span."""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .box import Box, limits_of
from .names import difference, suggestion, titled
from .validation import column_names, finite_array, finite_number, whole

__all__ = ["Grid", "Integer", "Log"]

# What a value may differ from one of its feature by rounding: that of float32, but not more than
# this part of the distance between two of them.
_RELATIVE, _OF_GAP = 2.0**-23, 0.01


@dataclass(frozen=True)
class Integer:
    """A feature that takes whole numbers; an entry of ``bounds``.

    Parameters
    ----------
    low, high : int
        Its smallest and largest value.
    log : bool, default=False
        Whether ratios matter, and not differences. ``low`` is at least 1, then.

    Raises
    ------
    TypeError, ValueError
        Not whole numbers with ``low < high``, or not positive with ``log``.

    Examples
    --------
    >>> from sklearn_asal import Integer, RandomQuerier
    >>> querier = RandomQuerier(bounds=[Integer(1, 8), (0.0, 60.0)])
    >>> point = querier.fit([[2, 30.0]], [1.0]).query()
    >>> float(point[0, 0]).is_integer()
    True
    """

    low: int
    high: int
    log: bool = False

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, int(whole(getattr(self, name), f"{name} of Integer")))
        _check(self, self.low, self.high, self.log)

    @property
    def levels(self) -> np.ndarray | None:
        """None: whole numbers are rounded to, not listed."""
        return None


@dataclass(frozen=True)
class Log:
    """A positive feature of which ratios matter, and not differences; an entry of ``bounds``.

    Parameters
    ----------
    low, high : float
        Its limits.

    Raises
    ------
    TypeError, ValueError
        Not positive finite numbers with ``low < high``.

    Examples
    --------
    >>> from sklearn_asal import Log, RandomQuerier
    >>> querier = RandomQuerier(bounds=[Log(1e-9, 1e-3)])
    >>> querier.fit([[1e-6]], [1.0]).query().shape
    (1, 1)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, finite_number(getattr(self, name), f"{name} of Log"))
        _check(self, self.low, self.high, True)

    @property
    def log(self) -> bool:
        """Whether ratios matter: always."""
        return True

    @property
    def levels(self) -> np.ndarray | None:
        """None: any value may be proposed."""
        return None


class Grid:
    """A feature that takes some settings only; an entry of ``bounds``.

    Parameters
    ----------
    values : array-like of shape (n_values,)
        At least two; their order is of no consequence.
    log : bool, default=False
        Whether ratios matter, and not differences. All values are positive, then.

    Raises
    ------
    TypeError, ValueError
        Not two or more different finite numbers, or not positive with ``log``.

    Examples
    --------
    >>> from sklearn_asal import Grid, RandomQuerier
    >>> querier = RandomQuerier(bounds=[Grid([0.1, 0.2, 0.5])])
    >>> bool(querier.fit([[0.1]], [1.0]).query()[0, 0] in (0.2, 0.5))
    True
    """

    def __init__(self, values: ArrayLike, log: bool = False) -> None:
        levels = np.unique(finite_array(values, "values of Grid", ndim=1).ravel())
        if len(levels) < 2:
            raise ValueError(
                "values of Grid must be two or more different numbers; leave a feature that has "
                "one value out of the inputs."
            )
        levels.setflags(write=False)
        self.levels, self.log = levels, log
        self.low, self.high = levels[[0, -1]].tolist()
        _check(self, self.low, self.high, log)
        self._key = tuple(levels.tolist()), log

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grid) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"Grid({self.levels.tolist()}{', log=True' if self.log else ''})"


Feature = Integer | Log | Grid
_KINDS = Integer, Log, Grid


def _check(feature, low, high, log):
    name = type(feature).__name__
    if not isinstance(log, bool):
        raise TypeError(f"log of {name} must be True or False, got {log!r}.")
    if not low < high:
        raise ValueError(f"{name} needs low < high, got {low} and {high}.")
    if log and not low > 0:
        raise ValueError(f"{name} on a logarithmic scale needs positive values, got {low}.")


def box_of(bounds: Any, n_features: int) -> Box:
    """The box of ``bounds`` as queriers take them.

    Parameters
    ----------
    bounds : None, pair of float, array-like of shape (n_features, 2), sequence or dict
        An entry of a sequence, or a value of a dict, is a pair or an Integer, Log or Grid.
    n_features : int

    Returns
    -------
    Box
        The same object where one has been made of the same arguments; a :class:`Space` where a
        feature is not a plain interval.

    Raises
    ------
    ValueError, TypeError
        See :class:`Box`; and names that are not text.
    """
    if bounds is None or type(bounds) is np.ndarray:
        return Box.of(bounds, n_features)
    if isinstance(bounds, (list, tuple)):
        for one in bounds:
            if isinstance(one, _KINDS):
                break
        else:  # the usual, quickly
            return Box.of(bounds, n_features)
    elif isinstance(bounds, _KINDS):
        bounds = [bounds] * n_features
    elif isinstance(bounds, Mapping):
        if not all(isinstance(name, str) for name in bounds):
            raise TypeError(f"bounds: names of features must be text, got {list(bounds)}.")
        if len(bounds) != n_features:
            raise ValueError(
                f"bounds names {len(bounds)} features, {', '.join(bounds)}, but the inputs have "
                f"{n_features}. Name each column of the inputs, in their order."
            )
        return box_of(list(bounds.values()), n_features)
    else:
        return Box.of(bounds, n_features)
    kinds = tuple(one if isinstance(one, _KINDS) else None for one in bounds)
    both = zip(bounds, kinds, strict=True)
    limits = limits_of([one if kind is None else (kind.low, kind.high) for one, kind in both])
    return _space(limits.tobytes(), limits.shape, n_features, kinds)


@functools.lru_cache(maxsize=64)
def _space(limits, shape, n_features, kinds):
    return Space(np.frombuffer(limits).reshape(shape), n_features, kinds)


class Space(Box):
    """A box some of whose features are whole numbers, of a logarithmic scale, or of a grid.

    Parameters
    ----------
    bounds : ndarray of shape (n_features, 2)
    n_features : int
    kinds : sequence of Integer, Log, Grid or None of shape (n_features,)
        None for a plain interval.

    Raises
    ------
    ValueError
        See :class:`Box`.
    """

    def __init__(self, bounds, n_features, kinds):
        super().__init__(bounds, n_features)
        self.kinds = tuple(kinds)
        self.is_discrete = np.array([isinstance(kind, (Integer, Grid)) for kind in kinds])
        self.has_discrete = bool(self.is_discrete.any())
        self.is_log = np.array([kind is not None and kind.log for kind in kinds])
        self.key = (*self.key, *self.is_log)
        low, high = self.lower[self.is_log], self.upper[self.is_log]
        self._start, self._span = np.log(low), np.log(high) - np.log(low)

    def to_unit(self, X):
        """See :meth:`Box.to_unit`.

        Raises
        ------
        ValueError
            A feature of a logarithmic scale is not positive.
        """
        points = super().to_unit(X)
        if self.is_log.any():
            some = np.asarray(X, dtype=float)[:, self.is_log]
            if (some <= 0).any():
                j = np.flatnonzero(self.is_log)[(some <= 0).any(axis=0)][0]
                raise ValueError(
                    f"feature {j} is on a logarithmic scale, but a value of it is "
                    f"{some.min():g}; its values are positive. Correct it, or state its bounds as "
                    "a pair."
                )
            points[:, self.is_log] = (np.log(some) - self._start) / self._span
        return points

    def from_unit(self, points):
        """Map points of the unit cube to the nearest ones that may be measured.

        Parameters
        ----------
        points : array-like of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, n_features)
        """
        points = np.asarray(points, dtype=float)
        X = super().from_unit(points)
        if self.is_log.any():
            some = points[:, self.is_log]
            lower, upper = self.lower[self.is_log], self.upper[self.is_log]
            values = np.clip(np.exp(self._start + some * self._span), lower, upper)
            # The limits themselves to the last digit.
            values = np.where(some <= 0, lower, np.where(some >= 1, upper, values))
            X[:, self.is_log] = values
        return self.snapped(X)

    def snapped(self, X):
        """Points with each discrete feature at the nearest of its values.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
            In the user's units.

        Returns
        -------
        ndarray of shape (n, n_features)
        """
        X = np.array(X, dtype=float)
        for j in np.flatnonzero(self.is_discrete):
            X[:, j] = self._nearest(j, X[:, j])
        return X

    def _nearest(self, j, values):
        levels = self.kinds[j].levels
        if levels is None:
            return np.clip(np.round(values), self.lower[j], self.upper[j])
        above = np.searchsorted(levels, values).clip(1, len(levels) - 1)
        low, high = levels[above - 1], levels[above]
        return np.where(values - low <= high - values, low, high)

    def values(self, j, low, high):
        """The values of a discrete feature between two limits, in ascending order.

        Parameters
        ----------
        j : int
        low, high : float

        Returns
        -------
        ndarray of float
        """
        first, last = self._between(j, low, high)
        levels = self.kinds[j].levels
        return np.arange(first, last + 1.0) if levels is None else levels[first : last + 1]

    def n_values(self, j, low, high):
        """Number of values of a discrete feature between two limits.

        Parameters
        ----------
        j : int
        low, high : float

        Returns
        -------
        int
        """
        first, last = self._between(j, low, high)
        return max(last - first + 1, 0)

    def _between(self, j, low, high):
        """The first and the last of those values: whole numbers, or positions on a grid."""
        levels, slack = self.kinds[j].levels, _OF_GAP * self._gap(j)
        if levels is None:
            return math.ceil(low - slack), math.floor(high + slack)
        first = int(np.searchsorted(levels, low - slack))
        return first, int(np.searchsorted(levels, high + slack, side="right")) - 1

    def holds(self, X):
        """Which points have discrete features at one of their values.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
            In the user's units.

        Returns
        -------
        bool ndarray of shape (n,)
        """
        enough = np.ones(len(X), dtype=bool)
        for j in np.flatnonzero(self.is_discrete):
            enough &= self._takes(j, X[:, j])
        return enough

    def _takes(self, j, values):
        """Which values a discrete feature takes, but for rounding."""
        slack = np.minimum(_RELATIVE * np.abs(values), _OF_GAP * self._gap(j))
        return np.abs(self._nearest(j, values) - values) <= slack

    def _gap(self, j):
        """The least distance between two values of a discrete feature."""
        levels = self.kinds[j].levels
        return 1.0 if levels is None else np.diff(levels).min()

    def complaint(self, X, names=None):
        """See :meth:`Box.complaint`."""
        messages = [super().complaint(X, names)]
        for j in np.flatnonzero(self.is_discrete):
            values = X[:, j]
            inside = (values >= self.lower[j]) & (values <= self.upper[j])
            odd = inside & ~self._takes(j, values)
            if odd.any():
                messages.append(
                    f"{titled(j, names)} is {self.kinds[j]}, but {values[odd][0]:.6g} was measured "
                    f"({odd.sum()} of {len(X)} points). The points are kept and used. If that is "
                    "a mistake, forget them and tell them again."
                )
        return " ".join(filter(None, messages)) or None

    def unit_reach(self, x, slack):
        """See :meth:`Box.unit_reach`."""
        reach = super().unit_reach(x, slack)
        if self.is_log.any():
            some = np.abs(x[self.is_log])
            reach[self.is_log] = slack[self.is_log] / np.maximum(some, self.lower[self.is_log])
            reach[self.is_log] /= self._span
        return reach


def by_name(data: Any, bounds: Any, name: str) -> Any:
    """A table with its columns in the order of ``bounds``, where these are a dict.

    Parameters
    ----------
    data : object
        Anything but a table with names for its columns is returned as it is.
    bounds : object
    name : str
        What the user calls the data.

    Returns
    -------
    object

    Raises
    ------
    ValueError
        Columns are missing, or have no bounds.
    """
    if data is None or type(data) is np.ndarray or not isinstance(bounds, Mapping):
        return data
    names, wanted = column_names(data), list(bounds)
    if names is None or names == wanted:
        return data
    if sorted(names) != sorted(wanted):
        raise ValueError(
            f"{name} has columns {names}, but bounds are of {wanted}.{difference(names, wanted)} "
            "Pass those columns alone, or state bounds of all."
        )
    if hasattr(data, "iloc"):
        return data[wanted]
    if not hasattr(data, "select"):
        raise ValueError(f"{name}: bring its columns {names} into the order of bounds, {wanted}.")
    return data.select(wanted)


def by_feature(values: Any, names: Any, n_features: int, what: str) -> dict[int, float]:
    """Numbers for some features, which are known by name or position.

    Parameters
    ----------
    values : dict, float, or array-like of shape (n_features,)
        A key is a name or a position; one number holds for all features.
    names : sequence of str or None
        Names of the features, where they have any.
    n_features : int
    what : str
        What the user calls it.

    Returns
    -------
    dict of int to float

    Raises
    ------
    ValueError, TypeError
        An unknown feature, no finite number, or not one for each feature.
    """
    if not isinstance(values, Mapping):
        array = finite_array([values] if np.ndim(values) == 0 else values, what, ndim=1)
        if array.shape not in ((1,), (n_features,)):
            raise ValueError(
                f"{what} must be one number, or one for each of the {n_features} features; its "
                f"shape is {array.shape}."
            )
        return dict(enumerate(np.broadcast_to(array, n_features).tolist()))
    known = {} if names is None else {name: j for j, name in enumerate(names)}
    found = {}
    for key, value in values.items():
        j = known.get(key, key)
        if isinstance(j, bool) or not isinstance(j, (int, np.integer)) or not 0 <= j < n_features:
            there = f", or one of {', '.join(known)}" if known else ""
            raise ValueError(
                f"{what} has a feature {key!r}; state its position, 0 to {n_features - 1}{there}"
                f"{suggestion(str(key), known)}"
            )
        if j in found:
            raise ValueError(f"{what} states {titled(j, names)} twice, by name and by position.")
        found[int(j)] = finite_number(value, f"{what} of feature {key!r}")
    return found
