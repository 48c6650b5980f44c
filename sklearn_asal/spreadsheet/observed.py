"""What a table says was measured, and what is pending."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..queriers.cut_short import ABORTED, OK, STATUSES
from .numbers import is_empty
from .sheet import shown


@dataclass
class Observed:
    """What a table holds, in the order of its rows.

    Attributes
    ----------
    X : ndarray of shape (n, n_features)
        Measured, in the order of ``inputs``.
    y : ndarray of shape (n,)
        NaN where a run was cut short, or the output was not measured; so in the next.
    z : ndarray of shape (n, n_limits), or None
    status : ndarray of str of shape (n,)
        "ok", "aborted" or "failed".
    pending : ndarray of shape (n_pending, n_features)
    pending_rows : list of int
        Their positions.
    """

    X: Any
    y: Any
    z: Any
    status: Any
    pending: Any
    pending_rows: list[int]

    def n_safe(self, limits):
        """How many measurements keep all limits.

        Parameters
        ----------
        limits : list of Limit

        Returns
        -------
        int
        """
        if self.z is None:
            return 0
        kept = [limit.holds(z) for limit, z in zip(limits, self.z.T, strict=True)]
        return int(np.all(kept, axis=0).sum())


def observed(sheet, inputs, output, limits, status, note):
    """Read a campaign from a table.

    Parameters
    ----------
    sheet : Sheet
    inputs : sequence of str
    output : str
    limits : list of Limit
    status : str or None
        The column of how runs ended.
    note : callable
        What to do with a remark.

    Returns
    -------
    Observed

    Raises
    ------
    ValueError
        A cell is missing or holds something else, or nothing was measured.
    """
    columns = list(dict.fromkeys([output, *(limit.column for limit in limits)]))
    found: dict[str, list] = {name: [] for name in ("X", "y", "z", "status", "pending")}
    pending_rows = []
    for row in sheet.rows:
        ended = None if status is None else _status(sheet, row, status, bool(limits))
        cut_short = ended not in (None, OK)
        # What was read before a run was cut short may be text such as "tripped".
        values = {} if cut_short else {name: sheet.number(row, name) for name in columns}
        x = _inputs(sheet, row, inputs, [*values.values()])
        if x is None:
            continue
        missing = [name for name, value in values.items() if value != value]
        if not cut_short and ended is None and len(missing) == len(columns):
            found["pending"].append(x)
            pending_rows.append(row)
            continue
        _check_row(sheet, row, output, limits, ended, missing, note)
        if cut_short and not all(is_empty(sheet.cell(row, name)) for name in columns):
            note(
                f"row {row + 1} of {sheet.path} is {ended}, so its {' and '.join(columns)} are not "
                "used. Where a limited column was measured all the same, the status may be ok."
            )
        found["X"].append(x)
        found["y"].append(values.get(output, np.nan))
        found["z"].append([values.get(limit.column, np.nan) for limit in limits])
        found["status"].append(ended or OK)
    outputs = np.array(found["y"])
    if not len(outputs) or np.isnan(outputs).all():
        raise ValueError(
            f"{sheet.path} has no row yet with its {output} measured. Measure one or a few points "
            f"{'that are known to be safe' if limits else 'first'}, and enter them."
        )
    return Observed(
        np.array(found["X"]),
        outputs,
        np.array(found["z"]) if limits else None,
        np.array(found["status"]),
        np.array(found["pending"]).reshape(-1, len(inputs)),
        pending_rows,
    )


def rows_of_pool(sheet, inputs):
    """Candidates from a table.

    Parameters
    ----------
    sheet : Sheet
    inputs : sequence of str

    Returns
    -------
    X : ndarray of shape (n, n_features)
    rows : list of int
        Their positions.

    Raises
    ------
    ValueError
        A cell is missing or holds something else, or there is no row.
    """
    found = {row: _inputs(sheet, row, inputs) for row in sheet.rows}
    found = {row: x for row, x in found.items() if x is not None}
    if not found:
        raise ValueError(f"{sheet.path} has no row with numbers for {' and '.join(inputs)}.")
    return np.array(list(found.values())), list(found)


def _inputs(sheet, row, inputs, others=()):
    """The inputs of a row, None where it is blank."""
    x = [sheet.number(row, name) for name in inputs]
    if all(value != value for value in [*x, *others]):
        return None
    for name, value in zip(inputs, x, strict=True):
        if value != value:
            raise ValueError(
                f"{sheet.path}, {sheet.place(row, name)}: it is empty. Enter the number, or clear "
                "the row."
            )
    return x


def _status(sheet, row, column, has_limits):
    """How a run ended, None where nothing is said."""
    cell = sheet.cell(row, column)
    word = "" if cell is None else str(cell).strip().lower()
    if word and word not in STATUSES:
        raise ValueError(
            f"{sheet.path}, {sheet.place(row, column)}: {shown(cell)} is no status. It may be "
            f"{', '.join(STATUSES[:2])} or {STATUSES[2]}; empty means ok, or running where "
            "nothing is measured."
        )
    if word == ABORTED and not has_limits:
        raise ValueError(
            f"{sheet.path}, {sheet.place(row, column)}: aborted says that a limit was passed. "
            "State it by --limit, or write failed."
        )
    return word or None


def _check_row(sheet, row, output, limits, ended, missing, note):
    """Raise where a row that was measured lacks a number that it needs."""
    needed = list(dict.fromkeys(limit.column for limit in limits)) or [output]
    for name in missing:
        if name in needed:
            raise ValueError(
                f"{sheet.path}, {sheet.place(row, name)}: it is empty, but "
                + ("the status is ok" if ended else "other columns of this row are measured")
                + ". Enter the number. Of a run that was cut short write aborted or failed in a "
                "column of its own, named by --status."
            )
    if missing:
        note(
            f"row {row + 1} of {sheet.path} has {' and '.join(needed)}, but no {output}: what is "
            "there is used, and the row is not pending."
        )
