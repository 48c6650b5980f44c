"""Queriers that ask a pretrained policy: one forward pass per query."""

import contextlib
import operator
import os
import pickle
import weakref
from numbers import Real

import numpy as np
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from .base import BaseQuerier, SafeQuerierMixin
from .exceptions import DataScaleWarning, SafetyWarning, warn_user
from .many import ManyCampaigns
from .policies import checkpoint
from .policies.runtime import LARGEST, Tokens, told_budget
from .pool_choice import CHOICES, RowChoice, SafeRowChoice
from .surrogates.threads import one_thread

# Half the width of what counts as the middle; training begins within 0.1 of it.
_CENTRAL = 0.2

# A policy with more than this share of unsafe queries in its validation counts on rows that are
# rechecked, and by this probability at least.
_BOLD, _ENOUGH = 0.05, 0.9

# The parameters that scaling depends on.
_SCALING = "bounds", "y_loc", "y_scale", "safety_threshold", "safe_when", "z_scale"

# What past calls learned, so that the next need not: policies in use, by the parameters that
# chose them, and, of each querier, observations at unit scale and the tokens of its campaign. None
# is part of a querier's state.
_in_use = {}
_scaled = weakref.WeakKeyDictionary()
_campaigns = weakref.WeakKeyDictionary()


class _PolicyQuerier(RowChoice, ManyCampaigns, BaseQuerier):
    """What both kinds share."""

    _needs_unit_scale = True
    _draws = False
    _safe = False

    @classmethod
    def from_pretrained(cls, name_or_path, **params):
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
        runtime, _ = checkpoint.load_runtime(name_or_path, safe=cls._safe)
        # Once for nothing, so that the first query is as quick as any.
        with one_thread():
            rows = runtime.rows(np.zeros((1, runtime.n_features)), *np.zeros((1 + runtime.safe, 1)))
            runtime.decide(1.0, runtime.tokens(rows))
        return cls(name_or_path, **params)

    @property
    def policy_header_(self):
        """Facts about the policy in use, such as the priors it was trained on (dict)."""
        check_is_fitted(self)
        return dict(self._load(self.n_features_in_)[1])

    def _load(self, n_features):
        """Runtime and header. The loader keeps them; the querier holds a name only."""
        policy = self.policy
        if not isinstance(policy, (str, os.PathLike)):
            return self._look_up(n_features)[0]
        key = policy, self._safe, n_features, checkpoint._weights()
        if policy == "auto":
            key += (self.budget if isinstance(self.budget, Real) else None,)
        found = _in_use.get(key)
        if found is not None:
            loaded, path, version = found
            if path is None:
                return loaded
            # A user's own file may be written anew, and a relative path mean another one.
            with contextlib.suppress(OSError):
                if _version(path) == version:
                    return loaded
        if len(_in_use) >= 64:
            _in_use.clear()
        _in_use[key] = found = self._look_up(n_features)
        return found[0]

    def _general(self, n_features):
        """Name of the policy for any system; that for long campaigns, if such is the budget."""
        name, longer = f"{n_features}d", self._longer(n_features)
        if longer and isinstance(self.budget, Real):
            _, header = checkpoint.load_runtime(name, safe=self._safe)
            if self.budget > header["max_budget"]:
                return longer
        return name

    def _longer(self, n_features):
        """Name of the shipped policy for long campaigns, None if there is none."""
        name = f"{n_features}d-long"
        return name if name in checkpoint.shipped(self._safe) else None

    def _warn_of_boldness(self, n_features):
        """Warn of a policy that is too bold for free proposals; safe policies only."""

    def _look_up(self, n_features):
        """Runtime and header; file they are from, None if it is a shipped one; its version."""
        policy = self.policy
        if isinstance(policy, str) and policy == "auto":
            names = checkpoint.shipped(self._safe)
            # A policy of one system, such as "7d-fluid", is only taken by its name.
            policy = self._general(n_features)
            if policy not in names:
                offer = ", ".join(f"{name!r} for {size} features" for name, size in names.items())
                special = [name for name, size in names.items() if size == n_features]
                hint = f"; {special[0]!r} was trained for one system only" if special else ""
                raise ValueError(
                    f"no general policy for X with {n_features} features is shipped with "
                    f"{type(self).__name__} (shipped: {offer or 'none'}{hint}). Train one with "
                    "`python -m sklearn_asal train` and pass its path as policy, or a name."
                )
        path = checkpoint.locate(policy, safe=self._safe)
        version = _version(path)
        runtime, header = checkpoint.load_runtime(policy, safe=self._safe)
        if runtime.n_features != n_features:
            sizes = checkpoint.shipped(self._safe)
            fitting = [name for name, size in sizes.items() if size == n_features]
            remedy = (
                f"The shipped policy {fitting[0]!r} fits."
                if fitting
                else "No shipped policy fits; train one with `python -m sklearn_asal train`."
            )
            raise ValueError(
                f"X has {n_features} features, but policy {os.fspath(policy)!r} takes "
                f"{runtime.n_features}. {remedy}"
            )
        if path.parent == checkpoint._weights():
            path = None
        return (runtime, header), path, version

    def _at_unit_scale(self, X, y, z):
        """What ``tell`` has worked out need not be in the query that follows."""
        scaling = [getattr(self, name, None) for name in _SCALING]
        data = [None if part is None else part.tobytes() for part in (X, y, z)]
        try:
            # Of the contents, for lists and arrays may be changed in place.
            key = pickle.dumps((X.shape, data, scaling))
        except Exception:  # whatever a parameter's type may raise
            return super()._at_unit_scale(X, y, z)
        known = _scaled.get(self)
        if known is None or known[0] != key:
            known = _scaled[self] = key, super()._at_unit_scale(X, y, z)
        return known[1]

    def _check_setup(self, n_features, budget=None):
        chosen = self.pool_choice
        if not isinstance(chosen, str) or chosen not in CHOICES:
            raise ValueError(f"pool_choice must be one of {CHOICES}, got {chosen!r}.")
        longest = self._load(n_features)[1]["max_budget"]
        if budget is not None and budget > longest and chosen != "informative":
            warn_user(self._too_large(budget, longest, n_features), DataScaleWarning)

    def _complaints(self, X, y, z, scaled):
        found = super()._complaints(X, y, z, scaled)
        # Informative rows are chosen without a plan.
        if self.budget is None or self.pool_choice == "informative":
            return found
        longest = self._load(X.shape[1])[1]["max_budget"]
        if self.budget > longest:
            found["budget"] = (DataScaleWarning, self._too_large(self.budget, longest, X.shape[1]))
        return found

    def _warn_of_no_pool(self, remedy):
        if self.pool_choice == "informative":
            warn_user(
                'pool_choice="informative" has no pool to choose from, so the policy proposes. '
                f"{remedy}, for instance pool=CandidatePool.from_bounds(bounds).",
                UserWarning,
            )

    def _warn_of_end(self, n_observed, header):
        """Warn where no budget is stated and the policy's plan is over."""
        planned = header["max_budget"] + header.get("n_init", 1)
        if n_observed >= planned:
            warn_user(
                # The same words each time, so that they are shown but once.
                f"no budget is stated, and the policy's plan for {header['max_budget']:g} queries "
                "is over: each is planned as its last. Set budget, or choose from a pool, such as "
                'CandidatePool.from_bounds(bounds), with pool_choice="informative".',
                DataScaleWarning,
            )

    def _too_large(self, budget, longest, n_features):
        longer = self._longer(n_features)
        general = self.policy in ("auto", f"{n_features}d")
        remedy = f" Policy {longer!r} was trained for more." if longer and general else ""
        remedy += (
            ' pool_choice="informative" needs no plan: with it, choose from a pool, such as '
            "CandidatePool.from_bounds(bounds)."
        )
        return (
            f"budget={budget} is more than the {longest:g} queries that the policy was trained "
            f"for; its plan for {longest:g} is stretched over them.{remedy}"
        )

    def _propose_in_turn(self, campaign, n_observed, X, y, margin, left, rng, candidates):
        runtime, header = self._load(X.shape[1])
        if candidates is None:
            self._warn_of_no_pool("Pass one to query")
        if left is None:
            self._warn_of_end(len(X), header)
        left = told_budget(header, left, len(X))
        if not campaign:
            with one_thread():
                return runtime.decide(left, runtime.tokens(runtime.rows(X, y, margin, LARGEST)))
        tokens = self._tokens(runtime)
        with tokens.lock, one_thread():
            return runtime.decide(left, tokens.of(X, y, margin))

    def _tokens(self, runtime):
        """Those of the campaign."""
        tokens = _campaigns.get(self)
        if tokens is None or tokens.runtime is not runtime:
            tokens = _campaigns[self] = _CampaignTokens(runtime)
        return tokens

    def tell(self, x, y, z=None):
        super().tell(x, y, z)
        if self in _campaigns or self._asked_of_pools():  # queries and tells take turns
            # The next query's share of the work, for a controller waits for queries. Should it
            # fail, that query will say so: the data are told.
            with contextlib.suppress(Exception), one_thread():
                _, *history = self._at_unit_scale(self.X_, self.y_, self.z_)
                if self in _campaigns:  # of queries that asked the policy
                    tokens = self._tokens(self._load(self.n_features_in_)[0])
                    with tokens.lock:
                        tokens.of(*history)
                if self._asked_of_pools():
                    self._grow(history[0])
        return self

    tell.__doc__ = BaseQuerier.tell.__doc__


class _CampaignTokens(Tokens):
    """Tokens of observations at unit scale; nothing is to do where they are those just asked."""

    _history = None

    def of(self, *history):
        if self._history is None or not all(map(operator.is_, history, self._history)):
            self._history = None  # should the next line fail
            self._known = self(self.runtime.rows(*history, LARGEST))
            self._history = history
        return self._known


def _version(path):
    """What tells a file from another, and from itself written anew."""
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


def _safe_centre(header):
    """Where, along each axis, the safe region was centred in training."""
    centre = header.get("preset", {}).get("safe_centre", {})
    return centre.get("low", 0.5), centre.get("high", 0.5)


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
    pool_choice : {"auto", "informative", "uncertain", "nearest"}, default="auto"
        Which row of a pool is taken, by Gaussian processes with typical hyperparameters.
        "uncertain": of some near to the policy's proposal the one whose output is least certain.
        Of how many: with one feature 1, with two 4, from three on 16 of every eighth row; if there
        are less than 512 rows, or of every eighth less than 16 left, every eighth of the 128
        nearest. "informative": of 256 rows from all over the pool, others at each query, the one
        whose measurement lessens most what is not known of 512 others; the proposal is not made
        use of. After 512 observations as "uncertain". "nearest": the row nearest to the
        proposal. "auto": "informative" from six features on, else "uncertain".

    Attributes
    ----------
    X_, y_ : ndarray of shape (n, n_features) and (n,)
        Observations so far, in the user's units.
    z_ : ndarray or None
        Kept if given, so that the safe class can be swapped in; not used.
    n_told_ : int
        Observations told since ``fit``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, when ``fit`` got a DataFrame with string column names.
    policy_header_ : dict
        Facts about the policy in use.

    See Also
    --------
    AmortizedSafeQuerier : The same with a safety constraint.

    References
    ----------
    "Amortized Safe Active Learning for Real-Time Data Acquisition: Pretrained
    Neural Policies from Simulated Nonparametric Functions".

    Examples
    --------
    >>> from sklearn_asal import AmortizedQuerier
    >>> querier = AmortizedQuerier("2d", bounds=[(-5, 10), (0, 15)], budget=20)
    >>> querier.fit([[2.5, 7.5]], [0.3]).query().shape  # doctest: +SKIP
    (1, 2)
    """

    def __init__(
        self,
        policy="auto",
        *,
        bounds=None,
        budget=None,
        random_state=None,
        y_loc=0.0,
        y_scale=1.0,
        pool_choice="auto",
    ):
        super().__init__(
            bounds=bounds, budget=budget, random_state=random_state, y_loc=y_loc, y_scale=y_scale
        )
        self.policy = policy
        self.pool_choice = pool_choice


class AmortizedSafeQuerier(SafeRowChoice, SafeQuerierMixin, _PolicyQuerier):
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
        Safe means ``z >= safety_threshold``, or ``<=`` for "below".
    y_loc, y_scale : float or "auto", default=0.0, 1.0
        ``(y - y_loc) / y_scale`` should have about zero mean and unit variance
        over the domain. "auto": mean and standard deviation of the outputs at
        hand, anew at each query.
    z_scale : float, "auto" or sequence of float, default=1.0
        What counts as one unit of safety margin: the standard deviation of the
        measurement over the domain. "auto": root mean square distance of the
        measurements at hand from the limit. With several limits, columns of
        ``z``, a row's margin is the smallest, each in units of its own scale.
    pool_safety : float or None, default=0.95
        With a pool, the row taken is measured as safe with this probability, by Gaussian processes
        on the margins with typical hyperparameters. Where none of the rows near to the policy's
        proposal is, the 64 nearest are looked at, then all; of more than 2,048 rows, the 64
        nearest of every eighth row, of every 64th and so on, at last 2,048. Where none is safe
        enough, the safest of these is taken, with a warning. None or 0 takes the nearest row
        whatever it is and whatever ``pool_choice``. With ``pool_choice="informative"`` it is the
        share of queries that should be safe: a single row may be up to six times as risky, at a
        price.
    pool_choice : {"auto", "informative", "uncertain", "nearest"}, default="auto"
        Which of the rows that are safe enough is taken, by the same processes. "uncertain": of
        some near to the policy's proposal the one whose margin is least certain. Of how many: with
        one feature 1, with two 4, from three on 16 of every eighth row; if there are less than 512
        rows, or of every eighth less than 16 left, every eighth of the 128 nearest.
        "informative": of 256 rows from all over the pool, others at each query, the one whose
        measurement lessens most what is not known of the output of 512 others, those that may be
        safe; risk counts against it. The proposal is made use of only where none of these rows is
        safe enough. After 512 observations as "uncertain". "nearest": the nearest. "auto":
        "informative" from six features on, else "uncertain".

    Attributes
    ----------
    X_, y_ : ndarray of shape (n, n_features) and (n,)
        Observations so far, in the user's units.
    z_ : ndarray of shape (n,) or (n, n_limits)
        Their safety measurements; ``y_`` if ``fit`` got none.
    n_told_ : int
        Observations told since ``fit``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, when ``fit`` got a DataFrame with string column names.
    policy_header_ : dict
        Facts about the policy in use.

    See Also
    --------
    AmortizedQuerier : The same without a safety constraint.

    References
    ----------
    "Amortized Safe Active Learning for Real-Time Data Acquisition: Pretrained
    Neural Policies from Simulated Nonparametric Functions".

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
        policy="auto",
        *,
        bounds=None,
        budget=None,
        random_state=None,
        safety_threshold=0.0,
        safe_when="above",
        y_loc=0.0,
        y_scale=1.0,
        z_scale=1.0,
        pool_safety=0.95,
        pool_choice="auto",
    ):
        super().__init__(
            bounds=bounds, budget=budget, random_state=random_state, y_loc=y_loc, y_scale=y_scale
        )
        self.policy = policy
        self.safety_threshold = safety_threshold
        self.safe_when = safe_when
        self.z_scale = z_scale
        self.pool_safety = pool_safety
        self.pool_choice = pool_choice

    def _check_setup(self, n_features, budget=None):
        super()._check_setup(n_features, budget)
        level = self.pool_safety
        if level is None or (type(level) is float and 0 <= level <= 1):  # the usual, quickly
            return
        check_scalar(level, "pool_safety", Real, min_val=0, max_val=1)
        if level != level:
            raise ValueError("pool_safety must be between 0 and 1 or None, got nan.")

    def _propose_in_turn(self, campaign, n_observed, X, *asked):
        *_, candidates = asked
        if candidates is None or (self.pool_safety or 0) < _ENOUGH:
            self._warn_of_boldness(X.shape[1])
        return super()._propose_in_turn(campaign, n_observed, X, *asked)

    def _warn_of_boldness(self, n_features):
        share = (self._load(n_features)[1].get("validation") or {}).get("unsafe_share") or 0
        if share > _BOLD:
            warn_user(
                f"in its validation {share:.0%} of this policy's queries were unsafe; it is meant "
                f"for a pool with pool_safety of {_ENOUGH} or more, by which rows are rechecked "
                "before they are proposed. Without, take another policy.",
                SafetyWarning,
            )

    def _complaints(self, X, y, z, scaled):
        found = super()._complaints(X, y, z, scaled)
        _, unit, _, margin = scaled
        low, high = np.reshape(_safe_centre(self._load(X.shape[1])[1]), (2, -1, 1))
        safe, columns = margin >= 0, np.ascontiguousarray(unit.T)
        central = ((columns >= low - _CENTRAL) & (columns <= high + _CENTRAL)).all(axis=0)
        off_centre = safe.any() and not (safe & central).any()
        if off_centre and self.pool_choice != "informative":
            found["bounds"] = (
                SafetyWarning,
                "no observation in the middle of bounds is safe. This policy was trained on "
                "systems that are safe there, and will go there: set bounds so that your safe "
                "points lie around their middle, or choose from a pool, such as "
                'CandidatePool.from_bounds(bounds), with pool_choice="informative".',
            )
        return found
