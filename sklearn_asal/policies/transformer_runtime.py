"""The paper's network at deployment, in NumPy."""

import math

import numpy as np

from .architecture import encoders, scaling
from .runtime import EPSILON, Runtime, clipped


class TransformerRuntime(Runtime):
    """Computes what :class:`~sklearn_asal.policies.network.PolicyNetwork` does, rearranged.

    The encoders of outputs and of margins run side by side; constants, and linear maps that
    follow each other, are multiplied beforehand.
    """

    # ---- what is computed once

    def _fold(self, full, weights):
        """Prepare the constants; everything in float64 until the end."""
        names = encoders(full)
        self.token_width = 4 * self._width
        (x_shift, x_scale), of_budget = scaling(full)

        def stack(make):
            return np.ascontiguousarray(np.stack([make(name) for name in names]), self.dtype)

        def linear(name):
            return weights[f"{name}.weight"].T, weights[f"{name}.bias"]

        def embed(name):
            W, b = linear(f"{name}.embed.0")
            W = W.copy()
            W[:-1] *= x_scale
            return W, (b - x_shift * W[:-1].sum(axis=0))[None]

        self._embed = tuple(stack(lambda name, i=i: embed(name)[i]) for i in (0, 1))
        self._embed2 = tuple(
            stack(lambda name, i=i: np.atleast_2d(linear(f"{name}.embed.2")[i])) for i in (0, 1)
        )
        made = [self._fold_layers(full["layers"], name, linear) for name in names]
        self._layers = [
            {
                key: np.ascontiguousarray(np.stack([m[0][i][key] for m in made]), self.dtype)
                for key in made[0][0][i]
            }
            for i in range(full["layers"])
        ]
        # The sum over observations, its linear layer and the head's first layer are one map.
        W, b = linear("decision.0")
        w = self._width
        parts = [W[j * w : (j + 1) * w] for j in range(len(W) // w)]
        pairs = list(zip(names, made, parts, strict=False))
        head, count = [], 0.0
        for name, (_, gain, shift), part in pairs:
            W1, b1 = linear(f"{name}.linear")
            head.append((gain[:, None] * W1) @ part)
            count = count + (shift @ W1 + b1) @ part
        self._head = np.concatenate(head).astype(self.dtype)
        self._per_observation = count.astype(self.dtype)
        self._decision = tuple(
            np.ascontiguousarray(part, self.dtype) for part in linear("decision.2")
        )
        self._bias = b.astype(self.dtype)
        self._budget = None
        if full["budget"]:
            W2, b2 = linear("budget.2")
            self._budget = (*of_budget, *linear("budget.0"), W2 @ parts[-1], b2 @ parts[-1] + b)

    def _fold_layers(self, n_layers, encoder, linear):
        """Layers of one encoder; gain and shift of a norm go to the maps that read its result."""
        w, folded = self._width, []
        gain, shift = np.ones(w), np.zeros(w)
        for i in range(n_layers):
            name = f"{encoder}.layers.{i}"
            W, b = linear(f"{name}.qkv")
            Wo, bo = linear(f"{name}.out")
            W1, b1 = linear(f"{name}.ff1")
            W2, b2 = linear(f"{name}.ff2")
            gain1, shift1 = linear(f"{name}.norm1")
            # Softmax ignores what all keys share, and passes on what all values share.
            full = b + shift @ W
            W = gain[:, None] * W
            factor = 1 / math.sqrt(w // self._heads)
            W[:, :w] *= factor
            folded.append(
                {
                    "qkv": W,
                    "q_bias": (full[:w] * factor)[None],
                    "out": Wo,
                    "gain": gain[None],
                    "shift": (shift + bo + full[2 * w :] @ Wo)[None],
                    "ff1": gain1[:, None] * W1,
                    "ff1_bias": (b1 + shift1 @ W1)[None],
                    "ff2": W2,
                    "gain1": gain1[None],
                    "shift1": (shift1 + b2)[None],
                }
            )
            gain, shift = linear(f"{name}.norm2")
        return folded, gain, shift

    # ---- one answer

    def tokens(self, rows):
        """What depends on an observation alone.

        Parameters
        ----------
        rows : ndarray of shape (n_encoders, n, n_features + 1)
            Inputs of the unit cube with, in the last column, outputs for the first
            encoder and safety margins for the second.

        Returns
        -------
        ndarray of shape (n_encoders, n, 4 * embedding)
            Overwritten by the next call in the same thread.
        """
        w, first = self._width, self._layers[0]
        E, N, _ = rows.shape
        hidden, work, result = self._buffers(E, N)
        np.matmul(rows, self._embed[0], out=hidden)
        hidden += self._embed[1]
        embedded, projected = result[..., :w], result[..., w:]
        np.matmul(_softplus(hidden, work), self._embed2[0], out=embedded)
        embedded += self._embed2[1]
        np.matmul(embedded, first["qkv"], out=projected)
        projected[..., :w] += first["q_bias"]
        embedded += first["shift"]
        return result

    def decide(self, budget, tokens):
        """See :meth:`Runtime.decide`."""
        return self._decide(budget, tokens[:, None])[0]

    def decide_many(self, budget, rows, mask=None):
        """See :meth:`Runtime.decide_many`."""
        E, B, n, width = rows.shape
        tokens = self.tokens(rows.reshape(E, B * n, width))
        return self._decide(budget, tokens.reshape(E, B, n, -1), mask)

    def _decide(self, budget, tokens, mask=None):
        """Of B campaigns, from tokens of shape ``(n_encoders, B, n, token_width)``."""
        try:
            total = self._attend(tokens, mask, careful=False)
        except _Overflow:
            total = self._attend(tokens, mask, careful=True)
        B = tokens.shape[1]
        hidden = total.transpose(1, 0, 2).reshape(B, -1) @ self._head
        count = tokens.shape[2] if mask is None else mask.sum(axis=1, keepdims=True)
        count = np.asarray(count, self.dtype)
        hidden += self._per_observation * count
        if self._by_root:
            hidden /= np.sqrt(np.maximum(count, 1))
        hidden += self._budget_part(budget)
        W, b = self._decision
        h = _softplus(hidden) @ W
        h += b
        return self._bounded(h)

    def rows(self, X, y, margin=None, largest=np.inf):
        """Observations as :meth:`tokens` wants them: values in a last column, once an encoder.

        Numbers beyond ``largest`` count as that.
        """
        rows = np.empty((1 + self.safe, *X.shape[:-1], self.n_features + 1))
        rows[..., :-1] = X
        rows[0, ..., -1] = y
        if self.safe:
            rows[1, ..., -1] = margin
        return clipped(rows, largest, self.dtype)

    def _of_budgets(self, budgets):
        """What each adds to the head's hidden layer."""
        if self._budget is None:
            return np.tile(self._bias, (len(budgets), 1))
        shift, factor, W, b, W2, b2 = self._budget
        hidden = np.logaddexp(0, np.outer((budgets - shift) * factor, W[0]) + b)
        return hidden @ W2 + b2

    def _attend(self, tokens, mask, careful):
        """Sum over observations after the last layer, ``(n_encoders, B, embedding)``."""
        E, B, n, _ = tokens.shape
        w, N = self._width, B * n
        space = self._space(E, B, n)
        flat = tokens.reshape(E, N, 4 * w)
        residual, projected = flat[..., :w], flat[..., w:]
        for i, layer in enumerate(self._layers):
            if i:
                projected = np.matmul(x, layer["qkv"], out=space.projected)  # noqa: F821
                projected[..., :w] += layer["q_bias"]
                np.multiply(x, layer["gain"], out=space.residual)  # noqa: F821
                residual = space.residual
                residual += layer["shift"]
            attended = self._heads_of(projected, space, mask, careful)
            x = np.matmul(attended, layer["out"], out=space.x)
            x += residual
            _normalise(x, space)
            hidden = np.matmul(x, layer["ff1"], out=space.hidden)
            hidden += layer["ff1_bias"]
            np.maximum(hidden, 0, out=hidden)
            out = np.matmul(hidden, layer["ff2"], out=space.square)
            x *= layer["gain1"]
            x += layer["shift1"]
            x += out
            _normalise(x, space)
        weight = space.ones if mask is None else mask[:, None, :].astype(self.dtype)
        return np.matmul(weight, x.reshape(E, B, n, w))[:, :, 0]

    def _heads_of(self, projected, space, mask, careful):
        """Attention, all heads of all encoders and campaigns at once."""
        E, B, heads, n, _ = space.scores.shape
        # (E, B, heads, n, width of a head)
        q, k, v = projected.reshape(E, B, n, 3, heads, -1).transpose(3, 0, 1, 4, 2, 5)
        scores = np.matmul(q, k.swapaxes(-1, -2), out=space.scores)
        if careful:
            if mask is not None:
                np.copyto(scores, -np.inf, where=~mask[:, None, None, :])
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                np.exp(scores, out=scores)
                if mask is not None:
                    scores *= mask[:, None, None, :]
        np.matmul(space.flat_scores, space.column, out=space.flat_total)
        # Without subtracting the largest score, which costs a pass, sums may leave the range.
        if not careful and not (space.total.max() < 1e30 and space.total.min() > 1e-30):
            raise _Overflow
        np.matmul(scores, v, out=space.by_head)
        space.by_head /= space.total
        return space.attended

    def _buffers(self, E, N):
        """Buffers of this thread for :meth:`tokens`; fresh memory would cost page faults."""
        buffers = getattr(self._local, "buffers", None)
        if buffers is None or buffers[0].shape[1] != N:
            widths = self._hidden, self._hidden, 4 * self._width
            buffers = self._local.buffers = [np.empty((E, N, m), self.dtype) for m in widths]
        return buffers

    def _space(self, E, B, n):
        """Buffers of this thread for :meth:`decide`; those of the last shape are kept."""
        space = getattr(self._local, "space", None)
        if space is None or space.shape != (E, B, n):
            space = self._local.space = _Space(self, E, B, n)
        return space


class _Overflow(Exception):
    """Scores too large to exponentiate as they are."""


class _Space:
    """Buffers for one shape of a batch, and the views of them that are needed."""

    def __init__(self, runtime, E, B, n):
        w, heads, dtype, N = runtime._width, runtime._heads, runtime.dtype, B * n
        self.shape = E, B, n
        self.x, self.hidden, self.square, self.residual, self.attended = np.empty(
            (5, E, N, w), dtype
        )
        self.projected = np.empty((E, N, 3 * w), dtype)
        self.scores = np.empty((E, B, heads, n, n), dtype)
        self.total = np.empty((E, B, heads, n, 1), dtype)
        self.flat_scores, self.flat_total = self.scores.reshape(-1, n), self.total.reshape(-1, 1)
        self.by_head = self.attended.reshape(E, B, n, heads, -1).transpose(0, 1, 3, 2, 4)
        self.column, self.ones = np.ones((n, 1), dtype), np.ones((1, n), dtype)
        self.mean = np.empty((E, N, 1), dtype)
        self.average = np.full((w, 1), 1 / w, dtype)


def _normalise(x, space):
    """Zero mean and unit variance of each row, in place."""
    mean = np.matmul(x, space.average, out=space.mean)
    x -= mean
    square = np.multiply(x, x, out=space.square)
    variance = np.matmul(square, space.average, out=space.mean)
    variance += EPSILON
    np.sqrt(variance, out=variance)
    x /= variance


def _softplus(x, out=None):
    """``log(1 + exp(x))``."""
    result = np.minimum(x, 80, out=out)  # beyond, exp would overflow; and the result is x
    np.exp(result, out=result)
    result += 1
    np.log(result, out=result)
    return np.maximum(result, x, out=result)
