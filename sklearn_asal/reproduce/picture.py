"""The picture of an experiment: our figures, and the paper's beside them."""

import math

import numpy as np

from ..displays.style import BLUE, CYCLE, ORANGE

_WIDTH, _ROW, _HEAD = 3.6, 0.22, 0.75
_LINES = 3.2
# Panels beside each other where a table has one quantity; half the distance of ours and theirs.
_BESIDE, _OFF = 2, 0.12
_BOUNDS = {"<": "paper, at most", ">": "paper, at least"}
_STYLES = {
    "ours": {"color": BLUE, "fmt": "o"},
    "paper": {"color": ORANGE, "fmt": "s"},
    "paper, at most": {"color": ORANGE, "fmt": "<"},
    "paper, at least": {"color": ORANGE, "fmt": ">"},
}


def draw(tables):
    """Draw tables, one below the other.

    Parameters
    ----------
    tables : list of Table
        Those without rows are left out.

    Returns
    -------
    matplotlib.figure.Figure or None
        None where no table has a row.
    """
    from matplotlib.figure import Figure

    tables = [table for table in tables if table.rows]
    if not tables:
        return None
    grids = [_Lines(table) if table.along else _Dots(table) for table in tables]
    width = max(grid.columns for grid in grids) * _WIDTH
    heights = [grid.height for grid in grids]
    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    parts = figure.subfigures(len(grids), 1, height_ratios=heights, squeeze=False)[:, 0]
    for part, grid in zip(parts, grids, strict=True):
        part.suptitle(grid.table.title, fontsize="medium")
        grid.draw(part)
    return figure


class _Dots:
    """A panel for each quantity and group of rows; a line of the panel for each row."""

    def __init__(self, table):
        self.table = table
        groups = {}
        for row in table.rows:
            groups.setdefault(row[0][:-1], []).append(row)
        drawn = [(i, n) for i, n in enumerate(table.columns) if n in (table.drawn or table.columns)]
        panels = [
            [(" ".join((*group, name)), rows, i) for i, name in drawn]
            for group, rows in groups.items()
        ]
        if len(drawn) == 1:  # then there is room for groups side by side
            flat = [line[0] for line in panels]
            panels = [flat[i : i + _BESIDE] for i in range(0, len(flat), _BESIDE)]
        self.panels = panels
        self.columns = max(map(len, panels))
        self.heights = [_HEAD + _ROW * max(len(rows) for _, rows, _ in line) for line in panels]
        self.height = _HEAD + sum(self.heights)

    def draw(self, part):
        shape = len(self.panels), self.columns
        axes = part.subplots(*shape, squeeze=False, height_ratios=self.heights)
        shown = {}
        for line, panels in zip(axes, self.panels, strict=True):
            before = None
            for ax, (name, rows, column) in zip(line, panels, strict=False):
                names = [row[0][-1] for row in rows]
                ax.set_yticks(range(len(rows)), [""] * len(rows) if names == before else names)
                before = names
                self._panel(ax, rows, column)
                ax.set_xlabel(name, fontsize="small")
                for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
                    shown.setdefault(label, handle)
            for ax in line[len(panels) :]:
                ax.set_axis_off()
        place = {"loc": "outside lower center", "ncols": len(shown), "fontsize": "small"}
        part.legend(list(shown.values()), list(shown), frameon=False, **place)

    def _panel(self, ax, rows, column):
        points = {}
        for place, (_, ours, paper) in enumerate(rows):
            for offset, one, whose in ((-_OFF, ours[column], "ours"), (_OFF, paper[column], None)):
                if one is not None and math.isfinite(one.mean):
                    whose = whose or _BOUNDS.get((one.text or "")[:1], "paper")
                    points.setdefault(whose, []).append((place + offset, one.mean, one.error))
        for whose, values in points.items():
            y, x, error = np.array(values).T
            style = {**_STYLES[whose], "markersize": 4, "linewidth": 1, "label": whose}
            ax.errorbar(x, y, xerr=np.nan_to_num(error), **style)
        ax.set(xscale=self.table.scale, ylim=(len(rows) - 0.5, -0.5))
        if self.table.scale == "log":
            _few_ticks(ax.xaxis)
        ax.tick_params(labelsize="small")


class _Lines:
    """A line for each row, along its first columns."""

    columns, height = 2, _LINES

    def __init__(self, table):
        self.table = table
        self.height = max(_LINES, 0.16 * len(table.rows))

    def draw(self, part):
        ax = part.subplots()
        n = len(self.table.along)
        for i, (keys, ours, _) in enumerate(self.table.rows):
            style = {"color": CYCLE[i % len(CYCLE)], "marker": "osD^"[i // len(CYCLE) % 4]}
            ax.plot(
                self.table.along, [one.mean for one in ours[:n]], label=keys[0], ms=4, lw=1, **style
            )
        ax.set(xscale="log", yscale=self.table.scale, xlabel=self.table.across)
        _few_ticks(ax.yaxis)
        ax.set_xticks(self.table.along, [f"{x:g}" for x in self.table.along])
        ax.set_xticks([], minor=True)
        ax.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1.0, 0.5))


def _few_ticks(axis):
    """Ticks of a logarithmic axis that do not overlap."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0,) if high > 100 * low else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
