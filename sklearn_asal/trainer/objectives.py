"""What training maximises, from one Cholesky factorisation for all conditionals.

With ``K + s2 I = L L'`` and ``w = L^-1 (values - mean)``, the i-th value given all
before it is normal with standard deviation ``L_ii`` and mean ``value_i - L_ii w_i``.
So neither the joint density nor the sequence of predictions needs a loop over time.

Every objective takes a rollout and its tasks and returns one value for each task.
"""

import math

import torch
from torch.autograd.function import once_differentiable

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
# Keeps the safety term finite without a tolerance (the paper adds the same number).
SMALLEST_GAMMA = 1e-5


class Conditionals:
    """Each value given all before it, for jointly normal values.

    Parameters
    ----------
    covariance : Tensor of shape (B, N, N)
        Noise included.
    values : Tensor of shape (B, N)
    mask : bool Tensor of shape (B, N)
        Values that are False are left out, as if they did not exist.
    mean : Tensor of shape (B, N), optional
        Zero if not given.

    Attributes
    ----------
    mean, std : Tensor of shape (B, N)
        Predictive mean and standard deviation.
    surprisal : Tensor of shape (B, N)
        ``-log p(value_i | values before)``; zero where masked.
    entropy : Tensor of shape (B, N)
        Its expectation, which does not depend on the values; zero where masked.
    """

    def __init__(self, covariance, values, mask, mean=None):
        real = mask.to(values.dtype)
        residual = (values if mean is None else values - mean) * real
        # A masked value becomes a row of the identity, which conditions nothing.
        covariance = covariance * (real[:, :, None] * real[:, None, :])
        self.std, w = _Whiten.apply(covariance + torch.diag_embed(1 - real), residual)
        self.mean = values - self.std * w
        log_std = self.std.log() + HALF_LOG_2PI
        self.surprisal = (0.5 * w.square() + log_std) * real
        self.entropy = (0.5 + log_std) * real


class _Whiten(torch.autograd.Function):
    """Diagonal of the Cholesky factor L and ``w = L^-1 residual``.

    Its backward pass knows that of L nothing else is used, and is a few matrix products.
    """

    @staticmethod
    def forward(ctx, covariance, residual):
        # Unchecked, since a check would wait for a GPU; a failure shows as nan.
        L, failed = torch.linalg.cholesky_ex(covariance)
        L.masked_fill_((failed > 0)[:, None, None], torch.nan)
        w = torch.linalg.solve_triangular(L, residual[..., None], upper=False)[..., 0]
        ctx.save_for_backward(L, w)
        ctx.set_materialize_grads(False)
        return L.diagonal(dim1=1, dim2=2).clone(), w

    @staticmethod
    @once_differentiable
    def backward(ctx, of_std, of_w):
        L, w = ctx.saved_tensors
        eye = torch.eye(L.shape[1], dtype=L.dtype, device=L.device)
        V = torch.linalg.solve_triangular(L, eye, upper=False)
        # The gradient of the covariance is V' M V / 2. M is symmetric: std of_std on its diagonal,
        # and less of_w[i] w[j] wherever i >= j.
        diagonal = torch.zeros_like(w) if of_std is None else L.diagonal(dim1=1, dim2=2) * of_std
        if of_w is None:
            return 0.5 * V.mT @ (diagonal[..., None] * V), None
        lower = torch.tril(of_w[:, :, None] * w[:, None])
        M = torch.diag_embed(diagonal + of_w * w) - lower - lower.mT
        return 0.5 * V.mT @ (M @ V), (V.mT @ of_w[..., None])[..., 0]


def covariance(kernel, x):
    """Covariance of noisy observations.

    Parameters
    ----------
    kernel : Kernel
        B of them, with their noise.
    x : Tensor of shape (B, N, D)

    Returns
    -------
    Tensor of shape (B, N, N)
        In float64.
    """
    x = x.double()
    return kernel.gram(x) + torch.diag_embed(kernel.noise[:, None].expand(x.shape[:2]))


def per_observation(values, rollout):
    """Sum over the queried points, divided by the number of all observations.

    Parameters
    ----------
    values : Tensor of shape (B, N)
    rollout : Rollout

    Returns
    -------
    Tensor of shape (B,)
    """
    return (values * rollout.queried).sum(1) / rollout.mask.sum(1)


def entropy(rollout, tasks, expected=False):
    """H, the surprisal of the queried outputs (eq-gp_logprob_objective).

    Parameters
    ----------
    rollout : Rollout
    tasks : Tasks
    expected : bool, default=False
        H_mean instead, the entropy, for which only the inputs matter (eq-gp_entropy_objective).

    Returns
    -------
    Tensor of shape (B,)
    """
    K = covariance(tasks.kernel, rollout.X)
    return per_observation(_unknown(K, rollout, expected), rollout)


def reduced_entropy(rollout, tasks, expected=False):
    """I, the entropy less what is left of it when a grid is known too.

    Parameters
    ----------
    rollout : Rollout
    tasks : Tasks
        With a ``grid``.
    expected : bool, default=False
        I_mean (eq-gp_entropy_reduction_objective) instead of I
        (eq-gp_logprob_reduction_objective).

    Returns
    -------
    Tensor of shape (B,)
    """
    K = covariance(tasks.kernel, rollout.X)
    explained, mean = tasks.grid.explained(tasks.kernel, rollout.X.double())
    left = _unknown(K - explained, rollout, expected, mean)
    return per_observation(_unknown(K, rollout, expected) - left, rollout)


def _unknown(covariance, rollout, expected, mean=None):
    y = Conditionals(covariance, rollout.Y.double(), rollout.mask, mean)
    return y.entropy if expected else y.surprisal


def unsafe_margin(rollout, tasks):
    """How many standard deviations below the limit each safety prediction is.

    Each prediction is given all measurements before it; the probability of
    being measured as unsafe is the normal distribution function at this.

    Parameters
    ----------
    rollout : Rollout
    tasks : Tasks
        With a safety function.

    Returns
    -------
    Tensor of shape (B, N)
    """
    mean = tasks.safety_mean(rollout.X.double())
    K = covariance(tasks.safety_kernel, rollout.X)
    z = Conditionals(K, rollout.Z.double(), rollout.mask, mean)
    return -z.mean / z.std


def safe_entropy(rollout, tasks, gamma, expected=False, gain=entropy, weight=1.0):
    """S_H, entropy less the unsafe log-probabilities (eq-safe_gp_logprob_objective).

    Parameters
    ----------
    rollout : Rollout
    tasks : Tasks
    gamma : float
        A probability of being unsafe below this one is as good as none.
    expected : bool, default=False
        S_Hmean instead.
    gain : callable, default=entropy
        What is to be learned. With :func:`reduced_entropy` these are S_I and S_Imean, not of the
        paper: what is learned of the safe region counts, wherever it is learned.
    weight : float, default=1.0
        Of the log-probabilities; 1 in the paper.

    Returns
    -------
    Tensor of shape (B,)
    """
    unsafe = torch.special.log_ndtr(unsafe_margin(rollout, tasks))
    unsafe = unsafe.clamp_min(math.log(max(gamma, SMALLEST_GAMMA)))
    return gain(rollout, tasks, expected) - weight * per_observation(unsafe, rollout)


def safe_entropy_division(rollout, tasks, expected=False):
    """Entropy plus the safe log-probabilities (eq-safe_gp_logprob_division_objective).

    Parameters
    ----------
    rollout : Rollout
    tasks : Tasks
    expected : bool, default=False
        See :func:`entropy`.

    Returns
    -------
    Tensor of shape (B,)
    """
    safe = torch.special.log_ndtr(-unsafe_margin(rollout, tasks))
    return entropy(rollout, tasks, expected) + per_observation(safe, rollout)


def contrastive_bound(rollout, tasks):
    """The bound of DAD: how well the true function stands out (eq-dad_objective).

    The likelihood of all observations under the true function against its mean over
    that function and the contrastive ones.

    Parameters
    ----------
    rollout : Rollout
    tasks : Tasks
        With contrastive functions.

    Returns
    -------
    Tensor of shape (B,)
    """

    def log_likelihood(values):
        # values: (B, functions, N)
        noise = tasks.kernel.noise.to(values.dtype)[:, None]
        square = (rollout.Y[:, None] - values).square() * rollout.mask[:, None]
        return -0.5 * square.sum(-1) / noise

    # The normalising constants are the same for every function and cancel.
    true = log_likelihood(tasks.f(rollout.X)[:, None])
    others = log_likelihood(tasks.contrast(rollout.X))
    each = torch.cat([true, others], 1)
    return true[:, 0] - each.logsumexp(1) + math.log(each.shape[1])


#: By name: the function, and what it takes besides rollout and tasks.
OBJECTIVES = {
    "H": (entropy, {}),
    "H_mean": (entropy, {"expected": True}),
    "I": (reduced_entropy, {}),
    "I_mean": (reduced_entropy, {"expected": True}),
    "S_H": (safe_entropy, {}),
    "S_Hmean": (safe_entropy, {"expected": True}),
    "S_I": (safe_entropy, {"gain": reduced_entropy}),
    "S_Imean": (safe_entropy, {"gain": reduced_entropy, "expected": True}),
    "S_H_division": (safe_entropy_division, {}),
    "S_Hmean_division": (safe_entropy_division, {"expected": True}),
    "DAD": (contrastive_bound, {}),
}


def objective(name, rollout, tasks, gamma, weight=1.0):
    """An objective by its name.

    Parameters
    ----------
    name : str
        A key of ``OBJECTIVES``.
    rollout : Rollout
    tasks : Tasks
        With what the objective needs: a grid for I, contrastive functions for DAD, safety for S.
    gamma : float
        Tolerance of S_H, S_Hmean, S_I and S_Imean; the others take no notice.
    weight : float, default=1.0
        Of their safety term.

    Returns
    -------
    Tensor of shape (B,)
    """
    function, options = OBJECTIVES[name]
    if function is safe_entropy:
        options = {**options, "gamma": gamma, "weight": weight}
    return function(rollout, tasks, **options)
