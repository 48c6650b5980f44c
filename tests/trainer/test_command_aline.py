"""Training of ALINE from the command line."""

import csv

import pytest
import torch

from sklearn_asal import AmortizedQuerier
from sklearn_asal.__main__ import main
from sklearn_asal.policies.checkpoint import read_weights
from sklearn_asal.trainer import aline
from sklearn_asal.trainer.aline import RECIPES

SMALL = "--max-budget 2 --n-functions 2 --embedding 8 --hidden 8 --heads 2 --layers 1".split()


def run(out, *arguments):
    return main(["train", *map(str, arguments), "--out", str(out)])


@pytest.fixture
def finished(tmp_path, capsys, monkeypatch):
    """Folder of a run that is over."""
    monkeypatch.setitem(RECIPES, "aline-1d", RECIPES["aline-1d"].replace(n_tasks=3, n_validation=4))
    assert run(tmp_path / "run", "aline-1d", *SMALL, "--steps", 4, "--seed", 5) == 0
    assert "best validation objective" in capsys.readouterr().out
    return tmp_path / "run"


def test_a_policy(finished, capsys):
    path = finished / "policy.safetensors"
    header, _ = read_weights(path)
    assert header["name"] == "aline-1d"
    assert header["preset"]["seed"] == 5
    assert header["steps_done"] == 4
    assert header["max_budget"] == 2
    point = AmortizedQuerier(path).query([[0.5]], [0.1])
    assert 0 <= point[0, 0] <= 1
    assert main(["info", str(path)]) == 0
    assert "kind: aline" in capsys.readouterr().out


def test_resume_needs_the_folder_only(finished, capsys):
    before = torch.load(finished / "state.pt", weights_only=True)
    assert run(finished, "--resume") == 0
    assert run(finished, "aline-1d", "--resume", "--seed", 5) == 0
    after = torch.load(finished / "state.pt", weights_only=True)
    assert all(
        torch.equal(before["network"][name], after["network"][name]) for name in after["network"]
    )
    assert len(list(csv.reader((finished / "log.csv").open()))) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["aline-1d"], "already holds a run"),
        (["aline-2d", "--resume"], "holds a run of aline-1d, not of aline-2d"),
        (["any", "--resume"], "holds a run of aline-1d, not of any"),
        (["--resume", "--seed", "6"], "pass the same"),
        (["--resume", "--gamma", "0.1"], "--gamma has no meaning for aline-1d"),
        (["--resume", "--threads", "2"], "--threads has no meaning for aline-1d"),
        (["--resume", "--systems", "9"], "--systems has no meaning for aline-1d"),
        (["--resume", "--device", "cuda"], "--device cuda has no meaning for aline-1d"),
        (["--resume", "--heads", "3"], "3 heads do not divide"),
        (["--resume", "--save-every", "-1"], "--save-every must be at least 0"),
    ],
)
def test_what_does_not_go(finished, arguments, message, capsys):
    assert run(finished, *arguments) == 1
    assert message in capsys.readouterr().err


def test_what_it_is_not_for(finished, tmp_path, capsys):
    path = str(finished / "policy.safetensors")
    for arguments, message in (
        (["evaluate", path], "picks candidates"),
        (["export", path, str(tmp_path / "policy.onnx")], "picks one of several candidates"),
        (["train", "--plot", str(finished)], "a run of ALINE, which --plot does not draw"),
    ):
        assert main(arguments) == 1
        assert message in capsys.readouterr().err


def test_time_limit(tmp_path, capsys):
    assert run(tmp_path, "aline-1d", *SMALL, "--steps", 4, "--minutes", "1e-9") == 0
    said = capsys.readouterr().out
    assert "Stopped at step 0 of 4; go on with --resume." in said
    assert "No policy yet" in said


def test_runs_keep_their_part_of_first_steps():
    for recipe in RECIPES.values():
        assert 0 < recipe.replace(steps=100).first_steps < 100
        assert recipe.name.endswith(f"{recipe.n_features}d")
    assert aline.COLUMNS[0] == "step"
