"""The network of ALINE: it predicts outputs and picks what is measured next, in torch."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .aline_runtime import CENTRE, FACTOR, HIGHEST, LOWEST
from .architecture import complete
from .layers import LayerNorm, Linear, mlp


class ALINELayer(nn.Module):
    """Pre-norm transformer layer: tokens attend to others, or to the first of their own.

    Parameters
    ----------
    embedding, hidden : int
        Widths of a token and of the feed-forward block.
    heads : int
    """

    def __init__(self, embedding, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = LayerNorm(embedding)
        self.ask = Linear(embedding, embedding)
        self.offer = Linear(embedding, 2 * embedding)
        self.out = Linear(embedding, embedding)
        self.norm2 = LayerNorm(embedding)
        self.up = Linear(embedding, hidden)
        self.down = Linear(hidden, embedding)

    def forward(self, tokens, seen):
        """Attend.

        Parameters
        ----------
        tokens : Tensor of shape (B, n, embedding)
        seen : Tensor of shape (B, m, embedding)
            The tokens that they attend to.

        Returns
        -------
        Tensor of shape (B, n, embedding)
        """
        q = self._heads(self.ask(self.norm1(tokens)))
        k, v = map(self._heads, self.offer(self.norm1(seen)).chunk(2, -1))
        attended = F.scaled_dot_product_attention(q, k, v)
        tokens = tokens + self.out(attended.transpose(1, 2).flatten(2))
        return tokens + self.down(F.relu(self.up(self.norm2(tokens))))

    def _heads(self, projected):
        return projected.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class ALINENetwork(nn.Module):
    """Amortized active learning and inference engine (Huang et al., 2025).

    One transformer for three sets of tokens. The context (measurements) attends to itself, targets
    (inputs whose outputs matter) to the context, candidates (inputs that may be measured) to
    context and targets. One head predicts the outputs of the targets, as a mixture of normal
    distributions; another scores the candidates. No answer depends on the order of a set, and that
    of a target or a candidate not on the others of its set.

    Layers of the candidates have weights of their own, and gradients of the scores stay out of the
    rest: shared with a policy that is still noise, the predictions got worse.

    Parameters
    ----------
    n_features : int
    embedding, hidden, heads, layers, components : int
        Widths, heads and number of layers; components of the mixture.
    max_budget : int
        Queries of a campaign in training.

    Attributes
    ----------
    architecture : dict
    safe : bool
        Always False.
    """

    safe = False

    def __init__(
        self, n_features, embedding=32, hidden=64, heads=4, layers=3, components=4, max_budget=20
    ):
        super().__init__()
        sizes = {"embedding": embedding, "hidden": hidden, "heads": heads, "layers": layers}
        sizes |= {"components": components, "max_budget": max_budget}
        self.architecture = complete({"kind": "aline", "n_features": n_features, **sizes})
        self.n_features = n_features
        self.context = mlp(n_features + 1, hidden, embedding, nn.ReLU)
        self.target = mlp(n_features, hidden, embedding, nn.ReLU)
        self.candidate = mlp(n_features, hidden, embedding, nn.ReLU)
        for part in ("predicting", "picking"):
            stack = nn.ModuleList(ALINELayer(embedding, hidden, heads) for _ in range(layers))
            setattr(self, part, stack)
        self.predict_norm, self.score_norm = LayerNorm(embedding), LayerNorm(embedding)
        self.predict = mlp(embedding, hidden, 3 * components, nn.ReLU)
        self.score = mlp(embedding, hidden, 1, nn.ReLU)

    def forward(self, X, y, targets, candidates=None, learn=True):
        """Predict, and score.

        Parameters
        ----------
        X : Tensor of shape (B, n, n_features)
            Measured inputs of the unit cube.
        y : Tensor of shape (B, n)
            Their outputs at unit scale.
        targets : Tensor of shape (B, m, n_features)
        candidates : Tensor of shape (B, k, n_features), optional
        learn : bool, default=True
            Whether predictions have a gradient; scores have one of their own.

        Returns
        -------
        mixture : tuple of three Tensor of shape (B, m, components)
            Log weights, means and log standard deviations of outputs at the targets, noise
            included.
        scores : Tensor of shape (B, k) or None
            Logits of the candidates.
        """
        with torch.set_grad_enabled(learn and torch.is_grad_enabled()):
            mixture, seen = self._predict(X, y, targets)
        if candidates is None:
            return mixture, None
        h = self.candidate((candidates - CENTRE) * FACTOR)
        for layer, tokens in zip(self.picking, seen, strict=True):
            h = layer(h, tokens.detach())
        return mixture, self.score(self.score_norm(h))[..., 0]

    def _predict(self, X, y, targets):
        """The mixture, and the tokens of context and targets before each layer."""
        n = X.shape[1]
        X, targets = (X - CENTRE) * FACTOR, (targets - CENTRE) * FACTOR
        h = torch.cat([self.context(torch.cat([X, y[..., None]], -1)), self.target(targets)], 1)
        seen = []
        for layer in self.predicting:
            seen.append(h)
            h = layer(h, h[:, :n])
        logits, mean, log_std = self.predict(self.predict_norm(h[:, n:])).chunk(3, -1)
        return (torch.log_softmax(logits, -1), mean, log_std.clamp(LOWEST, HIGHEST)), seen


def log_density(mixture, y):
    """Log density of outputs.

    Parameters
    ----------
    mixture : tuple of Tensor
        See :meth:`ALINENetwork.forward`.
    y : Tensor of shape (B, m)

    Returns
    -------
    Tensor of shape (B, m)
    """
    log_weight, mean, log_std = mixture
    off = (y[..., None] - mean) * torch.exp(-log_std)
    density = log_weight - 0.5 * off.square() - log_std - 0.5 * math.log(2 * math.pi)
    return torch.logsumexp(density, -1)
