"""What training maximises, from one Cholesky factorisation for all conditionals.

With ``K + s2 I = L L'`` and ``w = L^-1 (values - mean)``, the i-th value given all
before it is normal with standard deviation ``L_ii`` and mean ``value_i - L_ii w_i``.
So neither the joint density nor the sequence of predictions needs a loop over time.
"""

import math

import torch

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
# Keeps the safety term finite without a tolerance (the paper adds the same number).
SMALLEST_GAMMA = 1e-5


class Conditionals:
    """Each value given all before it, under a Gaussian process.

    Parameters
    ----------
    kernel : Kernel
    x : Tensor of shape (B, N, D)
    values : Tensor of shape (B, N)
    mask : bool Tensor of shape (B, N)
        Values that are False are left out, as if they did not exist.
    mean : Tensor of shape (B, N), optional
        Prior mean; zero if not given.

    Attributes
    ----------
    mean, std : Tensor of shape (B, N)
        Predictive mean and standard deviation (noise included), in float64.
    surprise : Tensor of shape (B, N)
        ``-log p(value_i | values before)``; zero where masked.
    """

    def __init__(self, kernel, x, values, mask, mean=None):
        x, values = x.double(), values.double()
        real = mask.double()
        residual = values if mean is None else values - mean.double()
        residual = residual * real
        # A masked point becomes a row of the identity, which conditions nothing.
        K = kernel.gram(x) * real[:, :, None] * real[:, None, :]
        K = K + torch.diag_embed(torch.where(mask, kernel.noise[:, None], 1.0))
        L = torch.linalg.cholesky(K)
        w = torch.linalg.solve_triangular(L, residual[..., None], upper=False)[..., 0]
        self.std = L.diagonal(dim1=1, dim2=2)
        self.mean = values - self.std * w
        self.surprise = (0.5 * w.square() + self.std.log() + HALF_LOG_2PI) * real


def entropy(rollout, tasks):
    """H: surprise of the queried outputs an observation (eq-gp_logprob_objective).

    Returns
    -------
    Tensor of shape (B,)
    """
    y = Conditionals(tasks.kernel, rollout.X, rollout.Y, rollout.mask)
    return (y.surprise * rollout.queried).sum(1) / rollout.mask.sum(1)


def log_unsafe(rollout, tasks):
    """Log-probability that each point is measured as unsafe, given all before it.

    Returns
    -------
    Tensor of shape (B, N)
    """
    mean = tasks.safety_mean(rollout.X.double())
    z = Conditionals(tasks.safety_kernel, rollout.X, rollout.Z, rollout.mask, mean)
    return torch.special.log_ndtr(-z.mean / z.std)


def safe_entropy(rollout, tasks, gamma):
    """S_H: entropy less the unsafe log-probabilities (eq-safe_gp_logprob_objective).

    Parameters
    ----------
    rollout : Rollout
    tasks : Tasks
    gamma : float
        A probability of being unsafe below this one is as good as none.

    Returns
    -------
    Tensor of shape (B,)
    """
    unsafe = log_unsafe(rollout, tasks).clamp_min(math.log(max(gamma, SMALLEST_GAMMA)))
    penalty = (unsafe * rollout.queried).sum(1) / rollout.mask.sum(1)
    return entropy(rollout, tasks) - penalty


def objective(name, rollout, tasks, gamma):
    """An objective by its name, ``"H"`` or ``"S_H"``, one value a task."""
    if name == "H":
        return entropy(rollout, tasks)
    if name == "S_H":
        return safe_entropy(rollout, tasks, gamma)
    raise ValueError(f"objective must be 'H' or 'S_H', got {name!r}")
