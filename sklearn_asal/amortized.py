"""Queriers that ask a pretrained policy: one forward pass per query."""

import os
import threading
from contextlib import contextmanager

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .base import BaseQuerier, SafeQuerierMixin
from .exceptions import DataScaleWarning

# Beyond this a float32 network may overflow, and no policy has seen the like anyway.
_LARGEST = 1e6

_lock = threading.Lock()


@contextmanager
def _one_thread():
    """Cap torch at one thread, then put its number of threads back.

    Networks this small gain nothing from more threads, and where the cores are
    busy two threads that wait for each other took 200 times as long as one. The
    setting is global to the process, hence the lock.
    """
    import torch

    with _lock:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


class _PolicyQuerier(BaseQuerier):
    """What both kinds share."""

    _needs_unit_scale = True
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
        from .policies.checkpoint import load_policy

        load_policy(name_or_path, safe=cls._safe)
        return cls(name_or_path, **params)

    @property
    def policy_header_(self):
        """Facts about the policy in use, such as the priors it was trained on (dict)."""
        check_is_fitted(self)
        return dict(self._load(self.n_features_in_)[1])

    def _load(self, n_features):
        """Network and header. The loader keeps them; the querier holds a name only."""
        from .policies.checkpoint import load_policy, shipped

        policy = self.policy
        if isinstance(policy, str) and policy == "auto":
            names = shipped(self._safe)
            fitting = [name for name, size in names.items() if size == n_features]
            if not fitting:
                offer = ", ".join(f"{name!r} for {size} features" for name, size in names.items())
                raise ValueError(
                    f"no policy for X with {n_features} features is shipped with "
                    f"{type(self).__name__} (shipped: {offer or 'none'}). Train one with "
                    "`python -m sklearn_asal train` and pass its path as policy."
                )
            policy = fitting[0]
        network, header = load_policy(policy, safe=self._safe)
        if network.n_features != n_features:
            fitting = [name for name, size in shipped(self._safe).items() if size == n_features]
            remedy = (
                f"The shipped policy {fitting[0]!r} fits."
                if fitting
                else "No shipped policy fits; train one with `python -m sklearn_asal train`."
            )
            raise ValueError(
                f"X has {n_features} features, but policy {os.fspath(policy)!r} takes "
                f"{network.n_features}. {remedy}"
            )
        return network, header

    def _check_setup(self, n_features):
        self._load(n_features)

    def _complaints(self, X, y, z):
        found = super()._complaints(X, y, z)
        longest = self._load(X.shape[1])[1]["max_budget"]
        if self.budget is not None and self.budget > longest:
            found["budget"] = (
                DataScaleWarning,
                f"budget={self.budget} is more than the {longest:g} queries that the policy was "
                f"trained for; while more are left it plans as if {longest:g} were.",
            )
        return found

    def _propose(self, X, y, margin, left, rng, candidates):
        import torch

        network, header = self._load(X.shape[1])
        longest = header["max_budget"]
        if left is None:
            # The number that training had left at this many observations.
            left = longest + header.get("n_init", 1) - len(X)
        budget = float(min(max(left, 1), longest))
        inputs = [
            None if part is None else torch.from_numpy(np.float32(part.clip(-_LARGEST, _LARGEST)))
            for part in (X[None], y[None], None if margin is None else margin[None])
        ]
        with _one_thread(), torch.inference_mode():
            point = network(torch.tensor([budget]), *inputs)
        return point[0].numpy()


class AmortizedQuerier(_PolicyQuerier):
    """Active learning by a pretrained policy (paper, algS-policy_al).

    The policy was trained on simulated experiments on functions drawn from
    Gaussian process priors. At deployment it needs no model fit and no search:
    a query is one forward pass, milliseconds on a CPU.

    Parameters
    ----------
    policy : str or path-like, default="auto"
        Name of a shipped policy or a policy file. "auto" is the shipped policy
        for the number of features.
    bounds : None, pair of float, or array-like of shape (n_features, 2), default=None
        Lower and upper limit of each feature in the user's units; one pair holds
        for all. None means the unit cube. Proposals never leave the bounds.
    budget : int, default=None
        Number of queries of the campaign; with data passed to ``query``, the
        number left. A policy plans for what is left. None leaves as many as
        training had at that number of observations, ``max_budget + n_init - n``,
        at least one. Budgets above the policy's ``max_budget`` count as that.
    random_state : None, int, RandomState or Generator, default=None
        Part of every querier's interface; policies are deterministic.
    y_loc, y_scale : float or "auto", default=0.0, 1.0
        ``(y - y_loc) / y_scale`` should have about zero mean and unit variance
        over the domain. "auto": mean and standard deviation of the outputs at
        hand, anew at each query.

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
    ):
        super().__init__(
            bounds=bounds, budget=budget, random_state=random_state, y_loc=y_loc, y_scale=y_scale
        )
        self.policy = policy


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
        Name of a shipped policy or a policy file. "auto" is the shipped policy
        for the number of features.
    bounds : None, pair of float, or array-like of shape (n_features, 2), default=None
        Lower and upper limit of each feature in the user's units; one pair holds
        for all. None means the unit cube. Proposals never leave the bounds.
    budget : int, default=None
        Number of queries of the campaign; with data passed to ``query``, the
        number left. A policy plans for what is left. None leaves as many as
        training had at that number of observations, ``max_budget + n_init - n``,
        at least one. Budgets above the policy's ``max_budget`` count as that.
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
    ):
        super().__init__(
            bounds=bounds, budget=budget, random_state=random_state, y_loc=y_loc, y_scale=y_scale
        )
        self.policy = policy
        self.safety_threshold = safety_threshold
        self.safe_when = safe_when
        self.z_scale = z_scale
