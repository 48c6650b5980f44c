"""Smaller networks (label appendix-ablation-nn_sizes)."""

from . import paper
from .experiment import Experiment, Table
from .variants import (
    ON_SIMULATED,
    TASKS,
    baseline,
    known_rmse,
    length,
    measured,
    task_table,
    trained,
    untrained,
    variant,
)

_PRESETS = "1d", "2d", "5d"
_EMBEDDINGS = 128, 64, 32
_BASELINES = {"gp": "GP AL", "random": "Random"}


def _variants(scale):
    for preset in _PRESETS:
        for embedding in _EMBEDDINGS:
            label = f"embedding {embedding}"
            made = variant(scale, preset, label, f"e{embedding}", "I_mean", embedding=embedding)
            yield preset, embedding, made
        yield preset, None, untrained(scale, preset, "I_mean")


def cells(scale):
    """A training for each number of inputs and size; campaigns on the paper's tasks."""
    made = []
    for preset, _, one in _variants(scale):
        made += one.trainings
        for task in TASKS[preset]:
            made += one.deployed(task, length(scale, task))
    for preset in _PRESETS:
        for task in TASKS[preset]:
            made += [baseline(scale, task, method, length(scale, task)) for method in _BASELINES]
    return made


def _stated(task, embedding, queries):
    if embedding is None:
        return ()
    main = embedding == 128
    return known_rmse(task, "aal", queries) if main else (paper.size_rmse(task, embedding),)


def tables(scale, results):
    """Simulated tasks, then the benchmark's."""
    simulated = Table(
        "Fresh simulated tasks",
        "tableS-trained_varied_policy_size",
        ("policy", "network"),
        ("I, expected", "GP test RMSE"),
    )
    rmse = task_table(
        "Benchmark tasks", "tableS-result_al_varied_policy_size", ("task", "method"), False
    )
    for preset, embedding, one in _variants(scale):
        ours = [trained(results, one, name) for name in ("judge", "gp_test_rmse")]
        simulated.add((preset, one.label), ours, paper.size(preset, embedding) if embedding else ())
    for preset in _PRESETS:
        for task in TASKS[preset]:
            queries = length(scale, task)
            for _, embedding, one in (v for v in _variants(scale) if v[0] == preset):
                stated = _stated(task, embedding, queries)
                ours = measured(results, one.deployed(task, queries), False)
                rmse.add((task, f"AAL, {one.label}"), ours, stated)
            for method, label in _BASELINES.items():
                ours = measured(results, [baseline(scale, task, method, queries)], False)
                rmse.add((task, label), ours, known_rmse(task, method, queries))
    return [simulated, rmse]


EMBEDDING = Experiment(
    "embedding",
    "Embedding size",
    ("tableS-trained_varied_policy_size", "tableS-result_al_varied_policy_size"),
    "Policies without limit, in one, two and five dimensions, whose network has an embedding of "
    f"128, 64 or 32. {ON_SIMULATED}",
    cells,
    tables,
    "An embedding of 32 can be too small in two and five dimensions; 64 is worse than 128 on "
    "Airline, LGBB and Airfoil.",
)
