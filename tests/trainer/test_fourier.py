import numpy as np
import pytest
import torch

from sklearn_asal.trainer.fourier import FourierFunctions, domain_mean
from sklearn_asal.trainer.priors import Kernel


def kernel(n, lengthscale, variance=0.98):
    lengthscale = torch.as_tensor(lengthscale, dtype=torch.float64)
    return Kernel(
        torch.full((n,), variance, dtype=torch.float64),
        lengthscale.expand(n, -1),
        torch.full((n,), 0.02, dtype=torch.float64),
    )


def functions(n, lengthscale, **options):
    generator = torch.Generator().manual_seed(0)
    return FourierFunctions(kernel(n, lengthscale), generator, dtype=torch.float64, **options)


def test_covariance_is_the_rbf_kernel():
    """Over many functions, to within four standard errors of a sample covariance."""
    n = 20_000
    x = torch.rand((1, 6, 2), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    values = functions(n, [0.3, 0.5], n_fourier=20, centred=False)(x.expand(n, -1, -1)).numpy()
    expected = kernel(1, [0.3, 0.5]).gram(x)[0].numpy()
    np.testing.assert_allclose(values.T @ values / n, expected, atol=4 * np.sqrt(2 / n))
    np.testing.assert_allclose(values.mean(0), 0, atol=4 / np.sqrt(n))


@pytest.mark.parametrize("lengthscale", [[0.3], [0.2, 0.7], [0.4, 0.5, 1e6]])
def test_domain_mean_against_quadrature(lengthscale):
    D = len(lengthscale)
    f = functions(4, lengthscale, centred=False)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    grid = np.stack(np.meshgrid(*[(nodes + 1) / 2] * D, indexing="ij"), -1).reshape(-1, D)
    w = np.ones(1)
    for _ in range(D):
        w = np.outer(w, weights / 2).ravel()
    values = torch.cat(
        [f(torch.from_numpy(part).expand(4, -1, -1)) for part in np.array_split(grid, 8)], 1
    )
    np.testing.assert_allclose(domain_mean(f.a, f.b, f.weight), values.numpy() @ w, atol=1e-10)
    centred = functions(4, lengthscale)
    np.testing.assert_allclose(centred.mean, values.numpy() @ w, atol=1e-10)


def test_value_is_the_sum_of_cosines():
    f = functions(2, [0.3, 0.4], n_fourier=7)
    x = torch.rand((2, 5, 2), dtype=torch.float64)
    for i in range(2):
        for j in range(5):
            total = sum(
                f.weight[i, k, 0] * torch.cos(f.a[i, :, k] @ x[i, j] + f.b[i, 0, k])
                for k in range(7)
            )
            assert f(x)[i, j].item() == pytest.approx((total - f.mean[i]).item(), abs=1e-12)


def test_index_selects_functions():
    f = functions(5, [0.3])
    x = torch.rand((5, 3, 1), dtype=torch.float64)
    order = torch.tensor([3, 1])
    torch.testing.assert_close(f[order](x[order]), f(x)[order])


def test_gradient():
    f = functions(2, [0.3, 0.4])
    x = torch.rand((2, 3, 2), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(f, x)


def test_paired_functions():
    first, second = (
        FourierFunctions(kernel(4, [0.3, 0.5]), torch.Generator().manual_seed(seed))
        for seed in (0, 1)
    )
    x = torch.rand((3, 7, 2), generator=torch.Generator().manual_seed(2))
    values = first.paired(second)[:3](x)
    expected = torch.stack([first[:3](x), second[:3](x)], -1)
    torch.testing.assert_close(values, expected)
