"""Queriers that ask a pretrained policy: one forward pass per query."""

import contextlib
import math
from collections.abc import Sequence
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from .._typing import (
    Bounds,
    FloatArray,
    Location,
    RandomState,
    Scale,
    Scales,
    Sides,
    StrPath,
    Thresholds,
)
from ..acquisition import TIE, argbest
from ..exceptions import DataScaleWarning, SafetyWarning, warn_user
from ..policies import registry
from ..policies.runtime import LARGEST, Tokens, told_budget
from ..surrogates import EnsembleGP
from ..threads import one_thread
from ..validation import whole
from .base import BaseQuerier, SafeQuerierMixin
from .batch import propose_many
from .history import unrepeated

# Half the width of what counts as the middle; training begins within 0.1 of it.
_CENTRAL = 0.2
# A policy with more than this share of unsafe queries in its validation counts on rows that are
# checked before they are proposed, with this gamma at most.
_BOLD, _CAREFUL = 0.05, 0.1
# Of so many nearest rows per candidate, every so many-th is a candidate: neighbours are alike.
_SPACING = 8
# Where no row is safe enough, candidates are spread over so many times as many nearest rows,
_WIDER = 8
# until there are this many; after that, so many rows from all over the pool are compared.
_FARTHEST, _ALL_OVER = 8192, 2048
# With more observations than these, models of rows near a point use so many nearest ones.
_MANY, _NEAREST = 512, 256

_ENSEMBLE = 'surrogate="ensemble", acquisition="variance_reduction"'

_Q = TypeVar("_Q", bound="_PolicyQuerier")


class _PolicyQuerier(BaseQuerier):
    """What both kinds share."""

    _needs_unit_scale = True
    _draws = False
    _safe = False

    @classmethod
    def from_pretrained(cls: type[_Q], name_or_path: StrPath, **params: Any) -> _Q:
        """Make a querier of a policy that is known to load.

        Parameters
        ----------
        name_or_path : str or path-like
            Name of a shipped policy, such as ``"2d"``, or a policy file.
        **params
            Further constructor parameters.

        Returns
        -------
        querier

        Raises
        ------
        PolicyNotFoundError
            No such name or file; the message lists the names.
        PolicyFileError
            Damaged, not a policy, or a policy of the other kind.
        """
        runtime, _ = registry.load_runtime(name_or_path, safe=cls._safe)
        # Once for nothing, so that the first query is as quick as any.
        with one_thread():
            rows = runtime.rows(np.zeros((1, runtime.n_features)), *np.zeros((1 + runtime.safe, 1)))
            runtime.decide(1.0, runtime.tokens(rows))
        # Both classes take a policy first, their base does not.
        return cls(name_or_path, **params)  # type: ignore[call-arg, arg-type]

    @property
    def policy_header_(self) -> dict[str, Any]:
        """Facts about the policy in use, such as the priors it was trained on (dict)."""
        check_is_fitted(self)
        return dict(self._load(self.n_features_in_).header)

    def propose_many(
        self,
        histories: Sequence[tuple[ArrayLike, ...]],
        budgets: int | Sequence[int] | None = None,
    ) -> FloatArray:
        """Propose the next point of each of many campaigns.

        What a loop of ``query(X, y, z, budget=...)`` returns, in batches and on all cores.

        Parameters
        ----------
        histories : sequence of tuple
            For each campaign ``(X, y)`` or ``(X, y, z)`` as in ``query``, in the user's units.
            Their lengths may differ; those of one length are quickest side by side.
        budgets : int or sequence of int, default=None
            Queries left, one number for all or one for each campaign. By default
            ``self.budget``.

        Returns
        -------
        points : ndarray of shape (n_campaigns, n_features)
            In the user's units and inside the bounds.

        Raises
        ------
        BudgetExhaustedError
            A budget below one.
        ValueError, TypeError
            Invalid data or parameters; the message names the campaign.

        Warns
        -----
        DataScaleWarning, SafetyWarning
            As in ``query``, about the observations of all campaigns together.

        Examples
        --------
        >>> from sklearn_asal import AmortizedSafeQuerier
        >>> querier = AmortizedSafeQuerier("2d")
        >>> first = [[0.5, 0.5]], [0.3], [1.0]
        >>> second = [[0.5, 0.5], [0.6, 0.4]], [0.1, 0.2], [1.1, 0.9]
        >>> querier.propose_many([first, second], budgets=[10, 9]).shape
        (2, 2)
        """
        return propose_many(self, histories, budgets)

    def _load(self, n_features):
        """The policy in use; the querier itself holds a name only."""
        policy, cache = self.policy, self._campaign_cache()
        key = policy, n_features, self.budget if policy == "auto" else None
        if cache.policy is None or cache.policy[0] != key or not cache.policy[1].is_current:
            cache.policy = key, registry.find(policy, n_features, self._safe, self.budget)
        return cache.policy[1]

    def _check_setup(self, n_features, budget=None):
        whole(self.n_candidates, "n_candidates", min_val=1)
        policy = self._load(n_features)
        if budget is not None and budget > policy.max_budget:
            warn_user(self._too_large(budget, policy), DataScaleWarning)

    def _complaints(self, data, history):
        found = super()._complaints(data, history)
        # Without a policy the query will say so: measured data are never refused.
        with contextlib.suppress(ValueError):
            found |= self._complaints_of(self._load(data[0].shape[1]), history)
        return found

    def _complaints_of(self, policy, history):
        """What is odd about the data for a policy; see :meth:`_complaints`."""
        if self.budget is None or self.budget <= policy.max_budget:
            return {}
        return {"budget": (DataScaleWarning, self._too_large(self.budget, policy))}

    def _too_large(self, budget, policy):
        longest, n_features = policy.max_budget, policy.runtime.n_features
        longer = registry.longer(n_features, self._safe)
        general = self.policy in ("auto", f"{n_features}d")
        remedy = f" Policy {longer!r} was trained for more." if longer and general else ""
        return (
            f"budget={budget} is more than the {longest:g} queries that the policy was trained "
            f"for; its plan for {longest:g} is stretched over them.{remedy} "
            f"{self._without_policy()} needs no plan."
        )

    def _without_policy(self):
        return f"{'GPSafeQuerier' if self._safe else 'GPQuerier'}({_ENSEMBLE})"

    def _warn_of_end(self, n_observed, policy):
        """Warn where no budget is stated and the policy's plan is over."""
        if n_observed >= policy.max_budget + policy.n_init:
            warn_user(
                # The same words each time, so that they are shown but once.
                f"no budget is stated, and the policy's plan for {policy.max_budget:g} queries "
                "is over: each is planned as its last. Set budget, or take "
                f"{self._without_policy()}, which needs no plan.",
                DataScaleWarning,
            )

    def _warn_of_boldness(self, policy, candidates):
        """Warn of a policy that is too bold for free proposals; safe policies only."""

    def _select(self, history, candidates, budget, rng):
        policy = self._load(history.X.shape[1])
        self._warn_of_boldness(policy, candidates)
        if budget is None:
            self._warn_of_end(len(history.X), policy)
        left = told_budget(policy.header, budget, len(history.X))
        with one_thread(), history.cache.lock:
            point = policy.runtime.decide(left, self._tokens(policy.runtime, history))
            if candidates is not None:
                return self._row(candidates, point, history, policy)
        return unrepeated(point, history)

    def _tokens(self, runtime, history):
        """What the policy keeps of each observation; those of the query before are known."""
        cache = history.cache
        if cache.history is None:  # of data passed to a query nothing is kept
            return runtime.tokens(runtime.rows(history.X, history.y, history.worst_margin, LARGEST))
        if cache.tokens is None or cache.tokens.runtime is not runtime:
            cache.tokens, cache.attended = Tokens(runtime), None
        if cache.attended is None or cache.attended[0] is not history:
            rows = runtime.rows(history.X, history.y, history.worst_margin, LARGEST)
            cache.attended = history, cache.tokens(rows)
        return cache.attended[1]

    def _prepare(self, history):
        # A controller waits for queries, not for tells.
        try:
            policy = self._load(history.X.shape[1])
        except ValueError:  # which the query will raise: the data are told
            return
        with one_thread(), history.cache.lock:
            self._tokens(policy.runtime, history)
            if len(history.X) <= _MANY:
                for role in history.cache.models:
                    self._model(role, history, policy)

    def _pool_weights(self, n_features):
        scale = self._load(n_features).lengthscale
        # One for all features is none: only ratios matter.
        return None if np.ndim(scale) == 0 else scale.min() / scale

    def _row(self, candidates, point, history, policy):
        """Of the rows near to a proposal the one whose output is least certain."""
        positions = next(self._rows_near(candidates, point))
        if len(positions) == 1 or self.n_candidates == 1:
            return positions[0]
        points = candidates.points[positions]
        model = self._model_near(point, "output", history, policy)
        _, std = model.probability_and_std(points, history.pending)
        return positions[argbest(std, points)]

    def _rows_near(self, candidates, point):
        """Positions of the rows that are compared, then of ever more where none of them will do."""
        n, m = self.n_candidates, len(candidates)
        # In a line the nearest row will do; in more dimensions there are more to choose from.
        k = min(4 ** (len(point) - 1), n * _SPACING) if n > 1 else 1
        # One candidate means the nearest safe row, which is not to be missed by much.
        n = n if n > 1 else _SPACING**2
        while True:
            yield candidates.nearest(point, k)[:: math.ceil(k / n)]
            if k >= min(m, _FARTHEST):
                break
            k *= _WIDER
        positions = candidates.subsample(_ALL_OVER)
        positions = positions[candidates.is_available(positions)]
        if len(positions):
            yield candidates.nearest_first(positions, point)

    def _model_near(self, point, role, history, policy):
        """What is known of rows near a point."""
        observed = history.observed
        if len(observed.X) <= _MANY:
            return self._model(role, observed, policy)
        model = _ensemble(role, policy)
        away = np.square((observed.X - point) / model.lengthscale).sum(axis=1)
        near = np.lexsort((*observed.X.T, away))[:_NEAREST]
        return model.fit(observed.X[near], self._values(role, observed)[near])

    def _model(self, role, history, policy):
        """A model of outputs ("output") or of worst margins ("margin")."""
        models = history.cache.models
        known = models.get(role)
        if known is None or known[0] is not policy:
            known = models[role] = policy, _ensemble(role, policy)
        return known[1].update(history.X, self._values(role, history))

    def _values(self, role, history):
        return history.y if role == "output" else history.worst_margin


def _ensemble(role, policy):
    """Gaussian processes that are typical of what a policy was trained on."""
    lengthscale = policy.lengthscale if role == "output" else policy.safety_lengthscale
    return EnsembleGP(lengthscale, policy.noise_std)


class AmortizedQuerier(_PolicyQuerier):
    """Active learning by a pretrained policy (paper, algS-policy_al).

    The policy was trained on simulated experiments on functions drawn from
    Gaussian process priors. At deployment it needs no model fit and no search:
    a query is one forward pass, a millisecond or less on a CPU.

    Parameters
    ----------
    policy : str or path-like, default="auto"
        Name of a shipped policy or a policy file. "auto" is the shipped general
        policy for the number of features, such as "2d", or "2d-long" if this querier's ``budget``
        is beyond what "2d" was trained for.
    bounds : None, pair of float, or array-like of shape (n_features, 2), default=None
        Lower and upper limit of each feature in the user's units; one pair holds
        for all. None means the unit cube. Proposals never leave the bounds.
    budget : int, default=None
        Number of queries of the campaign; with data passed to ``query``, the
        number left. A policy plans for what is left. None leaves as many as
        training had at that number of observations, ``max_budget + n_init - n``,
        at least one. A campaign longer than the policy's ``max_budget`` goes
        through the plan for that many in slow motion.
    random_state : None, int, RandomState or Generator, default=None
        Part of every querier's interface; policies are deterministic.
    y_loc, y_scale : float or "auto", default=0.0, 1.0
        ``(y - y_loc) / y_scale`` should have about zero mean and unit variance
        over the domain. "auto": mean and standard deviation of the outputs at
        hand, anew at each query.
    n_candidates : int, default=16
        With a pool, so many rows near to the policy's proposal are compared, and the one is taken
        whose output is least certain by an ensemble of Gaussian processes
        (:class:`~sklearn_asal.surrogates.EnsembleGP`). They are spread over the nearest
        ``min(4**(n_features - 1), 8 * n_candidates)`` rows. With 1 the nearest row is taken.

    Attributes
    ----------
    X_, y_ : ndarray of shape (n, n_features) and (n,)
        Observations so far, in the user's units.
    z_ : ndarray or None
        Kept if given, so that the safe class can be swapped in; not used.
    index_ : ndarray of int of shape (n,)
        Rows of the pool that were measured, as far as ``tell`` was given them; else -1.
    n_told_ : int
        Observations told since ``fit``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, when ``fit`` got a table with text for column names.
    policy_header_ : dict
        Facts about the policy in use.

    See Also
    --------
    AmortizedSafeQuerier : The same with a safety constraint.

    References
    ----------
    Li, Toussaint, Rakitsch, Zimmer (2026). "Amortized Safe Active Learning for Real-Time Data
    Acquisition: Pretrained Neural Policies from Simulated Nonparametric Functions".

    Examples
    --------
    >>> from sklearn_asal import AmortizedQuerier
    >>> querier = AmortizedQuerier("2d", bounds=[(-5, 10), (0, 15)], budget=20)
    >>> querier.fit([[2.5, 7.5]], [0.3]).query().shape  # doctest: +SKIP
    (1, 2)
    """

    def __init__(
        self,
        policy: StrPath = "auto",
        *,
        bounds: Bounds = None,
        budget: int | None = None,
        random_state: RandomState = None,
        y_loc: Location = 0.0,
        y_scale: Scale = 1.0,
        n_candidates: int = 16,
    ) -> None:
        super().__init__(
            bounds=bounds, budget=budget, random_state=random_state, y_loc=y_loc, y_scale=y_scale
        )
        self.policy = policy
        self.n_candidates = n_candidates


class AmortizedSafeQuerier(SafeQuerierMixin, _PolicyQuerier):
    """Safe active learning by a pretrained policy (paper, alg-policy_sal).

    The policy sees outputs, safety measurements and the remaining budget. It
    learned in simulation to gather information while staying safe with high
    probability; that is a tendency, not a guarantee for any one query. As in its
    training, the initial observations should be safe and lie around the centre
    of the bounds.

    Parameters
    ----------
    policy : str or path-like, default="auto"
        Name of a shipped policy or a policy file. "auto" is the shipped general
        policy for the number of features.
    bounds : None, pair of float, or array-like of shape (n_features, 2), default=None
        Lower and upper limit of each feature in the user's units; one pair holds
        for all. None means the unit cube. Proposals never leave the bounds.
    budget : int, default=None
        Number of queries of the campaign; with data passed to ``query``, the
        number left. A policy plans for what is left. None leaves as many as
        training had at that number of observations, ``max_budget + n_init - n``,
        at least one. A campaign longer than the policy's ``max_budget`` goes
        through the plan for that many in slow motion.
    random_state : None, int, RandomState or Generator, default=None
        Part of every querier's interface; policies are deterministic.
    safety_threshold : float or sequence of float of shape (n_limits,), default=0.0
        The limit of the safety measurement, in its own units. It never moves.
    safe_when : {"above", "below"} or a sequence of these, default="above"
        Safe means ``z >= safety_threshold``, or ``<=`` for "below". Booleans mean safe and not
        safe by themselves.
    y_loc, y_scale : float or "auto", default=0.0, 1.0
        ``(y - y_loc) / y_scale`` should have about zero mean and unit variance
        over the domain. "auto": mean and standard deviation of the outputs at
        hand, anew at each query.
    z_scale : float, "auto" or sequence of float, default=1.0
        What counts as one unit of safety margin: the standard deviation of the
        measurement over the domain. "auto": root mean square distance of the
        measurements at hand from the limit. With several limits, columns of
        ``z``, a row's margin is the smallest, each in units of its own scale.
    gamma : float, default=0.05
        With a pool, the tolerated probability that the row taken is measured as unsafe, by an
        ensemble of Gaussian processes (:class:`~sklearn_asal.surrogates.EnsembleGP`) on the
        margins. Where none of the rows that are compared is safe enough, as many are compared that
        are spread over eight times as many nearest rows, and so on, at last 2,048 from all over
        the pool; then the safest of all these is taken, with a warning. 1 rules nothing out.
        Without a pool it has no effect: the policy was trained to keep its own tolerance.
    n_candidates : int, default=16
        With a pool, so many rows near to the policy's proposal are compared, and of those that are
        safe enough the one is taken whose margin is least certain. They are spread over the nearest
        ``min(4**(n_features - 1), 8 * n_candidates)`` rows. With 1 the nearest row that is safe
        enough is taken.

    Attributes
    ----------
    X_, y_ : ndarray of shape (n, n_features) and (n,)
        Observations so far, in the user's units.
    z_ : ndarray of shape (n,) or (n, n_limits)
        Their safety measurements; ``y_`` if ``fit`` got none.
    index_ : ndarray of int of shape (n,)
        Rows of the pool that were measured, as far as ``tell`` was given them; else -1.
    n_told_ : int
        Observations told since ``fit``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, when ``fit`` got a table with text for column names.
    policy_header_ : dict
        Facts about the policy in use.

    See Also
    --------
    AmortizedQuerier : The same without a safety constraint.

    References
    ----------
    Li, Toussaint, Rakitsch, Zimmer (2026). "Amortized Safe Active Learning for Real-Time Data
    Acquisition: Pretrained Neural Policies from Simulated Nonparametric Functions".

    Examples
    --------
    >>> from sklearn_asal import AmortizedSafeQuerier
    >>> querier = AmortizedSafeQuerier("2d", safety_threshold=350.0, safe_when="below")
    >>> querier.safety_rule
    'safe means z <= 350.0'
    >>> querier.query([[0.5, 0.5]], [0.3], [349.2]).shape
    (1, 2)
    """

    _safe = True

    def __init__(
        self,
        policy: StrPath = "auto",
        *,
        bounds: Bounds = None,
        budget: int | None = None,
        random_state: RandomState = None,
        safety_threshold: Thresholds = 0.0,
        safe_when: Sides = "above",
        y_loc: Location = 0.0,
        y_scale: Scale = 1.0,
        z_scale: Scales = 1.0,
        gamma: float = 0.05,
        n_candidates: int = 16,
    ) -> None:
        super().__init__(
            bounds=bounds, budget=budget, random_state=random_state, y_loc=y_loc, y_scale=y_scale
        )
        self.policy = policy
        self.safety_threshold = safety_threshold
        self.safe_when = safe_when
        self.z_scale = z_scale
        self.gamma = gamma
        self.n_candidates = n_candidates

    def _check_setup(self, n_features, budget=None):
        super()._check_setup(n_features, budget)
        gamma = self.gamma
        if type(gamma) is not float or not 0 < gamma <= 1:  # the usual, quickly
            check_scalar(gamma, "gamma", Real, min_val=0, max_val=1, include_boundaries="right")
            if gamma != gamma:
                raise ValueError("gamma must be above 0 and at most 1, got nan.")

    def _warn_of_boldness(self, policy, candidates):
        share = policy.unsafe_share
        if share > _BOLD and (candidates is None or self.gamma > _CAREFUL):
            warn_user(
                f"in its validation {share:.0%} of this policy's queries were unsafe; it is meant "
                f"for a pool with gamma of at most {_CAREFUL}, by which rows are checked "
                "before they are proposed. Without, take another policy.",
                SafetyWarning,
            )

    def _complaints_of(self, policy, history):
        found = super()._complaints_of(policy, history)
        low, high = np.reshape(policy.safe_centre, (2, -1, 1))
        safe, columns = history.worst_margin >= 0, np.ascontiguousarray(history.X.T)
        central = ((columns >= low - _CENTRAL) & (columns <= high + _CENTRAL)).all(axis=0)
        if safe.any() and not (safe & central).any():
            found["bounds"] = (
                SafetyWarning,
                "no observation in the middle of bounds is safe. This policy was trained on "
                "systems that are safe there, and will go there: set bounds so that your safe "
                f"points lie around their middle, or take {self._without_policy()}.",
            )
        return found

    def _row(self, candidates, point, history, policy):
        """Of the rows near to a proposal, the safe enough one whose margin is least certain."""
        model, most = self._model_near(point, "margin", history, policy), -1.0
        for positions in self._rows_near(candidates, point):
            points = candidates.points[positions]
            p_safe, std = model.probability_and_std(points, history.pending)
            enough = np.flatnonzero(p_safe >= 1.0 - self.gamma)
            if len(enough):
                if self.n_candidates == 1 or len(enough) == 1:
                    return positions[enough[0]]
                return positions[enough[argbest(std[enough], points[enough])]]
            safest = argbest(p_safe, points)
            if p_safe[safest] > most + TIE:
                most, taken = p_safe[safest], positions[safest]
        warn_user(
            f"no row of the pool near to a proposal is safe with a probability of "
            f"{1.0 - self.gamma:g} (gamma={self.gamma}); the safest that was found is proposed. If "
            "many rows should be safe, z_scale may be too large.",
            SafetyWarning,
        )
        return taken
