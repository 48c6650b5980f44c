"""The reader network at deployment, in NumPy and without torch."""

import functools
import math
import threading

import numpy as np
from scipy.linalg import get_blas_funcs

from .architecture import N_ANCHORS, scaling, sobol_anchors
from .runtime import Runtime, clipped

# Observations embedded at once: more would fall out of the cache.
_CHUNK = 256
_MEMO = 1024  # budgets remembered at most
_FEW = 16  # observations that are embedded as quickly one by one
EPSILON = 1e-5  # of torch's LayerNorm
# As arrays: NumPy takes half a microsecond to make one of a plain number.
ZERO, HALF, ONE, MINUS_ONE = np.array([0, 0.5, 1, -1], np.float32)[:, None]


def _quietly(method):
    """Of exp, zero and infinity are as good as the result, whatever the host's ``np.seterr``."""

    @functools.wraps(method)
    def quiet(*args, **kwargs):
        with np.errstate(over="ignore", under="ignore"):
            return method(*args, **kwargs)

    return quiet


def _clip(h):
    np.maximum(h, MINUS_ONE, out=h)
    return np.minimum(h, ONE, out=h)


_OUTPUTS = {"clip": _clip, "tanh": np.tanh}


class ReaderRuntime(Runtime):
    """Computes what :class:`~sklearn_asal.policies.reader.ReaderNetwork` does.

    Constants of norms and inputs are multiplied into the linear maps that follow. The state is
    only ever read through norms, which ignore its mean, so whatever is added to it is centred
    beforehand and the norms have no mean to take off.

    One campaign keeps keys and values of its observations, a one at the end of each: what the
    ones of the values add up to is what the sum of the values is to be divided by, and bears a
    bias. Of many campaigns at once none are made: a query is carried to the embedded
    observations, and back comes their average, so that the two projections are multiplied with
    once a campaign instead of once an observation.

    Parameters
    ----------
    architecture, weights, dtype
        See :class:`~sklearn_asal.policies.runtime.Runtime`, also for the attributes.
    """

    @_quietly
    def __init__(self, architecture, weights, dtype=np.float32):
        super().__init__(architecture, weights, dtype)
        full = self.architecture
        self._width, self._hidden, self._heads = (
            full[key] for key in ("embedding", "hidden", "heads")
        )
        self._output, self._lags = _OUTPUTS[full["output"]], full["lags"]
        self._by_root = full["pooling"] == "sqrt"
        self.token_width = self._width + 2 * full["layers"] * (self._width + self._heads)
        # So that weights are read, and calls made, for more than a few campaigns.
        self.batch = 2**18 // self._width
        # y = alpha A x + beta y, all in one call.
        (self._gemv,) = get_blas_funcs(("gemv",), dtype=self.dtype)
        self._fold({name: np.asarray(value, np.float64) for name, value in weights.items()})
        # Those of training at once; a campaign meets each but one time.
        budgets = np.arange(1.0, 1 + min(full["max_budget"], _MEMO))
        parts = self._of_budgets(budgets).astype(self.dtype)
        self._budgets = dict(zip(budgets.tolist(), parts, strict=True))
        self._local = threading.local()

    def _fold(self, weights):
        """Prepare the constants; everything in float64 until the end."""
        full, w, heads = self.architecture, self._width, self._heads
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

        def feed_forward(name):
            """Of a feed-forward block; a last hidden unit, always one, bears the second bias."""
            W, b = linear(f"{name}.up", f"{name}.norm")
            W2, b2 = linear(f"{name}.down", centred=w)
            W = np.column_stack([W, np.zeros(w)])
            return self._cast(W, np.append(b, 1.0), np.vstack([W2, b2]))

        self._start = feed_forward("start")
        factor = 1 / math.sqrt(w // heads)
        self._layers = []
        for i in range(full["layers"]):
            name, first = f"readings.{i}", w * (1 + 2 * i)
            # (heads, width, width of a head)
            keys, values = (
                W[:, start : start + w].reshape(w, heads, -1).transpose(1, 0, 2)
                for start in (first, first + w)
            )
            query = linear(f"{name}.ask", f"{name}.norm", factor)
            out, b_out = linear(f"{name}.out", centred=w)
            b_context = b[first + w : first + 2 * w] @ out + b_out
            # The first head's one, divided by itself, brings the bias.
            ended_out = ended(out.T, 0.0).T
            ended_out[w // heads] = b_out
            self._layers.append(
                (
                    self._cast(*(ended(part, 0.0) for part in query), ended_out),
                    self._cast(*query, keys.transpose(0, 2, 1), values, out, b_context),
                    feed_forward(f"{name}.forth"),
                )
            )
        self._head = self._cast(*linear("head", "norm"))
        self._anchors = None
        if full["lead"]:
            anchors = sobol_anchors(self.n_features)
            hidden = -_negative_silu(-_linear(math.sqrt(3) * anchors, *linear("follow.0")))
            part = _linear(hidden, *linear("follow.2", centred=w))
            # What each adds to the state, and what to the next input.
            self._anchors = self._cast(part, weights["lead"] * anchors)
        self._budget = None
        if full["budget"]:
            parts = [weights[f"budget.{i}.{part}"] for i in (0, 2) for part in ("weight", "bias")]
            self._budget = *of_budget, *parts

    def _cast(self, *arrays):
        return tuple(np.ascontiguousarray(array, self.dtype) for array in arrays)

    def rows(self, X, y, margin=None, largest=np.inf):
        """See :meth:`Runtime.rows`; inputs, values, and a one for the bias."""
        D = self.n_features
        rows = np.empty((1, *X.shape[:-1], D + 2 + self.safe))
        rows[..., -1] = 1
        rows[0, ..., :D] = X
        rows[0, ..., D] = y
        if self.safe:
            rows[0, ..., D + 1] = margin
        return clipped(rows, largest, self.dtype)

    @_quietly
    def tokens(self, rows):
        """See :meth:`Runtime.tokens`; summand, and keys and values."""
        if rows.shape[1] <= _FEW:
            return self.tokens_singly(rows)
        return _linear(self._embedded(rows[0]), *self._project)[None]

    @_quietly
    def tokens_singly(self, rows):
        """See :meth:`Runtime.tokens_singly`."""
        # A stack of vectors times a matrix each: BLAS sees one row at a time.
        embedded = self._embedded(rows[0][:, None])
        return _linear(embedded, *self._project)[None, :, 0]

    def _embedded(self, rows):
        """``-silu(x)`` of the embedding x, from ``-x``, which saves to negate it."""
        W, W2, b2 = self._embed
        embedded = np.empty((*rows.shape[:-1], self._width), self.dtype)
        for i in range(0, len(rows), _CHUNK):
            part = embedded[i : i + _CHUNK]
            hidden, factor = self._buffers(*part.shape[:-1])
            np.matmul(rows[i : i + _CHUNK], W, out=hidden)
            np.matmul(_negative_silu(hidden, factor), W2, out=part)
            part += b2
            _negative_silu(part)
        return embedded

    def _buffers(self, n, *one):
        """Two of this thread, for hidden units; fresh memory would cost page faults."""
        buffers = getattr(self._local, "buffers", None)
        if buffers is None:
            buffers = self._local.buffers = np.empty((2, _CHUNK, self._hidden), self.dtype)
        return buffers[:, :n].reshape(2, n, *one, -1)

    @_quietly
    def decide(self, budget, tokens):
        """See :meth:`Runtime.decide`."""
        tokens = tokens[0]
        n, _ = tokens.shape
        w, heads = self._width, self._heads
        h = np.add.reduce(tokens[:, :w])
        if self._by_root:
            h *= 1 / math.sqrt(n)
        h += self._budget_part(budget)
        if self._anchors is not None:
            h += self._anchors[0][n % N_ANCHORS]
        h = self._feed_forward(h, *self._start)
        parts = tokens[:, w:].reshape(n, -1, heads, w // heads + 1)
        parts = parts.transpose(1, 2, 0, 3)  # of each: (heads, n, width of a head and one)
        for i, ((W, b, out), _, feed_forward) in enumerate(self._layers):
            query = self._of_norm(h, W, b).reshape(heads, 1, -1)
            scores = np.matmul(query, parts[2 * i].transpose(0, 2, 1))
            scores -= np.maximum.reduce(scores, axis=2, keepdims=True)
            context = np.matmul(np.exp(scores, out=scores), parts[2 * i + 1])
            context = (context / context[..., -1:]).reshape(-1)
            h = self._gemv(1.0, out.T, context, 1.0, h, overwrite_y=True)
            h = self._feed_forward(h, *feed_forward)
        h = self._of_norm(h, *self._head)
        if self._anchors is not None:
            h += self._anchors[1][n % N_ANCHORS]
        return self._bounded(h)

    def _of_norm(self, h, W, b):
        """A linear map of the norm of a centred state."""
        factor = 1 / math.sqrt(float(h.dot(h)) / self._width + EPSILON)
        return self._gemv(factor, W.T, h, 1.0, b)

    def _feed_forward(self, h, W, b, W2):
        """The feed-forward block, added to ``h`` in place."""
        hidden = self._of_norm(h, W, b)
        np.maximum(hidden, ZERO, out=hidden)
        return self._gemv(1.0, W2.T, hidden, 1.0, h, overwrite_y=True)

    @_quietly
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
        anchor = count[:, 0] % N_ANCHORS
        count = count.astype(self.dtype)
        W, b = self._summand
        h = total @ W
        h += count * b
        if self._by_root:
            h /= np.sqrt(count)
        h += self._budget_part(budget)
        if self._anchors is not None:
            h += self._anchors[0][anchor]
        self._feed_forward_many(h, *self._start)
        for _, (W, b, keys, values, out, b_context), feed_forward in self._layers:
            query = _of_norms(h, W, b).reshape(B, heads, -1).transpose(1, 0, 2)
            # What all keys share is of no consequence to the softmax, hence no bias.
            query = np.ascontiguousarray(np.matmul(query, keys).transpose(1, 0, 2))
            scores = np.matmul(query, embedded.transpose(0, 2, 1))  # (B, heads, n)
            if mask is not None:
                np.copyto(scores, -np.inf, where=~mask[:, None])
            scores -= np.maximum.reduce(scores, axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= np.add.reduce(scores, axis=-1, keepdims=True)
            average = np.matmul(scores, embedded).transpose(1, 0, 2)
            context = np.matmul(average, values).transpose(1, 0, 2).reshape(B, w)
            h += _linear(context, out, b_context)
            self._feed_forward_many(h, *feed_forward)
        h = _of_norms(h, *self._head)
        if self._anchors is not None:
            h += self._anchors[1][anchor]
        return self._bounded(h)

    def _feed_forward_many(self, h, W, b, W2):
        hidden = _of_norms(h, W, b)
        h += np.maximum(hidden, ZERO, out=hidden) @ W2

    def _bounded(self, h):
        """The next input from the output of the last linear layer, in place."""
        h = self._output(h)
        h *= HALF
        h += HALF
        for later, earlier, step in self._lags:
            start = h[..., earlier]
            low, high = np.maximum(start - step, 0), np.minimum(start + step, 1)
            h[..., later] = np.minimum(np.maximum(h[..., later], low), high)
        return h

    def _budget_part(self, budget):
        """What the budget adds, of shape (m,), or (B, m) for an array of budgets."""
        if isinstance(budget, np.ndarray):
            each, where = np.unique(budget, return_inverse=True)
            return np.array([self._budget_part(one) for one in each.tolist()])[where]
        part = self._budgets.get(budget)
        if part is None:
            part = self._of_budgets(np.array([budget]))[0].astype(self.dtype)
            if len(self._budgets) < _MEMO:
                self._budgets[budget] = part
        return part

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
