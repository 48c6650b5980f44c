"""A benchmark in tables and figures: report.md and report.html."""

import base64
import html
import io

from .results import Results
from .summary import markdown, summarise, tables, unfinished

_NOTES = (
    "RMSE on the test set after the last query: mean ± standard error over seeds.",
    "Safe share: queries measured safe, by all limits. Worst violation: over all seeds and limits, "
    "in units of z.",
    "Truly safe share: queries that are safe without noise, where that is known. Worst run: the "
    "seed with the lowest truly safe share, or safe share where that is unknown; runs below 0.9 "
    "are those where it is.",
    "RMSE added by the guard: beside the same method with guard=False, seed by seed.",
    "Forced: queries, over all seeds, at which no candidate was safe enough for the method, so "
    "that its least unsafe one was measured.",
    "Of a method without a result on a task the row is empty, with the reason beneath the table.",
    "Of AGP, PFN and TabPFN AL the paper's RMSE is, as its appendix reads, that of their own "
    "predictions; ours is that of a Gaussian process, as of all methods.",
    "Time: median over all queries and seeds, measuring not included.",
    "The paper gives its safe results as figures only, and of ASAL that its safe share exceeds "
    "0.95 on every task.",
)
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
    without = unfinished(results)
    for task, (header, rows) in tables(summarise(results), without).items():
        picture = _picture(results, task)
        (figures / f"{task}.png").write_bytes(picture)
        reasons = [why for (where, _), why in without.items() if where == task]
        footnotes = [f"[{number}] {why}" for number, why in enumerate(reasons, 1)]
        text += [f"\n## {task}\n", markdown(header, rows), *("\n" + note for note in footnotes)]
        text.append(f"\n![{task}](figures/{task}.png)")
        page += [f"<h2>{html.escape(task)}</h2>", _html_table(header, rows)]
        page += [*(f"<p>{html.escape(note)}</p>" for note in footnotes), _html_image(picture)]
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


def _picture(results, task):
    from matplotlib.figure import Figure

    from ..displays import ComparisonDisplay

    drawing, buffer = Figure(layout="constrained"), io.BytesIO()
    display = ComparisonDisplay.from_benchmark(results, task, ax=drawing.subplots())
    drawing.set_size_inches(4.2 * len(display.axes_), 3.6)
    drawing.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def _html_image(picture):
    return f'<img alt="" src="data:image/png;base64,{base64.b64encode(picture).decode()}">'


def _html_list(items):
    return "<ul>" + "".join(f"<li>{html.escape(item)}</li>" for item in items) + "</ul>"


def _html_table(header, rows):
    def line(cells, tag):
        return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

    return f"<table>{line(header, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"
