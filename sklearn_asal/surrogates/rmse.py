"""Posterior distribution of a model's own root mean square error."""

from collections.abc import Sequence

import numpy as np
from scipy.special import chdtri, gammaincinv
from scipy.stats import qmc

from .._typing import FloatArray
from ..settings import own_settings
from .amortized import AmortizedGP
from .kernels import rbf

# Probabilities whose quantiles stand for the posterior of each member: of its scale, and of the
# mean squared error given the scale.
_PROBABILITIES = (qmc.Sobol(2, scramble=False).random_base2(6) + 0.5 / 64) % 1
# The weights of the members count by this power. By the weights themselves, errors come out 5 %
# too small on simulated data.
_POWER = 0.5
# In place of a variance of nothing.
_NOTHING = 1e-100


class RootMeanSquareError:
    """Posterior of the root mean square error of a predictive mean over some points.

    The error is that against the function without noise. Given a member of the model and its
    scale, the function is Gaussian, and the mean squared error a weighted sum of chi-squared
    variables, which a gamma distribution with the same mean and variance stands for. Scales and
    members are averaged over, so that the disagreement of the members is part of the error.

    Parameters
    ----------
    model : AmortizedGP
        Fitted.
    points : ndarray of shape (m, n_features)
        In the unit cube.

    References
    ----------
    Satterthwaite (1946). "An Approximate Distribution of Estimates of Variance Components".
    """

    @own_settings()
    def __init__(self, model: AmortizedGP, points: FloatArray) -> None:
        self._model, self._points = model, points
        locations = model.predict_members(points)[0]
        self._away = locations - model.member_weights_ @ locations
        self._now = self._moments()

    @own_settings()
    def quantiles(self, q: Sequence[float]) -> FloatArray:
        """Quantiles of the error.

        Parameters
        ----------
        q : sequence of float

        Returns
        -------
        ndarray of shape (len(q),)
            In the units of the values. Infinite where these say nothing about their scale: of one
            observation, and of several that are all equal.
        """
        return self._quantiles(q, self._now, 0)

    @own_settings()
    def quantiles_after(self, pending: FloatArray, q: Sequence[float]) -> FloatArray:
        """Quantiles of the error once some points are measured, whatever the outcomes.

        The hyperparameters are taken to be no better known then. Members disagree less, in
        proportion to the posterior variance.

        Parameters
        ----------
        pending : ndarray of shape (k, n_features)
            The model is conditioned on them.
        q : sequence of float

        Returns
        -------
        ndarray of shape (len(q),)
        """
        model = self._model
        model.condition(np.concatenate([model._made_of[0], pending]), None)
        bias, trace, squares, crossed = self._moments()
        less = trace / self._now[1]
        return self._quantiles(q, (less * bias, trace, squares, less * crossed), len(pending))

    def _moments(self):
        """Of each member, what mean and variance of the squared error consist of."""
        model, points, m = self._model, self._points, len(self._points)
        factors = model._expected
        whitened = factors.whitened(points, np.arange(len(factors.noises)), np.float64)
        to_mean = np.zeros((len(whitened), m))
        if not model.zero_mean:
            ones = factors.inverse.sum(axis=2)
            to_mean = 1 - np.einsum("pn,pnm->pm", ones, whitened)
            to_mean /= np.sqrt(np.square(ones).sum(axis=1))[:, None]
        found = []
        for i, away in enumerate(self._away):
            V, unknown = whitened[i], to_mean[i]
            covariance = rbf(points, points, factors.lengthscale(i)) - V.T @ V
            covariance += np.multiply.outer(unknown, unknown)
            # Rounding may take away a little more than there is.
            trace = max(covariance.trace() / m, _NOTHING)
            squares = max(np.vdot(covariance, covariance) / m**2, trace**2 / m)
            crossed = max(away @ covariance @ away, 0.0) / m**2
            found.append((away @ away / m, trace, squares, crossed))
        return tuple(np.transpose(found))

    def _quantiles(self, q, moments, n_more):
        model = self._model
        if not _knows_scale(model):
            return np.full(len(q), np.inf)
        bias, trace, squares, crossed = (part[:, None] for part in moments)
        dof = model.dof_ + n_more
        scale = model._scale[:, None] ** 2 * dof / chdtri(dof, _PROBABILITIES[:, 0])
        mean = bias + scale * trace
        shape = mean**2 / (2 * scale**2 * squares + 4 * scale * crossed)
        values = (gammaincinv(shape, _PROBABILITIES[:, 1]) * mean / shape).ravel()
        weights = np.repeat(model.member_weights_**_POWER, len(_PROBABILITIES))
        order = np.argsort(values)
        weights = weights[order] / weights.sum()
        middle = weights.cumsum() - 0.5 * weights
        return np.exp(0.5 * np.interp(q, middle, np.log(np.maximum(values[order], _NOTHING))))


def noise_std(model: AmortizedGP) -> float:
    """Standard deviation of the noise of a measurement, by all members.

    Parameters
    ----------
    model : AmortizedGP
        Fitted.

    Returns
    -------
    float
        In the units of the values; NaN where their scale is unknown.
    """
    if not _knows_scale(model):
        return np.nan
    return float(np.sqrt(model.member_weights_ @ np.square(model._scale * model.noises_)))


def _knows_scale(model):
    return model.dof_ >= 1 and np.ptp(model._values) > 0
