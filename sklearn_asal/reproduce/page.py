"""The page of an experiment: tables with the paper's figures beside ours, and a picture."""

import os
import platform
import textwrap
from pathlib import Path

from .. import __version__
from ..benchmarks.summary import markdown
from .picture import draw

_WIDTH = 120


def write_page(experiment, scale, results, path, command, missing=()):
    """Write a page in Markdown and its picture.

    Parameters
    ----------
    experiment : Experiment
    scale : Scale
    results : dict
        Of a Grid.
    path : path-like
        Of the page; the picture goes to ``figures`` beside it.
    command : str
        That made it.
    missing : sequence of str
        Cells without a result.

    Returns
    -------
    Path
    """
    path = Path(path)
    tables = experiment.tables(scale, results)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"# {experiment.title}", "", *_prose(experiment.about), ""]
    lines += ["```bash", command, "```", ""]
    lines += [*_prose(f"What the paper says: {experiment.says}"), ""]
    lines += ["What differs from the paper:", ""]
    if any("seconds" in result for result in results.values()):
        notes = _of_times(results)
    else:
        notes = scale.cuts(experiment.name)
    if missing:
        cells = "1 cell has" if len(missing) == 1 else f"{len(missing)} cells have"
        notes.append(f"{cells} no result: {', '.join(missing)}.")
    for note in notes:
        lines += textwrap.wrap(note, _WIDTH, initial_indent="- ", subsequent_indent="  ")
    lines += ["", *_prose(_LEGEND), ""]
    for table in tables:
        if table.rows:
            lines += [f"## {table.title}", "", *_prose(f"Paper: {table.label}."), ""]
            lines += [_markdown(table), ""]
    figure = draw(tables)
    if figure is not None:
        picture = path.parent / "figures" / f"{path.stem}.png"
        picture.parent.mkdir(exist_ok=True)
        # Without the version of matplotlib, so that the same results are the same file.
        figure.savefig(picture, dpi=90, metadata={"Software": None})
        lines += [f"![{experiment.title}](figures/{picture.name})", ""]
    part = path.with_name(path.name + ".part")
    part.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    os.replace(part, path)
    return path


_LEGEND = (
    "Means ± standard errors: over seeds, and on simulated tasks of a single seed over tasks. "
    "Columns named paper have the figures that the paper states, as it states them; blank where "
    "it states none."
)


def _of_times(results):
    loads = [result["load"] for result in results.values() if result.get("load") is not None]
    notes = [
        f"Times are of version {__version__} on {platform.machine()}, {os.cpu_count()} CPUs, "
        f"{platform.system()}; each was taken on one thread."
    ]
    if loads:
        notes.append(
            f"Load average of the machine when times were taken: {min(loads):.1f} to "
            f"{max(loads):.1f}, this process included. Above the number of CPUs, times are upper "
            "limits."
        )
    return notes


def _prose(text):
    return textwrap.wrap(text, _WIDTH)


def _markdown(table):
    """The table as text; a column of the paper's figures where it has any."""
    has = [any(row[2][i] is not None for row in table.rows) for i in range(len(table.columns))]
    header = list(table.keys)
    for name, stated in zip(table.columns, has, strict=True):
        header += [name, f"{name}, paper"] if stated else [name]
    rows = []
    for keys, ours, paper in table.rows:
        row = list(keys)
        for i, stated in enumerate(has):
            row += [_text(ours[i]), _text(paper[i])] if stated else [_text(ours[i])]
        rows.append(row)
    return markdown(header, rows)


def _text(value):
    return "" if value is None else str(value)
