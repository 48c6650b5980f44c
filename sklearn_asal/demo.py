"""The demo: a safe campaign beside careful random points, a table and a picture."""

import contextlib

import numpy as np

from .benchmarks import get_task, run
from .datasets import townsend
from .datasets.function import CENTRE
from .displays.style import GREEN
from .queriers import AmortizedSafeQuerier
from .queriers.base import BaseQuerier

_COLUMNS = "{:<10} {:<30} {:>12} {:>8} {:>10}"


class _CentreQuerier(BaseQuerier):
    """What one does without a policy: random points from where it is known to be safe."""

    def _select(self, history, candidates, budget, rng):
        point = rng.uniform(*CENTRE, size=history.X.shape[1])
        return point if candidates is None else candidates.nearest(point)[0]


def demo(n_queries=30, seed=0, out="demo.png", data_home=None):
    """Run the demo: print a table, write a figure.

    Parameters
    ----------
    n_queries : int, default=30
        Queries of each campaign, after five safe initial points.
    seed : int, default=0
    out : path-like, default="demo.png"
        Figure to write.
    data_home : path-like, optional
        Folder of ``lgbb_original.txt``; where it is missing only Townsend's function is run.

    Raises
    ------
    OSError
        The figure cannot be written.
    """
    tasks = [get_task("townsend")]
    with contextlib.suppress(FileNotFoundError):
        tasks.append(get_task("safe-lgbb", data_home))
    quick = AmortizedSafeQuerier.from_pretrained("2d")
    methods = {
        "AmortizedSafeQuerier()": AmortizedSafeQuerier(),
        'AmortizedSafeQuerier("2d")': quick,
        "random points near the centre": _CentreQuerier(),
    }
    shown = next(iter(methods))
    for querier in methods.values():
        querier.query([[0.5, 0.5]], [0.0], [1.0])  # the first call is not to be timed
    print(_COLUMNS.format("task", "queries chosen by", "safe share", "RMSE", "ms/query"))
    campaigns = []
    for task in tasks:
        for label, querier in methods.items():
            records, querier = run(
                querier, task, seed, n_queries, every=n_queries, return_querier=True
            )
            last = records[-1]
            figures = (
                f"{last.safe_share:.2f}",
                f"{last.rmse:.3f}",
                f"{1000 * np.median([record.seconds for record in records]):.2f}",
            )
            print(_COLUMNS.format(task.name, label, *figures))
            if label == shown:
                campaigns.append((task, querier))
    print(
        f"\n{n_queries} queries after {tasks[0].n_init} safe initial points. safe share: queries "
        "measured with z >= 0. RMSE: on 200 safe test\npoints, of a Gaussian process fitted to the "
        "data collected; noise of 0.1 (Townsend) included."
    )
    _draw(campaigns, shown, out)
    print(f"Figure: {out}")
    if len(tasks) == 1:
        print("Not run, for lgbb_original.txt is missing: safe-lgbb. Its folder is --data-home.")
    print("Measurements of your own, as CSV or Excel: python -m sklearn_asal next --help")


def _draw(campaigns, shown, out):
    from matplotlib.figure import Figure

    from .displays import CampaignDisplay

    figure = Figure(figsize=(6.4 * len(campaigns), 5.6), layout="constrained")
    for axes, (task, querier) in zip(
        np.atleast_1d(figure.subplots(1, len(campaigns))), campaigns, strict=True
    ):
        CampaignDisplay.from_querier(querier, x_next=None, ax=axes)
        _draw_limit(axes, task)
        axes.set_title(f"{shown} on {task.name}")
    figure.suptitle("Green: the true limit, which no querier knows")
    figure.savefig(out, dpi=120)


def _draw_limit(axes, task):
    if task.name == "townsend":
        low, high = task.bounds.T
        grid = np.stack(np.meshgrid(*np.linspace(low, high, 200).T), axis=-1)
        z = townsend().safety(grid.reshape(-1, 2)).reshape(grid.shape[:2])
        axes.contour(*np.moveaxis(grid, -1, 0), z, levels=[0], colors=[GREEN], linewidths=2.5)
    else:
        X, z = task.source.X, task.source.z
        axes.tricontour(*X.T, z, levels=[0], colors=[GREEN], linewidths=2.5)
