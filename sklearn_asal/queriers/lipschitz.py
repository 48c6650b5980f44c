"""Limits on how fast safety measurements change, which are assumed, and what these guarantee."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray, Sides, Thresholds
from ..exceptions import SafetyWarning, warn_user
from ..limits import boolean_limits, distances_to_limits
from ..names import titled
from ..space import by_feature
from ..validation import finite_array

# What measurements may differ by, relative to the largest, by rounding.
_ROUNDING = 1e-9
# Points that are compared with all measurements at once.
_AT_ONCE = 1024


@dataclass(frozen=True)
class LipschitzBound:
    """How fast safety measurements change at most; an assumption about the rig.

    Parameters
    ----------
    slope : float, array-like of shape (n_features,) or (n_limits, n_features), or dict
        Largest change of a safety measurement, in its units, for each unit of each feature.
        Positive. A dict has one number for each feature, by name or position.
    noise : float or array-like of shape (n_limits,), default=0.0
        What a measurement differs from the true value at most, in the units of ``z``.

    Raises
    ------
    ValueError, TypeError
        A slope that is not positive and finite, or a noise that is negative.

    Notes
    -----
    A point is admissible for a limit if, for a measurement ``i``, its distance from the limit, less
    ``noise``, is at least ``sum_j slope_j |x_j - x_ij|``. If slope and noise are right, it is safe
    [1]_. If not, it may not be.

    References
    ----------
    .. [1] Fiedler, Menn, Kreiskoether, Trimpe (2024). "On Safety in Safe Bayesian Optimization".

    Examples
    --------
    >>> from sklearn_asal import AmortizedSafeQuerier, LipschitzBound
    >>> querier = AmortizedSafeQuerier(lipschitz=LipschitzBound(slope=4.0, noise=0.1))
    >>> point = querier.query([[0.5, 0.5]], [0.3], [1.0])
    >>> bool(4.0 * abs(point - 0.5).sum() <= 0.9)
    True
    """

    slope: Any
    noise: Any = 0.0

    def __post_init__(self) -> None:
        by_name = isinstance(self.slope, Mapping)
        slope = list(self.slope.values()) if by_name else self.slope
        slope, noise = _numbers(slope, "slope"), _numbers(self.noise, "noise")
        if not (slope > 0).all():
            raise ValueError("the slope of lipschitz must be positive for each feature.")
        if not (noise >= 0).all():
            raise ValueError("the noise of lipschitz must not be negative.")
        # As plain numbers, so that equal bounds are equal.
        plain = dict(zip(self.slope, slope.tolist(), strict=True)) if by_name else _plain(slope)
        object.__setattr__(self, "slope", plain)
        object.__setattr__(self, "noise", _plain(noise))

    def by_position(self, names: Any, n_features: int) -> "LipschitzBound":
        """The same bound with slopes in the order of the features.

        Parameters
        ----------
        names : sequence of str or None
            Of the features, where they have any.
        n_features : int

        Returns
        -------
        LipschitzBound

        Raises
        ------
        ValueError
            A slope is of an unknown feature, or a feature has none.
        """
        if not isinstance(self.slope, Mapping):
            return self
        slopes = by_feature(self.slope, names, n_features, "the slope of lipschitz")
        missing = [titled(j, names) for j in range(n_features) if j not in slopes]
        if missing:
            raise ValueError(
                f"the slope of lipschitz has no number for {', '.join(missing)}. State one for "
                "each feature."
            )
        return LipschitzBound([slopes[j] for j in range(n_features)], self.noise)

    def certified(
        self, X: FloatArray, z: NDArray[Any], threshold: Thresholds, when: Sides
    ) -> "Certified":
        """What the bound guarantees, given observations.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
            In the user's units.
        z : ndarray of shape (n,) or (n, n_limits)
            Safety measurements.
        threshold, when
            See :func:`~sklearn_asal.limits.safety_margins`.

        Returns
        -------
        Certified

        Raises
        ------
        ValueError
            The bound is of the wrong shape, or ``z`` of booleans.

        Warns
        -----
        SafetyWarning
            Two measurements differ by more than the bound allows.
        """
        if boolean_limits(z).any():
            raise ValueError(
                "lipschitz needs safety measurements that are numbers: booleans have no distance "
                "from the limit."
            )
        distance = distances_to_limits(z, threshold, when)
        shape = distance.shape[1], X.shape[1]
        slope = _shaped(self.slope, "slope", "(n_features,) or (n_limits, n_features)", shape)
        noise = _shaped(self.noise, "noise", "(n_limits,)", shape[:1])
        _warn_of_steeper(X, distance, slope, noise)
        return Certified(X, distance - noise, slope)


def _numbers(values, name):
    name = f"the {name} of lipschitz"
    return finite_array([values] if np.ndim(values) == 0 else values, name, ndim=1)


def _plain(array):
    """One number as a float, others as nested tuples."""
    if array.shape == (1,):
        return float(array[0])
    return tuple(array.tolist()) if array.ndim == 1 else tuple(map(tuple, array.tolist()))


def _warn_of_steeper(X, distance, slope, noise):
    """Warn where two measurements differ by more than the bound allows."""
    apart = np.abs(X[:, None] - X)
    for j in range(len(slope)):
        most = apart @ slope[j] + 2 * noise[j]
        more = np.abs(distance[:, [j]] - distance[:, j]) - most
        if more.max() > _ROUNDING * np.abs(distance).max():
            first, second = np.sort(np.unravel_index(more.argmax(), more.shape))
            warn_user(
                f"lipschitz: measurements {first} and {second} of limit {j} differ by more than "
                "slope and noise allow, so that it guarantees nothing. State a larger slope or "
                "noise.",
                SafetyWarning,
            )


def _shaped(values, name, allowed, shape):
    values = np.array(values)
    try:
        if values.ndim and values.shape[-1] != shape[-1]:
            raise ValueError  # one number in a list is no number for each
        return np.broadcast_to(values, shape)
    except ValueError:
        raise ValueError(
            f"the {name} of lipschitz has shape {np.shape(values)}; one number, or shape "
            f"{allowed}, is needed. Here that is {shape}."
        ) from None


class Certified:
    """All points that a bound on slopes guarantees to be safe.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        Measured inputs in the user's units.
    spare : ndarray of shape (n, n_limits)
        Distances from the limits, less noise, in the units of ``z``.
    slope : ndarray of shape (n_limits, n_features)

    Raises
    ------
    ValueError
        Nothing measured has anything to spare.
    """

    def __init__(self, X, spare, slope):
        self._X, self._spare, self._slope = X, spare, slope
        if not (self._spare >= 0).any(axis=0).all():
            raise ValueError(
                "lipschitz: no measurement is farther on the safe side of a limit than the noise, "
                "so that nothing can be guaranteed. Measure something safer, or state a smaller "
                "noise."
            )

    def holds(self, X):
        """Which points are guaranteed to be safe.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
            In the user's units.

        Returns
        -------
        bool ndarray of shape (n,)
        """
        enough = np.ones(len(X), dtype=bool)
        for slope, spare in zip(self._slope, self._spare.T, strict=True):
            known, left = self._X[spare >= 0], spare[spare >= 0]
            for start in range(0, len(X), _AT_ONCE):
                part = slice(start, start + _AT_ONCE)
                fall = np.abs(X[part, None] - known) @ slope
                enough[part] &= (left >= fall).any(axis=1)
        return enough

    def draw(self, n, rng, rank):
        """Random points about measurements, most of which are guaranteed to be safe.

        Parameters
        ----------
        n : int
        rng : numpy.random.Generator
        rank : ndarray of int of shape (n_features,)
            Of the features, so that their order is of no consequence.

        Returns
        -------
        ndarray of shape (n, n_features)
            In the user's units.
        """
        some = (self._spare > 0).all(axis=1)
        if not some.any():
            return self._X[:0]
        X, spare = self._X[some], self._spare[some]
        order = np.lexsort((*spare.T, *X[:, np.argsort(rank)].T))
        X, spare = X[order], spare[order]
        i = rng.integers(len(X), size=n)
        reach = (spare[i][:, :, None] / self._slope).min(axis=1)
        # Uniform in the ball of the sum of absolute values.
        parts = rng.exponential(size=(n, X.shape[1] + 1))
        parts = parts[:, :-1] / parts.sum(axis=1, keepdims=True)
        parts *= rng.choice([-1.0, 1.0], size=parts.shape)
        return X[i] + parts[:, rank] * reach
