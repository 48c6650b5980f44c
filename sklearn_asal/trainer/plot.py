"""A figure of a training run."""

import csv
from pathlib import Path

import numpy as np

# The mean objective of the last 500 of the authors' 10,000 steps, from their published curves.
AUTHORS = {
    "1d": 0.684,
    "2d": 1.358,
    "5d": 0.422,
    "safe-2d": 2.139,
    "safe-3d": 2.311,
    "safe-7d-fluid": -0.070,
}
# What they maximised; its expectation is the same in the mean.
THEIRS = "I", "I_", "S_H"
# Steps of which one point of a curve is the mean.
SMOOTHING = 25


def read_log(folder):
    """A run's log.

    Parameters
    ----------
    folder : path-like

    Returns
    -------
    dict of ndarray of shape (n_steps,)
        A column each; nan where a cell is empty. The column "event" is left out.

    Raises
    ------
    ValueError
        There is no log, or nothing in it.
    """
    path = Path(folder) / "log.csv"
    if not path.exists():
        raise ValueError(f"{folder} is not the folder of a run: it has no log.csv.")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if not rows:
        raise ValueError(f"{path} has no steps yet; wait for the first.")
    names = [name for name in rows[0] if name != "event"]
    return {name: np.array([float(row[name] or "nan") for row in rows]) for name in names}


def smooth(values, width=SMOOTHING):
    """Running mean.

    Parameters
    ----------
    values : ndarray of shape (n,)
    width : int
        Number of values of which each is the mean, fewer at the beginning.

    Returns
    -------
    ndarray of shape (n,)
    """
    total = np.concatenate([[0.0], np.cumsum(values)])
    end = np.arange(1, len(values) + 1)
    start = np.maximum(end - width, 0)
    return (total[end] - total[start]) / (end - start)


def plot_run(folder, out=None):
    """Draw objective, unsafe share and GP test RMSE against steps and minutes.

    Parameters
    ----------
    folder : path-like
        Of the run.
    out : path-like, optional
        File to write; by default ``curves.png`` in the folder.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    ValueError
        There is no log, or nothing in it.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    log = read_log(folder)
    authors = _authors(folder)
    panels = [("objective", "validation_objective", "objective")]
    if np.isfinite(log["unsafe_share"]).any():
        panels.append(("unsafe_share", "validation_unsafe_share", "share of unsafe queries"))
    if np.isfinite(log.get("validation_gp_test_rmse", np.nan)).any():
        panels.append((None, "validation_gp_test_rmse", "GP test RMSE (validation)"))
    figure = Figure(figsize=(10, 2.6 * len(panels)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(panels), 2, sharex="col", sharey="row", squeeze=False)
    for row, (trained, validated, label) in zip(axes, panels, strict=True):
        for axis, x in zip(row, (log["step"], log["seconds"] / 60), strict=True):
            if trained:
                axis.plot(x, smooth(log[trained]), lw=1, label=f"training, mean of {SMOOTHING}")
            done = np.isfinite(log[validated])
            axis.plot(x[done], log[validated][done], "o-", ms=3, lw=1, label="validation")
            if trained == "objective" and authors is not None:
                axis.axhline(authors, color="0.4", ls="--", lw=1, label="authors, 10,000 steps")
        row[0].set_ylabel(label)
    axes[0, 0].legend()
    axes[-1, 0].set_xlabel("step")
    axes[-1, 1].set_xlabel("minutes")
    out = Path(folder) / "curves.png" if out is None else Path(out)
    figure.savefig(out, dpi=120)
    return out


def _authors(folder):
    """Their final objective, where the run's can be compared with it."""
    from ..policies.checkpoint import read_header

    path = Path(folder) / "policy.safetensors"
    header = read_header(path) if path.exists() else {}
    objective = header.get("preset", {}).get("objective", "")
    return AUTHORS.get(header.get("name")) if objective.removesuffix("mean") in THEIRS else None
