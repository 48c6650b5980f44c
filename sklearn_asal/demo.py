"""The demo: a safe campaign beside careful random points, a table and a picture."""

import numpy as np

from .benchmarks import get_task, run
from .datasets import townsend
from .datasets.function import CENTRE
from .queriers import AmortizedSafeQuerier
from .queriers.base import BaseQuerier

_COLUMNS = "{:<10} {:<30} {:>12} {:>8} {:>10}"
_SAFE, _LIMIT, _UNSAFE = "#d8ecd8", "#2a7f2a", "#c0392b"


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
    try:
        tasks.append(get_task("safe-lgbb", data_home))
    except FileNotFoundError as error:
        print(f"Without the wind tunnel data: {error}\n")
    policy = AmortizedSafeQuerier.from_pretrained("2d")
    policy.query([[0.5, 0.5]], [0.0], [1.0])  # the first call is not to be timed
    print(_COLUMNS.format("task", "queries chosen by", "safe share", "RMSE", "ms/query"))
    campaigns = []
    for task in tasks:
        methods = {"policy 2d": policy, "random points near the centre": _CentreQuerier()}
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
            if label.startswith("policy"):
                campaigns.append((task, querier))
    print(
        f"\n{n_queries} queries after {tasks[0].n_init} safe initial points. safe share: queries "
        "measured with z >= 0. RMSE: on 200 safe test\npoints, of a Gaussian process fitted to the "
        "data collected; noise of 0.1 (Townsend) included."
    )
    _draw(campaigns, out)
    print(f"Figure: {out}")
    print("Measurements of your own, as CSV or Excel: python -m sklearn_asal next --help")


def _draw(campaigns, out):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6 * len(campaigns), 5), layout="constrained")
    for axes, (task, querier) in zip(
        np.atleast_1d(figure.subplots(1, len(campaigns))), campaigns, strict=True
    ):
        _draw_limit(axes, task)
        n = task.n_init
        axes.plot(*querier.X_[:n].T, "ks", ms=5, label="initial points")
        for i, (point, z) in enumerate(zip(querier.X_[n:], querier.z_[n:], strict=True), 1):
            colour = "black" if z >= 0 else _UNSAFE
            axes.text(*point, str(i), ha="center", va="center", size=8, color=colour)
        (x_low, x_high), (y_low, y_high) = task.bounds
        axes.set(
            title=task.name,
            xlabel="$x_1$",
            ylabel="$x_2$",
            xlim=(x_low, x_high),
            ylim=(y_low, y_high),
        )
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, frameon=False)
    figure.suptitle("Green: safe region and its limit. Numbers: queries in order, red if unsafe.")
    figure.savefig(out, dpi=120)


def _draw_limit(axes, task):
    """The safe region, which the querier does not know."""
    if task.name == "townsend":
        safety = townsend().safety
        low, high = task.bounds.T
        x1, x2 = np.meshgrid(*np.linspace(low, high, 200).T)
        z = safety(np.stack([x1, x2], -1).reshape(-1, 2)).reshape(x1.shape)
        axes.contourf(x1, x2, z, levels=[0, np.inf], colors=[_SAFE])
        axes.contour(x1, x2, z, levels=[0], colors=[_LIMIT])
    else:
        X, z = task.source.X, task.source.z
        axes.tricontourf(*X.T, z, levels=[0, z.max()], colors=[_SAFE])
        axes.tricontour(*X.T, z, levels=[0], colors=[_LIMIT])
        axes.plot(*X.T, ".", ms=2, color="gray", label="candidates")
