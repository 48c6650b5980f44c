"""When a training has paid off (label appendix-ablation-amortization_threshold)."""

import math

from . import paper
from .cells import Campaigns
from .experiment import Experiment, Number, Table, three_digits
from .training_time import hours, step_cell
from .variants import TASKS, length, pooled

# Of each preset: the policy's method and those it is compared with.
_AL, _SAFE = ("aal", ("gp", "mgp")), ("asal", ("safe-gp", "safe-mgp"))
_METHODS = {
    "1d": _AL,
    "2d": _AL,
    "5d": _AL,
    "safe-2d": _SAFE,
    "safe-3d": _SAFE,
    "safe-7d-fluid": _SAFE,
}
# The paper repeats each task five times.
_REPEATS = 5
# A mixture of Gaussian processes takes ten minutes and more for a campaign there.
_SLOW = "safe-7d-fluid", "safe-mgp"
_POOL = 10_000


def _campaigns(scale, preset, method):
    seeds = scale.campaigns if scale.name == "paper" else 1
    return [
        Campaigns(
            f"{task}-{method}",
            task,
            method,
            length(scale, task),
            seeds,
            timed=True,
            pool_size=None if scale.name == "paper" or task != "fluid" else _POOL,
        )
        for task in TASKS[preset]
    ]


def _compared(scale):
    for preset, (own, others) in _METHODS.items():
        for other in others:
            if scale.name == "paper" or (preset, other) != _SLOW:
                yield preset, own, other


def cells(scale):
    """Times of steps of each training, and of campaigns."""
    made = {}
    for preset, own, other in _compared(scale):
        for which in ("paper", "own"):
            cell = step_cell(scale, preset, which)
            made[cell.name] = cell
        for method in (own, other):
            made |= {cell.name: cell for cell in _campaigns(scale, preset, method)}
    return list(made.values())


def tables(scale, results):
    """Deployments until the time saved is that of the training."""
    table = Table(
        "Deployments until a training has paid off",
        "tableS-trained_run_thresholds",
        ("policy", "instead of"),
        (
            "s a campaign, policy",
            "s a campaign, instead",
            "deployments, the paper's recipe",
            "deployments, our recipe",
        ),
        scale="log",
        drawn=("deployments, the paper's recipe", "deployments, our recipe"),
    )
    for preset, own, other in _compared(scale):
        mine, theirs = (_seconds(scale, results, preset, method) for method in (own, other))
        trainings = [hours(results, scale, preset, which) for which in ("paper", "own")]
        if mine and theirs and None not in trainings:
            counts = [deployments(3600 * h, mine, theirs) for h in trainings]
            shown = [three_digits(max(part)) for part in (mine, theirs)]
            stated = None, None, paper.threshold(preset, other), None
            table.add((preset, other), [*shown, *counts], stated)
    return [table]


def _seconds(scale, results, preset, method):
    """Mean seconds of a campaign on each task; empty where one is missing."""
    means = []
    for cell in _campaigns(scale, preset, method):
        seconds = pooled(results, [cell], "seconds")
        if not seconds:
            return []
        means.append(sum(seconds) / len(seconds))
    return means


def deployments(training, policy, baseline):
    """Deployments of five campaigns each until a training has paid off.

    Parameters
    ----------
    training : float
        Its seconds.
    policy, baseline : sequence of float
        Seconds of a campaign on each task.

    Returns
    -------
    Number
        Its text is the range over tasks; "never" where the policy is no faster.
    """
    counts = [
        training / (_REPEATS * (slow - fast)) if slow > fast else math.inf
        for fast, slow in zip(policy, baseline, strict=True)
    ]
    low, high = min(counts), max(counts)
    ends = ["never" if math.isinf(n) else f"{math.ceil(n):,}" for n in (low, high)]
    text = ends[0] if ends[0] == ends[1] else " to ".join(ends)
    return Number(high if math.isinf(high) else (low + high) / 2, text=text)


THRESHOLD = Experiment(
    "threshold",
    "When a training has paid off",
    ("tableS-trained_run_thresholds",),
    "The seconds of a training, over five times the seconds that a policy saves in a campaign, "
    "which are those of its median query times their number. "
    "Trainings are estimated from a few steps, on one thread of this machine's CPU (the paper's "
    "are of an RTX 3080). Policies are the shipped ones, the Gaussian processes this package's, "
    "which take milliseconds where the paper's take seconds. Of several tasks the slowest campaign "
    "is shown, and the range of the deployments. At scale small each task has one campaign, the "
    "fluid system a pool of 10,000 trajectories in place of a million, and no mixture of Gaussian "
    "processes. ALINE and DAD are not part of it.",
    cells,
    tables,
    "The training of a policy pays off after few deployments, instead of a mixture of Gaussian "
    "processes at once.",
)
