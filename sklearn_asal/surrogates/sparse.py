"""The variational sparse Gaussian process."""

from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack
from sklearn.cluster import KMeans
from sklearn.utils import check_scalar

from ..settings import own_settings
from ..threads import one_openmp_thread
from .expansion import Expansion
from .kernels import squared_differences
from .likelihood import (
    Prior,
    SparseFactors,
    inverse_cholesky,
    maximise,
    sparse_bound,
    with_prior,
)
from .validation import check_data

# Distance, as a share of the spread of the inputs, below which rows count as equal.
_SAME = 1e-6


class SparseGP(Expansion):
    """Zero-mean GP with an RBF kernel and inducing points (Titsias, 2009).

    The paper's SVGP: inducing points from k-means, all data in one batch, L-BFGS-B.

    Parameters
    ----------
    n_inducing : int, default=15
        Number of inducing points; the paper uses 20 for Engine and Fluid System. With
        no more distinct inputs than this, they are the inputs.
    prior : bool, default=True
        Weigh the bound by weak priors on the hyperparameters, see :class:`ExactGP`.
    n_restarts : int, default=0
        Further searches, see :class:`ExactGP`.
    max_iter : int, default=200
        Of L-BFGS-B.

    Attributes
    ----------
    theta_ : ndarray of shape (n_features + 2,)
        Logarithms of lengthscales, signal and noise standard deviation.
    objective_ : float
        The variational bound at ``theta_``, plus log prior up to a constant.
    lengthscale_ : ndarray of shape (1, n_features)
    signal_std_, noise_std_ : ndarray of shape (1,)
    centres_ : ndarray of shape (m, n_features)
        Inducing points.
    weights_, factors_ : ndarray
        See :class:`~sklearn_asal.surrogates.expansion.Expansion`.
    """

    def __init__(
        self,
        *,
        n_inducing: int = 15,
        prior: bool = True,
        n_restarts: int = 0,
        max_iter: int = 200,
    ) -> None:
        self.n_inducing = n_inducing
        self.prior = prior
        self.n_restarts = n_restarts
        self.max_iter = max_iter

    @own_settings()
    def fit(self, X: ArrayLike, y: ArrayLike) -> "SparseGP":
        """Choose inducing points and hyperparameters and condition on the data.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,)

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            Invalid data or ``n_inducing``.
        """
        check_scalar(self.n_inducing, "n_inducing", Integral, min_val=1)
        X, y = check_data(X, y)
        centres = cluster_centres(X, self.n_inducing)
        inner, cross = squared_differences(centres, centres), squared_differences(centres, X)
        objective = with_prior(
            lambda theta: sparse_bound(theta, inner, cross, y),
            Prior(X.shape[1]) if self.prior else None,
        )
        self.theta_, self.objective_ = maximise(
            objective, X.shape[1], y, n_restarts=self.n_restarts, max_iter=self.max_iter
        )
        return self._set_factors(centres, SparseFactors(self.theta_, inner, cross, y))

    def _condition(self, X, y):
        centres = cluster_centres(X, self.n_inducing)
        inner, cross = squared_differences(centres, centres), squared_differences(centres, X)
        return self._set_factors(centres, SparseFactors(self.theta_, inner, cross, y))

    def _set_factors(self, centres, part):
        weights = lapack.dtrtrs(part.L, part.beta, lower=1, trans=1)[0]
        # What the data tell about the inducing values, the identity less noise * B^-1, is
        # positive semi-definite, so it has a square root.
        value, vector = np.linalg.eigh(part.AA)
        value = np.maximum(value, 0.0)
        root = np.sqrt(value / (value + part.noise))[:, None] * vector.T
        factor = root @ inverse_cholesky(part.L)
        # Rotated until it is lower triangular, which leaves lengths as they are.
        factor = np.linalg.qr(factor[:, ::-1], mode="r")[::-1, ::-1]
        return self._set(centres, self.theta_[None], [weights], [factor])


def cluster_centres(X, n_clusters):
    """Centres of k-means; the same for the same rows, in whatever order.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    n_clusters : int

    Returns
    -------
    centres : ndarray of shape (min(n_clusters, n_distinct), n_features)
        With no more distinct rows than clusters, these.
    """
    X = X[np.lexsort(X.T)]
    spread = np.ptp(X, axis=0).max()
    # Rows that k-means might take for the same count as such.
    steps = np.round((X - X.min(axis=0)) / (_SAME * spread or 1.0))
    _, first, counts = np.unique(steps, axis=0, return_index=True, return_counts=True)
    X = X[first]
    if len(X) <= n_clusters:
        return X
    clustering = KMeans(n_clusters, n_init=1, random_state=0)
    # Several threads add up in any order.
    with one_openmp_thread():
        return clustering.fit(X, sample_weight=counts).cluster_centers_
