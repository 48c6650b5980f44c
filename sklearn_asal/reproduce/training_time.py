"""How long a training takes, and how that grows (labels tableS-training_time,
tableS-training_complexities)."""

import math

from ..trainer.presets import PRESETS
from . import paper
from .cells import Steps
from .experiment import Experiment, Number, Table, three_digits
from .scale import paper_recipe

_PRESETS = "1d", "2d", "5d", "safe-2d", "safe-3d", "safe-7d-fluid", "dad-1d", "dad-2d"
_RECIPES = {"paper": "the paper's", "own": "ours"}
_OBJECTIVES = {"H": "2d", "I": "2d", "S_H": "safe-2d", "DAD": "dad-2d"}
_LENGTHS = 10, 20, 40
# Steps that are timed, by scale; one more comes before them.
_TIMED = {"paper": 20, "small": 2, "quick": 1}


def recipe(name, which):
    """A preset by the paper's recipe or by ours.

    Parameters
    ----------
    name : str
        A key of ``PRESETS``.
    which : {"paper", "own"}

    Returns
    -------
    Preset
    """
    return paper_recipe(name) if which == "paper" else PRESETS[name]


def step_cell(scale, name, which):
    """Times of a recipe's steps.

    Parameters
    ----------
    scale : Scale
    name : str
        A key of ``PRESETS``.
    which : {"paper", "own"}

    Returns
    -------
    Steps
        Of those that backpropagate through the campaign, which take longer than the first ones.
    """
    preset = recipe(name, which)
    if scale.name == "quick":
        preset = scale.preset(name)
    preset = preset.replace(steps=1 + _TIMED[scale.name], direct_steps=0)
    return Steps(f"{name}-{which}", preset)


def hours(results, scale, name, which):
    """Hours of a whole training.

    Parameters
    ----------
    results : dict
        Of a Grid.
    scale, name, which
        See :func:`step_cell`.

    Returns
    -------
    float or None
    """
    found = results.get(step_cell(scale, name, which).name)
    return None if found is None else found["seconds"] * recipe(name, which).steps / 3600


def _growth(scale, objective, length):
    name = _OBJECTIVES[objective]
    changes = {"objective": objective, "max_budget": length, "random_budget": False}
    if scale.name == "quick":
        preset = scale.preset(name, **changes | {"max_budget": length // 10})
    else:
        preset = paper_recipe(name, **changes, n_functions=5, n_noises=1)
    return Steps(f"{objective}-T{length}", preset.replace(steps=1 + _TIMED[scale.name]))


def cells(scale):
    """Times of steps, for each policy and recipe, and for each objective and T."""
    made = [step_cell(scale, name, which) for name in _PRESETS for which in _RECIPES]
    return made + [_growth(scale, name, n) for name in _OBJECTIVES for n in _LENGTHS]


def tables(scale, results):
    """Hours beside the paper's, then growth with T."""
    table = Table(
        "Whole trainings",
        "tableS-training_time",
        ("policy", "recipe"),
        ("seconds a step", "steps", "hours"),
        scale="log",
        drawn=("hours",),
    )
    for name in _PRESETS:
        for which, label in _RECIPES.items():
            found = results.get(step_cell(scale, name, which).name)
            if found is not None:
                steps = recipe(name, which).steps
                ours = [
                    three_digits(found["seconds"]),
                    Number(steps, text=str(steps)),
                    three_digits(hours(results, scale, name, which)),
                ]
                stated = paper.hours(name, PRESETS[name].max_budget) if which == "paper" else None
                table.add((name, label), ours, (None, None, stated))
    growth = Table(
        "Seconds a step by T, two inputs, 50 tasks of length T, the paper's network",
        "tableS-training_complexities",
        ("objective",),
        (*(f"T = {n}" for n in _LENGTHS), "exponent of T at the end"),
        scale="log",
        along=_LENGTHS,
        across="T",
    )
    for name in _OBJECTIVES:
        found = [results.get(_growth(scale, name, n).name) for n in _LENGTHS]
        if None not in found:
            seconds = [one["seconds"] for one in found]
            growth.add((name,), [*map(three_digits, seconds), exponent(seconds, _LENGTHS)])
    return [table, growth]


def exponent(seconds, sizes):
    """The power of a size with which a time grows between the last two sizes.

    Parameters
    ----------
    seconds, sizes : sequence of float

    Returns
    -------
    Number
    """
    rise = math.log(max(seconds[-1], 1e-9) / max(seconds[-2], 1e-9))
    power = rise / math.log(sizes[-1] / sizes[-2])
    return Number(power, text=f"{power:.1f}")


TRAINING_TIME = Experiment(
    "training-time",
    "Time of a training",
    ("tableS-training_time", "tableS-training_complexities"),
    "A few steps are timed on one thread of this machine's CPU, in CPU time, and a training is as "
    "many of them as it has; nothing is trained to its end. Ours has the number of steps that "
    "presets have; the shipped policies were trained in several parts. Steps vary with the "
    "lengths that are drawn. The paper's times are of an RTX 3080. ALINE is not part of it.",
    cells,
    tables,
    "A loss takes a time of order T³, the network's forward passes one of the sum over t of "
    "(N_init + t - 1)²; these two are most of a training.",
)
