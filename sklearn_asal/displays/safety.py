"""SafetyDisplay: how close to the limits a campaign came, and how well that was predicted."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr

from ..queriers.cut_short import FAILED, OK
from ..queriers.guard import Calibration, GuardAction
from ..validation import whole
from .campaign_data import CampaignData, campaign_of, data_of, unlogged
from .style import (
    BLACK,
    BLUE,
    CALLED,
    GREY,
    MARKS,
    ORANGE,
    PURPLE,
    SKY_BLUE,
    VERMILLION,
    axes_or_new,
    legend_below,
    panels,
    shade_unsafe,
    whole_ticks,
)

# Where predictions of proposals are drawn, beside those from all other runs.
_BESIDE = 0.2


class SafetyDisplay:
    """Safety measurements run by run, beside their leave-one-out predictions.

    Make one by :meth:`from_querier` or :meth:`from_campaign`, which draw it as well. Predictions
    are by the model of all other runs, of policy "any". At the right their calibration: the share
    of margins below each quantile of their predictions. Well calibrated ones follow the diagonal,
    within the band that holds 95 % of the shares of so many independent margins. Above it,
    margins are smaller than predicted.

    Parameters
    ----------
    data : CampaignData
        The observations.
    limits : tuple of int
        The limits that are shown.
    calibration : Calibration or None
        None where there are too few observations.
    actions : dict of int to GuardAction
        What a guard did, by the position of the observation.
    proposed : ndarray of shape (2, n, n_limits) or None
        Mean and standard deviation of each safety measurement as they were predicted when the run
        was proposed; NaN where they were not.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
    ax_ : matplotlib.axes.Axes
        An empty one that the panels are in.
    axes_ : ndarray of matplotlib.axes.Axes of shape (n_limits,)
        Of the measurements.
    calibration_axes_ : ndarray of matplotlib.axes.Axes
        Of the calibration; empty without.

    See Also
    --------
    CampaignDisplay : The same campaign over its inputs.

    Examples
    --------
    >>> from sklearn_asal import AmortizedSafeQuerier
    >>> from sklearn_asal.displays import SafetyDisplay
    >>> querier = AmortizedSafeQuerier(bounds=[(0, 6), (-5, 30)])
    >>> querier = querier.fit([[3, 12], [2, 10], [3, 15]], [0.3, 0.1, 0.5], [1.0, 0.9, -0.1])
    >>> display = SafetyDisplay.from_querier(querier, units={"z": "bar"})
    >>> display.axes_[0].get_ylabel()
    'z (bar)'
    """

    figure_: Any
    ax_: Any
    axes_: Any
    calibration_axes_: Any

    def __init__(
        self,
        *,
        data: CampaignData,
        limits: tuple[int, ...],
        calibration: Calibration | None = None,
        actions: Mapping[int, GuardAction] | None = None,
        proposed: np.ndarray | None = None,
    ) -> None:
        self.data = data
        self.limits = limits
        self.calibration = calibration
        self.actions = actions
        self.proposed = proposed

    @classmethod
    def from_querier(
        cls,
        querier: Any,
        *,
        limit: int | None = None,
        reports: Iterable[Any] | None = None,
        n_init: int | None = None,
        y_name: str = "y",
        z_name: str | Sequence[str] | None = None,
        units: Mapping[str, str] | None = None,
        ax: Any = None,
        **plot_params: Any,
    ) -> "SafetyDisplay":
        """Draw the campaign of a fitted querier with limits.

        Parameters
        ----------
        querier : querier
            Fitted. It is not changed.
        limit : int, default=None
            The limit that is shown, counted from 0; all by default.
        reports : sequence of Report or None, default=None
            What ``query(return_report=True)`` returned, in the order of the queries, from
            ``n_init`` on; None for a run that was not proposed. What was predicted then is drawn,
            and where a guard did not let a proposal pass it is marked.
        n_init, y_name, z_name, units
            See :meth:`CampaignDisplay.from_querier`.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; a new figure by default.
        **plot_params
            Of :meth:`plot`.

        Returns
        -------
        SafetyDisplay

        Raises
        ------
        sklearn.exceptions.NotFittedError
            The querier has no campaign.
        ValueError, TypeError
            The querier has no limits, or invalid arguments.
        """
        querier = unlogged(querier)
        data = data_of(querier, n_init=n_init, y_name=y_name, z_name=z_name, units=units)
        n_limits = len(data.thresholds)
        if not n_limits:
            raise ValueError(
                f"SafetyDisplay needs a querier with limits, which {type(querier).__name__} has "
                "not; take AmortizedSafeQuerier or GPSafeQuerier."
            )
        shown = tuple(range(n_limits))
        if limit is not None:
            if not 0 <= whole(limit, "limit") < n_limits:
                raise ValueError(f"limit must be from 0 to {n_limits - 1}, got {limit}.")
            shown = (limit,)
        reports = None if reports is None else list(reports)
        display = cls(
            data=data,
            limits=shown,
            calibration=_calibration(querier, data),
            actions=_actions(reports, data.n_init),
            proposed=_proposed(reports, data.n_init, len(data.X), n_limits),
        )
        return display.plot(ax, **plot_params)

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
        z_name: str | Sequence[str] | None = None,
        reports: Iterable[Any] | None = None,
        **params: Any,
    ) -> "SafetyDisplay":
        """Draw a campaign from arrays, from a table, or from a log.

        Parameters
        ----------
        X, y, z, querier_params, n_init, y_name, z_name
            See :meth:`CampaignDisplay.from_campaign`. Rows are in the order of measurement.
        reports : sequence of Report or None, default=None
            See :meth:`from_querier`; by default those that a log or a table has.
        **params
            See :meth:`from_querier`.

        Returns
        -------
        SafetyDisplay

        Raises
        ------
        FileNotFoundError
            There is no such log.
        ValueError, TypeError
            Invalid data or arguments, or a damaged log.
        """
        campaign = campaign_of(X, y, z, querier_params, n_init=n_init, y_name=y_name, z_name=z_name)
        reports = campaign.reports if reports is None else reports
        return cls.from_querier(campaign.querier, reports=reports, **campaign.names, **params)

    def plot(
        self, ax: Any = None, *, calibration: bool = True, legend: bool = True
    ) -> "SafetyDisplay":
        """Draw it, again or elsewhere.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; a new figure by default.
        calibration : bool, default=True
            Whether to show how well calibrated the predictions are.
        legend : bool, default=True

        Returns
        -------
        self

        Raises
        ------
        ValueError
            ``ax`` is not part of a grid.
        """
        calibration = calibration and self.calibration is not None
        n = len(self.limits)
        self.ax_ = axes_or_new(ax, (9.0 if calibration else 6.4, 1.4 + 2.4 * n))
        ratios = [3, 1] if calibration else [1]
        grid, below = panels(self.ax_, n, len(ratios), sharex="col", width_ratios=ratios)
        for panel, limit in zip(grid[:, 0], self.limits, strict=True):
            self._measurements(panel, limit)
        grid[-1, 0].set_xlabel("number of the run (from 0)")
        whole_ticks(grid[-1, 0].xaxis)
        if calibration:
            for panel, limit in zip(grid[:, 1], self.limits, strict=True):
                self._calibration(panel, limit)
            grid[-1, 1].set_xlabel("quantile of predictions")
        if legend:
            legend_below(below, grid[:, 0])
        self.axes_, self.calibration_axes_ = grid[:, 0], grid[:, 1:].ravel()
        self.figure_ = self.ax_.figure
        return self

    def _measurements(self, ax, limit):
        data, z = self.data, self.data.z[:, limit]
        run, threshold = np.arange(len(z)), data.thresholds[limit]
        ax.axhline(threshold, color=BLACK, ls="--", lw=1.2, label="limit")
        if self.calibration is not None:
            predicted = data.status != FAILED
            n = int(predicted.sum())
            mean = self.calibration.z_mean.reshape(n, -1)[:, limit]
            std = self.calibration.z_std.reshape(n, -1)[:, limit]
            ax.errorbar(
                run[predicted],
                mean,
                2 * std,
                fmt="_",
                color=SKY_BLUE,
                ecolor=SKY_BLUE,
                elinewidth=2.5,
                ms=7,
                label="predicted from all others, ± 2 std",
                zorder=1,
            )
        if self.proposed is not None:
            mean, std = self.proposed[:, :, limit]
            ax.errorbar(
                run + _BESIDE,
                mean,
                2 * std,
                fmt="_",
                color=ORANGE,
                elinewidth=1.0,
                ms=5,
                label="predicted when proposed, ± 2 std",
                zorder=1,
            )
        for name, mask in data.groups():
            known = mask & ~np.isnan(z)
            if known.any():
                ax.scatter(run[known], z[known], label=CALLED[name], zorder=3, **MARKS[name])
        # There is no number: what is unsafe goes to that edge.
        edge, unsafe_edge = ax.get_xaxis_transform(), 0.04 if data.above[limit] else 0.96
        for name, mask in data.groups():
            unknown = mask & np.isnan(z)
            if unknown.any():
                at = 1 - unsafe_edge if name == "failed" else unsafe_edge
                heights = np.full(unknown.sum(), at)
                ax.scatter(
                    run[unknown],
                    heights,
                    transform=edge,
                    label=CALLED[name],
                    zorder=3,
                    **MARKS[name],
                )
        shade_unsafe(ax, threshold, data.above[limit])
        labels = {True: "pulled back by the guard", False: "guard found nothing safe enough"}
        for i, action in (self.actions or {}).items():
            if i < len(z) and not action.passed:
                enough = action.is_safe_enough
                style, colour = (":", PURPLE) if enough else ("-.", VERMILLION)
                ax.axvline(i, color=colour, ls=style, lw=1.5, label=labels[enough], zorder=2)
        ax.set(xlim=(-0.5, len(z) - 0.5), ylabel=data.label(data.z_names[limit]))

    def _calibration(self, ax, limit):
        data, found = self.data, self.calibration
        measured = data.status[data.status != FAILED] == OK
        scores = found.scores[measured, limit]
        quantiles = np.sort(stdtr(found.dof[limit], -scores))
        n = len(quantiles)
        at = np.linspace(0, 1, 101)
        # Of n independent margins.
        spread = 1.96 * np.sqrt(at * (1 - at) / n)
        low, high = np.clip(at - spread, 0, 1), np.clip(at + spread, 0, 1)
        ax.fill_between(at, low, high, color=GREY, alpha=0.25, lw=0)
        ax.plot([0, 1], [0, 1], color=GREY, lw=1.0)
        steps = np.concatenate([[0.0], quantiles, [1.0]])
        shares = np.concatenate([[0.0], np.arange(1, n + 1) / n, [1.0]])
        ax.step(steps, shares, where="post", color=BLUE, lw=1.8)
        ax.set(xlim=(0, 1), ylim=(0, 1), ylabel="share of margins below")
        title = "calibration" if found.is_believable else "predicted too safe"
        ax.set_title(title, size="small", color=BLACK if found.is_believable else VERMILLION)


def _calibration(querier, data):
    """None where too few different observations are there to leave one out."""
    if not hasattr(querier, "calibration"):
        return None
    kept = data.status != FAILED
    rows = np.column_stack([data.X, data.z])[kept]
    if len(np.unique(rows, axis=0)) < 2:
        return None
    return querier.calibration()


def _by_run(reports, n_init):
    """What reports say of each run: its position, the report, and the row in it."""
    i = n_init
    for report in reports or ():
        many = 1 if report is None else len(report.y_mean)
        if report is not None:
            yield from ((i + row, report, row) for row in range(many))
        i += many


def _actions(reports, n_init):
    """What a guard did, by the position of the observation."""
    found = ((i, report.guard, row) for i, report, row in _by_run(reports, n_init))
    found = ((i, guard[row]) for i, guard, row in found if guard is not None)
    return {i: action for i, action in found if action is not None}


def _proposed(reports, n_init, n, n_limits):
    """Mean and standard deviation of safety measurements when their runs were proposed."""
    predicted = np.full((2, n, n_limits), np.nan)
    for i, report, row in _by_run(reports, n_init):
        if i < n and report.z_mean is not None:
            predicted[0, i], predicted[1, i] = report.z_mean[row], report.z_std[row]
    return None if np.isnan(predicted).all() else predicted
