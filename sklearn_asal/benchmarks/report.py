"""A benchmark in tables and figures: report.md and report.html."""

import base64
import html
import io
import math

import numpy as np

from .methods import METHODS
from .results import Results
from .summary import markdown, mean_and_error, summarise, tables

_NOTES = (
    "RMSE on the test set after the last query: mean ± standard error over seeds.",
    "Safe share: queries measured safe, z >= 0. Worst violation: over all seeds, in units of z.",
    "Forced: queries, over all seeds, at which no candidate was safe enough for the method, so "
    "that its least unsafe one was measured.",
    "Time: median over all queries and seeds, measuring not included.",
    "The paper gives its safe results as figures only, and of ASAL that its safe share exceeds "
    "0.95 on every task.",
)
# Strong ones first, then their pale sisters.
_COLOURS = [f"C{i}" for i in range(10)] + ["#aec7e8", "#ffbb78", "#98df8a", "#ff9896", "#c5b0d5"]
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
    settings = ", ".join(f"{name} {value}" for name, value in results.settings.items())
    text = ["# Benchmark", *(f"- {note}" for note in _NOTES), f"- Settings: {settings}."]
    page = ["<h1>Benchmark</h1>", _html_list([*_NOTES, f"Settings: {settings}."])]
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
    # The colour belongs to the method, so that it is the same in every figure.
    colours = {
        m: _COLOURS[(order.index(m) if m in order else len(order) + i) % len(_COLOURS)]
        for i, m in enumerate(methods)
    }
    panels = [("rmse", "RMSE"), ("safe_share", "share of safe queries")]
    if all(math.isnan(r.safe_share) for c in campaigns.values() for records in c for r in records):
        panels = panels[:1]
    drawing = Figure(figsize=(4.2 * (len(panels) + 1), 3.6), layout="constrained")
    *axes, time_axis = drawing.subplots(1, len(panels) + 1)
    for axis, (name, label) in zip(axes, panels, strict=True):
        for method in methods:
            _curve(axis, campaigns[method], name, _label(method), colours[method])
        axis.set(xlabel="queries", ylabel=label, title=task)
        if name == "safe_share":
            axis.axhline(0.95, color="gray", lw=1, ls=":")
    for i, method in enumerate(methods):
        times = np.array([1e3 * r.seconds for records in campaigns[method] for r in records])
        low, middle, high = np.quantile(times, [0.05, 0.5, 0.95])
        time_axis.plot([low, high], [i, i], color=colours[method], lw=3, alpha=0.4)
        time_axis.plot(middle, i, "o", color=colours[method])
    time_axis.set_xscale("log")
    time_axis.set(xlabel="ms a query (median, 5 % to 95 %)", ylim=(len(methods) - 0.5, -0.5))
    time_axis.set_yticks(range(len(methods)), [_label(method) for method in methods])
    drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    return drawing


def _curve(axis, campaigns, name, label, colour):
    """Mean and standard error of a column, at the queries that have it in every campaign."""
    columns = {}
    for records in campaigns:
        for record in records:
            if not math.isnan(getattr(record, name)):
                columns.setdefault(record.query, []).append(getattr(record, name))
    queries = sorted(query for query, values in columns.items() if len(values) == len(campaigns))
    mean, error = np.array([mean_and_error(columns[query]) for query in queries]).reshape(-1, 2).T
    axis.plot(queries, mean, ".-", color=colour, label=label, ms=4)
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
