"""Training of the policy for any system, on a few small files."""

import csv
import signal

import numpy as np
import pytest
import torch

from sklearn_asal import AmortizedQuerier, AmortizedSafeQuerier
from sklearn_asal.policies import load_policy, read_header
from sklearn_asal.surrogates import AmortizedGP
from sklearn_asal.trainer import inference
from sklearn_asal.trainer.inference import InferenceTrainer
from sklearn_asal.trainer.loop import TrainingError

HELD_OUT, FILES = 8, 10
SIZES = {"width": 12, "layers": 1, "components": 2}


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    monkeypatch.setattr(inference, "SIZE", 3)
    monkeypatch.setattr(inference, "PER_FILE", 2)


def trainer(out, **options):
    options = {"steps": 20, "files": FILES, "threads": 1, "progress": False, **SIZES, **options}
    return InferenceTrainer(out, **options)


@pytest.fixture
def at_step(monkeypatch):
    """``at_step(n, act)`` acts in the n-th step from now on."""

    def plan(step, act):
        clip, calls = torch.nn.utils.clip_grad_norm_, []

        def clipped(*arguments):
            calls.append(1)
            if len(calls) == step:
                act()
            return clip(*arguments)

        monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", clipped)

    return plan


def interrupt():
    signal.raise_signal(signal.SIGINT)


def state(out):
    return torch.load(out / "state.pt", weights_only=True)


def log(out):
    with (out / "log.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def assert_same_run(out, other):
    one, two = state(out), state(other)
    assert one["step"] == two["step"]
    assert one["best"] == two["best"]
    assert one["network"].keys() == two["network"].keys()
    for name, weight in one["network"].items():
        assert torch.equal(weight, two["network"][name]), name
    (first, header), (second, same) = (
        load_policy(folder / "policy.safetensors", safe=False) for folder in (out, other)
    )
    for weight, same_weight in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(weight, same_weight)
    assert header["sha256"] == same["sha256"]


def score(path, folder):
    """Mean log density of a held-out hyperparameter, by the network in a file."""
    network, _ = load_policy(path, safe=False)
    found = []
    for i in range(HELD_OUT):
        with np.load(folder / f"{i}.npz") as file:
            for j in range(2):
                parts = [torch.from_numpy(file[f"{part}{j}"]) for part in range(4)]
                density = network.log_density(*parts).mean() / (parts[0].shape[1] + 1)
                found.append(density.item())
    return np.mean(found)


def test_a_whole_run(tmp_path, monkeypatch):
    monkeypatch.setattr(InferenceTrainer, "every", 8)
    run = trainer(tmp_path)
    best = run.run()
    assert not run.interrupted
    assert run.policy_path == tmp_path / "policy.safetensors"
    names = sorted(path.name for path in (tmp_path / "systems").iterdir())
    assert names == sorted(f"{i}.npz" for i in range(FILES))
    assert not list(tmp_path.glob("**/*.tmp"))
    rows = log(tmp_path)
    assert list(rows[0]) == ["step", "seconds", "loss", "validation"]
    assert [row["step"] for row in rows] == ["8", "16", "20"]
    found = [float(row["validation"]) for row in rows]
    assert best == pytest.approx(max(found), abs=1e-5)
    header = read_header(run.policy_path)
    assert header["validation"]["objective"] == best == state(tmp_path)["best"]
    assert header["steps_done"] == int(rows[int(np.argmax(found))]["step"])
    assert header["preset"] == {"name": "any"}
    assert header["training"] == {"steps": 20, "files": FILES, "seed": 0, **SIZES}
    assert header["architecture"].items() >= SIZES.items()
    assert score(run.policy_path, tmp_path / "systems") == pytest.approx(best, rel=1e-5)


def test_losses_are_those_of_the_steps_since_the_row_before(tmp_path, monkeypatch):
    density, losses = inference._log_density, []

    def recorded(*parts):
        found = density(*parts)
        if found.requires_grad:
            losses.append(-found.item())
        return found

    monkeypatch.setattr(InferenceTrainer, "every", 8)
    monkeypatch.setattr(inference, "_log_density", recorded)
    trainer(tmp_path).run()
    assert len(losses) == 20
    expected = [np.mean(losses[:8]), np.mean(losses[8:16]), np.mean(losses[16:])]
    found = [float(row["loss"]) for row in log(tmp_path)]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_it_learns(tmp_path, monkeypatch):
    monkeypatch.setattr(InferenceTrainer, "every", 100)
    trainer(tmp_path, steps=300).run()
    first, *_, last = (float(row["loss"]) for row in log(tmp_path))
    assert last < first - 0.5


def test_the_policy_is_one_for_any_system(tmp_path):
    path = trainer(tmp_path)
    path.run()
    path = path.policy_path
    rng = np.random.default_rng(0)
    for n_features in (1, 3):
        X, y = rng.random((5, n_features)), rng.standard_normal(5)
        mean, std = AmortizedGP(path).fit(X, y).predict(X)
        assert np.isfinite(mean).all()
        assert (std > 0).all()
        assert AmortizedQuerier(path).fit(X, y).query().shape == (1, n_features)
        assert AmortizedSafeQuerier(path).fit(X, y, y + 9).query().shape == (1, n_features)


def test_resumed_runs_are_like_whole_ones(tmp_path, at_step):
    trainer(tmp_path / "whole").run()
    at_step(7, interrupt)
    run = trainer(tmp_path / "parts")
    run.run()
    assert run.interrupted
    assert state(tmp_path / "parts")["step"] == 7
    assert not run.policy_path.exists()
    at_step(5, interrupt)
    run = trainer(tmp_path / "parts")
    run.run(resume=True)
    assert run.interrupted
    assert state(tmp_path / "parts")["step"] == 12
    run = trainer(tmp_path / "parts")
    run.run(resume=True)
    assert not run.interrupted
    assert_same_run(tmp_path / "parts", tmp_path / "whole")


def test_runs_that_failed_are_resumed_from_the_last_checkpoint(tmp_path, at_step):
    def fail():
        raise RuntimeError("the power is gone")

    trainer(tmp_path / "whole").run()
    at_step(9, fail)
    with pytest.raises(RuntimeError, match="power"):
        trainer(tmp_path / "parts", save_every=0.0).run()
    assert state(tmp_path / "parts")["step"] == 8
    trainer(tmp_path / "parts").run(resume=True)
    assert_same_run(tmp_path / "parts", tmp_path / "whole")


def test_interrupted_while_it_simulates(tmp_path, monkeypatch):
    trainer(tmp_path / "whole").run()
    draw, calls = inference.draw_examples, []

    def drawn(*arguments):
        calls.append(1)
        if len(calls) == 3:
            interrupt()
        return draw(*arguments)

    monkeypatch.setattr(inference, "draw_examples", drawn)
    run, systems = trainer(tmp_path / "parts"), tmp_path / "parts" / "systems"
    run.run()
    assert run.interrupted
    before = {path.name: path.stat().st_mtime_ns for path in systems.iterdir()}
    assert 0 < len(before) < FILES
    assert not run.policy_path.exists()
    run = trainer(tmp_path / "parts")
    run.run(resume=True)
    assert not run.interrupted
    for name, changed in before.items():  # none is made anew
        assert (systems / name).stat().st_mtime_ns == changed
    assert_same_run(tmp_path / "parts", tmp_path / "whole")


def test_a_limit_on_time(tmp_path):
    run = trainer(tmp_path, max_seconds=0.0)
    assert run.run() == -np.inf
    assert not run.interrupted  # nobody asked for it
    assert not run.policy_path.exists()
    run = trainer(tmp_path, max_seconds=600.0)
    assert np.isfinite(run.run(resume=True))
    assert state(tmp_path)["step"] == 20
    # Stopped before it begins, a finished run is finished all the same, and best what it was.
    again = trainer(tmp_path, max_seconds=0.0)
    assert again.run(resume=True) == read_header(run.policy_path)["validation"]["objective"]


def test_a_finished_run_is_resumed_without_effect(tmp_path):
    best = trainer(tmp_path).run()
    policy, rows = (tmp_path / "policy.safetensors").read_bytes(), log(tmp_path)
    run = trainer(tmp_path)
    assert run.run(resume=True) == best
    assert not run.interrupted
    assert (tmp_path / "policy.safetensors").read_bytes() == policy
    assert log(tmp_path) == rows


def test_a_folder_holds_one_run(tmp_path):
    with pytest.raises(TrainingError, match="holds no run to resume; leave --resume out"):
        trainer(tmp_path / "new").run(resume=True)
    trainer(tmp_path).run()
    with pytest.raises(TrainingError, match="already holds a run; pass --resume to go on"):
        trainer(tmp_path).run()
    before = (tmp_path / "state.pt").read_bytes()
    for changes in ({"steps": 30}, {"files": 11}, {"seed": 1}, {"width": 16}):
        with pytest.raises(TrainingError, match=r"holds a run with .*pass the same, or choose"):
            trainer(tmp_path, **changes).run(resume=True)
    assert (tmp_path / "state.pt").read_bytes() == before


@pytest.mark.parametrize("files", [0, 8])
def test_some_files_are_for_validation(tmp_path, files):
    with pytest.raises(ValueError, match=f"more than the 8 for validation, got {files}"):
        trainer(tmp_path / "new", files=files)
    assert not (tmp_path / "new").exists()


def test_seeds(tmp_path):
    for name, seed, steps in (("a", 0, 20), ("b", 0, 5), ("c", 1, 5)):
        trainer(tmp_path / name, seed=seed, steps=steps).run()
    contents = [
        [(tmp_path / name / "systems" / f"{i}.npz").read_bytes() for i in range(FILES)]
        for name in "abc"
    ]
    # Files of one seed are the same whatever comes after, and no two of a run are.
    assert contents[0] == contents[1]
    assert len({*contents[0], *contents[2]}) == 2 * FILES
