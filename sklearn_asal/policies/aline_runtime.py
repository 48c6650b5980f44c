"""The network of ALINE at deployment, in NumPy and without torch."""

import math

import numpy as np

from .architecture import check_weights, complete

#: Log standard deviations of predictions are kept within these.
LOWEST, HIGHEST = -6.0, 2.0
#: Inputs of the unit cube, brought to zero mean and unit variance.
CENTRE, FACTOR = 0.5, math.sqrt(12)
EPSILON = 1e-5  # of torch's LayerNorm
# Targets or candidates worked on at a time: more would fall out of the cache.
_CHUNK = 1024


class ALINERuntime:
    """Computes what :class:`~sklearn_asal.policies.aline.ALINENetwork` does, in double precision.

    Safe to share between threads.

    Parameters
    ----------
    architecture : dict
        The arguments of the network.
    weights : dict of str to ndarray
        Its ``state_dict``, as in a policy file.

    Attributes
    ----------
    n_features : int
    safe : bool
        Always False.

    Raises
    ------
    ValueError, TypeError
        Weights that do not fit the architecture.
    """

    safe = False

    def __init__(self, architecture, weights):
        self.architecture = complete(architecture)
        check_weights(self.architecture, weights)
        self.n_features = self.architecture["n_features"]
        self._weights = {name: value.T.astype(np.float64) for name, value in weights.items()}

    def predict(self, X, y, targets):
        """Outputs that are expected.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
            Measured inputs of the unit cube.
        y : ndarray of shape (n,)
            Their outputs at unit scale.
        targets : ndarray of shape (m, n_features)

        Returns
        -------
        weight, mean, std : ndarray of shape (m, n_components)
            Mixture of normal distributions of each output, noise included.
        """
        context = self._context(X, y)
        parts = [
            self._last("predict", self._targets(targets[i : i + _CHUNK], context)[-1])
            for i in range(0, len(targets), _CHUNK)
        ]
        logits, mean, log_std = np.split(np.concatenate(parts), 3, axis=1)
        weight = np.exp(logits - logits.max(axis=1, keepdims=True))
        std = np.exp(np.clip(log_std, LOWEST, HIGHEST))
        return weight / weight.sum(axis=1, keepdims=True), mean, std

    def scores(self, X, y, targets, candidates):
        """How good candidates are; the larger, the better.

        Parameters
        ----------
        X, y, targets
            See :meth:`predict`; the targets are the inputs whose outputs matter.
        candidates : ndarray of shape (k, n_features)

        Returns
        -------
        ndarray of shape (k,)
            Logits.
        """
        context = self._context(X, y)
        pairs = zip(context, self._targets(targets, context), strict=True)
        seen = [np.concatenate(pair) for pair in pairs]
        offered = [self._offered(f"picking.{i}", h) for i, h in enumerate(seen[:-1])]
        parts = []
        for start in range(0, len(candidates), _CHUNK):
            c = self._mlp("candidate", _scaled(candidates[start : start + _CHUNK]))
            for i, kept in enumerate(offered):
                c = self._layer(f"picking.{i}", c, *kept)
            parts.append(self._last("score", c))
        return np.concatenate(parts)[:, 0]

    def _context(self, X, y):
        """Tokens of the measurements before each layer, and after the last."""
        tokens = [self._mlp("context", np.column_stack([_scaled(X), y]))]
        for i in range(self.architecture["layers"]):
            name, h = f"predicting.{i}", tokens[-1]
            tokens.append(self._layer(name, h, *self._offered(name, h)))
        return tokens

    def _targets(self, targets, context):
        """Tokens of the targets before each layer, and after the last."""
        tokens = [self._mlp("target", _scaled(targets))]
        for i in range(self.architecture["layers"]):
            name = f"predicting.{i}"
            tokens.append(self._layer(name, tokens[-1], *self._offered(name, context[i])))
        return tokens

    def _offered(self, name, seen):
        """Keys and values of tokens that others attend to."""
        both = self._linear(f"{name}.offer", self._norm(f"{name}.norm1", seen))
        return [self._heads(part) for part in np.split(both, 2, axis=1)]

    def _layer(self, name, h, k, v):
        """Tokens after a layer, in which they attend to keys and values."""
        q = self._heads(self._linear(f"{name}.ask", self._norm(f"{name}.norm1", h)))
        h = h + self._linear(f"{name}.out", _attend(q, k, v))
        hidden = self._linear(f"{name}.up", self._norm(f"{name}.norm2", h))
        return h + self._linear(f"{name}.down", np.maximum(hidden, 0.0))

    def _heads(self, projected):
        """Each head's part, ``(heads, n, width of a head)``."""
        return projected.reshape(len(projected), self.architecture["heads"], -1).transpose(1, 0, 2)

    def _last(self, name, h):
        return self._mlp(name, self._norm(f"{name}_norm", h))

    def _linear(self, name, x):
        return x @ self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]

    def _mlp(self, name, x):
        return self._linear(f"{name}.2", np.maximum(self._linear(f"{name}.0", x), 0.0))

    def _norm(self, name, h):
        h = h - h.mean(axis=1, keepdims=True)
        h /= np.sqrt(np.square(h).mean(axis=1, keepdims=True) + EPSILON)
        return h * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _scaled(x):
    return (np.asarray(x, np.float64) - CENTRE) * FACTOR


def _attend(q, k, v):
    """Softmax attention of each head, ``(n, width)``."""
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[2])
    scores -= scores.max(axis=2, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=2, keepdims=True)
    return (scores @ v).transpose(1, 0, 2).reshape(q.shape[1], -1)
