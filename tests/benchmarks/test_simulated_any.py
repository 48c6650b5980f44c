"""Simulated campaigns of several queriers, and of the policy for any number of features."""

import io
import json

import numpy as np
import pytest
import torch

from sklearn_asal import GPQuerier, RandomQuerier
from sklearn_asal.__main__ import main
from sklearn_asal.benchmarks import comparison
from sklearn_asal.benchmarks.comparison import METHODS, TrueProcess, compare
from sklearn_asal.benchmarks.simulated import Querying
from sklearn_asal.policies.registry import locate
from sklearn_asal.trainer.presets import PRESETS
from sklearn_asal.trainer.priors import LogUniform
from sklearn_asal.trainer.simulator import draw_tasks, simulate

BROAD = LogUniform(0.15, 2.0)


def preset(safe, n_features, n_queries):
    """What tasks of the broad prior are drawn from."""
    changes = {"objective": "S_H" if safe else "H", "n_grid": 0, "max_budget": n_queries}
    changes |= {"lengthscale": BROAD, "safety_lengthscale": BROAD}
    return PRESETS["safe-2d" if safe else "2d"].replace(n_features=n_features, **changes)


def drawn(safe, n_features, n_queries, n_tasks, n_test, seed):
    """Tasks and test points of the broad prior."""
    generator = torch.Generator().manual_seed(seed)
    tasks = draw_tasks(
        preset(safe, n_features, n_queries), n_tasks, 1, 1, generator, n_queries=n_queries
    )
    return tasks, torch.rand((n_tasks, n_test, n_features), generator=generator)


def rbf(A, B, variance, lengthscale):
    distance = np.square((A[:, None] - B[None]) / lengthscale).sum(-1)
    return variance * np.exp(-0.5 * distance)


def posterior(X, y, x, variance, lengthscale, noise):
    """Mean and variance of a noise-free value, by the textbook."""
    K = rbf(X, X, variance, lengthscale) + noise * np.eye(len(X))
    k = rbf(x, X, variance, lengthscale)
    return k @ np.linalg.solve(K, y), variance - np.sum(k * np.linalg.solve(K, k.T).T, 1)


def hyperparameters(kernel, i):
    return kernel.variance[i].item(), kernel.lengthscale[i].numpy(), kernel.noise[i].item()


@pytest.fixture
def simulated(monkeypatch):
    """All tasks that a comparison simulates, in order."""
    seen = []

    def recording(querying, tasks):
        seen.append(tasks)
        return simulate(querying, tasks)

    monkeypatch.setattr(comparison, "simulate", recording)
    return seen


def test_each_campaign_has_the_querier_at_its_place():
    queriers = [GPQuerier("ensemble"), RandomQuerier(), GPQuerier(acquisition="entropy")]
    tasks, _ = drawn(False, 2, 3, len(queriers), 1, 0)
    together = simulate(Querying(queriers), tasks)
    for i, querier in enumerate(queriers):
        alone = simulate(Querying(querier), tasks)
        torch.testing.assert_close(together.X[i], alone.X[i], rtol=0, atol=0)
        torch.testing.assert_close(together.Y[i], alone.Y[i], rtol=0, atol=0)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_as_many_queriers_as_campaigns(n):
    tasks, _ = drawn(False, 1, 1, 2, 1, 0)
    with pytest.raises(ValueError, match=f"{n} queriers, and 2 campaigns"):
        simulate(Querying([RandomQuerier()] * n), tasks)


@pytest.mark.parametrize("safe", [False, True])
def test_errors_by_the_textbook(safe):
    n_features, n_queries, n_tasks, n_test, seed = 3, 4, 3, 30, 7
    tasks, x = drawn(safe, n_features, n_queries, n_tasks, n_test, seed)
    rollout = simulate(Querying(RandomQuerier()), tasks)
    f, kept = tasks.f(x).numpy(), tasks.q(x).numpy() >= 0 if safe else np.ones((3, 30), bool)
    errors = []
    for i in range(n_tasks):
        X, y, points = (part[i].double().numpy() for part in (rollout.X, rollout.Y, x))
        mean, _ = posterior(X, y, points, *hyperparameters(tasks.kernel, i))
        errors.append(np.sqrt(np.mean((mean - f[i])[kept[i]] ** 2)))
    options = {"n_tasks": n_tasks, "n_queries": n_queries, "seed": seed, "n_test": n_test}
    results = {r["method"]: r for r in compare(n_features, safe=safe, **options)}
    assert tuple(results) == METHODS
    assert results["random"]["rmse"] == pytest.approx(np.mean(errors), rel=1e-4)
    for method, result in results.items():
        # Only these two know the true hyperparameters.
        knows = method in ("oracle", "random")
        assert (result["rmse_of_model"] == result["rmse"]) == knows
        assert ("unsafe_share" in result) == safe
    if safe:
        unsafe = (tasks.q(rollout.X).numpy() < 0)[:, -n_queries:]
        assert results["random"]["unsafe_share"] == pytest.approx(unsafe.mean())


def test_true_process_by_the_textbook():
    tasks, x = drawn(True, 2, 5, 2, 6, 3)
    rollout, i = simulate(Querying(RandomQuerier()), tasks), 1
    truth = comparison._truth(tasks, i)
    X, y, z, points = (part[i].double().numpy() for part in (rollout.X, rollout.Y, rollout.Z, x))
    prior = {"output": lambda X: 0.0}
    prior["margin"] = lambda X: tasks.safety_mean[[i]](torch.from_numpy(X)[None])[0].numpy()
    kernels = {"output": tasks.kernel, "margin": tasks.safety_kernel}
    for role, values in (("output", y), ("margin", z)):
        model = TrueProcess(**truth.get_params(deep=False)).set_params(zero_mean=role == "margin")
        mean, std = model.update(X, values).predict(points)
        known = hyperparameters(kernels[role], i)
        expected, variance = posterior(X, values - prior[role](X), points, *known)
        np.testing.assert_allclose(mean, expected + prior[role](points), atol=1e-8)
        np.testing.assert_allclose(std, np.sqrt(variance + known[2]), rtol=1e-6)
        covariance = model.covariance(points, points)
        np.testing.assert_allclose(np.diag(covariance), variance, atol=1e-8)
        np.testing.assert_allclose(covariance, covariance.T, atol=1e-10)


def test_a_safe_campaign_models_margins_as_margins(monkeypatch):
    roles = []
    fit = TrueProcess.fit

    def recording(self, X, y):
        roles.append(self.zero_mean)
        return fit(self, X, y)

    monkeypatch.setattr(TrueProcess, "fit", recording)
    tasks, _ = drawn(True, 2, 1, 1, 1, 0)
    truth = comparison._truth(tasks, 0)
    simulate(Querying([comparison._querier("oracle", True, truth, 0.01, "any")]), tasks)
    assert set(roles) == {False, True}


@pytest.mark.parametrize("safe", [False, True])
@pytest.mark.parametrize(("prior", "low"), [("broad", 0.15), ("paper", 0.2)])
def test_lengthscales_of_each_feature_and_the_same_tasks(prior, low, safe, simulated, monkeypatch):
    monkeypatch.setattr(comparison, "METHODS", ("random", "random"))
    for _ in compare(4, safe=safe, prior=prior, n_tasks=75, n_queries=1, n_test=1):
        pass
    half = len(simulated) // 2
    assert [len(tasks) for tasks in simulated[:half]] == [25, 25, 25]
    for first, second in zip(simulated[:half], simulated[half:], strict=True):
        assert first is second
    for name in ("kernel", "safety_kernel")[: 1 + safe]:
        scales = torch.cat([getattr(tasks, name).lengthscale for tasks in simulated[:half]]).numpy()
        assert scales.shape == (75, 4)
        correlation = np.corrcoef(np.log(scales), rowvar=False)
        assert np.abs(correlation - np.eye(4)).max() < 0.5
        assert scales.min() >= low
        # Log-uniform, or 0.2 and an exponential of mean 0.1.
        median = np.sqrt(0.15 * 2) if prior == "broad" else 0.2 + 0.1 * np.log(2)
        assert np.median(scales) == pytest.approx(median, rel=0.25)
        assert prior == "paper" or scales.max() <= 2


def test_no_safe_test_point():
    for seed in range(50):
        tasks, x = drawn(True, 1, 1, 1, 1, seed)
        if tasks.q(x).item() < 0:
            break
    results = list(compare(1, safe=True, n_tasks=1, n_queries=1, n_test=1, seed=seed))
    assert [result["rmse"] for result in results] == [None] * len(METHODS)
    assert [result["rmse_of_model"] for result in results] == [None] * len(METHODS)


def test_a_seed_gives_the_same_results():
    options = {"safe": True, "n_tasks": 2, "n_queries": 2, "n_test": 20}
    assert list(compare(2, **options)) == list(compare(2, **options))
    other = list(compare(2, **options, seed=2))
    assert all(a["rmse"] != b["rmse"] for a, b in zip(compare(2, **options), other, strict=True))


def test_unknown_prior_at_once():
    with pytest.raises(ValueError, match="prior must be one of broad, paper, got 'narrow'"):
        compare(2, prior="narrow")


@pytest.mark.parametrize("flags", [[], ["--safe"], ["--prior", "paper"]])
def test_command_line(flags, capsys):
    few = "--features 3 --tasks 2 --queries 2 --seed 4".split()
    assert main(["evaluate", "any", *few, *flags]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    prior, safe = "paper" if "paper" in flags else "broad", "--safe" in flags
    options = {"n_tasks": 2, "n_queries": 2, "seed": 4, "prior": prior, "safe": safe}
    assert lines == [{"policy": "any"} | result for result in compare(3, **options)]


def test_file_of_a_policy(capsys):
    path = str(locate("any", safe=False))
    few = "--features 1 --tasks 1 --queries 1".split()
    assert main(["evaluate", path, *few]) == 0
    of_file = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert of_file == [{"policy": path} | r for r in compare(1, n_tasks=1, n_queries=1)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["any"], "--features is needed"),
        (["any", "--features", "2", "--preset", "2d"], "--preset has no meaning for any"),
        (["any", "--features", "2", "--objective", "H"], "--objective has no meaning for any"),
        (["any", "--features", "2", "--method", "gp"], "--method has no meaning for any"),
        (["any", "--features", "2", "--device", "cuda"], "any runs on the CPU; leave it out"),
        (["2d", "--features", "2"], "--features is for policy any, and not for 2d; leave it out"),
        (["2d", "--prior", "paper"], "--prior is for policy any"),
        (["safe-2d", "--safe"], "--safe is for policy any"),
        (["safe-99d", "--features", "2"], "neither a preset"),
    ],
)
def test_wrong_flag(arguments, message, capsys):
    assert main(["evaluate", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_a_bar_where_there_is_a_terminal(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    results = list(compare(1, n_tasks=1, n_queries=1, progress=True))
    assert [result["method"] for result in results] == list(METHODS)
    assert "4/4" in terminal.getvalue()
