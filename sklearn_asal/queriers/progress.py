"""Whether enough has been measured: the expected error, what more queries would bring, drift."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._typing import FloatArray
from ..pool import CandidatePool
from ..scaling import is_auto, moments
from ..settings import numpy_defaults
from ..space import by_name
from ..surrogates import AmortizedGP
from ..surrogates.drift import Drift, linear_drift
from ..surrogates.rmse import RootMeanSquareError, noise_std
from ..threads import one_thread
from ..validation import finite_number, whole
from .forecast import LikelySafe
from .repeats import pooled_std, reference_points

# The error that is expected, and the one that is compared with ``stop_when``.
_QUANTILES = 0.5, 0.85
# Measurements of one input from which on a drift is looked for.
_REPEATED = 3


@dataclass(frozen=True, eq=False)
class Progress:
    """How well the output is known, in its units; see :meth:`BaseQuerier.progress`.

    Attributes
    ----------
    rmse : float
        Expected root mean square error of the predicted output against the true one without
        noise: the median of its posterior. With limits it is about the points that are likely
        safe, with a probability of one half or more; else about all points within the bounds or
        of the pool. Infinite where the scale of the output is unknown: after one observation, or
        where all outputs are equal.
    rmse_upper : float
        The error is larger with a probability of 15 %.
    rmse_after : ndarray of shape (n_more,)
        Expected errors after 1, 2, ... more queries.
    noise_std : float
        Standard deviation of the measurement noise by the model; NaN where the scale is unknown.
    likely_safe : float
        Share of the bounds, or of the pool, that is likely safe; 1 without limits.
    is_enough : bool or None
        Whether ``rmse_upper`` is at most ``stop_when``; None where that is not stated.
    repeat_std : float or None
        Standard deviation of repeated measurements about the mean of their input, pooled over all
        inputs that were measured more than once; None without any. A drift is part of it.
    repeat_dof : int
        Its degrees of freedom.
    drift : Drift or None
        Whether outputs change with the order in which they were told
        (:class:`~sklearn_asal.surrogates.drift.Drift`); None unless an input was measured three
        times or more.
    """

    rmse: float
    rmse_upper: float
    rmse_after: FloatArray
    noise_std: float
    likely_safe: float
    is_enough: bool | None = None
    repeat_std: float | None = None
    repeat_dof: int = 0
    drift: Drift | None = None


class ProgressMixin:
    """What every querier has: ``progress``, ``is_finished``, and repeated measurements."""

    stop_when: float | None = None
    repeat_every: int | None = None

    @numpy_defaults
    def progress(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        z: ArrayLike | None = None,
        *,
        pool: ArrayLike | CandidatePool | None = None,
        n_more: int = 0,
    ) -> Progress:
        """How well the output is known, and what more queries would bring.

        By the models of policy "any", whatever chooses the queries; they need no scales. What more
        queries would bring is said of queries that are chosen as by policy "any", among a few
        hundred points.

        Parameters
        ----------
        X, y, z : array-like, default=None
            Observations to use in place of the campaign's. Their order, that of measurement,
            matters for ``drift`` alone.
        pool : array-like of shape (n_candidates, n_features) or CandidatePool, default=None
            The only points that matter, and that may be measured.
        n_more : int, default=0
            Number of queries to look ahead.

        Returns
        -------
        progress : Progress

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Neither data nor a campaign.
        ValueError, TypeError
            Invalid data or parameters.
        """
        querier: Any = self
        n_more = whole(n_more, "n_more", min_val=0)
        X = by_name(X, querier.bounds, "X")
        campaign, data = querier._data(X, y, z, "progress(X, y)")
        querier._check_setup(data[0].shape[1])
        self._check_progress()
        history, candidates = querier._history(campaign, data), None
        if pool is not None:
            pool = _as_pool(pool, querier.bounds)
            candidates = querier._candidates(pool, data, history, campaign)
        known = history.complete.observed
        order = np.flatnonzero(~np.isnan(data[1]))
        with one_thread(), history.cache.lock:
            output, limits = self._believed(history)
            region = LikelySafe(history, candidates, limits)
            error = RootMeanSquareError(output, region.points)
            rmse, upper = error.quantiles(_QUANTILES)
            after = region.error_after(n_more, error, output, limits)
            noise, drift = noise_std(output), None
            std, dof, most = pooled_std(known.X, known.y)
            if most >= _REPEATED:
                drift = linear_drift(output, known.X, known.y, order)
        scale = querier.y_scale
        scale = moments(data[1][order])[1] if is_auto(scale) else float(scale)
        stop = self.stop_when
        return Progress(
            rmse=float(scale * rmse),
            rmse_upper=float(scale * upper),
            rmse_after=scale * after,
            noise_std=float(scale * noise),
            likely_safe=region.share,
            is_enough=None if stop is None else bool(scale * upper <= stop),
            repeat_std=None if std is None else float(scale * std),
            repeat_dof=dof,
            drift=None if drift is None else drift.scaled(scale),
        )

    @numpy_defaults
    def is_finished(self, *, pool: ArrayLike | CandidatePool | None = None) -> bool:
        """Whether the campaign may stop, ``while not querier.is_finished(): ...``.

        Parameters
        ----------
        pool : array-like of shape (n_candidates, n_features) or CandidatePool, default=None
            As in ``progress``.

        Returns
        -------
        bool
            True where the budget is spent (experiments that are pending count), no row of the pool
            is left, or ``stop_when`` is reached (``progress().is_enough``). ``query`` answers all
            the same, unless the first two forbid it.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            ``fit`` has not been called.
        ValueError, TypeError
            Invalid parameters.
        """
        querier: Any = self
        if not hasattr(querier, "X_"):
            check_is_fitted(querier, msg="%(name)s: call fit(X, y) with initial data first.")
        if querier.budget is not None:
            n_asked = querier.n_told_ + len(querier.pending_)
            if n_asked >= whole(querier.budget, "budget"):
                return True
        if pool is not None:
            campaign, data = querier._data(None, None, None, "is_finished()")
            pool = _as_pool(pool, querier.bounds)
            history = querier._history(True, data)
            if not querier._candidates(pool, data, history, campaign).n_available:
                return True
        return self.stop_when is not None and bool(self.progress(pool=pool).is_enough)

    def _check_progress(self):
        """Raise where ``stop_when`` or ``repeat_every`` is invalid."""
        if self.stop_when is not None:
            finite_number(self.stop_when, "stop_when", True)
        if self.repeat_every is not None:
            whole(self.repeat_every, "repeat_every", min_val=2)

    def _believed(self, history):
        """Models of the output and of each limit, with the cache's lock; those of policy "any"."""
        # Beside a querier's own, as those of a guard, with which they share the limits'.
        models, known = history.cache.models, history.complete.observed

        def model(role, X, values, zero_mean=False):
            found = models.setdefault(role, ("amortized", AmortizedGP(zero_mean=zero_mean)))
            return found[1].update(X, values)

        output, observed = model("guard output", known.X, known.y), history.observed
        margins = enumerate(observed.margins)
        return output, [model(f"guard {j}", observed.X, margin, True) for j, margin in margins]

    def _repeated(self, history, candidates, offer=None):
        """What the next query repeats, None where it does not.

        Returns
        -------
        tuple (ndarray of shape (n_features,), int or None)
            A point of the unit cube, and its position in a pool.
        """
        self._check_progress()
        if (history.n_points + 1) % self.repeat_every:
            return None
        for i in reference_points(history):
            point = np.clip(history.X[i], 0.0, 1.0)
            if not history.is_free(point[None])[0]:
                continue
            if offer is not None and not offer.holds(history.box.from_unit(point[None])):
                continue
            if candidates is None:
                return point, None
            row = candidates.measured_row(i)
            if row is not None:
                return candidates.points[row], row
        return None


def _as_pool(pool, bounds):
    if isinstance(pool, CandidatePool):
        return pool
    return CandidatePool(by_name(pool, bounds, "pool"))
