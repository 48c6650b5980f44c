"""Where the measurements of a task come from: a function, a table, random trajectories."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_scalar

from .. import CandidatePool
from .._typing import Bounds, FloatArray, Sides, Thresholds
from ..box import Box
from ..datasets import Function, sample_fluid_trajectories
from ..limits import safety_margins
from ..settings import numpy_defaults
from ..validation import finite_number, observations

# Half the side of the centre box of the paper, as a fraction of the bounds.
_CENTRE = 0.1

# X, y, z, X_test, y_test, pool and measure, as ``draw`` says.
_Drawn = tuple[
    FloatArray,
    FloatArray,
    NDArray[Any] | None,
    FloatArray,
    FloatArray,
    CandidatePool | None,
    Callable[..., Any],
]


@dataclass(frozen=True, eq=False)
class FunctionSource:
    """A function that can be measured anywhere in its bounds.

    Parameters
    ----------
    function : Function
        With a safety for the suite "safe", without for "al". Safe means ``z >= 0`` for all limits.
    noise : float, default=0.1
        Standard deviation of the noise on all measurements, in normalised units.

    Raises
    ------
    TypeError, ValueError
        If ``function`` is not a Function, or ``noise`` is negative or not finite.
    """

    function: Function
    noise: float = 0.1

    def __post_init__(self):
        _check_function(self.function, self.noise)

    @property
    def bounds(self) -> FloatArray:
        """Lower and upper end of every input, (n_features, 2)."""
        return self.function.bounds

    def draw(
        self,
        n_init: int,
        n_test: int,
        initial: np.random.Generator,
        test: np.random.Generator,
        pool: np.random.Generator,
    ) -> _Drawn:
        """Begin a trial.

        Parameters
        ----------
        n_init, n_test : int
            Numbers of initial observations and of test points.
        initial, test, pool : numpy.random.Generator
            For the initial observations, the test set and the pool.

        Returns
        -------
        X : ndarray of shape (n_init, n_features)
        y : ndarray of shape (n_init,)
        z : ndarray of shape (n_init,) or (n_init, n_limits), or None
            None where the function has no safety.
        X_test : ndarray of shape (n_test, n_features)
        y_test : ndarray of shape (n_test,)
        pool : None
            Any point of the bounds may be measured.
        measure : callable
            ``measure(x, index, rng)`` returns ``y`` and ``z`` of the rows of ``x``.

        Raises
        ------
        TypeError, ValueError
            If the function does not return finite numbers.
        RuntimeError
            If next to no point is safe.
        """
        X, y, *z = self.function.initial_points(n_init, initial, self.noise, True)
        X_test = self.function.safe_test_points(n_test, test)
        y_test, _ = self._measure(X_test, None, test)
        return X, y, z[0] if z else None, X_test, y_test, None, self._measure

    def safety(self, x: FloatArray) -> FloatArray:
        """Safety of points without noise.

        Parameters
        ----------
        x : ndarray of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,) or (n, n_limits)

        Raises
        ------
        ValueError
            The function has no safety.
        """
        return self.function.safety(x)

    def _measure(self, x, index, rng):
        measured = self.function.measure(x, rng, self.noise)
        return (measured, None) if self.function.q is None else measured


@dataclass(frozen=True, eq=False)
class TableSource:
    """Rows that were measured once and for all.

    Row i of ``X`` belongs to row i of ``y`` and ``z``, whatever labels tables and series have.

    Parameters
    ----------
    X : array-like of shape (n, n_features)
        Inputs. Kept as a read-only array, as all that follows.
    y : array-like of shape (n,)
        Outputs.
    z : array-like of shape (n,) or (n, n_limits), or None
        Safety measurements, a column for each limit. Booleans mean safe and not safe.
    bounds : array-like of shape (n_features, 2), pair of float, or None
        Lower and upper end of every input; one pair holds for all, None means (0, 1).
    safety_threshold : float or sequence of float of shape (n_limits,), default=0.0
        The limits, in the units of ``z``.
    safe_when : {"above", "below"} or a sequence of these, default="above"
        Safe means ``z >= safety_threshold``, or ``<=`` for "below". A row is safe if it keeps
        within all limits.

    Raises
    ------
    TypeError, ValueError
        If something is not finite or has another shape, ``bounds`` are not ordered, or a limit
        is unknown. The message names the argument.
    """

    X: FloatArray
    y: FloatArray
    z: NDArray[Any] | None
    bounds: FloatArray
    safety_threshold: Thresholds = 0.0
    safe_when: Sides = "above"

    if TYPE_CHECKING:
        # Takes more than is kept.
        def __init__(
            self,
            X: ArrayLike,
            y: ArrayLike,
            z: ArrayLike | None,
            bounds: Bounds,
            safety_threshold: Thresholds = 0.0,
            safe_when: Sides = "above",
        ) -> None: ...

    def __post_init__(self):
        X, y, z = observations(self.X, self.y, self.z)
        box = Box(self.bounds, X.shape[1])
        arrays = {"X": X, "y": y, "z": z, "bounds": np.stack([box.lower, box.upper], axis=1)}
        for name, array in arrays.items():
            if array is not None:
                array.setflags(write=False)
            object.__setattr__(self, name, array)
        self._is_safe()  # raises where the limits do not fit z

    def _is_safe(self):
        """Which rows keep within all limits; all rows where there are none."""
        if self.z is None:
            return np.ones(len(self.X), dtype=bool)
        margins = safety_margins(self.z, self.safety_threshold, self.safe_when, 1.0)
        return (margins >= 0).all(axis=1)

    @numpy_defaults
    def draw(
        self,
        n_init: int,
        n_test: int,
        initial: np.random.Generator,
        test: np.random.Generator,
        pool: np.random.Generator,
    ) -> _Drawn:
        """Begin a trial.

        Parameters
        ----------
        n_init, n_test : int
            Numbers of initial rows and of test rows. Both are safe.
        initial, test, pool : numpy.random.Generator
            For the initial rows and the test rows. The pool is what is left, without a draw.

        Returns
        -------
        X : ndarray of shape (n_init, n_features)
        y : ndarray of shape (n_init,)
        z : ndarray of shape (n_init,) or (n_init, n_limits), or None
        X_test : ndarray of shape (n_test, n_features)
        y_test : ndarray of shape (n_test,)
        pool : CandidatePool
            The other rows, unsafe ones included.
        measure : callable
            ``measure(x, index, rng)`` returns ``y`` and ``z`` of the rows ``index`` of the pool.

        Raises
        ------
        ValueError
            If the table has fewer safe rows than ``n_init + n_test``.
        """
        safe = np.flatnonzero(self._is_safe())
        if n_init + n_test > len(safe):
            kind = "rows" if self.z is None else "safe rows"
            raise ValueError(
                f"n_init + n_test = {n_init + n_test}, but the table has {len(safe)} {kind}; "
                "ask for fewer."
            )
        begun = initial.choice(self._central(safe, n_init), n_init, replace=False)
        tested = test.choice(np.setdiff1d(safe, begun), n_test, replace=False)
        rest = np.setdiff1d(np.arange(len(self.X)), np.concatenate([begun, tested]))
        z = None if self.z is None else self.z[begun]
        if not len(rest):
            raise ValueError(
                f"the table has {len(self.X)} rows, all of which n_init and n_test take; ask for "
                "fewer, so that rows are left for the pool."
            )
        candidates = CandidatePool(self.X[rest])

        def measure(x, index, rng):
            rows = rest[_pool_rows(index, len(x), len(rest))]
            return self.y[rows], None if self.z is None else self.z[rows]

        return self.X[begun], self.y[begun], z, self.X[tested], self.y[tested], candidates, measure

    def _central(self, safe, n):
        """Safe rows to begin with; without safety, all.

        Those of the centre box. Where it holds fewer than ``n``, a box of its size around the
        median of the safe rows, which grows until it holds ``n``.
        """
        if self.z is None:
            return safe
        low, high = self.bounds.T
        unit = (self.X[safe] - low) / (high - low)
        distance = np.abs(unit - 0.5).max(axis=1)
        if np.count_nonzero(distance <= _CENTRE) < n:
            distance = np.abs(unit - np.median(unit, axis=0)).max(axis=1)
        reach = max(_CENTRE, np.partition(distance, n - 1)[n - 1])
        return safe[distance <= reach + 1e-12]


def _pool_rows(index, n_points, n_rows):
    """The rows of a pool that an ``index`` names, one for each point."""
    if index is None:
        raise ValueError("index is needed to measure a table: pass the row of the pool.")
    rows = np.atleast_1d(np.asarray(index))
    if rows.shape != (n_points,) or rows.dtype.kind not in "iu":
        raise ValueError(
            f"index must hold one row of the pool, a whole number, for each of the {n_points} "
            f"points; got {index!r}."
        )
    if rows.min() < 0 or rows.max() >= n_rows:
        raise ValueError(
            f"index must be from 0 to {n_rows - 1}, the rows of the pool; got {index!r}."
        )
    return rows


@dataclass(frozen=True, eq=False)
class TrajectorySource:
    """The fluid system: random trajectories, measured with noise.

    Its one measurement is output and safety at once, ``z = -y``.

    Parameters
    ----------
    function : Function
        The fluid system.
    pool_size : int
        Number of trajectories in the pool.
    noise : float, default=0.1
        Standard deviation of the noise, in normalised units.

    Raises
    ------
    TypeError, ValueError
        If ``function`` is not a Function, ``pool_size`` is not a positive whole number, or
        ``noise`` is negative or not finite.
    """

    function: Function
    pool_size: int
    noise: float = 0.1

    def __post_init__(self):
        _check_function(self.function, self.noise)
        check_scalar(self.pool_size, "pool_size", Integral, min_val=1)

    @property
    def bounds(self) -> FloatArray:
        """Lower and upper end of every input, (7, 2)."""
        return self.function.bounds

    def draw(
        self,
        n_init: int,
        n_test: int,
        initial: np.random.Generator,
        test: np.random.Generator,
        pool: np.random.Generator,
    ) -> _Drawn:
        """Begin a trial.

        Parameters
        ----------
        n_init, n_test : int
            Numbers of initial observations and of test points.
        initial, test, pool : numpy.random.Generator
            For the initial observations, the test set and the pool.

        Returns
        -------
        X : ndarray of shape (n_init, 7)
        y, z : ndarray of shape (n_init,)
        X_test : ndarray of shape (n_test, 7)
        y_test : ndarray of shape (n_test,)
        pool : CandidatePool
            Of ``pool_size`` trajectories.
        measure : callable
            ``measure(x, index, rng)`` returns ``y`` and ``z`` of the rows of ``x``.
        """

        # Within the centre every point keeps the step size, and trajectories that stay there are
        # uniform, so they need not be waited for.
        def central(n):
            X = self.function.sample(n, "centre", initial)
            y, z = self._measure(X, None, initial)
            return z >= 0, X, y, z

        def anywhere(n):
            X = sample_fluid_trajectories(n, test)
            return self.function.safety(X) >= 0, X, self._measure(X, None, test)[0]

        X, y, z = _keep(n_init, central)
        X_test, y_test = _keep(n_test, anywhere)
        candidates = CandidatePool(sample_fluid_trajectories(self.pool_size, pool))
        return X, y, z, X_test, y_test, candidates, self._measure

    def safety(self, x: FloatArray) -> FloatArray:
        """Safety of trajectories without noise.

        Parameters
        ----------
        x : ndarray of shape (n, 7)

        Returns
        -------
        ndarray of shape (n,)
        """
        return -self.function.output(x)

    def _measure(self, x, index, rng):
        y = self.function.output(x) + self.noise * rng.standard_normal(len(x))
        return y, -y


def _check_function(function, noise):
    if not isinstance(function, Function):
        raise TypeError(
            "function must be a Function of sklearn_asal.datasets, which adds bounds to a plain "
            f"one; got {function!r}."
        )
    check_scalar(finite_number(noise, "noise"), "noise", Real, min_val=0)


def _keep(n, draw):
    """Draw until ``n`` rows are kept."""
    parts, kept, size = [], 0, max(2 * n, 64)
    while kept < n:
        keep, *arrays = draw(size)
        parts.append([array[keep] for array in arrays])
        kept += int(keep.sum())
    return tuple(np.concatenate(column)[:n] for column in zip(*parts, strict=True))
