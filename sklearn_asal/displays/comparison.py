"""ComparisonDisplay: methods beside each other, over their queries."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .style import CYCLE, GREY, axes_or_new, panels

#: What panels show, by the name of a column of the results.
PANELS = {
    "rmse": "RMSE",
    "safe_share": "share of safe queries",
    "seconds": "ms a query (median, 5 % to 95 %)",
}
# No two methods of one suite share these; more and more gaps.
_DASHES = [(), (10, 2), (6, 2), (6, 2, 1.5, 2), (3, 3), (2, 4), (1, 2), (1, 5), (1, 9)]
_MARKERS = "os^DvP<X>*phd8H"
# Inches that a column of the legend takes.
_LEGEND = 2.1


class ComparisonDisplay:
    """Error, share of safe queries, and time, of several methods on one task.

    Make one by :meth:`from_benchmark`, which draws it as well. Curves are means over seeds, with
    the standard error as a band.

    Parameters
    ----------
    task : str
        What was measured.
    curves : sequence of Curve
        One of each method, see :func:`sklearn_asal.benchmarks.summary.curves`.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
    ax_ : matplotlib.axes.Axes
        An empty one that the panels are in.
    axes_ : ndarray of matplotlib.axes.Axes

    Examples
    --------
    >>> from sklearn_asal import GPQuerier, RandomQuerier
    >>> from sklearn_asal.benchmarks import run
    >>> from sklearn_asal.displays import ComparisonDisplay
    >>> queriers = {"GP": GPQuerier(n_candidates=100), "random": RandomQuerier()}
    >>> campaigns = {name: [run(q, "sinus", 0, 3)] for name, q in queriers.items()}
    >>> display = ComparisonDisplay.from_benchmark(campaigns)
    >>> [ax.get_ylabel() for ax in display.axes_][0]
    'RMSE'
    """

    figure_: Any
    ax_: Any
    axes_: Any

    def __init__(self, *, task: str, curves: Sequence[Any]) -> None:
        self.task = task
        self.curves = curves

    @classmethod
    def from_benchmark(
        cls,
        results: Any,
        task: str | None = None,
        *,
        methods: Sequence[str] | None = None,
        ax: Any = None,
        **plot_params: Any,
    ) -> "ComparisonDisplay":
        """Draw what the benchmark's runner found.

        Parameters
        ----------
        results : Results, path-like, or dict of str to list of list of Record
            What :func:`~sklearn_asal.benchmarks.run_cells` returned, or its folder; or for each
            method the campaigns that :func:`~sklearn_asal.benchmarks.run` returned.
        task : str, default=None
            May be left out where there is one only.
        methods : sequence of str, default=None
            Those that are shown; all by default.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; a new figure by default.
        **plot_params
            Of :meth:`plot`.

        Returns
        -------
        ComparisonDisplay

        Raises
        ------
        ValueError
            No results, no such task or method, or several tasks and none is named.
        """
        from ..benchmarks.results import Results
        from ..benchmarks.summary import curves

        own = isinstance(results, Mapping)
        if own:
            campaigns, task = dict(results), task or ""
        else:
            results = results if isinstance(results, Results) else Results(results)
            if not results.records:
                file = results.folder / "results.csv"
                what = "no finished cell in" if file.exists() else "no file"
                raise ValueError(
                    f"results: there is {what} {file}; pass the folder that bench run wrote to "
                    "(--out)."
                )
            known = sorted({name for name, _, _ in results.records})
            if task is None and len(known) == 1:
                task = known[0]
            if task not in known:
                raise ValueError(
                    f"task must be one of {', '.join(map(repr, known)) or 'none'}, for which there "
                    f"are results; got {task!r}."
                )
            campaigns = results.campaigns(task)
        unknown = [name for name in methods or () if name not in campaigns]
        if unknown or not campaigns:
            raise ValueError(
                f"methods must be of {', '.join(map(repr, campaigns)) or 'none'}, for which there "
                f"are results; got {methods!r}."
            )
        wanted = campaigns if methods is None else {name: campaigns[name] for name in methods}
        return cls(task=str(task), curves=curves(wanted, named=not own)).plot(ax, **plot_params)

    def plot(
        self, ax: Any = None, *, columns: Sequence[str] | None = None, legend: bool = True
    ) -> "ComparisonDisplay":
        """Draw it, again or elsewhere.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; a new figure by default.
        columns : sequence of {"rmse", "safe_share", "seconds"}, default=None
            The panels, in this order; all by default, without the share of safe queries where
            there is no safety signal.
        legend : bool, default=True

        Returns
        -------
        self

        Raises
        ------
        ValueError
            An unknown panel.
        """
        if columns is None:
            columns = [name for name in PANELS if name != "safe_share" or self._is_safe()]
        for name in columns:
            if name not in PANELS:
                raise ValueError(f"columns must be of {', '.join(PANELS)}, got {name!r}.")
        self.ax_ = axes_or_new(ax, (4.2 * len(columns), 3.6))
        self.figure_ = self.ax_.figure
        is_alone = len(self.figure_.axes) == 1
        self.axes_ = panels(self.ax_, 1, len(columns))[0][0]
        styles = _styles(self.curves)
        for panel, name in zip(self.axes_, columns, strict=True):
            if name == "seconds":
                _times(panel, self.curves, styles)
                continue
            for curve, style in zip(self.curves, styles, strict=True):
                _curve(panel, curve, name, style)
            panel.set(xlabel="queries", ylabel=PANELS[name], title=self.task)
            if name == "safe_share":
                panel.axhline(0.95, color=GREY, lw=1, ls=":")
        if legend and columns:
            handles, labels = self.axes_[0].get_legend_handles_labels()
            if is_alone and self.figure_.get_constrained_layout():
                width = self.figure_.get_size_inches()[0]
                place, where = self.figure_, "outside lower center"
                n_columns = max(2, int(width / _LEGEND))
            else:
                place, where, n_columns = self.axes_[0], "best", 1
            place.legend(handles, labels, handlelength=3.5, loc=where, ncols=n_columns)
        return self

    def _is_safe(self):
        return any(len(curve.safe_share) for curve in self.curves)


def _styles(curves):
    """Colour, dashes and marker of each method; of equal curves all show."""
    from ..benchmarks.methods import METHODS, SUITES

    ranks = {name: rank for suite in SUITES.values() for rank, name in enumerate(suite)}
    places = list(METHODS)
    # A method has the same style in every figure. Others, and those of no suite, come after the
    # longest suite, or first where there are none but these.
    others = [curve for curve in curves if curve.method not in ranks]
    first = 0 if len(others) == len(curves) else max(ranks.values()) + 1
    last = len(places) if first else 0
    return [
        _style(first + others.index(curve), last + others.index(curve))
        if curve.method not in ranks
        else _style(ranks[curve.method], places.index(curve.method))
        for curve in curves
    ]


def _style(rank, place):
    color, dashes = CYCLE[rank % len(CYCLE)], rank
    if rank >= len(_DASHES):  # colours come again, with other dashes
        dashes = 1 + (rank + 3) % (len(_DASHES) - 1)
    return {
        "color": color,
        "ls": (0, _DASHES[dashes]),
        "lw": 1.5 if dashes else 3.0,  # the lowest one has no gaps, but edges
        "marker": _MARKERS[place % len(_MARKERS)],
        # What leaves more gaps goes on top of what leaves fewer.
        "zorder": 2 + dashes / len(_DASHES),
    }


def _curve(ax, curve, name, style):
    queries, mean, error = getattr(curve, name).T
    # About ten markers a curve, hollow and at queries of its own where there are enough of them.
    step = max(1, len(queries) // 10)
    every = _MARKERS.index(style["marker"]) % step, step
    ax.plot(queries, mean, label=curve.label, ms=5, mfc="none", markevery=every, **style)
    ax.fill_between(queries, mean - error, mean + error, color=style["color"], alpha=0.2, lw=0)


def _times(ax, curves, styles):
    for i, (curve, style) in enumerate(zip(curves, styles, strict=True)):
        low, middle, high = np.quantile(curve.milliseconds, [0.05, 0.5, 0.95])
        style = {key: style[key] for key in ("color", "marker")}
        ax.plot([low, high], [i, i], color=style["color"], lw=3, alpha=0.4)
        ax.plot(middle, i, ls="", **style)
    _log_scale(ax)
    ax.set(xlabel=PANELS["seconds"], ylim=(len(curves) - 0.5, -0.5))
    ax.set_yticks(range(len(curves)), [curve.label for curve in curves])


def _log_scale(ax):
    """Logarithmic x, from power of ten to power of ten, with as many labels as there is room."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_xscale("log")
    low, high = ax.get_xlim()
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    ax.set_xlim(10.0**first, 10.0**last)
    ax.xaxis.set_minor_formatter(NullFormatter())
    if last - first <= 2:
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
