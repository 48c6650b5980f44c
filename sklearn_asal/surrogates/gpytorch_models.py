"""Gaussian processes of GPyTorch; imported with the first kernel that is fitted."""

import contextlib
import copy
import warnings

import gpytorch
import numpy as np
import torch
from gpytorch.likelihoods import GaussianLikelihood
from linear_operator.utils.errors import NanError, NotPSDError
from scipy.optimize import minimize
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from .sparse import cluster_centres

# Variance of the noise: where it starts, and the least. A power of two is the same number in
# single precision, which constraints may be made in.
_NOISE, _LEAST_NOISE = 0.01, 2.0**-26
# Rows predicted at a time.
_ROWS = 1024


class ExactModel(gpytorch.models.ExactGP):
    """Zero-mean GP, without approximation.

    Parameters
    ----------
    X : torch.Tensor of shape (n, n_features)
    y : torch.Tensor of shape (n,)
    kernel : gpytorch.kernels.Kernel
    likelihood : gpytorch.likelihoods.GaussianLikelihood
    """

    def __init__(self, X, y, kernel, likelihood):
        super().__init__(X, y, likelihood)
        self.covar_module = kernel

    def forward(self, x):
        """Prior at some inputs.

        Parameters
        ----------
        x : torch.Tensor of shape (n, n_features)

        Returns
        -------
        gpytorch.distributions.MultivariateNormal
        """
        return _prior(self.covar_module, x)

    def bound(self, X, y):
        """What training maximises: the log marginal likelihood of an observation.

        Parameters
        ----------
        X : torch.Tensor of shape (n, n_features)
        y : torch.Tensor of shape (n,)

        Returns
        -------
        torch.Tensor of shape ()
        """
        return gpytorch.mlls.ExactMarginalLogLikelihood(self.likelihood, self)(self(X), y)


class VariationalModel(gpytorch.models.ApproximateGP):
    """Zero-mean GP with inducing points (Hensman et al., 2015).

    Parameters
    ----------
    centres : torch.Tensor of shape (m, n_features)
        Inducing points at the start.
    kernel : gpytorch.kernels.Kernel
    likelihood : gpytorch.likelihoods.GaussianLikelihood
    """

    def __init__(self, centres, kernel, likelihood):
        values = gpytorch.variational.CholeskyVariationalDistribution(len(centres))
        values.requires_grad_(False)
        super().__init__(gpytorch.variational.VariationalStrategy(self, centres, values))
        # GPyTorch would draw them from the global generator.
        self.variational_strategy.variational_params_initialized.fill_(1)
        self.covar_module, self.likelihood = kernel, likelihood

    def forward(self, x):
        """Prior at some inputs.

        Parameters
        ----------
        x : torch.Tensor of shape (n, n_features)

        Returns
        -------
        gpytorch.distributions.MultivariateNormal
        """
        return _prior(self.covar_module, x)

    def bound(self, X, y):
        """What training maximises: the evidence lower bound of an observation.

        Of all distributions of the inducing values the model takes the best one, so that
        only hyperparameters and inducing points are left to be searched.

        Parameters
        ----------
        X : torch.Tensor of shape (n, n_features)
        y : torch.Tensor of shape (n,)

        Returns
        -------
        torch.Tensor of shape ()
        """
        self._take_best(X, y)
        return gpytorch.mlls.VariationalELBO(self.likelihood, self, num_data=len(y))(self(X), y)

    @torch.no_grad()
    def _take_best(self, X, y):
        strategy, noise = self.variational_strategy, self.likelihood.noise
        kernel, centres = self.covar_module, strategy.inducing_points
        L = kernel(centres).add_jitter(strategy.jitter_val).cholesky().to_dense()
        A = torch.linalg.solve_triangular(L, kernel(centres, X).to_dense(), upper=False)
        S = torch.linalg.inv(torch.eye(len(L), dtype=L.dtype) + A @ A.T / noise)
        values = strategy._variational_distribution
        values.variational_mean.copy_(S @ (A @ y) / noise)
        values.chol_variational_covar.copy_(torch.linalg.cholesky(S))


def _prior(kernel, x):
    return gpytorch.distributions.MultivariateNormal(x.new_zeros(len(x)), kernel(x))


@contextlib.contextmanager
def _own_torch():
    """One thread, algebra without random numbers, and no warnings of jitter."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with (
            torch.inference_mode(False),
            gpytorch.settings.max_cholesky_size(10**6),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_num_threads(threads)


@_own_torch()
def trained(X, y, kernel, likelihood, n_inducing, max_iter, frozen=False):
    """A model with the likeliest hyperparameters, conditioned on the data.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    y : ndarray of shape (n,)
    kernel : gpytorch.kernels.Kernel
        Copied.
    likelihood : gpytorch.likelihoods.GaussianLikelihood or None
        Copied; None means one of variance 0.01 at the start.
    n_inducing : int or None
        None means an exact model.
    max_iter : int
        Of L-BFGS-B.
    frozen : bool, default=False
        Keep the hyperparameters.

    Returns
    -------
    model : ExactModel or VariationalModel
        In evaluation mode.

    Raises
    ------
    ValueError
        A likelihood of another kind.
    """
    likelihood = _default_likelihood() if likelihood is None else copy.deepcopy(likelihood)
    if not isinstance(likelihood, GaussianLikelihood):
        raise ValueError(
            f"likelihood must be a gpytorch.likelihoods.GaussianLikelihood, got {likelihood!r}."
        )
    kernel = copy.deepcopy(kernel)
    if frozen:
        kernel.requires_grad_(False)
        likelihood.requires_grad_(False)
    inputs, targets = torch.from_numpy(X.copy()), torch.from_numpy(y.copy())
    if n_inducing is None:
        model = ExactModel(inputs, targets, kernel, likelihood)
    else:
        centres = torch.from_numpy(cluster_centres(X, n_inducing))
        model = VariationalModel(centres, kernel, likelihood)
    model.to("cpu", torch.float64)
    _maximise(model.train(), inputs, targets, max_iter)
    return model.eval()


def _default_likelihood():
    likelihood = GaussianLikelihood(noise_constraint=gpytorch.constraints.GreaterThan(_LEAST_NOISE))
    likelihood.double().noise = torch.tensor(_NOISE, dtype=torch.float64)
    return likelihood


def _maximise(model, inputs, targets, max_iter):
    parameters = [part for part in model.parameters() if part.requires_grad]
    if not parameters:
        return
    start = parameters_to_vector(parameters).detach().numpy()
    best = [np.inf, start]

    def negated(values):
        vector_to_parameters(torch.from_numpy(values.copy()), parameters)
        try:
            with torch.enable_grad():
                cost = -model.bound(inputs, targets)
            slope = torch.autograd.grad(cost, parameters, allow_unused=True, materialize_grads=True)
        except (NanError, NotPSDError, torch.linalg.LinAlgError):
            return np.inf, np.zeros_like(values)  # too far out
        cost, slope = cost.item(), parameters_to_vector(slope).numpy()
        if cost < best[0]:
            best[:] = cost, values.copy()
        return cost, slope

    options = {"maxiter": max_iter, "ftol": 1e-8}
    minimize(negated, start, jac=True, method="L-BFGS-B", options=options)
    # The search may end where there is no factorisation.
    negated(best[1])


@_own_torch()
@torch.no_grad()
def predict(model, X):
    """Mean and standard deviation of a measurement, noise included.

    Parameters
    ----------
    model : ExactModel or VariationalModel
    X : ndarray of shape (n, n_features)

    Returns
    -------
    mean, std : ndarray of shape (n,)
    """
    mean, std = np.empty((2, len(X)))
    for start in range(0, len(X), _ROWS):
        rows = slice(start, start + _ROWS)
        answer = model.likelihood(model(torch.tensor(X[rows])))
        mean[rows], std[rows] = answer.mean.numpy(), answer.stddev.numpy()
    return mean, std


@_own_torch()
@torch.no_grad()
def covariance(model, A, B):
    """Covariance of noise-free values at two sets of points.

    Parameters
    ----------
    model : ExactModel or VariationalModel
    A : ndarray of shape (n, n_features)
    B : ndarray of shape (k, n_features)

    Returns
    -------
    covariance : ndarray of shape (n, k)
    """
    # Joint covariances of a few rows at a time with the others.
    covariance = np.empty((len(A), len(B)))
    for start in range(0, len(A), _ROWS):
        part = A[start : start + _ROWS]
        joint = model(torch.tensor(np.vstack([part, B]))).covariance_matrix
        covariance[start : start + _ROWS] = joint[: len(part), len(part) :].numpy()
    return covariance
