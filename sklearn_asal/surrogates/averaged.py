"""Gaussian processes averaged over hyperparameters and scales: nothing is stated or fitted."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr
from scipy.stats import qmc

from .._typing import FloatArray
from ..settings import own_settings
from .ensemble import EnsembleGP
from .factors import rbf_single
from .validation import check_rows

# Of so many sets of hyperparameters one has the same lengthscale for all features.
_ISOTROPIC = 16
# At most so many members are kept, of at least this part of the largest weight.
_KEPT, _LITTLE = 12, 1e-3
# Shape of the inverse gamma prior on the variance of margins.
_SHAPE = 1.0
# A spread of so many units in the last place comes from rounding.
_ROUNDING = 64 * np.finfo(np.float64).eps


class AveragedGP(EnsembleGP):
    """Gaussian processes averaged over lengthscales and noises by their evidence.

    The scale and the mean of the values are integrated out, so that predictions are Student t
    and units are of no consequence: neither a scale nor a lengthscale has to be stated, and none
    is fitted. Each member has a lengthscale for each feature and a noise, spread over wide ranges
    by a Sobol sequence; Bayes' rule weighs them, and at most twelve are kept. No single member
    decides, so that short lengthscales stay possible until the data rule them out.

    Parameters
    ----------
    n_sets : int, default=128
        Sets of hyperparameters.
    lengthscale_range : tuple of float, default=(0.06, 1.6)
        In the unit cube; beyond two features times ``sqrt(n_features / 2)``.
    noise_range : tuple of float, default=(0.01, 0.5)
        Noise standard deviations, in units of the signal's.
    zero_mean : bool, default=False
        Whether the mean is zero, with an inverse gamma prior on the variance, as queriers set it
        for safety margins: the limit is the zero, and far from data the probability of being
        safe returns to one half. Otherwise a constant mean has a flat prior, and the variance a
        prior of ``1 / variance``.

    Attributes
    ----------
    X_ : ndarray of shape (n, n_features)
        Observed inputs.
    member_weights_ : ndarray of shape (n_kept,)
        Probabilities of the members that are kept.
    dof_ : float
        Degrees of freedom of the predictions.

    See Also
    --------
    EnsembleGP : With stated scales and typical lengthscales.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_asal.surrogates import AveragedGP
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> mean, std = AveragedGP().fit(X, 1e6 + 300 * np.sin(6 * X[:, 0])).predict([[0.5]])
    >>> (mean - 1e6).round()
    array([42.])
    """

    #: Values need no particular scale.
    scale_free = True

    def __init__(
        self,
        n_sets: int = 128,
        lengthscale_range: tuple[float, float] = (0.06, 1.6),
        noise_range: tuple[float, float] = (0.01, 0.5),
        zero_mean: bool = False,
    ) -> None:
        self.n_sets = n_sets
        self.lengthscale_range = lengthscale_range
        self.noise_range = noise_range
        self.zero_mean = zero_mean

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
        X = check_rows(self, X, "X", self.X_.shape[1])
        members = np.arange(len(self._kept))
        return self._student(self._factors.whitened(X, self._kept, np.float32), members)

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
        weights, dof = self.member_weights_, max(self.dof_, 3.0)
        mean = weights @ locations
        variances = dof / (dof - 2) * scales**2 + (locations - mean) ** 2
        return mean, np.sqrt(weights @ variances)

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
        return self._probability(*self.predict_members(X))

    @own_settings()
    def probability_at(self, reference: FloatArray) -> FloatArray:
        """As :meth:`probability_of_positive`, of a reference set.

        Parameters
        ----------
        reference : ndarray of shape (r, n_features)
            Where it is the one of the call before, little is worked out anew.

        Returns
        -------
        ndarray of shape (r,)
        """
        known, n = self._reference_set(reference), len(self.X_)
        parts = [
            self._student(known.whitened(self._factors, member)[None, :n], np.array([i]))
            for i, member in enumerate(self._kept.tolist())
        ]
        locations, scales = (np.concatenate(part) for part in zip(*parts, strict=True))
        return self._probability(locations, scales)

    @own_settings()
    def variance_reduction(
        self, X: FloatArray, reference: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """How much measurements lower the posterior variance of a reference set.

        Averaged over the members (Cohn, 1996; Seo et al., 2000).

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
        known, factors = self._reference_set(reference), self._expected
        weights, total = weights.astype(np.float32), np.zeros(len(X))
        for i, member in enumerate(self._kept.tolist()):
            at_reference = known.whitened(factors, member)
            (V,) = factors.whitened(X, self._kept[[i]], np.float32)
            covariance = rbf_single(X, reference, factors.lengthscale(member))
            covariance -= V.T @ at_reference
            variance = np.maximum(1 - np.einsum("ij,ij->j", V, V), 0) + self._noise[i]
            if not self.zero_mean:
                ones = factors.inverse[member].sum(axis=1).astype(np.float32)
                precision = ones @ ones
                across, of_reference = 1 - ones @ V, 1 - ones @ at_reference
                covariance += np.multiply.outer(across / precision, of_reference)
                variance += across**2 / precision
            reduction = np.square(covariance, out=covariance) @ weights / variance
            total += self.member_weights_[i] * self._scale[i] ** 2 * reduction
        return total

    def _settings(self) -> tuple[Any, ...]:
        return self.n_sets, self.lengthscale_range, self.noise_range, self.zero_mean

    def _hyperparameters(self, n_features):
        points = qmc.Sobol(n_features + 1, scramble=False).random_base2(
            int(self.n_sets).bit_length()
        )
        points = points[1 : self.n_sets + 1]  # the first one is a corner
        (short, long), (quiet, loud) = self.lengthscale_range, self.noise_range
        lengthscales = short * (long / short) ** points[:, :-1]
        lengthscales *= max(np.sqrt(n_features / 2), 1.0)
        lengthscales[::_ISOTROPIC] = lengthscales[::_ISOTROPIC, :1]
        noises = quiet * (loud / quiet) ** points[:, -1]
        return lengthscales, noises, np.arange(len(noises))

    def _set(self, y, factors):
        self.X_, self._factors, self._expected = factors.X, factors, factors
        self._made_of = factors.X, y, *map(np.array, self._settings())
        n, constant = len(y), np.ptp(y) <= _ROUNDING * np.abs(y).max()
        # Of values far from zero nothing is to be lost.
        centre = 0.0 if self.zero_mean else y.mean()
        size = np.abs(y - centre).max() or 1.0
        whitened = factors.inverse @ ((y - centre) / size)
        evidence, ones, location = factors.log_determinant, None, np.zeros(len(whitened))
        if self.zero_mean:
            self.dof_ = n + 2 * _SHAPE
        else:
            self.dof_ = n - 1.0
            ones = factors.inverse.sum(axis=2)
            precision = np.einsum("pi,pi->p", ones, ones)
            location = np.einsum("pi,pi->p", ones, whitened) / precision
            evidence = evidence - 0.5 * np.log(precision)
            whitened = whitened - location[:, None] * ones
        squares = np.einsum("pi,pi->p", whitened, whitened)
        if constant and not (self.zero_mean and y.any()):
            whitened, squares = np.zeros_like(whitened), np.ones_like(squares)
        weights = evidence - 0.5 * self.dof_ * np.log(squares)
        weights = np.exp(weights - weights.max())
        order = np.argsort(-weights, kind="stable")[:_KEPT]
        self._kept = kept = order[weights[order] > _LITTLE]
        self.member_weights_ = weights[kept] / weights[kept].sum()
        self._alpha, self._location, self._size = whitened[kept], location[kept], size
        self._centre = centre
        self._scale = size * np.sqrt(squares[kept] / max(self.dof_, 1.0))
        self._noise = factors.noises[kept] ** 2
        self._ones = None if ones is None else ones[kept]
        if not hasattr(self, "_reference"):
            self._reference = None
        return self

    def _student(self, V, members):
        """Locations and scales of some members from whitened covariances."""
        alpha = self._alpha[members].astype(np.float32)
        locations = self._location[members, None] + np.einsum("pn,pnm->pm", alpha, V)
        locations = self._centre + self._size * locations
        variances = self._variances(V) + self._noise[members, None]
        if not self.zero_mean:
            ones = self._ones[members].astype(np.float32)
            across = 1 - np.einsum("pn,pnm->pm", ones, V)
            variances = variances + across**2 / np.einsum("pn,pn->p", ones, ones)[:, None]
        return locations, self._scale[members, None] * np.sqrt(variances)

    def _probability(self, locations, scales):
        probabilities = stdtr(max(self.dof_, 1.0), locations / scales)
        return np.minimum(self.member_weights_ @ probabilities, 1.0)  # but for rounding
