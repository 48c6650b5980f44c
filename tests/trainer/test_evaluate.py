import io

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from sklearn_asal.trainer.evaluate import _test_rmse, evaluate
from sklearn_asal.trainer.presets import Preset
from sklearn_asal.trainer.simulator import draw_tasks, simulate

PRESET = Preset(max_budget=5, n_init=3, embedding=16, hidden=16, heads=2)


class Corner(torch.nn.Module):
    """Always asks for the same corner, which is mostly unsafe."""

    safe = True

    def __init__(self):
        super().__init__()
        self.at = torch.nn.Parameter(torch.tensor([0.0, 1.0]))

    def campaigns(self, n_queries, n_init, longest):
        return self

    def see(self, x, y, z):
        pass

    def decide(self, n):
        return self.at.expand(n, 2)


def test_reproducible_and_complete():
    torch.manual_seed(0)
    network = PRESET.network()
    first = evaluate(network, PRESET, 20, seed=3)
    assert first == evaluate(network, PRESET, 20, seed=3)
    assert first != evaluate(network, PRESET, 20, seed=4)
    assert 0 <= first["unsafe_share"] <= 1
    assert first["gp_test_rmse"] > 0


def test_corner_is_unsafe_and_at_the_border():
    result = evaluate(Corner(), PRESET, 50, n_rmse=0)
    assert result["unsafe_share"] > 0.5
    assert result["border_share"] == 1.0
    assert result["gp_test_rmse"] is None


def test_unconstrained():
    preset = PRESET.replace(safe=False, objective="H")
    assert evaluate(preset.network(), preset, 10)["unsafe_share"] is None


def test_rmse_against_scikit_learn():
    tasks = draw_tasks(PRESET, 4, 1, 1, torch.Generator().manual_seed(0), n_queries=5)
    with torch.no_grad():
        rollout = simulate(PRESET.network(), tasks)
    x = torch.rand((4, 50, 2), generator=torch.Generator().manual_seed(1))
    result = _test_rmse(rollout, tasks, x)
    safe = (tasks.q(x) >= 0).numpy()
    for i in range(4):
        kernel = ConstantKernel(tasks.kernel.variance[i].item()) * RBF(
            tasks.kernel.lengthscale[i].numpy()
        )
        gp = GaussianProcessRegressor(kernel, alpha=tasks.kernel.noise[i].item(), optimizer=None)
        gp.fit(rollout.X[i].double().numpy(), rollout.Y[i].double().numpy())
        error = (gp.predict(x[i].double().numpy()) - tasks.f(x)[i].numpy())[safe[i]]
        assert result[i].item() == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-4)


def test_a_bar_where_there_is_a_terminal(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    network = PRESET.network()
    evaluate(network, PRESET, 10, n_rmse=5)
    assert terminal.getvalue() == ""
    evaluate(network, PRESET, 10, n_rmse=5, progress=True)
    assert "15/15" in terminal.getvalue()
    assert "campaign/s" in terminal.getvalue()
