import math

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from sklearn_asal.trainer.objectives import Conditionals, entropy, log_unsafe, objective
from sklearn_asal.trainer.presets import Preset
from sklearn_asal.trainer.simulator import Rollout, draw_tasks, simulate

PRESET = Preset(max_budget=7, n_init=3, embedding=16, hidden=8, heads=2)


@pytest.fixture(scope="module")
def campaign():
    tasks = draw_tasks(PRESET, 3, 2, 1, torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    with torch.no_grad():
        rollout = simulate(PRESET.replace(centre_gain=1.0).network(), tasks)
    return rollout, tasks


def predictive(kernel, i, X, values, mean, x):
    """Predictive mean and standard deviation at x, by scikit-learn; the prior without data."""
    noise = kernel.noise[i].item()
    rbf = ConstantKernel(kernel.variance[i].item(), "fixed") * RBF(
        kernel.lengthscale[i].numpy(), "fixed"
    )
    if not len(X):
        return mean(x)[0], math.sqrt(kernel.variance[i].item() + noise)
    gp = GaussianProcessRegressor(rbf, alpha=noise, optimizer=None).fit(X, values - mean(X))
    m, s = gp.predict(x, return_std=True)
    return m[0] + mean(x)[0], math.sqrt(s[0] ** 2 + noise)


def brute_force(rollout, tasks, gamma):
    """S_H one conditional at a time, the densities by scipy."""
    scores = []
    for i in range(len(tasks)):
        n = int(rollout.mask[i].sum())
        X, Y, Z = (v[i, :n].double().numpy() for v in (rollout.X, rollout.Y, rollout.Z))

        def mean(x, i=i):
            return tasks.safety_mean[i : i + 1](torch.from_numpy(x)[None])[0].numpy()

        total = 0.0
        for t in range(rollout.n_init, n):
            x = X[t : t + 1]
            m, s = predictive(tasks.kernel, i, X[:t], Y[:t], lambda x: np.zeros(len(x)), x)
            total -= stats.norm.logpdf(Y[t], m, s)
            m, s = predictive(tasks.safety_kernel, i, X[:t], Z[:t], mean, x)
            total -= math.log(max(gamma, stats.norm.cdf(-m / s)))
        scores.append(total / n)
    return np.array(scores)


@pytest.mark.parametrize("gamma", [0.05, 0.3, 0.001])
def test_safe_objective_against_brute_force(campaign, gamma):
    rollout, tasks = campaign
    result = objective("S_H", rollout, tasks, gamma)
    np.testing.assert_allclose(result, brute_force(rollout, tasks, gamma), rtol=0, atol=1e-8)


def test_entropy_is_the_joint_density(campaign):
    """eq-gp_logprob_objective_inner: joint less initial, each by scipy's multivariate normal."""
    rollout, tasks = campaign
    result = entropy(rollout, tasks)
    for i in range(len(tasks)):
        n = int(rollout.mask[i].sum())
        x, y = rollout.X[i : i + 1, :n].double(), rollout.Y[i, :n].double().numpy()
        K = tasks.kernel[i : i + 1].gram(x)[0].numpy() + tasks.kernel.noise[i].item() * np.eye(n)

        def logpdf(k, K=K, y=y):
            return stats.multivariate_normal.logpdf(y[:k], np.zeros(k), K[:k, :k])

        expected = -(logpdf(n) - logpdf(rollout.n_init)) / n
        assert result[i].item() == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("name", ["S_H", "H"])
def test_gradient_against_finite_differences(campaign, name):
    rollout, tasks = campaign
    x, y, z = (v.double().requires_grad_() for v in (rollout.X, rollout.Y, rollout.Z))

    def score(x, y, z):
        moved = Rollout(x, y, z, rollout.mask, rollout.n_init)
        # gamma below every probability, or its kink would be met.
        return objective(name, moved, tasks, 0.0)

    assert torch.autograd.gradcheck(score, (x, y, z), atol=1e-6)


def test_gamma_stops_the_gradient_of_safe_points(campaign):
    rollout, tasks = campaign
    for gamma, moves in [(0.5, False), (1e-4, True)]:
        z = (rollout.Z + 3.0).requires_grad_()
        moved = Rollout(rollout.X, rollout.Y, z, rollout.mask, rollout.n_init)
        unsafe = log_unsafe(moved, tasks).exp()[rollout.queried]
        assert (unsafe > gamma).any() == moves
        objective("S_H", moved, tasks, gamma).sum().backward()
        assert z.grad.any() == moves


def test_padding_changes_nothing(campaign):
    rollout, tasks = campaign
    padded = Rollout(
        torch.nn.functional.pad(rollout.X, (0, 0, 0, 4), value=0.3),
        torch.nn.functional.pad(rollout.Y, (0, 4), value=2.0),
        torch.nn.functional.pad(rollout.Z, (0, 4), value=-1.0),
        torch.nn.functional.pad(rollout.mask, (0, 4), value=False),
        rollout.n_init,
    )
    torch.testing.assert_close(
        objective("S_H", padded, tasks, 0.05), objective("S_H", rollout, tasks, 0.05)
    )


def test_conditionals_without_data_are_the_prior():
    tasks = draw_tasks(PRESET, 1, 1, 1, torch.Generator().manual_seed(0))
    y = Conditionals(tasks.kernel, tasks.X, tasks.Y, torch.ones(1, 3, dtype=torch.bool))
    assert y.mean[0, 0].item() == pytest.approx(0, abs=1e-12)
    total = (tasks.kernel.variance + tasks.kernel.noise).sqrt()
    assert y.std[0, 0].item() == pytest.approx(total.item(), abs=1e-12)


def test_without_tolerance_it_stays_finite(campaign):
    rollout, tasks = campaign
    rollout = Rollout(rollout.X, rollout.Y, rollout.Z + 50, rollout.mask, rollout.n_init)
    assert torch.isfinite(objective("S_H", rollout, tasks, 0.0)).all()


def test_unknown_name(campaign):
    with pytest.raises(ValueError, match="objective must be"):
        objective("X", *campaign, 0.05)
