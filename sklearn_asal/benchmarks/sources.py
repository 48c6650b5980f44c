"""Where the measurements of a task come from: a function, a table, random trajectories."""

from dataclasses import dataclass

import numpy as np

from .. import CandidatePool
from ..datasets import Function, sample_fluid_trajectories

# Half the side of the centre box of the paper, as a fraction of the bounds.
_CENTRE = 0.1


@dataclass(frozen=True, eq=False)
class FunctionSource:
    """A function that can be measured anywhere in its bounds.

    Parameters
    ----------
    function : Function
        With a safety for the suite "safe", without for "al".
    noise : float, default=0.1
        Standard deviation of the noise on both measurements, in normalised units.
    """

    function: Function
    noise: float = 0.1

    @property
    def bounds(self):
        """Lower and upper end of every input, (n_features, 2)."""
        return self.function.bounds

    def draw(self, n_init, n_test, initial, test, pool):
        """Initial observations, test set, pool and ``measure(x, index, rng)``."""
        X, y, *z = self.function.initial_points(n_init, initial, self.noise, True)
        X_test = self.function.safe_test_points(n_test, test)
        y_test, _ = self._measure(X_test, None, test)
        return X, y, z[0] if z else None, X_test, y_test, None, self._measure

    def _measure(self, x, index, rng):
        measured = self.function.measure(x, rng, self.noise)
        return (measured, None) if self.function.q is None else measured


@dataclass(frozen=True, eq=False)
class TableSource:
    """Rows that were measured once and for all.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    y : ndarray of shape (n,)
    z : ndarray of shape (n,) or None
        Safe rows have ``z >= 0``.
    bounds : ndarray of shape (n_features, 2)
    """

    X: np.ndarray
    y: np.ndarray
    z: np.ndarray | None
    bounds: np.ndarray

    def draw(self, n_init, n_test, initial, test, pool):
        """Initial rows, test rows, pool of the rest and ``measure(x, index, rng)``."""
        safe = np.arange(len(self.X)) if self.z is None else np.flatnonzero(self.z >= 0)
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
        candidates = CandidatePool(self.X[rest])

        def measure(x, index, rng):
            if index is None:
                raise ValueError("index is needed to measure a table: pass the row of the pool.")
            rows = rest[np.atleast_1d(index)]
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
    """

    function: Function
    pool_size: int
    noise: float = 0.1

    @property
    def bounds(self):
        """Lower and upper end of every input, (7, 2)."""
        return self.function.bounds

    def draw(self, n_init, n_test, initial, test, pool):
        """Initial observations, test set, pool and ``measure(x, index, rng)``."""

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

    def _measure(self, x, index, rng):
        y = self.function.output(x) + self.noise * rng.standard_normal(len(x))
        return y, -y


def _keep(n, draw):
    """Draw until ``n`` rows are kept."""
    parts, kept, size = [], 0, max(2 * n, 64)
    while kept < n:
        keep, *arrays = draw(size)
        parts.append([array[keep] for array in arrays])
        kept += int(keep.sum())
    return tuple(np.concatenate(column)[:n] for column in zip(*parts, strict=True))
