"""Priors that training tasks are drawn from (paper, table "Training samplers")."""

import dataclasses

import numpy as np
import torch

# Output and noise variance, and for safety also that of the prior mean, add up to this.
TOTAL_VARIANCE = 1.0001


def _check_order(low, high, name, positive=False):
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and np.all(low <= high)):
        raise ValueError(f"{name} needs finite low <= high, got {low}, {high}")
    if positive and not np.all(low > 0):
        raise ValueError(f"{name} needs positive values, got low {low}")


class _Interval:
    """What has a ``low`` and a ``high``."""

    @property
    def range(self):
        """Smallest and largest value over all dimensions."""
        return float(np.min(self.low)), float(np.max(self.high))


@dataclasses.dataclass(frozen=True)
class Uniform(_Interval):
    """Uniform distribution; ``low`` and ``high`` may be tuples, one entry per dimension."""

    low: float | tuple = 0.0
    high: float | tuple = 1.0

    def __post_init__(self):
        _check_order(self.low, self.high, "uniform")

    def sample(self, shape, generator):
        """Draw.

        Parameters
        ----------
        shape : tuple of int
            Its last axis is that of the dimensions, where there is an entry for each.
        generator : torch.Generator

        Returns
        -------
        Tensor
            In float64, on the generator's device.
        """
        u = torch.rand(shape, generator=generator, dtype=torch.float64, device=generator.device)
        low = torch.as_tensor(self.low, dtype=torch.float64, device=u.device)
        high = torch.as_tensor(self.high, dtype=torch.float64, device=u.device)
        return low + (high - low) * u


@dataclasses.dataclass(frozen=True)
class ShiftedExponential:
    """``shift + Gamma(shape=1, rate)``, the paper's prior of a lengthscale."""

    shift: float | tuple = 0.2
    rate: float | tuple = 10.0

    def __post_init__(self):
        if not (np.isfinite(self.shift).all() and np.all(np.asarray(self.rate) > 0)):
            raise ValueError(
                f"shifted-exponential needs a finite shift and a positive rate, got {self}"
            )

    @property
    def range(self):
        """Smallest and largest value over all dimensions."""
        return float(np.min(self.shift)), float("inf")

    def sample(self, shape, generator):
        """Draw.

        Parameters
        ----------
        shape : tuple of int
            Its last axis is that of the dimensions, where there is an entry for each.
        generator : torch.Generator

        Returns
        -------
        Tensor
            In float64, on the generator's device.
        """
        u = torch.rand(shape, generator=generator, dtype=torch.float64, device=generator.device)
        shift = torch.as_tensor(self.shift, dtype=torch.float64, device=u.device)
        rate = torch.as_tensor(self.rate, dtype=torch.float64, device=u.device)
        # rand is in [0, 1), so the logarithm is finite.
        return shift - torch.log1p(-u) / rate


@dataclasses.dataclass(frozen=True)
class LogUniform(_Interval):
    """Uniform in the logarithm; for scales of unknown order of magnitude."""

    low: float | tuple = 0.1
    high: float | tuple = 1.0

    def __post_init__(self):
        _check_order(self.low, self.high, "log-uniform", positive=True)

    def sample(self, shape, generator):
        """Draw.

        Parameters
        ----------
        shape : tuple of int
            Its last axis is that of the dimensions, where there is an entry for each.
        generator : torch.Generator

        Returns
        -------
        Tensor
            In float64, on the generator's device.
        """
        u = torch.rand(shape, generator=generator, dtype=torch.float64, device=generator.device)
        low = torch.as_tensor(self.low, dtype=torch.float64, device=u.device).log()
        high = torch.as_tensor(self.high, dtype=torch.float64, device=u.device).log()
        return torch.exp(low + (high - low) * u)


DISTRIBUTIONS = {
    "uniform": Uniform,
    "log-uniform": LogUniform,
    "shifted-exponential": ShiftedExponential,
}


def parse_distribution(text):
    """A distribution from its text.

    Parameters
    ----------
    text : str
        Such as ``uniform:0.1,0.5`` or ``shifted-exponential:0.2,10``. A slash separates values
        for each dimension: ``uniform:0.1/0.2,0.5/0.9``.

    Returns
    -------
    Uniform, LogUniform or ShiftedExponential

    Raises
    ------
    ValueError
        The text is neither.
    """
    kind, _, rest = text.partition(":")
    try:
        values = [tuple(float(v) for v in part.split("/")) for part in rest.split(",")]
        first, second = (v[0] if len(v) == 1 else v for v in values)
        distribution = DISTRIBUTIONS[kind]
    except (KeyError, ValueError) as error:
        raise ValueError(
            "a distribution is written uniform:LOW,HIGH, log-uniform:LOW,HIGH or "
            f"shifted-exponential:SHIFT,RATE, got {text!r}"
        ) from error
    return distribution(first, second)


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A batch of RBF kernels with their observation noise (eqS-rbf_kernel).

    Parameters
    ----------
    variance : Tensor of shape (K,)
    lengthscale : Tensor of shape (K, D)
    noise : Tensor of shape (K,)
        Variance of the observation noise.
    """

    variance: torch.Tensor
    lengthscale: torch.Tensor
    noise: torch.Tensor

    def repeat(self, times):
        """Each kernel several times in a row.

        Parameters
        ----------
        times : int

        Returns
        -------
        Kernel
        """
        return Kernel(*(t.repeat_interleave(times, 0) for t in dataclasses.astuple(self)))

    def __getitem__(self, index):
        return Kernel(self.variance[index], self.lengthscale[index], self.noise[index])

    def gram(self, x1, x2=None):
        """Noise-free covariance matrices.

        Parameters
        ----------
        x1 : Tensor of shape (K, n, D)
        x2 : Tensor of shape (K, m, D), optional
            ``x1`` if not given.

        Returns
        -------
        Tensor of shape (K, n, m)
            In float64.
        """
        x1 = (x1 - 0.5) / self.lengthscale[:, None]
        x2 = x1 if x2 is None else (x2 - 0.5) / self.lengthscale[:, None]
        # -|x1 - x2|^2 / 2 and the logarithm of the variance, all of it by one matrix product.
        half1 = self.variance.log()[:, None, None] - 0.5 * x1.square().sum(-1, keepdim=True)
        half2 = -0.5 * x2.square().sum(-1, keepdim=True)
        rows = torch.cat([x1, half1, torch.ones_like(half1)], -1)
        columns = torch.cat([x2, torch.ones_like(half2), half2], -1)
        return torch.bmm(rows, columns.mT).exp()


@dataclasses.dataclass(frozen=True)
class SafetyMean:
    """A batch of sech prior means, safe around a centre (eqS-sech_mean).

    Parameters
    ----------
    c : Tensor of shape (K,)
        Amplitude, roughly the standard deviation over the unit cube.
    w : Tensor of shape (K, D)
        Shape of the safe ellipsoid.
    Q : Tensor of shape (K, D, D)
        Orthogonal matrices, its rotation.
    centre : Tensor of shape (K, D)
        In the paper the middle of the unit cube.
    """

    c: torch.Tensor
    w: torch.Tensor
    Q: torch.Tensor
    centre: torch.Tensor

    def repeat(self, times):
        """Each mean several times in a row.

        Parameters
        ----------
        times : int

        Returns
        -------
        SafetyMean
        """
        return SafetyMean(*(t.repeat_interleave(times, 0) for t in dataclasses.astuple(self)))

    def __getitem__(self, index):
        return SafetyMean(self.c[index], self.w[index], self.Q[index], self.centre[index])

    def to(self, dtype):
        """The same in another floating-point type, so that it need not be converted at each use.

        Parameters
        ----------
        dtype : torch.dtype

        Returns
        -------
        SafetyMean
        """
        return SafetyMean(*(t.to(dtype) for t in vars(self).values()))

    def __call__(self, x):
        """Evaluate.

        Parameters
        ----------
        x : Tensor of shape (K, n, D)

        Returns
        -------
        Tensor of shape (K, n)
        """
        # Row vectors times Q is Q' times column vectors.
        u = (x - self.centre.to(x.dtype)[:, None]) @ self.Q.to(x.dtype)
        s = (self.w.to(x.dtype)[:, None] * u.square()).mean(-1)
        return 3.2 * self.c.to(x.dtype)[:, None] * (-0.47 + 1 / torch.cosh(s))


def draw_kernels(n, n_features, lengthscale, variance, generator, mean_variance=0.0):
    """Draw kernels whose signal and noise share the total variance.

    Parameters
    ----------
    n, n_features : int
    lengthscale, variance : distribution
        ``variance`` is that of kernel and prior mean together.
    generator : torch.Generator
    mean_variance : float or Tensor of shape (n,), default=0
        The share c^2 of the prior mean.

    Returns
    -------
    Kernel
    """
    v = variance.sample((n,), generator)
    scale = lengthscale.sample((n, n_features), generator)
    return Kernel(v - mean_variance, scale, TOTAL_VARIANCE - v)


def draw_safety_means(mean_variance, n_features, shape, centre, generator):
    """Draw prior means of safety functions.

    Parameters
    ----------
    mean_variance : Tensor of shape (n,)
        c^2 of each.
    n_features : int
    shape, centre : distribution
        Of w and of the centre.
    generator : torch.Generator

    Returns
    -------
    SafetyMean
    """
    n = len(mean_variance)
    A = Uniform(-1.0, 1.0).sample((n, n_features, n_features), generator)
    Q = torch.linalg.qr(A).Q
    w = shape.sample((n, n_features), generator)
    return SafetyMean(mean_variance.sqrt(), w, Q, centre.sample((n, n_features), generator))
