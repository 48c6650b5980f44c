"""A prior-data fitted network: from observations to predictions, in torch, for training."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .architecture import complete
from .layers import LayerNorm, Linear, mlp
from .pfn_runtime import LARGEST, REACHES, distance_scale


class PFNNetwork(nn.Module):
    """Predictions of measurements by a transformer that reads the others (Müller et al., 2022).

    Observations attend to each other, and points that are asked about to the observations alone.
    Inputs have up to ``most_features`` features; those of fewer are padded with zeros, and each
    number of features has an embedding of its own. Out come the logits of
    :class:`~sklearn_asal.surrogates.bars.Bars`.

    Besides learned queries and keys, attention is by distance: each head lowers its logits by the
    squared distance of the inputs, times a number that is learned. It is as if inputs were part
    of queries and keys. Without it a network this small takes many times as long to learn that
    near points are alike.

    Parameters
    ----------
    most_features : int, default=8
    bars : int, default=100
    width : int, default=128
    hidden : int, default=256
    heads : int, default=8
    layers : int, default=2

    Attributes
    ----------
    architecture : dict
    n_features, safe : None
        It is for several numbers of features, and for outputs and margins.
    """

    n_features = safe = None

    def __init__(self, most_features=8, bars=100, width=128, hidden=256, heads=8, layers=2):
        super().__init__()
        sizes = {"most_features": most_features, "bars": bars, "width": width}
        sizes |= {"hidden": hidden, "heads": heads, "layers": layers}
        self.architecture = complete({"kind": "pfn", **sizes})
        self.heads = heads
        self.register_buffer("borders", torch.linspace(-2, 2, bars - 1, dtype=torch.float32))
        self.register_buffer("tails", torch.ones(2, dtype=torch.float32))
        self.embed = mlp(most_features, width, width, nn.ReLU)
        self.number = Linear(most_features, width)
        self.value = mlp(1, width, width, nn.ReLU)
        self.layers = nn.ModuleList(_Layer(width, hidden, heads) for _ in range(layers))
        self.norm = LayerNorm(width)
        self.head = mlp(width, width, bars, nn.ReLU)
        nn.init.zeros_(self.head[2].weight)  # at first, what the prior says
        nn.init.zeros_(self.head[2].bias)

    def forward(self, X, y, points):
        """Logits of the bars.

        Parameters
        ----------
        X : Tensor of shape (batch, n, n_features)
            Where was measured, in the unit cube.
        y : Tensor of shape (batch, n)
            What, at unit scale.
        points : Tensor of shape (batch, m, n_features)
            Where to predict.

        Returns
        -------
        Tensor of shape (batch, m, bars)
        """
        n, n_features = X.shape[1:]
        inputs = torch.cat([X, points], 1) - 0.5
        padded = F.pad(inputs, (0, self.architecture["most_features"] - n_features))
        tokens = self.embed(math.sqrt(12) * padded) + self.number.weight[:, n_features - 1]
        tokens = tokens + self.number.bias
        known = self.value(y.clamp(-LARGEST, LARGEST)[..., None])
        tokens = torch.cat([tokens[:, :n] + known, tokens[:, n:]], 1)
        places = inputs / distance_scale(n_features)
        for layer in self.layers[:-1]:
            tokens = layer(tokens, places, n, 0)
        tokens = self.layers[-1](tokens, places, n, n)
        return self.head(self.norm(tokens))


class _Layer(nn.Module):
    """Attention to the first tokens, and a feed-forward network; norms come first."""

    def __init__(self, width, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = LayerNorm(width), LayerNorm(width)
        self.query, self.out = Linear(width, width), Linear(width, width)
        self.known = Linear(width, 2 * width)
        self.log_rate = nn.Parameter(torch.linspace(*REACHES, heads, dtype=torch.float32))
        self.ff1, self.ff2 = Linear(width, hidden), Linear(hidden, width)

    def forward(self, tokens, places, n, start):
        """What becomes of the tokens from ``start`` on; the first ``n`` are observations."""
        normed = self.norm1(tokens)
        tokens, places, known = tokens[:, start:], places[:, start:], places[:, :n]
        query = self._split(self.query(normed[:, start:])) / math.sqrt(
            tokens.shape[2] // self.heads
        )
        key, value = map(self._split, self.known(normed[:, :n]).chunk(2, -1))
        # What is the same for all keys has no effect on a softmax.
        rate = self.log_rate.exp()[:, None, None]
        ones = torch.ones_like(places[:, None, :, :1])
        near = torch.cat([2 * places[:, None], -ones], -1) * rate
        known = known[:, None]
        far = torch.cat([known, known.square().sum(-1, keepdim=True)], -1)
        query = torch.cat([query, near], -1)
        key = torch.cat([key, far.expand(-1, self.heads, -1, -1)], -1)
        attended = torch.softmax(query @ key.mT, -1) @ value
        tokens = tokens + self.out(attended.transpose(1, 2).flatten(2))
        return tokens + self.ff2(torch.relu(self.ff1(self.norm2(tokens))))

    def _split(self, values):
        return values.unflatten(-1, (self.heads, -1)).transpose(1, 2)
