"""Reference sets of objectives: a grid of outputs, or contrastive functions."""

import math

import torch

from ..policies.layers import reach
from .fourier import FourierFunctions

# So many points are drawn for each of a grid in the safe region.
CANDIDATES = 8


def measure(function, x, kernel, options):
    """Noisy values of functions.

    Parameters
    ----------
    function : callable
        Noise-free values, ``(B, n, D) -> (B, n)``.
    x : Tensor of shape (B, n, D)
    kernel : Kernel
        With the variance of the noise, one for each function.
    options : dict
        ``generator`` and ``device``.

    Returns
    -------
    Tensor of shape (B, n)
        In the precision of ``x``.
    """
    noise = torch.randn(x.shape[:2], **options, dtype=x.dtype)
    return function(x) + noise * kernel.noise.sqrt().to(x.dtype)[:, None]


class _ByKernel:
    """Tasks sorted by their kernel, of which each has as many.

    Parameters
    ----------
    of_kernel : int Tensor of shape (B,)
        Which of the K kernels each task has.
    n_kernels : int
    """

    def __init__(self, of_kernel, n_kernels):
        self.n_kernels = n_kernels
        self.of_kernel = of_kernel
        self.order = torch.argsort(of_kernel, stable=True)
        self.inverse = torch.argsort(self.order)

    def gather(self, values):
        """``(B, n, ...) -> (K, B / K * n, ...)``."""
        values = values.index_select(0, self.order)
        return values.reshape(self.n_kernels, -1, *values.shape[2:])

    def scatter(self, values, n):
        """``(K, B / K * n, ...) -> (B, n, ...)``."""
        return values.reshape(-1, n, *values.shape[2:]).index_select(0, self.inverse)

    def _batch(self, m, n_batches):
        """A copy for the m-th of equal batches, and its kernels and tasks as slices."""
        K, B = self.n_kernels // n_batches, len(self.of_kernel) // n_batches
        tasks = slice(m * B, (m + 1) * B)
        part = object.__new__(type(self))
        _ByKernel.__init__(part, self.of_kernel[tasks] - m * K, K)
        return part, slice(m * K, (m + 1) * K), tasks


def points_anywhere(grid, n_kernels, n_grid, n_features, options):
    """Points of a grid in the whole cube.

    Parameters
    ----------
    grid : {"arcsine", "uniform", "both"}
        Their distribution; see :class:`~sklearn_asal.trainer.presets.Preset`.
    n_kernels, n_grid, n_features : int
    options : dict
        ``generator`` and ``device``.

    Returns
    -------
    Tensor of shape (n_kernels, n_grid, n_features)
        In float64.
    """
    u = torch.rand((n_kernels, n_grid, n_features), **options, dtype=torch.float64)
    n = {"arcsine": n_grid, "uniform": 0, "both": n_grid // 2}[grid]
    # Beta(1/2, 1/2) is the arcsine distribution.
    return torch.cat([torch.sin(0.5 * torch.pi * u[:, :n]).square(), u[:, n:]], 1)


def reachable(u, lags):
    """Points whose lagged features are uniform within their steps.

    Parameters
    ----------
    u : Tensor of shape (..., n_features)
        Uniform on the unit cube.
    lags : tuple
        See :class:`~sklearn_asal.trainer.presets.Preset`.

    Returns
    -------
    Tensor of shape (..., n_features)
    """
    columns = list(u.unbind(-1))
    for later, earlier, step in lags:
        low, high = reach(columns[earlier], step)
        columns[later] = low + (high - low) * columns[later]
    return torch.stack(columns, -1)


def safe_points(q, n_tasks, n_grid, n_features, lags, options):
    """Points of a grid in the safe region of each task, uniform among what the lags can reach.

    Where too few of those drawn are safe, the least unsafe ones fill up.

    Parameters
    ----------
    q : callable
        Noise-free safety, ``(n_tasks, n, n_features) -> (n_tasks, n)``.
    n_tasks, n_grid, n_features : int
    lags : tuple
        See :class:`~sklearn_asal.trainer.presets.Preset`.
    options : dict
        ``generator`` and ``device``.

    Returns
    -------
    Tensor of shape (n_tasks, n_grid, n_features)
        In float64.
    """
    shape = n_tasks, CANDIDATES * n_grid, n_features
    x = reachable(torch.rand(shape, **options, dtype=torch.float32), lags)
    first = torch.argsort(q(x).clamp_max(0), dim=1, descending=True, stable=True)[:, :n_grid]
    return x.gather(1, first[..., None].expand(-1, -1, n_features)).double()


class Grid(_ByKernel):
    """Noisy outputs at random points (eq-gp_logprob_reduction_objective).

    The points are the same for all tasks of a kernel, so that their covariance is
    factorised once a kernel; the outputs are each task's own.

    Parameters
    ----------
    kernels : Kernel
        K of them.
    of_kernel : int Tensor of shape (B,)
    f : FourierFunctions
        One for each task.
    x : Tensor of shape (K, n_grid, D)
        The points, in float64.
    options : dict
        ``generator`` and ``device``.
    """

    def __init__(self, kernels, of_kernel, f, x, options):
        K, n_grid, _ = x.shape
        super().__init__(of_kernel, K)
        self.x = x
        x = self.x[of_kernel].float()
        y = measure(f, x, kernels[of_kernel], options).double()
        gram = kernels.gram(self.x)
        noise = torch.diag_embed(kernels.noise[:, None].expand(K, n_grid))
        factor = torch.linalg.cholesky(gram + noise)
        eye = torch.eye(n_grid, dtype=factor.dtype, device=factor.device)
        # Inverted once, every use is a matrix product; in float64 with noise that is exact enough.
        self.whitener = torch.linalg.solve_triangular(factor, eye, upper=False)
        # (B, n) as rows for each kernel, and back.
        rows = y[self.order].reshape(K, -1, n_grid)
        self.whitened = (rows @ self.whitener.mT).reshape(-1, n_grid)[self.inverse]

    def batch(self, m, n_batches):
        """The reference set of one of the batches that were drawn together.

        Parameters
        ----------
        m, n_batches : int
            The m-th of so many.

        Returns
        -------
        same type
        """
        part, kernels, tasks = self._batch(m, n_batches)
        part.x, part.whitener = self.x[kernels], self.whitener[kernels]
        part.whitened = self.whitened[tasks]
        return part

    def explained(self, kernel, X):
        """What the grid tells about outputs elsewhere.

        Parameters
        ----------
        kernel : Kernel
            One for each task.
        X : Tensor of shape (B, N, D)
            In float64.

        Returns
        -------
        covariance, mean : Tensor of shape (B, N, N) and (B, N)
            By how much they covary less once it is known, and what is expected of them then.
        """
        B, N, _ = X.shape
        kernels = kernel[self.order[:: B // self.n_kernels]]
        gram = kernels.gram(self.gather(X), self.x)
        # Still sorted by kernel.
        whitened = (gram @ self.whitener.mT).view(B, N, -1)
        covariance = whitened @ whitened.mT
        mean = whitened @ self.whitened[self.order].unsqueeze(-1)
        return covariance.index_select(0, self.inverse), mean.squeeze(-1).index_select(
            0, self.inverse
        )


class Contrast(_ByKernel):
    """Other functions of the same kernels (eq-dad_objective).

    With a correlation c above 0 these and the true function share a component h of the share c of
    their variance, ``f_l = sqrt(c) h + sqrt(1 - c) g_l`` for all l with independent g_l. Given h
    they are independent and alike, so the bound of DAD is one of I(f; data | h): what a campaign
    tells of a function that is known up to a remainder of the share 1 - c.

    Parameters
    ----------
    kernels : Kernel
        K of them.
    of_kernel : int Tensor of shape (B,)
    f : FourierFunctions
        The true function of each task; one for each kernel where they are correlated.
    preset : Preset
        Its ``n_contrastive`` functions are drawn for each kernel.
    generator : torch.Generator
    """

    def __init__(self, kernels, of_kernel, f, preset, generator):
        super().__init__(of_kernel, len(kernels.variance))
        self.n, self.correlation = preset.n_contrastive, preset.contrast_correlation
        self.functions = FourierFunctions(kernels.repeat(self.n), generator, preset.n_fourier)
        if self.correlation:
            self.true = f[self.order[:: len(of_kernel) // self.n_kernels]]
            self.other = FourierFunctions(kernels, generator, preset.n_fourier)

    def batch(self, m, n_batches):
        """The reference set of one of the batches that were drawn together.

        Parameters
        ----------
        m, n_batches : int
            The m-th of so many.

        Returns
        -------
        same type
        """
        part, kernels, _ = self._batch(m, n_batches)
        part.n, part.correlation = self.n, self.correlation
        part.functions = self.functions[kernels.start * self.n : kernels.stop * self.n]
        if self.correlation:
            part.true, part.other = self.true[kernels], self.other[kernels]
        return part

    def __call__(self, X):
        """Values of a kernel's functions at its tasks' points.

        Parameters
        ----------
        X : Tensor of shape (B, N, D)

        Returns
        -------
        Tensor of shape (B, n_contrastive, N)
        """
        x = self.gather(X)
        values = self.functions(x.repeat_interleave(self.n, 0))
        values = values.reshape(self.n_kernels, self.n, -1).transpose(1, 2)
        if self.correlation:
            c = self.correlation
            # h given the true function is sqrt(c) f + sqrt(1 - c) times an independent one.
            shared = c * self.true(x) + math.sqrt(c * (1 - c)) * self.other(x)
            values = shared[..., None] + math.sqrt(1 - c) * values
        return self.scatter(values, X.shape[1]).transpose(1, 2)
