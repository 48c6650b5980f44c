"""The reading network at deployment, in NumPy."""

import math

import numpy as np

from .architecture import scaling
from .runtime import EPSILON, Runtime, clipped


class ReaderRuntime(Runtime):
    """Computes what :class:`~sklearn_asal.policies.reader.ReaderNetwork` does.

    Constants of norms and inputs are multiplied into the linear maps that follow. The state is
    only ever read through norms, which ignore its mean, so whatever is added to it is centred
    beforehand and the norms have no mean to take off.
    """

    def _fold(self, full, weights):
        """Prepare the constants; everything in float64 until the end."""
        w, self._layers = self._width, full["layers"]
        self.token_width = w * (1 + 2 * self._layers)
        (x_shift, x_scale), of_budget = scaling(full)

        def linear(name, norm=None, factor=1.0, centred=0):
            """Weight and bias, after the gain and shift of a norm; the first outputs centred."""
            W, b = weights[f"{name}.weight"].T.copy(), weights[f"{name}.bias"].copy()
            if norm is not None:
                b += weights[f"{norm}.bias"] @ W
                W *= weights[f"{norm}.weight"][:, None]
            if centred:
                W[:, :centred] -= W[:, :centred].mean(axis=1, keepdims=True)
                b[:centred] -= b[:centred].mean()
            return self._cast(W * factor), self._cast(b * factor)

        W, b = weights["embed.0.weight"].T.copy(), weights["embed.0.bias"]
        inputs = W[: self.n_features]
        inputs *= x_scale
        b = b - x_shift * inputs.sum(axis=0)
        self._embed = self._cast(W), self._cast(b), *linear("embed.2")
        self._project = linear("project", centred=w)

        def forth(name):
            return *linear(f"{name}.up", f"{name}.norm"), *linear(f"{name}.down", centred=w)

        self._start = forth("start")
        factor = 1 / math.sqrt(w // self._heads)
        self._readings = []
        for i in range(self._layers):
            name = f"readings.{i}"
            ask = linear(f"{name}.ask", f"{name}.norm", factor)
            out = linear(f"{name}.out", centred=w)
            self._readings.append((ask, out, forth(f"{name}.forth")))
        self._head = linear("head", "norm")
        self._budget = None
        if full["budget"]:
            parts = [weights[f"budget.{i}.{part}"] for i in (0, 2) for part in ("weight", "bias")]
            self._budget = *of_budget, *parts

    def _cast(self, array):
        return np.ascontiguousarray(array, self.dtype)

    def rows(self, X, y, margin=None, largest=np.inf):
        """Observations as :meth:`tokens` wants them: values beside inputs, in one list.

        Numbers beyond ``largest`` count as that.
        """
        D = self.n_features
        rows = np.empty((1, *X.shape[:-1], D + 1 + self.safe))
        rows[0, ..., :D] = X
        rows[0, ..., D] = y
        if self.safe:
            rows[0, ..., D + 1] = margin
        return clipped(rows, largest, self.dtype)

    def tokens(self, rows):
        """What depends on an observation alone.

        Parameters
        ----------
        rows : ndarray of shape (1, n, n_features + 1 + safe)

        Returns
        -------
        ndarray of shape (1, n, token_width)
        """
        W, b, W2, b2 = self._embed
        hidden = _silu(_linear(rows, W, b))
        return _linear(_silu(_linear(hidden, W2, b2)), *self._project)

    def decide(self, budget, tokens, mask=None):
        """See :meth:`Runtime.decide`; one encoder."""
        tokens = tokens[0]
        B, n, _ = tokens.shape
        w, heads = self._width, self._heads
        if mask is None:
            h = np.add.reduce(tokens[..., :w], axis=1)
            root = math.sqrt(n)
        else:
            h = np.matmul(mask[:, None].astype(self.dtype), tokens[..., :w])[:, 0]
            root = np.sqrt(mask.sum(axis=1, keepdims=True)).astype(self.dtype)
        if self._by_root:
            h /= root
        h += self._budget_part(budget)
        self._forth(h, self._start)
        parts = tokens[..., w:].reshape(B, n, 2 * self._layers, heads, w // heads)
        parts = parts.transpose(2, 0, 3, 1, 4)  # of each: (B, heads, n, width of a head)
        for i, (ask, out, forth) in enumerate(self._readings):
            asked = self._of_norm(h, *ask).reshape(B, heads, w // heads, 1)
            scores = np.matmul(parts[2 * i], asked)[..., 0]
            if mask is not None:
                np.copyto(scores, -np.inf, where=~mask[:, None])
            scores -= np.maximum.reduce(scores, axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= np.add.reduce(scores, axis=-1, keepdims=True)
            read = np.matmul(scores[:, :, None], parts[2 * i + 1])
            h += _linear(read.reshape(B, w), *out)
            self._forth(h, forth)
        return self._bounded(self._of_norm(h, *self._head))

    def _of_budget(self, budget):
        """What the budget adds to the state."""
        if self._budget is None:
            return np.zeros(self._width)
        shift, factor, W, b, W2, b2 = self._budget
        part = W2 @ _silu((budget - shift) * factor * W[:, 0] + b) + b2
        return part - part.mean()

    def _of_norm(self, h, W, b):
        """A linear map of the norm of a centred state."""
        variance = np.einsum("bi,bi->b", h, h)[:, None]
        variance *= 1 / self._width
        variance += EPSILON
        result = h @ W
        result /= np.sqrt(variance, out=variance)
        result += b
        return result

    def _forth(self, h, weights):
        """The feed-forward block, added to ``h`` in place."""
        W, b, W2, b2 = weights
        hidden = self._of_norm(h, W, b)
        h += np.maximum(hidden, 0, out=hidden) @ W2
        h += b2


def _linear(x, W, b):
    result = x @ W
    result += b
    return result


def _silu(x):
    """``x / (1 + exp(-x))``, in place."""
    factor = np.minimum(-x, 80)  # beyond, exp would overflow; and the result is nil
    np.exp(factor, out=factor)
    factor += 1
    x /= factor
    return x
