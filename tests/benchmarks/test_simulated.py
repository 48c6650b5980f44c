import pytest
import torch

from sklearn_asal import AmortizedSafeQuerier, GPSafeQuerier
from sklearn_asal.benchmarks.simulated import Querying
from sklearn_asal.exceptions import NoSafeCandidateError
from sklearn_asal.policies import load_policy
from sklearn_asal.trainer.evaluate import evaluate
from sklearn_asal.trainer.presets import PRESETS
from sklearn_asal.trainer.simulator import draw_tasks, simulate

from ..datasets.settings import SETTINGS

PRESET = PRESETS["safe-2d"].replace(max_budget=12)


def rollout(querier, preset=PRESET, n_tasks=4):
    tasks = draw_tasks(preset, n_tasks, 1, 1, torch.Generator().manual_seed(0))
    return tasks, simulate(Querying(querier), tasks)


def test_a_policy_s_querier_does_what_the_policy_does():
    network, _ = load_policy("2d", safe=True)
    expected = evaluate(network, PRESET, 20)
    result = evaluate(Querying(AmortizedSafeQuerier("2d", guard=False)), PRESET, 20)
    assert result["unsafe_share"] == expected["unsafe_share"]
    for name in ("objective", "objective_sem", "gp_test_rmse"):
        assert result[name] == pytest.approx(expected[name], rel=1e-3)


def test_least_unsafe_point_is_measured_where_none_is_safe():
    preset = PRESET.replace(n_init=1, max_budget=2)
    querier = GPSafeQuerier(gamma=0.05, safety_threshold=50.0)
    tasks, forced = rollout(querier, preset, 2)
    data = (part[0].double().numpy() for part in (tasks.X, tasks.Y, tasks.Z))
    with pytest.raises(NoSafeCandidateError):
        querier.query(*data)
    assert torch.isfinite(forced.X).all()
    assert ((forced.X >= 0) & (forced.X <= 1)).all()


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_the_program_around_do_not_matter(setting):
    preset = PRESET.replace(max_budget=4)

    def results():
        for querier in (AmortizedSafeQuerier("2d"), GPSafeQuerier(gamma=0.05)):
            yield evaluate(Querying(querier), preset, 2)

    expected = list(results())
    with SETTINGS[setting]():
        assert list(results()) == expected
