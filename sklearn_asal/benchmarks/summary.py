"""Numbers of a benchmark: means over seeds, and the paper's beside them."""

import math
from dataclasses import dataclass

import numpy as np

from .methods import METHODS, base_of, label_of, method_of
from .tasks import N_QUERIES, TASKS

# Test errors (mean, standard error) after T queries: labels table-result_al,
# tableS-result_al_varied_T and, for airfoil, tableS-result_al_varied_policy_size.
_RMSE = {
    ("sinus", 20): "aal 0.14 0.004 gp 0.13 0.009 svgp 0.12 0.004 mgp 0.12 0.007 "
    "random 0.33 0.055 pfn 0.85 0.088 tabpfn 1.04 0.033 agp 0.14 0.007 aline 0.38 0.034 "
    "dad 0.49 0.065",
    ("airline", 20): "aal 0.41 0.022 gp 0.43 0.038 svgp 0.42 0.012 mgp 0.39 0.020 "
    "random 0.41 0.023 pfn 0.44 0.041 tabpfn 0.43 0.023 agp 0.48 0.020 aline 0.43 0.011 "
    "dad 0.43 0.018",
    ("branin", 30): "aal 0.21 0.020 gp 0.19 0.011 svgp 0.34 0.003 mgp 0.17 0.006 "
    "random 0.28 0.052 pfn 0.38 0.019 tabpfn 0.22 0.008 agp 0.23 0.025 aline 0.27 0.013 "
    "dad 0.99 0.128",
    ("lgbb", 30): "aal 0.17 0.013 gp 0.17 0.010 svgp 0.17 0.005 mgp 0.15 0.008 random 0.21 0.050 "
    "pfn 0.19 0.008 tabpfn 0.16 0.010 agp 0.22 0.006 aline 0.17 0.009 dad 0.48 0.063",
    ("airfoil", 40): "aal 0.62 0.012 gp 0.62 0.021 random 0.79 0.047",
    ("sinus", 10): "aal 0.64 0.056 gp 0.54 0.046 svgp 0.52 0.013 mgp 0.22 0.040 "
    "random 0.51 0.070 pfn 1.16 0.037 tabpfn 1.19 0.026 agp 0.28 0.016 aline 0.56 0.022 "
    "dad 0.84 0.119",
    ("airline", 10): "aal 0.50 0.032 gp 0.46 0.033 svgp 0.50 0.060 mgp 0.47 0.024 "
    "random 0.53 0.088 pfn 0.52 0.053 tabpfn 0.44 0.025 agp 0.53 0.028 aline 0.47 0.022 "
    "dad 0.45 0.014",
    ("branin", 20): "aal 0.33 0.008 gp 0.36 0.014 svgp 0.38 0.024 mgp 0.30 0.023 "
    "random 0.45 0.068 pfn 0.43 0.036 tabpfn 0.34 0.028 agp 0.35 0.031 aline 0.37 0.024 "
    "dad 0.81 0.040",
    ("lgbb", 20): "aal 0.23 0.005 gp 0.18 0.014 svgp 0.20 0.013 mgp 0.19 0.015 random 0.20 0.009 "
    "pfn 0.20 0.003 tabpfn 0.21 0.012 agp 0.23 0.010 aline 0.18 0.007 dad 0.32 0.012",
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


# A run with a smaller share of safe queries counts as a bad one.
_LOW = 0.9


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
    truly_safe_share : (float, float)
        As ``safe_share``, of queries that are safe without noise; NaN where that is unknown.
    worst_run : float
        The lowest truly safe share of a seed; where it is unknown, the lowest safe share.
    runs_below : float
        Share of the seeds for which that is below 0.9.
    rmse_change : (float, float)
        Of a method that states a guard, mean and standard error of its RMSE less that of
        the same method with ``guard=False``, over the seeds that both have finished; else NaN.
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
    truly_safe_share: tuple = (math.nan, math.nan)
    worst_run: float = math.nan
    runs_below: float = math.nan
    rmse_change: tuple = (math.nan, math.nan)


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
    for (task, method, seed), records in sorted(results.records.items()):
        groups.setdefault((task, method), {})[seed] = records
    tasks, methods = list(TASKS), list(METHODS)

    def place(group):
        task, method = group
        # Variants of a method come after it.
        return _place(tasks, task), _place(methods, base_of(method))

    return [_line(task, method, groups) for task, method in sorted(groups, key=place)]


def _line(task, method, groups):
    campaigns = groups[task, method]
    last = {seed: records[-1] for seed, records in campaigns.items()}
    records = [record for campaign in campaigns.values() for record in campaign]
    safe, truly_safe = (
        [getattr(record, name) for record in last.values()]
        for name in ("safe_share", "truly_safe_share")
    )
    judged = np.array(safe if np.isnan(truly_safe).any() else truly_safe)
    return Line(
        task,
        method,
        len(campaigns),
        next(iter(last.values())).query,
        mean_and_error([record.rmse for record in last.values()]),
        mean_and_error(safe),
        max(record.worst_violation for record in last.values()),
        1e3 * float(np.median([record.seconds for record in records])),
        sum(record.forced for record in records),
        mean_and_error(truly_safe),
        float(judged.min()),
        float(np.mean(judged < _LOW)) if not np.isnan(judged).any() else math.nan,
        _rmse_change(task, method, groups, last),
    )


def _rmse_change(task, method, groups, last):
    """What the guard adds to the RMSE, over the seeds that both have finished."""
    bare = _unguarded(method, [name for where, name in groups if where == task])
    if bare is None:
        return math.nan, math.nan
    others = groups[task, bare]
    changes = [last[seed].rmse - others[seed][-1].rmse for seed in last if seed in others]
    return mean_and_error(changes) if changes else (math.nan, math.nan)


def _unguarded(name, names):
    """The one of ``names`` that differs from a guarded method by the guard alone, or None."""
    guard, rest = _guard(name)
    if not guard:
        return None
    return next((one for one in names if _guard(one) == (False, rest)), None)


def _guard(name):
    """What a method's name states of a guard, and what it says besides."""
    try:
        method = method_of(name)
    except ValueError:  # somebody's own, or of another version
        return None, None
    # Estimators are equal to themselves only, their texts are not.
    rest = {param: repr(value) for param, value in method.stated.items() if param != "guard"}
    return method.stated.get("guard"), (method.base, rest)


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
        names.sort(key=lambda name: (_place(order, base_of(name)), name))
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


def unfinished(results):
    """Methods without a finished seed, and why.

    Parameters
    ----------
    results : Results

    Returns
    -------
    reasons : dict of (str, str) to str
        By task and method, in their order; the error of the first seed.
    """
    finished = {(task, method) for task, method, _ in results.records}
    reasons = {}
    for (task, method, _), why in sorted(results.failures.items()):
        if (task, method) not in finished:
            reasons.setdefault((task, method), " ".join(why.split()))
    tasks, methods = list(TASKS), list(METHODS)
    order = sorted(reasons, key=lambda c: (_place(tasks, c[0]), _place(methods, base_of(c[1]))))
    return {cell: reasons[cell] for cell in order}


def tables(lines, without=()):
    """The lines as text, one table a task.

    Parameters
    ----------
    lines : list of Line
    without : iterable of (str, str)
        Tasks and methods that have no result, from :func:`unfinished`. Their cells are empty, and
        a number refers to the reason; the first of a task has number one. Tasks that have no line
        at all are left out.

    Returns
    -------
    tables : dict of str to (list of str, list of list of str)
        By task: the header and the rows.
    """
    made = {}
    # Where no method has a guard, there is no column for what it costs.
    with_guard = {line.task for line in lines if not math.isnan(line.rmse_change[0])}
    for line in lines:
        guarded = line.task in with_guard
        safe = not math.isnan(line.safe_share[0])
        header = ["method", "seeds", "queries", "RMSE", "RMSE, paper"]
        if safe:
            header += ["safe share", "safe share, paper", "truly safe share", "worst run"]
            header += ["runs below 0.9", "worst violation", "forced"]
        if guarded:
            header.append("RMSE added by the guard")
        header.append("ms a query")
        paper = paper_rmse(line.task, line.method, line.queries)
        row = [
            label_of(line.method),
            str(line.seeds),
            str(line.queries),
            plus_minus(line.rmse),
            plus_minus(paper) if paper else "",
        ]
        if safe:
            # The claim is about campaigns of the paper's length.
            claimed = line.method == "asal" and line.queries == N_QUERIES.get(line.task)
            row += [
                plus_minus(line.safe_share),
                "> 0.95" if claimed else "",
                _or_blank(line.truly_safe_share),
                f"{line.worst_run:.3f}",
                f"{100 * line.runs_below:.0f} %",
                f"{line.worst_violation:.2f}",
                str(line.forced),
            ]
        if guarded:
            row.append(_or_blank(line.rmse_change, "+"))
        row.append(_three_digits(line.milliseconds))
        made.setdefault(line.task, (header, []))[1].append(row)
    numbers = dict.fromkeys(made, 0)
    for task, method in without:
        if task in made:
            header, rows = made[task]
            numbers[task] += 1
            label = f"{label_of(method)} [{numbers[task]}]"
            rows.append([label, "0", *[""] * (len(header) - 2)])
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


def _or_blank(pair, sign=""):
    return "" if math.isnan(pair[0]) else plus_minus(pair, sign)


def plus_minus(pair, sign=""):
    """A mean and its error as text.

    Parameters
    ----------
    pair : (float, float)
        No error is shown where it is NaN.
    sign : {"", "+"}
        Of format specifications, for the mean.

    Returns
    -------
    str
    """
    mean, error = pair
    mean = f"{mean:{sign}.3f}"
    return mean if math.isnan(error) else f"{mean} ± {error:.3f}"
