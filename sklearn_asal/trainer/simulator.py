"""Simulated campaigns: functions, initial data and the policy's rollout (alg-asal_training)."""

import dataclasses
import functools
import itertools

import torch
from torch.nn import functional as F

from .fourier import FourierFunctions
from .priors import Kernel, SafetyMean, draw_kernels, draw_safety_means
from .references import Contrast, Grid, measure, points_anywhere, safe_points

# The initial points of a safe campaign are this close to the centre along each axis, and
# there are so many rounds of drawing them (alg-initial_sample).
INITIAL_RADIUS = 0.1
MAX_ITER = 50
# Campaigns that are computed at once are sorted into so many buckets by their length.
N_BUCKETS = 4


@dataclasses.dataclass
class Tasks:
    """A batch of campaigns about to begin, longest first.

    Attributes
    ----------
    kernel : Kernel
        Of the outputs, one for each task, with their noise.
    f : FourierFunctions
    lengths : tuple of int
        T_sim of each, in descending order; on the host, since it decides what is computed.
    n_queries : int Tensor of shape (B,)
        The same on the device.
    y_noise : Tensor of shape (B, T)
        Noise of the queries to come.
    safety_kernel, safety_mean, q_raw, z_noise
        The same for the safety function ``q = safety_mean + q_raw``; None without one.
    X, Y, Z : Tensor of shape (B, n_init, D), (B, n_init) and (B, n_init)
        Initial observations; Z is None without a safety function.
    grid, contrast : Grid and Contrast
        Where the objective needs them.
    """

    kernel: Kernel
    f: FourierFunctions
    lengths: tuple
    n_queries: torch.Tensor
    y_noise: torch.Tensor
    safety_kernel: Kernel | None = None
    safety_mean: SafetyMean | None = None
    q_raw: FourierFunctions | None = None
    z_noise: torch.Tensor | None = None
    X: torch.Tensor | None = None
    Y: torch.Tensor | None = None
    Z: torch.Tensor | None = None
    grid: Grid | None = None
    contrast: Contrast | None = None

    def __len__(self):
        return len(self.lengths)

    @property
    def safe(self):
        """Whether the tasks have a safety function."""
        return self.q_raw is not None

    def q(self, x):
        """Noise-free safety.

        Parameters
        ----------
        x : Tensor of shape (B, n, D)

        Returns
        -------
        Tensor of shape (B, n)
        """
        return self.safety_mean(x) + self.q_raw(x)

    def batch(self, m, n_batches):
        """One of the equal batches that were drawn together.

        Parameters
        ----------
        m, n_batches : int
            The m-th of so many.

        Returns
        -------
        Tasks
        """
        B = len(self) // n_batches
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        whole = {name: fields.pop(name) for name in ("grid", "contrast")}
        parts = {k: v if v is None else v[m * B : (m + 1) * B] for k, v in fields.items()}
        parts |= {k: v if v is None else v.batch(m, n_batches) for k, v in whole.items()}
        return Tasks(**parts)

    def tensors(self):
        """All tensors of the tasks.

        Returns
        -------
        list of Tensor
            Always in the same order.
        """
        return list(_tensors(self))


@dataclasses.dataclass
class Rollout:
    """Campaigns carried out, padded to the longest one.

    Attributes
    ----------
    X : Tensor of shape (B, N, D)
        Initial points, then queries.
    Y, Z : Tensor of shape (B, N)
        Noisy observations; Z is None without a safety function.
    mask : bool Tensor of shape (B, N)
        True where a point was measured, False for padding (zeros in X, Y and Z).
    n_init : int
        How many of the N are initial.
    """

    X: torch.Tensor
    Y: torch.Tensor
    Z: torch.Tensor | None
    mask: torch.Tensor
    n_init: int

    @property
    def queried(self):
        """True where a point was proposed by the policy, ``(B, N)``."""
        queried = self.mask.clone()
        queried[:, : self.n_init] = False
        return queried


def draw_tasks(preset, n_kernels, n_functions, n_noises, generator, n_queries=None):
    """Draw a batch of ``n_kernels * n_functions * n_noises`` tasks.

    Parameters
    ----------
    preset : Preset
    n_kernels, n_functions, n_noises : int
        Kernels; functions for each; noise realisations and initial points for each of those.
    generator : torch.Generator
        Its device is where the tasks live.
    n_queries : int or sequence of int, optional
        Of every task, or of each in descending order. If not given, uniform on 1 to
        ``preset.max_budget`` by :func:`spread_lengths`, or equal to ``preset.max_budget`` where
        ``preset.random_budget`` is off.

    Returns
    -------
    Tasks
    """
    counts = (n_kernels, n_functions, n_noises)
    return draw_batches(preset, 1, counts, generator, n_queries)[0]


def draw_batches(preset, n_batches, counts, generator, n_queries=None):
    """Draw several batches of tasks at once, which takes hardly longer on a GPU.

    Parameters
    ----------
    preset : Preset
    n_batches : int
    counts : tuple of int
        Numbers of kernels, functions and noises of each batch.
    generator, n_queries
        See :func:`draw_tasks`; all batches have the same lengths.

    Returns
    -------
    list of Tasks
    """
    K, B = counts[0], counts[0] * counts[1] * counts[2]
    options = dict(generator=generator, device=generator.device)
    single = options | {"dtype": torch.float32}
    # Tasks are sorted by length and neighbours would share a kernel, so they are shuffled.
    order = torch.cat([torch.randperm(B, **options) + m * B for m in range(n_batches)])
    lengths = _lengths(preset, B, n_queries, single)
    noise = torch.randn((2, n_batches * B, lengths[0]), **single)
    K_all, per_kernel = n_batches * K, counts[1] * counts[2]
    of_kernel = order // per_kernel

    def draw_functions(lengthscale, mean_variance=0.0):
        kernel = draw_kernels(
            K_all, preset.n_features, lengthscale, preset.variance, generator, mean_variance
        )
        functions = FourierFunctions(kernel.repeat(counts[1]), generator, preset.n_fourier)
        return kernel, functions[order // counts[2]]

    kernels, f = draw_functions(preset.lengthscale)
    kernel = kernels[of_kernel]
    n_queries = torch.tensor(lengths * n_batches, device=options["device"])
    y_noise = noise[0] * kernel.noise.sqrt().float()[:, None]
    tasks = Tasks(kernel, f, lengths * n_batches, n_queries, y_noise)
    if preset.safe:
        c2 = preset.mean_variance.sample((K_all,), generator)
        safety_kernels, tasks.q_raw = draw_functions(preset.safety_lengthscale, c2)
        tasks.safety_kernel = safety_kernels[of_kernel]
        mean = draw_safety_means(
            c2, preset.n_features, preset.safety_shape, preset.safe_centre, generator
        )
        tasks.safety_mean = mean[of_kernel]
        tasks.z_noise = noise[1] * tasks.safety_kernel.noise.sqrt().float()[:, None]
        tasks.X, tasks.Y, tasks.Z = _draw_safe_initial(tasks, preset, options)
    else:
        tasks.X = torch.rand((len(order), preset.n_init, preset.n_features), **single)
        tasks.Y = measure(f, tasks.X, kernel, options)
    if preset.needs_grid and preset.safe:
        # Each task has a safe region of its own.
        n, each = len(order), torch.arange(len(order), device=order.device)
        x = safe_points(tasks.q, n, preset.n_grid, preset.n_features, preset.lags, options)
        tasks.grid = Grid(kernel, each, f, x, options)
    elif preset.needs_grid:
        x = points_anywhere(preset.grid, K_all, preset.n_grid, preset.n_features, options)
        tasks.grid = Grid(kernels, of_kernel, f, x, options)
    if preset.needs_contrast:
        tasks.contrast = Contrast(kernels, of_kernel, f, preset, generator)
    return [tasks] if n_batches == 1 else [tasks.batch(m, n_batches) for m in range(n_batches)]


def spread_lengths(max_budget, n_tasks, u=0.5):
    """Lengths of campaigns, uniform on 1 to ``max_budget`` and spread evenly over it.

    A systematic sample: with ``u`` uniform on [0, 1), each length is uniform, but a batch
    holds long and short campaigns in equal shares, which takes variance off its gradient.

    Parameters
    ----------
    max_budget, n_tasks : int
    u : float, default=0.5
        On [0, 1).

    Returns
    -------
    tuple of int
        In descending order.
    """
    return tuple(
        min(max_budget, 1 + int(max_budget * (i + u) / n_tasks)) for i in reversed(range(n_tasks))
    )


def _lengths(preset, n_tasks, n_queries, single):
    if n_queries is None and preset.random_budget:
        return spread_lengths(preset.max_budget, n_tasks, torch.rand(1, **single).item())
    if n_queries is None or isinstance(n_queries, int):
        return (n_queries or preset.max_budget,) * n_tasks
    return tuple(n_queries)


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif hasattr(value, "__dict__"):
        for part in vars(value).values():
            yield from _tensors(part)


def _draw_safe_initial(tasks, preset, options):
    """Points around the centre that were measured as safe (alg-initial_sample).

    All ``MAX_ITER`` rounds of the algorithm are drawn together and the first
    ``n_init`` safe points taken; where there are too few, unsafe ones fill up.
    """
    n, single = preset.n_init, options | {"dtype": torch.float32}
    u = torch.rand((len(tasks), n * MAX_ITER, preset.n_features), **single)
    x = (tasks.safety_mean.centre.float()[:, None] + INITIAL_RADIUS * (2 * u - 1)).clamp(0, 1)
    y_noise = torch.randn(x.shape[:2], **single) * tasks.kernel.noise.sqrt().float()[:, None]
    z = measure(tasks.q, x, tasks.safety_kernel, options)
    first = torch.argsort((z < 0).to(torch.int8), dim=1, stable=True)[:, :n]
    x = x.gather(1, first[..., None].expand(-1, -1, preset.n_features))
    return x, tasks.f(x) + y_noise.gather(1, first), z.gather(1, first)


def simulate(network, tasks, clip=None, through_time=True):
    """Let a policy carry the campaigns out (alg-asal_training, alg-aal_training).

    Parameters
    ----------
    network : TransformerNetwork or ReaderNetwork
        Or anything with ``campaigns``; with ``tokens`` and ``replay`` as well, gradients that are
        not propagated through the rollout are computed for all queries at once.
    tasks : Tasks
    clip : float, optional
        On the backward pass, scale the gradient of each query of each campaign down to
        this many times the batch's median norm, so that no single campaign owns a step.
    through_time : bool, default=True
        Whether gradients are propagated back through the rollout, so that a query's also counts
        how it changes the policy's later queries.

    Returns
    -------
    Rollout
    """
    if not through_time and torch.is_grad_enabled() and hasattr(network, "replay"):
        return _replayed(network, tasks, clip)
    lengths, n_init = tasks.lengths, tasks.X.shape[1]
    campaigns = network.campaigns(tasks.n_queries, n_init, lengths[0])
    campaigns.see(tasks.X, tasks.Y, tasks.Z)
    functions = tasks.f
    if tasks.safe:
        functions, mean = tasks.f.paired(tasks.q_raw), tasks.safety_mean.to(tasks.X.dtype)
    steps, z = [], None
    for t in range(lengths[0]):
        # Longest first, so the campaigns still going on are a prefix.
        n = sum(length > t for length in lengths)
        x = campaigns.decide(n)
        if clip is not None and x.requires_grad:
            x.register_hook(functools.partial(_clip_rows, factor=clip))
        x = x[:, None]
        y = functions[:n](x)
        if tasks.safe:
            y, q_raw = y.unbind(-1)
            z = mean[:n](x) + q_raw + tasks.z_noise[:n, t, None]
        y = y + tasks.y_noise[:n, t, None]
        steps.append((x, y, z))
        if t + 1 < lengths[0]:
            campaigns.see(*((x, y, z) if through_time else _detached(x, y, z)))
    X, Y, Z = zip((tasks.X, tasks.Y, tasks.Z), *steps, strict=True)
    positions = torch.arange(lengths[0], device=tasks.X.device)
    mask = F.pad(positions < tasks.n_queries[:, None], (n_init, 0), value=True)
    return Rollout(_stack(X), _stack(Y), _stack(Z) if tasks.safe else None, mask, n_init)


def _replayed(network, tasks, clip):
    """Simulate the rollout without gradients, then decide anew with them, all at once."""
    with torch.no_grad():
        rollout = simulate(network, tasks)
    n_init, longest = rollout.n_init, tasks.lengths[0]
    decided = []
    for part in _length_buckets(tasks.lengths):
        T = tasks.lengths[part.start]
        known = part, slice(n_init + T - 1)
        Z = rollout.Z[known] if tasks.safe else None
        tokens = network.tokens(rollout.X[known], rollout.Y[known], Z)
        x = network.replay(tasks.n_queries[part], n_init, T, tokens)
        decided.append(F.pad(x, (0, 0, 0, longest - T)))
    x = torch.cat(decided)
    if clip is not None:
        x.register_hook(functools.partial(_clip_rows, factor=clip))
    x = torch.where(rollout.mask[:, n_init:, None], x, 0.0)
    rollout.X = torch.cat([tasks.X, x], 1)
    rollout.Y = torch.cat([tasks.Y, tasks.f(x) + tasks.y_noise], 1)
    if tasks.safe:
        rollout.Z = torch.cat([tasks.Z, tasks.q(x) + tasks.z_noise], 1)
    return rollout


def _length_buckets(lengths):
    """Slices of campaigns of about equal length, so that little is computed for padding."""
    ends = [len(lengths) * i // N_BUCKETS for i in range(N_BUCKETS + 1)]
    return [slice(*pair) for pair in itertools.pairwise(ends) if pair[0] < pair[1]]


def _detached(*parts):
    return tuple(part if part is None else part.detach() for part in parts)


def _stack(parts):
    """Join (B_t, n_t, ...) along the second axis, zeros where the batch has shrunk."""
    B = len(parts[0])
    padded = [F.pad(p, [0, 0] * (p.ndim - 1) + [0, B - len(p)]) for p in parts]
    return torch.cat(padded, 1)


def _clip_rows(gradient, factor):
    norm = gradient.norm(dim=-1, keepdim=True)
    limit = factor * norm.median()
    return gradient * (limit / norm.clamp_min(1e-30)).clamp(max=1.0)
