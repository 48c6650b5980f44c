"""The tolerance of the safe objective (label appendix-ablation-safe_AL_gamma)."""

from . import paper
from .experiment import Experiment, Table
from .variants import TASKS, baseline, length, measured, task_table, trained, untrained, variant

_PRESET = "safe-2d"
_GAMMAS = 0.05, 0.0
_BASELINES = {"safe-gp": "Safe GP AL", "safe-random": "Safe Random"}


def _variants(scale):
    for gamma in _GAMMAS:
        changes = {"objective": "S_H", "gamma": gamma}
        name = f"gamma{gamma:g}"
        yield gamma, variant(scale, _PRESET, f"gamma {gamma:g}", name, "S_H", **changes)
    yield None, untrained(scale, _PRESET, "S_H", objective="S_H")


def cells(scale):
    """A training for each gamma; campaigns on the three tasks."""
    made = []
    for _, one in _variants(scale):
        made += one.trainings
        for task in TASKS[_PRESET]:
            made += one.deployed(task, length(scale, task))
    for task in TASKS[_PRESET]:
        made += [baseline(scale, task, method, length(scale, task)) for method in _BASELINES]
    return made


def tables(scale, results):
    """Simulated tasks, then the benchmark's."""
    simulated = Table(
        "Fresh simulated tasks",
        "figureS-ablation_minunsafe_alpha",
        ("policy", "gamma in training"),
        ("objective", "GP test RMSE", "share of unsafe queries"),
    )
    rmse = task_table(
        "Benchmark tasks", "figureS-ablation_minunsafe_alpha", ("task", "method"), True
    )
    names = "objective", "gp_test_rmse", "unsafe_share"
    for _, one in _variants(scale):
        ours = [trained(results, one, name) for name in names]
        simulated.add((_PRESET, one.label), ours)
    for task in TASKS[_PRESET]:
        queries = length(scale, task)
        for gamma, one in _variants(scale):
            ours = measured(results, one.deployed(task, queries), True)
            stated = (None, paper.SAFE_SHARE) if gamma == 0.05 else ()
            rmse.add((task, f"ASAL, {one.label}"), ours, stated)
        for method, label in _BASELINES.items():
            rmse.add(
                (task, label), measured(results, [baseline(scale, task, method, queries)], True)
            )
    return [simulated, rmse]


GAMMA = Experiment(
    "gamma",
    "Tolerance gamma in training",
    ("figureS-ablation_minunsafe_alpha",),
    "Safe policies in two dimensions, trained by S_H with a tolerance gamma of 0.05 and of 0. "
    "Their objectives are on different scales; the untrained one is judged with 0.05. The paper "
    "has its results as curves and bars, so the tables give no figures of it but the share of safe "
    "queries that its text states.",
    cells,
    tables,
    "With gamma = 0 safety dominates the objective: queries are safer, and the error is larger.",
)
