"""A table of measurements: which of its columns is what."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..acquisition import Report
from ..queriers.cut_short import OK, STATUS_DTYPE, STATUSES
from ..validation import column_names

# Columns of the table that ``python -m sklearn_asal log --csv`` writes, which are no inputs.
_REMARKS = "number", "time", "event", "status", "note"
_LIMIT = re.compile(r"z(\d+|\[\d+\])?")
_PREDICTED = re.compile(r"(y_mean|y_std|p_safe|z_mean|z_std)(\d+|\[\d+\])?")


class Measurements(NamedTuple):
    """What a table says.

    Attributes
    ----------
    X : table
        Of its own kind, inputs alone.
    y : ndarray of shape (n,)
    z : table or None
    status : ndarray of str of shape (n,)
    n_init : int or None
        Rows whose event is "initial"; None without such a column.
    reports : list of Report or None, or None
        What was predicted of each row.
    """

    X: Any
    y: np.ndarray
    z: Any
    status: np.ndarray
    n_init: int | None
    reports: list[Report | None] | None


def measurements(
    table: Any, y_name: str, z_name: str | Sequence[str] | None, bounds: Any
) -> Measurements:
    """Read a table of inputs, outputs and safety measurements.

    Parameters
    ----------
    table : pandas.DataFrame or polars.DataFrame
        Rows in the order of measurement. Beside the measurements it may have columns ``status``
        ("ok", "aborted", "failed"), ``event`` (rows that are "forgotten" are left out, and
        "initial" ones were not proposed), ``number``, ``time`` and ``note``; and what was
        predicted: ``y_mean``, ``y_std``, ``p_safe``, ``z_mean``, ``z_std``, of several limits
        ``z_mean[0]``, ``z_mean[1]``, ...
    y_name : str
        Column of the output.
    z_name : str, sequence of str or None
        Columns of the safety measurements; None means ``z``, or ``z[0]``, ``z[1]``, ..., or
        ``z0``, ``z1``, ..., as far as they are there.
    bounds : object
        The keys of a dict are the inputs; else all other columns are.

    Returns
    -------
    Measurements

    Raises
    ------
    TypeError
        Not a table.
    ValueError
        A column is missing, or holds no numbers.
    """
    names = column_names(table)
    if names is None or not hasattr(table, "columns"):
        raise TypeError(
            "y is missing: pass X, y and perhaps z, or one table of pandas or polars with named "
            f"columns, or the path of a campaign's log; got {type(table).__name__}."
        )
    limits = [z_name] if isinstance(z_name, str) else z_name
    if limits is None:
        limits = [name for name in names if _LIMIT.fullmatch(name) and name != y_name]
    limits, predicted = list(limits), [name for name in names if _PREDICTED.fullmatch(name)]
    if isinstance(bounds, Mapping):
        inputs = list(bounds)
    else:
        inputs = [n for n in names if n not in {y_name, *limits, *_REMARKS, *predicted}]
    for name, argument in [
        (y_name, "y_name"),
        *((one, "z_name") for one in limits),
        *((one, "bounds") for one in inputs),
    ]:
        if name not in names:
            raise ValueError(
                f"{argument}: the table has no column {name!r}; its columns are "
                f"{', '.join(map(repr, names))}."
            )
    if not inputs:
        raise ValueError(f"the table has no inputs beside {', '.join(map(repr, names))}.")
    events = _texts(table, "event", names)
    if events is not None and "forgotten" in events:
        kept = np.flatnonzero(events != "forgotten")
        table, events = _some(table, kept), events[kept]
    for name in inputs:
        _numbers(
            table, name, "; state the inputs as bounds={...} in querier_params, or leave it out"
        )
    status = _texts(table, "status", names)
    known = np.full(len(table), OK) if status is None else np.where(status == "", OK, status)
    unknown = sorted(set(known) - set(STATUSES))
    if unknown:
        raise ValueError(
            f"column 'status' must hold {', '.join(map(repr, STATUSES))}, got {unknown[0]!r}."
        )
    y = _numbers(table, y_name)
    complete = (known == OK) & ~np.isnan(y)
    if not complete.any():
        raise ValueError(f"column {y_name!r} has no output of a run that was not cut short.")
    if not complete[0]:  # with which no campaign can begin
        order = np.argsort(np.arange(len(y)) != complete.argmax(), kind="stable")
        table, y, known = _some(table, order), y[order], known[order]
        events = None if events is None else events[order]
    return Measurements(
        table[inputs],
        y,
        table[limits] if limits else None,
        known.astype(STATUS_DTYPE),
        None if events is None else int((events == "initial").sum()),
        _reports(table, predicted) if {"y_mean", "y_std"} <= set(predicted) else None,
    )


def _some(table, rows):
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def _texts(table, name, names):
    """A column as text, "" where there is none; None without the column."""
    if name not in names:
        return None
    values = np.asarray(table[name], dtype=object).tolist()
    return np.array(["" if value is None or value != value else str(value) for value in values])


def _numbers(table, name, remedy=""):
    """A column as numbers, NaN where there is none."""
    column = table[name]
    try:
        if np.asarray(column).dtype.kind in "mM":
            raise TypeError("dates")
        if hasattr(column, "iloc"):  # pandas has several kinds of nothing
            return column.to_numpy(dtype=float, na_value=np.nan)
        return np.asarray(column, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"column {name!r} does not hold numbers{remedy}.") from None


def _reports(table, predicted):
    """Predictions of each row, None where they are missing."""
    columns = {name: _numbers(table, name) for name in predicted}
    of = {
        part: [columns[name] for name in predicted if _PREDICTED.fullmatch(name)[1] == part]
        for part in ("y_mean", "y_std", "p_safe", "z_mean", "z_std")
    }
    reports = []
    for i in range(len(table)):
        parts = {name: np.array([[one[i] for one in some]]) for name, some in of.items() if some}
        parts = {name: part[:, 0] if part.shape[1] == 1 else part for name, part in parts.items()}
        reports.append(None if np.isnan(parts["y_mean"]).any() else Report(**parts))
    return reports
