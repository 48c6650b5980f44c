"""Queriers that ask a pretrained network: a policy, or one that infers hyperparameters."""

import contextlib
from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal, TypeVar

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
from ..acquisition import argbest
from ..exceptions import (
    DataScaleWarning,
    NoSafeCandidateError,
    SafetyWarning,
    warn_user,
)
from ..log import CampaignLog
from ..policies import registry
from ..policies.runtime import LARGEST, Tokens, told_budget
from ..surrogates import AmortizedGP
from ..threads import one_thread
from ..validation import whole
from .batch import propose_many
from .gp import GPQuerier, GPSafeQuerier
from .guard import SafetyGuard
from .guarded import GuardedMixin
from .history import moved_nearby, unrepeated
from .picking import pick
from .reporting import ReportingQuerier
from .rows import safe_row, uncertain_row, update_models
from .safe import SafeQuerierMixin

# Half the width of what counts as the middle; training begins within 0.1 of it.
_CENTRAL = 0.2
# The tolerated probability of being unsafe, where none is stated: of rows near to a policy's
# proposal, and where models choose among all.
_OF_ROWS, _OF_MODELS = 0.05, 0.02
# A policy with more than this share of unsafe queries in its validation counts on rows that are
# checked before they are proposed, with this gamma at most.
_BOLD, _CAREFUL = 0.05, 0.1
_UNKNOWN = (
    "all measurements are of one point: how fast the safety signal changes is unknown. Begin with "
    "a few different points that are known to be safe."
)
_WITHOUT_PLAN = f"Policy {registry.ANY!r} needs no plan."

_Q = TypeVar("_Q", bound="_PolicyQuerier")


class _PolicyQuerier(ReportingQuerier):
    """What both kinds share."""

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
        if hasattr(runtime, "decide"):
            # Once for nothing, so that the first query is as quick as any.
            shape = 1, runtime.n_features
            with one_thread():
                rows = runtime.rows(np.zeros(shape), *np.zeros((1 + runtime.safe, 1)))
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
        key = policy, n_features
        if cache.policy is None or cache.policy[0] != key or not cache.policy[1].is_current:
            cache.policy = key, registry.find(policy, n_features, self._safe)
        return cache.policy[1]

    def _check_setup(self, n_features, budget=None):
        if self.n_candidates is not None:
            whole(self.n_candidates, "n_candidates", min_val=1)
        policy = self._load(n_features)
        if budget is not None and not policy.infers and budget > policy.max_budget:
            warn_user(self._too_large(budget, policy), DataScaleWarning)

    def _complaints(self, data, history):
        found = super()._complaints(data, history)
        # Without a policy the query will say so: measured data are never refused.
        with contextlib.suppress(ValueError):
            found |= self._complaints_of(self._load(data[0].shape[1]), history)
        return found

    def _complaints_of(self, policy, history):
        """What is odd about the data for a policy; see :meth:`_complaints`."""
        if policy.infers or self.budget is None or self.budget <= policy.max_budget:
            return {}
        return {"budget": (DataScaleWarning, self._too_large(self.budget, policy))}

    def _too_large(self, budget, policy):
        longest, n_features = policy.max_budget, policy.runtime.n_features
        if policy.picks:
            return (
                f"budget={budget} is more than the {longest:g} queries that the network was "
                "trained for, and it has never seen as many measurements. Policy "
                f"{registry.ANY!r} is for any number."
            )
        longer = registry.longer(n_features, self._safe)
        general = self.policy == f"{n_features}d"
        remedy = f" Policy {longer!r} was trained for more." if longer and general else ""
        return (
            f"budget={budget} is more than the {longest:g} queries that the policy was trained "
            f"for; its plan for {longest:g} is stretched over them.{remedy} {_WITHOUT_PLAN}"
        )

    def _warn_of_end(self, n_observed, policy):
        """Warn where no budget is stated and the policy's plan is over."""
        if n_observed >= policy.max_budget + policy.n_init:
            warn_user(
                # The same words each time, so that they are shown but once.
                f"no budget is stated, and the policy's plan for {policy.max_budget:g} queries "
                f"is over: each is planned as its last. Set budget. {_WITHOUT_PLAN}",
                DataScaleWarning,
            )

    def _warn_of_boldness(self, policy, candidates):
        """Warn of a policy that is too bold for free proposals; safe policies only."""

    @property
    def _draws(self):
        # Where models choose, or a network that picks, candidates are drawn.
        return registry.draws(self.policy)

    @property
    def _needs_unit_scale(self):
        return not registry.infers(self.policy)

    def _by_models(self):
        """The querier that chooses where the policy infers hyperparameters."""
        policy = self.policy if registry.infers(self.policy) else registry.ANY
        surrogate: Any = "amortized"
        if policy not in registry.INFERRING:
            surrogate = AmortizedGP(policy)
        params = {
            "acquisition": "variance_reduction",
            "n_candidates": self.n_candidates,
            "bounds": self.bounds,
        }
        if not self._safe:
            return GPQuerier(surrogate, **params)
        return GPSafeQuerier(surrogate, gamma=self._tolerated, **params)

    def _models(self, history):
        return self._by_models()._models(history)

    @property
    def _raises(self):
        """Whether it is an error that nothing is safe enough."""
        return getattr(self, "on_no_safe", None) == "raise"

    def _believed(self, history):
        return self._models(history)

    def _warn_of_risk(self, p_safe):
        """Warn where models propose what is not safe enough."""
        if p_safe is not None:
            warn_user(
                f"nothing that was looked at is safe enough (gamma={self._tolerated:g}); the "
                f"safest is proposed, which is safe with a probability of {p_safe:.3g}. Measure "
                "closer to what is known to be safe, or check safety_threshold and bounds.",
                SafetyWarning,
            )

    def _select(self, history, candidates, budget, rng):
        policy = self._load(history.X.shape[1])
        if policy.infers:
            models = self._by_models()
            chosen, point, p_safe = models._choose(history, candidates, rng)
            if p_safe is not None and self._raises:
                raise NoSafeCandidateError(point, p_safe, models._required())
            self._warn_of_risk(p_safe)
            return chosen
        if policy.picks:
            with one_thread(), history.cache.lock:
                return pick(policy.runtime, history, candidates, rng, self.n_candidates)
        self._warn_of_boldness(policy, candidates)
        if budget is None:
            self._warn_of_end(history.n_points, policy)
        left = told_budget(policy.header, budget, history.n_points)
        with one_thread(), history.cache.lock:
            point = policy.runtime.decide(left, self._tokens(policy.runtime, history))
            if candidates is not None:
                return self._row(candidates, point, history, policy)
        if history.nearby is not None:
            return moved_nearby(np.clip(point, 0.0, 1.0), history)
        return unrepeated(point, history)

    def _tokens(self, runtime, history):
        """What the policy keeps of each observation; those of the query before are known."""
        cache = history.cache
        if cache.history is None:  # of data passed to a query nothing is kept
            rows = runtime.rows(history.X, history.y, history.worst_margin, LARGEST)
            return runtime.tokens_singly(rows)  # as a campaign's
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
        if policy.infers:
            self._by_models()._prepare(history)
            return
        if policy.picks:
            return
        with one_thread(), history.cache.lock:
            self._tokens(policy.runtime, history)
            update_models(history, policy)

    def _pool_weights(self, n_features):
        policy = self._load(n_features)
        scale = 1.0 if policy.infers else policy.lengthscale
        # One for all features is none: only ratios matter.
        return None if np.ndim(scale) == 0 else scale.min() / scale

    def _row(self, candidates, point, history, policy):
        """Position of the row that is taken in place of a proposal."""
        return uncertain_row(candidates, point, history, policy, self.n_candidates)


class AmortizedQuerier(_PolicyQuerier):
    """Active learning by a pretrained network (paper, algS-policy_al).

    Networks were trained on simulated experiments on functions drawn from Gaussian process priors.
    At deployment nothing is fitted. There are two kinds:

    - Policy "any", the default, is for any number of features and any units. From all observations
      its network infers the hyperparameters of Gaussian processes
      (:class:`~sklearn_asal.surrogates.AmortizedGP`), which choose where a measurement lowers the
      posterior variance most. No scale, no budget and no initial design has to be stated.
    - Policies by name, such as "2d", are the paper's: a query is one forward pass, a tenth of a
      millisecond. They are for one number of features, outputs at unit scale, and a number of
      queries that is known beforehand.

    Parameters
    ----------
    policy : str or path-like, default="auto"
        Name of a shipped policy or a policy file. "auto" is "any".
    bounds : None, pair of float, sequence of shape (n_features,), or dict, default=None
        Lower and upper limit of each feature in the user's units, a pair; one pair holds
        for all. None means the unit cube. Proposals never leave the bounds.
        In place of a pair there may be an :class:`~sklearn_asal.space.Integer`,
        :class:`~sklearn_asal.space.Log` or :class:`~sklearn_asal.space.Grid`. The keys of a dict
        are the names of the features, in the order of columns of arrays; columns of tables are
        taken by name.
    budget : int, default=None
        Number of queries of the campaign; with data passed to ``query``, the
        number left. For policy "any" it only says when to stop. Policies by name plan for what is
        left. None leaves them as many as training had at that number of observations,
        ``max_budget + n_init - n``, at least one; a campaign longer than ``max_budget`` goes
        through the plan for that many in slow motion.
    random_state : None, int, RandomState or Generator, default=None
        Seeds the candidates of policy "any" and of ALINE, together with the number of observations.
        Other policies are deterministic.
    y_loc, y_scale : float or "auto", default=0.0, 1.0
        ``(y - y_loc) / y_scale`` should have about zero mean and unit variance
        over the domain. "auto": mean and standard deviation of the outputs at
        hand, anew at each query. Of no consequence for policy "any".
    n_candidates : int, default=None
        Policy "any": number of points, or rows of a pool, that are compared; None means 600. ALINE
        ("aline-1d", "aline-2d", for comparison): number of points that it picks from, None means
        512; of a pool it compares all rows. Other policies, with a pool: so many rows near to the
        proposal are compared, None means 16, and the one is taken whose output is least certain by
        an ensemble of Gaussian processes
        (:class:`~sklearn_asal.surrogates.EnsembleGP`). They are spread over the nearest
        ``min(4**(n_features - 1), 8 * n_candidates)`` rows. With 1 the nearest row is taken.
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
        Root mean square error of the output, in its units, that is small enough. ``is_finished``
        says when it is reached.
    repeat_every : int, default=None
        Each measurement whose number is a multiple of this, those of ``fit`` included, repeats the
        first input, so that ``progress`` can tell noise from drift.

    Attributes
    ----------
    X_, y_ : ndarray of shape (n, n_features) and (n,)
        Observations so far, in the user's units; NaN where no output was measured.
    z_ : ndarray or None
        Kept if given, so that the safe class can be swapped in; not used.
    status_ : ndarray of str of shape (n,)
        "ok", "aborted" or "failed", see :meth:`tell`.
    index_ : ndarray of int of shape (n,)
        Rows of the pool that were measured, as far as ``tell`` was given them; else -1.
    n_told_ : int
        Observations told since ``fit``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, when ``fit`` got a table with text for column names, or ``bounds`` are a dict.
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
    >>> querier = AmortizedQuerier(bounds=[(900, 4000), (0, 60), (-5, 5)])
    >>> querier.fit([[2000, 30, 0], [2500, 20, 1]], [310.0, 295.0]).query().shape
    (1, 3)
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
        n_candidates: int | None = None,
        constraints: Any = None,
        max_step: Any = None,
        log: StrPath | CampaignLog | None = None,
        stop_when: float | None = None,
        repeat_every: int | None = None,
    ) -> None:
        super().__init__(
            bounds=bounds,
            budget=budget,
            random_state=random_state,
            y_loc=y_loc,
            y_scale=y_scale,
            constraints=constraints,
            max_step=max_step,
            log=log,
            stop_when=stop_when,
            repeat_every=repeat_every,
        )
        self.policy = policy
        self.n_candidates = n_candidates


class AmortizedSafeQuerier(GuardedMixin, SafeQuerierMixin, _PolicyQuerier):
    """Safe active learning by a pretrained network (paper, alg-policy_sal).

    Safety is a tendency, not a guarantee for any one query. Start from something safe. There are
    two kinds of policies:

    - Policy "any", the default, is for any number of features and limits, any units, and safe
      points anywhere. From all observations its network infers the hyperparameters of Gaussian
      processes (:class:`~sklearn_asal.surrogates.AmortizedGP`), one for the output and one for
      each limit. They choose by how much a measurement lowers the posterior variance over what may
      be safe, with a price on risk. Nothing but bounds and limits has to be stated.
    - Policies by name, such as "2d", are the paper's: a query is one forward pass, a tenth of a
      millisecond. They are for one number of features, outputs and margins at unit scale, a number
      of queries that is known beforehand, and systems that are safe in the middle of the bounds.

    Parameters
    ----------
    policy : str or path-like, default="auto"
        Name of a shipped policy or a policy file. "auto" is "any".
    bounds : None, pair of float, sequence of shape (n_features,), or dict, default=None
        Lower and upper limit of each feature in the user's units, a pair; one pair holds
        for all. None means the unit cube. Proposals never leave the bounds.
        In place of a pair there may be an :class:`~sklearn_asal.space.Integer`,
        :class:`~sklearn_asal.space.Log` or :class:`~sklearn_asal.space.Grid`. The keys of a dict
        are the names of the features, in the order of columns of arrays; columns of tables are
        taken by name.
    budget : int, default=None
        Number of queries of the campaign; with data passed to ``query``, the
        number left. For policy "any" it only says when to stop. Policies by name plan for what is
        left. None leaves them as many as training had at that number of observations,
        ``max_budget + n_init - n``, at least one; a campaign longer than ``max_budget`` goes
        through the plan for that many in slow motion.
    random_state : None, int, RandomState or Generator, default=None
        Seeds the candidates of policy "any", together with the number of observations. Other
        policies are deterministic.
    safety_threshold : float or sequence of float of shape (n_limits,), default=0.0
        The limit of the safety measurement, in its own units. It never moves.
    safe_when : {"above", "below"} or a sequence of these, default="above"
        Safe means ``z >= safety_threshold``, or ``<=`` for "below". Booleans mean safe and not
        safe by themselves.
    y_loc, y_scale : float or "auto", default=0.0, 1.0
        ``(y - y_loc) / y_scale`` should have about zero mean and unit variance
        over the domain. "auto": mean and standard deviation of the outputs at
        hand, anew at each query. Of no consequence for policy "any".
    z_scale : float, "auto" or sequence of float, default=1.0
        What counts as one unit of safety margin: the standard deviation of the
        measurement over the domain. "auto": root mean square distance of the
        measurements at hand from the limit. With several limits, columns of
        ``z``, a row's margin is the smallest, each in units of its own scale. Of no consequence
        for policy "any", where each limit has a model of its own.
    gamma : float, default=None
        Policy "any": the tolerated share of queries that are unsafe; None means 0.02. Risk has a
        price, and a single query may have six times that probability of being unsafe. If there is
        nothing of the kind, the safest candidate is taken, with a warning.

        Other policies, with a pool: the tolerated probability that the row taken is measured as
        unsafe, by an ensemble of Gaussian processes
        (:class:`~sklearn_asal.surrogates.EnsembleGP`) on the margins; None means 0.05.
        Where none of the rows that are compared is safe enough, as many are compared that are
        spread over eight times as many nearest rows, and so on, at last 2,048 from all over the
        pool; then the safest of all these is taken, with a warning. 1 rules nothing out.
        Without a pool it has no effect: the policy was trained to keep its own tolerance, and
        ``guard`` has one of its own.
    n_candidates : int, default=None
        Policy "any": number of points, or rows of a pool, that are compared; None means 600. Other
        policies, with a pool: so many rows near to the proposal are compared, None means 16, and of
        those that are safe enough the one is taken whose margin is least certain. They are spread
        over the nearest
        ``min(4**(n_features - 1), 8 * n_candidates)`` rows. With 1 the nearest row that is safe
        enough is taken.
    guard : bool or SafetyGuard, default=None
        Whether proposals are checked by what was measured, and pulled back where they are not safe
        enough (:class:`~sklearn_asal.queriers.guard.SafetyGuard`). None means True for policies by
        name, whose proposals depend on a scale that is stated, and False for policy "any".
    max_violations : int, default=None
        After so many measurements that violate a limit, aborted runs included, only the
        neighbourhood of measurements that were safe is proposed: points within
        ``0.05 * sqrt(n_features)`` of one of them, in the unit cube. Of a pool, rows in it; where
        there are none, the row nearest to a safe measurement. Each query warns of that. 0 means
        from the beginning; None means never.
    on_no_safe : {"least_unsafe", "raise"}, default=None
        What to do when nothing that was looked at is safe enough: propose the least unsafe, with
        a warning, or raise :class:`NoSafeCandidateError`. A policy by name without a pool knows
        no probabilities, but its guard does. None means "least_unsafe", but each query raises as
        long as no measurement is safe, for then a limit may have been stated wrong.
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
    lipschitz : float, array-like of shape (n_features,), dict or LipschitzBound, default=None
        How much a safety measurement changes at most for each unit of each feature; an
        assumption. Only what it guarantees to be safe is proposed, see
        :class:`~sklearn_asal.queriers.lipschitz.LipschitzBound`, which can state noise as well.
    stop_when : float, default=None
        Root mean square error of the output, in its units, that is small enough. ``is_finished``
        says when it is reached.
    repeat_every : int, default=None
        Each measurement whose number is a multiple of this, those of ``fit`` included, repeats the
        input with the largest margin, and from then on this input, so that ``progress`` can tell
        noise from drift.

    Attributes
    ----------
    X_, y_ : ndarray of shape (n, n_features) and (n,)
        Observations so far, in the user's units; NaN where no output was measured.
    z_ : ndarray of shape (n,) or (n, n_limits)
        Their safety measurements; ``y_`` if ``fit`` got none.
    status_ : ndarray of str of shape (n,)
        "ok", "aborted" or "failed", see :meth:`tell`.
    index_ : ndarray of int of shape (n,)
        Rows of the pool that were measured, as far as ``tell`` was given them; else -1.
    n_told_ : int
        Observations told since ``fit``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, when ``fit`` got a table with text for column names, or ``bounds`` are a dict.
    policy_header_ : dict
        Facts about the policy in use.
    guard_ : CampaignGuard
        ``guard_.check(x)`` and ``guard_.pull_back(x)`` of points in the user's units.

    See Also
    --------
    AmortizedQuerier : The same without a safety constraint.
    GPSafeQuerier : With models that are fitted, or stated.

    References
    ----------
    Li, Toussaint, Rakitsch, Zimmer (2026). "Amortized Safe Active Learning for Real-Time Data
    Acquisition: Pretrained Neural Policies from Simulated Nonparametric Functions".

    Examples
    --------
    >>> from sklearn_asal import AmortizedSafeQuerier
    >>> querier = AmortizedSafeQuerier(
    ...     bounds=[(900, 4000), (0, 60)], safety_threshold=850.0, safe_when="below"
    ... )
    >>> querier.safety_rule
    'safe means z <= 850.0'
    >>> point, report = querier.query(
    ...     [[1000, 10], [1200, 10]], [31.0, 33.5], [610.0, 640.0], return_report=True
    ... )
    >>> point.shape, report.p_safe.shape
    ((1, 2), (1,))
    """

    _safe = True
    _on_no_safe = "raise", "least_unsafe", None

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
        gamma: float | None = None,
        n_candidates: int | None = None,
        on_no_safe: Literal["raise", "least_unsafe"] | None = None,
        guard: bool | SafetyGuard | None = None,
        max_violations: int | None = None,
        constraints: Any = None,
        max_step: Any = None,
        log: StrPath | CampaignLog | None = None,
        lipschitz: Any = None,
        stop_when: float | None = None,
        repeat_every: int | None = None,
    ) -> None:
        super().__init__(
            bounds=bounds,
            budget=budget,
            random_state=random_state,
            y_loc=y_loc,
            y_scale=y_scale,
            constraints=constraints,
            max_step=max_step,
            log=log,
            stop_when=stop_when,
            repeat_every=repeat_every,
        )
        self.policy = policy
        self.safety_threshold = safety_threshold
        self.safe_when = safe_when
        self.z_scale = z_scale
        self.gamma = gamma
        self.n_candidates = n_candidates
        self.on_no_safe = on_no_safe
        self.guard = guard
        self.max_violations = max_violations
        self.lipschitz = lipschitz

    def _check_setup(self, n_features, budget=None):
        super()._check_setup(n_features, budget)
        gamma = self.gamma
        if gamma is None:
            return
        if type(gamma) is not float or not 0 < gamma <= 1:  # the usual, quickly
            check_scalar(gamma, "gamma", Real, min_val=0, max_val=1, include_boundaries="right")
            if gamma != gamma:
                raise ValueError("gamma must be above 0 and at most 1, got nan.")

    def _check_start(self, history):
        if self.on_no_safe is None:
            margin = history.observed.worst_margin
            if margin.max() < 0:
                best = history.observed.X[argbest(margin, history.observed.X)]
                raise NoSafeCandidateError(best, np.nan, np.nan)

    def _margin_models(self, history):
        return self._by_models()._limits(history)

    @property
    def _guards_by_default(self):
        return not registry.infers(self.policy)

    @property
    def _tolerated(self):
        """What gamma is where it is not stated."""
        if self.gamma is not None:
            return self.gamma
        return _OF_MODELS if registry.infers(self.policy) else _OF_ROWS

    def _warn_of_boldness(self, policy, candidates):
        share = policy.unsafe_share
        if share > _BOLD and (candidates is None or self._tolerated > _CAREFUL):
            warn_user(
                f"in its validation {share:.0%} of this policy's queries were unsafe; it is meant "
                f"for a pool with gamma of at most {_CAREFUL}, by which rows are checked "
                "before they are proposed. Without, take another policy.",
                SafetyWarning,
            )

    def _complaints_of(self, policy, history):
        found = super()._complaints_of(policy, history)
        if policy.infers:
            if len(history.X) > 1 and not np.ptp(history.X, axis=0).any():
                found["X"] = SafetyWarning, _UNKNOWN
            return found
        low, high = np.reshape(policy.safe_centre, (2, -1, 1))
        safe, columns = history.worst_margin >= 0, np.ascontiguousarray(history.X.T)
        central = ((columns >= low - _CENTRAL) & (columns <= high + _CENTRAL)).all(axis=0)
        if safe.any() and not (safe & central).any():
            found["bounds"] = (
                SafetyWarning,
                "no observation in the middle of bounds is safe. This policy was trained on "
                "systems that are safe there, and will go there: set bounds so that your safe "
                f"points lie around their middle, or take policy {registry.ANY!r}.",
            )
        return found

    def _row(self, candidates, point, history, policy):
        row, p_safe = safe_row(
            candidates, point, history, policy, self.n_candidates, self._tolerated
        )
        if p_safe is not None:
            if self._raises:
                raise NoSafeCandidateError(candidates.points[row], p_safe, 1.0 - self._tolerated)
            self._warn_of_row(candidates)
        return row

    def _warn_of_row(self, candidates):
        gamma = self._tolerated
        what, many = ("point", "points") if candidates.is_drawn else ("row of the pool", "rows")
        warn_user(
            f"no {what} near to a proposal is safe with a probability of {1.0 - gamma:g} "
            f"(gamma={gamma}); the safest that was found is proposed. If many {many} should be "
            "safe, z_scale may be too large.",
            SafetyWarning,
        )
