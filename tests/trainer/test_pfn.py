"""Training of the prior-data fitted network, on few small batches."""

import csv
import re
import signal

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from sklearn_asal.__main__ import main
from sklearn_asal.policies import read_header
from sklearn_asal.policies.checkpoint import read_weights
from sklearn_asal.surrogates import PFNSurrogate
from sklearn_asal.trainer import pfn
from sklearn_asal.trainer.loop import TrainingError
from sklearn_asal.trainer.pfn import PFNTrainer, draw_batch, draw_kernels

SIZES = {"most_features": 3, "bars": 9, "width": 8, "hidden": 8, "heads": 2, "layers": 1}


@pytest.fixture(autouse=True)
def few_examples(monkeypatch):
    monkeypatch.setattr(pfn, "_SIZE", 4)
    monkeypatch.setattr(pfn, "_HELD_OUT", 5)
    monkeypatch.setattr(pfn, "MOST_ROWS", 12)


def trainer(out, **options):
    return PFNTrainer(out, **{"steps": 12, "threads": 1, "progress": False, **SIZES, **options})


def state(out):
    return torch.load(out / "state.pt", weights_only=True)


def assert_same_run(out, other):
    one, two = state(out), state(other)
    assert (one["step"], one["best"]) == (two["step"], two["best"])
    for name, weight in one["network"].items():
        assert torch.equal(weight, two["network"][name]), name
    first, second = (read_weights(folder / "policy.safetensors")[0] for folder in (out, other))
    assert first["sha256"] == second["sha256"]


@pytest.fixture
def at_step(monkeypatch):
    """``at_step(n)`` interrupts in the n-th step from now on."""

    def plan(step):
        clip, calls = torch.nn.utils.clip_grad_norm_, []

        def clipped(*arguments):
            calls.append(1)
            if len(calls) == step:
                signal.raise_signal(signal.SIGINT)
            return clip(*arguments)

        monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", clipped)

    return plan


def test_a_whole_run(tmp_path, monkeypatch):
    monkeypatch.setattr(PFNTrainer, "every", 5)
    run = trainer(tmp_path)
    best = run.run()
    with (tmp_path / "log.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["5", "10", "12"]
    assert best == pytest.approx(max(float(row["validation"]) for row in rows), abs=1e-5)
    header = read_header(run.policy_path)
    assert header["preset"] == {"name": "pfn"}
    assert header["training"] == {"steps": 12, "seed": 0, **SIZES}
    assert header["validation"]["objective"] == best < header["validation"]["true process"]
    X, y = np.random.default_rng(0).random((5, 3)), np.arange(5.0)
    mean, std = PFNSurrogate(run.policy_path).fit(X, y).predict(X)
    assert np.isfinite(mean).all()
    assert (std > 0).all()


def test_resumed_runs_are_like_whole_ones(tmp_path, at_step):
    trainer(tmp_path / "whole").run()
    for step, total in ((4, 4), (3, 7)):
        at_step(step)
        run = trainer(tmp_path / "parts")
        run.run(resume=total > 4)
        assert run.interrupted
        assert state(tmp_path / "parts")["step"] == total
    trainer(tmp_path / "parts").run(resume=True)
    assert_same_run(tmp_path / "parts", tmp_path / "whole")
    with pytest.raises(TrainingError, match="pass the same, or choose another folder"):
        trainer(tmp_path / "parts", seed=1).run(resume=True)


def test_it_learns(tmp_path, monkeypatch):
    monkeypatch.setattr(PFNTrainer, "every", 100)
    trainer(tmp_path, steps=300, most_features=1).run()
    with (tmp_path / "log.csv").open(newline="", encoding="utf-8") as file:
        first, *_, last = (float(row["validation"]) for row in csv.DictReader(file))
    # A tenth of a nat better than the prior, whose score begins near -1.5.
    assert last > max(first, -1.4)


@pytest.mark.parametrize("n_features", [1, 3])
def test_targets_are_exact_posteriors(n_features, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        pfn, "draw_kernels", lambda *sizes: drawn.append(draw_kernels(*sizes)) or drawn[-1]
    )
    batch = draw_batch(np.random.default_rng(0), 6, 3, rows=10, n_features=n_features)
    (kernels,) = drawn
    for i in range(6):
        signal_, noise = kernels.variance[i].item(), kernels.noise[i].item()
        kernel = ConstantKernel(signal_) * RBF(kernels.lengthscale[i].numpy())
        exact = GaussianProcessRegressor(kernel + WhiteKernel(noise), optimizer=None, alpha=0.0)
        exact.fit(batch.X[i].double().numpy(), batch.y[i].double().numpy())
        mean, std = exact.predict(batch.points[i].double().numpy(), return_std=True)
        np.testing.assert_allclose(batch.std[i], std, rtol=2e-3)
        # Inputs and values are kept in single precision.
        np.testing.assert_allclose(batch.mean[i], mean, atol=0.05)


def test_values_are_of_the_prior():
    rng = np.random.default_rng(0)
    total, squares = 0.0, 0.0
    for _ in range(300):
        batch = draw_batch(rng, 4, 3)
        total += (batch.y.square().mean() / 300).item()
        # Means of posteriors and their variances add up to the variance of measurements.
        squares += ((batch.mean.square() + batch.std.square()).mean() / 300).item()
    assert total == pytest.approx(squares, rel=0.1)
    assert 1.0 < total < 1.6


def test_the_loss_is_the_expected_log_density(tmp_path):
    run = trainer(tmp_path)
    network = run._begin()
    torch.nn.init.normal_(network.head[2].weight)
    batch, _ = run._held_out[0]
    with torch.no_grad():
        found = pfn._cross_entropy(network, batch).item()
        log_mass = torch.log_softmax(network(batch.X, batch.y, batch.points), -1)
    normal = torch.randn(4000, *batch.mean.shape, generator=torch.Generator().manual_seed(0))
    which = torch.bucketize(batch.mean + batch.std * normal, network.borders)
    drawn = log_mass.expand(4000, -1, -1, -1).gather(-1, which[..., None])
    assert found == pytest.approx(-drawn.mean().item(), rel=0.01)


def test_from_the_command_line(tmp_path, capsys):
    def run(*arguments):
        return main(["train", *arguments, "--out", str(tmp_path / "run")])

    assert run("pfn", "--steps", "2", "--seed", "3", "--threads", "1") == 0
    assert "best validation objective" in capsys.readouterr().out
    assert read_header(tmp_path / "run" / "policy.safetensors")["training"] == {
        "steps": 2,
        "seed": 3,
    }
    assert run("--resume") == 0
    for arguments, message in (
        (("any", "--resume"), "holds a run of pfn, not of any"),
        (("pfn", "--resume", "--steps", "3"), "different: steps \\(run: 2, asked: 3\\)"),
        (("pfn", "--systems", "9"), "--systems has no meaning for pfn"),
        (("pfn", "--device", "cuda"), "--device cuda has no meaning for pfn"),
        (("pfn",), "already holds a run; pass --resume"),
    ):
        assert run(*arguments) == 1
        assert re.search(message, capsys.readouterr().err)
    assert main(["train", "--plot", str(tmp_path / "run")]) == 1
    assert "holds a run of pfn, which --plot does not draw" in capsys.readouterr().err
    assert main(["info", "pfn"]) == 0
    assert "kind: pfn" in capsys.readouterr().out
