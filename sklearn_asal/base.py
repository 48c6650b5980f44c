"""The contract of every querier, written once."""

import copy
import math
import zlib

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .exceptions import (
    BudgetExhaustedError,
    DataScaleWarning,
    NoSafeCandidateError,
    SafetyWarning,
    warn_user,
)
from .pool import CandidatePool, PoolView
from .space import (
    Box,
    as_rows,
    check_features,
    is_auto,
    limit_names,
    margin_scales,
    moments,
    observations,
    off_scale,
    safety_margin,
    safety_rule,
    standardized,
    whole,
)


class BaseQuerier(BaseEstimator):
    """Propose the next input to measure from the measurements at hand.

    A subclass implements :meth:`_propose`, and :meth:`_check_setup` if it can
    refuse a number of features. Everything else is here: validation, units,
    budget, candidate pools, several queries at once.

    Parameters
    ----------
    bounds : None, pair of float, or array-like of shape (n_features, 2), default=None
        Lower and upper limit of each feature in the user's units; one pair holds
        for all. None means the unit cube. Proposals never leave the bounds.
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

    Attributes
    ----------
    X_ : ndarray of shape (n, n_features)
        Inputs measured so far, in the user's units.
    y_ : ndarray of shape (n,)
        Their outputs.
    z_ : ndarray of shape (n,) or (n, n_limits), or None
        Their safety measurements.
    n_told_ : int
        Observations told since ``fit``; ``budget - n_told_`` queries are left.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, when ``fit`` got a DataFrame with string column names.
    """

    # Whether this querier needs outputs and margins near unit scale.
    _needs_unit_scale = False
    # Whether it draws random numbers; if not, it gets no generator, which takes time to make.
    _draws = True

    def __init__(self, *, bounds=None, budget=None, random_state=None, y_loc=0.0, y_scale=1.0):
        self.bounds = bounds
        self.budget = budget
        self.random_state = random_state
        self.y_loc = y_loc
        self.y_scale = y_scale

    def _propose(self, X, y, margin, left, rng, candidates):
        """Choose one point of the unit cube. The one method that a subclass must write.

        It must not change ``self``, nor the arrays it gets.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
            Observed inputs; the bounds are the unit cube. Measured points may
            lie a little outside. n >= 1.
        y : ndarray of shape (n,)
            Outputs at unit scale.
        margin : ndarray of shape (n,) or None
            What ``_margin`` returns: the worst safety margin at unit scale, safe
            where >= 0; one column for each limit, ``(n, n_limits)``, where a
            subclass says so; None without :class:`SafeQuerierMixin`.
        left : int or None
            Queries left, this one included, at least 1; None if never stated.
        rng : numpy.random.Generator
            The only permitted source of randomness; None where ``_draws`` is False.
        candidates : PoolView or None
            Its ``points`` are what may be proposed. The base takes the nearest
            of them to the answer, so a subclass may leave them unread, or
            return one of them.

        Returns
        -------
        array-like of shape (n_features,)

        Raises
        ------
        NoSafeCandidateError
            With a candidate of the unit cube.
        """
        raise NotImplementedError

    def _check_setup(self, n_features, budget=None):
        """Raise if this querier cannot work with that many features, warn of a budget not in it."""

    def _propose_in_turn(self, campaign, n_observed, *asked):
        """Call ``_propose``; for a subclass that has to know where the observations are from.

        ``campaign`` says whether they are those of ``fit`` and ``tell``. Rows from
        ``n_observed`` on are pending points; their outcomes are guesses.
        """
        return self._propose(*asked)

    def fit(self, X, y, z=None):
        """Start a campaign from initial observations; forget any earlier one.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Measured inputs in the user's units. Points outside ``bounds`` are
            kept and used, with a warning.
        y : array-like of shape (n,)
            Outputs.
        z : array-like of shape (n,) or (n, n_limits), default=None
            Safety measurements. For a safe querier None means that the output
            is its own safety measurement, ``z = y``. Other queriers keep
            ``z`` in ``z_`` and make no use of it.

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
        X_, y_, z_ = observations(X, y, z)
        if self.budget is not None:
            whole(self.budget, "budget", min_val=1)
        self._seed(X_)
        self._check_setup(X_.shape[1])
        data = X_, y_, self._measurements(y_, z_)
        self._warn(data)
        validate_data(self, X, skip_check_array=True)  # sets feature_names_in_ or deletes it
        self.X_, self.y_, self.z_ = data
        self.n_features_in_ = X_.shape[1]
        self.n_told_ = 0
        self._has_z = z is not None
        self._z_names = limit_names(z)
        return self

    def tell(self, x, y, z=None):
        """Add one or more measured observations to the campaign.

        Possible after the budget is spent, too: measured data are never refused.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (k, n_features)
            What was measured, which need not be what was proposed.
        y : float or array-like of shape (k,)
        z : float or array-like of shape (k,), (k, n_limits), or (n_limits,) for one row
            To be given if, and only if, ``fit`` got safety measurements.

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
        if not hasattr(self, "X_"):  # which costs a hundredth of the check
            check_is_fitted(self, msg="%(name)s: call fit(X, y) with initial data before tell.")
        if (z is not None) != self._has_z:
            raise ValueError(
                "z is missing: fit was given safety measurements, so tell needs them as well."
                if self._has_z
                else "z was not given to fit, so tell cannot take it; fit again with z."
            )
        x = as_rows(x, self.n_features_in_)
        self._check_limit_names(z)
        if self._has_z and self.z_.ndim == 2:
            z = as_rows(z, self.z_.shape[1])
        x_, y_, z_ = observations(x, y, z, "x")
        check_features(self, x, x_.shape[1], "x", self.n_features_in_)
        if self._has_z and z_.shape[1:] != self.z_.shape[1:]:
            raise ValueError(f"z has shape {z_.shape}, but in fit it had {self.z_.shape}.")
        new = x_, y_, self._measurements(y_, z_)
        old = self.X_, self.y_, self.z_
        data = tuple(
            None if had is None else np.concatenate([had, add])
            for had, add in zip(old, new, strict=True)
        )
        # Before anything changes: a warning may be turned into an error.
        self._warn(data, known=len(self.X_))
        self.X_, self.y_, self.z_ = data
        self.n_told_ += len(x_)
        return self

    def query(
        self,
        X=None,
        y=None,
        z=None,
        *,
        budget=None,
        pool=None,
        n_queries=1,
        return_indices=False,
    ):
        """Propose where to measure next. Never changes the querier.

        Parameters
        ----------
        X, y, z : array-like, default=None
            As in ``fit``. If given, exactly these observations are used and
            ``fit`` is not needed; if not, those of the campaign are.
        budget : int, default=None
            Number of queries left, this one included. By default
            ``self.budget - n_told_`` for a campaign and ``self.budget`` for
            data passed here.
        pool : array-like of shape (n_candidates, n_features) or CandidatePool, default=None
            The only points that may be proposed: rows inside the bounds that are
            not among the observations (see :class:`CandidatePool`). The one nearest to
            the free proposal is returned, by Euclidean distance with the bounds scaled
            to the unit cube; of policies, the least certain of those near to it, or the most
            informative of all (``pool_choice``), that are safe enough (``pool_safety``),
            features weighed by their typical lengthscales where a policy is of one system.
        n_queries : int, default=1
            Number of points. They are chosen one after another; each enters the
            history of the next with the outcome of the observation nearest to
            it in place of its own (GP queriers: ``y`` only, for a guess must not
            count as evidence of safety). Each counts against the budget.
        return_indices : bool, default=False
            Return the rows of the pool as well.

        Returns
        -------
        points : ndarray of shape (n_queries, n_features)
            In the user's units and inside the bounds.
        indices : ndarray of int of shape (n_queries,)
            Positions of the points in the pool; only with ``return_indices``.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Neither data nor a campaign.
        BudgetExhaustedError
            Fewer than ``n_queries`` queries are left.
        PoolExhaustedError
            Too few rows of the pool are left.
        NoSafeCandidateError
            Nothing is safe enough, for queriers that demand it.
        ValueError, TypeError
            Invalid data or parameters.
        """
        n_queries = whole(n_queries, "n_queries", min_val=1)
        if return_indices and pool is None:
            raise ValueError("return_indices=True needs a pool; without one there are no indices.")
        campaign, data = self._data(X, y, z, "query(X, y)")
        left = self._queries_left(budget, self.n_told_ if campaign else 0, n_queries)
        self._check_setup(data[0].shape[1], budget)
        scaled = box, *history = self._at_unit_scale(*data)
        if not campaign:
            self._warn(data, scaled=scaled)
        view = None
        if pool is not None:
            if not isinstance(pool, CandidatePool):
                pool = CandidatePool(pool)
            check_features(self, pool, pool.X.shape[1], "pool", data[0].shape[1])
            view = PoolView(pool, box, history[0], self._pool_weights(data[0].shape[1]))
            if view.n_outside:
                warn_user(
                    f"{view.n_outside} of the {len(pool)} rows of the pool lie outside bounds and "
                    "are never proposed. If that is not intended, set bounds.",
                    DataScaleWarning,
                )
        # A policy has no use for a seed, but a bad one is an error all the same.
        seeded = self._draws or self.random_state is not None
        seed = self._seed(data[0]) if seeded else None
        try:
            points, indices = self._sequence(campaign, history, left, seed, view, n_queries)
        except NoSafeCandidateError as error:
            candidate = box.from_unit(error.candidate)
            rule = getattr(self, "safety_rule", error.rule)
            raise NoSafeCandidateError(candidate, error.probability, error.required, rule) from None
        points = box.from_unit(points) if pool is None else pool.X[indices]
        return (points, indices) if return_indices else points

    def _data(self, X, y, z, call):
        """Whether they are the campaign's, and the observations that a call is about."""
        if X is None and y is None and z is None:
            if not hasattr(self, "X_"):
                check_is_fitted(
                    self,
                    msg=f"%(name)s has no data yet: call fit(X, y) first, or pass data to {call}.",
                )
            return True, (self.X_, self.y_, self.z_)
        if z is None and isinstance(self, SafeQuerierMixin) and getattr(self, "_has_z", False):
            raise ValueError(
                f"z is missing: fit was given safety measurements, so data passed to {call} need "
                "them as well; pass z=y if the output is its own safety measurement."
            )
        self._check_limit_names(z)
        X_, y_, z_ = observations(X, y, z)
        check_features(self, X, X_.shape[1], "X", getattr(self, "n_features_in_", None))
        return False, (X_, y_, self._measurements(y_, z_))

    def _sequence(self, campaign, history, left, seed, view, n_queries):
        """Points of the unit cube, one after another, and their rows in the pool."""
        X, y, margin = history
        observed = len(X)
        points, indices = [], []
        for j in range(n_queries):
            found = None
            if view is not None:
                found = self._pick_at_once(view, observed, X, y, margin)
            if not found:
                rng = np.random.default_rng([seed, observed + j]) if self._draws else None
                remaining = None if left is None else left - j
                point = self._proposal(campaign, observed, X, y, margin, remaining, rng, view)
                if view is not None:
                    found = self._pick(view, point, observed, X, y, margin)
            if view is not None:
                index, point = found
                view.spend(point)
                indices.append(index)
            points.append(point)
            if j == n_queries - 1:
                break
            # Of the real observations: guesses must not be handed on from guess to guess.
            like = ((X[:observed] - point) ** 2).sum(axis=1).argmin()
            X, y = np.vstack([X, point]), np.append(y, y[like])
            margin = None if margin is None else np.append(margin, margin[[like]], axis=0)
        return np.array(points), np.array(indices, dtype=np.intp)

    def _proposal(self, campaign, n_observed, X, *asked):
        """A point of the unit cube; arguments as of :meth:`_propose_in_turn`."""
        point = np.asarray(self._propose_in_turn(campaign, n_observed, X, *asked), dtype=float)
        values = point.tolist()
        if point.shape != X.shape[1:] or not all(map(math.isfinite, values)):
            # A random point in its place might be unsafe, and would hide the fault.
            raise RuntimeError(f"{type(self).__name__} proposed {point}, which is no point.")
        if min(values) < 0 or max(values) > 1:
            point = np.minimum(np.maximum(point, 0.0), 1.0)
        return point

    def _pool_weights(self, n_features):
        """What a distance along each feature counts when a row is sought for a point."""
        return None

    def _pick_at_once(self, view, n_observed, X, y, margin):
        """As :meth:`_pick`, without a proposal; None asks for one."""
        return None

    def _pick(self, view, point, n_observed, X, y, margin):
        """The row of a pool that is taken for a point, and the row itself, at unit scale.

        After the first ``n_observed``, what belongs to ``X`` are guesses.
        """
        return view.nearest(point)

    def _queries_left(self, budget, told, n_queries):
        """Queries left, this one included; None if nobody stated a budget."""
        stated = self.budget if budget is None else budget
        if stated is None:
            return None
        left = whole(stated, "budget") - (told if budget is None else 0)
        if left < n_queries:
            spent = f"{told} of budget={self.budget} are told"
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
        known, given = getattr(self, "_z_names", None), limit_names(z)
        if known is not None and given is not None and known != given:
            raise ValueError(
                f"z has columns {given}, but in fit they were {known}; their order matters, for "
                "each has its own limit."
            )

    def _measurements(self, y, z):
        """The safety measurements that a missing ``z`` stands for."""
        return z

    def _margin(self, z):
        """Worst safety margin at unit scale, ``(n,)``."""
        return None

    def _at_unit_scale(self, X, y, z):
        box = Box.of(self.bounds, X.shape[1])
        return box, box.to_unit(X), standardized(y, self.y_loc, self.y_scale), self._margin(z)

    def _seed(self, X):
        """An integer that stands for ``random_state``, which is not advanced."""
        if self.random_state is None:
            return zlib.crc32(np.sort(X, axis=None).tobytes())
        state = copy.deepcopy(self.random_state)
        if isinstance(state, np.random.Generator):
            return int(state.integers(2**31))
        return int(check_random_state(state).randint(2**31 - 1))

    def _complaints(self, X, y, z, scaled):
        """What is odd about the data: ``{parameter to blame: (category, message)}``.

        ``scaled`` is ``_at_unit_scale(X, y, z)``.
        """
        _, unit, values, _ = scaled
        if not self._needs_unit_scale or is_auto(self.y_scale) or not off_scale(unit, values):
            return {}
        mean, deviation = moments(y)
        message = (
            f"y reaches from {values.min():.3g} to {values.max():.3g} after scaling by "
            f"y_loc={self.y_loc} and y_scale={self.y_scale}, but should have about zero mean and "
            f"unit variance over the domain. Set y_loc and y_scale: these {len(y)} outputs "
            f"suggest y_loc={mean:.3g}, y_scale={deviation:.3g}; 'auto' estimates them anew at "
            "each query."
        )
        return {"y_scale": (DataScaleWarning, message)}

    def _warn(self, data, known=0, scaled=None):
        """Warn of what the first ``known`` observations did not show."""
        message = Box.of(self.bounds, data[0].shape[1]).complaint(data[0][known:])
        if message:
            warn_user(message, DataScaleWarning)
        found = self._complaints(*data, scaled or self._at_unit_scale(*data))
        if found and known:
            before = [part if part is None else part[:known] for part in data]
            for parameter in self._complaints(*before, self._at_unit_scale(*before)):
                found.pop(parameter, None)
        for category, message in found.values():
            warn_user(message, category)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class SafeQuerierMixin:
    """What a querier adds that keeps safety measurements within limits.

    Goes before :class:`BaseQuerier` in the list of bases. The class's own
    constructor stores the parameters below, besides those of the base.

    Parameters
    ----------
    safety_threshold : float or sequence of float of shape (n_limits,), default=0.0
        The limit of the safety measurement, in its own units. It never moves.
    safe_when : {"above", "below"} or a sequence of these, default="above"
        Safe means ``z >= safety_threshold``, or ``<=`` for "below".
    z_scale : float, "auto" or sequence of float, default=1.0
        What counts as one unit of safety margin: the standard deviation of the
        measurement over the domain. "auto" takes the root mean square distance
        of the measurements at hand from the limit, which does not shrink when
        they lie close together. With several limits (columns of ``z``) a row's
        margin is the smallest of its margins, each in units of its own scale.
    """

    @property
    def safety_rule(self):
        """What safe means, in words, such as ``"safe means z >= 0.0"``."""
        return safety_rule(self.safety_threshold, self.safe_when)

    def _measurements(self, y, z):
        return y if z is None else z

    def _margin(self, z):
        return safety_margin(z, self.safety_threshold, self.safe_when, self.z_scale)

    def _complaints(self, X, y, z, scaled):
        found = super()._complaints(X, y, z, scaled)
        _, unit, _, margin = scaled
        if self._needs_unit_scale and not is_auto(self.z_scale) and off_scale(unit, margin, 0.0):
            scales = margin_scales(z, self.safety_threshold, self.safe_when)
            found["z_scale"] = (
                DataScaleWarning,
                f"the safety margin reaches from {margin.min():.3g} to {margin.max():.3g} after "
                f"scaling by z_scale={self.z_scale} ({self.safety_rule}), but should be about one "
                "in size over the domain. Set z_scale: these observations suggest "
                f"{', '.join(f'{scale:.3g}' for scale in scales)}; 'auto' estimates it anew at "
                "each query.",
            )
        worst = margin if margin.ndim == 1 else margin.min(axis=1)
        if worst.max() < 0:
            found["safety_threshold"] = (
                SafetyWarning,
                f"none of the {len(y)} observations is safe: {self.safety_rule}. Check "
                "safety_threshold and safe_when; exploration has to start from something safe.",
            )
        return found

    def __repr__(self, N_CHAR_MAX=700):
        text = super().__repr__(N_CHAR_MAX)
        # scikit-learn leaves defaults out, but what safe means should always be said.
        for name in ("safety_threshold", "safe_when"):
            if f"{name}=" not in text:
                comma = "" if text.endswith("()") else ", "
                text = f"{text[:-1]}{comma}{name}={getattr(self, name)!r})"
        return text
