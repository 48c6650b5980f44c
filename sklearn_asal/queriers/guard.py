"""A guard on proposals, calibrated by what was measured, and what the calibration says."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, stdtrit
from sklearn.base import BaseEstimator
from sklearn.utils import check_scalar

from .._typing import FloatArray
from ..acquisition import argbest
from ..surrogates import AmortizedGP
from .history import SAME, History

# Rows of a pool that are looked at: so many near the choice, and near each measured-safe point.
_NEAR_CHOICE, _NEAR_SAFE = 256, 64
# Distances that differ by less differ by rounding.
_DIGITS = 9
# Fewer scores show nothing. Too many of them beyond these quantiles, at this level of a binomial
# test, and the model is not believed.
_ENOUGH, _TAILS, _LEVEL = 12, (0.05, 0.01), 0.01


@dataclass(frozen=True, eq=False)
class GuardAction:
    """What a guard did to one proposal.

    Attributes
    ----------
    passed : bool
        Whether the proposal was left as it was because it is safe enough.
    reason : str
        Why, in words.
    proposal, point : ndarray of shape (n_features,)
        Where the querier wanted to measure, and where it proposes to measure; in the user's units.
    anchor : ndarray of shape (n_features,) or None
        The measured-safe point it was pulled back to, in the user's units; None where it was not,
        and with a pool.
    distance : float
        From the proposal to the point, Euclidean, in the unit cube.
    shift : ndarray of shape (n_features,)
        From the proposal to the point, in the user's units.
    limit : int
        Which limit the next three are about: the one that the proposal is worst in.
    required, given, reached : float
        Standard deviations by which the predicted margin has to exceed zero, those it does at the
        proposal, and those at the point.
    is_safe_enough : bool
        Whether the point itself has what is required; if not, it is the safest that was looked at.
    is_believable : bool
        What :class:`Calibration` says of the model.
    """

    passed: bool
    reason: str
    proposal: FloatArray
    point: FloatArray
    anchor: FloatArray | None
    distance: float
    shift: FloatArray
    limit: int
    required: float
    given: float
    reached: float
    is_safe_enough: bool
    is_believable: bool


@dataclass(frozen=True, eq=False)
class Calibration:
    """How the margins measured so far compare with what the model of all others expects.

    Attributes
    ----------
    p_safe : ndarray of shape (n,)
        Leave-one-out probability of each measurement to keep all limits.
    is_safe : ndarray of bool of shape (n,)
        Whether it did.
    scores : ndarray of shape (n, n_limits)
        Leave-one-out residuals of the margins, predicted minus measured, over the predictive
        scale. Positive ones were predicted too safe.
    z_mean, z_std : ndarray of shape (n,) or (n, n_limits)
        Leave-one-out predictions of the safety measurements and their standard deviations, in the
        user's units, noise included.
    dof : ndarray of shape (n_limits,)
        Degrees of freedom of Student's t distribution, which the model expects the scores to have.
    quantile : ndarray of shape (n_limits,)
        Conformal quantile of the scores, see :meth:`SafetyGuard.required`.
    required : ndarray of shape (n_limits,)
        Standard deviations that a proposal needs.
    is_believable : bool
        False where, of a dozen measurements or more, more scores lie above the 95 % or the 99 %
        quantile of the model's Student t distribution than a binomial test at 1 % allows.
    """

    p_safe: FloatArray
    is_safe: NDArray[np.bool_]
    scores: FloatArray
    z_mean: FloatArray
    z_std: FloatArray
    dof: FloatArray
    quantile: FloatArray
    required: FloatArray
    is_believable: bool


class SafetyGuard(BaseEstimator):
    """Lets a proposal pass if measured margins say that it is safe; else pulls it back.

    The predicted margin has to exceed zero by so many standard deviations as the model, or the
    conformal quantile of its leave-one-out residuals, demands; see :meth:`required`. A proposal
    that fails is moved along the segments to the nearest points measured as safe.

    Parameters
    ----------
    gamma : float, default=0.1
        Tolerated probability that a measurement that passes is unsafe; above 0, at most 0.5. Of
        several limits each gets an equal part. Most proposals are far safer: with 0.1 campaigns
        were at least as safe as with 0.05 where scales were right, and cost less accuracy.
    n_nearest : int, default=3
        Points measured as safe that a proposal is pulled back to.
    n_steps : int, default=32
        Equal steps into which each of the segments is divided.

    Examples
    --------
    >>> from sklearn_asal import AmortizedSafeQuerier, SafetyGuard
    >>> querier = AmortizedSafeQuerier("2d", guard=SafetyGuard(gamma=0.02))
    >>> querier = querier.fit([[0.5, 0.5], [0.4, 0.6]], [0.3, 0.1], [1.0, 0.9])
    >>> querier.guard_.check([[0.45, 0.55], [0.0, 1.0]])
    array([ True, False])
    """

    def __init__(self, gamma: float = 0.1, n_nearest: int = 3, n_steps: int = 32) -> None:
        self.gamma = gamma
        self.n_nearest = n_nearest
        self.n_steps = n_steps

    def check_params(self) -> None:
        """Raise if a parameter is invalid.

        Raises
        ------
        TypeError, ValueError
            The message names the parameter.
        """
        gamma = self.gamma
        check_scalar(gamma, "gamma of the guard", Real, min_val=0, max_val=0.5)
        if not gamma > 0:
            raise ValueError(f"gamma of the guard must be above 0 and at most 0.5, got {gamma}.")
        check_scalar(self.n_nearest, "n_nearest", Integral, min_val=1)
        check_scalar(self.n_steps, "n_steps", Integral, min_val=2)

    def required(self, limits: Sequence[AmortizedGP]) -> FloatArray:
        """Standard deviations by which the margin has to exceed zero.

        The larger one of the ``1 - gamma`` quantile of the model's Student t distribution and of
        the conformal quantile of the leave-one-out scores, the ``ceil((n + 1)(1 - gamma))``-th
        smallest of ``n``; the largest, where there are too few for that.

        Parameters
        ----------
        limits : sequence of AmortizedGP
            Models of the margins, fitted.

        Returns
        -------
        ndarray of shape (n_limits,)
        """
        gamma = self.gamma / len(limits)
        of_model = [stdtrit(model.dof_, 1.0 - gamma) for model in limits]
        return np.maximum(of_model, self.conformal_quantile(limits))

    def conformal_quantile(self, limits: Sequence[AmortizedGP]) -> FloatArray:
        """Conformal quantile of the leave-one-out scores of each limit.

        Parameters
        ----------
        limits : sequence of AmortizedGP
            See :meth:`required`.

        Returns
        -------
        ndarray of shape (n_limits,)
            Minus infinity where there is but one observation; one that is repeated counts once.
        """
        return np.array([self._quantile(model, self.gamma / len(limits)) for model in limits])

    def _quantile(self, model, gamma):
        n = len(model.X_)
        if n < 2:
            return -np.inf
        # Less rounding, or an exact whole number might count as the next.
        rank = math.ceil(round((n + 1) * (1.0 - gamma), _DIGITS))
        rank = min(rank, n) - 1
        return np.partition(model.leave_one_out(), rank)[rank]

    def given(self, points: FloatArray, limits: Sequence[AmortizedGP]) -> FloatArray:
        """Standard deviations by which predicted margins exceed zero.

        Parameters
        ----------
        points : ndarray of shape (m, n_features)
            In the unit cube.
        limits : sequence of AmortizedGP
            See :meth:`required`.

        Returns
        -------
        ndarray of shape (m, n_limits)
        """
        return np.column_stack([np.divide(*model.location_and_scale(points)) for model in limits])

    def check(self, points: FloatArray, limits: Sequence[AmortizedGP]) -> NDArray[np.bool_]:
        """Which points are safe enough.

        Parameters
        ----------
        points, limits
            See :meth:`given`.

        Returns
        -------
        ndarray of bool of shape (m,)
        """
        enough: NDArray[np.bool_] = self.given(points, limits) >= self.required(limits)
        return np.logical_and.reduce(enough, axis=1)

    def pull_back(
        self, point: FloatArray, history: History, limits: Sequence[AmortizedGP]
    ) -> tuple[FloatArray, GuardAction]:
        """The proposal itself if it passes; else the passing point nearest to it.

        Of all segments from the proposal to the nearest points measured as safe. Points that are
        measured, or pending, are left out. Where none passes, it is the safest of all that were
        looked at, the proposal included.

        Parameters
        ----------
        point : ndarray of shape (n_features,)
            In the unit cube.
        history : History
        limits : sequence of AmortizedGP
            Models of its margins.

        Returns
        -------
        point : ndarray of shape (n_features,)
        action : GuardAction
        """
        judge = _Judge(self, point, history, limits)
        if judge.passed:
            return point, judge.action(point)
        anchors = self._anchors(point, history)
        steps = np.arange(1, self.n_steps) / self.n_steps
        ways = anchors[:, None] + steps[:, None] * (point - anchors[:, None])
        looked = ways.reshape(-1, len(point)).clip(0.0, 1.0)
        apart = np.abs(looked[:, None] - history.X).max(axis=2).min(axis=1)
        new = np.flatnonzero(apart > SAME)
        best, moved = judge.best_of(looked[new])
        if best is None:
            return point, judge.action(point)
        anchor = anchors[new[best] // len(steps)]
        return looked[new[best]], judge.action(looked[new[best]], anchor, moved)

    def choose_row(
        self, row: int, history: History, candidates: Any, limits: Sequence[AmortizedGP]
    ) -> tuple[int, GuardAction]:
        """As :meth:`pull_back`, among available rows of a pool.

        Of the rows nearest to the choice and to the nearest points measured as safe.

        Parameters
        ----------
        row : int
            Position of the choice.
        history, limits
            See :meth:`pull_back`.
        candidates : Candidates

        Returns
        -------
        row : int
        action : GuardAction
        """
        point = candidates.points[row]
        judge = _Judge(self, point, history, limits)
        if judge.passed:
            return row, judge.action(point)
        near = [candidates.nearest(point, _NEAR_CHOICE)]
        near += [candidates.nearest(one, _NEAR_SAFE) for one in self._anchors(point, history)]
        positions = np.unique(np.concatenate(near))
        best, moved = judge.best_of(candidates.points[positions])
        if best is None:
            return row, judge.action(point)
        chosen = int(positions[best])
        return chosen, judge.action(candidates.points[chosen], None, moved)

    def _anchors(self, point, history):
        """The nearest points measured as safe, ``(k, n_features)``."""
        observed = history.observed
        safe = np.unique(observed.X[observed.worst_margin >= 0], axis=0)
        away = np.linalg.norm(safe - point, axis=1).round(_DIGITS)
        return safe[np.argsort(away, kind="stable")[: self.n_nearest]]


class _Judge:
    """What is required of one proposal, and what other points have to offer."""

    def __init__(self, guard, point, history, limits):
        self._guard, self._point, self._history, self._limits = guard, point, history, limits
        self._required = guard.required(limits)
        self._given = guard.given(point[None], limits)[0]
        self._limit = int(np.argmin(self._given - self._required))
        self.passed = bool((self._given >= self._required).all())

    def best_of(self, looked):
        """The nearest point that passes, else the safest; None where that is the proposal."""
        if not len(looked):
            return None, None
        given = self._guard.given(looked, self._limits)
        passing = np.flatnonzero((given >= self._required).all(axis=1))
        if len(passing):
            away = np.linalg.norm(looked[passing] - self._point, axis=1)
            best = passing[argbest(-away, looked[passing])]
        else:
            spare = (given - self._required).min(axis=1)
            best = argbest(spare, looked)
            if spare[best] <= (self._given - self._required).min():
                return None, None
        return int(best), given[best]

    def action(self, point, anchor=None, given=None):
        """What was done, in the user's units."""
        given = self._given if given is None else given
        enough = bool((given >= self._required).all())
        rows = [self._point, point] if anchor is None else [self._point, point, anchor]
        proposal, moved, *anchor = self._history.box.from_unit(rows)
        limit = self._limit
        return GuardAction(
            passed=self.passed,
            reason=self._reason(enough),
            proposal=proposal,
            point=moved,
            anchor=anchor[0] if anchor else None,
            distance=float(np.linalg.norm(point - self._point)),
            shift=moved - proposal,
            limit=limit,
            required=float(self._required[limit]),
            given=float(self._given[limit]),
            reached=float(given[limit]),
            is_safe_enough=enough,
            is_believable=is_believable(self._limits),
        )

    def _reason(self, enough):
        need = f"the {self._required[self._limit]:.3g} standard deviations that limit {self._limit}"
        if self.passed:
            return f"the proposal has {need} requires"
        if enough:
            return f"the proposal has less than {need} requires; the point has them"
        if not (self._history.observed.worst_margin >= 0).any():
            return f"the proposal has less than {need} requires, and nothing measured is safe"
        return f"no point that was looked at has {need} requires; this is the safest"


def is_believable(limits: Sequence[AmortizedGP]) -> bool:
    """Whether no more margins were predicted too safe than the models allow.

    Parameters
    ----------
    limits : sequence of AmortizedGP
        Models of the margins, fitted.

    Returns
    -------
    bool
        See :class:`Calibration`; True with fewer than a dozen observations.
    """
    for model in limits:
        n = len(model.X_)
        if n < _ENOUGH:
            continue
        scores = model.leave_one_out()
        for tail in _TAILS:
            beyond = np.count_nonzero(scores > stdtrit(model.dof_ - 1, 1.0 - tail))
            # That many or more.
            if beyond and bdtrc(beyond - 1, n, tail) < _LEVEL / len(limits):
                return False
    return True


def calibrated(
    guard: SafetyGuard,
    history: History,
    limits: Sequence[AmortizedGP],
    in_units: Callable[[Any], tuple[FloatArray, FloatArray]],
) -> Calibration:
    """What the measured margins say of their models.

    Parameters
    ----------
    guard : SafetyGuard
    history : History
    limits : sequence of AmortizedGP
        Models of its margins.
    in_units : callable
        Means and standard deviations of safety measurements in the user's units, of those of
        margins, ``(n_limits, 2, n)``.

    Returns
    -------
    Calibration

    Raises
    ------
    ValueError
        Fewer than two observations.
    """
    scores = np.column_stack([model.leave_one_out()[model.which_] for model in limits])
    predicted = [np.array(model.leave_one_out_prediction())[:, model.which_] for model in limits]
    z_mean, z_std = in_units(predicted)
    each = [model.leave_one_out_probability()[model.which_] for model in limits]
    p_safe = np.prod(each, axis=0)
    return Calibration(
        p_safe=p_safe,
        is_safe=history.observed.worst_margin >= 0,
        scores=scores,
        z_mean=z_mean,
        z_std=z_std,
        dof=np.array([model.dof_ - 1.0 for model in limits]),
        quantile=guard.conformal_quantile(limits),
        required=guard.required(limits),
        is_believable=is_believable(limits),
    )
