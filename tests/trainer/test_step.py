import copy

import pytest
import torch

from sklearn_asal.trainer.objectives import objective
from sklearn_asal.trainer.presets import PRESETS, Preset
from sklearn_asal.trainer.simulator import draw_batches, simulate, spread_lengths
from sklearn_asal.trainer.step import CapturedStep, Step, TaskStream, loss_gradient, make_step

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
                together = tasks.kernel.lengthscale[reference.order]
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
    expected = loss_gradient(policy, second, preset)
    for buffer, value in zip(first.tensors(), second.tensors(), strict=True):
        buffer.copy_(value)
    torch.testing.assert_close(loss_gradient(policy, first, preset), expected, equal_nan=True)


def stream(preset=SAFE, shards=1, seed=0):
    return TaskStream(preset, torch.Generator().manual_seed(seed), shards)


@pytest.mark.parametrize("used", [0, 1, 3, 5])
@pytest.mark.parametrize("shards", [1, 3])
def test_stream_goes_on_where_it_was(used, shards):
    first, second = stream(shards=shards), stream(shards=shards)
    first.ahead = second.ahead = 3
    for _ in range(used):
        next(first)
    state = copy.deepcopy(first.state())
    expected = [[tasks.X for tasks in next(first)] for _ in range(4)]
    second.restore(state)
    for step_ in expected:
        assert len(step_) == shards
        for x, tasks in zip(step_, next(second), strict=True):
            assert torch.equal(x, tasks.X)


@pytest.mark.parametrize(("threads", "shards"), [(1, 1), (2, 1), (3, 3), (5, 3)])
def test_shards_divide_the_kernels(threads, shards):
    made = stream(shards=threads)
    assert made.shards == shards
    assert sum(len(tasks) for tasks in next(made)) == SAFE.batch


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


@pytest.mark.parametrize("through_time", [False, True])
@pytest.mark.parametrize("name", ["S_H", "S_Hmean"])
def test_gradient_is_that_of_the_objective(name, through_time):
    """Against the loss written out."""
    (tasks,) = next(stream())
    policy = network(SAFE)
    plain = SAFE.replace(objective=name, clip_query=0.0)
    policy.zero_grad()
    rollout = simulate(policy, tasks, through_time=through_time)
    score = objective(name, rollout, tasks, SAFE.gamma).mean()
    (-score).backward()
    flat = loss_gradient(policy, tasks, plain, through_time)
    expected = torch.cat([p.grad.flatten() for p in policy.parameters()])
    torch.testing.assert_close(flat[2:], expected)
    assert flat[0].item() == pytest.approx(score.item(), rel=1e-6)
    assert 0 <= flat[1] <= 1


def test_step_leaves_the_clipped_mean_of_the_shards():
    shards = next(stream(shards=3))
    policy = network(SAFE)
    mean = torch.stack([loss_gradient(policy, tasks, SAFE) for tasks in shards]).mean(0)
    for n_threads in (1, 3):
        result = Step(policy, SAFE.replace(clip_norm=1e9), n_threads)(shards)
        torch.testing.assert_close(result[:2], mean[:2])
        torch.testing.assert_close(torch.cat([g.flatten() for g in gradients(policy)]), mean[2:])
        assert result[2].item() == pytest.approx(mean[2:].norm().item(), rel=1e-5)
        clipped = Step(policy, SAFE.replace(clip_norm=1e-3), n_threads)(shards)
        assert clipped[2].item() == pytest.approx(result[2].item(), rel=1e-5)
        flat = torch.cat([g.flatten() for g in gradients(policy)])
        torch.testing.assert_close(flat, mean[2:] * 1e-3 / mean[2:].norm(), rtol=1e-4, atol=1e-9)


def test_cpu_has_no_graph():
    assert type(make_step(network(SAFE), SAFE, stream())) is Step


def test_failed_factorisation_gives_no_step(monkeypatch):
    def bad(kernel, x):
        return -torch.eye(x.shape[1], dtype=torch.float64).expand(len(x), -1, -1)

    monkeypatch.setattr("sklearn_asal.trainer.objectives.covariance", bad)
    policy = network(SAFE)
    result = Step(policy, SAFE)(next(stream()))
    assert not torch.isfinite(result[2])
    assert all((g == 0).all() for g in gradients(policy))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("preset", PRESET_KINDS, ids=lambda p: p.objective)
def test_captured_equals_eager(preset):
    made = TaskStream(preset, torch.Generator("cuda").manual_seed(0))
    policy = network(preset).cuda()
    captured = make_step(policy, preset, made)
    assert isinstance(captured, CapturedStep)
    other = copy.deepcopy(policy)
    for _ in range(3):
        shards = next(made)
        result, expected = captured(shards), Step(other, preset)(shards)
        torch.testing.assert_close(result, expected, equal_nan=True, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(gradients(policy), gradients(other), rtol=1e-2, atol=1e-4)
