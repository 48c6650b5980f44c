"""The reading network at deployment, in NumPy."""

import math

import numpy as np
from scipy.linalg import get_blas_funcs

from .architecture import LEADING, leading_points, scaling
from .runtime import EPSILON, ONE, ZERO, Runtime, clipped

# Observations embedded at once: more would fall out of the cache.
_CHUNK = 256


class ReaderRuntime(Runtime):
    """Computes what :class:`~sklearn_asal.policies.reader.ReaderNetwork` does.

    Constants of norms and inputs are multiplied into the linear maps that follow. The state is
    only ever read through norms, which ignore its mean, so whatever is added to it is centred
    beforehand and the norms have no mean to take off.

    One campaign keeps keys and values of its observations, a one at the end of each: what the
    ones of the values add up to is what the sum of the values is to be divided by, and bears a
    bias. Of many campaigns at once none are made: a question is carried to the embedded
    observations, and back comes their average, so that the two projections are multiplied with
    once a campaign instead of once an observation.
    """

    def _fold(self, full, weights):
        """Prepare the constants; everything in float64 until the end."""
        w, layers, heads = self._width, full["layers"], self._heads
        self.token_width = w + 2 * layers * (w + heads)
        # So that weights are read, and calls made, for more than a few campaigns.
        self.batch = 2**18 // w
        (x_shift, x_scale), of_budget = scaling(full)
        # y = alpha A x + beta y, all in one call.
        (self._gemv,) = get_blas_funcs(("gemv",), dtype=self.dtype)

        def linear(name, norm=None, factor=1.0, centred=0):
            """Weight and bias, after the gain and shift of a norm; the first outputs centred."""
            W, b = weights[f"{name}.weight"].T.copy(), weights[f"{name}.bias"].copy()
            if norm is not None:
                b += weights[f"{norm}.bias"] @ W
                W *= weights[f"{norm}.weight"][:, None]
            if centred:
                W[:, :centred] -= W[:, :centred].mean(axis=1, keepdims=True)
                b[:centred] -= b[:centred].mean()
            return W * factor, b * factor

        def ended(array, number):
            """With a number more at the end of each head's part."""
            parts = array.reshape(*array.shape[:-1], -1, w // heads)
            return np.insert(parts, w // heads, number, axis=-1).reshape(*array.shape[:-1], -1)

        W, b = weights["embed.0.weight"].T.copy(), weights["embed.0.bias"]
        inputs = W[: self.n_features]
        inputs *= x_scale
        b = b - x_shift * inputs.sum(axis=0)
        # Of what is embedded each layer gives the negative, see _embedded.
        W2, b2 = linear("embed.2")
        self._embed = self._cast(-np.vstack([W, b]), W2, -b2)
        W, b = linear("project", centred=w)
        W = -W
        self._project = self._cast(
            np.hstack([W[:, :w], ended(W[:, w:], 0.0)]), np.hstack([b[:w], ended(b[w:], 1.0)])
        )
        self._summand = self._cast(W[:, :w], b[:w])

        def forth(name):
            """Of a feed-forward block; a last hidden unit, always one, bears the second bias."""
            W, b = linear(f"{name}.up", f"{name}.norm")
            W2, b2 = linear(f"{name}.down", centred=w)
            W = np.column_stack([W, np.zeros(w)])
            return self._cast(W, np.append(b, 1.0), np.vstack([W2, b2]))

        self._start = forth("start")
        factor = 1 / math.sqrt(w // heads)
        self._readings = []
        for i in range(layers):
            name, first = f"readings.{i}", w * (1 + 2 * i)
            # (heads, width, width of a head)
            keys, values = (
                W[:, start : start + w].reshape(w, heads, -1).transpose(1, 0, 2)
                for start in (first, first + w)
            )
            ask = linear(f"{name}.ask", f"{name}.norm", factor)
            out, b_out = linear(f"{name}.out", centred=w)
            b_read = b[first + w : first + 2 * w] @ out + b_out
            # The first head's one, divided by itself, brings the bias.
            ended_out = ended(out.T, 0.0).T
            ended_out[w // heads] = b_out
            self._readings.append(
                (
                    self._cast(*(ended(part, 0.0) for part in ask), ended_out),
                    self._cast(*ask, keys.transpose(0, 2, 1), values, out, b_read),
                    forth(f"{name}.forth"),
                )
            )
        self._head = self._cast(*linear("head", "norm"))
        self._lead = None
        if full["lead"]:
            points = leading_points(self.n_features)
            hidden = -_negative_silu(-_linear(math.sqrt(3) * points, *linear("follow.0")))
            part = _linear(hidden, *linear("follow.2", centred=w))
            # What each adds to the state, and what to the next input.
            self._lead = self._cast(part, weights["lead"] * points)
        self._budget = None
        if full["budget"]:
            parts = [weights[f"budget.{i}.{part}"] for i in (0, 2) for part in ("weight", "bias")]
            self._budget = *of_budget, *parts

    def _cast(self, *arrays):
        return tuple(np.ascontiguousarray(array, self.dtype) for array in arrays)

    def rows(self, X, y, margin=None, largest=np.inf):
        """Observations as :meth:`tokens` wants them: inputs, values, and a one for the bias.

        Numbers beyond ``largest`` count as that.
        """
        D = self.n_features
        rows = np.empty((1, *X.shape[:-1], D + 2 + self.safe))
        rows[..., -1] = 1
        rows[0, ..., :D] = X
        rows[0, ..., D] = y
        if self.safe:
            rows[0, ..., D + 1] = margin
        return clipped(rows, largest, self.dtype)

    def tokens(self, rows):
        """What depends on an observation alone: its summand, and keys and values.

        Parameters
        ----------
        rows : ndarray of shape (1, n, n_features + 2 + safe)

        Returns
        -------
        ndarray of shape (1, n, token_width)
        """
        return _linear(self._embedded(rows[0]), *self._project)[None]

    def _embedded(self, rows):
        """``-silu(x)`` of the embedding x, from ``-x``, which saves to negate it."""
        W, W2, b2 = self._embed
        embedded = np.empty((len(rows), self._width), self.dtype)
        with np.errstate(over="ignore"):  # of exp, where the result is nil
            for i in range(0, len(rows), _CHUNK):
                part = embedded[i : i + _CHUNK]
                hidden, factor = self._buffers(len(part))
                np.matmul(rows[i : i + _CHUNK], W, out=hidden)
                np.matmul(_negative_silu(hidden, factor), W2, out=part)
                part += b2
                _negative_silu(part)
        return embedded

    def _buffers(self, n):
        """Two of this thread, for hidden units; fresh memory would cost page faults."""
        buffers = getattr(self._local, "buffers", None)
        if buffers is None:
            buffers = self._local.buffers = np.empty((2, _CHUNK, self._hidden), self.dtype)
        return buffers[:, :n]

    def decide(self, budget, tokens):
        """See :meth:`Runtime.decide`."""
        tokens = tokens[0]
        n, _ = tokens.shape
        w, heads = self._width, self._heads
        h = np.add.reduce(tokens[:, :w])
        if self._by_root:
            h *= 1 / math.sqrt(n)
        h += self._budget_part(budget)
        if self._lead is not None:
            h += self._lead[0][n % LEADING]
        h = self._forth(h, *self._start)
        parts = tokens[:, w:].reshape(n, -1, heads, w // heads + 1)
        parts = parts.transpose(1, 2, 0, 3)  # of each: (heads, n, width of a head and one)
        for i, ((W, b, out), _, forth) in enumerate(self._readings):
            asked = self._of_norm(h, W, b).reshape(heads, 1, -1)
            scores = np.matmul(asked, parts[2 * i].transpose(0, 2, 1))
            scores -= np.maximum.reduce(scores, axis=2, keepdims=True)
            read = np.matmul(np.exp(scores, out=scores), parts[2 * i + 1])
            read = (read / read[..., -1:]).reshape(-1)
            h = self._gemv(1.0, out.T, read, 1.0, h, overwrite_y=True)
            h = self._forth(h, *forth)
        h = self._of_norm(h, *self._head)
        if self._lead is not None:
            h += self._lead[1][n % LEADING]
        return self._bounded(h)

    def _of_norm(self, h, W, b):
        """A linear map of the norm of a centred state."""
        factor = 1 / math.sqrt(float(h.dot(h)) / self._width + EPSILON)
        return self._gemv(factor, W.T, h, 1.0, b)

    def _forth(self, h, W, b, W2):
        """The feed-forward block, added to ``h`` in place."""
        hidden = self._of_norm(h, W, b)
        np.maximum(hidden, ZERO, out=hidden)
        return self._gemv(1.0, W2.T, hidden, 1.0, h, overwrite_y=True)

    def decide_many(self, budget, rows, mask=None):
        """See :meth:`Runtime.decide_many`."""
        _, B, n, width = rows.shape
        w, heads = self._width, self._heads
        embedded = self._embedded(rows.reshape(B * n, width)).reshape(B, n, w)
        if mask is None:
            real, count = np.ones((1, n), self.dtype), np.full((B, 1), n)
        else:
            real, count = mask[:, None].astype(self.dtype), mask.sum(axis=1, keepdims=True)
        total = np.matmul(real, embedded)[:, 0]
        point = count[:, 0] % LEADING
        count = count.astype(self.dtype)
        W, b = self._summand
        h = total @ W
        h += count * b
        if self._by_root:
            h /= np.sqrt(count)
        h += self._budget_part(budget)
        if self._lead is not None:
            h += self._lead[0][point]
        self._forth_many(h, *self._start)
        for _, (W, b, keys, values, out, b_read), forth in self._readings:
            asked = _of_norms(h, W, b).reshape(B, heads, -1).transpose(1, 0, 2)
            # What all keys share is of no consequence to the softmax, hence no bias.
            asked = np.ascontiguousarray(np.matmul(asked, keys).transpose(1, 0, 2))
            scores = np.matmul(asked, embedded.transpose(0, 2, 1))  # (B, heads, n)
            if mask is not None:
                np.copyto(scores, -np.inf, where=~mask[:, None])
            scores -= np.maximum.reduce(scores, axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= np.add.reduce(scores, axis=-1, keepdims=True)
            average = np.matmul(scores, embedded).transpose(1, 0, 2)
            read = np.matmul(average, values).transpose(1, 0, 2).reshape(B, w)
            h += _linear(read, out, b_read)
            self._forth_many(h, *forth)
        h = _of_norms(h, *self._head)
        if self._lead is not None:
            h += self._lead[1][point]
        return self._bounded(h)

    def _forth_many(self, h, W, b, W2):
        hidden = _of_norms(h, W, b)
        h += np.maximum(hidden, ZERO, out=hidden) @ W2

    def _of_budgets(self, budgets):
        """What each adds to the state."""
        if self._budget is None:
            return np.zeros((len(budgets), self._width))
        shift, factor, W, b, W2, b2 = self._budget
        hidden = -(np.outer((budgets - shift) * factor, W[:, 0]) + b)
        part = b2 - _negative_silu(hidden) @ W2.T
        return part - part.mean(axis=1, keepdims=True)


def _of_norms(h, W, b):
    """A linear map of the norms of centred states, one a row."""
    variance = np.einsum("bi,bi->b", h, h)[:, None]
    variance *= 1 / h.shape[1]
    variance += EPSILON
    result = h @ W
    result /= np.sqrt(variance, out=variance)
    result += b
    return result


def _linear(x, W, b):
    result = x @ W
    result += b
    return result


def _negative_silu(x, factor=None):
    """``x / (1 + exp(x))``, in place; ``factor`` is memory to work in."""
    factor = np.exp(x, out=factor)
    factor += ONE
    x /= factor
    return x
