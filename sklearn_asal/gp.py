"""Conventional (safe) active learning: refit a model at each step, search for the best point."""

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from .acquisition import (
    entropy,
    first_best,
    min_unsafe,
    refine,
    safe_probability,
    variance_reduction,
)
from .base import BaseQuerier, SafeQuerierMixin
from .exceptions import NoSafeCandidateError
from .space import (
    Box,
    as_rows,
    check_features,
    finite_array,
    is_auto,
    margin_scales,
    moments,
    observations,
    safety_margins,
)
from .surrogates import SURROGATES
from .surrogates.threads import one_thread

# Points whose average variance "variance_reduction" lowers.
_N_REFERENCE = 200


@dataclass(frozen=True, eq=False)
class Report:
    """What the models expect of measurements at some points, in the user's units.

    Attributes
    ----------
    y_mean, y_std : ndarray of shape (n,)
        Predicted output and its standard deviation, noise included.
    p_safe : ndarray of shape (n,) or None
        Probability that a measurement keeps all limits. This and the next are None
        for a querier without limits.
    z_mean, z_std : ndarray of shape (n,) or (n, n_limits), or None
        Predicted safety measurements and their standard deviations, noise included.
    """

    y_mean: np.ndarray
    y_std: np.ndarray
    p_safe: np.ndarray | None = None
    z_mean: np.ndarray | None = None
    z_std: np.ndarray | None = None


class _GPQuerier(BaseQuerier):
    """What both kinds share."""

    # The priors on the hyperparameters are for values near unit scale.
    _needs_unit_scale = True
    _acquisitions = ("entropy", "variance_reduction")

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
        return_report=False,
    ):
        """Propose where to measure next. Never changes the querier.

        Like the ``query`` of every querier, with one more parameter. All rows of a
        pool are compared. The choice does not depend on the budget, but a spent
        one raises.

        Parameters
        ----------
        X, y, z, budget, pool, n_queries, return_indices
            See :meth:`BaseQuerier.query`.
        return_report : bool, default=False
            Return what the models expect of the proposals, given the observations
            (see :meth:`assess`).

        Returns
        -------
        points : ndarray of shape (n_queries, n_features)
            In the user's units and inside the bounds.
        indices : ndarray of int of shape (n_queries,)
            Positions of the points in the pool; only with ``return_indices``.
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

    def assess(self, x, X=None, y=None, z=None):
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
        if X is None and y is None and z is None:
            check_is_fitted(
                self,
                msg="%(name)s has no data yet: call fit(X, y), or pass data to assess(x, X, y).",
            )
            data = self.X_, self.y_, self.z_
        else:
            X_, y_, z_ = observations(X, y, z)
            data = X_, y_, self._measurements(y_, z_)
        n_features = data[0].shape[1]
        self._check_setup(n_features)
        x = finite_array(as_rows(x, n_features), "x")
        check_features(self, x, x.shape[1], "x", n_features)
        points = Box(self.bounds, n_features).to_unit(x)
        with one_thread():
            # Later histories hold proposals as well; this one holds measurements only.
            X_, y_, margins = _in_order(*self._at_unit_scale(*data)[1:])
            mean, std = self._model(X_, y_).predict(points)
            limits = self._limits(X_, margins)
            margin = [model.predict(points) for model in limits]
            p_safe = safe_probability(limits, points) if limits else None
        loc = moments(data[1])[0] if is_auto(self.y_loc) else float(self.y_loc)
        scale = moments(data[1])[1] if is_auto(self.y_scale) else float(self.y_scale)
        return Report(loc + scale * mean, scale * std, p_safe, *self._raw_limits(margin, data[2]))

    def _raw_limits(self, margin, z):
        return None, None

    def _check_setup(self, n_features):
        surrogate, names = self.surrogate, ", ".join(map(repr, SURROGATES))
        if isinstance(surrogate, type):
            raise ValueError(f"surrogate must be an instance: {surrogate.__name__}(), or {names}.")
        known = surrogate in SURROGATES if isinstance(surrogate, str) else hasattr(surrogate, "fit")
        if not known:
            raise ValueError(
                f"surrogate must be one of {names} or an estimator whose predict returns mean and "
                f"standard deviation, got {surrogate!r}."
            )
        if self.acquisition not in self._acquisitions:
            raise ValueError(
                f"acquisition must be one of {', '.join(map(repr, self._acquisitions))}, got "
                f"{self.acquisition!r}."
            )
        check_scalar(self.candidates, "candidates", Integral, min_val=1)
        check_scalar(self.refine, "refine", Integral, min_val=0)

    def _model(self, X, values):
        """A fitted surrogate; the same for the same data, whatever came before."""
        surrogate = self.surrogate
        model = SURROGATES[surrogate]() if isinstance(surrogate, str) else clone(surrogate)
        return model.fit(X, values)

    def _limits(self, X, margins):
        return [] if margins is None else [self._model(X, margin) for margin in margins.T]

    def _propose(self, X, y, margin, left, rng, candidates):
        if candidates is not None and candidates.n_left == 0:
            return np.zeros(X.shape[1])  # anything: the base finds no row for it and says so
        with one_thread():
            X, y, margins = _in_order(X, y, margin)
            if candidates is None:
                points = rng.random((self.candidates, X.shape[1]))
            else:
                points = candidates.points
            limits = self._limits(X, margins)
            if not limits:
                return self._best(X, y, points, rng, candidates is None)
            p_safe = safe_probability(limits, points)
            if self.acquisition == "min_unsafe":
                return self._best(X, y, points, rng, candidates is None, limits, p_safe)
            required = 1.0 - self.gamma
            if candidates is None and (p_safe < required).all():
                # In many dimensions uniform points miss the safe set altogether.
                points = _between(X, points, rng)
                p_safe = safe_probability(limits, points)
            safe = p_safe >= required
            if safe.any():
                return self._best(X, y, points[safe], rng, candidates is None, limits)
            least = p_safe.argmax()
            if self.on_no_safe == "least_unsafe":
                return points[least]
            raise NoSafeCandidateError(points[least], float(p_safe[least]), required)

    def _best(self, X, y, points, rng, free, limits=(), p_safe=None):
        """The best of the points that may be proposed, and refined where any point may."""
        if self.acquisition == "random":
            return points[rng.integers(len(points))]
        model = self._model(X, y)
        if self.acquisition == "variance_reduction":
            reference = points[rng.integers(len(points), size=_N_REFERENCE)]
            return points[first_best(variance_reduction(model, points, reference))]
        std = model.predict(points)[1]
        score = entropy(std) if p_safe is None else min_unsafe(std, p_safe, self.gamma)
        if not (free and self.refine and hasattr(model, "predict_gradient")):
            return points[first_best(score)]
        starts = points[np.argsort(-score, kind="stable")[: self.refine]]
        gamma = self.gamma if limits else 0.0
        return refine(model, limits, starts, gamma, soft=p_safe is not None)


def _in_order(X, y, margins):
    """Sort observations: rounding depends on their order, and ties among points on rounding."""
    columns = () if margins is None else margins.T
    order = np.lexsort((*columns, y, *X.T))
    return X[order], y[order], None if margins is None else margins[order]


def _between(X, points, rng):
    """Random points on the way from an observation to each of the points."""
    origin = X[rng.integers(len(X), size=len(points))].clip(0.0, 1.0)
    return origin + rng.random((len(points), 1)) * (points - origin)


class GPQuerier(_GPQuerier):
    """Active learning with a Gaussian process (paper, algS-convention_al).

    Each query refits the surrogate to all observations and proposes the candidate
    with the highest acquisition score.

    Parameters
    ----------
    surrogate : {"exact", "sparse", "mixture"} or estimator, default="exact"
        :class:`~sklearn_asal.surrogates.ExactGP`,
        :class:`~sklearn_asal.surrogates.SparseGP`,
        :class:`~sklearn_asal.surrogates.MixtureGP`, or an instance of one of
        these or of the like; it is cloned, never fitted itself.
    acquisition : {"entropy", "variance_reduction"}, default="entropy"
        The entropy of the predicted output, or the variance that a measurement
        takes away on average over 200 random candidates.
    candidates : int, default=5000
        Number of random points compared when there is no pool.
    refine : int, default=0
        Without a pool, climb from this many of the best candidates by their
        gradient. Makes little difference in two dimensions.
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
    n_told_ : int
        Observations told since ``fit``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, when ``fit`` got a DataFrame with string column names.

    See Also
    --------
    GPSafeQuerier : The same with a safety constraint.
    AmortizedQuerier : A pretrained policy in place of model and search.

    References
    ----------
    "Amortized Safe Active Learning for Real-Time Data Acquisition: Pretrained
    Neural Policies from Simulated Nonparametric Functions".

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
        surrogate="exact",
        acquisition="entropy",
        candidates=5000,
        refine=0,
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
        self.surrogate = surrogate
        self.acquisition = acquisition
        self.candidates = candidates
        self.refine = refine


class GPSafeQuerier(SafeQuerierMixin, _GPQuerier):
    """Safe active learning with Gaussian processes (paper, algS-convention_sal).

    Each query refits one surrogate to the outputs and one to the margin of each
    limit, and proposes the best candidate that is safe with probability
    ``1 - gamma`` or more (eq-safe_al). The probability is the model's: it is as
    good as the model, and no guarantee.

    Parameters
    ----------
    surrogate : {"exact", "sparse", "mixture"} or estimator, default="exact"
        :class:`~sklearn_asal.surrogates.ExactGP`,
        :class:`~sklearn_asal.surrogates.SparseGP`,
        :class:`~sklearn_asal.surrogates.MixtureGP`, or an instance of one of
        these or of the like; it is cloned, never fitted itself.
    acquisition : {"entropy", "variance_reduction", "random", "min_unsafe"}, default="entropy"
        What to choose among safe candidates by: the entropy of the predicted
        output; the variance that a measurement takes away on average over 200
        random safe candidates; nothing (the paper's Safe Random). "min_unsafe"
        weighs information and safety for all candidates (eq-acq_minunsafe);
        ``gamma`` is then the probability below which safer is no better, and
        nothing is ruled out.
    candidates : int, default=5000
        Number of random points compared when there is no pool. If none of them is
        safe, as many points between these and the observations are tried.
    refine : int, default=0
        Without a pool, climb from this many of the best candidates by their
        gradient, inside the safe set. Makes little difference in two dimensions,
        and takes proposals to the very edge of the safe set.
    gamma : float, default=0.05
        Tolerated probability that a query is unsafe.
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
        Safe means ``z >= safety_threshold``, or ``<=`` for "below".
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
    n_told_ : int
        Observations told since ``fit``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, when ``fit`` got a DataFrame with string column names.

    See Also
    --------
    GPQuerier : The same without a safety constraint.
    AmortizedSafeQuerier : A pretrained policy in place of models and search.

    References
    ----------
    "Amortized Safe Active Learning for Real-Time Data Acquisition: Pretrained
    Neural Policies from Simulated Nonparametric Functions".

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
        surrogate="exact",
        acquisition="entropy",
        candidates=5000,
        refine=0,
        gamma=0.05,
        on_no_safe="raise",
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
        self.surrogate = surrogate
        self.acquisition = acquisition
        self.candidates = candidates
        self.refine = refine
        self.gamma = gamma
        self.on_no_safe = on_no_safe
        self.safety_threshold = safety_threshold
        self.safe_when = safe_when
        self.z_scale = z_scale

    def _check_setup(self, n_features):
        super()._check_setup(n_features)
        check_scalar(self.gamma, "gamma", Real, min_val=0, max_val=1, include_boundaries="neither")
        if self.on_no_safe not in ("raise", "least_unsafe"):
            raise ValueError(
                f"on_no_safe must be 'raise' or 'least_unsafe', got {self.on_no_safe!r}."
            )

    def _margin(self, z):
        return safety_margins(z, self.safety_threshold, self.safe_when, self.z_scale)

    def _raw_limits(self, margin, z):
        mean, std = np.transpose(margin, (1, 2, 0))
        scale = self.z_scale
        if is_auto(scale):
            scale = margin_scales(z, self.safety_threshold, self.safe_when)
        sign = np.where(np.asarray(self.safe_when) == "above", 1.0, -1.0)
        mean = np.asarray(self.safety_threshold) + sign * scale * mean
        std = np.asarray(scale) * std
        return (mean[:, 0], std[:, 0]) if z.ndim == 1 else (mean, std)
