"""A function to learn: its box, its output, its safety and how they are measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import qmc
from sklearn.utils import check_scalar

from .._typing import FloatArray, RandomState
from ..box import Box
from ..limits import safety_margins
from ..settings import numpy_defaults
from ..validation import finite_array, finite_number, safety_signals
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
        `f(X)` of shape (n,) or (n, 1): noise-free raw output at `X` of shape (n, n_features). A
        module-level function or an instance of a class, so that the object pickles.
    q : callable, optional
        `q(X)` of shape (n,), or (n, n_limits) for several limits: noise-free raw safety. Safe
        means `q(X) >= 0` for every limit. Booleans mean safe and not safe; they are measured as 1
        and -1.
    y_loc, y_scale : float, default=0.0, 1.0
        `output(X)` is `(f(X) - y_loc) / y_scale`.
    z_scale : float or sequence of float of shape (n_limits,), default=1.0
        `safety(X)` is `q(X) / z_scale`: never shifted, so that the limit stays at 0.

    Raises
    ------
    TypeError
        If `f` or `q` is not callable, or `bounds` are no numbers.
    ValueError
        If `bounds` is not of shape (n_features, 2) with lower < upper, a number is not finite, or
        a scale is not positive.

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
    bounds: FloatArray
    f: Callable[[FloatArray], Any] = field(repr=False)
    q: Callable[[FloatArray], Any] | None = field(default=None, repr=False)
    y_loc: float = 0.0
    y_scale: float = 1.0
    z_scale: float | tuple[float, ...] = 1.0

    if TYPE_CHECKING:
        # Takes more than is kept.
        def __init__(
            self,
            name: str,
            bounds: ArrayLike,
            f: Callable[[FloatArray], Any],
            q: Callable[[FloatArray], Any] | None = None,
            y_loc: float = 0.0,
            y_scale: float = 1.0,
            z_scale: float | Sequence[float] = 1.0,
        ) -> None: ...

    def __post_init__(self):
        bounds = finite_array(self.bounds, "bounds", ndim=1)
        if bounds.ndim != 2 or bounds.shape[1] != 2:
            raise ValueError(
                f"bounds must have shape (n_features, 2), one (lower, upper) pair for every "
                f"input; got shape {bounds.shape}."
            )
        Box(bounds, len(bounds))  # raises unless lower < upper
        bounds.setflags(write=False)
        for argument in ("f", "q"):
            value = getattr(self, argument)
            if not callable(value) and not (argument == "q" and value is None):
                raise TypeError(
                    f"{argument} must be a function that takes X of shape (n, n_features); got "
                    f"{value!r}."
                )
        settings = {
            "bounds": bounds,
            "y_loc": finite_number(self.y_loc, "y_loc"),
            "y_scale": finite_number(self.y_scale, "y_scale", positive=True),
            "z_scale": _scales(self.z_scale),
        }
        for argument, value in settings.items():
            object.__setattr__(self, argument, value)

    @property
    def n_features(self) -> int:
        """Number of inputs."""
        return len(self.bounds)

    @numpy_defaults
    def normalise(self) -> "Function":
        """Return a copy whose `output` has mean 0 and standard deviation 1 over the box.

        The safety, if there is one, is divided by its standard deviation only, each limit by its
        own. The moments are those of the first 65,536 points of the unscrambled Sobol sequence:
        noise-free samples as in the paper, yet the same at every call. What is constant there is
        divided by 1.

        Returns
        -------
        function : Function

        Raises
        ------
        ValueError
            If `f` or `q` does not return finite numbers, one for each point (and limit).
        """
        X = self._raw(qmc.Sobol(self.n_features, scramble=False).random(_N_NORMALISATION))
        raw = replace(self, y_loc=0.0, y_scale=1.0, z_scale=1.0)
        y = raw.output(X)
        z_scale: float | tuple[float, ...] = 1.0
        if self.q is not None:
            z = raw.safety(X)
            z_scale = _deviation(z) if z.ndim == 1 else tuple(map(_deviation, z.T))
        return replace(self, y_loc=y.mean(), y_scale=_deviation(y), z_scale=z_scale)

    @numpy_defaults
    def output(self, X: ArrayLike) -> FloatArray:
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
        TypeError, ValueError
            If `X` is not a finite 2-D array with `n_features` columns, or `f` does not return one
            finite number for each of its rows.
        """
        return (self._outputs(self._checked(X)) - self.y_loc) / self.y_scale

    @numpy_defaults
    def safety(self, X: ArrayLike) -> FloatArray:
        """Noise-free normalised safety; safe means `>= 0`.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Inputs in the function's own units.

        Returns
        -------
        z : ndarray of shape (n,) or (n, n_limits)
            Where `q` returns booleans, 1 is safe and -1 is not.

        Raises
        ------
        TypeError, ValueError
            If `X` is not a finite 2-D array with `n_features` columns, the function has no
            safety, or `q` does not return finite numbers or booleans, one for each row and limit.
        """
        if self.q is None:
            raise ValueError(f"{self.name} has no safety function; use output(X), or pass q.")
        signals = self._signals(self._checked(X))
        if not len(signals):
            return signals
        z = safety_margins(signals, 0.0, "above", self.z_scale)
        return z[:, 0] if z.shape[1] == 1 else z

    @numpy_defaults
    def measure(self, X: ArrayLike, random_state: RandomState = None, noise: float = 0.1) -> Any:
        """Noisy normalised measurements, as an experiment would return them.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Inputs in the function's own units.
        random_state : None, int or numpy.random.Generator
            An int gives the same noise at each call: in a loop over queries, pass a Generator.
        noise : float, default=0.1
            Standard deviation of the Gaussian noise, in normalised units; independent for y and
            every limit of z.

        Returns
        -------
        y : ndarray of shape (n,)
        z : ndarray of shape (n,) or (n, n_limits)
            Only if the function has a safety: otherwise `y` is returned alone, not in a tuple.

        Raises
        ------
        TypeError, ValueError
            If `X` is not a finite 2-D array with `n_features` columns, `noise` is negative or not
            finite, or `f` or `q` does not return finite numbers, one for each row (and limit).
        """
        check_scalar(finite_number(noise, "noise"), "noise", Real, min_val=0)
        rng = generator(random_state)
        y = self.output(X)
        y = y + noise * rng.standard_normal(len(y))
        if self.q is None:
            return y
        z = self.safety(X)
        return y, z + noise * rng.standard_normal(z.shape)

    def sample(
        self,
        n: int,
        region: Literal["all", "centre"] = "all",
        random_state: RandomState = None,
    ) -> FloatArray:
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

    @overload
    def initial_points(
        self,
        n: int,
        random_state: RandomState = ...,
        noise: float = ...,
        return_measurements: Literal[False] = ...,
    ) -> FloatArray: ...

    @overload
    def initial_points(
        self,
        n: int,
        random_state: RandomState = ...,
        noise: float = ...,
        return_measurements: bool = ...,
    ) -> Any: ...

    def initial_points(
        self,
        n: int,
        random_state: RandomState = None,
        noise: float = 0.1,
        return_measurements: bool = False,
    ) -> Any:
        """Points to start a campaign from.

        With a safety: uniform in the centre box, keeping those whose *measured* z is >= 0 for
        every limit (label alg-initial_sample). Without: uniform in the whole box
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
        y : ndarray of shape (n,)
            Only if `return_measurements`.
        z : ndarray of shape (n,) or (n, n_limits)
            Likewise, and only if the function has a safety.

        Raises
        ------
        TypeError, ValueError
            If `n` or `noise` is negative, or `f` or `q` does not return finite numbers.
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
            return _all_safe(z), X, y, z

        kept = self._rejection(n, draw, "the centre box")
        return kept if return_measurements else kept[0]

    def safe_test_points(self, n: int, random_state: RandomState = None) -> FloatArray:
        """Uniform points of the box with noise-free safety >= 0 for all limits, for a test set.

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
        TypeError, ValueError
            If `n` is negative, or `q` does not return finite numbers.
        RuntimeError
            If over a million draws give too few safe points.
        """
        rng = generator(random_state)
        if self.q is None:
            return self.sample(n, random_state=rng)

        def draw(size):
            X = self.sample(size, "all", rng)
            return _all_safe(self.safety(X)), X

        return self._rejection(n, draw, "the box")[0]

    def _raw(self, unit):
        low, high = self.bounds.T
        return low + unit * (high - low)

    def _checked(self, X):
        if not (isinstance(X, np.ndarray) and X.shape == (0, self.n_features)):
            X = finite_array(X, "X")
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"X has {X.shape[1]} features, but {self.name} takes {self.n_features}; pass one "
                f"column for every row of bounds."
            )
        return X

    def _outputs(self, X):
        return self._called("f", X, partial(finite_array, name="f", ndim=1), 1, "(n,)")

    def _signals(self, X):
        return self._called("q", X, safety_signals, 2, "(n,) or (n, n_limits)")

    def _called(self, argument, X, validate, most_dimensions, allowed):
        """What `f` or `q` returns at validated points; a single column becomes one-dimensional."""
        if len(X) == 0:
            return np.empty(0)
        values = getattr(self, argument)(X)
        if not (np.isscalar(values) or getattr(values, "ndim", None) == 0):
            try:
                values = validate(values)
            except (TypeError, ValueError) as error:
                kind = TypeError if isinstance(error, TypeError) else ValueError
                raise kind(
                    f"{argument} of {self.name} must return finite numbers: {error}"
                ) from error
            if values.ndim == 2 and values.shape[1] == 1:
                values = values[:, 0]
            if values.ndim <= most_dimensions and len(values) == len(X):
                return values
        raise ValueError(
            f"{argument} of {self.name} must return shape {allowed}, one value for each row of X; "
            f"for X of shape {X.shape} it returned shape {np.shape(values)}. A constant is "
            "np.full(len(X), value)."
        )

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


def _scales(value):
    """One positive number, or one for each limit."""
    if np.ndim(value) == 0:
        return finite_number(value, "z_scale", positive=True)
    return tuple(finite_number(scale, "z_scale", positive=True) for scale in value)


def _deviation(values):
    """Standard deviation, with 1 in place of one that is nothing but rounding."""
    deviation = values.std()
    return deviation if deviation > 1e-14 * np.abs(values).max() else 1.0


def _all_safe(z):
    """Which rows keep within every limit."""
    return (z.reshape(len(z), -1) >= 0).all(axis=1)
