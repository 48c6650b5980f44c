import math

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from sklearn_asal.trainer.priors import (
    TOTAL_VARIANCE,
    Kernel,
    LogUniform,
    SafetyMean,
    ShiftedExponential,
    Uniform,
    draw_kernels,
    draw_safety_means,
    parse_distribution,
)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("distribution", "reference"),
    [
        (Uniform(0.24, 0.72), stats.uniform(0.24, 0.48)),
        (LogUniform(0.1, 1.5), stats.loguniform(0.1, 1.5)),
        (ShiftedExponential(0.2, 10.0), stats.gamma(a=1, loc=0.2, scale=0.1)),
    ],
)
def test_distribution(distribution, reference):
    sample = distribution.sample((5000,), generator())
    assert stats.kstest(sample.numpy(), reference.cdf).pvalue > 0.01


def test_distribution_by_dimension():
    sample = Uniform((0.0, 10.0), (1.0, 20.0)).sample((1000, 2), generator()).numpy()
    assert (sample[:, 0] <= 1).all()
    assert (sample[:, 1] >= 10).all()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("uniform:0.1,0.5", Uniform(0.1, 0.5)),
        ("uniform:0.1/0.2,0.5/0.9", Uniform((0.1, 0.2), (0.5, 0.9))),
        ("shifted-exponential:0.2,10", ShiftedExponential(0.2, 10.0)),
    ],
)
def test_parse(text, expected):
    assert parse_distribution(text) == expected


@pytest.mark.parametrize(
    "text", ["", "uniform", "uniform:1", "normal:0,1", "uniform:a,b", "x:1,2,3"]
)
def test_parse_error(text):
    with pytest.raises(ValueError, match="a distribution is written"):
        parse_distribution(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("uniform:0.4,0.1", "low <= high"),
        ("uniform:0.4,nan", "finite"),
        ("log-uniform:0,1", "positive"),
        ("shifted-exponential:0.2,0", "positive rate"),
    ],
)
def test_impossible_distribution(text, message):
    with pytest.raises(ValueError, match=message):
        parse_distribution(text)


def test_gram_against_scikit_learn():
    kernel = draw_kernels(3, 2, ShiftedExponential(), Uniform(0.9616, 1.0), generator())
    rng = np.random.default_rng(0)
    x1, x2 = rng.random((3, 5, 2)), rng.random((3, 4, 2))
    result = kernel.gram(torch.from_numpy(x1), torch.from_numpy(x2))
    for i in range(3):
        reference = ConstantKernel(kernel.variance[i].item()) * RBF(kernel.lengthscale[i].numpy())
        np.testing.assert_allclose(result[i], reference(x1[i], x2[i]), rtol=1e-12)


def test_gram_and_its_gradient_against_differences():
    """Also where points coincide and where the lengthscale is short."""
    kernel = draw_kernels(3, 2, Uniform(0.02, 0.5), Uniform(0.9616, 1.0), generator())
    x1 = torch.rand((3, 6, 2), generator=generator(), dtype=torch.float64)
    x1[:, 3] = x1[:, 2]
    x2 = torch.cat([x1[:, :2], x1[:, 4:] + 0.01], 1)
    weight = torch.randn((3, 6, 4), generator=generator(), dtype=torch.float64)

    def by_differences(x1, x2):
        difference = (x1[:, :, None] - x2[:, None]) / kernel.lengthscale[:, None, None]
        return kernel.variance[:, None, None] * torch.exp(-0.5 * difference.square().sum(-1))

    results = []
    for function in (kernel.gram, by_differences):
        points = x1.clone().requires_grad_(), x2.clone().requires_grad_()
        value = function(*points)
        results.append((value, *torch.autograd.grad((weight * value).sum(), points)))
    torch.testing.assert_close(*results, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(kernel.gram(x1), by_differences(x1, x1), rtol=0, atol=1e-11)


def test_training_samplers():
    """Ranges of table "Training samplers"."""
    kernel = draw_kernels(2000, 2, ShiftedExponential(), Uniform(0.9616, 1.0), generator())
    assert kernel.lengthscale.min() >= 0.2
    assert 0.01 <= kernel.noise.sqrt().min() < 0.03
    assert 0.19 < kernel.noise.sqrt().max() <= 0.2
    torch.testing.assert_close(
        kernel.variance + kernel.noise, torch.full((2000,), TOTAL_VARIANCE).double()
    )
    assert (kernel.variance / kernel.noise).sqrt().min() > 4.9


def test_safety_kernel_leaves_room_for_the_mean():
    kernel = draw_kernels(500, 3, ShiftedExponential(), Uniform(0.9616, 1.0), generator(), 0.5)
    torch.testing.assert_close(
        kernel.variance + kernel.noise + 0.5, torch.full((500,), TOTAL_VARIANCE).double()
    )


def test_mean_has_zero_mean_and_unit_variance():
    """The constants of eqS-sech_mean are made for c = 1, w = 20, Q = I in two dimensions."""
    mean = SafetyMean(
        torch.ones(1), torch.full((1, 2), 20.0), torch.eye(2)[None], torch.full((1, 2), 0.5)
    )
    nodes, weights = np.polynomial.legendre.leggauss(60)
    nodes, weights = (nodes + 1) / 2, weights / 2
    x = torch.from_numpy(np.stack(np.meshgrid(nodes, nodes), -1).reshape(1, -1, 2))
    w = np.outer(weights, weights).ravel()
    values = mean(x)[0].numpy()
    assert abs(w @ values) < 0.05
    assert abs(w @ (values - w @ values) ** 2 - 1) < 0.05
    # "takes about half of the space"
    assert 0.4 < w @ (values > 0) < 0.6


def test_mean_formula():
    shape, centre = Uniform(5, 40), Uniform(0.2, 0.8)
    means = draw_safety_means(torch.full((4,), 0.5).double(), 3, shape, centre, generator())
    assert ((means.centre > 0.2) & (means.centre < 0.8)).all()
    assert means.centre.std() > 0.05
    x = np.random.default_rng(0).random((4, 6, 3))
    result = means(torch.from_numpy(x)).numpy()
    for i in range(4):
        Q, w = means.Q[i].numpy(), means.w[i].numpy()
        np.testing.assert_allclose(Q.T @ Q, np.eye(3), atol=1e-12)
        for j in range(6):
            u = Q.T @ (x[i, j] - means.centre[i].numpy())
            s = sum(w[d] * u[d] ** 2 for d in range(3)) / 3
            expected = 3.2 * math.sqrt(0.5) * (-0.47 + 1 / math.cosh(s))
            assert result[i, j] == pytest.approx(expected, abs=1e-12)


def test_mean_is_safe_at_the_centre():
    shape, centre = Uniform(5, 40), Uniform(0.1, 0.9)
    means = draw_safety_means(torch.full((200,), 0.5).double(), 7, shape, centre, generator())
    assert (means(means.centre[:, None]) > 0).all()


def test_repeat_and_index():
    kernel = draw_kernels(3, 2, ShiftedExponential(), Uniform(0.9616, 1.0), generator())
    repeated = kernel.repeat(2)
    assert isinstance(repeated, Kernel)
    assert torch.equal(repeated.lengthscale[[0, 2, 4]], kernel.lengthscale)
    assert torch.equal(repeated[1:3].noise, kernel.noise[[0, 1]])
