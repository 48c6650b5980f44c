"""Parallel coordinates of a CampaignDisplay: a line for each run."""

import textwrap
from typing import Any

import numpy as np

from .style import (
    BLACK,
    BLUE,
    CALLED,
    GREY,
    PURPLE,
    SKY_BLUE,
    VERMILLION,
    legend_below,
    mark_outside,
    settings_of,
    shown,
    with_unit,
)

# Heights that are drawn, as shares of the bounds.
_INSIDE = -0.02, 1.02
# Letters that fit between two axes.
_LETTERS = 14
_LINES = {
    "initial": {"color": BLACK, "lw": 1.2, "ls": "--", "alpha": 0.8},
    "query": {"color": BLUE, "lw": 1.2, "alpha": 0.7},
    "unsafe": {"color": VERMILLION, "lw": 1.6},
    "aborted": {"color": VERMILLION, "lw": 1.6, "ls": ":"},
    "failed": {"color": GREY, "lw": 1.0, "ls": ":"},
    "pending": {"color": PURPLE, "lw": 1.6, "ls": ":"},
    "next": {"color": PURPLE, "lw": 3.0},
}


def draw(display: Any, ax: Any, legend: bool) -> Any:
    """Draw features, output and safety measurements side by side; returns ``[ax]``."""
    data, columns = display.data, list(display.features)
    limits = [] if data.is_output else list(range(len(data.thresholds)))
    names = [data.feature_names[j] for j in columns] + [data.y_name]
    names += [data.z_names[j] for j in limits]
    values = np.column_stack([data.y, data.z[:, limits]])
    n_shown, n_axes = len(columns), len(columns) + values.shape[1]
    ends = [
        _ends(values[:, i], data, limits[i - 1] if i else None) for i in range(n_axes - n_shown)
    ]
    # One point far outside must not squeeze all others.
    unit = data.box.to_unit(data.X)[:, columns]
    place = unit.clip(*_INSIDE)
    heights = np.column_stack([place, *(_height(values[:, i], *ends[i]) for i in range(len(ends)))])
    for i in range(n_axes):
        ax.axvline(i, color=GREY, lw=0.8, zorder=0)
        low, high = (
            (data.box.lower[columns[i]], data.box.upper[columns[i]])
            if i < n_shown
            else ends[i - n_shown]
        )
        levels = settings_of(data.kinds[columns[i]]) if i < n_shown else None
        if levels is not None:
            points = np.tile(data.box.lower, (len(levels), 1))
            points[:, columns[i]] = levels
            ticks = data.box.to_unit(points)[:, columns[i]]
            ax.plot(np.full(len(ticks), i), ticks, "_", color=GREY, ms=9, zorder=0)
        ax.text(i, -0.03, f"{low:.4g}", ha="center", va="top", size="small")
        ax.text(i, 1.03, f"{high:.4g}", ha="center", va="bottom", size="small")
    for name, mask in data.groups():
        _lines(ax, heights[mask], name)
    for name, points in (("pending", display.pending), ("next", display.x_next)):
        if len(points):
            _lines(ax, data.box.to_unit(points)[:, columns], name)
    rows, axes = np.nonzero(place != unit)
    mark_outside(ax, np.column_stack([axes, place[rows, axes]]))
    for i, limit in enumerate(limits, start=n_shown + 1):
        at = _height(data.thresholds[limit], *ends[i - n_shown])
        ax.plot([i - 0.12, i + 0.12], [at, at], color=BLACK, lw=2.0, label="limit", zorder=4)
    if data.is_output:
        at = _height(data.thresholds[0], *ends[0])
        ax.plot([n_shown - 0.12, n_shown + 0.12], [at, at], color=BLACK, lw=2.0, label="limit")
    ax.axvspan(n_shown - 0.5, n_axes - 0.5, color=SKY_BLUE, alpha=0.12, lw=0, zorder=-1)
    ax.set(xlim=(-0.5, n_axes - 0.5), ylim=(-0.1, 1.1), yticks=[])
    ax.set_xticks(range(n_axes), [_wrapped(with_unit(name, data.units)) for name in names])
    ax.tick_params(bottom=False)
    for side in ax.spines.values():
        side.set_visible(False)
    if legend:
        legend_below(ax)
    return np.array([ax])


def _wrapped(label):
    """A label in lines that fit between two axes."""
    return shown(textwrap.fill(label, _LETTERS))


def _lines(ax, heights, name):
    for i, row in enumerate(heights):
        ax.plot(range(len(row)), row, label=CALLED[name] if i == 0 else None, **_LINES[name])


def _ends(values, data, limit):
    """What the axis of an output or a limit begins and ends with."""
    known = values[~np.isnan(values)]
    if limit is not None:
        known = np.append(known, data.thresholds[limit])
    elif data.is_output:
        known = np.append(known, data.thresholds[0])
    low, high = known.min(), known.max()
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _height(values, low, high):
    return (values - low) / (high - low)
