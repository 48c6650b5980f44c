"""The vanilla Gaussian process."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from ..settings import own_settings
from .expansion import Expansion
from .kernels import squared_differences
from .likelihood import (
    JITTER,
    Prior,
    cholesky,
    covariance,
    exact_likelihood,
    inverse_cholesky,
    maximise,
    with_prior,
)
from .validation import check_data


class ExactGP(Expansion):
    """Zero-mean GP with an RBF kernel, fitted by type-II maximum likelihood.

    Inputs are expected in the unit cube and values at unit scale, as queriers
    hand them over.

    Parameters
    ----------
    prior : bool, default=True
        Weigh the likelihood by weak log-normal priors on the hyperparameters
        (see :class:`~sklearn_asal.surrogates.likelihood.Prior`), which makes few
        points safer to work with. False is pure maximum likelihood.
    n_restarts : int, default=0
        Further searches, at most three. Each fit screens four starting points and
        searches from the best one; restarts use the next best.
    warm_start : bool, default=False
        Start ``fit`` at the hyperparameters of the fit before, without screening.
        Queriers do not use it: the answer to a query depends on its data alone.
    max_iter : int, default=200
        Of L-BFGS-B.

    Attributes
    ----------
    theta_ : ndarray of shape (n_features + 2,)
        Logarithms of lengthscales, signal and noise standard deviation.
    objective_ : float
        Log marginal likelihood at ``theta_``, plus log prior up to a constant.
    lengthscale_ : ndarray of shape (1, n_features)
    signal_std_, noise_std_ : ndarray of shape (1,)
    centres_, weights_, factors_ : ndarray
        See :class:`~sklearn_asal.surrogates.expansion.Expansion`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_asal.surrogates import ExactGP
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> mean, std = ExactGP().fit(X, np.sin(6 * X[:, 0])).predict([[0.5]])
    >>> mean.round(2)
    array([0.14])
    """

    def __init__(
        self,
        *,
        prior: bool = True,
        n_restarts: int = 0,
        warm_start: bool = False,
        max_iter: int = 200,
    ) -> None:
        self.prior = prior
        self.n_restarts = n_restarts
        self.warm_start = warm_start
        self.max_iter = max_iter

    @own_settings()
    def fit(self, X: ArrayLike, y: ArrayLike) -> "ExactGP":
        """Choose hyperparameters and condition on the data.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,)

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Invalid data.
        """
        X, y = check_data(X, y)
        n_features = X.shape[1]
        squares = squared_differences(X, X)
        objective = with_prior(
            lambda theta: exact_likelihood(theta, squares, y),
            Prior(n_features) if self.prior else None,
        )
        start = getattr(self, "theta_", None) if self.warm_start else None
        if start is not None and len(start) != n_features + 2:
            start = None
        self.theta_, self.objective_ = maximise(
            objective,
            n_features,
            y,
            n_restarts=self.n_restarts,
            start=start,
            max_iter=self.max_iter,
        )
        return self._condition(X, y)

    def _condition(self, X, y):
        thetas, squares = np.atleast_2d(self.theta_), squared_differences(X, X)
        weights, factors = [], []
        for theta in thetas:
            signal, noise = np.exp(2.0 * theta[-2:])
            L = cholesky(covariance(theta, squares, len(X)), JITTER * signal + noise)
            weights.append(lapack.dpotrs(L, y, lower=1)[0])
            factors.append(inverse_cholesky(L))
        return self._set(X, thetas, weights, factors)
