"""The baseline DAD, trained for each number of queries (label appendix-objective_details-DAD)."""

from . import paper
from .experiment import Experiment
from .variants import TASKS, baseline, known_rmse, measured, task_table, untrained, variant

_LENGTHS = {"dad-1d": (10, 20), "dad-2d": (20, 30)}


def _uses(scale):
    for preset, lengths in _LENGTHS.items():
        for queries in dict.fromkeys(map(scale.queries, lengths)):
            name, length = f"T{queries}", {"max_budget": queries}
            made = variant(scale, preset, "DAD", name, "I_mean", **length)
            names = f"{name}-untrained", "DAD, untrained"
            yield preset, queries, (made, untrained(scale, preset, "I_mean", *names, **length))


def _tasks(preset):
    return TASKS[preset.removeprefix("dad-")]


def cells(scale):
    """A training for each number of inputs and queries; campaigns of that length."""
    made = []
    for preset, queries, variants in _uses(scale):
        for one in variants:
            made += one.trainings
            for task in _tasks(preset):
                made += one.deployed(task, queries)
        made += [baseline(scale, task, "random", queries) for task in _tasks(preset)]
    return made


def tables(scale, results):
    """RMSE after campaigns of the length of the training."""
    label = "table-result_al, tableS-result_al_varied_T"
    table = task_table("Benchmark tasks", label, ("task", "queries", "method"), False)
    for preset, queries, (one, without) in _uses(scale):
        for task in _tasks(preset):
            ours = measured(results, one.deployed(task, queries), False)
            table.add((task, queries, one.label), ours, (paper.dad_rmse(task, queries),))
            ours = measured(results, without.deployed(task, queries), False)
            table.add((task, queries, without.label), ours)
            ours = measured(results, [baseline(scale, task, "random", queries)], False)
            table.add((task, queries, "Random"), ours, known_rmse(task, "random", queries))
    return [table]


DAD = Experiment(
    "dad",
    "The baseline DAD",
    ("table-result_al", "tableS-result_al_varied_T"),
    "Policies trained by eq-dad_objective, one for each number of queries, as in the paper.",
    cells,
    tables,
    "DAD is not made for nonparametric models, and is worse than random points in two dimensions.",
)
