import math

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.special import logsumexp
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from sklearn_asal.trainer.objectives import (
    Conditionals,
    covariance,
    entropy,
    objective,
    unsafe_margin,
)
from sklearn_asal.trainer.presets import PRESETS, Preset
from sklearn_asal.trainer.priors import Uniform
from sklearn_asal.trainer.simulator import Rollout, draw_batches, draw_tasks, simulate

SMALL = {"embedding": 16, "hidden": 8, "heads": 2}
PRESET = Preset(max_budget=7, n_init=3, **SMALL)
UNCONSTRAINED = PRESET.replace(safe=False, objective="I", n_grid=30)


@pytest.fixture(scope="module")
def unconstrained():
    tasks = draw_tasks(UNCONSTRAINED, 3, 2, 2, torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    with torch.no_grad():
        rollout = simulate(UNCONSTRAINED.replace(centre_gain=1.0).network(), tasks)
    return rollout, tasks


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


class Reference:
    """Every objective by dense multivariate normals and loops, for one task."""

    def __init__(self, rollout, tasks, i):
        self.n, self.n_init = int(rollout.mask[i].sum()), rollout.n_init
        self.x, self.y = (v[i, : self.n].double().numpy() for v in (rollout.X, rollout.Y))
        self.rollout, self.tasks, self.i = rollout, tasks, i

    def covariance(self, x, kernel):
        x = x / kernel.lengthscale[self.i].numpy()
        square = ((x[:, None] - x[None]) ** 2).sum(-1)
        noise = kernel.noise[self.i].item() * np.eye(len(x))
        return kernel.variance[self.i].item() * np.exp(-square / 2) + noise

    def log_density(self, x, y, kernel):
        return stats.multivariate_normal.logpdf(y, np.zeros(len(y)), self.covariance(x, kernel))

    def log_determinant_entropy(self, x, kernel):
        _, log_determinant = np.linalg.slogdet(self.covariance(x, kernel))
        return 0.5 * (log_determinant + len(x) * math.log(2 * math.pi * math.e))

    def entropy(self, expected, grid=None):
        x, y, n_init = self.x, self.y, self.n_init
        known_x, known_y = x[:n_init], y[:n_init]
        if grid is not None:
            known_x, known_y = np.vstack([known_x, grid[0]]), np.append(known_y, grid[1])
        all_x, all_y = np.vstack([known_x, x[n_init:]]), np.append(known_y, y[n_init:])
        kernel = self.tasks.kernel
        if expected:
            total = self.log_determinant_entropy(all_x, kernel)
            return total - self.log_determinant_entropy(known_x, kernel)
        joint = self.log_density(all_x, all_y, kernel)
        return self.log_density(known_x, known_y, kernel) - joint

    def grid(self):
        of_kernel = torch.argsort(self.tasks.grid.inverse)  # the order in which tasks are grouped
        group = self.tasks.grid.inverse[self.i].item() * self.tasks.grid.n_kernels // len(of_kernel)
        x = self.tasks.grid.x[group].numpy()
        whitener, whitened = self.tasks.grid.whitener[group], self.tasks.grid.whitened[self.i]
        return x, np.linalg.solve(whitener.numpy(), whitened.numpy())

    def log_safe(self):
        total = 0.0
        kernel, z = self.tasks.safety_kernel, self.rollout.Z[self.i].double().numpy()

        def mean(x):
            return self.tasks.safety_mean[self.i : self.i + 1](torch.from_numpy(x)[None])[0].numpy()

        for t in range(self.n_init, self.n):
            m, s = predictive(kernel, self.i, self.x[:t], z[:t], mean, self.x[t : t + 1])
            total += stats.norm.logcdf(m / s)
        return total

    def value(self, name):
        expected = "mean" in name
        if name.startswith("I"):
            reduced = self.entropy(expected) - self.entropy(expected, self.grid())
            return reduced / self.n
        if name.startswith("H"):
            return self.entropy(expected) / self.n
        return (self.entropy(expected) + self.log_safe()) / self.n


@pytest.mark.parametrize("name", ["H", "H_mean", "I", "I_mean"])
def test_unconstrained_objectives_against_dense_normals(unconstrained, name):
    rollout, tasks = unconstrained
    result = objective(name, rollout, tasks, 0.05)
    expected = [Reference(rollout, tasks, i).value(name) for i in range(len(tasks))]
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("weight", [1.0, 0.3])
@pytest.mark.parametrize("name", ["S_I", "S_Imean"])
def test_safe_reduction_is_reduction_and_safety(name, weight):
    preset = PRESET.replace(objective=name, n_grid=30, safety_weight=weight)
    tasks = draw_tasks(preset, 3, 2, 1, torch.Generator().manual_seed(0))
    with torch.no_grad():
        rollout = simulate(preset.network(), tasks)
    result = objective(name, rollout, tasks, 0.05, weight)
    of = name.removeprefix("S_")
    learned = [Reference(rollout, tasks, i).value(of) for i in range(len(tasks))]
    safety = objective("S_H", rollout, tasks, 0.05) - objective("H", rollout, tasks, 0.05)
    expected = np.array(learned) + weight * safety.numpy()
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ["S_H_division", "S_Hmean_division"])
def test_division_objectives_against_a_loop(campaign, name):
    rollout, tasks = campaign
    result = objective(name, rollout, tasks, 0.05)
    expected = [Reference(rollout, tasks, i).value(name) for i in range(len(tasks))]
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-8)


def test_mean_variant_differs_in_the_entropy_only(campaign):
    rollout, tasks = campaign
    safety = [
        objective(f"S_{name}", rollout, tasks, 0.05) - objective(other, rollout, tasks, 0.05)
        for name, other in (("H", "H"), ("Hmean", "H_mean"))
    ]
    torch.testing.assert_close(safety[0], safety[1])


def test_surprisal_is_the_entropy_on_average():
    """H and H_mean agree in expectation where the outputs are drawn from the model itself."""
    tasks = draw_tasks(UNCONSTRAINED, 2000, 1, 1, torch.Generator().manual_seed(0), n_queries=3)
    X = torch.rand((2000, 4, 2), generator=torch.Generator().manual_seed(1))
    K = covariance(tasks.kernel, X)
    normal = torch.randn((2000, 4, 1), generator=torch.Generator().manual_seed(2)).double()
    Y = (torch.linalg.cholesky(K) @ normal)[..., 0]
    rollout = Rollout(X, Y, None, torch.ones(2000, 4, dtype=torch.bool), 1)
    difference = objective("H", rollout, tasks, 0) - objective("H_mean", rollout, tasks, 0)
    assert abs(difference.mean()) < 4 * difference.std() / math.sqrt(2000)


def test_grid_outputs_are_noisy_values_of_each_tasks_function(unconstrained):
    rollout, tasks = unconstrained
    residuals = []
    for i in range(len(tasks)):
        x, y = Reference(rollout, tasks, i).grid()
        assert ((x >= 0) & (x <= 1)).all()
        f = tasks.f[i : i + 1](torch.from_numpy(x).float()[None])[0].numpy()
        residuals.append((y - f) / tasks.kernel.noise[i].sqrt().item())
    assert np.std(residuals) == pytest.approx(1, abs=0.1)
    # Beta(1/2, 1/2) has variance 1/8.
    assert tasks.grid.x.var().item() == pytest.approx(1 / 8, abs=0.02)


def test_contrastive_bound_against_a_loop():
    preset = PRESETS["dad-2d"].replace(max_budget=3, n_contrastive=5, **SMALL)
    tasks = draw_tasks(preset, 2, 1, 3, torch.Generator().manual_seed(0))
    with torch.no_grad():
        rollout = simulate(preset.network(), tasks)
    result = objective("DAD", rollout, tasks, 0.0)
    values = tasks.contrast(rollout.X).numpy()
    for i in range(len(tasks)):
        std = tasks.kernel.noise[i].sqrt().item()
        y = rollout.Y[i].numpy()
        candidates = [tasks.f(rollout.X)[i].numpy(), *values[i]]
        log = [stats.norm.logpdf(y, f, std).sum() for f in candidates]
        expected = log[0] - (logsumexp(log) - math.log(len(log)))
        assert result[i].item() == pytest.approx(expected, abs=1e-3)
    # Tasks of a kernel share its contrastive functions.
    same = (tasks.kernel.variance[:, None] == tasks.kernel.variance).float()
    at = torch.full((6, 1, 2), 0.3)
    shared = tasks.contrast(at)[:, :, 0]
    assert torch.equal((torch.cdist(shared, shared) < 1e-4).float(), same)


@pytest.mark.parametrize("n_batches", [1, 2])
def test_correlated_contrast(n_batches):
    """The true function and the others have the prior's variance, and any two the correlation."""
    c, K, n = 0.8, 3000, 4
    preset = PRESETS["dad-2d"].replace(n_contrastive=2, contrast_correlation=c, max_budget=1)
    generator = torch.Generator().manual_seed(0)
    drawn = draw_batches(preset, n_batches, (K // n_batches, 1, n), generator)
    values = []
    for tasks in drawn:
        x = torch.full((len(tasks), 1, 2), 0.3)
        values.append(torch.cat([tasks.f(x)[:, None], tasks.contrast(x)], 1)[..., 0])
    values = torch.cat(values).numpy()
    correlation = np.corrcoef(values.T)
    np.testing.assert_allclose(correlation[np.triu_indices(3, 1)], c, atol=0.03)
    np.testing.assert_allclose(values.var(0), values.var(), rtol=0.1)


def test_bound_of_correlated_contrast_is_below_the_information():
    """In expectation, of I(f; data | h); at one point that is log(1 + (1 - c) v / noise) / 2."""
    c, noise = 0.9, 0.03
    preset = PRESETS["dad-2d"].replace(
        n_contrastive=150,
        contrast_correlation=c,
        max_budget=1,
        lengthscale=Uniform(0.2, 0.2),
        variance=Uniform(1.0001 - noise, 1.0001 - noise),
    )
    tasks = draw_tasks(preset, 225, 1, 1, torch.Generator().manual_seed(0))
    X = tasks.X.expand(-1, 2, -1)
    Y = torch.cat([tasks.Y, tasks.f(tasks.X) + tasks.y_noise], 1)
    mask = torch.ones(225, 2, dtype=torch.bool)
    scores = objective("DAD", Rollout(X, Y, None, mask, 1), tasks, 0.0)
    # Functions are centred, which leaves a little less than the variance.
    variance = tasks.f(tasks.X).var().item()
    information = 0.5 * math.log(1 + 2 * (1 - c) * variance / noise)
    sem = scores.std().item() / 15
    assert information - 0.15 - 3 * sem < scores.mean().item() < information + 3 * sem


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


@pytest.mark.parametrize("name", ["H", "H_mean", "S_H", "S_Hmean", "S_H_division"])
def test_gradient_against_finite_differences(campaign, name):
    rollout, tasks = campaign
    x, y, z = (v.double().requires_grad_() for v in (rollout.X, rollout.Y, rollout.Z))

    def score(x, y, z):
        moved = Rollout(x, y, z, rollout.mask, rollout.n_init)
        # gamma below every probability, or its kink would be met.
        return objective(name, moved, tasks, 0.0)

    assert torch.autograd.gradcheck(score, (x, y, z), atol=1e-6)


@pytest.mark.parametrize("name", ["I", "I_mean"])
def test_gradient_of_the_reduction(unconstrained, name):
    rollout, tasks = unconstrained
    x, y = (v.double().requires_grad_() for v in (rollout.X, rollout.Y))

    def score(x, y):
        return objective(name, Rollout(x, y, None, rollout.mask, rollout.n_init), tasks, 0.0)

    assert torch.autograd.gradcheck(score, (x, y), atol=1e-6)


def test_gamma_stops_the_gradient_of_safe_points(campaign):
    rollout, tasks = campaign
    for gamma, moves in [(0.9, False), (1e-4, True)]:
        z = (rollout.Z + 3.0).requires_grad_()
        moved = Rollout(rollout.X, rollout.Y, z, rollout.mask, rollout.n_init)
        unsafe = torch.special.ndtr(unsafe_margin(moved, tasks))[rollout.queried]
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
    K = covariance(tasks.kernel, tasks.X)
    y = Conditionals(K, tasks.Y.double(), torch.ones(1, 3, dtype=torch.bool))
    assert y.mean[0, 0].item() == pytest.approx(0, abs=1e-12)
    total = (tasks.kernel.variance + tasks.kernel.noise).sqrt()
    assert y.std[0, 0].item() == pytest.approx(total.item(), abs=1e-12)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("names", [("std",), ("mean", "std"), ("surprisal", "entropy"), ("mean",)])
def test_gradient_of_the_conditionals_against_a_cholesky_factor(names, masked):
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    A, values, mean = normal(3, 6, 6), normal(3, 6), normal(3, 6)
    mask = torch.ones(3, 6, dtype=torch.bool)
    mask[1, 4:] = not masked
    weights = {name: normal(3, 6) * mask for name in names}

    def dense(K, values, mask, mean):
        n = mask.sum(1).tolist()
        result = {
            name: torch.zeros(3, 6).double() for name in ("std", "mean", "surprisal", "entropy")
        }
        for i, k in enumerate(n):
            L = torch.linalg.cholesky(K[i, :k, :k])
            w = torch.linalg.solve(L, (values - mean)[i, :k])
            std = L.diagonal()
            result["std"][i, :k], result["mean"][i, :k] = std, values[i, :k] - std * w
            log = std.log() + 0.5 * math.log(2 * math.pi)
            result["surprisal"][i, :k], result["entropy"][i, :k] = 0.5 * w**2 + log, 0.5 + log
        return result

    gradients = []
    for function in (lambda *x: vars(Conditionals(*x)), dense):
        inputs = [part.clone().requires_grad_() for part in (A, values, mean)]
        K = inputs[0] @ inputs[0].mT + 0.1 * torch.eye(6)
        result = function(K, inputs[1], mask, inputs[2])
        score = sum((weights[name] * result[name]).sum() for name in names)
        gradients.append(torch.autograd.grad(score, inputs, materialize_grads=True))
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-9)


def test_without_tolerance_it_stays_finite(campaign):
    rollout, tasks = campaign
    rollout = Rollout(rollout.X, rollout.Y, rollout.Z + 50, rollout.mask, rollout.n_init)
    assert torch.isfinite(objective("S_H", rollout, tasks, 0.0)).all()
