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
        self.kept = like.new_empty((2 * n_readings, n_campaigns, heads, n_observations, width))
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
        ctx.memory = memory
        ctx.room = slice(None), slice(B), slice(None), slice(memory.n, memory.n + n)
        room = memory.kept[ctx.room]
        layers, _, heads, _, width = room.shape
        room.copy_(projected.view(B, n, layers, heads, width).permute(2, 0, 3, 1, 4))
        return written.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, _):
        room = ctx.memory.gradient[ctx.room]
        gradient = room.permute(1, 3, 0, 2, 4).clone(memory_format=torch.contiguous_format)
        # The next time it begins at zero again.
        room.zero_()
        return None, gradient.flatten(2), None


class _Look(torch.autograd.Function):
    @staticmethod
    def forward(ctx, written, asked, memory, reading):
        ctx.memory, ctx.reading, ctx.n = memory, reading, memory.n
        asked = asked / math.sqrt(asked.shape[-1])
        keys, values = _parts(memory.kept, reading, len(asked), memory.n)
        weights = torch.matmul(asked, keys.mT).softmax(-1)
        ctx.save_for_backward(asked, weights)
        return torch.matmul(weights, values)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        memory, (asked, weights) = ctx.memory, ctx.saved_tensors
        if memory.gradient is None:
            memory.gradient = torch.zeros_like(memory.kept)
        part = ctx.reading, len(asked), ctx.n
        keys, values = _parts(memory.kept, *part)
        of_keys, of_values = _parts(memory.gradient, *part)
        of_values.addcmul_(weights.mT, gradient)
        of_weights = torch.matmul(gradient, values.mT)
        of_scores = weights * (of_weights - (weights * of_weights).sum(-1, keepdim=True))
        of_keys.addcmul_(of_scores.mT, asked)
        return None, torch.matmul(of_scores, keys) / math.sqrt(asked.shape[-1]), None, None


def _parts(kept, reading, n_campaigns, n):
    """Keys and values, ``(n_campaigns, heads, n, width)`` each."""
    return kept[2 * reading : 2 * reading + 2, :n_campaigns, :, :n].unbind(0)
