"""Objectives without and with a limit (labels appendix-ablation-aal_objectives,
appendix-ablation-safe_al_criteria)."""

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

# By preset, with the paper's first. In five dimensions the paper has I and I_mean alone.
_AL = {
    "1d": ("I", "I_mean", "H", "H_mean"),
    "2d": ("I", "I_mean", "H", "H_mean"),
    "5d": ("I", "I_mean"),
}
_SAFE = {"safe-2d": ("S_H", "S_Hmean", "S_H_division", "S_Hmean_division")}
_SAFE_PAPER = {**_SAFE, "safe-3d": _SAFE["safe-2d"]}
_BASELINES = {"gp": "GP AL"}
_SAFE_BASELINES = {"safe-gp": "Safe GP AL", "min-unsafe": "MinUnsafe GP AL"}


def _variants(scale, objectives, judge):
    for preset, names in objectives.items():
        for name in names:
            yield preset, name, variant(scale, preset, name, name, judge, objective=name)
        yield preset, "untrained", untrained(scale, preset, judge)


def _cells(scale, objectives, judge, baselines):
    made = []
    for preset, _, one in _variants(scale, objectives, judge):
        made += one.trainings
        for task in TASKS[preset]:
            made += one.deployed(task, length(scale, task))
    for preset in objectives:
        for task in TASKS[preset]:
            made += [baseline(scale, task, method, length(scale, task)) for method in baselines]
    return made


def _rows(table, scale, results, objectives, judge, baselines, safe):
    for preset in objectives:
        for task in TASKS[preset]:
            queries = length(scale, task)
            for owner, name, one in _variants(scale, objectives, judge):
                if owner == preset:
                    stated = _stated(task, name, queries)
                    ours = measured(results, one.deployed(task, queries), safe)
                    table.add((task, f"{'ASAL' if safe else 'AAL'}, {name}"), ours, stated)
            for method, label in baselines.items():
                ours = measured(results, [baseline(scale, task, method, queries)], safe)
                stated = () if safe else known_rmse(task, method, queries)
                table.add((task, label), ours, stated)


def _stated(task, objective, queries):
    """What the paper says of its main objectives."""
    if objective == "S_H":
        return None, paper.SAFE_SHARE
    return known_rmse(task, "aal", queries) if objective == "I" else ()


def al_cells(scale):
    """A training for each objective without limit; campaigns on the tasks."""
    return _cells(scale, _AL, "I_mean", _BASELINES)


def al_tables(scale, results):
    """Simulated tasks, then the benchmark's."""
    simulated = Table(
        "Fresh simulated tasks",
        "figureS-ablation_al, figureS-ablation_al2",
        ("policy", "trained by"),
        ("I, expected", "GP test RMSE", "share of queries at the border"),
    )
    for preset, name, one in _variants(scale, _AL, "I_mean"):
        ours = [trained(results, one, part) for part in ("judge", "gp_test_rmse", "border_share")]
        stated = (*paper.size(preset, 128), None) if name == "I" else ()
        simulated.add((preset, name), ours, stated)
    label = "figureS-ablation_al, figureS-ablation_al2"
    rmse = task_table("Benchmark tasks", label, ("task", "method"), False)
    _rows(rmse, scale, results, _AL, "I_mean", _BASELINES, False)
    return [simulated, rmse]


def _safe(scale):
    return _SAFE_PAPER if scale.name == "paper" else _SAFE


def safe_cells(scale):
    """A training for each safe objective; campaigns on the tasks."""
    return _cells(scale, _safe(scale), "S_Hmean", _SAFE_BASELINES)


def safe_tables(scale, results):
    """Simulated tasks, then the benchmark's."""
    label = "figureS-ablation_safe_al_losses"
    columns = "S_H, expected", "GP test RMSE", "share of unsafe queries"
    simulated = Table("Fresh simulated tasks", label, ("policy", "trained by"), columns)
    for preset, name, one in _variants(scale, _safe(scale), "S_Hmean"):
        ours = [trained(results, one, part) for part in ("judge", "gp_test_rmse", "unsafe_share")]
        simulated.add((preset, name), ours)
    rmse = task_table("Benchmark tasks", label, ("task", "method"), True)
    _rows(rmse, scale, results, _safe(scale), "S_Hmean", _SAFE_BASELINES, True)
    return [simulated, rmse]


OBJECTIVES = Experiment(
    "objectives",
    "Objectives without a limit",
    ("figureS-ablation_al", "figureS-ablation_al2"),
    "Policies trained by I, I_mean, H and H_mean, all judged by I. The paper has H and H_mean in "
    "its text alone. Its figures of I are those of its main policies (labels "
    f"tableS-trained_varied_policy_size, table-result_al). {ON_SIMULATED}",
    al_cells,
    al_tables,
    "I and I_mean differ little. Policies trained by H and H_mean get stuck at the border much "
    "more often.",
)

SAFE_OBJECTIVES = Experiment(
    "safe-objectives",
    "Objectives with a limit",
    ("figureS-ablation_safe_al_losses",),
    "Safe policies trained by S_H, S_Hmean and their division variants, all judged by S_H, and "
    "the acquisition MinUnsafe (eq-acq_minunsafe) with fitted Gaussian processes. At scale small "
    "in two dimensions only, at scale paper in three as well. The paper has its results as bars.",
    safe_cells,
    safe_tables,
    "S_H and S_Hmean put safety before exploration, the division variants less so. Safe GP AL and "
    "MinUnsafe GP AL do not differ much.",
)
