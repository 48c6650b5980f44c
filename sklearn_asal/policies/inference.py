"""The network of policy ``any``: from evidence to a posterior of hyperparameters."""

import math

import torch
from torch import nn

from .architecture import complete
from .inference_runtime import HIGHEST, LOWEST, NOISE


class InferenceNetwork(nn.Module):
    """Posterior of log lengthscales and log noise, for any number of features.

    What is known of each feature goes through the same layers, and what is known of all together
    through others; they hear of each other through mean and maximum over the features. Out comes
    a mixture of normal distributions (neural posterior estimation; Papamakarios and Murray, 2016).

    Parameters
    ----------
    own, shared : int
        Numbers that come in for each feature, and for all together.
    width : int, default=112
    layers : int, default=3
    components : int, default=6
        Of the mixture.

    Attributes
    ----------
    architecture : dict
    n_features, safe : None
        It is for any number of features, with and without a limit.
    """

    n_features = safe = None

    def __init__(self, own, shared, width=112, layers=3, components=6):
        super().__init__()
        sizes = {"width": width, "layers": layers, "components": components}
        self.architecture = complete({"kind": "inference", "own": own, "shared": shared, **sizes})
        for name, size in (("own", own), ("shared", shared)):
            self.register_buffer(f"{name}_mean", torch.zeros(size))
            self.register_buffer(f"{name}_std", torch.ones(size))
        self.own_in, self.shared_in = nn.Linear(own, width), nn.Linear(shared, width)
        self.own = nn.ModuleList(nn.Linear(3 * width, width) for _ in range(layers))
        self.shared = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(layers))
        self.own_out = nn.Linear(width, 2 * components)
        self.shared_out = nn.Linear(width, 3 * components)

    def standardize(self, own, shared):
        """Take means and standard deviations of the inputs from examples.

        Parameters
        ----------
        own, shared : Tensor of shape (n, own) and (m, shared)
        """
        for name, values in (("own", own), ("shared", shared)):
            getattr(self, f"{name}_mean").copy_(values.mean(0))
            getattr(self, f"{name}_std").copy_(values.std(0) + 1e-3)

    def forward(self, own, shared):
        """Parameters of the mixture.

        Parameters
        ----------
        own : Tensor of shape (batch, n_features, own)
        shared : Tensor of shape (batch, shared)

        Returns
        -------
        location, log_scale : Tensor of shape (batch, n_features, components)
            Of the log lengthscales, relative to :func:`sklearn_asal.surrogates.evidence.unit`.
        log_weight, noise_location, noise_log_scale : Tensor of shape (batch, components)
        """
        a = self.own_in((own - self.own_mean) / self.own_std)
        b = self.shared_in((shared - self.shared_mean) / self.shared_std)
        for of_own, of_shared in zip(self.own, self.shared, strict=True):
            p, q = torch.relu(a), torch.relu(b)
            mean, most = p.mean(1), p.amax(1)
            others = torch.cat([mean + q, most], -1)[:, None].expand(-1, p.shape[1], -1)
            a = a + of_own(torch.cat([p, others], -1))
            b = b + of_shared(torch.cat([q, mean], -1))
        location, log_scale = self.own_out(torch.relu(a)).chunk(2, -1)
        logits, noise, noise_log_scale = self.shared_out(torch.relu(b)).chunk(3, -1)
        return (
            location,
            log_scale.clamp(LOWEST, HIGHEST),
            torch.log_softmax(logits, -1),
            noise + NOISE,
            noise_log_scale.clamp(LOWEST, HIGHEST),
        )

    def log_density(self, own, shared, log_lengthscales, log_noise):
        """Log posterior density of hyperparameters.

        Parameters
        ----------
        own, shared : Tensor
            See :meth:`forward`.
        log_lengthscales : Tensor of shape (batch, n_features)
        log_noise : Tensor of shape (batch,)

        Returns
        -------
        Tensor of shape (batch,)
        """
        location, log_scale, log_weight, noise, noise_log_scale = self(own, shared)
        off = (log_lengthscales[..., None] - location) / log_scale.exp()
        density = (-0.5 * off.square() - log_scale).sum(1)
        off = (log_noise[:, None] - noise) / noise_log_scale.exp()
        density = density - 0.5 * off.square() - noise_log_scale
        constant = 0.5 * math.log(2 * math.pi) * (log_lengthscales.shape[1] + 1)
        return torch.logsumexp(log_weight + density, -1) - constant
