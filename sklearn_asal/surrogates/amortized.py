"""Gaussian processes with hyperparameters from a pretrained network, and scales integrated out."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, stdtr
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._typing import FloatArray, StrPath
from ..settings import own_settings
from ..validation import whole
from .evidence import Probed, features, rank_features, unit
from .factors import InverseFactors, rbf_of_members
from .validation import check_data, check_rows

# The evidence is known to the network already: its weights count by this power.
_POWER = 0.5
# Sets of hyperparameters: many while they are cheap and little is known, but at least the first
# number and at most the second, or _SETS_OF_MANY // n of n observations.
_SETS, _SETS_OF_MANY = (8, 16), 400
# Members of less than this part of the largest weight are left out.
_LITTLE = 0.02
# With so many degrees of freedom or more, an approximation of Student's t will do.
_EXACT = 10
# Shape of the inverse gamma prior on the variance of margins.
_SHAPE = 1.0
# A spread of so many units in the last place comes from rounding.
_ROUNDING, _DIGITS_OF_WEIGHTS = 64 * np.finfo(np.float64).eps, 7
# Hyperparameters are inferred from at most so many observations. Of n observations, more than
# that, two members are kept, or _MOST // n.
_MANY, _FEW, _MOST = 96, 2, 400
# Hyperparameters stay within these: beyond, lengthscales change nothing, and smaller noises are
# lost in single precision.
_LENGTHSCALES, _NOISES = (0.03, 10.0), (0.01, 0.7)
# Digits of an input by which it is another one.
_SAME = 9
# Digits of an input that tell it from others, and a factor that scatters them.
_DIGITS, _SCATTER = 1e6, 0.5 * (5**0.5 - 1)
# What is quicker worked out than shipped.
_WORKED_OUT = "probed", "_at", "_known", "_reference", "_left_out"


class AmortizedGP(BaseEstimator):
    """Gaussian processes whose hyperparameters come from a pretrained network (paper, AGP).

    The network looks at all observations, of any number of features, and gives the posterior of
    a lengthscale for each feature and of the noise. A few sets of hyperparameters stand for this
    posterior, weighted by their evidence; predictions are averaged over them. The scale and the
    mean of the values are integrated out, so that predictions are Student t and units are of no
    consequence. Nothing is stated or fitted.

    Parameters
    ----------
    policy : str or path-like, default="any"
        Name or file of the network.
    n_sets : int, default=None
        Sets of hyperparameters. None means 16 for up to 25 observations, and 8 from 50 on.
    zero_mean : bool, default=False
        Whether the mean is zero, with an inverse gamma prior on the variance, as queriers set it
        for safety margins: the limit is the zero, and far from data the probability of being
        safe returns to one half. Otherwise a constant mean has a flat prior, and the variance a
        prior of ``1 / variance``.

    Attributes
    ----------
    X_ : ndarray of shape (n, n_features)
        Observed inputs. The same value at the same input counts once: a reading that is repeated
        says nothing about noise.
    which_ : ndarray of int of shape (n_observations,)
        Which row of ``X_`` each observation is.
    lengthscales_ : ndarray of shape (n_kept, n_features)
    noises_ : ndarray of shape (n_kept,)
        Standard deviations in units of the signal's.
    member_weights_ : ndarray of shape (n_kept,)
        Probabilities of these hyperparameters.
    dof_ : float
        Degrees of freedom of the predictions.

    See Also
    --------
    EnsembleGP : With stated scales and typical lengthscales.

    References
    ----------
    Bitzer, Meister, Zimmer (2023). "Amortized Inference for Gaussian Process Hyperparameters of
    Structured Kernels".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_asal.surrogates import AmortizedGP
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> mean, std = AmortizedGP().fit(X, 1e6 + 300 * np.sin(6 * X[:, 0])).predict([[0.5]])
    >>> (mean - 1e6).round(-1)
    array([40.])
    """

    #: Values need no particular scale.
    scale_free = True
    #: What the inputs alone say; models of the same inputs may share it.
    probed: Probed | None = None

    _at: tuple[FloatArray, FloatArray] | None
    _reference: tuple[FloatArray, FloatArray] | None
    _factors: Any
    _known: tuple[Any, ...] | None
    _left_out: tuple[FloatArray, FloatArray] | None

    def __init__(
        self, policy: StrPath = "any", n_sets: int | None = None, zero_mean: bool = False
    ) -> None:
        self.policy = policy
        self.n_sets = n_sets
        self.zero_mean = zero_mean

    @own_settings()
    def fit(self, X: ArrayLike, y: ArrayLike) -> "AmortizedGP":
        """Infer hyperparameters, and condition on the data.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            In the unit cube.
        y : array-like of shape (n,)
            In any units.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Invalid data or parameters.
        PolicyNotFoundError, PolicyFileError
            There is no such network.
        """
        self.probed = self._factors = self._known = None
        return self._set(*check_data(X, y))

    @own_settings()
    def update(self, X: ArrayLike, y: ArrayLike) -> "AmortizedGP":
        """As :meth:`fit`, but quicker where the data begin with those of the call before.

        Parameters
        ----------
        X, y
            See :meth:`fit`.

        Returns
        -------
        self
        """
        if not hasattr(self, "X_"):
            self._factors = self._known = None
            return self._set(*check_data(X, y))
        now: tuple[Any, ...] = X, y, *self._settings()
        if all(map(np.array_equal, self._made_of, now)):
            if self._expected is not self._factors:  # nothing is pending any more
                self._expect(self._factors)
            return self
        return self._set(*check_data(X, y))

    @own_settings()
    def condition(self, X: FloatArray, y: ArrayLike | None) -> "AmortizedGP":
        """Points that are pending lower the variances; their outcomes are not made use of.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Begins with the observed inputs.
        y : ignored

        Returns
        -------
        self
        """
        check_is_fitted(self, "X_")
        pending = np.asarray(X, dtype=np.float64)[len(self._made_of[0]) :]
        of_all = self._factors.of(np.concatenate([self.X_, pending]))
        self._expect(of_all if len(pending) else self._factors)
        return self

    @own_settings()
    def predict_members(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Location and scale of a measurement for each member, noise included.

        Parameters
        ----------
        X : array-like of shape (m, n_features)

        Returns
        -------
        locations, scales : ndarray of shape (n_kept, m)
            Of Student t distributions with ``dof_`` degrees of freedom.
        """
        check_is_fitted(self, "X_")
        X = check_rows(self, X, "X", self.X_.shape[1])
        V = self._known_of(X, slice(None))
        # What is pending, at the end, lowers the variances alone.
        locations = (self._alpha[:, None] @ V[:, : len(self.X_)])[:, 0]
        locations = self._centre + self._size * (self._location[:, None] + locations)
        variances = self._left(V[:, :-1]) + np.square(V[:, -1])
        return locations, self._scale[:, None] * np.sqrt(variances)

    def predict(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of a measurement by the mixture, noise included.

        Parameters
        ----------
        X : array-like of shape (m, n_features)

        Returns
        -------
        mean, std : ndarray of shape (m,)
            With two degrees of freedom or fewer, for which there is no variance, the standard
            deviation is that of three.
        """
        locations, scales = self.predict_members(X)
        dof = max(self.dof_, 3.0)
        return self._mixed(locations, np.sqrt(dof / (dof - 2)) * scales)

    def location_and_scale(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Location and scale of a measurement by the mixture, noise included.

        As :meth:`predict`, but with the scales of Student t distributions, whose quantiles have
        ``dof_`` degrees of freedom, in place of standard deviations.

        Parameters
        ----------
        X : array-like of shape (m, n_features)

        Returns
        -------
        location, scale : ndarray of shape (m,)
        """
        return self._mixed(*self.predict_members(X))

    @own_settings()
    def leave_one_out(self) -> FloatArray:
        """Standardized residual of each observation by the model of all the others.

        Predicted minus measured, over the predictive scale (see :meth:`location_and_scale`).
        Hyperparameters and their weights are kept, so that the inverse Cholesky factors give it in
        closed form (Rasmussen and Williams, 2006, section 5.4.2).

        Returns
        -------
        ndarray of shape (n,)
            Positive where too much was predicted.

        Raises
        ------
        ValueError
            Fewer than two observations with ``zero_mean``, or fewer than three without.
        """
        residual, scale = self._mixed(*self._without_each())
        return residual / scale

    @own_settings()
    def leave_one_out_prediction(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of each observation by the model of all the others.

        Returns
        -------
        mean, std : ndarray of shape (n,)
            Noise included; see :meth:`predict`.

        Raises
        ------
        ValueError
            See :meth:`leave_one_out`.
        """
        residuals, scales = self._without_each()
        dof = max(self.dof_ - 1, 3.0)
        return self._mixed(residuals + self._values, np.sqrt(dof / (dof - 2)) * scales)

    @own_settings()
    def leave_one_out_probability(self) -> FloatArray:
        """Probability by the model of all others that each measurement is positive.

        Returns
        -------
        ndarray of shape (n,)

        Raises
        ------
        ValueError
            See :meth:`leave_one_out`.
        """
        residuals, scales = self._without_each()
        return self._probability(self.dof_ - 1, (residuals + self._values) / scales)

    @own_settings()
    def probability_of_positive(self, X: FloatArray) -> FloatArray:
        """Probability that a measurement is positive; of a safety margin, that it is safe.

        Parameters
        ----------
        X : array-like of shape (m, n_features)

        Returns
        -------
        ndarray of shape (m,)
        """
        locations, scales = self.predict_members(X)
        return self._probability(max(self.dof_, 1.0), locations / scales)

    @own_settings()
    def probability_at(self, reference: FloatArray) -> FloatArray:
        """As :meth:`probability_of_positive`, of a reference set.

        Parameters
        ----------
        reference : ndarray of shape (r, n_features)
            Of the one of the call before nothing is worked out anew.

        Returns
        -------
        ndarray of shape (r,)
        """
        check_is_fitted(self, "X_")
        if self._at is None or self._at[0] is not reference:
            self._at = reference, self.probability_of_positive(reference)
        return self._at[1]

    @own_settings()
    def variance_reduction(
        self,
        X: FloatArray,
        reference: FloatArray,
        weights: FloatArray,
        n_members: int | None = None,
    ) -> FloatArray:
        """How much measurements lower the posterior variance of a reference set.

        Averaged over the members (Cohn, 1996; Seo et al., 2000).

        Parameters
        ----------
        X : ndarray of shape (m, n_features)
            Where to measure.
        reference : ndarray of shape (r, n_features)
        weights : ndarray of shape (r,)
            What each of its points counts.
        n_members : int, optional
            Of so many most probable members only.

        Returns
        -------
        ndarray of shape (m,)
            Weighted sums of reductions.
        """
        check_is_fitted(self, "X_")
        members = np.argsort(-self.member_weights_, kind="stable")[:n_members]
        counts = np.flatnonzero(weights > 0)
        at_reference = self.know(reference)[members].take(counts, axis=2)
        at_X = self._known_of(X, members)
        variances = self._left(at_X[:, :-1], members) + np.square(at_X[:, -1])
        at_X[:, -1] *= -1  # the unknown mean adds to covariances, observations take away
        covariance = rbf_of_members(X, reference[counts], self.lengthscales_[members])
        covariance -= at_X.transpose(0, 2, 1) @ at_reference
        np.square(covariance, out=covariance)
        reduction = covariance @ weights[counts].astype(np.float32) / variances
        return (self.member_weights_ * self._scale**2)[members] @ reduction

    @own_settings()
    def know(self, reference: FloatArray) -> FloatArray:
        """Work out ahead what :meth:`variance_reduction` needs of a reference set.

        Parameters
        ----------
        reference : ndarray of shape (r, n_features)
            Of the one of the call before nothing is worked out anew.

        Returns
        -------
        ndarray of float32 of shape (n_kept, n + 1, r)
            Whitened covariances with the inputs, and with the mean.
        """
        if self._reference is None or self._reference[0] is not reference:
            self._reference = reference, self._known_of(reference, slice(None))
        return self._reference[1]

    def __getstate__(self):
        return super().__getstate__() | dict.fromkeys(_WORKED_OUT)

    def _probability(self, dof, t):
        """Of the mixture, from standardized locations of each member."""
        return np.minimum(self.member_weights_ @ _student(dof, t), 1.0)  # but for rounding

    def _mixed(self, locations, scales):
        """Location and scale of the mixture of some members' distributions."""
        weights = self.member_weights_
        location = weights @ locations
        return location, np.sqrt(weights @ (scales**2 + (locations - location) ** 2))

    def _without_each(self):
        """Residuals and scales of each member, ``(n_kept, n)``, with one less degree of freedom."""
        check_is_fitted(self, "X_")
        if self._left_out is None:
            least = 2 if self.zero_mean else 3
            if len(self.X_) < least:
                raise ValueError(
                    f"to leave one out needs {least} observations or more, and there are "
                    f"{len(self.X_)}."
                )
            inverse, whitened, squares = self._factors.inverse, self._whitened, self._squares
            weighted = np.einsum("pij,pi->pj", inverse, whitened)
            precision = np.einsum("pij,pij->pj", inverse, inverse)
            if not self.zero_mean:
                ones = inverse.sum(axis=2)
                total = np.einsum("pi,pi->p", ones, ones)[:, None]
                precision -= np.einsum("pij,pi->pj", inverse, ones) ** 2 / total
            # All but nothing is left where the others are zero.
            left = squares[:, None] - weighted**2 / precision
            left = np.maximum(left, _ROUNDING * squares[:, None])
            scales = np.sqrt(left / ((self.dof_ - 1) * precision))
            self._left_out = -self._size * weighted / precision, self._size * scales
        return self._left_out

    def _settings(self) -> tuple[Any, ...]:
        return self.policy, self.n_sets, self.zero_mean

    def _set(self, X, y):
        if self.n_sets is not None:
            whole(self.n_sets, "n_sets", min_val=1)
        # Copies, for what the user passed may be changed in place.
        self._made_of = X.copy(), y.copy(), *self._settings()
        distinct, self.which_ = _distinct(X, y)
        X, y = X[distinct], y[distinct]
        self.X_ = X
        if np.ptp(y) <= _ROUNDING * np.abs(y).max():
            y = np.full(len(y), np.median(y))
        few = _some(X)
        if len(few) == len(X):
            factors, weights, facts = self._inferred(X, y)
        else:
            known = self._known
            if known is None or not all(map(np.array_equal, known[:2], (X[few], y[few]))):
                known = self._known = X[few], y[few], *self._inferred(X[few], y[few])[:2]
            # With more of them less is uncertain, and each takes longer.
            weights, number = known[3], max(_FEW, _MOST // len(X))
            largest = np.sort(np.argsort(-weights, kind="stable")[:number])
            weights, few = weights[largest], known[2].subset(largest)
            factors, own = self._factors, (few.lengthscales, few.noises, few.which)
            is_known = factors is not None and factors.has(*own)
            factors = factors.of(X) if is_known else InverseFactors(X, *own)
            _, *facts = self._weigh(factors, y)
        alpha, self._location, squares = facts
        self._alpha, self._at = alpha.astype(np.float32), None
        self._whitened, self._squares, self._values, self._left_out = alpha, squares, y, None
        self.member_weights_ = weights / weights.sum()
        self.lengthscales_, self.noises_ = factors.lengthscales, factors.noises
        self._factors, self._noise = factors, (self.noises_**2).astype(np.float32)
        self._scale = self._size * np.sqrt(squares / max(self.dof_, 1.0))
        self._expect(factors)
        return self

    def _inferred(self, X, y):
        """Factors, weights, and what is weighed, of the members that are kept."""
        lengthscales, noises = self._infer(X, y)
        factors = InverseFactors(X, lengthscales, noises, np.arange(len(noises)))
        weights, *facts = self._weigh(factors, y)
        kept = np.flatnonzero(weights > _LITTLE * weights.max())
        return factors.subset(kept), weights[kept], [part[kept] for part in facts]

    def _expect(self, factors):
        """Count on measurements at the inputs of some factors."""
        self._expected, self._inverse = factors, factors.inverse.astype(np.float32)
        self._reference = None
        self._ones = self._inverse.sum(axis=2)

    def _infer(self, X, y):
        """Hyperparameters that stand for their posterior."""
        from ..policies.registry import load_inference

        self.probed = Probed(X) if self.probed is None else self.probed.of(X)
        known = features(self.probed, y, self.zero_mean)
        posterior = load_inference(self.policy).posterior(*known)
        is_tied = len(np.unique(posterior.expected)) < X.shape[1]
        ties = rank_features(X, y) if is_tied else None
        n_sets = self.n_sets or min(max(_SETS_OF_MANY // len(X), _SETS[0]), _SETS[1])
        log_lengthscales, log_noises = posterior.spread(n_sets, ties)
        lengthscales = unit(X.shape[1]) * np.exp(log_lengthscales)
        return lengthscales.clip(*_LENGTHSCALES), np.exp(log_noises).clip(*_NOISES)

    def _weigh(self, factors, y):
        """Weight, whitened residuals, mean and sum of squares of each member."""
        n, constant = len(y), not np.ptp(y)
        # Of values far from zero nothing is to be lost.
        self._centre = 0.0 if self.zero_mean else y.mean()
        self._size = np.abs(y - self._centre).max() or 1.0
        whitened = factors.inverse @ ((y - self._centre) / self._size)
        log_evidence, location = factors.log_determinant, np.zeros(len(whitened))
        if self.zero_mean:
            self.dof_ = n + 2 * _SHAPE
        else:
            self.dof_ = n - 1.0
            ones = factors.inverse.sum(axis=2)
            precision = np.einsum("pi,pi->p", ones, ones)
            location = np.einsum("pi,pi->p", ones, whitened) / precision
            log_evidence = log_evidence - 0.5 * np.log(precision)
            whitened = whitened - location[:, None] * ones
        squares = np.einsum("pi,pi->p", whitened, whitened)
        if constant and not (self.zero_mean and y.any()):
            whitened, squares = np.zeros_like(whitened), np.ones_like(squares)
        log_evidence = log_evidence - 0.5 * self.dof_ * np.log(squares)
        weights = np.exp(_POWER * (log_evidence - log_evidence.max()))
        # Of replicates all members think the same but for rounding.
        return weights.round(_DIGITS_OF_WEIGHTS), whitened, location, squares

    def _known_of(self, X, members):
        """Whitened covariances with the inputs and, last, what is left to the unknown mean."""
        lengthscales, n = self.lengthscales_[members], len(self._expected.X)
        V = np.zeros((len(lengthscales), n + 1, len(X)), np.float32)
        kernels = rbf_of_members(self._expected.X, X, lengthscales)
        np.matmul(self._inverse[members], kernels, out=V[:, :n])
        if not self.zero_mean:
            ones = self._ones[members]
            precision = np.sqrt(np.square(ones).sum(axis=1))[:, None]
            V[:, n] = (1 - (ones[:, None] @ V[:, :n])[:, 0]) / precision
        return V

    def _left(self, V, members=slice(None)):
        """Variances of measurements in units of the signal's, were the mean known."""
        # Rounding may take away a little more than there is.
        known = np.einsum("pnm,pnm->pm", V, V)
        return np.maximum(1 - known, 0) + self._noise[members, None]


def _student(dof, t):
    """Distribution function of Student's t, within 1e-4 where it takes long (Wallace, 1959)."""
    if dof < _EXACT:
        return stdtr(dof, t)
    z = (8 * dof + 1) / (8 * dof + 3) * np.sqrt(dof * np.log1p(np.square(t) / dof))
    return ndtr(np.copysign(z, t))


def _distinct(X, y):
    """Rows without those that are the same as one before, in input and value.

    Returns
    -------
    first : ndarray of int of shape (n_distinct,)
        Positions of these rows.
    which : ndarray of int of shape (n,)
        Which of them each row is the same as.
    """
    if len(np.unique(y)) == len(y):  # the usual, quickly
        return np.arange(len(y)), np.arange(len(y))
    rows = np.column_stack([X.round(_SAME), y])
    _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return first[order], np.argsort(order)[which.ravel()]


def _some(X):
    """Rows from which hyperparameters are inferred: all, or some that mostly stay the same.

    Neither the order of rows nor that of features has a part in the choice.
    """
    if len(X) <= _MANY:
        return np.arange(len(X))
    key = np.round(np.sort(X, axis=1).sum(axis=1) * _DIGITS) * _SCATTER % 1
    return np.sort(np.lexsort((*np.sort(X, axis=1).T, key))[:_MANY])
