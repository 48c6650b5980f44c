import pytest
import torch
from scipy import stats

from sklearn_asal.trainer.presets import Preset
from sklearn_asal.trainer.references import points_anywhere, reachable, safe_points
from sklearn_asal.trainer.simulator import draw_tasks

SMALL = {"embedding": 16, "hidden": 8, "heads": 2}
LAGS = ((1, 2, 0.2), (0, 1, 0.1))


def test_reachable_points_are_uniform_within_their_steps():
    u = torch.rand((4, 5000, 3), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = reachable(u, LAGS)
    assert (x[..., 2] == u[..., 2]).all()
    assert ((x >= 0) & (x <= 1)).all()
    for later, earlier, step in LAGS:
        assert (x[..., later] - x[..., earlier]).abs().max() <= step + 1e-12
        # Where no end of the axis is in the way, the step is uniform.
        inside = (x[..., earlier] - 0.5).abs() < 0.25
        steps = (x[..., later] - x[..., earlier])[inside] / step
        assert abs(steps.mean()) < 0.03
        assert abs(steps.var() - 1 / 3) < 0.02
    assert reachable(u, ()).equal(u)


def test_grid_of_a_safe_task_lies_in_its_own_safe_region():
    preset = Preset(n_features=3, objective="S_Imean", n_grid=40, lags=LAGS, **SMALL)
    tasks = draw_tasks(preset, 2, 2, 2, torch.Generator().manual_seed(0))
    x = tasks.grid.x
    assert x.shape == (8, 40, 3)
    assert (tasks.q(x.float()) >= 0).float().mean() > 0.99
    for later, earlier, step in LAGS:
        assert (x[..., later] - x[..., earlier]).abs().max() <= step + 1e-6
    # Batches that were drawn together keep theirs.
    part = tasks.batch(1, 2)
    assert part.grid.x.equal(x[4:])


def test_the_least_unsafe_points_fill_up():
    options = {"generator": torch.Generator().manual_seed(0), "device": "cpu"}
    x = safe_points(lambda x: 0.05 - x[..., 0], 3, 50, 2, (), options)[..., 0]
    assert (x[:, 0] <= 0.05).all()
    assert (x[:, -1] > 0.05).all()
    assert x.max() < 0.25


@pytest.mark.parametrize(
    ("grid", "law"), [("arcsine", stats.arcsine()), ("uniform", stats.uniform())]
)
def test_grid_of_the_whole_cube(grid, law):
    options = {"generator": torch.Generator().manual_seed(0), "device": "cpu"}
    x = points_anywhere(grid, 2, 1000, 2, options)
    assert (x.shape, x.dtype) == ((2, 1000, 2), torch.float64)
    assert stats.kstest(x.flatten().numpy(), law.cdf).pvalue > 0.01


def test_grid_of_both_kinds():
    options = {"generator": torch.Generator().manual_seed(0), "device": "cpu"}
    x = points_anywhere("both", 1, 2001, 1, options)[0, :, 0]
    assert stats.kstest(x[:1000].numpy(), stats.arcsine.cdf).pvalue > 0.01
    assert stats.kstest(x[1000:].numpy(), stats.uniform.cdf).pvalue > 0.01
