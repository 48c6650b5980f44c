"""The curves of a CampaignDisplay: outputs and safety measurements over one feature."""

from typing import Any

import numpy as np

from .style import (
    BLACK,
    BLUE,
    CALLED,
    MARKS,
    PURPLE,
    SKY_BLUE,
    VERMILLION,
    feature_axis,
    legend_below,
    mark_outside,
    panels,
    percent,
    shade_unsafe,
)


def number_of_panels(data: Any) -> int:
    """One for the output, and one for each limit that is not on the output."""
    return 1 + (0 if data.is_output else len(data.thresholds))


def draw(display: Any, ax: Any, level: float, legend: bool) -> Any:
    """Draw into one axes; returns its panels, ``(n_panels,)``."""
    data, j = display.data, display.features[0]
    n_panels = number_of_panels(data)
    axes, below, drawn = np.array([ax]), ax, None
    if n_panels > 1:
        axes, below = panels(ax, n_panels, 1, sharex=True)
        drawn = axes = axes[:, 0]
    section = display.sections[0] if display.sections else None
    for i, panel in enumerate(axes):
        limit = i - 1 if n_panels > 1 else 0
        is_limit = i > 0
        has_limit = is_limit or data.is_output
        values = data.z[:, limit] if is_limit else data.y
        if section is not None:
            parts = (section.mean, section.std)
            if is_limit:
                parts = section.z_mean[:, limit], section.z_std[:, limit]
            _band(panel, section, *parts)
            _shade(panel, section, level)
        if has_limit:
            panel.axhline(data.thresholds[limit], color=BLACK, ls="--", lw=1.2, label="limit")
        feature_axis(panel.xaxis, data.kinds[j], data.box.lower[j], data.box.upper[j])
        # One point far outside must not squeeze all others.
        place = np.clip(data.X[:, j], *panel.get_xlim())
        for name, mask in data.groups():
            x, at = place[mask], values[mask]
            known = ~np.isnan(at)
            if known.any():
                panel.scatter(x[known], at[known], label=CALLED[name], zorder=3, **MARKS[name])
            if (~known).any():  # at an edge, for there is no number; unsafe ones at that side
                edge = panel.get_xaxis_transform()
                label = None if known.any() else CALLED[name]
                is_high = has_limit and (name == "failed") == data.above[limit]
                heights = np.full((~known).sum(), 0.97 if is_high else 0.03)
                panel.scatter(
                    x[~known], heights, transform=edge, label=label, zorder=3, **MARKS[name]
                )
        for x in display.x_next[:, j]:
            panel.axvline(x, color=PURPLE, lw=1.5, label=CALLED["next"])
        for x in display.pending[:, j]:
            panel.axvline(x, color=PURPLE, lw=1.0, ls=":", label=CALLED["pending"])
        beyond = (place != data.X[:, j]) & ~np.isnan(values)
        mark_outside(panel, np.column_stack([place, values])[beyond])
        if has_limit:
            shade_unsafe(panel, data.thresholds[limit], data.above[limit])
        panel.set_ylabel(data.label(data.z_names[limit] if is_limit else data.y_name))
    axes[-1].set_xlabel(data.label(data.feature_names[j]))
    if legend:
        legend_below(below, drawn)
    return axes


def _band(panel, section, mean, std):
    (x,), mean, std = section.coordinates(), section.cells(mean), section.cells(std)
    panel.fill_between(
        x, mean - 2 * std, mean + 2 * std, color=SKY_BLUE, alpha=0.35, lw=0, label="± 2 std"
    )
    panel.plot(x, mean, color=BLUE, lw=1.8, label="expected")


def _shade(panel, section, level):
    """Where it is not safe enough, and where it is unsafe."""
    if section.p_safe is None:
        return
    (x,), p_safe = section.coordinates(), section.cells(section.p_safe).data
    edge = panel.get_xaxis_transform()
    shades = {
        f"safe with less than {percent(level)}": (p_safe < level, "#000000", 0.07),
        f"safe with less than {percent(1 - level)}": (p_safe < 1 - level, VERMILLION, 0.15),
    }
    for label, (where, colour, alpha) in shades.items():
        if where.any():
            panel.fill_between(
                x,
                0,
                1,
                where=where,
                transform=edge,
                color=colour,
                alpha=alpha,
                lw=0,
                label=label,
                zorder=0,
            )
