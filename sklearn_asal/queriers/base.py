"""The contract of every querier, written once."""

import copy
import dataclasses
import math
import pickle
import zlib
from collections.abc import Mapping
from numbers import Integral
from typing import Any, Literal, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._typing import Bounds, FloatArray, IntArray, Location, RandomState, Scale, Statuses, StrPath
from ..constraints import Constraints
from ..exceptions import (
    BudgetExhaustedError,
    DataScaleWarning,
    NoSafeCandidateError,
    warn_user,
)
from ..limits import boolean_limits
from ..log import CampaignLog
from ..log import campaign as logging
from ..names import in_order
from ..pool import CandidatePool, Candidates
from ..scaling import is_auto, moments, off_scale, standardized
from ..settings import numpy_defaults
from ..space import box_of, by_feature, by_name
from ..tables import library_of
from ..validation import (
    as_rows,
    check_feature_names,
    column_names,
    finite_array,
    observations,
    whole,
)
from .approach import Approach, way_to
from .asking import Asking
from .cut_short import (
    FAILED,
    OK,
    STATUS_DTYPE,
    aborted_margin,
    checked_statuses,
    outcomes,
)
from .history import Cache, History, moved_nearby, nearest, still_pending, unrepeated
from .logged import Logged
from .observations import Part, Told
from .outliers import warnings_of
from .progress import ProgressMixin
from .region import Known, Offer, Region, largest_step
from .tables_out import TablesOut
from .taking_back import TakingBack

# Digits of an input at unit scale that have a part in the seed.
_DIGITS = 6
# The parameters that scaling depends on.
_SCALING = "bounds", "y_loc", "y_scale", "safety_threshold", "safe_when", "z_scale"

# Of one run that was not cut short, the usual.
_ONE = np.array([OK], dtype=STATUS_DTYPE)

_Q = TypeVar("_Q", bound="BaseQuerier")


class BaseQuerier(Asking, Logged, TakingBack, TablesOut, ProgressMixin, BaseEstimator):
    """Propose the next input to measure from the measurements at hand.

    A subclass implements :meth:`_select`, and :meth:`_check_setup` if it can
    refuse a number of features. Everything else is here: validation, units,
    budget, candidate pools, several queries at once.

    Parameters
    ----------
    bounds : None, pair of float, sequence of shape (n_features,), or dict, default=None
        Lower and upper limit of each feature in the user's units, a pair; one pair holds
        for all. None means the unit cube. Proposals never leave the bounds.
        In place of a pair there may be an :class:`~sklearn_asal.space.Integer`,
        :class:`~sklearn_asal.space.Log` or :class:`~sklearn_asal.space.Grid`. The keys of a dict
        are the names of the features, in the order of columns of arrays; columns of tables are
        taken by name.
    budget : int, default=None
        Number of queries of the whole campaign that ``fit`` starts. For a query
        with data passed to it, the number of queries left, this one included.
    random_state : None, int, RandomState or Generator, default=None
        Seeds the local generator together with the number of observations. An
        instance is never advanced. None takes the seed from the observed inputs,
        so that the same observations give the same answer then, too.
    y_loc, y_scale : float or "auto", default=0.0, 1.0
        ``(y - y_loc) / y_scale`` is taken to have about zero mean and unit
        variance over the domain. "auto" uses the mean and standard deviation of
        all outputs at hand at each query; few points close together
        underestimate the scale, so give numbers where you know them.
    constraints : LinearConstraint, NonlinearConstraint or sequence of these, default=None
        Of :mod:`scipy.optimize`, on the inputs in the user's units. Proposals satisfy all of
        them; rows of a pool up to rounding.
    max_step : float, array-like of shape (n_features,), or dict, default=None
        The largest change of each feature from the observation told last, that is the last row,
        or from one of ``n_queries`` to the next; in the user's units. A dict is by name or
        position; features that it leaves out may change at will.
    log : str, path-like or CampaignLog, default=None
        File that the campaign is written to, as JSON lines, so that it can be gone on with; see
        :meth:`resume`.
    stop_when : float, default=None
        Root mean square error of the output, in its units, that is small enough: ``is_finished``
        says when it is reached, with a probability of 85 %.
    repeat_every : int, default=None
        Each measurement whose number is a multiple of this repeats another one, so that
        ``progress`` can tell noise from drift; those of ``fit`` count, and so do failed ones.
        Repeated is the input that was repeated before, or else that with the largest safety margin,
        or without limits the first one. There is no repeat where no measurement was safe.

    Attributes
    ----------
    X_ : ndarray of shape (n, n_features)
        Inputs measured so far, in the user's units; read-only, as all of these.
    y_ : ndarray of shape (n,)
        Their outputs; NaN where none was measured.
    z_ : ndarray of shape (n,) or (n, n_limits), or None
        Their safety measurements; booleans stay booleans. NaN where a run was cut short.
    status_ : ndarray of str of shape (n,)
        "ok", or "aborted" or "failed" where a run was cut short, see :meth:`tell`.
    index_ : ndarray of int of shape (n,)
        The rows of the pool that were measured, as far as ``tell`` was given them; else -1.
    n_told_ : int
        Observations told since ``fit``; ``budget - n_told_`` queries are left.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, when ``fit`` got a table with text for column names, or ``bounds`` are a dict.
    """

    X_: Part[FloatArray] = Part("X")
    y_: Part[FloatArray] = Part("y")
    z_: Part[NDArray[Any] | None] = Part("z")
    status_: Part[NDArray[np.str_]] = Part("status")
    index_: Part[IntArray] = Part("rows")
    n_told_: Part[int] = Part("n_told")

    # Whether this querier needs outputs and margins near unit scale.
    _needs_unit_scale = False
    # Whether it has limits, which aborted runs violate.
    _has_limits = False
    # Whether it draws random numbers; if not, it gets no generator, which takes time to make.
    _draws = True

    def __init__(
        self,
        *,
        bounds: Bounds = None,
        budget: int | None = None,
        random_state: RandomState = None,
        y_loc: Location = 0.0,
        y_scale: Scale = 1.0,
        constraints: Any = None,
        max_step: Any = None,
        log: StrPath | CampaignLog | None = None,
        stop_when: float | None = None,
        repeat_every: int | None = None,
    ) -> None:
        self.bounds = bounds
        self.budget = budget
        self.random_state = random_state
        self.y_loc = y_loc
        self.y_scale = y_scale
        self.constraints = constraints
        self.max_step = max_step
        self.log = log
        self.stop_when = stop_when
        self.repeat_every = repeat_every

    def _select(self, history, candidates, budget, rng):
        """Choose where to measure next. The one method that a subclass must write.

        It must not change ``self``, nor what it gets; ``history.cache`` is there to be filled.

        Parameters
        ----------
        history : History
            Observations at unit scale, and points that are pending.
        candidates : Candidates or None
            The rows that may be proposed; None where any point of the unit cube may.
        budget : int or None
            Queries left, this one included, at least 1; None if never stated.
        rng : numpy.random.Generator
            The only permitted source of randomness; None where ``_draws`` is False.

        Returns
        -------
        array-like of shape (n_features,) or int
            A point of the unit cube; with ``candidates`` the position of an available row.

        Raises
        ------
        NoSafeCandidateError
            With a candidate of the unit cube.
        """
        raise NotImplementedError

    def _check_setup(self, n_features, budget=None):
        """Raise if this querier cannot work with that many features, warn of a budget not in it."""

    def _check_start(self, history):
        """Raise where nothing may be proposed from these observations; for subclasses."""

    def _prepare(self, history):
        """Work out ahead, after new observations, what the next query needs; for subclasses."""

    @numpy_defaults
    def fit(self: _Q, X: ArrayLike, y: ArrayLike, z: ArrayLike | None = None) -> _Q:
        """Start a campaign from initial observations; forget any earlier one.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Measured inputs in the user's units. Points outside ``bounds`` are
            kept and used, with a warning.
        y : array-like of shape (n,)
            Outputs. With ``z`` some may be missing (NaN, None), but not all.
        z : array-like of shape (n,) or (n, n_limits), default=None
            Safety measurements: numbers, or booleans that mean safe and not safe. For a safe
            querier None means that the output is its own safety measurement, ``z = y``. Other
            queriers keep ``z`` in ``z_`` and make no use of it.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            Data or constructor parameters are invalid. A campaign under way is left as it was.

        Warns
        -----
        DataScaleWarning, SafetyWarning
            See these.
        """
        library, X = library_of(X), by_name(X, self.bounds, "X")
        X_, y_, z_ = _with_an_output(*observations(X, y, z, missing=z is not None))
        if self.budget is not None:
            whole(self.budget, "budget", min_val=1)
        self._check_progress()
        self._seed(X_)
        self._check_setup(X_.shape[1])
        names = self._names(X)
        self._check_region(X_.shape[1], names)
        data = X_, y_, self._safety_signal(y_, z_), np.full(len(X_), OK, STATUS_DTYPE)
        history = self._of(data, Cache())
        self._warn(data, names, history=history)
        told = Told(*data, np.full(len(X_), -1), len(X_))
        self._warn_of_outliers(told, history.box, has_z=z is not None)
        if self.log is not None:
            logging.begin(self, data, z is not None, names, column_names(z), library)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._cache, self._pending, self._library = Cache(), None, library
        self._told = told
        self.n_features_in_ = X_.shape[1]
        self._has_z = z is not None
        self._z_names = column_names(z)
        self._prepare(self._history(True, data))
        return self

    @numpy_defaults
    def tell(
        self: _Q,
        x: ArrayLike,
        y: ArrayLike | None = None,
        z: ArrayLike | None = None,
        *,
        index: ArrayLike | None = None,
        status: Statuses = "ok",
        note: str | None = None,
    ) -> _Q:
        """Add one or more measured observations to the campaign.

        Possible after the budget is spent, too: measured data are never refused. Each observation
        counts as one query, however the run ended.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (k, n_features), or dict
            What was measured, which need not be what was proposed. A dict is by name.
        y : float or array-like of shape (k,), default=None
            Outputs. Where ``fit`` got safety measurements, they may be missing (None, NaN): the
            model of the output does without, and a policy by name sees the output of the nearest
            observation that has one.
        z : float or array-like of shape (k,), (k, n_limits), or (n_limits,) for one row
            To be given if, and only if, ``fit`` got safety measurements. May be a dict by name
            where these were a table.
        index : int or array-like of int of shape (k,), default=None
            The rows of the pool that were measured, as ``query(..., return_indices=True)`` gave
            them, so that they are not proposed again whatever ``x`` says. All pools of the
            campaign have to be the same, then.
        status : {"ok", "aborted", "failed"} or sequence of these of shape (k,), default="ok"
            How the run ended. Of one that was cut short neither ``y`` nor ``z`` is given; beside
            others they are NaN or None there.

            - "aborted": it was unsafe, but there is no number. The margin of each limit counts as
              a violation of typical size: minus the root mean square of the margins measured, or
              the lowest of them, whichever is lower. Which of several limits was violated is
              unknown, so it counts for each of them. Queriers with limits only.
            - "failed": nothing was learned. No point within 0.01 of the width of the bounds, and
              no row of a pool that equals it, is proposed from now on.
        note : str, default=None
            For the log.

        Returns
        -------
        self

        Raises
        ------
        sklearn.exceptions.NotFittedError
            ``fit`` has not been called.
        ValueError, TypeError
            Invalid data. Nothing is added then, and nothing lost.
        """
        self._check_told("tell")
        x = self._rows(x, "x", self.n_features_in_)
        z = in_order(z, getattr(self, "_z_names", None), "z")
        new = self._outcomes(self._told, x, y, z, status)
        rows = _rows_told(index, len(new[0]))
        with self._campaign_cache().telling:
            old = self._told
            told = old.joined(new, rows)
            history = self._history(True, told.data)
            # Before anything changes: a warning may be turned into an error.
            self._warn(told.data, self._names(None), old.data, history)
            self._warn_of_outliers(told, history.box, len(old.X))
            if self.log is not None:
                logging.record(self, "tell", index=rows, note=note, **self._facts(new))
            self._told = told
            if self._pending is not None:
                self._pending = still_pending(self._pending, new[0], history.box)
            self._prepare(history)
        return self

    def _facts(self, outcomes):
        """What is told, for the log."""
        x, y, z, status = outcomes
        cut_short = None if (status == OK).all() else status.tolist()
        return {"x": x, "y": y, "z": z if self._has_z else None, "status": cut_short}

    def _outcomes(self, like, x, y, z, status):
        """Validated inputs, outputs, safety measurements and status of what is told."""
        is_plain = isinstance(status, str) and status == OK
        has_z = self._has_z
        if z is not None and not has_z:
            raise ValueError("z was not given to fit, so tell cannot take it; fit again with z.")
        if z is None and has_z and is_plain:
            raise ValueError(
                "z is missing: fit was given safety measurements, so tell needs them as well."
            )
        if z is not None and like.z.ndim == 2:
            z = as_rows(z, like.z.shape[1])
        self._check_limit_names(z)
        if is_plain:
            x_, y_, z_ = _measured(x, y, z, has_z)
            known, statuses = z_, _ONE if len(x_) == 1 else np.full(len(x_), OK, STATUS_DTYPE)
        else:
            x_ = finite_array(x, "x")
            statuses = checked_statuses(status, len(x_), self._has_limits)
            y_, z_, known = outcomes(len(x_), y, z, statuses, like.z if has_z else None)
        self._check_features(x, x_, "x", self.n_features_in_)
        if known is not None:
            self._check_limits(known)
        return x_, y_, self._safety_signal(y_, z_), statuses

    def _rows(self, x, name, n_features):
        """Inputs, one or more, as rows in the order of the features."""
        names = self._names(None) if isinstance(x, Mapping) else None
        return by_name(as_rows(in_order(x, names, name), n_features), self.bounds, name)

    def _points(self, x, name, n_features):
        """Validated inputs, one or more."""
        x = self._rows(x, name, n_features)
        points = finite_array(x, name)
        self._check_features(x, points, name, n_features)
        return points

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
        return_indices: bool = ...,
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
        path: bool = False,
    ) -> Any:
        """Propose where to measure next. Never changes the querier.

        Parameters
        ----------
        X, y, z : array-like, default=None
            As in ``fit``. If given, exactly these observations are used and
            ``fit`` is not needed; if not, those of the campaign are. Of runs that were cut
            short only ``tell`` can be told.
        budget : int, default=None
            Number of queries left, this one included. By default
            ``self.budget - n_told_`` for a campaign and ``self.budget`` for
            data passed here.
        pool : array-like of shape (n_candidates, n_features) or CandidatePool, default=None
            The only points that may be proposed: rows inside the bounds that are
            not among the observations (see :class:`CandidatePool`).
        n_queries : int, default=1
            Number of points. They are chosen one after another; each enters the
            history of the next with the outcome of the observation nearest to
            it in place of its own (GP queriers: ``y`` only, for a guess must not
            count as evidence of safety). Each counts against the budget.
        fixed : dict, default=None
            Features, by name or position, and the values that they have now, in the user's units:
            proposals keep to them.
        pending : array-like of shape (n_features,) or (n_pending, n_features), default=None
            Experiments that are running, besides those that :meth:`ask` handed out. They are
            dealt with like proposals of ``n_queries``, and in a campaign count against the budget.
        return_indices : bool, default=False
            Return the rows of the pool as well.
        path : bool, default=False
            Return the way to the point as well, see :meth:`approach`. Not with several points.

        Returns
        -------
        points : ndarray of shape (n_queries, n_features)
            In the user's units and inside the bounds; a table where the inputs are, see
            :meth:`set_output`.
        indices : ndarray of int of shape (n_queries,)
            Rows of the pool, counted from 0; only with ``return_indices``.
        approach : Approach
            Only with ``path``.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Neither data nor a campaign.
        BudgetExhaustedError
            Fewer than ``n_queries`` queries are left.
        PoolExhaustedError
            Too few rows of the pool are left, or too few points where all features are whole
            numbers or settings.
        NoSafeCandidateError
            Nothing is safe enough, for queriers that demand it.
        ValueError, TypeError
            Invalid data or parameters.
        """
        if path:
            check_one(n_queries)
        answer = self._query(X, y, z, budget, pool, n_queries, return_indices, fixed, pending)[0]
        if not path:
            return answer
        parts = answer if return_indices else (answer,)
        return *parts, self.approach(parts[0], X, y, z)

    @numpy_defaults
    def approach(
        self,
        x: ArrayLike,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        z: ArrayLike | None = None,
        *,
        n_steps: int = 10,
    ) -> Approach:
        """The straight way to a point from the one that was told last.

        A rig can stop on it, and tell what it measured there.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            In the user's units.
        X, y, z : array-like, default=None
            Observations to use in place of the campaign's; the way begins at the last row.
        n_steps : int, default=10
            Equal steps.

        Returns
        -------
        Approach

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Neither data nor a campaign.
        ValueError, TypeError
            Invalid data or parameters.
        """
        n_steps = whole(n_steps, "n_steps", min_val=1)
        X = by_name(X, self.bounds, "X")
        data = self._data(X, y, z, "approach(x, X, y)")[1]
        point = self._points(x, "x", data[0].shape[1])
        if len(point) != 1:
            raise ValueError(f"x must be one point; it has {len(point)} rows.")
        box = box_of(self.bounds, point.shape[1])
        if box.outside(point)[0]:
            raise ValueError(f"x lies outside bounds, {point[0].tolist()}. Pass a point inside.")
        points = way_to(box, data[0][-1], point[0], n_steps)
        return Approach(points, self._p_safe(points, X, y, z))

    def _p_safe(self, points, X, y, z):
        """Probabilities to be safe, None without limits or models; for subclasses."""
        return None

    def _query(self, X, y, z, budget, pool, n_queries, return_indices, fixed, pending):
        """The answer to a query, and what a guard did to each proposal."""
        n_queries = whole(n_queries, "n_queries", min_val=1)
        if return_indices and pool is None:
            raise ValueError("return_indices=True needs a pool; without one there are no indices.")
        if fixed is not None and not isinstance(fixed, Mapping):
            raise TypeError(
                "fixed must be a dict from features, by name or position, to their values, got "
                f"{fixed!r}."
            )
        told_as, X = X, X if X is None else by_name(X, self.bounds, "X")
        campaign, data = self._data(X, y, z, "query(X, y)")
        n_features, handed_out = data[0].shape[1], self._pending if campaign else None
        if pending is not None or handed_out is not None:
            pending = self._all_pending(pending, handed_out, n_features)
        told = campaign.n_told if campaign else 0
        n_pending = len(pending) if campaign and pending is not None else 0
        left = self._queries_left(budget, told, n_queries, n_pending)
        self._check_setup(n_features, budget)
        history = self._history(campaign, data)
        if not campaign:
            self._warn(data, self._names(X), history=history)
        if pending is not None:
            history = history.with_all_pending(pending)
        nearby = self._nearby(history)
        if nearby is not None:
            self._warn_of_violations()
            history = dataclasses.replace(history, nearby=nearby)
        box, candidates = history.box, None
        if pool is not None:
            if not isinstance(pool, CandidatePool):
                pool = CandidatePool(by_name(pool, self.bounds, "pool"))
            candidates = self._candidates(pool, data, history, campaign)
            if pending is not None:
                candidates = candidates.without_equal(pending)
        offer = None
        if self._restricts(fixed, box):
            offer = self._offer(data, history, pending, self._names(X), fixed)
        # A policy has no use for a seed, but a bad one is an error all the same.
        seeded = self._draws or offer is not None or self.random_state is not None
        seed = self._seed(data[0]) if seeded else None
        try:
            self._check_start(history)
            points, rows, actions = self._sequence(
                history, candidates, left, seed, n_queries, offer
            )
        except NoSafeCandidateError as error:
            candidate = box.from_unit(error.candidate)
            rule = error.rule
            if self._has_limits:
                rule = self._rule_for(data[2])
            raise NoSafeCandidateError(candidate, error.probability, error.required, rule) from None
        self._warn_of_guard(actions)
        if pool is None:
            points, indices = box.from_unit(points) if offer is None else np.array(rows), None
        else:
            indices = np.array(rows, dtype=np.intp)
            points = pool.X[indices]
        if campaign and self.log is not None:
            logging.record(self, "proposal", safely=False, points=points, index=indices)
        points = self._as_told(points, told_as)
        return ((points, indices) if return_indices else points), actions

    def _data(self, X, y, z, call, missing=True):
        """The campaign's record if a call is about that, else None; and its observations.

        These are inputs, outputs, safety measurements, and status or None. ``missing`` says
        whether outputs may be missing from data passed with ``z``.
        """
        if X is None and y is None and z is None:
            told = self.__dict__.get("_told")  # once: another thread may tell
            if told is None:
                check_is_fitted(
                    self,
                    msg=f"%(name)s has no data yet: call fit(X, y) first, or pass data to {call}.",
                )
            return told, told.data
        if y is None:
            raise ValueError(
                f"requires y to be passed, but the target y is None: data passed to {call} are X "
                "and y, and z where there is a limit. All else is given by name, such as "
                "n_queries=3."
            )
        if z is None and self._has_limits and getattr(self, "_has_z", False):
            raise ValueError(
                f"z is missing: fit was given safety measurements, so data passed to {call} need "
                "them as well; pass z=y if the output is its own safety measurement."
            )
        self._check_limit_names(z)
        X_, y_, z_ = _with_an_output(*observations(X, y, z, missing=missing and z is not None))
        self._check_features(X, X_, "X", getattr(self, "n_features_in_", None))
        return None, (X_, y_, self._safety_signal(y_, z_), None)

    def _check_features(self, data, array, name, expected):
        """Compare number and, where both sides have them, names of features with those of fit."""
        if expected is not None and array.shape[1] != expected:
            raise ValueError(
                f"{name} has {array.shape[1]} features, but {type(self).__name__} is expecting "
                f"{expected} features as input."
            )
        # Plain arrays pass, for query returns one.
        check_feature_names(data, name, getattr(self, "feature_names_in_", None))

    def _check_limits(self, z):
        """Raise where measurements are not like those of ``fit``."""
        like = self.z_
        if z.shape[1:] != like.shape[1:]:
            raise ValueError(f"z has shape {z.shape}, but in fit it had {like.shape}.")
        if z.dtype == like.dtype == np.float64:
            return
        pairs = zip(boolean_limits(z).tolist(), boolean_limits(like).tolist(), strict=True)
        for j, (now, before) in enumerate(pairs):
            if now != before:
                kinds = "numbers", "booleans"
                raise ValueError(
                    f"z: limit {j} is measured in {kinds[now]}, but in fit it was in "
                    f"{kinds[before]}; they say other things about safety. "
                    + ("Pass bool(z)." if before else "Pass the measured number.")
                )

    def _candidates(self, pool, data, history, campaign):
        """Rows of a pool that a query may choose from; ``data`` and ``campaign`` of ``_data``."""
        X, _, _, status = data
        n_features = X.shape[1]
        self._check_features(pool, pool.X, "pool", n_features)
        cache, index = history.cache, None
        if campaign and (campaign.rows >= 0).any():
            index = campaign.rows
        failed = None if history.failed is None else status == FAILED
        candidates = Candidates(
            pool, history.box, X, index, self._pool_weights(n_features), cache.candidates, failed
        )
        cache.candidates = candidates
        wrong = candidates.contradicted()
        if len(wrong):
            warn_user(
                f"index: observation {wrong[0]} was told to be of row {index[wrong[0]]} of the pool"
                f"{f', and {len(wrong) - 1} others likewise' if len(wrong) > 1 else ''}, but its "
                "inputs are those of another row. Rows are counted from 0, by position.",
                UserWarning,
            )
        if candidates.n_outside:
            warn_user(
                f"{candidates.n_outside} of the {len(pool)} rows of the pool lie outside bounds "
                "and are never proposed. If that is not intended, set bounds.",
                DataScaleWarning,
            )
        return candidates

    def _pool_weights(self, n_features):
        """What a distance along each feature counts when a row is sought for a point."""
        return None

    def _restricts(self, fixed, box):
        """Whether not all of the unit cube, or of a pool, may be proposed."""
        stated = self.constraints is not None or self.max_step is not None or bool(fixed)
        return stated or box.has_discrete

    def _check_region(self, n_features, names):
        """Raise if what restricts proposals is not about so many features."""
        if self.constraints is not None:
            Constraints(self.constraints, n_features)
        if self.max_step is not None:
            largest_step(self.max_step, names, n_features)

    def _offer(self, data, history, pending, names, fixed):
        """What may be proposed where not everything may, see :class:`Offer`."""
        box, cache, n_features = history.box, history.cache, data[0].shape[1]
        known = cache.feasible
        if known is None or not known.is_of(self.constraints, box):
            known = cache.feasible = Known(self.constraints, box)
        step = None
        if self.max_step is not None:
            step = largest_step(self.max_step, names, n_features)
        fixed = {} if fixed is None else by_feature(fixed, names, n_features, "fixed")
        certified = self._certified(data, names)
        return Offer(
            lambda last: Region.of(box, known, last, step, fixed, certified, names),
            data[0] if pending is None else np.vstack([data[0], pending]),
            data[0][-1],
            self._pool_weights(n_features),
        )

    def _certified(self, data, names):
        """What slopes that are known guarantee to be safe, None without any; for subclasses."""
        return None

    def _names(self, X):
        """Names of the features, None where they have none."""
        if isinstance(self.bounds, Mapping):
            return list(self.bounds)
        return getattr(self, "feature_names_in_", None) if X is None else column_names(X)

    def _sequence(self, history, candidates, left, seed, n_queries, offer=None):
        """Points of the unit cube, one after another, their rows, and the guard's part.

        Returns
        -------
        points : ndarray of shape (n_queries, n_features)
        rows : list
            In the pool. Without one, the same points in the user's units where some were drawn.
        actions : tuple of GuardAction or None
            None in it where a measurement is repeated.
        """
        points, rows, actions = [], [], []
        for j in range(n_queries):
            rng = np.random.default_rng([seed, history.n_points]) if self._draws else None
            remaining, some = None if left is None else left - j, candidates
            if candidates is not None:
                candidates.check_available()
            repeated = None
            if self.repeat_every is not None:
                repeated = self._repeated(history, candidates, offer)
            if repeated is not None:
                point, row = repeated
                points.append(point)
                actions.append(None)
                rows.append(_raw(history.box, point) if row is None else candidates.row(row))
                history = history.with_pending(point)
                candidates = candidates if row is None else candidates.without(row)
                offer = offer if offer is None else offer.after(_raw(history.box, point))
                continue
            if offer is not None:
                some = offer.candidates(candidates, history, seed)
            if some is not None and history.nearby is not None:
                some = some.only(history.nearby.rows(some))
                if offer is not None and not history.nearby.holds(some.points).any():
                    raise ValueError(
                        "max_violations is reached, and no point near to measurements that were "
                        "safe satisfies constraints, max_step, fixed or lipschitz. Relax one of "
                        "these, or measure a safe point from which to go on."
                    )
            chosen = self._select(history, some, remaining, rng)
            if some is None:
                chosen = self._checked(chosen, history)
            chosen, action = self._guarded(chosen, history, some)
            actions.append(action)
            if some is None:
                point = chosen if action is None else self._checked(chosen, history)
            elif candidates is None:
                point = some.points[chosen]
                rows.append(some.raw(np.array([chosen]))[0])
            else:
                while some is not candidates:
                    some, chosen = some.whole, some.in_whole(chosen)
                # So that ``tell`` takes the same row, for it does not know one from the other.
                chosen = candidates.first_equal(chosen)
                point = candidates.points[chosen]
                rows.append(candidates.row(chosen))
            points.append(point)
            if j == n_queries - 1:
                break
            history = history.with_pending(point)
            candidates = None if candidates is None else candidates.without(chosen)
            if offer is not None:
                offer = offer.after(_raw(history.box, point))
        return np.array(points), rows, tuple(actions) if any(actions) else None

    def _guarded(self, chosen, history, candidates):
        """What is proposed in place of a choice, and what a guard did; for subclasses."""
        return chosen, None

    def _warn_of_guard(self, actions):
        """Warn of what a guard did; for subclasses."""

    def _checked(self, point, history):
        """A proposal as a point of the unit cube."""
        point = np.asarray(point, dtype=float)
        values = point.tolist()
        if point.shape != history.X.shape[1:] or not all(map(math.isfinite, values)):
            # A random point in its place might be unsafe, and would hide the fault.
            raise RuntimeError(f"{type(self).__name__} proposed {point}, which is no point.")
        if min(values) < 0 or max(values) > 1:
            point = np.minimum(np.maximum(point, 0.0), 1.0)
        if history.nearby is not None:
            point = moved_nearby(point, history)
        if history.failed is not None and not history.is_free(point[None])[0]:
            point = unrepeated(point, history)
        if len(history.X) > history.n_observed and not history.is_apart(point[None])[0]:
            point = unrepeated(point, history)
        return point

    def _nearby(self, history):
        """Where alone may be proposed, None for anywhere; see ``max_violations``."""
        return None

    def _queries_left(self, budget, told, n_queries, pending=0):
        """Queries left, this one included; None if nobody stated a budget."""
        stated = self.budget if budget is None else budget
        if stated is None:
            return None
        left = whole(stated, "budget") - (told + pending if budget is None else 0)
        if left < n_queries:
            spent = f"{told} of budget={self.budget} are told"
            spent += f" and {pending} pending" if pending else ""
            remedy = (
                "To go on, raise the budget with set_params(budget=...), or pass the number of "
                "queries left as query(budget=...)."
            )
            if budget is not None:
                spent = f"budget={budget}"
                remedy = (
                    "The budget of a query is the number of queries left, this one included: pass "
                    f"at least {n_queries}."
                )
            raise BudgetExhaustedError(
                f"{max(left, 0)} queries are left ({spent}), but n_queries={n_queries} is asked "
                f"for. {remedy}"
            )
        return left

    def _check_limit_names(self, z):
        """Raise where columns of ``z`` are named otherwise than in ``fit``."""
        known = getattr(self, "_z_names", None)
        given = None if known is None else column_names(z)
        if given is not None and known != given:
            raise ValueError(
                f"z has columns {given}, but in fit they were {known}; their order matters, for "
                "each has its own limit."
            )

    def _safety_signal(self, y, z):
        """The safety measurements that a missing ``z`` stands for."""
        return z

    def _margins(self, z):
        """Safety margins at unit scale, ``(n, n_limits)``."""
        return None

    def _campaign_cache(self):
        cache = self.__dict__.get("_cache")
        if cache is None:
            # Of two threads that come here together both take the first one's.
            return self.__dict__.setdefault("_cache", Cache())
        if cache.is_inherited:
            cache = self._cache = Cache()
        return cache

    def _history(self, campaign, data):
        """Observations at unit scale; those of the campaign are worked out once."""
        if not campaign:
            return self._of(data, Cache())
        cache = self._campaign_cache()
        # Of the contents, for lists and arrays may be changed in place.
        scaling = [getattr(self, name, None) for name in _SCALING]
        try:
            key = pickle.dumps(scaling)
        except Exception:  # whatever a parameter's type may raise
            return self._of(data, cache)
        known = cache.history
        if known is None or known[0] != key or known[1] is not data[0] or known[2] is not data[1]:
            known = cache.history = (key, *data[:2], self._of(data, cache))
        return known[3]

    def _of(self, data, cache):
        """The history of inputs, outputs, safety measurements, and status."""
        lowest = np.minimum.reduce(data[1])
        if lowest != lowest:  # NaN, if there is one, found quickly
            return self._cut_short(*data, cache)
        return self._at_unit_scale(*data[:3], cache)

    def _at_unit_scale(self, X, y, z, cache):
        box = box_of(self.bounds, X.shape[1])
        y = standardized(y, self.y_loc, self.y_scale)
        return History(box.to_unit(X), y, self._margins(z), len(X), box, cache)

    def _cut_short(self, X, y, z, status, cache):
        """The same where some outputs, or some safety measurements, are missing."""
        box, has_output = box_of(self.bounds, X.shape[1]), ~np.isnan(y)
        X, outputs = box.to_unit(X), np.empty(len(X))
        outputs[has_output] = standardized(y[has_output], self.y_loc, self.y_scale)
        for i in np.flatnonzero(~has_output):
            like = outputs[has_output][nearest(X[has_output], X[i])]
            outputs[i] = np.sort(like).mean()  # the last digit of a sum depends on its order
        ok = np.ones(len(X), dtype=bool) if status is None else status == OK
        kept = ok if status is None else status != FAILED
        known, margin = self._margins(None if z is None else z[ok]), None
        if known is not None:
            margin = np.tile(aborted_margin(known), (len(X), 1))
            margin[ok] = known
            margin = margin[kept]
        has_output = None if has_output[kept].all() else has_output[kept]
        failed = None if kept.all() else X[~kept]
        n = int(kept.sum())
        return History(X[kept], outputs[kept], margin, n, box, cache, has_output, failed)

    def _seed(self, X):
        """An integer that stands for ``random_state``, which is not advanced."""
        state = self.random_state
        if state is None:
            # At unit scale and rounded, for neither units nor the order of features matter.
            points = box_of(self.bounds, X.shape[1]).to_unit(X).round(_DIGITS) + 0.0
            return zlib.crc32(np.sort(points, axis=None).tobytes())
        if isinstance(state, np.random.Generator):
            return int(copy.deepcopy(state).integers(2**31))
        rng = check_random_state(state)
        if not isinstance(state, Integral):  # which makes a generator of its own
            rng = copy.deepcopy(rng)
        return int(rng.randint(2**31 - 1))

    def _complaints(self, data, history):
        """What is odd about the data: ``{parameter to blame: (category, message)}``."""
        if not self._needs_unit_scale or is_auto(self.y_scale):
            return {}
        known = history.complete
        y, values = data[1], known.y
        if not off_scale(known.X, values):
            return {}
        mean, deviation = moments(y)
        message = (
            f"y reaches from {values.min():.3g} to {values.max():.3g} after scaling by "
            f"y_loc={self.y_loc} and y_scale={self.y_scale}, but should have about zero mean and "
            f"unit variance over the domain. Set y_loc and y_scale: these {len(y)} output(s) "
            f"suggest y_loc={mean:.3g}, y_scale={deviation:.3g}; 'auto' estimates them anew at "
            "each query."
        )
        return {"y_scale": (DataScaleWarning, message)}

    def _warn(self, data, names, before=None, history=None):
        """Warn of what the observations ``before`` did not show."""
        if history is None:
            history = self._of(data, self._campaign_cache())
        new = data[0][0 if before is None else len(before[0]) :]
        message = history.box.complaint(new, names)
        if message:
            warn_user(message, DataScaleWarning)
        found = self._complaints(measured(data, history), history)
        if found and before is not None:
            earlier = self._of(before, history.cache)
            for parameter in self._complaints(measured(before, earlier), earlier):
                found.pop(parameter, None)
        for category, message in found.values():
            warn_user(message, category)

    def _warn_of_outliers(self, told, box, *question, has_z=None):
        """Warn of measurements far beyond the others, see :func:`warnings_of`."""
        for message in warnings_of(told, self._has_z if has_z is None else has_z, box, *question):
            warn_user(message, DataScaleWarning)

    def __getstate__(self):
        # A copy: what is popped is the pickle's, not the querier's, which others may be using.
        state = dict(super().__getstate__())
        for name in "_cache", "_open_log":
            state.pop(name, None)
        return state

    def __sklearn_is_fitted__(self):
        return "_told" in self.__dict__

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def measured(data, history):
    """Observations less what was not measured.

    Parameters
    ----------
    data : tuple
        Inputs, outputs, safety measurements or None, and status or None.
    history : History
        The same at unit scale.

    Returns
    -------
    tuple
        The same; outputs and safety measurements are only those there are.
    """
    X, y, z, status = data
    if history.has_output is None and history.failed is None:
        return data
    has_output = ~np.isnan(y)
    if z is not None and status is not None:
        z = z[status == OK]
    return X, y[has_output], z, status


def _with_an_output(X, y, z):
    """Validated observations, at least one of which has an output."""
    if y[0] != y[0] and np.isnan(y).all():  # the usual, quickly
        raise ValueError(
            "Input y contains NaN or other missing values (None, NA, NaT, masked) only. Measure "
            "the output of at least one observation."
        )
    return X, y, z


def _measured(x, y, z, has_z):
    """Validated observations of runs that were not cut short."""
    if y is None:
        if not has_z:
            raise ValueError(
                "requires y to be passed, but the target y is None; an output may be missing only "
                "where fit was given z. Of a run that was cut short say so by status."
            )
        y = np.full(len(finite_array(x, "x")), np.nan)
    return observations(x, y, z, "x", has_z)


def check_one(n_queries):
    """Raise unless a way is asked for to one proposal.

    Parameters
    ----------
    n_queries : int

    Raises
    ------
    ValueError
    """
    if n_queries != 1:
        raise ValueError("path=True is about one proposal; leave n_queries at 1.")


def _raw(box, point):
    """A point of the unit cube in the user's units."""
    return box.from_unit(point[None])[0]


def _rows_told(index, n):
    """The rows of a pool that ``n`` observations are of, -1 where that is unknown."""
    if index is None:
        return np.full(n, -1)
    rows = np.atleast_1d(np.asarray(index))
    if rows.dtype.kind not in "iu" or rows.shape != (n,) or (rows < -1).any():
        raise ValueError(
            f"index must hold one row of the pool, counted from 0, for each of the {n} "
            f"observations told, or -1 where it is unknown; got {index!r}."
        )
    return rows.astype(np.intp)
