"""A policy network of cross-attention: cost proportional to the number of observations."""

import functools
import math

import torch
from torch import nn
from torch.nn import functional as F

from .architecture import N_ANCHORS, complete, scaling, sobol_anchors
from .kv_cache import KVCache
from .layers import LayerNorm, Linear, bounded, mlp


class FeedForward(nn.Module):
    """Pre-norm feed-forward block, ``h + down(relu(up(norm(h))))``.

    Parameters
    ----------
    embedding, hidden : int
        Widths.
    """

    def __init__(self, embedding, hidden):
        super().__init__()
        self.norm = LayerNorm(embedding)
        self.up = Linear(embedding, hidden)
        self.down = Linear(hidden, embedding)

    def forward(self, h):
        """Apply the block.

        Parameters
        ----------
        h : Tensor of shape (..., embedding)

        Returns
        -------
        Tensor of shape (..., embedding)
        """
        return h + self.down(F.relu(self.up(self.norm(h))))


class Reading(nn.Module):
    """Pre-norm cross-attention layer: the state queries the observations.

    Parameters
    ----------
    embedding, hidden, heads : int
        Widths, and number of attention heads.
    """

    def __init__(self, embedding, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm = LayerNorm(embedding)
        self.ask = Linear(embedding, embedding)  # projection of the query
        self.out = Linear(embedding, embedding)
        self.forth = FeedForward(embedding, hidden)

    def forward(self, h, attend):
        """Apply the layer.

        Parameters
        ----------
        h : Tensor of shape (B, T, embedding)
            States, each of which attends on its own.
        attend : callable
            Attention to keys and values, ``(B, heads, T, embedding / heads)`` to the same shape.

        Returns
        -------
        Tensor of shape (B, T, embedding)
        """
        B, T, width = h.shape
        query = self.ask(self.norm(h)).view(B, T, self.heads, -1).transpose(1, 2)
        return self.forth(h + self.out(attend(query).transpose(1, 2).reshape(B, T, width)))


class ReaderNetwork(nn.Module):
    """The (safe) active learning policy :math:`\\phi(T - t, D_t) = x_{t+1}` by cross-attention.

    In the paper's network every observation attends to every other one, anew at each query. Here
    an observation (input, output, margin) is embedded once, into a summand, keys and values. The
    sum of the summands and the remaining budget make a state; the state attends to the
    observations in ``layers`` layers, and is the next input after a last linear map. A query costs
    time proportional to the number of observations, not to its square, the queries of a whole
    campaign can be computed at once (:meth:`replay`), and it learns in fewer steps, see
    ``docs/training.md``.

    Parameters
    ----------
    n_features, safe, budget, pooling, output, lags, max_budget, standardize, centre_gain
        See :class:`~sklearn_asal.policies.transformer.TransformerNetwork`.
    lead : bool, default=False
        Whether there are Sobol anchors: the state also knows the next point of the Sobol
        sequence, and the next input is an offset from it as far as it learns to. In many
        dimensions a policy has to scatter its queries and cannot invent that.
    lead_reach : float, default=1.0
        How much of each axis the anchors cover around the centre before training.
    embedding : int, default=128
        Width of the state, of keys and of values.
    hidden : int, default=256
        Width of all hidden layers.
    heads : int, default=8
        Of each layer.
    layers : int, default=2
        Number of cross-attention layers.
    """

    def __init__(
        self,
        n_features,
        safe=True,
        budget=True,
        *,
        centre_gain=0.05,
        lead_reach=1.0,
        **architecture,
    ):
        super().__init__()
        self.architecture = full = complete(
            dict(architecture, kind="reader", n_features=n_features, safe=safe, budget=budget)
        )
        embedding, hidden, layers = full["embedding"], full["hidden"], full["layers"]
        self.n_features, self.safe = n_features, safe
        self.width, self.heads = embedding, full["heads"]
        (self.x_shift, self.x_scale), (self.budget_shift, self.budget_scale) = scaling(full)
        self.embed = mlp(n_features + 1 + safe, hidden, embedding, nn.SiLU)
        self.project = Linear(embedding, embedding * (1 + 2 * layers))
        self.budget = mlp(1, hidden, embedding, nn.SiLU) if budget else None
        # The encoder of an anchor, and the anchor's weight in the next input.
        self.follow = self.lead = None
        if full["lead"]:
            anchors = torch.as_tensor(sobol_anchors(n_features), dtype=torch.float32)
            self.register_buffer("anchors", anchors, persistent=False)
            self.follow = mlp(n_features, hidden, embedding, nn.SiLU)
            # The first queries of an untrained policy are the anchors themselves.
            self.lead = nn.Parameter(torch.full_like(anchors[0], lead_reach))
        self.start = FeedForward(embedding, hidden)
        self.readings = nn.ModuleList(Reading(embedding, hidden, self.heads) for _ in range(layers))
        self.norm = LayerNorm(embedding)
        self.head = Linear(embedding, n_features)
        with torch.no_grad():
            self.head.weight.mul_(centre_gain)
            self.head.bias.mul_(centre_gain)

    def tokens(self, x, y, z=None):
        """What is kept of each observation.

        Parameters
        ----------
        x, y, z
            See ``TransformerNetwork.tokens``.

        Returns
        -------
        tuple of one Tensor of shape (B, n, embedding * (1 + 2 * layers))
            Summand, then key and value for each layer; concatenate along ``n``.
        """
        x = (x - self.x_shift) * self.x_scale
        values = (y, z) if self.safe else (y,)
        rows = torch.cat([x, *(value.unsqueeze(-1) for value in values)], -1)
        return (self.project(F.silu(self.embed(rows))),)

    def decide(self, budget, tokens, mask=None):
        """The next input from :meth:`tokens`.

        Parameters
        ----------
        budget, tokens, mask
            See ``TransformerNetwork.decide``.

        Returns
        -------
        Tensor of shape (B, n_features)
            Inside the unit cube.
        """
        (tokens,) = tokens
        summands = tokens[..., : self.width]
        if mask is None:
            total = summands.sum(1)
            known = torch.full_like(budget, tokens.shape[1], dtype=torch.int64)
        else:
            total = (summands * mask.unsqueeze(-1)).sum(1)
            known, mask = mask.sum(1), mask[:, None, None, :]
        factor, summand, anchor = self._of_number(known[:, None])
        if self.budget is not None:
            summand = summand + self._of_budget(budget[:, None])
        state = total[:, None] * factor + summand
        return self._head(state, anchor, self._attentions(tokens, mask))[:, 0]

    def campaigns(self, n_queries, n_init, longest):
        """Campaigns about to begin.

        Parameters
        ----------
        n_queries : int Tensor of shape (B,)
            Of each campaign, in descending order.
        n_init, longest : int
            Number of initial observations, and the largest of ``n_queries``.

        Returns
        -------
        object
            Its ``see`` takes observations of the first campaigns like :meth:`tokens`, and its
            ``decide(n)`` returns the next inputs of the first ``n``.
        """
        return _Campaigns(self, n_queries, n_init, longest)

    def replay(self, n_queries, n_init, longest, tokens):
        """All decisions of finished campaigns at once, each from what was known at its time.

        Parameters
        ----------
        n_queries, n_init, longest
            As in :meth:`campaigns`. A campaign's decisions after its last are of no meaning.
        tokens : tuple of Tensor
            Of the initial observations and at least ``longest - 1`` queried ones.

        Returns
        -------
        Tensor of shape (B, longest, n_features)
        """
        (tokens,) = tokens
        known = torch.arange(n_init, n_init + longest, device=tokens.device)
        total = tokens[..., : self.width].cumsum(1)[:, known - 1]
        causal = torch.arange(tokens.shape[1], device=tokens.device) < known[:, None]
        factor, summand, anchor = self.plan(n_queries, n_init, longest)
        return self._head(total * factor + summand, anchor, self._attentions(tokens, causal))

    def forward(self, budget, X, y, z=None, mask=None):
        """The next input from the raw observations.

        Parameters
        ----------
        budget, X, y, z, mask
            See ``TransformerNetwork.tokens`` and ``TransformerNetwork.decide``.

        Returns
        -------
        Tensor of shape (B, n_features)
            Inside the unit cube.
        """
        return self.decide(budget, self.tokens(X, y, z), mask)

    def plan(self, n_queries, n_init, longest):
        """The part of the decisions that does not depend on what is observed.

        Parameters
        ----------
        n_queries, n_init, longest
            As in :meth:`campaigns`.

        Returns
        -------
        factor, summand, anchor : Tensor of shape (T, 1), (B, T, embedding) and (T, n_features)
            Of the state, and of the next input.
        """
        t = torch.arange(longest, device=n_queries.device)
        factor, summand, anchor = self._of_number(n_init + t)
        summand = summand.expand(len(n_queries), longest, -1)
        if self.budget is not None:
            # Budgets are few, and each is encoded once.
            left = (n_queries[:, None] - t).clamp_min(1)
            encoded = self._of_budget(t + 1).index_select(0, left.flatten() - 1)
            summand = summand + encoded.view_as(summand)
        return factor, summand, anchor

    def _of_number(self, known):
        """Factor and summand of the state, anchor of the input, by number of observations."""
        dtype = self.head.weight.dtype
        factor = torch.ones_like(known, dtype=dtype).unsqueeze(-1)
        if self.architecture["pooling"] == "sqrt":
            factor = known.unsqueeze(-1).to(dtype).rsqrt()
        if self.follow is None:
            return factor, factor.new_zeros(self.width), factor.new_zeros(self.n_features)
        anchor = self.anchors[known % N_ANCHORS].to(dtype)
        # Standardised like an input.
        return factor, self.follow(math.sqrt(3) * anchor), self.lead * anchor

    def _of_budget(self, budget):
        """Summand of the state."""
        budget = budget.to(self.head.weight.dtype)
        return self.budget(((budget - self.budget_shift) * self.budget_scale).unsqueeze(-1))

    def _attentions(self, tokens, mask):
        """For each layer, attention to all tokens but those that are masked."""
        B, n, _ = tokens.shape
        parts = tokens[..., self.width :].view(B, n, -1, self.heads, self.width // self.heads)
        parts = parts.permute(2, 0, 3, 1, 4).unbind(0)
        attend = functools.partial(F.scaled_dot_product_attention, attn_mask=mask)
        pairs = zip(parts[::2], parts[1::2], strict=True)
        return [functools.partial(attend, key=keys, value=values) for keys, values in pairs]

    def _head(self, state, anchor, attentions):
        """Decisions from states, ``(B, T, embedding) -> (B, T, n_features)``."""
        state = self.start(state)
        for layer, attend in zip(self.readings, attentions, strict=True):
            state = layer(state, attend)
        return bounded(self.head(self.norm(state)) + anchor, self.architecture)


class _Campaigns:
    """Campaigns under way; see ``ReaderNetwork.campaigns``."""

    def __init__(self, network, n_queries, n_init, longest):
        self.network, self.t = network, 0
        factor, summand, anchor = network.plan(n_queries, n_init, longest)
        # Taken apart at once: a gradient of each part would be as large as the whole.
        parts = factor.unbind(0), summand.unbind(1), anchor.expand(longest, -1).unbind(0)
        self.given = list(zip(*parts, strict=True))
        heads, width = network.heads, network.width // network.heads
        n_layers, n_campaigns = len(network.readings), len(n_queries)
        self.cache = KVCache(summand, n_layers, n_campaigns, heads, n_init + longest, width)
        self.attentions = [functools.partial(self.cache.attend, i) for i in range(n_layers)]
        self.total = 0.0

    def see(self, x, y, z=None):
        """Add observations of the first campaigns."""
        (tokens,) = self.network.tokens(x, y, z)
        width = self.network.width
        summands, projected = tokens.split([width, tokens.shape[-1] - width], -1)
        total = summands.sum(1, keepdim=True)
        self.total = total if self.t == 0 else self.total[: len(x)] + total
        self.cache.write(projected)

    def decide(self, n):
        """The next inputs of the first ``n``."""
        factor, summand, anchor = self.given[self.t]
        self.t += 1
        state = self.total[:n] * factor + summand[:n, None]
        return self.network._head(state, anchor, self.attentions)[:, 0]
