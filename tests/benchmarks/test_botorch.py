import numpy as np
import pytest
from scipy.stats import qmc

from sklearn_asal import CandidatePool
from sklearn_asal.benchmarks import botorch

from ..adapters.packages import without


def test_sobol_points():
    querier = botorch.SobolQuerier(bounds=(-1, 1), random_state=3).fit([[0.0, 0.5]], [0.0])
    points = []
    for _ in range(5):
        points.append(querier.query()[0])
        querier.tell(points[-1], 0.0)
    expected = 2 * qmc.Sobol(2, seed=3).random(8)[:5] - 1
    assert np.allclose(points, expected)


def test_rows_nearest_to_sobol_points():
    rows = np.random.default_rng(0).random((40, 2))
    querier = botorch.SobolQuerier(random_state=3).fit([[0.5, 0.5]], [0.0])
    left = list(range(40))
    for point in qmc.Sobol(2, seed=3).random(8):
        nearest = min(left, key=lambda row: np.linalg.norm(rows[row] - point))
        (x,), (row,) = querier.query(pool=CandidatePool(rows), return_indices=True)
        assert row == nearest
        left.remove(row)
        querier.tell(x, 0.0)


def test_functions_are_tested_without_noise():
    for name in ("branin", "rough-3d", "borehole-8d"):
        task = botorch.task(name)
        trial, function = task.begin(0), task.source.function
        assert np.array_equal(trial.y_test, function.output(trial.X_test))
        noise = trial.y - function.output(trial.X)
        assert 0 < np.abs(noise).max() < 0.5
        X = function.sample(4000, random_state=0)
        assert function.output(X).mean() == pytest.approx(0, abs=0.1)
        assert function.output(X).std() == pytest.approx(1, abs=0.1)


def test_borehole():
    def flow(r_w, r, T_u, H_u, T_l, H_l, L, K_w):
        log = np.log(r / r_w)
        return (
            2
            * np.pi
            * T_u
            * (H_u - H_l)
            / (log * (1 + 2 * L * T_u / (log * r_w**2 * K_w) + T_u / T_l))
        )

    function = botorch.task("borehole-8d").source.function
    X = function.sample(20, random_state=0)
    assert function.f(X) == pytest.approx([np.log(flow(*x)) for x in X])


def test_rough_function_has_its_lengthscale():
    function = botorch.task("rough-3d").source.function
    rng = np.random.default_rng(0)
    X, step = rng.uniform(0.2, 0.8, (5000, 3)), rng.standard_normal((5000, 3))
    step *= 0.1 / np.linalg.norm(step, axis=1, keepdims=True)
    covariance = np.mean(function.output(X) * function.output(X + step))
    assert covariance == pytest.approx(np.exp(-0.5), abs=0.1)


def test_tables(capsys, monkeypatch, data_home):
    monkeypatch.setenv("SKLEARN_ASAL_DATA", str(data_home))
    without(monkeypatch, "botorch")
    botorch.main(["--seeds", "2", "--queries", "2", "--tasks", "branin", "lgbb"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 13
    for rows in (lines[:6], lines[7:]):
        assert rows[1].split() == ["branin", "lgbb"]
        assert [row.split()[0] for row in rows[2:]] == ["aal-any", "gp", "sobol", "random"]
        numbers = np.array([row.split()[1:] for row in rows[2:]], dtype=float)
        assert numbers.shape == (4, 2)
        assert (numbers > 0).all()


def test_same_start_for_all_methods():
    rmse, seconds = botorch.compare(["branin"], ["random", "sobol", "random"], 2, 3)
    assert np.array_equal(rmse[0], rmse[2])
    assert (rmse[0] != rmse[1]).all()
    assert rmse.shape == seconds.shape == (3, 1, 2)


def test_without_botorch(monkeypatch):
    without(monkeypatch, "botorch")
    with pytest.raises(ImportError, match=r"sklearn-asal\[botorch\]"):
        botorch.compare(["branin"], ["botorch"], 1, 1)
