"""Conventional (safe) active learning with Gaussian processes, refitted at each step."""

from numbers import Real

import numpy as np
from sklearn.utils import check_scalar

from .base import SafeQuerierMixin
from .search import ModelSearch
from .space import is_auto, margin_scales, safety_margins


class GPQuerier(ModelSearch):
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


class GPSafeQuerier(SafeQuerierMixin, ModelSearch):
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

    def _check_setup(self, n_features, budget=None):
        super()._check_setup(n_features, budget)
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
