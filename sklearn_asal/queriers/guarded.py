"""What a querier adds whose proposals a guard checks."""

import contextlib
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr
from sklearn.utils.validation import check_is_fitted

from .._typing import FloatArray
from ..exceptions import NoSafeCandidateError, SafetyWarning, warn_user
from ..settings import numpy_defaults
from ..space import by_name
from ..threads import one_thread
from .base import measured
from .guard import Calibration, SafetyGuard, calibrated
from .reporting import raw_limits


class GuardedMixin:
    """A safe querier with a parameter ``guard``, ``guard_`` and ``calibration``.

    Goes before :class:`~sklearn_asal.queriers.reporting.ReportingQuerier` in the list of bases.
    A subclass implements :meth:`_margin_models`.
    """

    guard: bool | SafetyGuard | None
    on_no_safe: str | None
    _on_no_safe: tuple[str | None, ...] = ("raise", "least_unsafe")

    @property
    def guard_(self) -> "CampaignGuard":
        """The guard on the campaign's data: ``guard`` if it is one, else the default.

        Whether queries are guarded or not, it can be asked.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            ``fit`` has not been called.
        """
        check_is_fitted(self, "X_")
        return CampaignGuard(self)

    @numpy_defaults
    def calibration(
        self, X: ArrayLike | None = None, y: ArrayLike | None = None, z: ArrayLike | None = None
    ) -> Calibration:
        """How the measured margins compare with what the models of all others expect.

        By the models of policy "any", whatever chooses the queries.

        Parameters
        ----------
        X, y, z : array-like, default=None
            Observations to use in place of the campaign's.

        Returns
        -------
        Calibration

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Neither data nor a campaign.
        ValueError, TypeError
            Invalid data or parameters, or fewer than two observations.
        """
        base: Any = self
        X = by_name(X, base.bounds, "X")
        campaign, data = base._data(X, y, z, "calibration(X, y)")
        base._check_setup(data[0].shape[1])
        history = base._history(campaign, data)
        with one_thread(), history.cache.lock:
            limits = self._margin_models(history)
            n = min(len(model.X_) for model in limits)
            if n < 2:
                raise ValueError(
                    f"calibration needs two observations or more, and there are {n}. One that is "
                    "repeated, with the same outcome, counts once."
                )
            z_measured = measured(data, history)[2]
            in_units = partial(raw_limits, self, z=z_measured)
            return calibrated(self._stated_guard(), history, limits, in_units)

    def _margin_models(self, history):
        """Models of the margins, one for each limit; to be called with the cache's lock."""
        raise NotImplementedError

    @property
    def _guards(self):
        """Whether queries are guarded."""
        return self._guards_by_default if self.guard is None else self.guard is not False

    @property
    def _guards_by_default(self):
        """Whether queries are guarded where that is not stated."""
        return False

    def _stated_guard(self):
        return self.guard if isinstance(self.guard, SafetyGuard) else SafetyGuard()

    def _check_setup(self, n_features, budget=None):
        super()._check_setup(n_features, budget)
        guard = self.guard
        if isinstance(guard, SafetyGuard):
            guard.check_params()
        elif guard is not None and not isinstance(guard, bool):
            raise TypeError(f"guard must be True, False, None or a SafetyGuard, got {guard!r}.")
        if self.on_no_safe not in self._on_no_safe:
            raise ValueError(
                f"on_no_safe must be 'raise' or 'least_unsafe', got {self.on_no_safe!r}."
            )

    def _prepare(self, history):
        super()._prepare(history)
        if not self._guards:
            return
        # A controller waits for queries, not for tells. Without models the query will say so: the
        # data are told.
        with contextlib.suppress(ValueError), one_thread(), history.cache.lock:
            for model in self._margin_models(history):
                if len(model.X_) > 1:
                    model.leave_one_out()

    def _guarded(self, chosen, history, candidates):
        if not self._guards:
            return chosen, None
        guard = self._stated_guard()
        with one_thread(), history.cache.lock:
            limits = self._margin_models(history)
            if candidates is None:
                chosen, action = guard.pull_back(chosen, history, limits)
            else:
                chosen, action = guard.choose_row(int(chosen), history, candidates, limits)
        if not action.is_safe_enough and self.on_no_safe == "raise":
            point = chosen if candidates is None else candidates.points[chosen]
            sure = stdtr(limits[action.limit].dof_, [action.reached, action.required]).tolist()
            raise NoSafeCandidateError(point, *sure)
        return chosen, action

    def _warn_of_guard(self, actions):
        actions = [one for one in actions or () if one is not None]
        if not all(one.is_safe_enough for one in actions):
            # The same words each time, so that they are shown but once.
            warn_user(
                "the guard found no point that is safe enough on the way from a proposal to what "
                "is measured as safe; the safest that it looked at is proposed. Measure closer to "
                "what is known to be safe, or check safety_threshold and bounds.",
                SafetyWarning,
            )
        if not all(one.is_believable for one in actions):
            warn_user(
                "more margins were predicted too safe, each by the model of all others, than the "
                "model allows. Either z varies over shorter distances, or is noisier in places, "
                "than the model can know, or, of a policy by name, z_scale is not the scale of z. "
                "calibration() has the figures.",
                SafetyWarning,
            )


class CampaignGuard:
    """A guard on the data of a campaign, in the user's units; see ``querier.guard_``.

    Parameters
    ----------
    querier : AmortizedSafeQuerier or GPSafeQuerier
        Fitted.
    """

    def __init__(self, querier: Any) -> None:
        self._querier = querier

    @numpy_defaults
    def check(self, x: ArrayLike) -> NDArray[np.bool_]:
        """Which points are safe enough to be measured.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (n, n_features)
            In the user's units.

        Returns
        -------
        ndarray of bool of shape (n,)

        Raises
        ------
        ValueError, TypeError
            Invalid points or parameters.
        """

        def checked(guard, x_, history, limits):
            return guard.check(history.box.to_unit(x_), limits)

        return self._asked(x, checked)

    @numpy_defaults
    def pull_back(self, x: ArrayLike) -> FloatArray:
        """What the guard would have measured in place of each of some points.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (n, n_features)
            In the user's units.

        Returns
        -------
        ndarray of shape (n, n_features)
            Points that pass as they are.

        Raises
        ------
        ValueError, TypeError
            See :meth:`check`.
        """

        def moved(guard, x_, history, limits):
            points = history.box.to_unit(x_)
            actions = [guard.pull_back(point, history, limits)[1] for point in points]
            return np.array(
                [row if one.passed else one.point for row, one in zip(x_, actions, strict=True)]
            )

        return self._asked(x, moved)

    def _asked(self, x, answer):
        querier = self._querier
        campaign, data = querier._data(None, None, None, "guard_")
        n_features = data[0].shape[1]
        querier._check_setup(n_features)
        x_ = querier._points(x, "x", n_features)
        history = querier._history(campaign, data)
        with one_thread(), history.cache.lock:
            limits = querier._margin_models(history)
            return answer(querier._stated_guard(), x_, history, limits)
