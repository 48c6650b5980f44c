"""The maps of a CampaignDisplay: two features, or all pairs of several."""

import itertools
from typing import Any

import numpy as np

from .style import (
    BLACK,
    CALLED,
    GREY,
    MARKS,
    VERMILLION,
    feature_axis,
    labelled,
    legend_below,
    mark_outside,
    panels,
    percent,
    shown,
    within,
)

_COLOURS = "cividis"
_LEVELS = 12
# From these numbers on, so many intervals of ticks have room below each of several panels.
_LARGE, _TICKS = 1e4, 3
# Measurements far from a slice are faint; from this distance on they are the faintest.
_FAR, _FAINT = 0.5, 0.15
# Of networks that compute in single precision, in standard deviations.
_ROUNDING = 1e-6


def draw_map(
    display: Any, ax: Any, response: str, level: float, numbers: bool | None, legend: bool
) -> Any:
    """Draw two features into one axes; returns ``[ax]``."""
    section = display.sections[0] if display.sections else None
    levels = None if section is None else _levels([section], response)
    drawn = None if section is None else _field(ax, display, section, response, level, levels)
    _bar(drawn, levels, ax, _label(display.data, response))
    _axes(ax, display.data, display.features)
    _points(ax, display, display.features, numbers is not False)
    if legend:
        legend_below(ax)
    return np.array([ax])


def draw_slices(
    display: Any, ax: Any, response: str, level: float, numbers: bool | None, legend: bool
) -> Any:
    """Draw all pairs of features below the diagonal; returns the panels, ``(n_pairs,)``."""
    from matplotlib.ticker import MaxNLocator

    chosen, data = display.features, display.data
    n = len(chosen)
    grid, below = panels(ax, n - 1, n - 1)
    pairs, axes = list(itertools.combinations(range(n), 2)), []
    by_pair = dict(zip(pairs, display.sections, strict=True)) if display.sections else {}
    levels = _levels(list(by_pair.values()), response) if by_pair else None
    drawn = None
    for row, column in itertools.product(range(n - 1), range(n - 1)):
        panel, pair = grid[row, column], (column, row + 1)
        if column > row:
            panel.set_axis_off()
            continue
        axes.append(panel)
        if pair in by_pair:
            drawn = _field(panel, display, by_pair[pair], response, level, levels)
        features = chosen[pair[0]], chosen[pair[1]]
        _axes(panel, data, features)
        locator = panel.xaxis.get_major_locator()
        if isinstance(locator, MaxNLocator) and np.abs(panel.get_xlim()).max() >= _LARGE:
            locator.set_params(nbins=_TICKS)
        _points(panel, display, features, bool(numbers), by_pair.get(pair))
        if row < n - 2:
            panel.set(xlabel="")
            panel.tick_params(labelbottom=False)
        if column > 0:
            panel.set(ylabel="")
            panel.tick_params(labelleft=False)
    _bar(drawn, levels, list(grid.ravel()), _label(data, response), shrink=0.8)
    if legend:
        _legend_in(grid[0, -1], axes) if n > 2 else legend_below(below, axes)
    return np.array(axes)


def _legend_in(corner, axes):
    """All labels of some panels, in an empty one."""
    known = labelled(axes)
    drawn = corner.legend(
        list(known.values()), list(known), loc="upper right", frameon=False, fontsize="small"
    )
    for handle in drawn.legend_handles:
        if hasattr(handle, "get_sizes"):
            handle.set_alpha(1.0)  # the first point may be a faint one


def _bar(drawn, levels, ax, label, **options):
    """A bar of colours, where there is more than one colour."""
    if drawn is not None and len(levels) > 2:
        drawn.axes.figure.colorbar(drawn, ax=ax, label=label, **options)


def _label(data, response):
    return {
        "mean": f"expected {data.label(data.y_name)}",
        "std": f"standard deviation of {data.label(data.y_name)}",
        "p_safe": "probability to be safe",
    }[response]


def _of(section, response):
    return section.cells(getattr(section, response))


def _levels(sections, response):
    """Levels that are the same in all maps; two where values differ by rounding alone."""
    if response == "p_safe":
        return np.linspace(0.0, 1.0, 11)
    from matplotlib.ticker import MaxNLocator

    values = [_of(section, response) for section in sections]
    low = min((one.min() for one in values if one.count()), default=0.0)
    high = max((one.max() for one in values if one.count()), default=1.0)
    scale = max(section.std.max() for section in sections)
    if high - low <= _ROUNDING * scale + np.finfo(float).eps * 100 * abs(high):
        return np.array([low - 0.5, high + 0.5])
    return MaxNLocator(_LEVELS).tick_values(low, high)


def _field(ax, display, section, response, level, levels):
    """The response as colours, and where it is safe; None where the constraints leave nothing."""
    values = _of(section, response)
    if not values.count():
        return None
    drawn = ax.contourf(*section.coordinates(), values, levels=levels, cmap=_COLOURS)
    if len(levels) == 2:
        label = f"{_label(display.data, response)}: {values.mean():.6g} everywhere"
        ax.fill_between([], [], [], color=drawn.get_facecolor()[0], label=label)
    if section.p_safe is None:
        return drawn
    p_safe = section.cells(section.p_safe)
    low, high = p_safe.min(), p_safe.max()
    if low < level:
        ax.contourf(
            *section.coordinates(), p_safe, levels=[-1, level], colors=["white"], alpha=0.35
        )
    if low < 1 - level:
        ax.contourf(
            *section.coordinates(), p_safe, levels=[-1, 1 - level], colors="none", hatches=["////"]
        )
        ax.fill_between([], [], [], facecolor="none", hatch="////", label=_unsafe(level))
    if low < level <= high:
        ax.contour(*section.coordinates(), p_safe, levels=[level], colors=[BLACK], linewidths=1.8)
        ax.plot([], [], color=BLACK, lw=1.8, label=f"safe with {percent(level)}")
    _limits(ax, display.data, section)
    return drawn


def _unsafe(level):
    return f"safe with less than {percent(1 - level)}"


def _limits(ax, data, section):
    """Where each safety measurement is expected to be at its limit."""
    styles = itertools.cycle(["--", ":", "-."])
    for j, (threshold, style) in enumerate(zip(data.thresholds, styles, strict=False)):
        z = section.cells(section.z_mean[..., j])
        if z.min() < threshold < z.max():
            ax.contour(
                *section.coordinates(),
                z,
                levels=[threshold],
                colors=[VERMILLION],
                linestyles=[style],
                linewidths=1.5,
            )
            ax.plot(
                [], [], color=VERMILLION, ls=style, label=shown(f"{data.z_names[j]} at its limit")
            )


def _points(ax, display, features, numbers, section=None):
    from matplotlib.colors import to_rgba_array

    data, columns = display.data, list(features)
    if display.candidates is not None:
        ax.plot(
            *display.candidates[:, columns].T,
            ".",
            ms=2,
            color=GREY,
            label="candidates",
            zorder=1.5,
        )
    # One point far outside must not squeeze all others.
    at, outside = within(ax, data.X[:, columns])
    alpha = np.ones(len(at))
    if section is not None:
        alpha = (1 - section.distances / _FAR).clip(_FAINT, 1.0)
    for name, mask in data.groups():
        mark = dict(MARKS[name])
        if numbers and name in ("query", "unsafe"):
            mark["s"] = 130
        if mark["marker"] != "x":
            mark |= {"edgecolor": "white", "linewidth": 0.6}
        mark["color"] = to_rgba_array([mark["color"]] * mask.sum(), alpha[mask])
        label = "queries, by number" if numbers and name == "query" else CALLED[name]
        ax.scatter(*at[mask].T, label=label, zorder=3, **mark)
        if numbers and name in ("query", "unsafe"):
            for i in np.flatnonzero(mask):
                if i >= data.n_init:
                    ax.text(
                        *at[i],
                        str(i),
                        ha="center",
                        va="center",
                        color="white",
                        size=7,
                        zorder=4,
                    )
    mark_outside(ax, at[outside])
    for name, points in (("pending", display.pending), ("next", display.x_next)):
        if len(points):
            ax.scatter(*points[:, columns].T, label=CALLED[name], zorder=5, **MARKS[name])


def _axes(ax, data, features):
    for axis, j in zip((ax.xaxis, ax.yaxis), features, strict=True):
        feature_axis(axis, data.kinds[j], data.box.lower[j], data.box.upper[j])
    ax.set_xlabel(data.label(data.feature_names[features[0]]))
    ax.set_ylabel(data.label(data.feature_names[features[1]]))
