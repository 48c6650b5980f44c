"""What models expect of proposals, in the user's units."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray, IntArray
from ..acquisition import Report, predicted, probability_of_feasibility
from ..limits import boolean_limits, margin_scales
from ..log import campaign as logging
from ..pool import CandidatePool
from ..scaling import is_auto, moments
from ..settings import numpy_defaults
from ..space import box_of, by_name
from ..threads import one_thread
from .base import BaseQuerier, check_one, measured

# What a log says of a proposal.
REPORTED = "y_mean", "y_std", "p_safe", "z_mean", "z_std"


class ReportingQuerier(BaseQuerier):
    """A querier with ``query(..., return_report=True)`` and ``assess``.

    A subclass implements :meth:`_models`.
    """

    @overload
    def query(
        self,
        X: ArrayLike | None = ...,
        y: ArrayLike | None = ...,
        z: ArrayLike | None = ...,
        *,
        budget: int | None = ...,
        pool: ArrayLike | CandidatePool | None = ...,
        n_queries: int = ...,
        fixed: Mapping[Any, float] | None = ...,
        pending: ArrayLike | None = ...,
        return_indices: Literal[False] = ...,
        return_report: Literal[False] = ...,
    ) -> FloatArray: ...

    @overload
    def query(
        self,
        X: ArrayLike | None = ...,
        y: ArrayLike | None = ...,
        z: ArrayLike | None = ...,
        *,
        budget: int | None = ...,
        pool: ArrayLike | CandidatePool | None = ...,
        n_queries: int = ...,
        fixed: Mapping[Any, float] | None = ...,
        pending: ArrayLike | None = ...,
        return_indices: Literal[True],
        return_report: Literal[False] = ...,
    ) -> tuple[FloatArray, IntArray]: ...

    @overload
    def query(
        self,
        X: ArrayLike | None = ...,
        y: ArrayLike | None = ...,
        z: ArrayLike | None = ...,
        *,
        budget: int | None = ...,
        pool: ArrayLike | CandidatePool | None = ...,
        n_queries: int = ...,
        fixed: Mapping[Any, float] | None = ...,
        pending: ArrayLike | None = ...,
        return_indices: Literal[False] = ...,
        return_report: Literal[True],
    ) -> tuple[FloatArray, Report]: ...

    @overload
    def query(
        self,
        X: ArrayLike | None = ...,
        y: ArrayLike | None = ...,
        z: ArrayLike | None = ...,
        *,
        budget: int | None = ...,
        pool: ArrayLike | CandidatePool | None = ...,
        n_queries: int = ...,
        fixed: Mapping[Any, float] | None = ...,
        pending: ArrayLike | None = ...,
        return_indices: Literal[True],
        return_report: Literal[True],
    ) -> tuple[FloatArray, IntArray, Report]: ...

    @overload
    def query(
        self,
        X: ArrayLike | None = ...,
        y: ArrayLike | None = ...,
        z: ArrayLike | None = ...,
        *,
        budget: int | None = ...,
        pool: ArrayLike | CandidatePool | None = ...,
        n_queries: int = ...,
        fixed: Mapping[Any, float] | None = ...,
        pending: ArrayLike | None = ...,
        return_indices: bool = ...,
        return_report: bool = ...,
        path: bool = ...,
    ) -> Any: ...

    @numpy_defaults
    def query(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        z: ArrayLike | None = None,
        *,
        budget: int | None = None,
        pool: ArrayLike | CandidatePool | None = None,
        n_queries: int = 1,
        fixed: Mapping[Any, float] | None = None,
        pending: ArrayLike | None = None,
        return_indices: bool = False,
        return_report: bool = False,
        path: bool = False,
    ) -> Any:
        """Propose where to measure next. Never changes the querier.

        Like the ``query`` of every querier, with one more parameter. Where models choose, the
        choice does not depend on the budget, but a spent one raises; with ``n_queries`` above 1,
        points already chosen lower the uncertainty about the output where they lie, and
        hyperparameters, and all that is said about safety, come from the observations alone.

        Parameters
        ----------
        X, y, z, budget, pool, n_queries, fixed, pending, return_indices
            See :meth:`BaseQuerier.query`. All rows of a pool are compared by models that are
            fitted; by the ensemble and the amortized ones, about ``n_candidates`` rows from all
            over the pool, others at each query, and more only where none of them is safe enough;
            by policies by name, rows near to their proposal.
        return_report : bool, default=False
            Return what the models expect of the proposals, given the observations
            (see :meth:`assess`), and what a guard did to them.
        path : bool, default=False
            See :meth:`BaseQuerier.query`.

        Returns
        -------
        points : ndarray of shape (n_queries, n_features)
            In the user's units and inside the bounds.
        indices : ndarray of int of shape (n_queries,)
            Rows of the pool, counted from 0; only with ``return_indices``.
        report : Report
            Only with ``return_report``.
        approach : Approach
            Only with ``path``.

        Raises
        ------
        NoSafeCandidateError
            Nothing is safe enough; ``GPSafeQuerier`` only.
        NotFittedError, BudgetExhaustedError, PoolExhaustedError, ValueError, TypeError
            See :meth:`BaseQuerier.query`.
        """
        if path:
            check_one(n_queries)
        answer, actions = self._query(
            X, y, z, budget, pool, n_queries, return_indices, fixed, pending
        )
        if not return_report and not path:
            return answer
        parts = answer if return_indices else (answer,)
        points = parts[0]
        if return_report:
            report = replace(self.assess(points, X, y, z), guard=actions)
            parts = *parts, report
            if X is None and self.log is not None:
                facts = {name: getattr(report, name) for name in REPORTED}
                logging.record(self, "report", safely=False, **facts)
        return (*parts, self.approach(points, X, y, z)) if path else parts

    def _p_safe(self, points, X, y, z):
        return self.assess(points, X, y, z).p_safe

    @numpy_defaults
    def assess(
        self,
        x: ArrayLike,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        z: ArrayLike | None = None,
    ) -> Report:
        """What the models expect of measurements at any points, proposed by whomever.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (n, n_features)
            In the user's units.
        X, y, z : array-like, default=None
            Observations to use in place of the campaign's.

        Returns
        -------
        report : Report

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Neither data nor a campaign.
        ValueError, TypeError
            Invalid data or parameters.
        """
        X = by_name(X, self.bounds, "X")
        campaign, data = self._data(X, y, z, "assess(x, X, y)")
        n_features = data[0].shape[1]
        self._check_setup(n_features)
        points = box_of(self.bounds, n_features).to_unit(self._points(x, "x", n_features))
        history = self._history(campaign, data)
        with one_thread(), history.cache.lock:
            output, limits = self._models(history)
            mean, std = predicted(output, points)
            margin = [predicted(model, points) for model in limits]
            p_safe = probability_of_feasibility(limits, points) if limits else None
        data = measured(data, history)
        loc = moments(data[1])[0] if is_auto(self.y_loc) else float(self.y_loc)
        scale = moments(data[1])[1] if is_auto(self.y_scale) else float(self.y_scale)
        raw = raw_limits(self, margin, data[2]) if limits else (None, None)
        return Report(loc + scale * mean, scale * std, p_safe, *raw)

    def _models(self, history):
        """Models of the output and of each limit, for the report; a subclass must write it."""
        raise NotImplementedError


def raw_limits(querier, margin, z):
    """Means and standard deviations of safety measurements in the user's units.

    Parameters
    ----------
    querier : querier
    margin : sequence of (mean, std) of shape (n_limits, 2, n)
        Of margins, at unit scale.
    z : ndarray of shape (k,) or (k, n_limits)
        What was measured, for scales that are "auto" and limits that are booleans.

    Returns
    -------
    z_mean, z_std : ndarray of shape (n,) or (n, n_limits)
    """
    mean, std = np.transpose(margin, (1, 2, 0))
    scale = querier.z_scale
    if is_auto(scale):
        scale = margin_scales(z, querier.safety_threshold, querier.safe_when)
    sign = np.where(np.asarray(querier.safe_when) == "above", 1.0, -1.0)
    threshold = np.asarray(querier.safety_threshold)
    boolean = boolean_limits(z)
    # Margins of -1 and 1 stand for False and True.
    threshold, sign = np.where(boolean, 0.5, threshold), np.where(boolean, 1.0, sign)
    scale = np.where(boolean, 0.5, scale)
    mean, std = threshold + sign * scale * mean, scale * std
    return (mean[:, 0], std[:, 0]) if z.ndim == 1 else (mean, std)
