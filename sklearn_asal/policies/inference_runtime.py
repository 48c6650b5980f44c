"""The network of policy ``any`` at deployment, in NumPy and without torch."""

import functools
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from ..once import once
from .architecture import check_weights, complete

#: Log standard deviations of the posterior are kept within these.
LOWEST, HIGHEST = -4.0, 2.0
#: The log noise that an untrained network expects.
NOISE = -2.5
# Digits of an expected log lengthscale that are told apart.
_DIGITS = 6


@dataclass(frozen=True)
class Posterior:
    """Mixture of normal distributions of log hyperparameters.

    Parameters
    ----------
    location, scale : ndarray of shape (n_features, n_components)
        Of the log lengthscales, relative to :func:`sklearn_asal.surrogates.evidence.unit`.
    weight : ndarray of shape (n_components,)
    noise_location, noise_scale : ndarray of shape (n_components,)
        Of the log noise standard deviation, relative to the signal's.
    """

    location: np.ndarray
    scale: np.ndarray
    weight: np.ndarray
    noise_location: np.ndarray
    noise_scale: np.ndarray

    @once
    def expected(self):
        """Expected log lengthscales, rounded, ``(n_features,)``."""
        return (self.location @ self.weight).round(_DIGITS)

    def spread(self, n, ties=None):
        """Hyperparameters that stand for the posterior.

        Quasi-random, so that they lie apart; features take their coordinates in the order of
        their expected lengthscales, so that nothing depends on the order of features.

        Parameters
        ----------
        n : int
        ties : ndarray of int of shape (n_features,), optional
            Ranks of the features, for those whose expected lengthscales are equal.

        Returns
        -------
        log_lengthscales : ndarray of shape (n, n_features)
        log_noises : ndarray of shape (n,)
        """
        n_features = len(self.location)
        normal = _normal(n, n_features + 1)
        middle = (np.arange(n) + 0.5) / n
        component = np.minimum(np.searchsorted(self.weight.cumsum(), middle), len(self.weight) - 1)
        ties = np.arange(n_features) if ties is None else ties
        rank = np.argsort(np.lexsort((ties, self.expected)))
        location, scale = self.location.T[component], self.scale.T[component]
        noises = self.noise_location[component] + self.noise_scale[component] * normal[:, -1]
        return location + scale * normal[:, rank], noises


@functools.lru_cache(maxsize=64)
def _normal(n, dimension):
    """Quasi-random points of a standard normal distribution (additive recurrence)."""
    ratio = 2.0
    for _ in range(40):  # the positive root of r ** (dimension + 1) = r + 1
        ratio = (1 + ratio) ** (1 / (dimension + 1))
    steps = ratio ** -np.arange(1.0, dimension + 1)
    return ndtri((0.5 + np.arange(1, n + 1)[:, None] * steps) % 1)


class InferenceRuntime:
    """Computes what :class:`~sklearn_asal.policies.inference.InferenceNetwork` does.

    Parameters
    ----------
    architecture : dict
        The arguments of the network.
    weights : dict of str to ndarray
        Its ``state_dict``, as in a policy file.

    Attributes
    ----------
    n_features, safe : None
        It is for any number of features, with and without a limit.

    Raises
    ------
    ValueError, TypeError
        Weights that do not fit the architecture.
    """

    n_features = safe = None

    def __init__(self, architecture, weights):
        self.architecture = complete(architecture)
        check_weights(self.architecture, weights)
        self._weights = {name: value.T.astype(np.float64) for name, value in weights.items()}

    def posterior(self, own, shared):
        """Posterior of the hyperparameters.

        Parameters
        ----------
        own : ndarray of shape (n_features, own)
        shared : ndarray of shape (shared,)
            From :func:`sklearn_asal.surrogates.evidence.features`.

        Returns
        -------
        Posterior
        """
        w = self._weights

        def linear(name, values):
            return values @ w[f"{name}.weight"] + w[f"{name}.bias"]

        width = self.architecture["width"]
        a = linear("own_in", (own - w["own_mean"]) / w["own_std"])
        b = linear("shared_in", (shared - w["shared_mean"]) / w["shared_std"])
        for layer in range(self.architecture["layers"]):
            p, q = np.maximum(a, 0.0), np.maximum(b, 0.0)
            mean = p.mean(axis=0)
            weight = w[f"own.{layer}.weight"]
            others = np.concatenate([mean + q, p.max(axis=0)]) @ weight[width:]
            a = a + p @ weight[:width] + others + w[f"own.{layer}.bias"]
            b = b + linear(f"shared.{layer}", np.concatenate([q, mean]))
        location, log_scale = np.split(linear("own_out", np.maximum(a, 0.0)), 2, axis=1)
        logits, noise, noise_log_scale = np.split(linear("shared_out", np.maximum(b, 0.0)), 3)
        weight = np.exp(logits - logits.max())
        return Posterior(
            location,
            np.exp(np.clip(log_scale, LOWEST, HIGHEST)),
            weight / weight.sum(),
            noise + NOISE,
            np.exp(np.clip(noise_log_scale, LOWEST, HIGHEST)),
        )
