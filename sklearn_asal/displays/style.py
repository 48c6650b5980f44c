"""What all displays share: colours, marks, axes, and names on them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..space import Grid, Integer

# Colours of Okabe and Ito (2008), which people with any colour vision tell apart.
BLACK, GREY = "#000000", "#999999"
ORANGE, SKY_BLUE, GREEN, BLUE = "#E69F00", "#56B4E9", "#009E73", "#0072B2"
VERMILLION, PURPLE = "#D55E00", "#CC79A7"
#: Of curves, one after another.
CYCLE = BLUE, ORANGE, GREEN, PURPLE, SKY_BLUE, VERMILLION, BLACK, GREY

# Inches for each column of a legend, and the part of an axis that is left beyond the bounds.
_COLUMN, _ROOM = 1.6, 0.025
# Whole numbers are drawn as settings up to so many of them; and at most so many ticks are named.
_FEW, _TICKS = 25, 10
#: What legends call points beyond the bounds.
OUTSIDE = "outside the bounds (at the edge)"

#: How kinds of points are drawn, by ``scatter``; ``s`` is an area in points squared.
MARKS: dict[str, dict[str, Any]] = {
    "initial": {"marker": "s", "color": BLACK, "s": 28},
    "query": {"marker": "o", "color": BLUE, "s": 28},
    "unsafe": {"marker": "D", "color": VERMILLION, "s": 34},
    "aborted": {"marker": "X", "color": VERMILLION, "s": 60},
    "failed": {"marker": "x", "color": GREY, "s": 34},
    "pending": {"marker": "^", "facecolor": "white", "edgecolor": PURPLE, "s": 60},
    "next": {"marker": "*", "facecolor": PURPLE, "edgecolor": "white", "s": 260},
    "outside": {"facecolor": "none", "edgecolor": ORANGE, "s": 190, "lw": 2.0, "clip_on": False},
}

#: What legends call them.
CALLED = {
    "initial": "initial points",
    "query": "queries",
    "unsafe": "unsafe",
    "aborted": "aborted",
    "failed": "failed",
    "pending": "pending",
    "next": "next proposal",
}


def percent(share: float) -> str:
    """A share in words."""
    return f"{100 * share:g} %"


def axes_or_new(ax: Any, figsize: tuple[float, float]) -> Any:
    """The axes to draw in; those of a new figure where there are none."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=figsize, layout="constrained")[1]


def panels(ax: Any, n_rows: int, n_columns: int, **options: Any) -> tuple[Any, Any]:
    """Several axes in the place of one.

    Parameters
    ----------
    ax : Axes
        Left empty.
    n_rows, n_columns : int
    **options
        Of ``GridSpec.subplots``, and ``width_ratios``.

    Returns
    -------
    axes : ndarray of shape (n_rows, n_columns)
    below : Axes
        Empty ones of no height, for a legend.

    Raises
    ------
    ValueError
        Axes that are not part of a grid.
    """
    spec = ax.get_subplotspec()
    if spec is None:
        raise ValueError(
            "ax has to be made by plt.subplots or add_subplot, for this display puts several "
            "panels in its place."
        )
    ax.set_axis_off()
    rows = spec.subgridspec(2, 1, height_ratios=[1.0, 0.001])
    widths = options.pop("width_ratios", None)
    axes = rows[0].subgridspec(n_rows, n_columns, width_ratios=widths)
    below = ax.figure.add_subplot(rows[1])
    below.set_axis_off()
    return axes.subplots(squeeze=False, **options), below


def named(name: str, units: Mapping[str, str] | None) -> str:
    """A label of axes: name and unit."""
    return shown(with_unit(name, units))


def with_unit(name: str, units: Mapping[str, str] | None) -> str:
    """A name and its unit, if it has one, in plain text."""
    unit = None if units is None else units.get(name)
    return name if unit is None else f"{name} ({unit})"


def setting(name: str, value: float, units: Mapping[str, str] | None) -> str:
    """A name, its value and unit, in plain text."""
    return f"{name} = {value:.4g} {'' if units is None else units.get(name, '')}".rstrip()


def shown(text: str) -> str:
    """A text for figures, in which dollar signs are no mathematics."""
    return text.replace("\\$", "$").replace("$", r"\$")


def check_units(units: Mapping[str, str] | None, names: Sequence[str]) -> None:
    """Raise where a unit is of nothing that is drawn.

    Raises
    ------
    ValueError
        The message lists the names.
    """
    unknown = set(units or ()) - set(names)
    if unknown:
        raise ValueError(
            f"units: nothing is called {min(map(repr, unknown))}; the names are "
            f"{', '.join(map(repr, names))}."
        )


def legend_below(ax: Any, drawn: Any = None) -> Any:
    """A legend under axes, each label once.

    Parameters
    ----------
    ax : Axes
        Below which it is.
    drawn : sequence of Axes, optional
        Panels whose labels it has, where ``ax`` is the one below them of :func:`panels`.

    Returns
    -------
    Legend or None
        None where nothing has a label.
    """
    from matplotlib.transforms import ScaledTranslation

    known = labelled([ax] if drawn is None else drawn)
    if not known:
        return None
    # Tick labels and the label of the axis have the same height in figures of any size.
    below = 36 if drawn is None else 0
    width = ax.get_window_extent().width / ax.figure.dpi
    lower = ax.transAxes + ScaledTranslation(0, -below / 72, ax.figure.dpi_scale_trans)
    return ax.legend(
        list(known.values()),
        list(known),
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=lower,
        ncols=max(1, int(width / _COLUMN)),
        frameon=False,
        fontsize="small",
    )


def labelled(axes: Any) -> dict[str, Any]:
    """What has a label in some axes, each label once."""
    known: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    return known


def feature_axis(axis: Any, kind: Any, low: float, high: float) -> None:
    """Scale, ticks and limits of a feature's axis, of ``ax.xaxis`` or ``ax.yaxis``.

    The limits are those of the bounds, with some room, wherever measurements lie.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
    kind : Integer, Log, Grid or None
    low, high : float
        The bounds.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    log, levels = kind is not None and kind.log, settings_of(kind)
    name = axis.axis_name
    axis.axes.set(**{f"{name}scale": "log" if log else "linear"})
    if levels is not None:
        step = -(-len(levels) // _TICKS)
        axis.set_major_locator(FixedLocator(levels[::step].tolist()))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    elif isinstance(kind, Integer) and not log:
        whole_ticks(axis)
    ends = np.array([low, high]) if levels is None else cell_edges(levels, log)[[0, -1]]
    ends = np.log(ends) if log else ends
    # Room for what lies at the bounds.
    ends = ends + _ROOM * np.ptp(ends) * np.array([-1, 1])
    axis.axes.set(**{f"{name}lim": np.exp(ends) if log else ends})


def settings_of(kind: Any) -> np.ndarray | None:
    """The values of a feature that takes a few only; None where it is drawn as a continuous one.

    Parameters
    ----------
    kind : Integer, Log, Grid or None

    Returns
    -------
    ndarray of shape (n_values,) or None
    """
    if isinstance(kind, Grid):
        return kind.levels
    if isinstance(kind, Integer) and kind.high - kind.low < _FEW:
        return np.arange(kind.low, kind.high + 1.0)
    return None


def cell_edges(levels: np.ndarray, log: bool) -> np.ndarray:
    """Where the cells of settings begin and end: halfway to the next one, ``(n_values + 1,)``."""
    at = np.log(levels) if log else np.asarray(levels, dtype=float)
    half = np.diff(at) / 2
    edges = np.concatenate([[at[0] - half[0]], at[:-1] + half, [at[-1] + half[-1]]])
    return np.exp(edges) if log else edges


def whole_ticks(axis: Any) -> None:
    """Ticks at whole numbers alone, for an axis that counts."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def shade_unsafe(ax: Any, threshold: float, above: bool) -> None:
    """Shade the unsafe side of a limit, with some room for it.

    Parameters
    ----------
    ax : Axes
        With all that is drawn.
    threshold : float
    above : bool
        Whether the safe side is above.
    """
    low, high = ax.get_ylim()
    room = 0.12 * (high - low)
    if above:
        low = min(low, threshold - room)
    else:
        high = max(high, threshold + room)
    span = (low, threshold) if above else (threshold, high)
    ax.axhspan(*span, color=VERMILLION, alpha=0.1, lw=0, zorder=0, label="unsafe side")
    ax.set_ylim(low, high)


def within(ax: Any, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points moved to the edge of axes, and which were outside.

    Parameters
    ----------
    ax : Axes
        With its limits set.
    points : ndarray of shape (n, 2)

    Returns
    -------
    points : ndarray of shape (n, 2)
    outside : ndarray of bool of shape (n,)
    """
    low, high = np.sort([ax.get_xlim(), ax.get_ylim()], axis=1).T
    return np.clip(points, low, high), ((points < low) | (points > high)).any(axis=1)


def mark_outside(ax: Any, points: np.ndarray) -> None:
    """Rings about points at the edge of axes that lie beyond it, ``(n, 2)``."""
    if len(points):
        ax.scatter(*points.T, label=OUTSIDE, **MARKS["outside"])


def between(low: float, high: float, n: int, log: bool) -> np.ndarray:
    """Evenly spaced values of a feature, the ends included."""
    return np.geomspace(low, high, n) if log else np.linspace(low, high, n)
