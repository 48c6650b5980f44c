"""A prior-data fitted network at deployment, in NumPy and without torch."""

import math

import numpy as np

from .architecture import check_weights, complete

#: Values are kept within this, and inputs within their share of the unit cube's side around it.
LARGEST, _BESIDE = 10.0, 0.5
#: Logarithms of the rates at which attention falls with squared distance, before training: they
#: stand for lengthscales from 2 to 0.1.
REACHES = -math.log(2 * 2.0**2), -math.log(2 * 0.1**2)
# Points that are asked about at a time.
_ROWS = 4096
_EPSILON = 1e-5


def distance_scale(n_features):
    """What distances are divided by, for they grow with the number of features.

    Parameters
    ----------
    n_features : int

    Returns
    -------
    float
    """
    return math.sqrt(max(n_features / 2, 1.0))


class PFNRuntime:
    """Computes what :class:`~sklearn_asal.policies.pfn.PFNNetwork` does.

    Observations are encoded once. Each point that is asked about attends to them: for n of them
    and m points that is O(n^2 + m n).

    Parameters
    ----------
    architecture : dict
        The arguments of the network.
    weights : dict of str to ndarray
        Its ``state_dict``, as in a policy file.

    Attributes
    ----------
    n_features, safe : None
        It is for several numbers of features, and for outputs and margins.
    most_features : int
    borders : ndarray of shape (bars - 1,)
    tails : ndarray of shape (2,)
        Of :class:`~sklearn_asal.surrogates.bars.Bars`.

    Raises
    ------
    ValueError, TypeError
        Weights that do not fit the architecture.
    """

    n_features = safe = None

    def __init__(self, architecture, weights):
        self.architecture = complete(architecture)
        check_weights(self.architecture, weights)
        self._weights = {
            name: np.ascontiguousarray(value.T, dtype=np.float32) for name, value in weights.items()
        }
        self.borders, self.tails = (weights[name].astype(float) for name in ("borders", "tails"))
        self.most_features = self.architecture["most_features"]

    def encode(self, X, y):
        """What observations are to points that are asked about.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
        y : ndarray of shape (n,)

        Returns
        -------
        list of (ndarray, ndarray)
            Keys and values of each layer, for :meth:`probabilities`.
        """
        places, tokens = self._embed(X)
        values = np.clip(y, -LARGEST, LARGEST).astype(np.float32)[:, None]
        tokens = tokens + self._mlp("value", values)
        encoded, last = [], self.architecture["layers"] - 1
        for layer in range(last + 1):
            name = f"layers.{layer}"
            normed = self._norm(f"{name}.norm1", tokens)
            key, value = np.split(self._linear(f"{name}.known", normed), 2, axis=1)
            far = np.concatenate([places, np.square(places).sum(axis=1, keepdims=True)], axis=1)
            far = np.broadcast_to(far, (self.architecture["heads"], *far.shape))
            known = np.concatenate([self._split(key), far], axis=2), self._split(value)
            encoded.append(known)
            if layer < last:
                tokens = self._attend(name, tokens, normed, places, known)
        return encoded

    def probabilities(self, encoded, points):
        """Probabilities of the bars.

        Parameters
        ----------
        encoded : list of (ndarray, ndarray)
            See :meth:`encode`.
        points : ndarray of shape (m, n_features)

        Returns
        -------
        ndarray of float64 of shape (m, bars)
        """
        found = np.empty((len(points), self.architecture["bars"]))
        for start in range(0, len(points), _ROWS):
            rows = slice(start, start + _ROWS)
            places, tokens = self._embed(points[rows])
            for layer, known in enumerate(encoded):
                name = f"layers.{layer}"
                normed = self._norm(f"{name}.norm1", tokens)
                tokens = self._attend(name, tokens, normed, places, known)
            found[rows] = self._mlp("head", self._norm("norm", tokens))
        return _softmax(found)

    def _embed(self, X):
        inputs = (np.clip(X, -_BESIDE, 1 + _BESIDE) - 0.5).astype(np.float32)
        n_features = inputs.shape[1]
        padded = np.zeros((len(inputs), self.most_features), np.float32)
        padded[:, :n_features] = math.sqrt(12) * inputs
        number = self._weights["number.weight"][n_features - 1] + self._weights["number.bias"]
        return inputs / np.float32(distance_scale(n_features)), self._mlp("embed", padded) + number

    def _attend(self, name, tokens, normed, places, known):
        key, value = known
        query = self._split(self._linear(f"{name}.query", normed))
        query = query / np.float32(math.sqrt(query.shape[2]))
        near = np.concatenate([2 * places, -np.ones((len(places), 1), np.float32)], axis=1)
        near = near * np.exp(self._weights[f"{name}.log_rate"])[:, None, None]
        weights = _softmax(np.concatenate([query, near], axis=2) @ key.transpose(0, 2, 1))
        attended = (weights @ value).transpose(1, 0, 2).reshape(len(tokens), -1)
        tokens = tokens + self._linear(f"{name}.out", attended)
        hidden = self._linear(f"{name}.ff1", self._norm(f"{name}.norm2", tokens))
        return tokens + self._linear(f"{name}.ff2", np.maximum(hidden, 0))

    def _split(self, values):
        heads = self.architecture["heads"]
        return values.reshape(len(values), heads, -1).transpose(1, 0, 2)

    def _linear(self, name, values):
        return values @ self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]

    def _mlp(self, name, values):
        return self._linear(f"{name}.2", np.maximum(self._linear(f"{name}.0", values), 0))

    def _norm(self, name, values):
        centred = values - values.mean(axis=-1, keepdims=True)
        variance = np.square(centred).mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt(variance + np.float32(_EPSILON))
        return scaled * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _softmax(logits):
    """Along the last axis; in place."""
    logits -= logits.max(axis=-1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=-1, keepdims=True)
    return logits
