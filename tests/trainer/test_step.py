import copy

import pytest
import torch

from sklearn_asal.trainer import step
from sklearn_asal.trainer.presets import PRESETS, Preset
from sklearn_asal.trainer.simulator import draw_batches, spread_lengths
from sklearn_asal.trainer.step import CapturedStep, Step, Supply, gradient, make_step

SMALL = dict(max_budget=4, embedding=16, hidden=8, heads=2, n_fourier=20, n_kernels=3)
SAFE = Preset(n_init=3, n_functions=2, **SMALL)
PRESET_KINDS = [
    SAFE,
    PRESETS["2d"].replace(n_grid=5, n_functions=2, n_noises=2, **SMALL),
    PRESETS["dad-2d"].replace(n_contrastive=3, n_noises=2, **SMALL),
]


def network(preset):
    torch.manual_seed(0)
    return preset.replace(centre_gain=1.0).network()


def gradients(module):
    return [parameter.grad.clone() for parameter in module.parameters()]


@pytest.mark.parametrize("preset", PRESET_KINDS, ids=lambda p: p.objective)
def test_batches_drawn_together_are_batches(preset):
    counts = (preset.n_kernels, preset.n_functions, preset.n_noises)
    batches = draw_batches(preset, 3, counts, torch.Generator().manual_seed(0))
    kernels, residuals = [], []
    for tasks in batches:
        assert len(tasks) == preset.batch
        assert tasks.lengths == batches[0].lengths == tuple(tasks.n_queries.tolist())
        kernels.append(tasks.kernel.lengthscale.unique(dim=0))
        assert len(kernels[-1]) == preset.n_kernels
        for reference in (tasks.grid, tasks.contrast):
            if reference is not None:
                # Tasks brought together have one kernel, the one that the reference is for.
                together = tasks.kernel.lengthscale[reference.together]
                groups = together.reshape(preset.n_kernels, -1, preset.n_features)
                assert (groups == groups[:, :1]).all()
        residual = (tasks.Y - tasks.f(tasks.X)) / tasks.kernel.noise.sqrt()[:, None]
        residuals.append(residual.flatten())
        shapes = [tensor.shape for tensor in tasks.tensors()]
        assert shapes == [tensor.shape for tensor in batches[0].tensors()]
    assert 0.5 < torch.cat(residuals).std() < 2
    assert len(torch.cat(kernels).unique(dim=0)) == 3 * preset.n_kernels


@pytest.mark.parametrize("preset", PRESET_KINDS, ids=lambda p: p.objective)
def test_tasks_can_be_overwritten(preset):
    """What a captured graph relies on: the tensors hold all that differs between tasks."""
    counts = (preset.n_kernels, preset.n_functions, preset.n_noises)
    lengths = spread_lengths(preset.max_budget, preset.batch)
    first, second = draw_batches(preset, 2, counts, torch.Generator().manual_seed(0), lengths)
    policy = network(preset)
    expected = gradient(policy, second, preset), gradients(policy)
    for buffer, value in zip(first.tensors(), second.tensors(), strict=True):
        buffer.copy_(value)
    policy.zero_grad()
    result = gradient(policy, first, preset), gradients(policy)
    torch.testing.assert_close(result, expected, equal_nan=True)


@pytest.mark.parametrize("used", [0, 1, 3, 5])
def test_supply_goes_on_where_it_was(used):
    def supply():
        made = Supply(SAFE, torch.Generator().manual_seed(0))
        made.ahead = 3
        return made

    first = supply()
    for _ in range(used):
        next(first)
    state = copy.deepcopy(first.state())
    expected = [next(first).X for _ in range(4)]
    second = supply()
    second.restore(state)
    assert all(torch.equal(x, next(second).X) for x in expected)


@pytest.mark.parametrize("n_tasks", [1, 3, 50])
def test_lengths_are_uniform(n_tasks):
    counts = torch.zeros(5)
    for u in torch.linspace(0, 1, 1001)[:-1].tolist():
        lengths = spread_lengths(5, n_tasks, u)
        assert list(lengths) == sorted(lengths, reverse=True)
        for length in lengths:
            counts[length - 1] += 1
    assert (counts / counts.sum() - 0.2).abs().max() < 0.002


def test_spread_lengths_hold_every_length():
    assert set(spread_lengths(40, 50)) == set(range(1, 41))
    assert sum(spread_lengths(40, 40)) == 20 * 41


def test_results_of_a_gradient():
    tasks = next(Supply(SAFE, torch.Generator().manual_seed(0)))
    policy = network(SAFE)
    score, unsafe, norm = gradient(policy, tasks, SAFE.replace(clip_norm=1e9)).tolist()
    total = torch.cat([g.flatten() for g in gradients(policy)]).norm().item()
    assert norm == pytest.approx(total, rel=1e-5)
    assert 0 <= unsafe <= 1
    clipped = Step(policy, SAFE.replace(clip_norm=1e-3))
    clipped(tasks)
    total = torch.cat([g.flatten() for g in gradients(policy)]).norm().item()
    assert total == pytest.approx(1e-3, rel=1e-3)
    assert score < 10


def test_cpu_has_no_graph():
    supply = Supply(SAFE, torch.Generator().manual_seed(0))
    assert type(make_step(network(SAFE), SAFE, supply)) is Step


def test_failed_factorisation_is_not_a_number(monkeypatch):
    def bad(kernel, x):
        return -torch.eye(x.shape[1], dtype=torch.float64).expand(len(x), -1, -1)

    monkeypatch.setattr("sklearn_asal.trainer.objectives.covariance", bad)
    tasks = next(Supply(SAFE, torch.Generator().manual_seed(0)))
    assert not torch.isfinite(gradient(network(SAFE), tasks, SAFE)[2])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("preset", PRESET_KINDS, ids=lambda p: p.objective)
def test_captured_equals_eager(preset):
    supply = Supply(preset, torch.Generator("cuda").manual_seed(0))
    policy = network(preset).cuda()
    captured = make_step(policy, preset, supply)
    assert isinstance(captured, CapturedStep)
    other = copy.deepcopy(policy)
    for _ in range(3):
        tasks = next(supply)
        result = captured(tasks)
        expected = step.Step(other, preset)(tasks)
        torch.testing.assert_close(result, expected, equal_nan=True, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(gradients(policy), gradients(other), rtol=1e-2, atol=1e-4)
