import dataclasses

import pytest
import torch

from sklearn_asal.policies import load_policy
from sklearn_asal.reproduce.grid import Place
from sklearn_asal.reproduce.scale import SCALES
from sklearn_asal.reproduce.variants import (
    baseline,
    known_rmse,
    measured,
    pooled,
    trained,
    untrained,
    variant,
)

TWO_SEEDS = dataclasses.replace(SCALES["quick"], seeds=2)


def test_a_variant_is_trained_once_a_seed_and_deployed_each_time():
    one = variant(TWO_SEEDS, "1d", "wide", "w", "I_mean", embedding=32)
    assert [t.preset.seed for t in one.trainings] == [0, 1]
    assert all(t.preset.embedding == 32 for t in one.trainings)
    cells = one.deployed("sinus", 5)
    assert [cell.needs for cell in cells] == [(t.name,) for t in one.trainings]
    assert {(cell.method, cell.queries) for cell in cells} == {("aal:n_candidates=1", 5)}
    safe = variant(TWO_SEEDS, "safe-2d", "safe", "s", "S_H").deployed("townsend", 5)
    assert safe[0].method == "asal:n_candidates=1"


def test_untrained_is_the_network_before_its_training(tmp_path):
    (training,) = untrained(SCALES["quick"], "1d", "I_mean").trainings
    place = Place(tmp_path)
    training.work(place)
    network, header = load_policy(training.folder(place) / "policy.safetensors", safe=False)
    assert header["steps_done"] == 1
    torch.manual_seed(0)
    fresh = training.preset.network().state_dict()
    for name, value in network.state_dict().items():
        torch.testing.assert_close(value, fresh[name], atol=1e-9, rtol=1e-6)


def test_results_of_seeds_and_campaigns_are_one_sample():
    one = variant(TWO_SEEDS, "1d", "a", "a", "I_mean")
    cells = one.deployed("sinus", 5)
    results = {
        cells[0].name: {"rmse": [1.0, 2.0], "safe_share": [None, None]},
        cells[1].name: {"rmse": [3.0], "safe_share": [None]},
        one.trainings[0].name: {"judge": 1.0, "judge_sem": 0.25},
    }
    assert pooled(results, cells, "rmse") == [1.0, 2.0, 3.0]
    (rmse,) = measured(results, cells, False)
    assert (rmse.mean, rmse.error) == (2.0, pytest.approx(3**-0.5))
    assert measured(results, cells, True)[1] is None
    # Of one seed the error is that over tasks, of two that over seeds.
    single = trained(results, one, "judge")
    assert (single.mean, single.error) == (1.0, 0.25)
    results[one.trainings[1].name] = {"judge": 2.0, "judge_sem": 0.25}
    both = trained(results, one, "judge")
    assert (both.mean, both.error) == (1.5, 0.5)
    assert trained({}, one, "judge") is None
    assert measured({}, [baseline(TWO_SEEDS, "sinus", "gp", 5)], False) == [None]


def test_the_papers_figures_of_methods_of_the_benchmark():
    (gp,) = known_rmse("branin", "gp", 30)
    assert (gp.mean, gp.error) == (0.19, 0.011)
    assert known_rmse("branin", "gp", 29) == ()
