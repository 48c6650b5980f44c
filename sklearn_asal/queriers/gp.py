"""Conventional (safe) active learning: a surrogate, an acquisition, candidates."""

import pickle
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar

from .._typing import (
    Bounds,
    FloatArray,
    IntArray,
    Location,
    RandomState,
    Scale,
    Scales,
    Sides,
    Surrogate,
    Thresholds,
)
from ..acquisition import (
    TIE,
    Report,
    argbest,
    entropy,
    log_gain,
    min_unsafe,
    penalized,
    possibly_safe,
    predicted,
    probability_of_feasibility,
    required_probability,
    variance_reduction,
)
from ..box import Box
from ..exceptions import NoSafeCandidateError
from ..limits import boolean_limits, margin_scales
from ..pool import CandidatePool, sobol
from ..scaling import is_auto, moments
from ..settings import numpy_defaults
from ..surrogates import SURROGATES, as_surrogate
from ..threads import one_thread
from ..validation import as_rows, finite_array
from .base import BaseQuerier, SafeQuerierMixin

if TYPE_CHECKING:
    from gpytorch.kernels import Kernel

# Points whose posterior variance "variance_reduction" lowers.
_N_REFERENCE = 512
# Default number of candidates; fewer where nothing is fitted, to keep a query near a millisecond.
_N_CANDIDATES, _N_OF_ENSEMBLE = 5000, 256
# Points that "random" asks at once whether they are safe; mostly the first of them will do.
_ASKED = 4096
# Where no candidate of a pool is safe enough, so many times as many are looked at.
_WIDER = 8
_GOLDEN = 0.5 * (5**0.5 - 1)

_SurrogateName = Literal["exact", "sparse", "mixture", "ensemble"]


class _ModelQuerier(BaseQuerier):
    """What queriers with and without limits share: models, candidates and report."""

    _acquisitions: tuple[str, ...] = ("entropy", "variance_reduction")

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
        return_indices: bool = ...,
        return_report: bool = ...,
    ) -> Any: ...

    def query(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        z: ArrayLike | None = None,
        *,
        budget: int | None = None,
        pool: ArrayLike | CandidatePool | None = None,
        n_queries: int = 1,
        return_indices: bool = False,
        return_report: bool = False,
    ) -> Any:
        """Propose where to measure next. Never changes the querier.

        Like the ``query`` of every querier, with one more parameter. The choice does not depend
        on the budget, but a spent one raises. With ``n_queries`` above 1, points already chosen
        lower the uncertainty about the output where they lie; hyperparameters, and all that
        is said about safety, come from the observations alone.

        Parameters
        ----------
        X, y, z, budget, pool, n_queries, return_indices
            See :meth:`BaseQuerier.query`. All rows of a pool are compared; by the ensemble, about
            ``n_candidates`` rows from all over the pool, others at each query, and more only
            where none of them is safe enough.
        return_report : bool, default=False
            Return what the models expect of the proposals, given the observations
            (see :meth:`assess`).

        Returns
        -------
        points : ndarray of shape (n_queries, n_features)
            In the user's units and inside the bounds.
        indices : ndarray of int of shape (n_queries,)
            Rows of the pool, counted from 0; only with ``return_indices``.
        report : Report
            Only with ``return_report``.

        Raises
        ------
        NoSafeCandidateError
            Nothing is safe enough; ``GPSafeQuerier`` only.
        NotFittedError, BudgetExhaustedError, PoolExhaustedError, ValueError, TypeError
            See :meth:`BaseQuerier.query`.
        """
        answer = super().query(
            X,
            y,
            z,
            budget=budget,
            pool=pool,
            n_queries=n_queries,
            return_indices=return_indices,
        )
        if not return_report:
            return answer
        parts = answer if return_indices else (answer,)
        return *parts, self.assess(parts[0], X, y, z)

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
        campaign, data = self._data(X, y, z, "assess(x, X, y)")
        n_features = data[0].shape[1]
        self._check_setup(n_features)
        x = as_rows(x, n_features)
        x_ = finite_array(x, "x")
        self._check_features(x, x_, "x", n_features)
        points = Box.of(self.bounds, n_features).to_unit(x_)
        history = self._history(campaign, data)
        history = history if self._is_incremental() else history.in_order()
        with one_thread(), history.cache.lock:
            mean, std = predicted(self._output(history), points)
            limits = self._limits(history)
            margin = [predicted(model, points) for model in limits]
            p_safe = probability_of_feasibility(limits, points) if limits else None
        loc = moments(data[1])[0] if is_auto(self.y_loc) else float(self.y_loc)
        scale = moments(data[1])[1] if is_auto(self.y_scale) else float(self.y_scale)
        return Report(loc + scale * mean, scale * std, p_safe, *self._raw_limits(margin, data[2]))

    def _raw_limits(self, margin, z):
        return None, None

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
        able = hasattr(surrogate, "covariance") or hasattr(surrogate, "variance_reduction")
        if self.acquisition == "variance_reduction" and not able:
            raise ValueError(
                "acquisition='variance_reduction' needs a surrogate with a method "
                f"covariance(A, B), which {surrogate!r} lacks; choose another "
                f"acquisition, or as surrogate {', '.join(map(repr, SURROGATES))}."
            )
        if self.n_candidates is not None:
            check_scalar(self.n_candidates, "n_candidates", Integral, min_val=1)

    def _model(self, role, X, values, cache):
        """A fitted surrogate; the same for the same data, whatever came before."""
        surrogate = self.surrogate
        if not self._is_incremental():
            return as_surrogate(surrogate).fit(X, values)
        key = surrogate if isinstance(surrogate, str) else pickle.dumps(vars(surrogate))
        known = cache.models.get(role)
        if known is None or known[0] != key:
            known = cache.models[role] = key, as_surrogate(surrogate)
            if role != "output" and hasattr(known[1], "zero_mean"):
                known[1].zero_mean = True  # far from data a margin is as likely to be negative
        return known[1].update(X, values)

    def _kind(self):
        """The surrogate, or its class where it is stated by its name."""
        surrogate = self.surrogate
        return SURROGATES.get(surrogate) if isinstance(surrogate, str) else surrogate

    def _is_incremental(self):
        """Whether models are extended by each observation, as that of the ensemble."""
        return hasattr(self._kind(), "update")

    @property
    def _needs_unit_scale(self):
        # Priors on hyperparameters are for values near unit scale.
        return not getattr(self._kind(), "scale_free", False)

    def _output(self, history):
        """The model of the output; pending points make it less uncertain where they lie."""
        observed = history.observed
        model = self._model("output", observed.X, observed.y, history.cache)
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
        if history.cache.models:
            with one_thread(), history.cache.lock:
                self._output(history)
                self._limits(history)

    def _select(self, history, candidates, budget, rng):
        # What is extended row by row cannot be sorted.
        history = history if self._is_incremental() else history.in_order()
        with one_thread(), history.cache.lock:
            limits = self._limits(history)
            least = -1.0
            for positions, points in self._candidate_sets(history, candidates, rng):
                best, p_safe = self._best_of(points, history, candidates, limits, rng)
                if best is not None:
                    return points[best] if positions is None else positions[best]
                safest = argbest(p_safe, points)
                if p_safe[safest] > least + TIE:
                    least, point = p_safe[safest], points[safest]
                    chosen = point if positions is None else positions[safest]
        if self.on_no_safe == "least_unsafe":
            return chosen
        raise NoSafeCandidateError(point, float(least), self._required())

    def _candidate_sets(self, history, candidates, rng):
        """Yield candidates until some are safe: positions (None without a pool) and points."""
        is_ensemble = self._is_incremental()
        n = self.n_candidates or (_N_OF_ENSEMBLE if is_ensemble else _N_CANDIDATES)
        if candidates is None:
            points = rng.random((n, history.X.shape[1]))
            yield None, points
            # In many dimensions uniform points miss the safe set altogether.
            yield None, _between(history.observed.X, points, rng)
        elif not is_ensemble:
            positions = candidates.available
            yield positions, candidates.points[positions]
        else:
            while True:
                # Other rows at each query: of the same ones the one that leads on may be missing.
                positions = candidates.subsample(n, len(history.X) * _GOLDEN % 1)
                positions = positions[candidates.is_available(positions)]
                if len(positions):
                    yield positions, candidates.points[positions]
                if n >= len(candidates):
                    return
                n *= _WIDER

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
        return eligible[argbest(score, some)], p_safe

    def _required(self):
        """The probability of being safe that a candidate must have."""
        return required_probability(self.gamma, self.acquisition == "variance_reduction")

    def _score(self, points, p_safe, history, candidates, limits):
        if self.acquisition == "variance_reduction":
            if candidates is None:
                reference = sobol(_N_REFERENCE, points.shape[1])
            else:
                reference = candidates.reference(_N_REFERENCE)
            weights = possibly_safe(limits, reference)
            gain = variance_reduction(self._output(history), points, reference, weights)
            return log_gain(gain) if p_safe is None else penalized(gain, p_safe, self.gamma)
        std = predicted(self._output(history), points)[1]
        if self.acquisition == "min_unsafe":
            return min_unsafe(std, p_safe, self.gamma)
        return entropy(std)


class GPQuerier(_ModelQuerier):
    """Active learning with a Gaussian process (paper, algS-convention_al).

    Each query fits the surrogate to all observations and proposes the candidate
    with the highest acquisition score.

    Parameters
    ----------
    surrogate : {"exact", "sparse", "mixture", "ensemble", "averaged"}, estimator or kernel, \
            default="exact"
        :class:`~sklearn_asal.surrogates.ExactGP`,
        :class:`~sklearn_asal.surrogates.SparseGP`,
        :class:`~sklearn_asal.surrogates.MixtureGP`,
        :class:`~sklearn_asal.surrogates.EnsembleGP` (nothing is fitted: a query takes a
        millisecond), :class:`~sklearn_asal.surrogates.AveragedGP` (nothing is fitted, and
        ``y_loc``, ``y_scale`` and ``z_scale`` need not be stated), or an instance of one of these
        or of the like; a regressor of scikit-learn
        with ``predict(X, return_std=True)``; a GPyTorch kernel. It is cloned, never fitted itself.
    acquisition : {"entropy", "variance_reduction"}, default="entropy"
        The entropy of the predicted output, or by how much a measurement lowers the posterior
        variance on average over the bounds or the pool.
    n_candidates : int, default=None
        Number of random points compared when there is no pool; where nothing is fitted, of rows
        of a pool, too. None means 5,000, and 256 where nothing is fitted.
    bounds : None, pair of float, or array-like of shape (n_features, 2), default=None
        Lower and upper limit of each feature in the user's units; one pair holds
        for all. None means the unit cube. Proposals never leave the bounds.
    budget : int, default=None
        Number of queries of the campaign; with data passed to ``query``, the
        number left. The choice does not depend on it.
    random_state : None, int, RandomState or Generator, default=None
        Seeds the candidates, together with the number of observations.
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
    index_ : ndarray of int of shape (n,)
        Rows of the pool that were measured, as far as ``tell`` was given them; else -1.
    n_told_ : int
        Observations told since ``fit``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, when ``fit`` got a table with text for column names.

    See Also
    --------
    GPSafeQuerier : The same with a safety constraint.
    AmortizedQuerier : A pretrained policy in place of model and candidates.

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
    ) -> None:
        super().__init__(
            bounds=bounds, budget=budget, random_state=random_state, y_loc=y_loc, y_scale=y_scale
        )
        self.surrogate = surrogate
        self.acquisition = acquisition
        self.n_candidates = n_candidates


class GPSafeQuerier(SafeQuerierMixin, _ModelQuerier):
    """Safe active learning with Gaussian processes (paper, algS-convention_sal).

    Each query fits one surrogate to the outputs and one to the margin of each
    limit, and proposes the best candidate that is safe with probability
    ``1 - gamma`` or more (eq-safe_al); two acquisitions weigh risk in another way. The
    probability is the model's: it is as good as the model, and no guarantee.

    Parameters
    ----------
    surrogate : {"exact", "sparse", "mixture", "ensemble", "averaged"}, estimator or kernel, \
            default="exact"
        :class:`~sklearn_asal.surrogates.ExactGP`,
        :class:`~sklearn_asal.surrogates.SparseGP`,
        :class:`~sklearn_asal.surrogates.MixtureGP`,
        :class:`~sklearn_asal.surrogates.EnsembleGP` (nothing is fitted: a query takes a
        millisecond), :class:`~sklearn_asal.surrogates.AveragedGP` (nothing is fitted, and
        ``y_loc``, ``y_scale`` and ``z_scale`` need not be stated), or an instance of one of these
        or of the like; a regressor of scikit-learn
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
        of a pool, too. None means 5,000, and 256 where nothing is fitted. If none of them is safe,
        as many points between these and the observations are tried; of a pool, eight times as many
        rows.
    gamma : float, default=0.05
        Tolerated probability that a query is unsafe, see ``acquisition``. With
        "variance_reduction" nothing is ruled out from one sixth on.
    on_no_safe : {"raise", "least_unsafe"}, default="raise"
        If no candidate is safe enough, raise an error that names the least
        unsafe one, or propose that one.
    bounds : None, pair of float, or array-like of shape (n_features, 2), default=None
        Lower and upper limit of each feature in the user's units; one pair holds
        for all. None means the unit cube. Proposals never leave the bounds.
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

    See Also
    --------
    GPQuerier : The same without a safety constraint.
    AmortizedSafeQuerier : A pretrained policy in place of models and candidates.

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
    ) -> None:
        super().__init__(
            bounds=bounds, budget=budget, random_state=random_state, y_loc=y_loc, y_scale=y_scale
        )
        self.surrogate = surrogate
        self.acquisition = acquisition
        self.n_candidates = n_candidates
        self.gamma = gamma
        self.on_no_safe = on_no_safe
        self.safety_threshold = safety_threshold
        self.safe_when = safe_when
        self.z_scale = z_scale

    def _check_setup(self, n_features, budget=None):
        super()._check_setup(n_features, budget)
        check_scalar(self.gamma, "gamma", Real, min_val=0, max_val=1, include_boundaries="neither")
        if self.on_no_safe not in ("raise", "least_unsafe"):
            raise ValueError(
                f"on_no_safe must be 'raise' or 'least_unsafe', got {self.on_no_safe!r}."
            )

    def _raw_limits(self, margin, z):
        mean, std = np.transpose(margin, (1, 2, 0))
        scale = self.z_scale
        if is_auto(scale):
            scale = margin_scales(z, self.safety_threshold, self.safe_when)
        sign = np.where(np.asarray(self.safe_when) == "above", 1.0, -1.0)
        threshold = np.asarray(self.safety_threshold)
        boolean = boolean_limits(z)
        # Margins of -1 and 1 stand for False and True.
        threshold, sign = np.where(boolean, 0.5, threshold), np.where(boolean, 1.0, sign)
        scale = np.where(boolean, 0.5, scale)
        mean, std = threshold + sign * scale * mean, scale * std
        return (mean[:, 0], std[:, 0]) if z.ndim == 1 else (mean, std)


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
