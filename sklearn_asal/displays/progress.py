"""ProgressDisplay: the expected error over the number of observations."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from ..acquisition import POSSIBLY_SAFE
from ..queriers.cut_short import OK
from ..queriers.drawing import Drawing
from ..queriers.region import Known, Region
from ..validation import finite_array, whole
from .campaign_data import data_of, querier_of
from .style import BLUE, GREY, VERMILLION, axes_or_new, legend_below, named


class ProgressDisplay:
    """The error that a model expects of itself, over the number of observations.

    Make one by :meth:`from_querier`, :meth:`from_campaign` or :meth:`from_values`, which draw it
    as well.

    Parameters
    ----------
    n_observed : ndarray of shape (k,)
        Numbers of observations.
    expected_rmse : ndarray of shape (k,)
        Root of the mean posterior variance of a measurement, noise included, in the units of the
        output.
    noise_std : float or None
        Standard deviation of the noise, which no expected error falls below.
    true_rmse : ndarray of shape (k,) or None
        Errors on test data.
    y_name : str
    y_unit : str or None

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
    ax_ : matplotlib.axes.Axes

    Examples
    --------
    >>> from sklearn_asal.displays import ProgressDisplay
    >>> display = ProgressDisplay.from_values([5, 10, 15], [0.8, 0.4, 0.2], noise_std=0.1)
    >>> display.ax_.get_xlabel()
    'observations'
    """

    figure_: Any
    ax_: Any

    def __init__(
        self,
        *,
        n_observed: np.ndarray,
        expected_rmse: np.ndarray,
        noise_std: float | None = None,
        true_rmse: np.ndarray | None = None,
        y_name: str = "y",
        y_unit: str | None = None,
    ) -> None:
        self.n_observed = n_observed
        self.expected_rmse = expected_rmse
        self.noise_std = noise_std
        self.true_rmse = true_rmse
        self.y_name = y_name
        self.y_unit = y_unit

    @classmethod
    def from_values(
        cls,
        n_observed: ArrayLike,
        expected_rmse: ArrayLike,
        noise_std: float | None = None,
        true_rmse: ArrayLike | None = None,
        *,
        y_name: str = "y",
        y_unit: str | None = None,
        ax: Any = None,
        **plot_params: Any,
    ) -> "ProgressDisplay":
        """Draw errors that are known.

        Parameters
        ----------
        n_observed : array-like of shape (k,)
        expected_rmse : array-like of shape (k,)
        noise_std : float, default=None
        true_rmse : array-like of shape (k,), default=None
        y_name : str, default="y"
            What the output is called.
        y_unit : str, default=None
        ax : matplotlib.axes.Axes, default=None
            Where to draw; a new figure by default.
        **plot_params
            Of :meth:`plot`.

        Returns
        -------
        ProgressDisplay

        Raises
        ------
        ValueError, TypeError
            Not finite numbers, or arrays of different lengths.
        """
        parts = {"n_observed": n_observed, "expected_rmse": expected_rmse, "true_rmse": true_rmse}
        arrays = {
            name: finite_array(part, name, ndim=1)
            for name, part in parts.items()
            if part is not None
        }
        for name, array in arrays.items():
            if array.shape != (len(arrays["n_observed"]),):
                raise ValueError(
                    f"{name} must have one number for each of the {len(arrays['n_observed'])} of "
                    f"n_observed; its shape is {array.shape}."
                )
        display = cls(**arrays, noise_std=noise_std, y_name=y_name, y_unit=y_unit)
        return display.plot(ax, **plot_params)

    @classmethod
    def from_querier(
        cls,
        querier: Any,
        *,
        every: int = 1,
        n_points: int = 512,
        noise_std: float | None = None,
        X_test: ArrayLike | None = None,
        y_test: ArrayLike | None = None,
        n_init: int | None = None,
        y_name: str = "y",
        units: Mapping[str, str] | None = None,
        ax: Any = None,
        **plot_params: Any,
    ) -> "ProgressDisplay":
        """Replay the campaign of a fitted querier.

        From the initial observations on, the querier's models are asked after every run what
        error they expect: the root of the mean variance at points all over the bounds. Of these
        the constraints must hold, and the models of the whole campaign must say that they may be
        safe.

        Parameters
        ----------
        querier : querier
            Fitted, with models. It is not changed.
        every : int, default=1
            Runs between two values; the last run always has one.
        n_points : int, default=512
            Points that are asked about.
        noise_std : float, default=None
            Of the output, if it is known.
        X_test, y_test : array-like of shape (m, n_features) and (m,), default=None
            Test data, of which the true error is shown.
        n_init : int, default=None
            Observations to begin with. By default those that ``fit`` got.
        y_name, units
            See :meth:`CampaignDisplay.from_querier`.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; a new figure by default.
        **plot_params
            Of :meth:`plot`.

        Returns
        -------
        ProgressDisplay

        Raises
        ------
        sklearn.exceptions.NotFittedError
            The querier has no campaign.
        TypeError
            The querier has no models.
        ValueError
            Invalid arguments, or no point may be safe.
        """
        data = data_of(querier, n_init=n_init, y_name=y_name, units=units)
        if not hasattr(querier, "assess"):
            raise TypeError(
                f"ProgressDisplay asks models what they expect, and {type(querier).__name__} has "
                "none; take another querier, or from_values."
            )
        if (X_test is None) != (y_test is None):
            raise ValueError("X_test and y_test belong together; pass both, or neither.")
        whole(every, "every", min_val=1)
        points = _reference(querier, data, whole(n_points, "n_points", min_val=1))
        test = None
        if X_test is not None:
            test = finite_array(X_test, "X_test"), finite_array(y_test, "y_test", ndim=1)
            if test[1].shape != test[0].shape[:1]:
                raise ValueError(
                    f"y_test must have one number for each of the {len(test[0])} rows of X_test; "
                    f"its shape is {test[1].shape}."
                )
        numbers, expected, true = [], [], []
        for n, then in _replayed(querier, data):
            if (n - data.n_init) % every and n < len(data.X):
                continue
            numbers.append(n)
            expected.append(np.sqrt(np.mean(then.assess(points).y_std ** 2)))
            if test is not None:
                true.append(np.sqrt(np.mean((then.assess(test[0]).y_mean - test[1]) ** 2)))
        return cls.from_values(
            numbers,
            expected,
            noise_std,
            true if test is not None else None,
            y_name=y_name,
            y_unit=data.units.get(y_name),
            ax=ax,
            **plot_params,
        )

    @classmethod
    def from_campaign(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        z: ArrayLike | None = None,
        *,
        querier_params: Mapping[str, Any] | None = None,
        n_init: int = 1,
        **params: Any,
    ) -> "ProgressDisplay":
        """Replay measurements that no querier holds, in the order in which they were made.

        Parameters
        ----------
        X, y, z, querier_params
            See :meth:`CampaignDisplay.from_campaign`.
        n_init : int, default=1
            Observations to begin with.
        **params
            See :meth:`from_querier`.

        Returns
        -------
        ProgressDisplay

        Raises
        ------
        ValueError, TypeError
            Invalid data or arguments.
        """
        querier = querier_of(X, y, z, querier_params)
        return cls.from_querier(querier, n_init=n_init, **params)

    def plot(self, ax: Any = None, *, log: bool = False, legend: bool = True) -> "ProgressDisplay":
        """Draw it, again or elsewhere.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; a new figure by default.
        log : bool, default=False
            Whether errors have a logarithmic scale.
        legend : bool, default=True

        Returns
        -------
        self
        """
        ax = axes_or_new(ax, (6.4, 4.0))
        ax.plot(self.n_observed, self.expected_rmse, "o-", ms=3, color=BLUE, label="expected")
        if self.true_rmse is not None:
            ax.plot(
                self.n_observed, self.true_rmse, "s--", ms=3, color=VERMILLION, label="on test data"
            )
        if self.noise_std is not None:
            ax.axhline(self.noise_std, color=GREY, ls=":", lw=2.0, label="noise")
        if log:
            ax.set_yscale("log")
        else:
            ax.set_ylim(bottom=0.0)
        unit = None if self.y_unit is None else {self.y_name: self.y_unit}
        ax.set(xlabel="observations", ylabel=f"RMSE of {named(self.y_name, unit)}")
        if legend:
            legend_below(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _reference(querier, data, n_points):
    """Points all over the bounds that may be measured and may be safe."""
    box = data.box
    region = Region(box, Known(getattr(querier, "constraints", None), box))
    history = querier._history(*querier._data(None, None, None, "from_querier"))
    spread = Drawing(region, history, np.random.default_rng(0)).spread()
    points = box.from_unit(spread[:n_points])
    if not len(points):
        raise ValueError("no point of the bounds was found that satisfies the constraints.")
    p_safe = querier.assess(points).p_safe
    if p_safe is not None:
        points = points[p_safe >= POSSIBLY_SAFE]
        if not len(points):
            raise ValueError("no point of the bounds may be safe; check safety_threshold.")
    return points


def _replayed(querier, data):
    """Yield numbers of observations, and a querier that was told so many."""
    X, y, z, status = querier.X_, querier.y_, querier.z_, data.status
    z = z if querier._has_z else None
    complete = (status == OK) & ~np.isnan(y)
    # Fewer observations than these make no model.
    n = max(data.n_init, int(complete.argmax()) + 1)
    first = np.flatnonzero(status[:n] == OK)
    then = clone(querier)

    def tell(i):
        known = () if status[i] != OK else (y[i], None if z is None else z[i])
        _quietly(then.tell, X[i], *known, status=str(status[i]))

    _quietly(then.fit, X[first], y[first], None if z is None else z[first])
    for i in set(range(n)) - set(first.tolist()):
        tell(i)
    yield n, then
    for i in range(n, len(X)):
        tell(i)
        yield i + 1, then


def _quietly(call, *args, **params):
    """A call without warnings, which are known from the campaign itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*args, **params)
