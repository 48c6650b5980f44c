"""What the flags state, checked against each other and the table."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..space import Grid, Integer
from .flags import bounds_of, constraint_of, settings_of
from .numbers import written

# Fewer outputs, and the scale of the output is unknown.
_FEW = 3


@dataclass
class Stated:
    """What the flags state, besides columns.

    Attributes
    ----------
    limits : list of Limit
    bounds : dict of str to (tuple of float, Integer, Log or Grid)
        In the order of the inputs.
    fixed, max_step : dict of str to float
    constraints : list of LinearConstraint
    gamma : float or None
    policy : str
    """

    limits: list
    bounds: dict[str, Any]
    fixed: dict[str, float]
    max_step: dict[str, float]
    constraints: list
    gamma: float | None
    policy: str


def check_columns(arguments, inputs, output, limits, status):
    """Raise where flags contradict each other.

    Parameters
    ----------
    arguments : argparse.Namespace
    inputs : sequence of str
    output : str
    limits : list of Limit
    status : str or None

    Raises
    ------
    ValueError
    """
    for name in inputs:
        if inputs.count(name) > 1:
            raise ValueError(f"--inputs names {name} twice.")
        if name in (output, status):
            raise ValueError(f"{name} is one of --inputs, and cannot be something else as well.")
    for limit in limits:
        if limit.column in inputs:
            raise ValueError(
                f"--limit {str(limit)!r}: {limit.column} is an input. Where it may lie is stated "
                "by --bounds."
            )
    if status is not None and status in (output, *(limit.column for limit in limits)):
        raise ValueError(f"--status {status}: that column is measured, and is no status.")
    if arguments.gamma is not None:
        if not limits:
            raise ValueError("--gamma is about limits; state one by --limit, or leave it out.")
        if not 0 < arguments.gamma <= 1:
            raise ValueError(f"--gamma must be above 0 and at most 1, got {arguments.gamma:g}.")
    if arguments.out is None:
        return
    if Path(arguments.out).suffix.lower() in (".xlsx", ".xlsm", ".xls"):
        raise ValueError(f"--out {arguments.out}: it is written as CSV; name it .csv.")
    for other in (arguments.file, arguments.pool):
        if other is not None and Path(arguments.out).resolve() == Path(other).resolve():
            raise ValueError(f"--out {arguments.out} would overwrite that file; take another name.")


def stated_by(arguments, inputs, limits, seen, pool):
    """What the flags state.

    Parameters
    ----------
    arguments : argparse.Namespace
    inputs : sequence of str
        In the order of the table.
    limits : list of Limit
    seen : Observed
    pool : ndarray of shape (n, n_features) or None
        Its range stands for bounds that are not stated.

    Returns
    -------
    Stated

    Raises
    ------
    ValueError
        Something is not understood, or bounds are missing.
    """
    known = bounds_of(arguments.bounds, inputs)
    spanned = np.vstack([seen.X, seen.pending]) if pool is None else pool
    reach = {
        name: (float(values.min()), float(values.max()))
        for name, values in zip(inputs, spanned.T, strict=True)
    }
    missing = [name for name in inputs if name not in known]
    if pool is not None:
        missing = [name for name in missing if reach[name][0] == reach[name][1]]
    if missing:
        raise ValueError(_without_bounds(missing, reach))
    bounds = {name: known.get(name, reach[name]) for name in inputs}
    fixed = settings_of(arguments.fixed, inputs, "--fixed")
    _check_fixed(fixed, bounds)
    return Stated(
        limits,
        bounds,
        fixed,
        settings_of(arguments.max_step, inputs, "--max-step"),
        [constraint_of(text, inputs) for text in arguments.constraint],
        arguments.gamma,
        arguments.policy,
    )


def remark(stated, seen, note):
    """Remark on what may be meant otherwise.

    Parameters
    ----------
    stated : Stated
    seen : Observed
    note : callable
    """
    for name, one in stated.bounds.items():
        if isinstance(one, Grid) and len(one.levels) == 2:
            low, high = map(written, one.levels)
            note(
                f"{name} is {low} or {high}, and nothing in between. If it may be, write "
                f"--bounds {name}={low}:{high}."
            )
    n = int(np.isfinite(seen.y).sum())
    if n < _FEW:
        note(f"expected values are little more than guesses: {n} output{'s' * (n > 1)} measured.")


def _without_bounds(missing, reach):
    """What to say where inputs have no bounds."""
    ends = {name: tuple(map(written, reach[name])) for name in missing}
    found = ", ".join(f"{name} reaches from {low} to {high}" for name, (low, high) in ends.items())
    flags = (f"{name}={low}:{high}" for name, (low, high) in ends.items())
    flags = (f'"{flag}"' if " " in flag else flag for flag in flags)
    return (
        f"--bounds of {' and '.join(missing)} are missing: between which values may proposals "
        f"lie? In the table {found}. With limits of your own, write --bounds {' '.join(flags)}"
    )


def _check_fixed(fixed, bounds):
    """Raise where an input is fixed at a value that its bounds exclude."""
    for name, value in fixed.items():
        one = bounds[name]
        low, high = one if isinstance(one, tuple) else (one.low, one.high)
        if isinstance(one, Grid):
            inside = value in one.levels
        else:
            inside = low <= value <= high and (not isinstance(one, Integer) or value.is_integer())
        if not inside:
            raise ValueError(
                f"--fixed {name}={written(value)} is not within --bounds of {name}, {one}."
            )
