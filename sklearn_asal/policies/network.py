"""The paper's policy network: observations and remaining budget in, next input out."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .architecture import complete, scaling
from .campaigns import Campaigns


def _mlp(n_inputs, hidden, n_outputs):
    return nn.Sequential(nn.Linear(n_inputs, hidden), nn.Softplus(), nn.Linear(hidden, n_outputs))


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
        self.qkv = nn.Linear(embedding, 3 * embedding)
        self.out = nn.Linear(embedding, embedding)
        self.norm1 = nn.LayerNorm(embedding)
        self.ff1 = nn.Linear(embedding, embedding)
        self.ff2 = nn.Linear(embedding, embedding)
        self.norm2 = nn.LayerNorm(embedding)
        nn.init.xavier_uniform_(self.qkv.weight)
        nn.init.zeros_(self.qkv.bias)
        nn.init.zeros_(self.out.bias)

    def project(self, tokens):
        """Query, key and value of each token, ``(..., n, 3 * embedding)``."""
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
        q, k, v = projected.view(B, n, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
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
        See :class:`PolicyNetwork`.
    """

    def __init__(self, n_features, embedding, hidden, heads, layers, pooling="sqrt"):
        super().__init__()
        self.pooling = pooling
        self.embed = _mlp(n_features + 1, hidden, embedding)
        self.layers = nn.ModuleList(AttentionLayer(embedding, heads) for _ in range(layers))
        self.linear = nn.Linear(embedding, embedding)

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
        """Attend and sum, ``(B, n, 4 * embedding) -> (B, embedding)``."""
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


class _Clip(torch.autograd.Function):
    """``clamp(h, -1, 1)`` for a descent on the cube: the projected gradient.

    Outside, what leads back passes and what leads further away does not, so that nothing is
    ever stuck there.
    """

    @staticmethod
    def forward(ctx, h):
        ctx.save_for_backward(h)
        return h.clamp(-1, 1)

    @staticmethod
    def backward(ctx, gradient):
        (h,) = ctx.saved_tensors
        away = ((h > 1) & (gradient < 0)) | ((h < -1) & (gradient > 0))
        return gradient.masked_fill(away, 0.0)


class _Between(torch.autograd.Function):
    """``clamp(x, low, high)`` with the projected gradient; at an end it goes to that end, too."""

    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x, low, high)
        return torch.minimum(torch.maximum(x, low), high)

    @staticmethod
    def backward(ctx, gradient):
        x, low, high = ctx.saved_tensors
        below, above = x < low, x > high
        away = (above & (gradient < 0)) | (below & (gradient > 0))
        return tuple(gradient.masked_fill(mask, 0.0) for mask in (away, ~below, ~above))


_OUTPUTS = {"clip": _Clip.apply, "tanh": torch.tanh}


def reach(earlier, step):
    """Lowest and highest value of a lagged feature, given the earlier one's."""
    return (earlier - step).clamp_min(0), (earlier + step).clamp_max(1)


def bounded(h, architecture):
    """What a head says, brought into the unit cube and within the lags' reach.

    Parameters
    ----------
    h : Tensor of shape (..., n_features)
    architecture : dict
        Complete; its ``output`` and ``lags``.

    Returns
    -------
    Tensor of shape (..., n_features)
    """
    x = 0.5 + 0.5 * _OUTPUTS[architecture["output"]](h)
    if not architecture["lags"]:
        return x
    columns = list(x.unbind(-1))
    for later, earlier, step in architecture["lags"]:
        columns[later] = _Between.apply(columns[later], *reach(columns[earlier], step))
    return torch.stack(columns, -1)


class PolicyNetwork(nn.Module):
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
        self.budget = _mlp(1, hidden, embedding) if budget else None
        self.decision = _mlp(embedding * (1 + safe + budget), hidden, n_features)
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
            budget = (budget - self.budget_shift) * self.budget_scale
            parts.append(self.budget(budget.to(parts[0].dtype).unsqueeze(-1)))
        h = self.decision(torch.cat(parts, -1))
        return bounded(h, self.architecture)

    def campaigns(self, n_queries, n_init, longest):
        """Campaigns about to begin; see ``ReaderNetwork.campaigns``."""
        return Campaigns(self, n_queries)

    def forward(self, budget, X, y, z=None, mask=None):
        """The next input from the raw observations; arguments as above."""
        return self.decide(budget, self.tokens(X, y, z), mask)
