"""What some objectives compare a rollout with: a grid of outputs, or other functions."""

import torch

from .fourier import FourierFunctions


def measure(function, x, kernel, options):
    """Noisy values of functions, ``(B, n, D) -> (B, n)``."""
    noise = torch.randn(x.shape[:2], **options)
    return function(x) + noise * kernel.noise.sqrt().to(x.dtype)[:, None]


class _ByKernel:
    """Tasks brought together by their kernel, of which each has as many.

    Parameters
    ----------
    of_kernel : int Tensor of shape (B,)
        Which of the K kernels each task has.
    n_kernels : int
    """

    def __init__(self, of_kernel, n_kernels):
        self.n_kernels = n_kernels
        self.together = torch.argsort(of_kernel, stable=True)
        self.back = torch.argsort(self.together)

    def gather(self, values):
        """``(B, n, ...) -> (K, B / K * n, ...)``."""
        return values[self.together].reshape(self.n_kernels, -1, *values.shape[2:])

    def scatter(self, values, n):
        """``(K, B / K * n, ...) -> (B, n, ...)``."""
        return values.reshape(-1, n, *values.shape[2:])[self.back]


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
    n_grid : int
    options : dict
        ``generator`` and ``device``.
    """

    def __init__(self, kernels, of_kernel, f, n_grid, options):
        K, D = kernels.lengthscale.shape
        super().__init__(of_kernel, K)
        # Beta(1/2, 1/2) is the arcsine distribution.
        u = torch.rand((K, n_grid, D), **options, dtype=torch.float64)
        self.x = torch.sin(0.5 * torch.pi * u).square()
        x = self.x[of_kernel].float()
        y = measure(f, x, kernels[of_kernel], options).double()
        gram = kernels.gram(self.x)
        noise = torch.diag_embed(kernels.noise[:, None].expand(K, n_grid))
        self._factor = torch.linalg.cholesky(gram + noise)
        # (B, n) as n columns for each kernel, and back.
        columns = y[self.together].reshape(K, -1, n_grid).transpose(1, 2)
        whitened = torch.linalg.solve_triangular(self._factor, columns, upper=False)
        self.whitened = whitened.transpose(1, 2).reshape(-1, n_grid)[self.back]

    def cross(self, kernel, X):
        """Whitened covariance of the grid with points.

        Parameters
        ----------
        kernel : Kernel
            One for each task.
        X : Tensor of shape (B, N, D)
            In float64.

        Returns
        -------
        Tensor of shape (B, n_grid, N)
            ``L^-1 k(grid, X)``.
        """
        B, N, _ = X.shape
        kernels = kernel[self.together[:: B // self.n_kernels]]
        gram = kernels.gram(self.x, self.gather(X))
        solved = torch.linalg.solve_triangular(self._factor, gram, upper=False)
        return self.scatter(solved.transpose(1, 2), N).transpose(1, 2)


class Contrast(_ByKernel):
    """Other functions of the same kernels (eq-dad_objective).

    Parameters
    ----------
    kernels : Kernel
        K of them.
    of_kernel : int Tensor of shape (B,)
    preset : Preset
        Its ``n_contrastive`` functions are drawn for each kernel.
    generator : torch.Generator
    """

    def __init__(self, kernels, of_kernel, preset, generator):
        super().__init__(of_kernel, len(kernels.variance))
        self.n = preset.n_contrastive
        self.functions = FourierFunctions(kernels.repeat(self.n), generator, preset.n_fourier)

    def __call__(self, X):
        """Values of a kernel's functions at its tasks' points, ``(B, N, D) -> (B, n, N)``."""
        x = self.gather(X).repeat_interleave(self.n, 0)
        values = self.functions(x).reshape(self.n_kernels, self.n, -1).transpose(1, 2)
        return self.scatter(values, X.shape[1]).transpose(1, 2)
