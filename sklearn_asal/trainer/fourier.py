"""Gaussian-process functions as sums of Fourier features (paper, "Fourier Feature Functions")."""

import math

import torch
from torch.nn import functional as F


class FourierFunctions:
    """A batch of functions drawn from zero-mean RBF Gaussian processes.

    ``f(x) = sum_i omega_i sqrt(2 / L) cos(a_i . x + b_i)``, with their mean over
    the unit cube taken off if asked. The functions can be evaluated anywhere, in linear time, and
    differentiated.

    Parameters
    ----------
    kernel : Kernel
        One kernel for each function.
    generator : torch.Generator
        On the device where the functions shall live.
    n_fourier : int, default=100
        Number of features L.
    centred : bool, default=True
        Whether to take off each function's mean over the unit cube.
    dtype : torch.dtype, default=torch.float32
    """

    def __init__(self, kernel, generator, n_fourier=100, centred=True, dtype=torch.float32):
        K, D = kernel.lengthscale.shape
        options = dict(generator=generator, dtype=torch.float64, device=generator.device)
        # The spectral density of an RBF kernel is normal with standard deviation 1 / lengthscale.
        a = torch.randn((K, D, n_fourier), **options) / kernel.lengthscale[:, :, None]
        b = 2 * math.pi * torch.rand((K, 1, n_fourier), **options)
        omega = torch.randn((K, n_fourier, 1), **options)
        weight = omega * (2 * kernel.variance / n_fourier).sqrt()[:, None, None]
        mean = domain_mean(a, b, weight) if centred else torch.zeros_like(kernel.variance)
        self.a, self.b, self.weight, self.mean = (t.to(dtype) for t in (a, b, weight, mean))

    def __getitem__(self, index):
        part = object.__new__(FourierFunctions)
        part.a, part.b, part.weight, part.mean = (
            t[index] for t in (self.a, self.b, self.weight, self.mean)
        )
        return part

    def paired(self, other):
        """Pairs of functions, evaluated in one call.

        Parameters
        ----------
        other : FourierFunctions
            As many.

        Returns
        -------
        FourierFunctions
            Its values have a last axis of two.
        """
        pair = object.__new__(FourierFunctions)
        pair.a, pair.b = torch.cat([self.a, other.a], 2), torch.cat([self.b, other.b], 2)
        pair.weight = torch.cat([F.pad(self.weight, (0, 1)), F.pad(other.weight, (1, 0))], 1)
        pair.mean = torch.stack([self.mean, other.mean], 1)
        return pair

    def __call__(self, x):
        """Evaluate.

        Parameters
        ----------
        x : Tensor of shape (K, n, D)

        Returns
        -------
        Tensor of shape (K, n)
        """
        features = torch.cos(torch.baddbmm(self.b, x, self.a))
        return torch.bmm(features, self.weight).squeeze(-1) - self.mean[:, None]


def domain_mean(a, b, weight):
    """Mean over the unit cube in closed form, without the paper's 2^D terms.

    The mean of ``cos(a . x + b)`` over a box centred at m is ``cos(a . m + b)``
    times a sinc for each dimension, so nothing is divided by a small frequency.

    Parameters
    ----------
    a : Tensor of shape (K, D, L)
    b : Tensor of shape (K, 1, L)
    weight : Tensor of shape (K, L, 1)

    Returns
    -------
    Tensor of shape (K,)
    """
    mean = torch.sinc(a / (2 * math.pi)).prod(1, keepdim=True) * torch.cos(
        a.sum(1, keepdim=True) / 2 + b
    )
    return torch.bmm(mean, weight)[:, 0, 0]
