"""Conventional (safe) active learning: a surrogate, an acquisition, candidates."""

import pickle
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils import check_scalar

from .._typing import (
    Bounds,
    Location,
    RandomState,
    Scale,
    Scales,
    Sides,
    StrPath,
    Surrogate,
    Thresholds,
)
from ..acquisition import (
    TIE,
    argbest,
    log_gain,
    min_unsafe,
    possibly_safe,
    predicted,
    predicted_entropy,
    price_of_risk,
    probability_of_feasibility,
    required_probability,
    variance_reduction,
)
from ..exceptions import NoSafeCandidateError
from ..log import CampaignLog
from ..surrogates import SURROGATES, as_surrogate
from ..threads import one_thread
from .guard import SafetyGuard
from .guarded import GuardedMixin
from .reporting import ReportingQuerier
from .safe import SafeQuerierMixin

if TYPE_CHECKING:
    from gpytorch.kernels import Kernel

# Points whose posterior variance "variance_reduction" lowers; fewer for each of several members.
_N_REFERENCE, _N_FOR_MEMBERS = 512, 256
# Of many candidates, so many of the best by a quick estimate are compared, by so many members.
_FINALISTS, _N_LEADING = 64, 4
# Logarithms of gains in single precision that differ by less are equal.
_TIE_OF_GAINS = 1e-3
# Default number of candidates; fewer where nothing is fitted, to keep a query near a millisecond.
_N_CANDIDATES, _N_OF_ENSEMBLE, _N_OF_MEMBERS = 5000, 256, 600
# Points that "random" asks at once whether they are safe; mostly the first of them will do.
_ASKED = 4096
# Where no candidate of a pool is safe enough, so many times as many are looked at.
_WIDER = 8
# Where none near to safe measurements is, others are drawn within this part of the radius.
_CLOSER = 0.2
_GOLDEN = 0.5 * (5**0.5 - 1)

_SurrogateName = Literal["exact", "sparse", "mixture", "ensemble", "amortized", "pfn", "tabpfn"]


class _ModelQuerier(ReportingQuerier):
    """What queriers with and without limits share: models and candidates."""

    _acquisitions: tuple[str, ...] = ("entropy", "variance_reduction")

    def _check_setup(self, n_features, budget=None):
        surrogate = self.surrogate
        if isinstance(surrogate, str) and surrogate in SURROGATES:
            surrogate = SURROGATES[surrogate]
        elif not self._is_incremental():
            surrogate = as_surrogate(surrogate)
        if self.acquisition not in self._acquisitions:
            raise ValueError(
                f"acquisition must be one of {', '.join(map(repr, self._acquisitions))}, got "
                f"{self.acquisition!r}."
            )
        if self.acquisition == "variance_reduction" and not _tells_covariances(surrogate):
            names = [name for name, kind in SURROGATES.items() if _tells_covariances(kind)]
            raise ValueError(
                "acquisition='variance_reduction' needs a surrogate with a method "
                f"covariance(A, B), which {surrogate!r} lacks; choose another "
                f"acquisition, or as surrogate {', '.join(map(repr, names))}."
            )
        if self.n_candidates is not None:
            check_scalar(self.n_candidates, "n_candidates", Integral, min_val=1)

    def _model(self, role, X, values, cache, shared=True):
        """A fitted surrogate; the same for the same data, whatever came before.

        ``shared`` says whether the others have the same inputs.
        """
        surrogate = self.surrogate
        if not self._is_incremental():
            return as_surrogate(surrogate).fit(X, values)
        key = surrogate if isinstance(surrogate, str) else pickle.dumps(vars(surrogate))
        known = cache.models.get(role)
        if known is None or known[0] != key:
            known = cache.models[role] = key, as_surrogate(surrogate)
            if role != "output" and hasattr(known[1], "zero_mean"):
                known[1].zero_mean = True  # far from data a margin is as likely to be negative
        model = known[1]
        if not hasattr(model, "probed"):
            return model.update(X, values)
        if shared:
            model.probed = cache.probed
        model.update(X, values)
        if shared:
            cache.probed = model.probed
        return model

    def _kind(self):
        """The surrogate, or its class where it is stated by its name."""
        surrogate = self.surrogate
        return SURROGATES.get(surrogate) if isinstance(surrogate, str) else surrogate

    def _is_incremental(self):
        """Whether models are extended by each observation, as that of the ensemble."""
        return hasattr(self._kind(), "update")

    def _is_averaged(self):
        """Whether models are averaged over several members, as that of the network."""
        return hasattr(self._kind(), "probed")

    @property
    def _needs_unit_scale(self):
        # Priors on hyperparameters are for values near unit scale.
        return not getattr(self._kind(), "scale_free", False)

    def _output(self, history):
        """The model of the output; pending points make it less uncertain where they lie."""
        shared, history = history.has_output is None, history.complete
        observed = history.observed
        model = self._model("output", observed.X, observed.y, history.cache, shared)
        if not len(history.pending):
            return model
        if hasattr(model, "condition"):
            # The same hyperparameters: guesses say nothing about these.
            return model.condition(history.X, history.y)
        return model.fit(history.X, history.y)

    def _limits(self, history):
        """Models of the margins. A guessed one would pass for evidence of safety."""
        observed = history.observed
        return [
            self._model(f"limit {j}", observed.X, margin, history.cache)
            for j, margin in enumerate(observed.margins)
        ]

    def _prepare(self, history):
        # A controller waits for queries, not for tells.
        if any(not role.startswith("guard") for role in history.cache.models):
            with one_thread(), history.cache.lock:
                output, limits = self._output(history), self._limits(history)
                if self.acquisition == "variance_reduction":
                    reference = self._reference(history, history.cache.candidates)
                    possibly_safe(limits, reference)
                    if self._is_averaged():
                        output.know(reference)

    def _models(self, history):
        history = self._in_order(history)
        return self._output(history), self._limits(history)

    def _believed(self, history):
        return self._models(history) if self._is_averaged() else super()._believed(history)

    def _in_order(self, history):
        # What is extended row by row cannot be sorted.
        return history if self._is_incremental() else history.in_order()

    def _select(self, history, candidates, budget, rng):
        chosen, point, p_safe = self._choose(history, candidates, rng)
        if p_safe is None or self.on_no_safe == "least_unsafe":
            return chosen
        raise NoSafeCandidateError(point, p_safe, self._required())

    def _choose(self, history, candidates, rng):
        """The best candidate that is safe enough, or else the safest.

        Parameters
        ----------
        history, candidates, rng
            See :meth:`BaseQuerier._select`.

        Returns
        -------
        chosen : ndarray of shape (n_features,) or int
            See :meth:`BaseQuerier._select`.
        point : ndarray of shape (n_features,)
            The same as a point of the unit cube.
        p_safe : float or None
            Its probability of being safe, where no candidate is safe enough.
        """
        history, least = self._in_order(history), -1.0
        with one_thread(), history.cache.lock:
            limits = self._limits(history)
            for positions, points in self._candidate_sets(history, candidates, rng):
                best, p_safe = self._best_of(points, history, candidates, limits, rng)
                if best is not None:
                    point = points[best]
                    return point if positions is None else positions[best], point, None
                safest = argbest(p_safe, points)
                if p_safe[safest] > least + TIE:
                    least, point = p_safe[safest], points[safest]
                    chosen = point if positions is None else positions[safest]
        return chosen, point, float(least)

    def _candidate_sets(self, history, candidates, rng):
        """Yield candidates until some are safe: positions (None without a pool) and points."""
        is_ensemble = self._is_incremental()
        quick = _N_OF_MEMBERS if self._is_averaged() else _N_OF_ENSEMBLE
        n = self.n_candidates or (quick if is_ensemble else _N_CANDIDATES)
        if candidates is None:
            for points in self._random_sets(history, n, rng):
                free = history.is_free(points)
                yield None, points if free.all() or not free.any() else points[free]
        elif not is_ensemble:
            positions = candidates.available
            yield positions, candidates.points[positions]
        else:
            while True:
                # Other rows at each query: of the same ones the one that leads on may be missing.
                positions = candidates.subsample(n, history.n_points * _GOLDEN % 1)
                positions = positions[candidates.is_available(positions)]
                if len(positions):
                    yield positions, candidates.points[positions]
                if n >= len(candidates):
                    return
                n *= _WIDER

    def _random_sets(self, history, n, rng):
        """Yield candidates of the unit cube."""
        if history.nearby is not None:
            yield history.nearby.draw(n, rng, history.feature_rank)
            yield history.nearby.draw(n, rng, history.feature_rank, _CLOSER)
            return
        # Not in the order of the features, which is to be of no consequence.
        points = rng.random((n, history.X.shape[1]))[:, history.feature_rank]
        yield points
        # In many dimensions uniform points miss the safe set altogether.
        yield _between(history.observed.X, points, rng)

    def _best_of(self, points, history, candidates, limits, rng):
        """Index of the best candidate, None if none may be taken; probabilities to be safe."""
        if self.acquisition == "random":
            return _any_safe(limits, points, self._required(), rng)
        p_safe = probability_of_feasibility(limits, points) if limits else None
        eligible = np.arange(len(points))
        if limits and self.acquisition != "min_unsafe":
            eligible = np.flatnonzero(p_safe >= self._required())
            if not len(eligible):
                return None, p_safe
        some = points[eligible]
        safe = None if p_safe is None else p_safe[eligible]
        score = self._score(some, safe, history, candidates, limits)
        tie = _TIE_OF_GAINS if self._is_averaged() else TIE
        # Ties are broken by the points, whatever the order of their features.
        in_order = some[:, np.argsort(history.feature_rank)]
        return eligible[argbest(score, in_order, tie)], p_safe

    def _required(self):
        """The probability of being safe that a candidate must have."""
        return required_probability(self.gamma, self.acquisition == "variance_reduction")

    def _reference(self, history, candidates):
        """Points whose posterior variance is to be lowered."""
        n = _N_FOR_MEMBERS if self._is_averaged() else _N_REFERENCE
        return history.reference(n) if candidates is None else candidates.reference(n)

    def _score(self, points, p_safe, history, candidates, limits):
        if self.acquisition == "variance_reduction":
            return self._worth(points, p_safe, history, candidates, limits)
        output = self._output(history)
        if self.acquisition == "min_unsafe":
            return min_unsafe(predicted(output, points)[1], p_safe, self.gamma)
        return predicted_entropy(output, points)

    def _worth(self, points, p_safe, history, candidates, limits):
        """Logarithm of the variance reduction, less the price of risk."""
        reference, output = self._reference(history, candidates), self._output(history)
        weights = possibly_safe(limits, reference)
        price = price_of_risk(p_safe, self.gamma) if limits else np.zeros(len(points))
        if not self._is_averaged():
            return log_gain(variance_reduction(output, points, reference, weights)) - price
        chosen = np.arange(len(points))
        if len(points) > 2 * _FINALISTS:
            # By one member; of Sobol points the first half will do.
            half = slice(len(reference) // 2 if candidates is None else None)
            few = np.zeros_like(weights)
            few[half] = weights[half]
            gain = variance_reduction(output, points, reference, few, n_members=1)
            chosen = np.argpartition(price - log_gain(gain), _FINALISTS)[:_FINALISTS]
        gain = variance_reduction(output, points[chosen], reference, weights, n_members=_N_LEADING)
        worth = log_gain(gain) - price[chosen]
        # From the best one, for a logarithm has no zero.
        score = np.full(len(points), -np.inf)
        score[chosen] = worth - worth.max()
        return score


class GPQuerier(_ModelQuerier):
    """Active learning with a Gaussian process (paper, algS-convention_al).

    Each query fits the surrogate to all observations and proposes the candidate
    with the highest acquisition score.

    Parameters
    ----------
    surrogate : {"exact", "sparse", "mixture", "ensemble", "amortized", "pfn", "tabpfn"}, \
            estimator or kernel, default="exact"
        :class:`~sklearn_asal.surrogates.ExactGP`,
        :class:`~sklearn_asal.surrogates.SparseGP`,
        :class:`~sklearn_asal.surrogates.MixtureGP`,
        :class:`~sklearn_asal.surrogates.EnsembleGP` (nothing is fitted: a query takes a
        millisecond), :class:`~sklearn_asal.surrogates.AmortizedGP` (nothing is fitted, and
        ``y_loc``, ``y_scale`` and ``z_scale`` need not be stated),
        :class:`~sklearn_asal.surrogates.PFNSurrogate` and
        :class:`~sklearn_asal.surrogates.TabPFNSurrogate` (pretrained transformers, for
        comparison), or an instance of one of these or of the like; a regressor of scikit-learn
        with ``predict(X, return_std=True)``; a GPyTorch kernel. It is cloned, never fitted itself.
    acquisition : {"entropy", "variance_reduction"}, default="entropy"
        The entropy of the predicted output, or by how much a measurement lowers the posterior
        variance on average over the bounds or the pool.
    n_candidates : int, default=None
        Number of random points compared when there is no pool; where nothing is fitted, of rows
        of a pool, too. None means 5,000; 256 for the ensemble, 600 for the amortized one.
    bounds : None, pair of float, sequence of shape (n_features,), or dict, default=None
        Lower and upper limit of each feature in the user's units, a pair; one pair holds
        for all. None means the unit cube. Proposals never leave the bounds.
        In place of a pair there may be an :class:`~sklearn_asal.space.Integer`,
        :class:`~sklearn_asal.space.Log` or :class:`~sklearn_asal.space.Grid`. The keys of a dict
        are the names of the features, in the order of columns of arrays; columns of tables are
        taken by name.
    budget : int, default=None
        Number of queries of the campaign; with data passed to ``query``, the
        number left. The choice does not depend on it.
    random_state : None, int, RandomState or Generator, default=None
        Seeds the candidates, together with the number of observations.
    y_loc, y_scale : float or "auto", default=0.0, 1.0
        ``(y - y_loc) / y_scale`` should have about zero mean and unit variance
        over the domain. "auto": mean and standard deviation of the outputs at
        hand, anew at each query.
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

    See Also
    --------
    GPSafeQuerier : The same with a safety constraint.
    AmortizedQuerier : With a pretrained network: nothing is fitted or stated.

    References
    ----------
    Li, Toussaint, Rakitsch, Zimmer (2026). "Amortized Safe Active Learning for Real-Time Data
    Acquisition: Pretrained Neural Policies from Simulated Nonparametric Functions".

    Seo, Wallat, Graepel, Obermayer (2000). "Gaussian Process Regression: Active Data Selection
    and Test Point Rejection".

    Examples
    --------
    >>> from sklearn_asal import GPQuerier
    >>> querier = GPQuerier(bounds=[(-5, 10), (0, 15)], random_state=0)
    >>> point, report = querier.query([[2.5, 7.5]], [0.3], return_report=True)
    >>> point.shape, report.y_mean.shape
    ((1, 2), (1,))
    """

    def __init__(
        self,
        surrogate: "_SurrogateName | Surrogate | Kernel" = "exact",
        *,
        acquisition: Literal["entropy", "variance_reduction"] = "entropy",
        n_candidates: int | None = None,
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
        self.surrogate = surrogate
        self.acquisition = acquisition
        self.n_candidates = n_candidates


class GPSafeQuerier(GuardedMixin, SafeQuerierMixin, _ModelQuerier):
    """Safe active learning with Gaussian processes (paper, algS-convention_sal).

    Each query fits one surrogate to the outputs and one to the margin of each
    limit, and proposes the best candidate that is safe with probability
    ``1 - gamma`` or more (eq-safe_al); two acquisitions weigh risk in another way. The
    probability is the model's: it is as good as the model, and no guarantee.

    Parameters
    ----------
    surrogate : {"exact", "sparse", "mixture", "ensemble", "amortized", "pfn", "tabpfn"}, \
            estimator or kernel, default="exact"
        :class:`~sklearn_asal.surrogates.ExactGP`,
        :class:`~sklearn_asal.surrogates.SparseGP`,
        :class:`~sklearn_asal.surrogates.MixtureGP`,
        :class:`~sklearn_asal.surrogates.EnsembleGP` (nothing is fitted: a query takes a
        millisecond), :class:`~sklearn_asal.surrogates.AmortizedGP` (nothing is fitted, and
        ``y_loc``, ``y_scale`` and ``z_scale`` need not be stated),
        :class:`~sklearn_asal.surrogates.PFNSurrogate` and
        :class:`~sklearn_asal.surrogates.TabPFNSurrogate` (pretrained transformers, for
        comparison), or an instance of one of these or of the like; a regressor of scikit-learn
        with ``predict(X, return_std=True)``; a GPyTorch kernel. It is cloned, never fitted itself.
    acquisition : {"entropy", "variance_reduction", "random", "min_unsafe"}, default="entropy"
        What to choose among safe candidates by: the entropy of the predicted output, or nothing
        ("random", the paper's Safe Random). "variance_reduction": by how much a measurement lowers
        the posterior variance on average over what may be safe, with a price on risk in place of
        the bound on each query; ``gamma`` is then about the share of queries that are unsafe, and
        a single one may have six times that risk. "min_unsafe" weighs information and safety for
        all candidates (eq-acq_minunsafe); ``gamma`` is then the probability below which safer is
        no better, and nothing is ruled out.
    n_candidates : int, default=None
        Number of random points compared when there is no pool; where nothing is fitted, of rows
        of a pool, too. None means 5,000; 256 for the ensemble, 600 for the amortized one. If none
        of them is safe, as many points between these and the observations are tried; of a pool,
        eight times as many rows.
    gamma : float, default=0.05
        Tolerated probability that a query is unsafe, see ``acquisition``. With
        "variance_reduction" nothing is ruled out from one sixth on.
    on_no_safe : {"raise", "least_unsafe"}, default="raise"
        If no candidate is safe enough, raise an error that names the least
        unsafe one, or propose that one.
    bounds : None, pair of float, sequence of shape (n_features,), or dict, default=None
        Lower and upper limit of each feature in the user's units, a pair; one pair holds
        for all. None means the unit cube. Proposals never leave the bounds.
        In place of a pair there may be an :class:`~sklearn_asal.space.Integer`,
        :class:`~sklearn_asal.space.Log` or :class:`~sklearn_asal.space.Grid`. The keys of a dict
        are the names of the features, in the order of columns of arrays; columns of tables are
        taken by name.
    budget : int, default=None
        Number of queries of the campaign; with data passed to ``query``, the
        number left. The choice does not depend on it.
    random_state : None, int, RandomState or Generator, default=None
        Seeds the candidates, together with the number of observations.
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
        ``z``, each has a model of its own; the probability of keeping them all
        is taken to be the product of the probabilities of keeping each.
    guard : bool or SafetyGuard, default=False
        Whether what is chosen is checked by models of policy "any" as well, and pulled back where
        it is not safe enough (:class:`~sklearn_asal.queriers.guard.SafetyGuard`).
    max_violations : int, default=None
        After so many measurements that violate a limit, aborted runs included, only the
        neighbourhood of measurements that were safe is proposed: points within
        ``0.05 * sqrt(n_features)`` of one of them, in the unit cube. Of a pool, rows in it; where
        there are none, the row nearest to a safe measurement. Each query warns of that. 0 means
        from the beginning; None means never.
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
    guard_ : CampaignGuard
        ``guard_.check(x)`` and ``guard_.pull_back(x)`` of points in the user's units.

    See Also
    --------
    GPQuerier : The same without a safety constraint.
    AmortizedSafeQuerier : With a pretrained network: nothing is fitted or stated.

    References
    ----------
    Li, Toussaint, Rakitsch, Zimmer (2026). "Amortized Safe Active Learning for Real-Time Data
    Acquisition: Pretrained Neural Policies from Simulated Nonparametric Functions".

    Schreiter, Nguyen-Tuong, Eberts, Bischoff, Markert, Toussaint (2015). "Safe Exploration for
    Active Learning with Gaussian Processes".

    Examples
    --------
    >>> from sklearn_asal import GPSafeQuerier
    >>> querier = GPSafeQuerier(safety_threshold=350.0, safe_when="below", z_scale=50.0)
    >>> querier.fit([[0.5, 0.5], [0.4, 0.5]], [0.3, 0.1], [150.0, 170.0]).safety_rule
    'safe means z <= 350.0'
    >>> point, report = querier.query(return_report=True)
    >>> report.p_safe >= 0.95
    array([ True])
    """

    _acquisitions = ("entropy", "variance_reduction", "random", "min_unsafe")

    def __init__(
        self,
        surrogate: "_SurrogateName | Surrogate | Kernel" = "exact",
        *,
        acquisition: Literal["entropy", "variance_reduction", "random", "min_unsafe"] = "entropy",
        n_candidates: int | None = None,
        gamma: float = 0.05,
        on_no_safe: Literal["raise", "least_unsafe"] = "raise",
        bounds: Bounds = None,
        budget: int | None = None,
        random_state: RandomState = None,
        safety_threshold: Thresholds = 0.0,
        safe_when: Sides = "above",
        y_loc: Location = 0.0,
        y_scale: Scale = 1.0,
        z_scale: Scales = 1.0,
        guard: bool | SafetyGuard | None = False,
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
        self.surrogate = surrogate
        self.acquisition = acquisition
        self.n_candidates = n_candidates
        self.gamma = gamma
        self.on_no_safe = on_no_safe
        self.safety_threshold = safety_threshold
        self.safe_when = safe_when
        self.z_scale = z_scale
        self.guard = guard
        self.max_violations = max_violations
        self.lipschitz = lipschitz

    def _margin_models(self, history):
        if self._is_averaged():
            return self._limits(history)
        by_any = GPSafeQuerier("amortized")
        # Under names of their own: this querier may keep other models of the limits.
        return [
            by_any._model(f"guard {j}", history.observed.X, margin, history.cache)
            for j, margin in enumerate(history.observed.margins)
        ]

    def _check_setup(self, n_features, budget=None):
        super()._check_setup(n_features, budget)
        check_scalar(self.gamma, "gamma", Real, min_val=0, max_val=1, include_boundaries="neither")


def _tells_covariances(surrogate):
    return hasattr(surrogate, "covariance") or hasattr(surrogate, "variance_reduction")


def _any_safe(limits, points, required, rng):
    """One of the points that are safe enough, each as likely as the others, or None."""
    order = rng.permutation(len(points))
    p_safe = np.zeros(len(points))
    for start in range(0, len(points), _ASKED):
        asked = order[start : start + _ASKED]
        p_safe[asked] = probability_of_feasibility(limits, points[asked])
        safe = asked[p_safe[asked] >= required]
        if len(safe):
            return safe[0], p_safe
    return None, p_safe


def _between(X, points, rng):
    """Random points on the way from an observation to each of the points."""
    X = X[np.lexsort(X.T)]  # which observation is drawn must not depend on their order
    origin = X[rng.integers(len(X), size=len(points))].clip(0.0, 1.0)
    return origin + rng.random((len(points), 1)) * (points - origin)
