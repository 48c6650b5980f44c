import json

import pytest

from sklearn_asal.__main__ import main
from sklearn_asal.policies import load_policy, read_header, shipped
from sklearn_asal.policies.registry import locate
from sklearn_asal.trainer.presets import PRESETS, Preset
from sklearn_asal.trainer.priors import Uniform, parse_distribution

TINY = (
    "--n-features 1 --n-init 2 --max-budget 3 --n-fourier 20 --embedding 16 --hidden 16 --heads 2 "
    "--batch 5 --steps 4 --warmup 1 --validate-every 2 --validation-tasks 8"
).split()


def run(*arguments):
    return main([str(argument) for argument in arguments])


def test_without_arguments_five_lines_say_what_there_is(capsys):
    assert run() == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert all(name in " ".join(lines) for name in ("demo", "next", "info", "bench", "train"))


def test_train_then_evaluate(tmp_path, capsys):
    out = tmp_path / "run"
    changes = "--lengthscale uniform:0.1,0.4 --gamma 0.1 --no-standardize --output tanh".split()
    assert run("train", "safe-2d", "--out", out, *TINY, *changes) == 0
    assert "best validation objective" in capsys.readouterr().out
    _, header = load_policy(out / "policy.safetensors", safe=True)
    preset = Preset.from_dict(header["preset"])
    assert preset.lengthscale == Uniform(0.1, 0.4)
    assert (preset.gamma, preset.standardize, preset.output) == (0.1, False, "tanh")
    assert (preset.n_kernels, preset.n_functions) == (5, 1)
    assert run("evaluate", out / "policy.safetensors", "--tasks", 10) == 0
    result = json.loads(capsys.readouterr().out)
    assert result.keys() >= {"objective", "unsafe_share", "gp_test_rmse"}
    assert (result["tasks"], result["scored_by"]) == (10, "S_Imean")
    assert run("evaluate", out / "policy.safetensors", "--tasks", 10, "--objective", "S_H") == 0
    other = json.loads(capsys.readouterr().out)
    assert other["scored_by"] == "S_H"
    assert other["objective"] != result["objective"]
    method = "--method", "safe-ensemble"
    assert run("evaluate", out / "policy.safetensors", "--tasks", 30, *method) == 0
    usual = json.loads(capsys.readouterr().out)
    assert usual["method"] == "safe-ensemble"
    longer = *method, "--queries", 30
    assert run("evaluate", out / "policy.safetensors", "--tasks", 30, *longer) == 0
    assert json.loads(capsys.readouterr().out)["gp_test_rmse"] < 0.7 * usual["gp_test_rmse"]
    assert run("evaluate", out / "policy.safetensors", "--tasks", 4, "--method", "gp") == 1
    assert "--method must be one of asal, asal-any, safe-ensemble" in capsys.readouterr().err
    assert run("evaluate", out, "--tasks", 10) == 1
    assert "policy.safetensors" in capsys.readouterr().err


def test_train_again_and_resume(tmp_path, capsys):
    assert run("train", "safe-2d", "--out", tmp_path, *TINY) == 0
    assert run("train", "safe-2d", "--out", tmp_path, *TINY) == 1
    assert "already holds a run" in capsys.readouterr().err
    assert run("train", "safe-2d", "--out", tmp_path, "--resume", *TINY) == 0
    assert run("train", "safe-2d", "--out", tmp_path, "--resume") == 0
    assert run("train", "--out", tmp_path, "--resume", "--gamma", "0.05") == 0
    capsys.readouterr()
    assert run("train", "--out", tmp_path, "--resume", "--gamma", "0.1") == 1
    error = capsys.readouterr().err
    assert "different: gamma (run: 0.05, asked: 0.1)" in error
    assert "lengthscale" not in error
    assert run("train", "2d", "--out", tmp_path, "--resume") == 1
    assert "holds a run of safe-2d, not of 2d" in capsys.readouterr().err


def test_no_validation_no_policy(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sklearn_asal.trainer.loop.Trainer.run", lambda self, resume: float("-inf"))
    assert run("train", "safe-2d", "--out", tmp_path) == 0
    assert "No policy yet" in capsys.readouterr().out


def test_minutes_are_positive(tmp_path, capsys):
    with pytest.raises(SystemExit):
        run("train", "safe-2d", "--out", tmp_path / "run", "--minutes", "-1")
    assert "must be a positive number, got -1" in capsys.readouterr().err


def test_interrupted(monkeypatch, capsys):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("sklearn_asal.__main__._info", interrupt)
    assert run("info") == 130
    assert "stopped" in capsys.readouterr().err


def test_time_limit_is_no_interruption(tmp_path, capsys):
    assert run("train", "safe-2d", "--out", tmp_path, *TINY, "--minutes", "1e-9") == 0
    assert "go on with --resume" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gamma", "2"], "gamma must be in"),
        (["--batch", "7", "--n-functions", "5"], "batch must be a multiple"),
        (["--output", "relu"], "output must be one of"),
        (["--save-every", "nan"], "save_every must be"),
        (["--direct-steps", "5", "--steps", "4"], "--direct-steps 5 is larger than --steps 4"),
        (["--no-safe", "--objective", "H", "--gamma", "0.1"], "--gamma is for safe policies"),
        (["--device", "no-such-device"], "device 'no-such-device' cannot be used"),
    ],
)
def test_bad_field(tmp_path, capsys, arguments, message):
    assert run("train", "safe-2d", "--out", tmp_path / "run", *arguments) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["train"],
        ["train", "no-such-preset", "--out", "x"],
        ["train", "safe-2d", "--out", "x", "--lengthscale", "normal:0,1"],
        ["train", "safe-2d", "--out", "x", "--lags", "1-0-0.3"],
        ["evaluate", "x", "--tasks", "0"],
    ],
)
def test_bad_command(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize("preset", ["no-such-preset", "safe-3d", "2d"])
def test_evaluate_with_a_preset_that_does_not_fit(preset, capsys):
    assert run("evaluate", "safe-2d", "--preset", preset) == 1
    assert "--preset" in capsys.readouterr().err


def test_evaluate_unknown(capsys):
    assert run("evaluate", "safe-99d") == 1
    assert "neither a preset" in capsys.readouterr().err


def test_info_of_one_policy(tmp_path, capsys):
    assert run("info", "safe-7d-fluid") == 0
    lines = capsys.readouterr().out.splitlines()
    header = read_header(locate("7d-fluid", safe=True))
    # Nothing is left out, and a prior is written as the flags of train want it.
    for key in (*header, *header["preset"], *header["architecture"]):
        assert any(line.lstrip().startswith(f"{key}:") for line in lines)
    (prior,) = (line.split()[1] for line in lines if line.startswith("  lengthscale:"))
    assert parse_distribution(prior) == PRESETS["safe-7d-fluid"].lengthscale
    assert f"  objective: {header['validation']['objective']:.6g}" in lines
    assert run("info", locate("7d-fluid", safe=True)) == 0
    assert capsys.readouterr().out.splitlines() == lines
    assert run("info", "safe-99d") == 1
    assert "neither a preset" in capsys.readouterr().err


def test_info_lists_every_policy(capsys):
    assert run("info") == 0
    output = capsys.readouterr().out
    for safe, name in ((True, "AmortizedSafeQuerier"), (False, "AmortizedQuerier")):
        for policy in shipped(safe):
            assert f"{name}({policy!r})" in output
    assert "None" not in output


def test_help_says_what_the_fields_of_a_preset_are(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["train", "--help"])
    assert stopped.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "--gamma FLOAT Tolerance of the safe objectives" in text
    assert "the paper's 2 % less every 50 steps" in text
    assert "TransformerNetwork (with 512 hidden units)" in text
