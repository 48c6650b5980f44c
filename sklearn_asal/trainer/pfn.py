"""Training of the prior-data fitted network on simulated data sets (paper, PFN)."""

import dataclasses

import numpy as np
import torch

from ..policies.pfn import PFNNetwork
from ..settings import own_settings
from ..surrogates.bars import Bars
from .priors import TOTAL_VARIANCE, Kernel, ShiftedExponential, Uniform
from .supervised import SupervisedTrainer
from .systems import draw_hyperparameters, draw_inputs

#: Most observations of a simulated data set.
MOST_ROWS = 100
# Points at which each data set is predicted, data sets of one size, and how many sizes a step has.
_POINTS, _SIZE, _TOGETHER = 32, 16, 2
# Batches that are held out for validation, and draws whose quantiles the bars end at.
_HELD_OUT, _DRAWS = 100, 10_000
# Share of the data sets that are of the paper's prior, and the signals of the others.
_OF_PAPER, _SIGNALS = 0.5, (0.5, 2.0)
_PAPER = ShiftedExponential(0.2, 10.0), Uniform(0.9616, 1.0)


@dataclasses.dataclass(frozen=True)
class Batch:
    """Data sets of one size, and what Gaussian processes that know them predict.

    Parameters
    ----------
    X : Tensor of float32 of shape (batch, n, n_features)
    y : Tensor of float32 of shape (batch, n)
    points : Tensor of float32 of shape (batch, m, n_features)
    mean, std : Tensor of float32 of shape (batch, m)
        Of a measurement at each point, given the observations and the true hyperparameters.
    """

    X: torch.Tensor
    y: torch.Tensor
    points: torch.Tensor
    mean: torch.Tensor
    std: torch.Tensor


def draw_kernels(rng, n, n_features):
    """Half of them are of the paper's prior, half of the broad one of policy ``any``.

    Parameters
    ----------
    rng : numpy.random.Generator
    n, n_features : int

    Returns
    -------
    Kernel
        The broad ones have signals from 0.5 to 2, for real outputs are only about unit scale.
    """
    generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
    lengthscale, variance = (
        prior.sample(shape, generator)
        for prior, shape in zip(_PAPER, ((n, n_features), (n,)), strict=True)
    )
    broad, noises = map(torch.from_numpy, draw_hyperparameters(rng, n, n_features))
    signal = torch.from_numpy(np.exp(rng.uniform(*np.log(_SIGNALS), n)))
    is_paper = torch.from_numpy(rng.random(n) < _OF_PAPER)
    return Kernel(
        torch.where(is_paper, variance, signal**2),
        torch.where(is_paper[:, None], lengthscale, broad),
        torch.where(is_paper, TOTAL_VARIANCE - variance, (signal * noises) ** 2),
    )


@own_settings()
def draw_batch(rng, n, most_features, rows=None, n_features=None):
    """Simulated data sets of 1 to 100 observations, few of them more often than many.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int
    most_features : int
    rows, n_features : int, optional
        Of the data sets; random by default.

    Returns
    -------
    Batch
    """
    n_features = n_features or int(rng.integers(1, most_features + 1))
    rows = rows or 1 + int(MOST_ROWS * rng.random() ** 1.5)
    kernel = draw_kernels(rng, n, n_features)
    X = torch.from_numpy(draw_inputs(rng, n, rows, n_features))
    points = torch.from_numpy(rng.random((n, _POINTS, n_features)))
    covariance = kernel.gram(X)
    covariance.diagonal(dim1=1, dim2=2).add_(kernel.noise[:, None])
    factor = torch.linalg.cholesky(covariance)
    normal = torch.from_numpy(rng.standard_normal((n, rows, 1)))
    known = torch.linalg.solve_triangular(factor, kernel.gram(X, points), upper=False)
    variance = kernel.variance[:, None] - known.square().sum(1)
    std = (variance.clamp_min(0.0) + kernel.noise[:, None]).sqrt()
    # The whitened observations are the normal draws themselves.
    parts = X, (factor @ normal)[..., 0], points, (known.mT @ normal)[..., 0], std
    return Batch(*(part.float() for part in parts))


class PFNTrainer(SupervisedTrainer):
    """Train a prior-data fitted network; everything it needs to go on lives in one folder.

    The loss is the cross-entropy between what the network predicts at a point and what a Gaussian
    process with the true hyperparameters does. Its expectation is that of the negative log
    density of a measurement there (Müller et al., 2022), but for a constant; it varies less,
    because the measurement is not drawn. The score in validation is the mean log density of
    measurements.

    Parameters
    ----------
    out : path-like
        The folder of the run; made if missing.
    steps : int, default=15000
    seed : int, default=0
    threads, save_every, progress, max_seconds
        See :class:`~sklearn_asal.trainer.supervised.SupervisedTrainer`.
    **sizes
        Of :class:`~sklearn_asal.policies.pfn.PFNNetwork`.

    Attributes
    ----------
    interrupted : bool
        Whether Ctrl-C ended the last run before its last step.
    """

    name, rate = "pfn", 2e-3

    def __init__(
        self,
        out,
        *,
        steps=15_000,
        seed=0,
        threads=None,
        save_every=120.0,
        progress=True,
        max_seconds=None,
        **sizes,
    ):
        super().__init__(
            out,
            {"steps": steps, "seed": seed, **sizes},
            threads=threads,
            save_every=save_every,
            progress=progress,
            max_seconds=max_seconds,
        )
        self.sizes = sizes

    def _begin(self):
        network = PFNNetwork(**self.sizes)
        rng = np.random.default_rng((self.seed, 0))
        self._most = network.architecture["most_features"]
        kernel = draw_kernels(rng, _DRAWS, 1)
        scale = (kernel.variance + kernel.noise).sqrt().numpy()
        self._bars = Bars.of_draws(
            scale * rng.standard_normal(_DRAWS), network.architecture["bars"]
        )
        network.borders.copy_(torch.from_numpy(self._bars.borders))
        network.tails.copy_(torch.from_numpy(self._bars.tails))
        self._held_out = []
        for _ in range(_HELD_OUT):
            batch = draw_batch(rng, _SIZE, self._most)
            drawn = batch.mean + batch.std * torch.from_numpy(rng.standard_normal(batch.mean.shape))
            self._held_out.append((batch, drawn.numpy()))
        return network

    def _loss(self, network, generator):
        rng = np.random.default_rng((self.seed, 1, self.step))
        losses = [
            _cross_entropy(network, draw_batch(rng, _SIZE, self._most)) for _ in range(_TOGETHER)
        ]
        return torch.stack(losses).mean()

    def _score(self, network):
        scores = []
        for batch, drawn in self._held_out:
            logits = network(batch.X, batch.y, batch.points).double()
            found = torch.softmax(logits, -1).flatten(0, 1).numpy()
            scores.append(self._bars.log_density(found, drawn.ravel()).mean())
        return float(np.mean(scores))

    def _validation(self):
        """The same score of Gaussian processes with the true hyperparameters."""
        scores = [
            torch.distributions.Normal(batch.mean, batch.std).log_prob(torch.from_numpy(drawn))
            for batch, drawn in self._held_out
        ]
        return {"true process": torch.stack(scores).mean().item()}


def _cross_entropy(network, batch):
    """Mean over the points, in nats."""
    logits = network(batch.X, batch.y, batch.points)
    below = torch.special.ndtr((network.borders - batch.mean[..., None]) / batch.std[..., None])
    masses = torch.diff(
        below,
        dim=-1,
        prepend=torch.zeros_like(batch.mean[..., None]),
        append=torch.ones_like(batch.mean[..., None]),
    )
    return -(masses * torch.log_softmax(logits, -1)).sum(-1).mean()
