"""The paper's policy network: observations and remaining budget in, next input out."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .architecture import complete, scaling
from .layers import LayerNorm, Linear, bounded, mlp


class AttentionLayer(nn.Module):
    """Post-norm transformer encoder layer whose input projection can be kept.

    The same function as ``torch.nn.TransformerEncoderLayer`` with ReLU and no
    dropout, split in two: :meth:`project` acts on each token alone, so the
    projections of past observations need not be computed again when one more
    arrives; :meth:`forward` mixes the tokens.

    Parameters
    ----------
    embedding : int
        Width of a token; also the width of the feed-forward block.
    heads : int
        Number of attention heads, a divisor of ``embedding``.
    """

    def __init__(self, embedding, heads):
        super().__init__()
        self.heads = heads
        self.qkv = Linear(embedding, 3 * embedding)
        self.out = Linear(embedding, embedding)
        self.norm1 = LayerNorm(embedding)
        self.ff1 = Linear(embedding, embedding)
        self.ff2 = Linear(embedding, embedding)
        self.norm2 = LayerNorm(embedding)
        nn.init.xavier_uniform_(self.qkv.weight)
        nn.init.zeros_(self.qkv.bias)
        nn.init.zeros_(self.out.bias)

    def project(self, tokens):
        """Query, key and value of each token.

        Parameters
        ----------
        tokens : Tensor of shape (..., n, embedding)

        Returns
        -------
        Tensor of shape (..., n, 3 * embedding)
        """
        return self.qkv(tokens)

    def forward(self, tokens, projected, mask=None):
        """Attend.

        Parameters
        ----------
        tokens : Tensor of shape (B, n, embedding)
        projected : Tensor of shape (B, n, 3 * embedding)
            ``project(tokens)``.
        mask : bool Tensor of shape (B, n), optional
            True where a token is real; padding is never attended to.

        Returns
        -------
        Tensor of shape (B, n, embedding)
        """
        B, n, width = tokens.shape
        projected = projected.view(B, n, 3, self.heads, width // self.heads)
        q, k, v = projected.permute(2, 0, 3, 1, 4).unbind(0)
        mask = None if mask is None else mask[:, None, None, :]
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        attended = attended.transpose(1, 2).reshape(B, n, width)
        tokens = self.norm1(tokens + self.out(attended))
        return self.norm2(tokens + self.ff2(F.relu(self.ff1(tokens))))


class HistoryEncoder(nn.Module):
    """A set of observations, summed into one embedding (paper, appendix on the policy network).

    Each pair of an input and a value is embedded by one shared MLP, the
    embeddings attend to each other, pass a linear layer and are summed, so the
    order of the observations is of no consequence.

    Parameters
    ----------
    n_features : int
    embedding, hidden, heads, layers, pooling
        See :class:`TransformerNetwork`.
    """

    def __init__(self, n_features, embedding, hidden, heads, layers, pooling="sqrt"):
        super().__init__()
        self.pooling = pooling
        self.embed = mlp(n_features + 1, hidden, embedding, nn.Softplus)
        self.layers = nn.ModuleList(AttentionLayer(embedding, heads) for _ in range(layers))
        self.linear = Linear(embedding, embedding)

    def tokens(self, x, value):
        """What depends on an observation alone: embedding and first projection, side by side.

        Parameters
        ----------
        x : Tensor of shape (B, n, n_features)
            Scaled as the network wants it.
        value : Tensor of shape (B, n)

        Returns
        -------
        Tensor of shape (B, n, 4 * embedding)
        """
        embedded = self.embed(torch.cat([x, value.unsqueeze(-1)], -1))
        return torch.cat([embedded, self.layers[0].project(embedded)], -1)

    def forward(self, tokens, mask=None):
        """Attend and sum.

        Parameters
        ----------
        tokens : Tensor of shape (B, n, 4 * embedding)
        mask : bool Tensor of shape (B, n), optional
            True where an observation is real, False for padding.

        Returns
        -------
        Tensor of shape (B, embedding)
        """
        width = tokens.shape[-1] // 4
        attended = self.layers[0](tokens[..., :width], tokens[..., width:], mask)
        for layer in self.layers[1:]:
            attended = layer(attended, layer.project(attended), mask)
        if mask is None:
            total, count = attended.sum(1), attended.shape[1]
            root = math.sqrt(max(count, 1))
        else:
            weight = mask.to(attended.dtype).unsqueeze(-1)
            total, count = (attended * weight).sum(1), weight.sum(1)
            root = count.clamp_min(1).sqrt()
        # The linear layer commutes with the sum, where it costs n times less.
        total = F.linear(total, self.linear.weight) + count * self.linear.bias
        return total / root if self.pooling == "sqrt" else total


class TransformerNetwork(nn.Module):
    """The (safe) active learning policy :math:`\\phi(T - t, D_t) = x_{t+1}`.

    Figure "Our NN" of the paper: an encoder of the outputs, one of its own for
    the safety measurements, an encoder of the remaining budget, and a decision
    head whose result is bounded to the unit cube.

    Parameters
    ----------
    n_features : int
        Number of inputs, D.
    safe : bool, default=True
        Whether there is an encoder of the safety measurements.
    budget : bool, default=True
        Whether there is an encoder of the budget. Without it the policy is
        meant for one fixed number of queries.
    embedding : int, default=128
        Width of every embedding.
    hidden : int, default=512
        Width of the hidden layer of the MLPs.
    heads, layers : int, default=8, 2
        Of each transformer encoder.
    pooling : {"sqrt", "sum"}, default="sqrt"
        What is made of a set's embeddings: the paper's sum, or the sum divided by the root of
        their number, in which one observation of few weighs no less than many do.
    output : {"clip", "tanh"}, default="clip"
        How the decision is bounded: ``(1 + clip(h)) / 2`` with a projected gradient, or the paper's
        ``(1 + tanh(h)) / 2``, which saturates at the border.
    lags : sequence of (int, int, float), default=()
        Features that are earlier values of one signal, ``(later, earlier, step)``: the later one
        is kept within ``step`` of the earlier. In this order, so an earlier one comes first.
    max_budget : float, default=40
        Largest budget of the training; sets the scale of the budget's input.
    standardize : bool, default=True
        Bring x (uniform on the unit cube) and the budget (uniform up to ``max_budget``) to zero
        mean and unit variance. The paper leaves both raw.
    centre_gain : float, default=0.05
        Factor on the last layer's initial weights. Below one, the first queries
        lie near the centre, with the output mapping unsaturated.
    """

    def __init__(self, n_features, safe=True, budget=True, *, centre_gain=0.05, **architecture):
        super().__init__()
        self.architecture = full = complete(
            dict(architecture, kind="transformer", n_features=n_features, safe=safe, budget=budget)
        )
        embedding, hidden = full["embedding"], full["hidden"]
        self.n_features = n_features
        self.safe = safe
        encoder = n_features, embedding, hidden, full["heads"], full["layers"], full["pooling"]
        self.history = HistoryEncoder(*encoder)
        self.safety_history = HistoryEncoder(*encoder) if safe else None
        self.budget = mlp(1, hidden, embedding, nn.Softplus) if budget else None
        self.decision = mlp(embedding * (1 + safe + budget), hidden, n_features, nn.Softplus)
        with torch.no_grad():
            self.decision[-1].weight.mul_(centre_gain)
            self.decision[-1].bias.mul_(centre_gain)
        (self.x_shift, self.x_scale), (self.budget_shift, self.budget_scale) = scaling(full)

    def tokens(self, x, y, z=None):
        """What the encoders keep of each observation, once and for all.

        Parameters
        ----------
        x : Tensor of shape (B, n, n_features)
            Inside the unit cube.
        y, z : Tensor of shape (B, n)
            Outputs and, for a safe policy, safety margins (safe: ``z >= 0``).

        Returns
        -------
        tuple of Tensor of shape (B, n, 4 * embedding)
            One for each encoder; concatenate along ``n`` as observations arrive.
        """
        x = (x - self.x_shift) * self.x_scale
        if not self.safe:
            return (self.history.tokens(x, y),)
        return self.history.tokens(x, y), self.safety_history.tokens(x, z)

    def decide(self, budget, tokens, mask=None):
        """The next input from :meth:`tokens`.

        Parameters
        ----------
        budget : Tensor of shape (B,)
            Queries left, this one included.
        tokens : tuple of Tensor
        mask : bool Tensor of shape (B, n), optional
            True where an observation is real, False for padding.

        Returns
        -------
        Tensor of shape (B, n_features)
            Inside the unit cube.
        """
        parts = [self.history(tokens[0], mask)]
        if self.safe:
            parts.append(self.safety_history(tokens[1], mask))
        if self.budget is not None:
            budget = (budget.to(parts[0].dtype) - self.budget_shift) * self.budget_scale
            parts.append(self.budget(budget.unsqueeze(-1)))
        h = self.decision(torch.cat(parts, -1))
        return bounded(h, self.architecture)

    def campaigns(self, n_queries, n_init, longest):
        """Campaigns about to begin.

        Parameters
        ----------
        n_queries, n_init, longest
            See ``ReaderNetwork.campaigns``.

        Returns
        -------
        object
            With ``see`` and ``decide``, see there.
        """
        return _Campaigns(self, n_queries)

    def forward(self, budget, X, y, z=None, mask=None):
        """The next input from the raw observations.

        Parameters
        ----------
        budget, X, y, z, mask
            See :meth:`tokens` and :meth:`decide`.

        Returns
        -------
        Tensor of shape (B, n_features)
            Inside the unit cube.
        """
        return self.decide(budget, self.tokens(X, y, z), mask)


class _Campaigns:
    """Campaigns under way, all of whose tokens attend to each other anew at each query."""

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
