import json
import signal

import numpy as np
import pytest

from sklearn_asal.benchmarks import get_task, run
from sklearn_asal.benchmarks.methods import make
from sklearn_asal.exceptions import DataScaleWarning
from sklearn_asal.policies import load_policy
from sklearn_asal.reproduce.cells import Campaigns, Queries, Steps, Training
from sklearn_asal.reproduce.grid import Grid, Place
from sklearn_asal.reproduce.scale import SCALES
from sklearn_asal.trainer.evaluate import evaluate
from sklearn_asal.trainer.loop import Trainer

PRESET = SCALES["quick"].preset("1d").replace(steps=6, direct_steps=3)
TRAINING = Training("small", PRESET, 4, "I_mean")
CELLS = [TRAINING, Campaigns("sinus", "sinus", "aal:n_candidates=1", 2, 2, TRAINING)]


def files(folder):
    return {path.name: path.read_bytes() for path in (folder / "cells").iterdir()}


class Killed(BaseException):
    pass


def killed(trainer):
    trainer._save()
    raise Killed


def interrupted(trainer):
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("end", "raised"),
    [(killed, Killed), (interrupted, KeyboardInterrupt)],
    ids=lambda x: x.__name__,
)
@pytest.mark.parametrize("after", [2, 4])
def test_a_training_goes_on_from_its_checkpoint(tmp_path, monkeypatch, capsys, end, raised, after):
    steps, advance = [], Trainer._advance

    def counted(trainer, bar):
        advance(trainer, bar)
        steps.append(trainer.step)
        if len(steps) == after:
            end(trainer)

    monkeypatch.setattr(Trainer, "_advance", counted)
    with pytest.raises(raised):
        Grid(CELLS, tmp_path / "ended").run(progress=False)
    assert not (tmp_path / "ended" / "cells").exists()
    assert Grid(CELLS, tmp_path / "ended").run(progress=False) == {}
    assert steps == [1, 2, 3, 4, 5, 6]
    assert Grid(CELLS, tmp_path / "whole").run(progress=False) == {}
    assert files(tmp_path / "ended") == files(tmp_path / "whole")
    assert "--resume" not in capsys.readouterr().out


def test_training_evaluates_the_policy_it_keeps(tmp_path):
    result = TRAINING.work(Place(tmp_path))
    policy = TRAINING.folder(Place(tmp_path)) / "policy.safetensors"
    network, header = load_policy(policy, safe=False)
    assert header["preset"]["steps"] == 6
    expected = evaluate(network, PRESET, 4, 1)
    assert {name: result[name] for name in expected} == expected
    judge = evaluate(network, PRESET.replace(objective="I_mean"), 4, 1)
    assert result["judge"] == judge["objective"]
    assert json.loads(json.dumps(result)) == result


def test_campaigns_are_those_of_the_benchmark(tmp_path):
    cell = Campaigns("gp", "townsend", "safe-gp", 3, 2, timed=True)
    result = cell.work(Place(tmp_path))
    task = get_task("townsend")
    for seed in (0, 1):
        last = run(make("safe-gp", task), task, seed, 3, 3)[-1]
        assert result["rmse"][seed] == pytest.approx(last.rmse)
        assert result["safe_share"][seed] == last.safe_share
    assert np.min(result["seconds"]) > 0


def test_campaigns_deploy_the_policy_of_their_training(tmp_path):
    place = Place(tmp_path)
    TRAINING.work(place)
    result = CELLS[1].work(place)
    task = get_task("sinus")
    policy = TRAINING.folder(place) / "policy.safetensors"
    querier = make("aal:n_candidates=1", task, policy)
    assert result["rmse"][0] == pytest.approx(run(querier, task, 0, 2)[-1].rmse)
    assert result["safe_share"] == [None, None]
    assert "seconds" not in result


def test_a_warning_is_shown_once_for_all_campaigns(tmp_path):
    place, longer = Place(tmp_path), PRESET.max_budget + 1
    TRAINING.work(place)
    with pytest.warns(DataScaleWarning) as seen:
        Campaigns("sinus", "sinus", "aal", longer, 3, TRAINING).work(place)
    texts = [str(one.message) for one in seen]
    assert len(texts) == len(set(texts))
    assert any(f"budget={longer}" in text for text in texts)


def test_a_failing_campaign_is_an_error_that_says_why(tmp_path):
    cell = Campaigns("lgbb", "lgbb", "random", 2, 1)
    with pytest.raises(RuntimeError, match=r"lgbb_original\.txt"):
        cell.work(Place(tmp_path, data_home=str(tmp_path)))


def test_settings_tell_cells_apart():
    other = Training("small", PRESET.replace(gamma=0.1), 4, "I_mean")
    assert TRAINING.settings() != other.settings()
    campaigns = Campaigns("sinus", "sinus", "aal:n_candidates=1", 2, 2, other)
    assert campaigns.settings() != CELLS[1].settings()
    assert campaigns.needs == ("small",)


def test_steps_leave_nothing_behind(tmp_path):
    result = Steps("times", PRESET.replace(steps=3)).work(Place(tmp_path))
    assert result["seconds"] >= 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", ["aal", "asal-any", "safe-gp", "random"])
def test_queries_take_time(tmp_path, method):
    result = Queries("times", method, 2, 4, 50, 1).work(Place(tmp_path))
    assert result["seconds"] > 0
