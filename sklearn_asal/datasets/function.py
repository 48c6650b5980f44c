"""A function to learn: its box, its output, its safety and how they are measured."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral, Real

import numpy as np
from scipy.stats import qmc
from sklearn.utils import check_array, check_scalar

from ._random import generator

#: The centre box C of the paper, as a fraction of every side of the box.
CENTRE = (0.4, 0.6)

_N_NORMALISATION = 2**16
_MAX_DRAWS = 1_000_000


@dataclass(frozen=True, eq=False)
class Function:
    """A function to learn, with its box and, if it has one, its safety function.

    `f` and `q` speak raw units; everything else speaks the paper's normalised outputs. Inputs are
    always in the function's own units.

    Parameters
    ----------
    name : str
        Used in messages.
    bounds : array-like of shape (n_features, 2)
        Lower and upper end of every input, in the function's own units. Kept as a read-only array.
    f : callable
        `f(X)` of shape (n,): noise-free raw output at `X` of shape (n, n_features). A module-level
        function or an instance of a class, so that the object pickles.
    q : callable, optional
        `q(X)` of shape (n,): noise-free raw safety; safe means `q(X) >= 0`.
    y_loc, y_scale : float, default=0.0, 1.0
        `output(X)` is `(f(X) - y_loc) / y_scale`.
    z_scale : float, default=1.0
        `safety(X)` is `q(X) / z_scale`: never shifted, so that the limit stays at 0.

    Raises
    ------
    ValueError
        If `bounds` is not of shape (n_features, 2) with lower < upper, or a scale is not positive.

    Examples
    --------
    >>> from sklearn_asal.datasets import simionescu
    >>> task = simionescu()
    >>> X = task.initial_points(5, random_state=0)
    >>> y, z = task.measure(X, random_state=1)
    >>> X.shape, y.shape, z.shape
    ((5, 2), (5,), (5,))
    """

    name: str
    bounds: np.ndarray
    f: Callable = field(repr=False)
    q: Callable | None = field(default=None, repr=False)
    y_loc: float = 0.0
    y_scale: float = 1.0
    z_scale: float = 1.0

    def __post_init__(self):
        bounds = np.array(self.bounds, dtype=float)
        if bounds.ndim != 2 or bounds.shape[1] != 2 or not len(bounds):
            raise ValueError(
                f"bounds must have shape (n_features, 2), one (lower, upper) pair for every "
                f"input; got shape {bounds.shape}."
            )
        if not (np.isfinite(bounds).all() and (bounds[:, 0] < bounds[:, 1]).all()):
            raise ValueError("bounds must be finite, with lower < upper in every row.")
        for argument in ("y_scale", "z_scale"):
            if not getattr(self, argument) > 0:
                raise ValueError(f"{argument} must be positive; got {getattr(self, argument)!r}.")
        bounds.setflags(write=False)
        object.__setattr__(self, "bounds", bounds)

    @property
    def n_features(self):
        """Number of inputs."""
        return len(self.bounds)

    def normalise(self):
        """Return a copy whose `output` has mean 0 and standard deviation 1 over the box.

        The safety, if there is one, is divided by its standard deviation only. The moments are
        those of the first 65,536 points of the unscrambled Sobol sequence: noise-free samples as
        in the paper, yet the same at every call.

        Returns
        -------
        function : Function
        """
        unit = qmc.Sobol(self.n_features, scramble=False).random(_N_NORMALISATION)
        X = self._raw(unit)
        y = self.f(X)
        z_scale = 1.0 if self.q is None else float(self.q(X).std())
        return replace(self, y_loc=float(y.mean()), y_scale=float(y.std()), z_scale=z_scale)

    def output(self, X):
        """Noise-free normalised output.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Inputs in the function's own units; points outside `bounds` are evaluated too.

        Returns
        -------
        y : ndarray of shape (n,)

        Raises
        ------
        ValueError
            If `X` is not a finite 2-D array with `n_features` columns.
        """
        return (self.f(self._checked(X)) - self.y_loc) / self.y_scale

    def safety(self, X):
        """Noise-free normalised safety; safe means `>= 0`.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Inputs in the function's own units.

        Returns
        -------
        z : ndarray of shape (n,)

        Raises
        ------
        ValueError
            If `X` is not a finite 2-D array with `n_features` columns, or the function has no
            safety.
        """
        if self.q is None:
            raise ValueError(f"{self.name} has no safety function; use output(X), or pass q.")
        return self.q(self._checked(X)) / self.z_scale

    def measure(self, X, random_state=None, noise=0.1):
        """Noisy normalised measurements, as an experiment would return them.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Inputs in the function's own units.
        random_state : None, int or numpy.random.Generator
            An int gives the same noise at each call: in a loop over queries, pass a Generator.
        noise : float, default=0.1
            Standard deviation of the Gaussian noise, in normalised units; independent for y and z.

        Returns
        -------
        y : ndarray of shape (n,)
        z : ndarray of shape (n,)
            Only if the function has a safety: otherwise `y` is returned alone, not in a tuple.

        Raises
        ------
        ValueError
            If `X` is not a finite 2-D array with `n_features` columns, or `noise` is negative.
        """
        check_scalar(noise, "noise", Real, min_val=0)
        rng = generator(random_state)
        y = self.output(X)
        y = y + noise * rng.standard_normal(len(y))
        if self.q is None:
            return y
        z = self.safety(X)
        return y, z + noise * rng.standard_normal(len(z))

    def sample(self, n, region="all", random_state=None):
        """Uniform points.

        Parameters
        ----------
        n : int
            Number of points.
        region : {"all", "centre"}, default="all"
            The whole box, or its centre: 0.4 to 0.6 of every side.
        random_state : None, int or numpy.random.Generator

        Returns
        -------
        X : ndarray of shape (n, n_features)
            In the function's own units.

        Raises
        ------
        ValueError
            If `n` is negative or `region` is neither "all" nor "centre".
        """
        check_scalar(n, "n", Integral, min_val=0)
        if region not in ("all", "centre"):
            raise ValueError(f'region must be "all" or "centre"; got {region!r}.')
        low, high = CENTRE if region == "centre" else (0.0, 1.0)
        return self._raw(generator(random_state).uniform(low, high, (n, self.n_features)))

    def initial_points(self, n, random_state=None, noise=0.1, return_measurements=False):
        """Points to start a campaign from.

        With a safety: uniform in the centre box, keeping those whose *measured* z is >= 0
        (label alg-initial_sample). Without: uniform in the whole box
        (label alg-unconstrained_initial_sample).

        Parameters
        ----------
        n : int
            Number of points.
        random_state : None, int or numpy.random.Generator
        noise : float, default=0.1
            Standard deviation of the noise on the measurements, in normalised units.
        return_measurements : bool, default=False
            Whether to return the measurements that the points were kept for. Measuring again
            draws fresh noise, which can turn a point near the limit into an unsafe one.

        Returns
        -------
        X : ndarray of shape (n, n_features)
            In the function's own units.
        y, z : ndarray of shape (n,)
            Only if `return_measurements`; `z` only if the function has a safety.

        Raises
        ------
        ValueError
            If `n` or `noise` is negative.
        RuntimeError
            If over a million draws give too few safe points.
        """
        rng = generator(random_state)
        if self.q is None:
            X = self.sample(n, random_state=rng)
            return (X, self.measure(X, rng, noise)) if return_measurements else X

        def draw(size):
            X = self.sample(size, "centre", rng)
            y, z = self.measure(X, rng, noise)
            return z >= 0, X, y, z

        kept = self._rejection(n, draw, "the centre box")
        return kept if return_measurements else kept[0]

    def safe_test_points(self, n, random_state=None):
        """Uniform points of the box with noise-free safety >= 0, to test a model on.

        A function without safety gives uniform points of the whole box.

        Parameters
        ----------
        n : int
            Number of points.
        random_state : None, int or numpy.random.Generator

        Returns
        -------
        X : ndarray of shape (n, n_features)
            In the function's own units.

        Raises
        ------
        ValueError
            If `n` is negative.
        RuntimeError
            If over a million draws give too few safe points.
        """
        rng = generator(random_state)
        if self.q is None:
            return self.sample(n, random_state=rng)

        def draw(size):
            X = self.sample(size, "all", rng)
            return self.safety(X) >= 0, X

        return self._rejection(n, draw, "the box")[0]

    def _raw(self, unit):
        low, high = self.bounds.T
        return low + unit * (high - low)

    def _checked(self, X):
        X = check_array(X, dtype=np.float64, input_name="X", ensure_min_samples=0)
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"X has {X.shape[1]} features, but {self.name} takes {self.n_features}; pass one "
                f"column for every row of bounds."
            )
        return X

    def _rejection(self, n, draw, where):
        check_scalar(n, "n", Integral, min_val=0)
        size = max(n, 64)
        parts, found, drawn = [], 0, 0
        while not parts or found < n:
            if drawn >= _MAX_DRAWS + 100 * n:
                raise RuntimeError(
                    f"only {found} of {drawn} points drawn in {where} of {self.name} are safe, "
                    f"and n={n} were asked for; ask for fewer, or check the sign of q (safe "
                    f"means q >= 0)."
                )
            keep, *arrays = draw(size)
            parts.append([array[keep] for array in arrays])
            found += int(keep.sum())
            drawn += size
            size = max(size, min(2 * size, 65_536))
        return tuple(np.concatenate(column)[:n] for column in zip(*parts, strict=True))
