"""ProgressDisplay: the expected error over the number of observations."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from ..queriers.progress import Progress
from ..validation import finite_array, whole
from .campaign_data import CampaignData, begun, campaign_of, continued, data_of, unlogged
from .style import (
    BLUE,
    GREEN,
    GREY,
    SKY_BLUE,
    VERMILLION,
    axes_or_new,
    legend_below,
    named,
    whole_ticks,
)


class ProgressDisplay:
    """The error to be expected of a model of the output, over the number of observations.

    Make one by :meth:`from_querier`, :meth:`from_campaign` or :meth:`from_values`, which draw it
    as well.

    Parameters
    ----------
    n_observed : ndarray of shape (k,)
        Numbers of observations.
    expected_rmse : ndarray of shape (k,)
        Expected root mean square errors, in the units of the output, see
        :class:`~sklearn_asal.queriers.progress.Progress`.
    noise_std : float or None
        Standard deviation of the measurement noise.
    true_rmse : ndarray of shape (k,) or None
        Errors on test data, whose noise is part of them.
    rmse_upper : ndarray of shape (k,) or None
        Errors are larger with a probability of 15 %.
    stop_when : float or None
        The error that is small enough.
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
        rmse_upper: np.ndarray | None = None,
        stop_when: float | None = None,
        y_name: str = "y",
        y_unit: str | None = None,
    ) -> None:
        self.n_observed = n_observed
        self.expected_rmse = expected_rmse
        self.noise_std = noise_std
        self.true_rmse = true_rmse
        self.rmse_upper = rmse_upper
        self.stop_when = stop_when
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
        rmse_upper: ArrayLike | None = None,
        stop_when: float | None = None,
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
        rmse_upper : array-like of shape (k,), default=None
        stop_when : float, default=None
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
        parts = {
            "n_observed": n_observed,
            "expected_rmse": expected_rmse,
            "true_rmse": true_rmse,
            "rmse_upper": rmse_upper,
        }
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
        display = cls(
            **arrays, noise_std=noise_std, stop_when=stop_when, y_name=y_name, y_unit=y_unit
        )
        return display.plot(ax, **plot_params)

    @classmethod
    def from_querier(
        cls,
        querier: Any,
        *,
        every: int = 1,
        pool: Any = None,
        noise_std: float | None = None,
        X_test: ArrayLike | None = None,
        y_test: ArrayLike | None = None,
        n_init: int | None = None,
        y_name: str = "y",
        z_name: Any = None,
        units: Mapping[str, str] | None = None,
        ax: Any = None,
        **plot_params: Any,
    ) -> "ProgressDisplay":
        """Replay the campaign of a fitted querier.

        From the initial observations on, ``querier.progress()`` is asked after every run. Nothing
        is proposed again.

        Parameters
        ----------
        querier : querier
            Fitted. It is not changed, nor its log.
        every : int, default=1
            Runs between two values; the last run always has one.
        pool : array-like of shape (n_candidates, n_features) or CandidatePool, default=None
            The only points that matter, see ``progress``.
        noise_std : float, default=None
            Of the output, if it is known; by default what the model thinks in the end.
        X_test, y_test : array-like of shape (m, n_features) and (m,), default=None
            Test data, of which the true error of the querier's models is shown.
        n_init : int, default=None
            Observations to begin with. By default those that ``fit`` got.
        y_name, z_name, units
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
            Test data, and a querier that has no models.
        ValueError
            Invalid arguments, or nothing can be said yet: the scale of the output is unknown.
        """
        querier = unlogged(querier)
        data = data_of(querier, n_init=n_init, y_name=y_name, z_name=z_name, units=units)
        if (X_test is None) != (y_test is None):
            raise ValueError("X_test and y_test belong together; pass both, or neither.")
        test = None
        if X_test is not None:
            if not hasattr(querier, "assess"):
                raise TypeError(
                    f"X_test is for queriers with models, and {type(querier).__name__} has none; "
                    "leave it out, or take from_values."
                )
            test = finite_array(X_test, "X_test"), finite_array(y_test, "y_test", ndim=1)
            if test[1].shape != test[0].shape[:1]:
                raise ValueError(
                    f"y_test must have one number for each of the {len(test[0])} rows of X_test; "
                    f"its shape is {test[1].shape}."
                )

        def error(then):
            return np.sqrt(np.mean((then.assess(test[0]).y_mean - test[1]) ** 2))

        def ask(n, then):
            return then.progress(pool=pool), None if test is None else error(then)

        found = replayed(querier, data, every, ask)
        known = {n: one for n, one in found.items() if is_known(one[0])}
        if not known:
            raise ValueError(
                "nothing can be said of the error yet: measure outputs that differ from each other."
            )
        parts = list(known.values())
        last = parts[-1][0]
        return cls.from_values(
            list(known),
            [progress.rmse for progress, _ in parts],
            last.noise_std if noise_std is None else noise_std,
            None if test is None else [true for _, true in parts],
            rmse_upper=[progress.rmse_upper for progress, _ in parts],
            stop_when=querier.stop_when,
            y_name=y_name,
            y_unit=data.units.get(y_name),
            ax=ax,
            **plot_params,
        )

    @classmethod
    def from_campaign(
        cls,
        X: Any,
        y: ArrayLike | None = None,
        z: ArrayLike | None = None,
        *,
        querier_params: Mapping[str, Any] | None = None,
        n_init: int | None = None,
        y_name: str = "y",
        z_name: Any = None,
        **params: Any,
    ) -> "ProgressDisplay":
        """Replay a campaign from arrays, from a table, or from a log.

        Parameters
        ----------
        X, y, z, querier_params, y_name, z_name
            See :meth:`CampaignDisplay.from_campaign`. Rows are in the order of measurement.
        n_init : int, default=None
            Observations to begin with. By default what a log or a table says, or one.
        **params
            See :meth:`from_querier`.

        Returns
        -------
        ProgressDisplay

        Raises
        ------
        FileNotFoundError
            There is no such log.
        ValueError, TypeError
            Invalid data or arguments, or a damaged log.
        """
        campaign = campaign_of(
            X, y, z, querier_params, n_init=n_init, y_name=y_name, z_name=z_name, least=1
        )
        return cls.from_querier(campaign.querier, **campaign.names, **params)

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
        n, expected = self.n_observed, self.expected_rmse
        if self.rmse_upper is not None:
            band = {"color": SKY_BLUE, "alpha": 0.35, "lw": 0}
            ax.fill_between(n, expected, self.rmse_upper, label="larger in 15 %", **band)
        ax.plot(n, expected, "o-", ms=3, color=BLUE, label="expected error")
        if self.true_rmse is not None:
            ax.plot(n, self.true_rmse, "s--", ms=3, color=VERMILLION, label="on test data")
        if self.noise_std is not None:
            ax.axhline(self.noise_std, color=GREY, ls=":", lw=2.0, label="noise")
        if self.stop_when is not None:
            ax.axhline(self.stop_when, color=GREEN, ls="--", lw=1.5, label="enough (stop_when)")
        if log:
            ax.set_yscale("log")
        else:
            ax.set_ylim(bottom=0.0)
        whole_ticks(ax.xaxis)
        unit = None if self.y_unit is None else {self.y_name: self.y_unit}
        ax.set(xlabel="observations", ylabel=f"error (RMSE) of {named(self.y_name, unit)}")
        if legend:
            legend_below(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def replayed(
    querier: Any, data: CampaignData, every: int, ask: Callable[[int, Any], Any]
) -> dict[int, Any]:
    """What a querier says after every few observations of its campaign.

    Parameters
    ----------
    querier : querier
        Fitted, without a log.
    data : CampaignData
        Of the same.
    every : int
        Observations between two questions, from ``data.n_init`` on; the last one has a question.
    ask : callable
        Of the number of observations, and of a querier that was told so many.

    Returns
    -------
    dict of int to object
        What ``ask`` returned.

    Raises
    ------
    ValueError, TypeError
        ``every`` is no positive whole number.
    """
    whole(every, "every", min_val=1)
    z = querier.z_ if querier._has_z else None
    told = querier.X_, querier.y_, z, data.status
    then, n_all = clone(querier), len(data.X)
    n = begun(then, *told, data.n_init)
    answers = {n: ask(n, then)}
    while n < n_all:
        before, n = n, min(n_all, n + every - (n - data.n_init) % every)
        continued(then, *told, np.arange(before, n))
        answers[n] = ask(n, then)
    return answers


def is_known(progress: Progress) -> bool:
    """Whether the scale of the output is known, without which nothing can be said."""
    return bool(np.isfinite(progress.rmse_upper))
