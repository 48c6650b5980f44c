import dataclasses

import pytest

from sklearn_asal.__main__ import main
from sklearn_asal.reproduce import command

from .fake import EXPERIMENT, Square, squares


@pytest.fixture(autouse=True)
def experiment(monkeypatch, tmp_path):
    """A quick experiment among the others, and a folder to run in."""
    monkeypatch.setitem(command.EXPERIMENTS, "squares", EXPERIMENT)
    monkeypatch.chdir(tmp_path)


def run(*arguments):
    return main(["reproduce", *map(str, arguments)])


def test_list_has_every_experiment_and_label(capsys):
    assert run("--list") == 0
    text = capsys.readouterr().out
    for one in command.EXPERIMENTS.values():
        assert f"{one.name}: {one.title}" in text
        assert all(label in text for label in one.labels)
    assert "tableS-training_samplers: settings" in text
    assert "100 steps" in text


def test_results_and_page_by_default(tmp_path, capsys):
    assert run("squares") == 0
    page = tmp_path / "runs" / "reproduce" / "squares" / "reproduce-squares.md"
    assert str(page.relative_to(tmp_path)) in capsys.readouterr().out
    assert "reproduce squares\n" in page.read_text()


def test_the_command_on_the_page_is_the_one_given(tmp_path):
    flags = "--out o --page p.md --steps 30 --seeds 2 --campaigns 3".split()
    assert run("squares", *flags) == 0
    text = (tmp_path / "p.md").read_text()
    command_line = "python -m sklearn_asal reproduce squares --steps 30 --seeds 2 --campaigns 3"
    assert f"\n{command_line}\n" in text
    assert "30 steps a training" in text
    assert run("squares", "--scale", "paper", "--out", "o", "--page", "p.md") == 0
    assert "reproduce squares --scale paper\n" in (tmp_path / "p.md").read_text()


def test_cells_that_fail_are_named(monkeypatch, capsys):
    def fail():
        raise OSError("no disk")

    cells = [*squares(2), Square("cell-2", before=fail), Square("last", 1, needs=("cell-2",))]
    failing = dataclasses.replace(EXPERIMENT, cells=lambda scale: cells)
    monkeypatch.setitem(command.EXPERIMENTS, "squares", failing)
    assert run("squares", "--out", "o", "--page", "p.md") == 1
    text = capsys.readouterr().out
    assert "2 of 4 cells have no result" in text
    assert "- cell-2: OSError: no disk" in text
    assert "- last: a cell that is needed failed" in text


def test_a_stopped_run_says_how_to_go_on(monkeypatch, capsys):
    from sklearn_asal.reproduce.grid import Grid

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Grid, "run", stop)
    assert run("squares") == 130
    assert "finished cells are kept, and the same command goes on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "NAME is needed, one of embedding"),
        (("squares", "--steps", 0), "--steps: must be at least 1"),
        (("squares", "--seeds", -1), "--seeds: must be at least 1"),
        (("nothing",), "invalid choice: 'nothing'"),
    ],
)
def test_arguments_that_argparse_refuses(arguments, said, capsys):
    with pytest.raises(SystemExit):
        run(*arguments)
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("squares", "--quick", "--scale", "paper"), "--quick and --scale paper exclude"),
        (("squares", "--page", "."), "--page must be a file"),
        (("training-time", "--jobs", 2), "leave --jobs out"),
        (("squares", "--out", "file"), "--out"),
        (("squares", "--data-home", "nowhere"), "--data-home: there is no folder nowhere"),
    ],
)
def test_errors_name_the_argument(arguments, said, capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert run(*arguments) == 1
    assert said in capsys.readouterr().err


def test_another_setting_in_the_same_folder_is_refused(monkeypatch, capsys):
    by_steps = dataclasses.replace(EXPERIMENT, cells=lambda scale: [Square("cell-0", scale.steps)])
    monkeypatch.setitem(command.EXPERIMENTS, "squares", by_steps)
    assert run("squares", "--out", "o", "--steps", 3) == 0
    assert run("squares", "--out", "o", "--steps", 4) == 1
    error = capsys.readouterr().err
    assert "value (kept: 3, asked: 4)" in error
    assert "another folder" in error
