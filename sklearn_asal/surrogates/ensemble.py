"""Gaussian processes with fixed hyperparameters, weighted by their evidence: nothing is fitted."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._typing import FloatArray
from ..settings import own_settings
from .factors import InverseFactors, ReferenceSet, rbf_single
from .validation import check_data, check_rows

# Lengthscales are the typical one times these, each twice the one before.
_FACTORS = (0.5, 1.0, 2.0)
# Noise standard deviations at unit scale.
_NOISES = (0.03, 0.1, 0.3)
# The lengthscale of the paper's prior on functions of two inputs.
_LENGTHSCALE = 0.3
# Values beyond this are not at unit scale, and would let the evidence overflow.
_LARGEST = 10.0
# Members with less than this share of the weight change no decision among a few points,
_NEGLIGIBLE = 1e-9
# and with less than this part of the largest weight none among many.
_LITTLE = 1e-3
# More points than these are looked at in single precision, which is twice as fast.
_MANY = 64


class EnsembleGP(BaseEstimator):
    """Gaussian processes with an RBF kernel, weighted by their marginal likelihoods.

    Each member has zero mean, unit signal variance, a lengthscale that is half, once or twice the
    typical one, and one of three noises. Bayes' rule weighs them; no hyperparameter is searched
    for. With each observation the inverse Cholesky factors grow by a row, so that a query costs
    little.

    Parameters
    ----------
    lengthscale : float or array-like of shape (n_features,), default=None
        The typical one, in the unit cube. None means ``0.3 * sqrt(n_features / 2)``.
    noise_std : tuple of float, default=(0.03, 0.1, 0.3)
        Noise standard deviations at unit scale.

    Attributes
    ----------
    X_ : ndarray of shape (n, n_features)
        Observed inputs.
    member_weights_ : ndarray of shape (n_kept,)
        Probabilities of the members that are not negligible.

    See Also
    --------
    ExactGP : One process with fitted hyperparameters.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_asal.surrogates import EnsembleGP
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> mean, std = EnsembleGP().fit(X, np.sin(6 * X[:, 0])).predict([[0.5]])
    >>> mean.round(2)
    array([0.14])
    """

    def __init__(
        self, lengthscale: ArrayLike | None = None, noise_std: float | Sequence[float] = _NOISES
    ) -> None:
        self.lengthscale = lengthscale
        self.noise_std = noise_std

    @own_settings()
    def fit(self, X: ArrayLike, y: ArrayLike) -> "EnsembleGP":
        """Condition all members on the data, and weigh them.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            In the unit cube.
        y : array-like of shape (n,)
            At unit scale.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Invalid data or parameters.
        """
        X, y = check_data(X, y)
        return self._set(y, InverseFactors(X, *self._hyperparameters(X.shape[1])))

    @own_settings()
    def update(self, X: ArrayLike, y: ArrayLike) -> "EnsembleGP":
        """As :meth:`fit`, but quick where the data begin with those of the call before.

        Parameters
        ----------
        X, y
            See :meth:`fit`.

        Returns
        -------
        self
        """
        now: tuple[Any, ...] = X, y, *self._settings()
        known = getattr(self, "_factors", None)
        if known is not None and all(map(np.array_equal, self._made_of, now)):
            self._expected = known  # nothing is pending any more
            return self
        X, y = check_data(X, y)
        if known is None or not known.has(*self._hyperparameters(X.shape[1])):
            return self.fit(X, y)
        self._set(y, known.of(X))
        if self._reference is not None:  # the next question is most likely about it again
            self._at_reference(self._reference.points, self._factors)
        return self

    @own_settings()
    def condition(self, X: FloatArray, y: ArrayLike | None) -> "EnsembleGP":
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
        self._expected = self._factors
        if len(X) > len(self.X_):
            self._expected = self._factors.of(np.asarray(X, dtype=np.float64))
        return self

    def predict(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of a measurement by the mixture, noise included.

        Parameters
        ----------
        X : array-like of shape (m, n_features)

        Returns
        -------
        mean, std : ndarray of shape (m,)
        """
        means, stds = self.predict_members(X)
        weights = self.member_weights_
        mean = weights @ means
        # What the members do not know, and what they disagree on.
        return mean, np.sqrt(weights @ (stds**2 + (means - mean) ** 2))

    @own_settings()
    def predict_members(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of a measurement for each member, noise included.

        Parameters
        ----------
        X : array-like of shape (m, n_features)

        Returns
        -------
        means, stds : ndarray of shape (n_kept, m)
            Weighted by ``member_weights_``.
        """
        check_is_fitted(self, "X_")
        X = check_rows(self, X, "X", self.X_.shape[1])
        V = self._whitened(X, np.arange(len(self._kept)), np.float64)
        means = self._means(V, slice(None))
        return means, np.sqrt(self._variances(V) + self._noise[:, None])

    @own_settings()
    def probability_and_std(
        self, X: FloatArray, pending: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Both for a choice among few points: how safe, and how uncertain they are.

        Parameters
        ----------
        X : ndarray of shape (m, n_features)
        pending : ndarray of shape (n_pending, n_features)
            Inputs that will be measured. They make the function there less uncertain, but are no
            evidence of safety.

        Returns
        -------
        probability : ndarray of shape (m,)
            That a measurement is positive.
        std : ndarray of shape (m,)
            Of a measurement, once all that is pending is measured.
        """
        factors, n = self._factors, len(self.X_)
        if len(pending):
            factors = factors.of(np.vstack([self.X_, pending]))
        V = factors.whitened(X, self._kept, np.float64)
        means, noise = self._means(V, slice(None)), self._noise[:, None]
        weights, variances = self.member_weights_, self._variances(V[:, :n]) + noise
        probability = weights @ ndtr(means / np.sqrt(variances))
        if len(pending):
            variances = self._variances(V) + noise
        return probability, np.sqrt(weights @ (variances + (means - weights @ means) ** 2))

    @own_settings()
    def probability_of_positive(self, X: FloatArray) -> FloatArray:
        """Probability that a measurement is positive; of a safety margin, that it is safe.

        Parameters
        ----------
        X : array-like of shape (m, n_features)
            Of more than 64 rows the probabilities may be off by a thousandth.

        Returns
        -------
        ndarray of shape (m,)
        """
        if len(X) <= _MANY:
            means, stds = self.predict_members(X)
            return self.member_weights_ @ ndtr(means / stds)
        weights = self.member_weights_
        kept = np.flatnonzero(weights > _LITTLE * weights.max())
        V = self._whitened(np.asarray(X, dtype=np.float64), kept, np.float32)
        means = self._means(V, kept)
        stds = np.sqrt(self._variances(V) + self._noise[kept, None])
        return weights[kept] @ ndtr(means / stds) / weights[kept].sum()

    @own_settings()
    def probability_at(self, reference: FloatArray) -> FloatArray:
        """As :meth:`probability_of_positive`, by the most probable member, of a reference set.

        Parameters
        ----------
        reference : ndarray of shape (r, n_features)
            Where it is the one of the call before, little is worked out anew.

        Returns
        -------
        ndarray of shape (r,)
        """
        best = self.member_weights_.argmax()
        V = self._at_reference(reference, self._factors)[: len(self.X_)]
        variance = np.maximum(1 - np.einsum("ij,ij->j", V, V), 0) + self._noise[best]
        return ndtr(self._alpha[best].astype(np.float32) @ V / np.sqrt(variance))

    @own_settings()
    def variance_reduction(
        self, X: FloatArray, reference: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """How much measurements lower the posterior variance of a reference set.

        By the most probable member (Cohn, 1996; Seo et al., 2000).

        Parameters
        ----------
        X : ndarray of shape (m, n_features)
            Where to measure.
        reference : ndarray of shape (r, n_features)
            See :meth:`probability_at`.
        weights : ndarray of shape (r,)
            What each of its points counts.

        Returns
        -------
        ndarray of shape (m,)
            Weighted sums of reductions.
        """
        best = self.member_weights_.argmax()
        whitened = self._at_reference(reference, self._expected)
        V = self._whitened(X, np.array([best]), np.float32)[0]
        scale = self._expected.lengthscale(self._kept[best])
        covariance = rbf_single(X, reference, scale)
        covariance -= V.T @ whitened
        left = np.maximum(1 - np.einsum("ij,ij->j", V, V), 0) + self._noise[best]
        return np.square(covariance, out=covariance) @ weights.astype(np.float32) / left

    def __getstate__(self):
        # What belongs to a reference set is quicker worked out than shipped.
        return {**super().__getstate__(), "_reference": None}

    def _settings(self) -> tuple[Any, ...]:
        return self.lengthscale, self.noise_std

    def _hyperparameters(self, n_features):
        lengthscale = self.lengthscale
        if lengthscale is None:
            lengthscale = _LENGTHSCALE * np.sqrt(n_features / 2)
        if np.shape(lengthscale) not in ((), (n_features,)):
            raise ValueError(
                f"lengthscale must be a number or have one for each of the {n_features} features, "
                f"got shape {np.shape(lengthscale)}."
            )
        lengthscale = np.broadcast_to(np.asarray(lengthscale, dtype=np.float64), n_features)
        noises = np.atleast_1d(np.asarray(self.noise_std, dtype=np.float64))
        for name, values in (("lengthscale", lengthscale), ("noise_std", noises)):
            if not (np.isfinite(values).all() and (values > 0).all()):
                raise ValueError(f"{name} must be positive and finite, got {values}.")
        # Members are all pairs of a lengthscale and a noise.
        which = np.repeat(np.arange(len(_FACTORS)), len(noises))
        return np.multiply.outer(_FACTORS, lengthscale), np.tile(noises, len(_FACTORS)), which

    def _set(self, y, factors):
        self.X_, self._factors, self._expected = factors.X, factors, factors
        # Copies, for what the user passed may be changed in place.
        self._made_of = factors.X, y, *map(np.array, self._settings())
        known = factors.inverse @ np.minimum(np.maximum(y, -_LARGEST), _LARGEST)
        evidence = factors.log_determinant - 0.5 * np.einsum("pi,pi->p", known, known)
        weights = np.exp(evidence - evidence.max())
        weights /= weights.sum()
        # Mostly a few members explain the data, and the others are not worth their time.
        self._kept = kept = np.flatnonzero(weights > _NEGLIGIBLE)
        self.member_weights_ = weights[kept] / weights[kept].sum()
        self._alpha = known[kept]
        self._noise = factors.noises[kept] ** 2
        if not hasattr(self, "_reference"):
            self._reference = None
        return self

    def _whitened(self, X, members, dtype):
        """Covariances of some members with points, whitened, ``(n_members, n_expected, m)``."""
        return self._expected.whitened(X, self._kept[members], dtype)

    def _means(self, V, members):
        """Of some members; pending inputs, the last ones in ``V``, have no part in them."""
        alpha = self._alpha[members].astype(V.dtype, copy=False)
        return np.einsum("pn,pnm->pm", alpha, V[:, : len(self.X_)])

    def _variances(self, V):
        # Rounding may take away a little more than there is.
        return np.maximum(1 - np.einsum("pnm,pnm->pm", V, V), 0)

    def _reference_set(self, reference):
        """What is known of a reference set."""
        known = self._reference
        if known is None or not known.is_of(reference):
            known = self._reference = ReferenceSet(reference)
        return known

    def _at_reference(self, reference, factors):
        """Covariances of the most probable member with a reference set, whitened."""
        best = self._kept[self.member_weights_.argmax()]
        return self._reference_set(reference).whitened(factors, best)
