"""A benchmark in tables and figures: report.md and report.html."""

import base64
import html
import io
import math

import numpy as np

from .methods import METHODS, SUITES
from .results import Results
from .summary import markdown, mean_and_error, summarise, tables

_NOTES = (
    "RMSE on the test set after the last query: mean ± standard error over seeds.",
    "Safe share: queries measured safe, by all limits. Worst violation: over all seeds and limits, "
    "in units of z.",
    "Forced: queries, over all seeds, at which no candidate was safe enough for the method, so "
    "that its least unsafe one was measured.",
    "Time: median over all queries and seeds, measuring not included.",
    "The paper gives its safe results as figures only, and of ASAL that its safe share exceeds "
    "0.95 on every task.",
)
# Strong ones first, then their pale sisters.
_COLOURS = [f"C{i}" for i in range(10)]
_COLOURS += ["#aec7e8", "#ffbb78", "#98df8a", "#ff9896", "#c5b0d5", "#c49c94", "#f7b6d2", "#dbdb8d"]
# No two methods of one suite share these; more and more gaps.
_DASHES = [(), (10, 2), (6, 2), (6, 2, 1.5, 2), (3, 3), (2, 4), (1, 2), (1, 5), (1, 9)]
_MARKERS = "os^DvP<X>*phd8H"
_STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:62em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse;margin:1em 0}img{max-width:100%}"
    "td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid #ccc}"
)


def report(folder):
    """Write report.md, report.html and a figure for every task into a benchmark's folder.

    Parameters
    ----------
    folder : str or path-like
        What ``run_cells`` wrote.

    Returns
    -------
    path : Path
        Of report.html, which needs no other file.

    Raises
    ------
    ValueError
        If the folder holds no benchmark.
    """
    results = Results(folder)
    if not (results.records or results.failures):
        raise ValueError(
            f"{folder} holds no benchmark; make one with python -m sklearn_asal bench run --out "
            f"{folder}."
        )
    notes = [*_NOTES, *_settings(results.settings)]
    text = ["# Benchmark", *(f"- {note}" for note in notes)]
    page = ["<h1>Benchmark</h1>", _html_list(notes)]
    figures = results.folder / "figures"
    figures.mkdir(exist_ok=True)
    for task, (header, rows) in tables(summarise(results)).items():
        picture = _picture(results, task)
        (figures / f"{task}.png").write_bytes(picture)
        text += [f"\n## {task}\n", markdown(header, rows), f"\n![{task}](figures/{task}.png)"]
        page += [f"<h2>{html.escape(task)}</h2>", _html_table(header, rows), _html_image(picture)]
    if results.failures:
        header = ["task", "method", "seed", "error"]
        rows = [[*map(str, cell), why] for cell, why in sorted(results.failures.items())]
        plain = [[" ".join(value.split()).replace("|", r"\|") for value in row] for row in rows]
        text += ["\n## Failed\n", markdown(header, plain)]
        page += ["<h2>Failed</h2>", _html_table(header, rows)]
    (results.folder / "report.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    path = results.folder / "report.html"
    path.write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Benchmark</title>'
        f"<style>{_STYLE}</style>" + "\n".join(page) + "</html>\n",
        encoding="utf-8",
    )
    return path


def _settings(settings):
    """What holds for all cells, and what only for those of the last run, in words."""
    names = {
        "Settings": ("n_queries", "every", "pool_size", "policy"),
        "Last run with": ("version", "python", "machine"),
    }
    notes = {
        title: ", ".join(f"{name} {settings[name]}" for name in group if name in settings)
        for title, group in names.items()
    }
    return [f"{title}: {note}." for title, note in notes.items() if note]


def figure(results, task):
    """RMSE and share of safe queries against queries, and time a query, for one task.

    Parameters
    ----------
    results : Results
    task : str

    Returns
    -------
    figure : matplotlib.figure.Figure
        With the standard error as a band; the panel of safe shares for safe tasks only.
    """
    from matplotlib.figure import Figure

    campaigns = {}
    for (name, method, _), records in sorted(results.records.items()):
        if name == task:
            campaigns.setdefault(method, []).append(records)
    order = list(METHODS)
    methods = sorted(campaigns, key=lambda m: (order.index(m) if m in order else len(order), m))
    # The style belongs to the method, so that it is the same in every figure.
    order += [m for m in methods if m not in order]
    styles = {m: _style(m, order.index(m)) for m in methods}
    panels = [("rmse", "RMSE"), ("safe_share", "share of safe queries")]
    if all(math.isnan(r.safe_share) for c in campaigns.values() for records in c for r in records):
        panels = panels[:1]
    drawing = Figure(figsize=(4.2 * (len(panels) + 1), 3.6), layout="constrained")
    *axes, time_axis = drawing.subplots(1, len(panels) + 1)
    for axis, (name, label) in zip(axes, panels, strict=True):
        for method in methods:
            _curve(axis, campaigns[method], name, _label(method), styles[method])
        axis.set(xlabel="queries", ylabel=label, title=task)
        if name == "safe_share":
            axis.axhline(0.95, color="gray", lw=1, ls=":")
    for i, method in enumerate(methods):
        times = np.array([1e3 * r.seconds for records in campaigns[method] for r in records])
        low, middle, high = np.quantile(times, [0.05, 0.5, 0.95])
        style = {key: styles[method][key] for key in ("color", "marker")}
        time_axis.plot([low, high], [i, i], color=style["color"], lw=3, alpha=0.4)
        time_axis.plot(middle, i, ls="", **style)
    _log_scale(time_axis)
    time_axis.set(xlabel="ms a query (median, 5 % to 95 %)", ylim=(len(methods) - 0.5, -0.5))
    time_axis.set_yticks(range(len(methods)), [_label(method) for method in methods])
    handles, labels = axes[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=6, handlelength=3.5)
    return drawing


def _style(method, place):
    """Colour, dashes and marker of a method; of equal curves all show."""
    ranks = {name: rank for suite in SUITES.values() for rank, name in enumerate(suite)}
    # Those that are not of this package come after the longest suite.
    rank = ranks.get(method, max(ranks.values()) + 1 + place - len(METHODS)) % len(_DASHES)
    return {
        "color": _COLOURS[place % len(_COLOURS)],
        "ls": (0, _DASHES[rank]),
        "lw": 1.5 if rank else 3.0,  # the lowest one has no gaps, but edges
        "marker": _MARKERS[place % len(_MARKERS)],
        # What leaves more gaps goes on top of what leaves fewer.
        "zorder": 2 + rank / len(_DASHES),
    }


def _log_scale(axis):
    """Logarithmic x, from power of ten to power of ten, with as many labels as there is room."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_xscale("log")
    low, high = axis.get_xlim()
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    axis.set_xlim(10.0**first, 10.0**last)
    axis.xaxis.set_minor_formatter(NullFormatter())
    if last - first <= 2:
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _curve(axis, campaigns, name, label, style):
    """Mean and standard error of a column, at the queries that have it in every campaign."""
    columns = {}
    for records in campaigns:
        for record in records:
            if not math.isnan(getattr(record, name)):
                columns.setdefault(record.query, []).append(getattr(record, name))
    queries = sorted(query for query, values in columns.items() if len(values) == len(campaigns))
    mean, error = np.array([mean_and_error(columns[query]) for query in queries]).reshape(-1, 2).T
    # About ten markers a curve, hollow and at queries of its own where there are enough of them.
    step = max(1, len(queries) // 10)
    every = _MARKERS.index(style["marker"]) % step, step
    axis.plot(queries, mean, label=label, ms=5, mfc="none", markevery=every, **style)
    colour = style["color"]
    axis.fill_between(queries, mean - error, mean + error, color=colour, alpha=0.2, lw=0)


def _label(method):
    return METHODS[method].label if method in METHODS else method


def _picture(results, task):
    buffer = io.BytesIO()
    figure(results, task).savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def _html_image(picture):
    return f'<img alt="" src="data:image/png;base64,{base64.b64encode(picture).decode()}">'


def _html_list(items):
    return "<ul>" + "".join(f"<li>{html.escape(item)}</li>" for item in items) + "</ul>"


def _html_table(header, rows):
    def line(cells, tag):
        return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

    return f"<table>{line(header, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"
