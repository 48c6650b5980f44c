"""Numbers of a benchmark: means over seeds, and the paper's beside them."""

import math
from dataclasses import dataclass

import numpy as np

from .methods import METHODS
from .tasks import N_QUERIES, TASKS

# Test errors (mean, standard error) after T queries: labels table-result_al,
# tableS-result_al_varied_T and, for airfoil, tableS-result_al_varied_policy_size.
_RMSE = {
    ("sinus", 20): "aal 0.14 0.004 gp 0.13 0.009 svgp 0.12 0.004 mgp 0.12 0.007 random 0.33 0.055",
    ("airline", 20): "aal 0.41 0.022 gp 0.43 0.038 svgp 0.42 0.012 mgp 0.39 0.020 "
    "random 0.41 0.023",
    ("branin", 30): "aal 0.21 0.020 gp 0.19 0.011 svgp 0.34 0.003 mgp 0.17 0.006 random 0.28 0.052",
    ("lgbb", 30): "aal 0.17 0.013 gp 0.17 0.010 svgp 0.17 0.005 mgp 0.15 0.008 random 0.21 0.050",
    ("airfoil", 40): "aal 0.62 0.012 gp 0.62 0.021 random 0.79 0.047",
    ("sinus", 10): "aal 0.64 0.056 gp 0.54 0.046 svgp 0.52 0.013 mgp 0.22 0.040 random 0.51 0.070",
    ("airline", 10): "aal 0.50 0.032 gp 0.46 0.033 svgp 0.50 0.060 mgp 0.47 0.024 "
    "random 0.53 0.088",
    ("branin", 20): "aal 0.33 0.008 gp 0.36 0.014 svgp 0.38 0.024 mgp 0.30 0.023 random 0.45 0.068",
    ("lgbb", 20): "aal 0.23 0.005 gp 0.18 0.014 svgp 0.20 0.013 mgp 0.19 0.015 random 0.20 0.009",
}


def paper_rmse(task, method, n_queries):
    """The paper's test error.

    Parameters
    ----------
    task, method : str
    n_queries : int
        After how many queries.

    Returns
    -------
    (float, float) or None
        Mean and standard error; None if the paper gives none.
    """
    words = _RMSE.get((task, n_queries), "").split()
    if method not in words:
        return None
    place = words.index(method)
    return float(words[place + 1]), float(words[place + 2])


@dataclass(frozen=True)
class Line:
    """One method on one task.

    Parameters
    ----------
    task, method : str
    seeds : int
        Number of finished seeds.
    queries : int
        Number of queries.
    rmse, safe_share : (float, float)
        Mean and standard error over seeds after the last query; the error is NaN for one seed, and
        both are NaN for the safe share of a task without safety.
    worst_violation : float
        Largest of all seeds and limits.
    milliseconds : float
        Median time a query, over all queries and seeds.
    forced : int
        Queries of all seeds at which no candidate was safe enough for the method.
    """

    task: str
    method: str
    seeds: int
    queries: int
    rmse: tuple
    safe_share: tuple
    worst_violation: float
    milliseconds: float
    forced: int


def summarise(results):
    """Means over seeds of everything finished.

    Parameters
    ----------
    results : Results

    Returns
    -------
    lines : list of Line
        In the order of ``TASKS`` and ``METHODS``, others after these.
    """
    groups = {}
    for (task, method, _), records in sorted(results.records.items()):
        groups.setdefault((task, method), []).append(records)
    tasks, methods = list(TASKS), list(METHODS)

    def place(group):
        task, method = group
        return _place(tasks, task), _place(methods, method)

    return [
        Line(
            task,
            method,
            len(campaigns),
            campaigns[0][-1].query,
            mean_and_error([records[-1].rmse for records in campaigns]),
            mean_and_error([records[-1].safe_share for records in campaigns]),
            max(records[-1].worst_violation for records in campaigns),
            1e3 * float(np.median([r.seconds for records in campaigns for r in records])),
            sum(record.forced for records in campaigns for record in records),
        )
        for (task, method), campaigns in sorted(groups.items(), key=lambda item: place(item[0]))
    ]


def mean_and_error(values):
    """Mean and standard error of the mean.

    Parameters
    ----------
    values : sequence of float

    Returns
    -------
    mean, error : float
        NaN as the error of a single value.
    """
    values = np.asarray(values, dtype=float)
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return float(values.mean()), float(error)


@dataclass(frozen=True, eq=False)
class Curve:
    """One method over its queries.

    Parameters
    ----------
    method : str or None
        None for one that is not of ``METHODS``.
    label : str
    rmse, safe_share : ndarray of shape (k, 3)
        Number of queries, mean and standard error over campaigns; where all of these have a value.
    milliseconds : ndarray
        Of all queries and campaigns.
    """

    method: str | None
    label: str
    rmse: np.ndarray
    safe_share: np.ndarray
    milliseconds: np.ndarray


def curves(campaigns, named=True):
    """Means over campaigns, query by query.

    Parameters
    ----------
    campaigns : dict of str to list of list of Record
        By method.
    named : bool, default=True
        Whether names are those of ``METHODS``, whose order and labels count, others after these.

    Returns
    -------
    list of Curve
    """
    order, names = list(METHODS), list(campaigns)
    if named:
        names.sort(key=lambda name: _place(order, name))
    return [
        Curve(
            name if named and name in METHODS else None,
            label_of(name) if named else name,
            _means(campaigns[name], "rmse"),
            _means(campaigns[name], "safe_share"),
            np.array([1e3 * r.seconds for records in campaigns[name] for r in records]),
        )
        for name in names
    ]


def _means(campaigns, column):
    values = {}
    for record in (record for records in campaigns for record in records):
        if not math.isnan(getattr(record, column)):
            values.setdefault(record.query, []).append(getattr(record, column))
    rows = [
        (query, *mean_and_error(values[query]))
        for query in sorted(values)
        if len(values[query]) == len(campaigns)
    ]
    return np.array(rows).reshape(-1, 3)


def label_of(method):
    """What tables and figures call a method.

    Parameters
    ----------
    method : str

    Returns
    -------
    str
    """
    return METHODS[method].label if method in METHODS else method


def tables(lines):
    """The lines as text, one table a task.

    Parameters
    ----------
    lines : list of Line

    Returns
    -------
    tables : dict of str to (list of str, list of list of str)
        By task: the header and the rows.
    """
    made = {}
    for line in lines:
        safe = not math.isnan(line.safe_share[0])
        header = ["method", "seeds", "queries", "RMSE", "RMSE, paper"]
        if safe:
            header += ["safe share", "safe share, paper", "worst violation", "forced"]
        header.append("ms a query")
        paper = paper_rmse(line.task, line.method, line.queries)
        row = [
            label_of(line.method),
            str(line.seeds),
            str(line.queries),
            _plus_minus(line.rmse),
            _plus_minus(paper) if paper else "",
        ]
        if safe:
            # The claim is about campaigns of the paper's length.
            claimed = line.method == "asal" and line.queries == N_QUERIES.get(line.task)
            row += [
                _plus_minus(line.safe_share),
                "> 0.95" if claimed else "",
                f"{line.worst_violation:.2f}",
                str(line.forced),
            ]
        row.append(_three_digits(line.milliseconds))
        made.setdefault(line.task, (header, []))[1].append(row)
    return made


def short(lines):
    """All lines as one table of few columns.

    Parameters
    ----------
    lines : list of Line

    Returns
    -------
    header : list of str
    rows : list of list of str
    """
    header = ["task", "method", "RMSE", "safe share", "ms a query"]
    rows = [
        [
            line.task,
            line.method,
            f"{line.rmse[0]:.3f}",
            "" if math.isnan(line.safe_share[0]) else f"{line.safe_share[0]:.3f}",
            _three_digits(line.milliseconds),
        ]
        for line in lines
    ]
    return header, rows


def markdown(header, rows):
    """A table in Markdown, padded to be read as plain text as well.

    Parameters
    ----------
    header : list of str
    rows : list of list of str

    Returns
    -------
    str
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    )


def _three_digits(value):
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _place(names, name):
    return names.index(name) if name in names else len(names)


def _plus_minus(pair):
    mean, error = pair
    return f"{mean:.3f}" if math.isnan(error) else f"{mean:.3f} ± {error:.3f}"
