"""The number of queries T in training and in use (label appendix-ablation-aal_varied_T)."""

from .experiment import Experiment
from .variants import TASKS, baseline, known_rmse, measured, task_table, untrained, variant

# Longest number in training, and whether it is drawn from 1 to that for each simulated task; the
# first is the paper's.
_TRAINED = {
    "1d": ((30, True), (10, True), (10, False)),
    "2d": ((30, True), (20, True), (20, False)),
}
_USED = {"1d": (10, 20), "2d": (20, 30)}
_BASELINES = {"gp": "GP AL", "random": "Random"}


def _variants(scale, preset):
    for longest, drawn in _TRAINED[preset]:
        label = f"trained for {'1 to ' * drawn}{longest}"
        name = f"T{longest}{'' if drawn else '-fixed'}"
        changes = {"max_budget": longest, "random_budget": drawn}
        yield variant(scale, preset, label, name, "I_mean", **changes)
    yield untrained(scale, preset, "I_mean")


def _uses(scale):
    for preset, lengths in _USED.items():
        for queries in dict.fromkeys(map(scale.queries, lengths)):
            for task in TASKS[preset]:
                yield preset, task, queries


def cells(scale):
    """A training for each T; campaigns of each length."""
    made = [t for preset in _TRAINED for one in _variants(scale, preset) for t in one.trainings]
    for preset, task, queries in _uses(scale):
        for one in _variants(scale, preset):
            made += one.deployed(task, queries)
        made += [baseline(scale, task, method, queries) for method in _BASELINES]
    return made


def tables(scale, results):
    """RMSE after campaigns of each length."""
    table = task_table(
        "Benchmark tasks", "tableS-result_al_varied_T", ("task", "queries", "method"), False
    )
    for preset, task, queries in _uses(scale):
        for i, one in enumerate(_variants(scale, preset)):
            ours = measured(results, one.deployed(task, queries), False)
            stated = known_rmse(task, "aal", queries) if i == 0 else ()
            table.add((task, queries, f"AAL, {one.label}"), ours, stated)
        for method, label in _BASELINES.items():
            ours = measured(results, [baseline(scale, task, method, queries)], False)
            table.add((task, queries, label), ours, known_rmse(task, method, queries))
    return [table]


HORIZON = Experiment(
    "horizon",
    "Number of queries in training and in use",
    ("tableS-result_al_varied_T",),
    "Policies trained for campaigns of another length than those they are used for. The paper's "
    "are trained for a number drawn from 1 to 30, and used for 10, 20 and 30 queries. Those "
    "trained for one number alone are not in the paper, which says why a drawn one is better "
    "(label section-method-training_objective-unconstrained_random_sequence).",
    cells,
    tables,
    "With fewer queries AAL is about level with the other methods; ten are too few on Sinus.",
)
