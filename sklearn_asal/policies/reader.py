"""A policy network that reads its observations: cost proportional to their number."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .architecture import LEADING, complete, leading_points, scaling
from .network import bounded


class FeedForward(nn.Module):
    """``h + down(relu(up(norm(h))))``."""

    def __init__(self, embedding, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(embedding)
        self.up = nn.Linear(embedding, hidden)
        self.down = nn.Linear(hidden, embedding)

    def forward(self, h):
        return h + self.down(F.relu(self.up(self.norm(h))))


class Reading(nn.Module):
    """One look at the observations: the state asks, keys answer, a feed-forward block follows."""

    def __init__(self, embedding, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(embedding)
        self.ask = nn.Linear(embedding, embedding)
        self.out = nn.Linear(embedding, embedding)
        self.forth = FeedForward(embedding, hidden)

    def forward(self, h, keys, values, mask=None):
        """Read.

        Parameters
        ----------
        h : Tensor of shape (B, T, embedding)
            States, each of which reads on its own.
        keys, values : Tensor of shape (B, heads, n, embedding / heads)
        mask : bool Tensor that broadcasts to (B, heads, T, n), optional
            What each state may read; at least one observation each.

        Returns
        -------
        Tensor of shape (B, T, embedding)
        """
        B, T, width = h.shape
        asked = self.ask(self.norm(h)).view(B, T, self.heads, -1).transpose(1, 2)
        read = F.scaled_dot_product_attention(asked, keys, values, attn_mask=mask)
        return self.forth(h + self.out(read.transpose(1, 2).reshape(B, T, width)))


class ReaderNetwork(nn.Module):
    """The (safe) active learning policy :math:`\\phi(T - t, D_t) = x_{t+1}`, one state that reads.

    In the paper's network every observation attends to every other one, anew at each query. Here
    an observation (input, output, margin) is embedded once, into a summand, keys and values. The
    sum of the summands and the remaining budget make a state; the state asks the observations
    ``layers`` times, by attention, and is the next input after a last linear map. A query costs
    time proportional to the number of observations, not to its square, the queries of a whole
    campaign can be computed at once (:meth:`replay`), and it learns in fewer steps, see
    ``docs/training.md``.

    Parameters
    ----------
    n_features, safe, budget, pooling, output, lags, max_budget, standardize, centre_gain
        See :class:`~sklearn_asal.policies.network.PolicyNetwork`.
    lead : bool, default=False
        Whether the state also knows the next point of the Sobol sequence, which the next input
        follows as far as it learns to. In many dimensions a policy has to scatter its queries
        and cannot invent that.
    embedding : int, default=128
        Width of the state, of keys and of values.
    hidden : int, default=256
        Width of all hidden layers.
    heads : int, default=8
        Of each reading.
    layers : int, default=2
        Number of readings.
    """

    def __init__(self, n_features, safe=True, budget=True, *, centre_gain=0.05, **architecture):
        super().__init__()
        self.architecture = full = complete(
            dict(architecture, kind="reader", n_features=n_features, safe=safe, budget=budget)
        )
        embedding, hidden, layers = full["embedding"], full["hidden"], full["layers"]
        self.n_features, self.safe = n_features, safe
        self.width, self.heads = embedding, full["heads"]
        (self.x_shift, self.x_scale), (self.budget_shift, self.budget_scale) = scaling(full)
        self.embed = nn.Sequential(
            nn.Linear(n_features + 1 + safe, hidden), nn.SiLU(), nn.Linear(hidden, embedding)
        )
        self.project = nn.Linear(embedding, embedding * (1 + 2 * layers))
        self.budget = None
        if budget:
            self.budget = nn.Sequential(
                nn.Linear(1, hidden), nn.SiLU(), nn.Linear(hidden, embedding)
            )
        self.follow = None
        if full["lead"]:
            points = torch.as_tensor(leading_points(n_features), dtype=torch.float32)
            self.register_buffer("points", points, persistent=False)
            self.follow = nn.Sequential(
                nn.Linear(n_features, hidden), nn.SiLU(), nn.Linear(hidden, embedding)
            )
            # An untrained policy draws the sequence itself, a safe one within its initial box.
            self.lead = nn.Parameter(torch.full((n_features,), 0.2 if safe else 1.0))
        self.start = FeedForward(embedding, hidden)
        self.readings = nn.ModuleList(Reading(embedding, hidden, self.heads) for _ in range(layers))
        self.norm = nn.LayerNorm(embedding)
        self.head = nn.Linear(embedding, n_features)
        with torch.no_grad():
            self.head.weight.mul_(centre_gain)
            self.head.bias.mul_(centre_gain)

    def tokens(self, x, y, z=None):
        """What is kept of each observation; shapes as in ``PolicyNetwork.tokens``.

        Returns
        -------
        tuple of one Tensor of shape (B, n, embedding * (1 + 2 * layers))
            Summand, then key and value of each reading; concatenate along ``n``.
        """
        x = (x - self.x_shift) * self.x_scale
        values = (y, z) if self.safe else (y,)
        rows = torch.cat([x, *(value.unsqueeze(-1) for value in values)], -1)
        return (self.project(F.silu(self.embed(rows))),)

    def decide(self, budget, tokens, mask=None):
        """The next input; arguments as in ``PolicyNetwork.decide``."""
        (tokens,) = tokens
        summands = tokens[..., : self.width]
        if mask is None:
            total = summands.sum(1)
            known = torch.full_like(budget, tokens.shape[1], dtype=torch.int64)
        else:
            total = (summands * mask.unsqueeze(-1)).sum(1)
            known, mask = mask.sum(1), mask[:, None, None, :]
        return self._read(total[:, None], known[:, None], budget[:, None], tokens, mask)[:, 0]

    def replay(self, budgets, tokens, n_init):
        """All decisions of campaigns that are over, each from what was known at its time.

        Parameters
        ----------
        budgets : Tensor of shape (B, T)
            Queries left at each decision.
        tokens : tuple of Tensor
            Of ``n_init`` initial observations and at least ``T - 1`` queried ones.
        n_init : int

        Returns
        -------
        Tensor of shape (B, T, n_features)
        """
        (tokens,) = tokens
        T = budgets.shape[1]
        known = torch.arange(n_init, n_init + T, device=tokens.device)
        total = tokens[..., : self.width].cumsum(1)[:, known - 1]
        mask = torch.arange(tokens.shape[1], device=tokens.device) < known[:, None]
        return self._read(total, known, budgets, tokens, mask)

    def forward(self, budget, X, y, z=None, mask=None):
        """The next input from the raw observations."""
        return self.decide(budget, self.tokens(X, y, z), mask)

    def _read(self, state, known, budget, tokens, mask):
        """Decisions from sums of summands, ``(B, T, embedding) -> (B, T, n_features)``."""
        B, n, _ = tokens.shape
        if self.architecture["pooling"] == "sqrt":
            state = state / known.unsqueeze(-1).to(state.dtype).sqrt()
        if self.budget is not None:
            budget = (budget - self.budget_shift) * self.budget_scale
            state = state + self.budget(budget.to(state.dtype).unsqueeze(-1))
        lead = 0.0
        if self.follow is not None:
            point = self.points[known % LEADING].to(state.dtype)
            lead = self.lead * point
            # Standardised like an input.
            state = state + self.follow(math.sqrt(3) * point)
        state = self.start(state)
        parts = tokens[..., self.width :].view(B, n, -1, self.heads, self.width // self.heads)
        parts = parts.permute(2, 0, 3, 1, 4)
        for reading, keys, values in zip(self.readings, parts[::2], parts[1::2], strict=True):
            state = reading(state, keys, values, mask)
        return bounded(self.head(self.norm(state)) + lead, self.architecture)
