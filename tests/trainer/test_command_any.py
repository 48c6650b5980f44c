"""Training of the policy for any number of features from the command line."""

import os
import re
import signal

import numpy as np
import pytest
import torch

from sklearn_asal import AmortizedQuerier, AmortizedSafeQuerier
from sklearn_asal.__main__ import main
from sklearn_asal.policies.checkpoint import read_weights
from sklearn_asal.trainer import inference
from sklearn_asal.trainer.presets import PRESETS

TINY = "--systems 9 --steps 3 --threads 1".split()
STRAIGHT = "any", *TINY


def run(out, *arguments):
    return main(["train", *map(str, arguments), "--out", str(out)])


@pytest.fixture(autouse=True)
def few_data_sets(monkeypatch):
    monkeypatch.setattr(inference, "SIZE", 4)
    monkeypatch.setattr(inference, "PER_FILE", 2)


@pytest.fixture
def finished(tmp_path, capsys):
    """Folder of a run that is over."""
    assert run(tmp_path / "run", *STRAIGHT, "--seed", 5) == 0
    assert "best validation objective" in capsys.readouterr().out
    return tmp_path / "run"


def weights(out):
    return read_weights(out / "policy.safetensors")[1]


def test_a_policy_for_any_number_of_features(finished, capsys):
    header, _ = read_weights(finished / "policy.safetensors")
    assert header["training"] == {"steps": 3, "files": 9, "seed": 5}
    assert header["steps_done"] == 3
    path = finished / "policy.safetensors"
    rng = np.random.default_rng(0)
    for n_features in (1, 4):
        data = rng.random((5, n_features)), rng.standard_normal(5), rng.random(5)
        for querier in (AmortizedQuerier(path), AmortizedSafeQuerier(path)):
            point = querier.query(*data)
            assert point.shape == (1, n_features)
            assert ((point >= 0) & (point <= 1)).all()


def test_resume_needs_the_folder_only(finished, capsys):
    before = weights(finished)
    assert run(finished, "--resume") == 0
    assert run(finished, "any", "--resume", "--seed", 5) == 0
    assert capsys.readouterr().out.count("best validation objective") == 2
    after = weights(finished)
    assert all(np.array_equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["any"], "already holds a run"),
        (["2d", "--resume"], "holds a run of any, not of 2d"),
        (["--resume", "--seed", "6"], "different: seed (run: 5, asked: 6)"),
        (["--resume", "--systems", "10"], "different: systems (run: 9, asked: 10)"),
        (["any", "--resume", "--steps", "4"], "different: steps (run: 3, asked: 4)"),
        (["--resume", "--gamma", "0.1"], "--gamma has no meaning for any"),
    ],
)
def test_another_run_in_the_folder(finished, arguments, message, capsys):
    assert run(finished, *arguments) == 1
    assert message in capsys.readouterr().err


def test_any_is_no_run_of_a_preset(tmp_path, capsys):
    torch.save({"preset": PRESETS["safe-2d"].to_dict()}, tmp_path / "state.pt")
    assert run(tmp_path, "any", "--resume") == 1
    assert "holds a run of safe-2d, not of any" in capsys.readouterr().err
    assert run(tmp_path, *STRAIGHT) == 1
    assert "already holds a run" in capsys.readouterr().err


def test_nothing_to_resume(tmp_path, capsys):
    assert run(tmp_path, "any", "--resume") == 1
    assert "holds no run to resume" in capsys.readouterr().err


def test_time_limit_is_no_interruption(finished, tmp_path, capsys):
    out = tmp_path / "other"
    assert run(out, *STRAIGHT, "--seed", 5, "--minutes", "1e-9") == 0
    said = capsys.readouterr().out
    assert "Stopped at step 0 of 3; go on with --resume." in said
    assert "No policy yet" in said
    assert run(out, "--resume", "--threads", 1) == 0
    assert "Stopped" not in capsys.readouterr().out
    expected = weights(finished)
    for name, weight in weights(out).items():
        np.testing.assert_array_equal(weight, expected[name])


def test_interrupted(tmp_path, capsys, monkeypatch):
    density, calls = inference._log_density, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return density(*arguments)

    monkeypatch.setattr(inference, "_log_density", interrupted)
    assert run(tmp_path, *STRAIGHT) == 130
    assert "Stopped at step 2 of 3; go on with --resume." in capsys.readouterr().out
    assert run(tmp_path, "--resume") == 0
    assert "best validation objective" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gamma", "0.1"], "--gamma has no meaning for any"),
        (["--no-safe"], "--no-safe has no meaning"),
        (["--n-features", "2"], "--n-features has no meaning"),
        (["--batch", "4"], "--batch has no meaning"),
        (["--device", "cuda"], "--device cuda has no meaning"),
        (["--start-from", "p.safetensors"], "--start-from has no meaning"),
        (["--tensorboard"], "--tensorboard has no meaning"),
        (["--validate-every", "2"], "--validate-every has no meaning"),
        (["--validation-tasks", "2"], "--validation-tasks has no meaning"),
        (["--systems", "8"], "--systems must be at least 9"),
        (["--steps", "0"], "--steps must be at least 1"),
        (["--seed", "-1"], "--seed must be from 0"),
        (["--save-every", "nan"], "--save-every must be at least 0"),
    ],
)
def test_bad_flag(tmp_path, capsys, arguments, message):
    assert run(tmp_path / "run", "any", *arguments) == 1
    error = capsys.readouterr().err
    assert message in error
    assert "must be" in message or "leave it out" in error
    assert not (tmp_path / "run").exists()


def test_fewest_files_are_as_few_as_the_trainer_takes(tmp_path):
    with pytest.raises(ValueError, match="files must be more than"):
        inference.InferenceTrainer(tmp_path, files=8)
    inference.InferenceTrainer(tmp_path, files=9)


def test_presets_have_no_systems(tmp_path, capsys):
    assert run(tmp_path / "run", "2d", "--systems", 10) == 1
    assert "--systems is for any, and not for 2d; leave it out" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_one_process_only(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert run(tmp_path / "run", *STRAIGHT) == 1
    assert "any is trained by one process" in capsys.readouterr().err


def test_plot(finished, capsys):
    assert main(["train", "--plot", str(finished)]) == 1
    error = capsys.readouterr().err
    assert "a run of any, which --plot does not draw" in error
    assert "log.csv" in error


def test_help_tells_of_any(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "or any: one policy for all numbers of features" in text
    assert "--systems FILES" in text


def test_any_is_among_the_presets_to_choose_from(capsys):
    with pytest.raises(SystemExit):
        main(["train", "no-such-preset", "--out", "x"])
    choices = capsys.readouterr().err.partition("choose from")[2]
    assert {"any", "safe-2d"} < set(re.findall(r"[\w-]+", choices))
