import dataclasses

import pytest

from sklearn_asal.reproduce.scale import SCALES, paper_recipe
from sklearn_asal.trainer.presets import PRESETS


@pytest.mark.parametrize(
    ("name", "objective", "batch"),
    [("1d", "I", 500), ("2d", "I", 500), ("5d", "I", 500), ("safe-2d", "S_H", 50)],
)
def test_the_papers_recipe(name, objective, batch):
    preset = paper_recipe(name)
    assert (preset.objective, preset.batch, preset.steps) == (objective, batch, 10_000)
    assert preset.learning_rate(99) == pytest.approx(1e-4 * 0.98)
    assert (preset.kind, preset.output, preset.hidden) == ("transformer", "tanh", 512)
    assert preset.max_budget == PRESETS[name].max_budget
    assert preset.network().architecture["kind"] == "transformer"


def test_dad_has_twice_the_steps():
    assert paper_recipe("dad-1d").steps == 20_000
    assert paper_recipe("dad-1d").objective == "DAD"
    assert (paper_recipe("dad-1d").batch, paper_recipe("dad-1d").n_contrastive) == (100, 200)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", PRESETS)
def test_changes_and_steps_are_those_asked_for(scale, name):
    some = dataclasses.replace(SCALES[scale], steps=50)
    preset = some.preset(name, embedding=64, max_budget=7)
    assert (preset.embedding, preset.max_budget, preset.steps) == (64, 7, 50)
    assert preset.direct_steps <= 25
    if scale != "paper":
        assert preset.batch <= 10


def test_what_is_cut_is_said():
    small, paper = " ".join(SCALES["small"].cuts()), " ".join(SCALES["paper"].cuts())
    assert "100 steps" in small
    assert "10 tasks" in small
    assert "reader network" in small
    assert "steps" not in paper
    assert "reader" not in paper
    assert "3 seeds" not in small
    some = dataclasses.replace(SCALES["small"], campaigns=2, seeds=3)
    assert "task: 2;" in " ".join(some.cuts())
    assert "training: 3;" in " ".join(some.cuts())
    assert "DAD has" in " ".join(SCALES["small"].cuts("dad"))
    assert "DAD has" not in " ".join(SCALES["small"].cuts("gamma"))
