"""The variational sparse Gaussian process."""

from numbers import Integral

import numpy as np
from scipy.linalg import lapack
from sklearn.utils import check_scalar

from .expansion import Expansion, check_data
from .likelihood import (
    Prior,
    SparseFactors,
    inverse_cholesky,
    maximise,
    sparse_bound,
    squared_differences,
    with_prior,
)


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

    def __init__(self, *, n_inducing=15, prior=True, n_restarts=0, max_iter=200):
        self.n_inducing = n_inducing
        self.prior = prior
        self.n_restarts = n_restarts
        self.max_iter = max_iter

    def fit(self, X, y):
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
        return self._condition(X, y)

    def _condition(self, X, y):
        centres = cluster_centres(X, self.n_inducing)
        inner, cross = squared_differences(centres, centres), squared_differences(centres, X)
        part = SparseFactors(self.theta_, inner, cross, y)
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


def cluster_centres(X, n_clusters, max_iter=20):
    """Centres of k-means, from starting points far from each other; the same at each call.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    n_clusters : int
    max_iter : int, default=20

    Returns
    -------
    centres : ndarray of shape (min(n_clusters, n_distinct), n_features)
    """
    distinct = np.unique(X, axis=0)
    if len(distinct) <= n_clusters:
        return distinct
    chosen = [np.square(X - X.mean(axis=0)).sum(axis=1).argmin()]
    gap = np.inf
    for _ in range(n_clusters - 1):
        gap = np.minimum(gap, np.square(X - X[chosen[-1]]).sum(axis=1))
        chosen.append(gap.argmax())
    centres, before = X[chosen], None
    for _ in range(max_iter):
        nearest = np.square(X[:, None] - centres).sum(axis=2).argmin(axis=1)
        if before is not None and (nearest == before).all():
            break
        before = nearest
        for j in np.unique(nearest):  # a centre that loses all its points stays
            centres[j] = X[nearest == j].mean(axis=0)
    return centres
