"""Campaigns under way: what a network keeps of their observations, and how it adds to it."""

import math

import torch
from torch.autograd.function import once_differentiable


class Campaigns:
    """Campaigns of a network that looks at all its tokens anew at each query.

    Parameters
    ----------
    network : PolicyNetwork
    n_queries : int Tensor of shape (B,)
        Of each campaign in all.
    """

    def __init__(self, network, n_queries):
        self.network, self.n_queries = network, n_queries
        self.tokens = None
        self.t = 0

    def see(self, x, y, z=None):
        """Add observations of the first campaigns, shapes as in ``network.tokens``."""
        new = self.network.tokens(x, y, z)
        if self.tokens is not None:
            old = (token[: len(x)] for token in self.tokens)
            new = tuple(torch.cat(pair, 1) for pair in zip(old, new, strict=True))
        self.tokens = new

    def decide(self, n):
        """The next inputs of the first ``n`` campaigns, ``(n, n_features)``."""
        tokens = tuple(token[:n] for token in self.tokens)
        x = self.network.decide(self.n_queries[:n] - self.t, tokens)
        self.t += 1
        return x


class Memory:
    """Keys and values of campaigns under way, each written once into room that waits for it.

    Joined anew at each query, they and their gradients would be copied every time.

    Parameters
    ----------
    like : Tensor
        Of the same device and dtype.
    n_readings, n_campaigns, heads, n_observations, width : int
        At most so many of each; ``width`` is that of a head.
    """

    def __init__(self, like, n_readings, n_campaigns, heads, n_observations, width):
        # Campaigns and heads last: of small operations, those along contiguous memory are fast.
        self.kept = like.new_empty((n_observations, 2 * n_readings, width, n_campaigns, heads))
        self.gradient = None
        self.n = 0
        # What is looked at depends on it, so that a gradient is complete when it is asked for.
        self.written = like.new_zeros(())

    def write(self, projected):
        """Keep the next observations, ``(B, n, 2 * n_readings * heads * width)``."""
        self.written = _Write.apply(self.written, projected, self)
        self.n += projected.shape[1]

    def look(self, reading, asked):
        """Attention of one state a campaign, ``(B, heads, 1, width)`` to the same shape."""
        return _Look.apply(self.written, asked, self, reading)


class _Write(torch.autograd.Function):
    @staticmethod
    def forward(ctx, written, projected, memory):
        B, n, _ = projected.shape
        ctx.memory, ctx.room = memory, (slice(memory.n, memory.n + n), ..., slice(B), slice(None))
        _, parts, width, _, heads = memory.kept.shape
        projected = projected.view(B, n, parts, heads, width)
        memory.kept[ctx.room] = projected.permute(1, 2, 4, 0, 3)
        return written.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, _):
        room = ctx.memory.gradient[ctx.room]
        gradient = room.permute(3, 0, 1, 4, 2).clone(memory_format=torch.contiguous_format)
        # The next time it begins at zero again.
        room.zero_()
        return None, gradient.flatten(2), None


class _Look(torch.autograd.Function):
    @staticmethod
    def forward(ctx, written, asked, memory, reading):
        ctx.memory, ctx.part = memory, (reading, len(asked), memory.n)
        keys, values = _part(memory.kept, *ctx.part)
        asked = _inside_out(asked) / math.sqrt(asked.shape[-1])
        weights = (asked * keys).sum(1).softmax(0)
        ctx.save_for_backward(asked, weights)
        return _outside_in((weights[:, None] * values).sum(0))

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        memory, (asked, weights) = ctx.memory, ctx.saved_tensors
        if memory.gradient is None:
            memory.gradient = torch.zeros_like(memory.kept)
        keys, values = _part(memory.kept, *ctx.part)
        of_keys, of_values = _part(memory.gradient, *ctx.part)
        gradient = _inside_out(gradient)
        of_values.addcmul_(weights[:, None], gradient)
        of_weights = (gradient * values).sum(1)
        of_scores = weights * (of_weights - (weights * of_weights).sum(0))
        of_keys.addcmul_(of_scores[:, None], asked)
        of_asked = (of_scores[:, None] * keys).sum(0) / math.sqrt(len(asked))
        return None, _outside_in(of_asked), None, None


def _part(kept, reading, n_campaigns, n):
    """Keys and values, ``(n, width, n_campaigns, heads)`` each."""
    return kept[:n, 2 * reading : 2 * reading + 2, :, :n_campaigns].unbind(1)


def _inside_out(x):
    """``(B, heads, 1, width) -> (width, B, heads)``."""
    return x.squeeze(2).permute(2, 0, 1).contiguous()


def _outside_in(x):
    """The inverse."""
    return x.permute(1, 2, 0).unsqueeze(2)
