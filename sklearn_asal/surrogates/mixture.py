"""A mixture of Gaussian processes with different hyperparameters."""

from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar

from ..settings import own_settings
from .exact import ExactGP
from .kernels import squared_differences
from .likelihood import Prior, exact_likelihood, with_prior
from .validation import check_data

_DECAY, _DECAY_SQUARE, _TINY = 0.9, 0.999, 1e-8


class MixtureGP(ExactGP):
    """Equally weighted GPs, each tuned for a few steps from hyperparameters of its own.

    The paper's MGP. Initial hyperparameters are drawn from the priors of
    :class:`~sklearn_asal.surrogates.likelihood.Prior`, tuned by Adam. Predictions have
    the mean and variance of the mixture, so disagreement counts as uncertainty; safety
    probabilities are those of the mixture itself.

    Parameters
    ----------
    n_members : int, default=30
    n_steps : int, default=30
        Of Adam, for each member.
    learning_rate : float, default=0.01
        On the logarithms of the hyperparameters.
    prior : bool, default=True
        Weigh the likelihood by the priors, see :class:`ExactGP`.
    random_state : int, default=0
        Of the initial hyperparameters. A fixed one, so that the same data give the
        same model.

    Attributes
    ----------
    theta_ : ndarray of shape (n_members, n_features + 2)
        Logarithms of lengthscales, signal and noise standard deviation.
    lengthscale_ : ndarray of shape (n_members, n_features)
    signal_std_, noise_std_ : ndarray of shape (n_members,)
    centres_, weights_, factors_ : ndarray
        See :class:`~sklearn_asal.surrogates.expansion.Expansion`.
    """

    def __init__(
        self,
        *,
        n_members: int = 30,
        n_steps: int = 30,
        learning_rate: float = 0.01,
        prior: bool = True,
        random_state: int = 0,
    ) -> None:
        self.n_members = n_members
        self.n_steps = n_steps
        self.learning_rate = learning_rate
        self.prior = prior
        self.random_state = random_state

    @own_settings()
    def fit(self, X: ArrayLike, y: ArrayLike) -> "MixtureGP":
        """Tune all members and condition them on the data.

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
            Invalid data or parameters.
        """
        check_scalar(self.n_members, "n_members", Integral, min_val=1)
        check_scalar(self.n_steps, "n_steps", Integral, min_val=0)
        check_scalar(self.learning_rate, "learning_rate", Real, min_val=0)
        X, y = check_data(X, y)
        squares = squared_differences(X, X)
        prior = Prior(X.shape[1])
        objective = with_prior(
            lambda theta: exact_likelihood(theta, squares, y), prior if self.prior else None
        )
        rng = np.random.default_rng(self.random_state)
        theta = prior.mean + prior.std * rng.standard_normal((self.n_members, X.shape[1] + 2))
        # Thirty small steps do not make up for values of quite another size.
        theta[:, -2:] += np.log(max(np.sqrt(np.mean(np.square(y))), 1.0))
        first, second = np.zeros((2, *theta.shape))
        for step in range(1, self.n_steps + 1):
            # One after another: stacked, NumPy's factorisations took twice as long.
            gradient = np.array([objective(member)[1] for member in theta])
            first += (1 - _DECAY) * (gradient - first)
            second += (1 - _DECAY_SQUARE) * (np.square(gradient) - second)
            size = np.sqrt(second / (1 - _DECAY_SQUARE**step)) + _TINY
            theta += self.learning_rate / (1 - _DECAY**step) * first / size
        self.theta_ = theta
        return self._condition(X, y)
