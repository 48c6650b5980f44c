"""Ax: a querier as a generation node. Run them where ``pip install 'sklearn-asal[ax]'`` was."""

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_asal import (
    AmortizedQuerier,
    AmortizedSafeQuerier,
    BudgetExhaustedError,
    GPSafeQuerier,
    NoSafeCandidateError,
    RandomQuerier,
)

pytest.importorskip("ax")
pytestmark = [pytest.mark.ax, pytest.mark.filterwarnings("ignore")]

from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.exceptions.core import DataRequiredError, UnsupportedError
from ax.generation_strategy.center_generation_node import CenterGenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy

from sklearn_asal.adapters.ax import QuerierNode

BOUNDS = {"speed": (0.0, 6.0), "load": (-5.0, 30.0)}
POINTS = [{"speed": 3.0, "load": 10.0}, {"speed": 2.5, "load": 12.0}]
X = np.array([[3.0, 10.0], [2.5, 12.0]])


def parameter(name, bounds, kind="float", scaling=None):
    return RangeParameterConfig(name=name, bounds=bounds, parameter_type=kind, scaling=scaling)


def client(querier=None, constraints=None, objective="torque", parameters=None, nodes=None):
    made = Client()
    made.configure_experiment(parameters or [parameter(*pair) for pair in BOUNDS.items()])
    made.configure_optimization(objective, outcome_constraints=constraints)
    made.set_generation_strategy(GenerationStrategy(nodes=nodes or [QuerierNode(querier)]))
    return made


def outcome(values):
    return {
        "torque": float(np.sin(values["speed"]) + 0.1 * values["load"]),
        "heat": float(20.0 * np.abs(values["speed"] - 3.0)),
        "noise": float(values["load"]),
    }


def begun(*args, points=POINTS, **kwargs):
    made = client(*args, **kwargs)
    for values in points:
        made.complete_trial(made.attach_trial(values), outcome(values))
    return made


def proposed(made, n=1):
    return np.array([list(values.values()) for values in made.get_next_trials(n).values()])


def outcomes(name):
    return [outcome(values)[name] for values in POINTS]


OWN = {"bounds": list(BOUNDS.values())}
LIMIT = {"safety_threshold": 80.0, "safe_when": "below"}


def test_is_the_querier():
    expected = AmortizedQuerier(**OWN).query(X, outcomes("torque"))
    for objective in ("torque", "-torque"):
        assert proposed(begun(objective=objective)) == pytest.approx(expected)
    expected = RandomQuerier(**OWN).query(X, outcomes("torque"), n_queries=3)
    assert proposed(begun(RandomQuerier()), 3) == pytest.approx(expected)


@pytest.mark.parametrize("constraint", ["heat <= 80", "-2 * heat >= -160"])
def test_outcome_constraints_are_limits(constraint):
    expected = AmortizedSafeQuerier(**OWN, **LIMIT).query(X, outcomes("torque"), outcomes("heat"))
    assert proposed(begun(constraints=[constraint])) == pytest.approx(expected)
    # A querier without limits takes no notice.
    assert proposed(begun(RandomQuerier(), [constraint])) == pytest.approx(
        RandomQuerier(**OWN).query(X, outcomes("torque"))
    )


def test_several_limits():
    constraints = ["heat <= 80", "noise >= -5", "heat >= -1"]
    z = np.column_stack([outcomes("heat"), outcomes("noise"), outcomes("heat")])
    querier = AmortizedSafeQuerier(
        **OWN, safety_threshold=[80.0, -5.0, -1.0], safe_when=["below", "above", "above"]
    )
    expected = querier.query(X, outcomes("torque"), z)
    assert proposed(begun(constraints=constraints)) == pytest.approx(expected)


def test_without_constraints_the_output_is_its_own_safety_measurement():
    querier = AmortizedSafeQuerier(safety_threshold=0.5)
    expected = clone(querier).set_params(**OWN).query(X, outcomes("torque"))
    assert proposed(begun(querier)) == pytest.approx(expected)


def test_running_trials_are_pending():
    together, one_by_one = begun(), begun()
    expected = proposed(together, 3)
    assert np.array_equal(np.vstack([proposed(one_by_one) for _ in range(3)]), expected)


def test_loop():
    made = begun(constraints=["heat <= 60"])
    for _ in range(4):
        for index, values in made.get_next_trials(2).items():
            assert all(BOUNDS[name][0] <= values[name] <= BOUNDS[name][1] for name in BOUNDS)
            made.complete_trial(index, outcome(values))
    arms = [trial.arm.parameters for trial in made._experiment.trials.values()]
    assert len({tuple(values.values()) for values in arms}) == 10


def test_failed_and_abandoned_trials():
    made = begun()
    first = proposed(made)
    made.mark_trial_failed(2)
    second = proposed(made)
    made.mark_trial_abandoned(3)
    querier = AmortizedQuerier(**OWN).fit(X, outcomes("torque"))
    assert first == pytest.approx(querier.query())
    assert second == pytest.approx(querier.tell(first, status="failed").query())
    assert proposed(made) == pytest.approx(querier.tell(second, status="failed").query())


def test_missing_outputs():
    """With limits an output may be missing, a safety measurement may not."""
    made = begun(constraints=["heat <= 80"])
    third = {"speed": 2.0, "load": 5.0}
    made.complete_trial(made.attach_trial(third), {"heat": 20.0})
    points, z = np.vstack([X, [2.0, 5.0]]), [*outcomes("heat"), 20.0]
    querier = AmortizedSafeQuerier(**OWN, **LIMIT)
    node = made._generation_strategy._curr
    proposed(made)
    assert np.array_equal(node._fitted.X_, points)
    assert node._fitted.z_.ravel().tolist() == z
    assert np.isnan(node._fitted.y_).tolist() == [False, False, True]
    assert querier.query(points, [*outcomes("torque"), np.nan], z).shape == (1, 2)
    fourth = {"speed": 4.0, "load": 5.0}
    made.complete_trial(made.attach_trial(fourth), {"torque": 1.0})
    proposed(made)
    assert len(node._fitted.X_) == 3


def test_logarithmic_scale_and_fixed_parameters():
    ranges = [parameter("speed", (1e-3, 10.0), scaling="log"), parameter("load", BOUNDS["load"])]
    points = [{"speed": 0.1, "load": 10.0, "gear": 2}, {"speed": 1.0, "load": 5.0, "gear": 2}]
    made = client(parameters=[*ranges, ChoiceParameterConfig("gear", [2], "int")])
    for values in points:
        made.complete_trial(made.attach_trial(values), outcome(values))
    querier = AmortizedQuerier(bounds=[(-3.0, 1.0), BOUNDS["load"]])
    x = querier.query([[-1.0, 10.0], [0.0, 5.0]], [outcome(values)["torque"] for values in points])
    (values,) = made.get_next_trials(1).values()
    assert values == pytest.approx({"speed": 10.0 ** x[0, 0], "load": x[0, 1], "gear": 2})


def test_behind_another_node():
    nodes = [CenterGenerationNode("sklearn_asal"), QuerierNode()]
    made = client(nodes=nodes)
    ((index, values),) = made.get_next_trials(1).items()
    assert values == {"speed": 3.0, "load": 12.5}
    made.complete_trial(index, outcome(values))
    expected = AmortizedQuerier(**OWN).query([[3.0, 12.5]], [outcome(values)["torque"]])
    assert proposed(made) == pytest.approx(expected)


def test_nothing_measured():
    with pytest.raises(DataRequiredError, match="no trial has data for torque"):
        client().get_next_trials(1)


def test_an_error_is_never_a_random_point():
    hot = [{"speed": 0.0, "load": 0.0}, {"speed": 6.0, "load": 0.0}]
    querier = GPSafeQuerier(gamma=1e-6, n_candidates=20, z_scale=30.0)
    made = begun(querier, ["heat <= 50"], points=hot)
    with pytest.raises(NoSafeCandidateError):
        made.get_next_trials(1)


def test_budget_counts_all_trials():
    made = begun(RandomQuerier(budget=4))
    proposed(made)
    proposed(made)
    with pytest.raises(BudgetExhaustedError):
        proposed(made)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (parameter("gear", (1, 5), "int"), "'gear' is no range of floats"),
        (ChoiceParameterConfig("oil", ["a", "b"], "str"), "'oil' is no range of floats"),
    ],
)
def test_other_parameters(other, message):
    made = client(parameters=[parameter("speed", BOUNDS["speed"]), other])
    with pytest.raises(UnsupportedError, match=message):
        made.get_next_trials(1)


def test_other_constraints_and_objectives():
    made = Client()
    made.configure_experiment(
        [parameter(*pair) for pair in BOUNDS.items()], parameter_constraints=["speed <= load"]
    )
    made.configure_optimization("torque")
    made.set_generation_strategy(GenerationStrategy(nodes=[QuerierNode()]))
    with pytest.raises(UnsupportedError, match="constraints of parameters"):
        made.get_next_trials(1)
    for objective, constraints in [
        ("torque, heat", None),
        ("torque + heat", None),
        ("torque", ["heat >= 0.5 * baseline"]),
        ("torque", ["heat + noise <= 3"]),
    ]:
        with pytest.raises(UnsupportedError, match=r"one output|one metric"):
            begun(None, constraints, objective).get_next_trials(1)
    with pytest.raises(UnsupportedError, match="no fixed parameters"):
        begun().get_next_trials(1, fixed_parameters={"speed": 1.0})


def test_saved_without_the_node_and_set_again(tmp_path):
    made, other = begun(), begun()
    made.configure_generation_strategy(method="random_search")
    made.save_to_json_file(str(tmp_path / "client.json"))
    loaded = Client.load_from_json_file(str(tmp_path / "client.json"))
    loaded.set_generation_strategy(GenerationStrategy(nodes=[QuerierNode()]))
    assert np.array_equal(proposed(loaded), proposed(other))
