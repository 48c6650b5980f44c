"""Queriers that ask a pretrained policy: one forward pass per query."""

import contextlib
import functools
import operator
import os
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor
from numbers import Real

import joblib
import numpy as np
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from . import choice
from .base import BaseQuerier, SafeQuerierMixin
from .exceptions import DataScaleWarning, SafetyWarning, warn_user
from .overview import Overview
from .policies import checkpoint
from .policies.runtime import Tokens
from .space import Box, is_auto
from .surrogates.threads import one_thread
from .typical import (
    NOISES,
    Factors,
    TypicalProcesses,
    typical_lengthscale,
    typical_noises,
)

# Half the width of what counts as the middle; training begins within 0.1 of it.
_CENTRAL = 0.2
# If none of the first has this part of the probability that is asked for, looks that reach
# farther come first.
_HOPELESS = 0.5
# More rows than these are first asked for in single precision.
_FEW = 256
# Of more observations, so many nearest ones are asked about rows.
_HEARD = 256

# A policy with more than this share of unsafe queries in its validation counts on rows that are
# rechecked, and by this probability at least.
_BOLD, _ENOUGH = 0.05, 0.9

_CHOICES = "auto", "informative", "uncertain", "nearest"

# The parameters that scaling depends on.
_SCALING = "bounds", "y_loc", "y_scale", "safety_threshold", "safe_when", "z_scale"

# Beyond this a float32 network may overflow, and no policy has seen the like anyway.
_LARGEST = 1e6

# What past calls learned, so that the next need not: policies in use, by the parameters that
# chose them, and, of each querier, observations at unit scale, the tokens of its campaign, and
# factors for the choice of rows. None is part of a querier's state.
_in_use = {}
_scaled = weakref.WeakKeyDictionary()
_campaigns = weakref.WeakKeyDictionary()
_factors = weakref.WeakKeyDictionary()
_overviews = weakref.WeakKeyDictionary()


class _PolicyQuerier(BaseQuerier):
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

    def propose_many(self, histories, budgets=None):
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
        together, lengths, left = self._histories(histories, budgets)
        starts = np.append(0, lengths.cumsum())
        runtime, header = self._load(together[0].shape[1])
        # "auto" scales each campaign on its own.
        auto = any(is_auto(getattr(self, name, None)) for name in ("y_loc", "y_scale", "z_scale"))
        scale = super()._at_unit_scale  # none of this is worth to be remembered
        _, X, y, margin = scaled = scale(*together)
        if auto:
            parts = (
                [None] * len(lengths) if part is None else np.split(part, starts[1:-1])
                for part in together
            )
            each = zip(*(scale(*part)[1:] for part in zip(*parts, strict=True)), strict=True)
            X, y, margin = (None if p[0] is None else np.concatenate(p) for p in each)
        self._warn_all(together, scaled, margin, starts)
        if budgets is not None:
            self._check_setup(runtime.n_features, max(left))
        self._warn_of_boldness(runtime.n_features)
        rows = runtime.rows(X, y, margin, _LARGEST)
        of_policy = functools.cache(lambda one, n: _left(header, one, n))
        left = np.array(list(map(of_policy, left, lengths.tolist())))
        # Campaigns of about one length together, so that there is little padding.
        order, batches, first = np.argsort(lengths, kind="stable"), [], 0
        for last, longest in enumerate(lengths[order].tolist()):
            if (last + 1 - first) * longest > runtime.batch and last > first:
                batches.append(order[first:last])
                first = last
        batches.append(order[first:])
        points = np.empty((len(lengths), runtime.n_features))

        def work(batch):
            longest, mask = lengths[batch[-1]], None
            if lengths[batch[0]] == longest and batch[-1] - batch[0] == len(batch) - 1:
                together = rows[:, starts[batch[0]] : starts[batch[-1] + 1]]
                together = together.reshape(len(rows), len(batch), longest, -1)
            else:
                step = np.arange(longest)
                mask = step < lengths[batch, None]
                together = rows[:, starts[batch, None] + mask * step]  # padded with first rows
                mask = None if mask.all() else mask
            points[batch] = runtime.decide_many(left[batch], together, mask)

        workers = min(joblib.cpu_count(), len(batches))
        with one_thread(), ThreadPoolExecutor(workers) as pool:
            list(pool.map(work, batches))
        return Box.of(self.bounds, runtime.n_features).from_unit(points.clip(0.0, 1.0))

    def _histories(self, histories, budgets):
        """Validated data of all campaigns together, their lengths and their budgets."""
        try:
            histories = list(histories)
        except TypeError as error:
            raise TypeError(
                "histories must be a sequence of tuples (X, y) or (X, y, z), got "
                f"{type(histories).__name__}."
            ) from error
        if not histories:
            raise ValueError("histories is empty; at least one campaign is needed.")
        left = self._budgets(budgets, len(histories))
        data = [self._history(0, histories[0])]
        joined = _joined(histories)
        if joined is None:
            for i, history in enumerate(histories[1:], start=1):
                data.append(self._history(i, history, data[0]))
            lengths = np.array([len(X) for X, _, _ in data])
            parts = zip(*data, strict=True)
            together = [None if part[0] is None else np.concatenate(part) for part in parts]
        else:
            X, y, *z = joined
            lengths = np.fromiter((len(history[1]) for history in histories), int)
            z = self._measurements(y, z[0] if z else None) if self._safe else None
            together = [X, y, z]
        return together, lengths, left

    def _history(self, i, history, first=None):
        """Validated data of one campaign, of the shapes of the first."""
        try:
            if not isinstance(history, (tuple, list)) or len(history) not in (2, 3):
                raise ValueError("a history must be a tuple (X, y) or (X, y, z).")
            X, y, z = self._data(*history, *(None,) * (3 - len(history)), "propose_many")[1]
            data = X, y, z if self._safe else None
            for name, now, before in zip("Xyz", data, first or data, strict=True):
                if now is not None and now.shape[1:] != before.shape[1:]:
                    raise ValueError(
                        f"{name} has shape {now.shape}, that of campaign 0 {before.shape}."
                    )
        except (TypeError, ValueError) as error:
            raise type(error)(f"campaign {i}: {error}") from error
        return data

    def _budgets(self, budgets, n_campaigns):
        """Queries left of each campaign."""
        if np.ndim(budgets) == 0:
            budgets = [budgets] * n_campaigns
        elif isinstance(budgets, np.ndarray):
            budgets = budgets.tolist()
        budgets = list(budgets)
        if len(budgets) != n_campaigns:
            raise ValueError(f"{len(budgets)} budgets are given for {n_campaigns} campaigns.")
        if set(map(type, budgets)) == {int} and min(budgets) > 0:  # the usual, quickly
            return budgets
        left = []
        for i, budget in enumerate(budgets):
            try:
                left.append(self._queries_left(budget, 0, 1))
            except (TypeError, ValueError) as error:
                raise type(error)(f"campaign {i}: {error}") from error
        return left

    def _warn_all(self, together, scaled, margin, starts):
        """Warn of all observations as if of one campaign, and of a campaign with nothing safe."""
        self._warn(together, scaled=scaled)
        if margin is None or (margin < 0).all():  # said already
            return
        hopeless = np.flatnonzero(np.maximum.reduceat(margin, starts[:-1]) < 0)
        if len(hopeless):
            warn_user(
                f"none of the observations of campaign {hopeless[0]} is safe, nor of "
                f"{len(hopeless) - 1} others: {self.safety_rule}. Check safety_threshold and "
                "safe_when; exploration has to start from something safe.",
                SafetyWarning,
            )

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
        name, names = f"{n_features}d", checkpoint.shipped(self._safe)
        longer = f"{name}-long"
        if longer in names and isinstance(self.budget, Real):
            _, header = checkpoint.load_runtime(name, safe=self._safe)
            if self.budget > header["max_budget"]:
                return longer
        return name

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
        if not isinstance(chosen, str) or chosen not in _CHOICES:
            raise ValueError(f"pool_choice must be one of {_CHOICES}, got {chosen!r}.")
        longest = self._load(n_features)[1]["max_budget"]
        if budget is not None and budget > longest:
            warn_user(self._too_large(budget, longest, n_features), DataScaleWarning)

    def _complaints(self, X, y, z, scaled):
        found = super()._complaints(X, y, z, scaled)
        if self.budget is None:
            return found
        longest = self._load(X.shape[1])[1]["max_budget"]
        if self.budget > longest:
            found["budget"] = (DataScaleWarning, self._too_large(self.budget, longest, X.shape[1]))
        return found

    def _too_large(self, budget, longest, n_features):
        longer = f"{n_features}d-long"
        known = self.policy in ("auto", f"{n_features}d") and longer in checkpoint.shipped(
            self._safe
        )
        remedy = f" Policy {longer!r} was trained for more." if known else ""
        return (
            f"budget={budget} is more than the {longest:g} queries that the policy was trained "
            f"for; its plan for {longest:g} is stretched over them.{remedy}"
        )

    def _pool_weights(self, n_features):
        scale = typical_lengthscale(self._load(n_features)[1], "lengthscale")
        # One for all features is none: only ratios matter.
        return None if np.ndim(scale) == 0 else scale.min() / scale

    def _asks_all_over(self, n_features, n_observed):
        """Whether rows of all the pool are compared, and no proposal is needed."""
        chosen = self.pool_choice
        wanted = chosen == "informative" or (chosen == "auto" and choice.is_wide(n_features))
        # All observations are heard about these rows, and many would take long.
        return wanted and n_observed <= _HEARD

    def _pick_at_once(self, view, n_observed, X, y, margin):
        if not self._asks_all_over(X.shape[1], n_observed):
            return None
        with one_thread():
            taken = self._most_informative(view, n_observed, X, y, margin)
        return None if taken is None else view.equal(taken)

    def _most_informative(self, view, n_observed, X, y, margin):
        """Of rows from all over the pool; None if all are spent."""
        processes = self._processes(n_observed, X, y, "lengthscale", typical=True)
        points = choice.candidates(view, n_observed)
        with self._overview(view, processes) as overview:
            gain = processes.gain(points, overview, np.ones(len(overview.rows)))
        return choice.informative(view, points, gain)

    def _pick(self, view, point, n_observed, X, y, margin):
        look = choice.first_look(view, X.shape[1])
        if look[0] == 1 or self.pool_choice == "nearest":
            return view.nearest(point)
        points = choice.look(view, point, *look)
        with one_thread():
            variance, _ = self._processes(n_observed, X, y, "lengthscale", point).predict(points)
        return view.equal(points[choice.first_of_the_largest(variance)])

    @contextlib.contextmanager
    def _overview(self, view, processes):
        """Rows from all over a pool, with all that these processes expect to be observed."""
        every, key = _overviews.setdefault(self, {}), processes.factors.key
        known, rows = every.get(key), choice.references(view)
        if known is None or not (known.rows is rows or np.array_equal(known.rows, rows)):
            known = Overview(rows, processes.factors.lengthscale)
            _keep(every, key, known)
        with known.lock:
            known.see(processes.expected)
            yield known

    def _processes(self, n_observed, X, values, function, point=None, typical=False):
        """What tells rows from each other; those near a point, if there are many observations.

        ``typical`` asks for noises like those the policy was trained with.
        """
        header = self._load(X.shape[1])[1]
        lengthscale = typical_lengthscale(header, function)
        noises = typical_noises(header) if typical else NOISES
        X, pending = X[:n_observed], X[n_observed:]
        values = values[:n_observed]
        if n_observed > _HEARD:
            away = np.square((X - point) / lengthscale).sum(axis=1)
            near = np.sort(np.argpartition(away, _HEARD)[:_HEARD])
            return TypicalProcesses(X[near], values[near], lengthscale, pending=pending)
        known = _factors.setdefault(self, {})
        key = Factors.key_of(lengthscale, noises)
        processes = TypicalProcesses(X, values, lengthscale, known.get(key), pending, noises)
        _keep(known, key, processes.factors)
        return processes

    def _propose_in_turn(self, campaign, n_observed, X, y, margin, left, rng, candidates):
        runtime, header = self._load(X.shape[1])
        left = _left(header, left, len(X))
        if not campaign:
            with one_thread():
                return runtime.decide(left, runtime.tokens(runtime.rows(X, y, margin, _LARGEST)))
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
        if self in _campaigns or self in _factors:  # queries and tells take turns
            # The next query's share of the work, for a controller waits for queries. Should it
            # fail, that query will say so: the data are told.
            with contextlib.suppress(Exception), one_thread():
                _, *history = self._at_unit_scale(self.X_, self.y_, self.z_)
                if self in _campaigns:  # of queries that asked the policy
                    tokens = self._tokens(self._load(self.n_features_in_)[0])
                    with tokens.lock:
                        tokens.of(*history)
                if self in _factors and len(self.X_) <= _HEARD:  # of queries with a pool
                    self._grow(history[0])
        return self

    tell.__doc__ = BaseQuerier.tell.__doc__

    def _grow(self, X):
        """Factors and overviews of pools, by what was told."""
        known, overviews = _factors[self], _overviews.get(self, {})
        for key, factors in known.items():
            known[key] = factors = factors.of(X)
            if key in overviews:
                with overviews[key].lock:
                    overviews[key].see(factors)


class _CampaignTokens(Tokens):
    """Tokens of observations at unit scale; nothing is to do where they are those just asked."""

    _history = None

    def of(self, *history):
        if self._history is None or not all(map(operator.is_, history, self._history)):
            self._history = None  # should the next line fail
            self._known = self(self.runtime.rows(*history, _LARGEST))
            self._history = history
        return self._known


def _keep(known, key, new):
    """Remember it besides one more: there are outputs and margins."""
    if key not in known and len(known) > 1:
        known.clear()
    known[key] = new


def _joined(histories):
    """Arrays of all campaigns, one after the other; None unless each is a tuple of finite arrays
    of matching shapes, for then only the first has to be validated.

    Validation takes as long as the policy's answer.
    """
    if set(map(type, histories)) != {tuple} or len(set(map(len, histories))) > 1:
        return None
    columns = list(zip(*histories, strict=True))
    if any(set(map(type, column)) != {np.ndarray} for column in columns):
        return None
    try:
        joined = [np.concatenate(column) for column in columns]
        lengths = [list(map(len, column)) for column in columns]
    except (TypeError, ValueError):  # of other shapes than the first, or none
        return None
    # One column of y or z is made one-dimensional, which is none of our business here.
    dimensions = [part.ndim for part in joined]
    if dimensions not in ([2, 1], [2, 1, 1], [2, 1, 2]) or joined[-1].shape[1:] == (1,):
        return None
    if any(part.dtype != np.float64 for part in joined):
        return None
    if 0 in lengths[0] or any(column != lengths[0] for column in lengths[1:]):
        return None
    return joined if all(np.isfinite(part).all() for part in joined) else None


def _version(path):
    """What tells a file from another, and from itself written anew."""
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


def _safe_centre(header):
    """Where, along each axis, the safe region was centred in training."""
    centre = header.get("preset", {}).get("safe_centre", {})
    return centre.get("low", 0.5), centre.get("high", 0.5)


def _left(header, left, n_observed):
    """The budget that a policy is told."""
    longest, n_init = header["max_budget"], header.get("n_init", 1)
    if left is None:
        # The number that training had left at this many observations.
        return float(min(max(longest + n_init - n_observed, 1), longest))
    # What follows from the data alone, so that it is the same with a campaign and without.
    whole = left + max(n_observed - n_init, 0)
    return float(max(left * min(1.0, longest / whole), 1.0))


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
        use of. After 256 observations as "uncertain". "nearest": the row nearest to the
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
        enough, the safest of these is taken, with a warning. None takes the nearest row whatever
        it is. With ``pool_choice="informative"`` it is the share of queries that should be safe:
        a single row may be up to six times as risky, at a price.
    pool_choice : {"auto", "informative", "uncertain", "nearest"}, default="auto"
        Which of the rows that are safe enough is taken, by the same processes. "uncertain": of
        some near to the policy's proposal the one whose margin is least certain. Of how many: with
        one feature 1, with two 4, from three on 16 of every eighth row; if there are less than 512
        rows, or of every eighth less than 16 left, every eighth of the 128 nearest.
        "informative": of 256 rows from all over the pool, others at each query, the one whose
        measurement lessens most what is not known of the output of 512 others, those that may be
        safe; risk counts against it. The proposal is made use of only where none of these rows is
        safe enough. After 256 observations as "uncertain". "nearest": the nearest. "auto":
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

    def _pick_at_once(self, view, n_observed, X, y, margin):
        return self.pool_safety and super()._pick_at_once(view, n_observed, X, y, margin)

    def _most_informative(self, view, n_observed, X, y, margin):
        """The same of those that are safe enough, for what may be safe, and at a price."""
        margins = self._processes(n_observed, X, margin, "safety_lengthscale", typical=True)
        points = choice.candidates(view, n_observed)
        too_risky, price = choice.risky(margins.positive(points), self.pool_safety)
        if too_risky.all():
            return None
        points, price = points[~too_risky], price[~too_risky]
        with self._overview(view, margins) as overview:
            weights = choice.may_be_safe(margins.likely(overview))
        outputs = self._processes(n_observed, X, y, "lengthscale", typical=True)
        with self._overview(view, outputs) as overview:
            gain = outputs.gain(points, overview, weights)
        return choice.informative(view, points, gain, price)

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
        if safe.any() and not (safe & central).any():
            found["bounds"] = (
                SafetyWarning,
                "no observation in the middle of bounds is safe. This policy was trained on "
                "systems that are safe there, and will go there: set bounds so that your safe "
                "points lie around their middle, or use GPSafeQuerier.",
            )
        return found

    def _pick(self, view, point, n_observed, X, y, margin):
        if not self.pool_safety:
            return view.nearest(point)
        uncertain, most = self.pool_choice != "nearest", -1.0
        looks = choice.looks(view, X.shape[1], uncertain)
        with one_thread():
            processes = self._processes(n_observed, X, margin, "safety_lengthscale", point)
            while looks:
                points = choice.look(view, point, *looks.pop(0))
                if not len(points):
                    continue  # all of this selection are spent
                # Of many rows only those that are safe are worth to be looked at closely.
                many = len(points) > _FEW
                variance, safe = (
                    (None, processes.positive(points)) if many else processes.predict(points)
                )
                enough = np.flatnonzero(safe >= self.pool_safety)
                if len(enough):
                    points = points[enough]
                    if not uncertain:
                        return view.equal(points[0])
                    variance = processes.predict(points)[0] if many else variance[enough]
                    return view.equal(points[choice.first_of_the_largest(variance)])
                if most < 0 and safe.max() < _HOPELESS * self.pool_safety:
                    looks = choice.farther_first(looks)
                if safe.max() > most:
                    most, taken = safe.max(), points[safe.argmax()]
        warn_user(
            f"no row of the pool near to a proposal is safe with probability "
            f"pool_safety={self.pool_safety}; the safest of those near is proposed.",
            SafetyWarning,
        )
        return view.equal(taken)
