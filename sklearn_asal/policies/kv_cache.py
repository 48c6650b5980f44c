"""Keys and values of campaigns under way, kept while a policy is trained through its rollout."""

import math

import torch
from torch.autograd.function import once_differentiable


class KVCache:
    """KV cache of preallocated memory, with gradients.

    Joined anew at each query, keys, values and their gradients would be copied every time.

    Parameters
    ----------
    like : Tensor
        Of the same device and dtype.
    n_layers, n_campaigns, heads, n_observations, width : int
        At most so many of each; ``width`` is that of a head.
    """

    def __init__(self, like, n_layers, n_campaigns, heads, n_observations, width):
        # Campaigns and heads last: of small operations, those along contiguous memory are fast.
        self.kept = like.new_empty((n_observations, 2 * n_layers, width, n_campaigns, heads))
        self.gradient = None
        self.n = 0
        # What attends depends on it, so that a gradient is complete when it is asked for.
        self.written = like.new_zeros(())

    def write(self, projected):
        """Append the keys and values of the next observations of the first campaigns.

        Parameters
        ----------
        projected : Tensor of shape (B, n, 2 * n_layers * heads * width)
        """
        self.written = _Write.apply(self.written, projected, self)
        self.n += projected.shape[1]

    def attend(self, layer, query):
        """Scaled dot-product attention of one query a campaign.

        Parameters
        ----------
        layer : int
        query : Tensor of shape (B, heads, 1, width)
            Of the first campaigns.

        Returns
        -------
        Tensor of shape (B, heads, 1, width)
        """
        return _Attend.apply(self.written, query, self, layer)


class _Write(torch.autograd.Function):
    @staticmethod
    def forward(ctx, written, projected, cache):
        B, n, _ = projected.shape
        ctx.cache, ctx.place = cache, (slice(cache.n, cache.n + n), ..., slice(B), slice(None))
        _, parts, width, _, heads = cache.kept.shape
        projected = projected.view(B, n, parts, heads, width)
        cache.kept[ctx.place] = projected.permute(1, 2, 4, 0, 3)
        return written.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, _):
        place = ctx.cache.gradient[ctx.place]
        gradient = place.permute(3, 0, 1, 4, 2).clone(memory_format=torch.contiguous_format)
        # The next backward pass begins at zero again.
        place.zero_()
        return None, gradient.flatten(2), None


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, written, query, cache, layer):
        ctx.cache, ctx.part = cache, (layer, len(query), cache.n)
        keys, values = _part(cache.kept, *ctx.part)
        query = _campaigns_last(query) / math.sqrt(query.shape[-1])
        weights = (query * keys).sum(1).softmax(0)
        ctx.save_for_backward(query, weights)
        return _campaigns_first((weights[:, None] * values).sum(0))

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        cache, (query, weights) = ctx.cache, ctx.saved_tensors
        if cache.gradient is None:
            cache.gradient = torch.zeros_like(cache.kept)
        keys, values = _part(cache.kept, *ctx.part)
        of_keys, of_values = _part(cache.gradient, *ctx.part)
        gradient = _campaigns_last(gradient)
        of_values.addcmul_(weights[:, None], gradient)
        of_weights = (gradient * values).sum(1)
        of_scores = weights * (of_weights - (weights * of_weights).sum(0))
        of_keys.addcmul_(of_scores[:, None], query)
        of_query = (of_scores[:, None] * keys).sum(0) / math.sqrt(len(query))
        return None, _campaigns_first(of_query), None, None


def _part(kept, layer, n_campaigns, n):
    """Keys and values, ``(n, width, n_campaigns, heads)`` each."""
    return kept[:n, 2 * layer : 2 * layer + 2, :, :n_campaigns].unbind(1)


def _campaigns_last(x):
    """``(B, heads, 1, width) -> (width, B, heads)``."""
    return x.squeeze(2).permute(2, 0, 1).contiguous()


def _campaigns_first(x):
    """The inverse."""
    return x.permute(1, 2, 0).unsqueeze(2)
