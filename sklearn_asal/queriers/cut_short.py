"""Runs that were cut short: what is told of them, and what stands for what was not measured."""

import numpy as np

from ..validation import (
    check_lengths,
    finite_array,
    is_missing,
    listed,
    safety_signals,
    table_columns,
)

#: Complete, unsafe without a number, and nothing learned.
OK, ABORTED, FAILED = STATUSES = "ok", "aborted", "failed"
STATUS_DTYPE = "<U7"


def checked_statuses(status, n, safe):
    """A status for each observation.

    Parameters
    ----------
    status : str or sequence of str of shape (n,)
    n : int
        Observations told.
    safe : bool
        Whether the querier has limits, which an aborted run violates.

    Returns
    -------
    ndarray of str of shape (n,)

    Raises
    ------
    ValueError
        Unknown, of another number, or "aborted" for a querier without limits.
    """
    entries = np.asarray(status, dtype=object)
    if entries.ndim == 0:
        entries = np.full(n, entries[()], dtype=object)
    known = all(isinstance(entry, str) and entry in STATUSES for entry in entries.ravel())
    if not known or entries.shape != (n,):
        raise ValueError(
            f"status must be {', '.join(map(repr, STATUSES[:2]))} or {FAILED!r}, one for all or "
            f"one for each of the {n} observations told; got {status!r}."
        )
    statuses = entries.astype(STATUS_DTYPE)
    if not safe and (statuses == ABORTED).any():
        raise ValueError(
            f"status={ABORTED!r} says that a run was unsafe, of which this querier knows nothing. "
            f"Pass status={FAILED!r}: nothing is learned, and the point is not proposed again."
        )
    return statuses


def outcomes(n, y, z, statuses, like):
    """Validate what is told of runs some of which were cut short.

    Parameters
    ----------
    n : int
        Observations told.
    y : array-like of shape (n,) or None
        Missing (NaN, None) where the status is not "ok".
    z : array-like of shape (n,) or (n, n_limits), or None
        Likewise.
    statuses : ndarray of str of shape (n,)
    like : ndarray or None
        The safety measurements of the campaign; None where there are none.

    Returns
    -------
    y : ndarray of shape (n,)
        NaN where nothing was measured, as in the next.
    z : ndarray of shape (n,) or (n, n_limits), or None
        float64, or object where there are booleans.
    measured : ndarray or None
        Those rows of ``z`` that were measured.

    Raises
    ------
    ValueError, TypeError
        Missing, or given for a run that was cut short.
    """
    ok = statuses == OK
    outputs = np.full(n, np.nan)
    if y is not None:
        outputs = check_lengths(
            finite_array(listed(y, True), "y", ndim=1, missing=True), "y", 1, n, "x"
        )
    _refuse_given(~np.isnan(outputs), "y", statuses)
    if like is None:
        if np.isnan(outputs[ok]).any():
            raise ValueError(
                "y is missing for an observation of status 'ok'; an output may be missing only "
                "where fit was given z. Of a run that was cut short say so by status."
            )
        return outputs, None, None
    signals = None
    if z is None and ok.any():
        raise ValueError(
            "z is missing: fit was given safety measurements, so tell needs them as well, with "
            "NaN or None for runs that were cut short."
        )
    if z is not None:
        rows = check_lengths(_objects(z), "z", 2, n, "x")
        given = [not all(map(is_missing, np.ravel(row))) for row in rows]
        _refuse_given(np.array(given), "z", statuses)
        # As lists, in which columns of booleans are told from numbers.
        signals = safety_signals(rows[ok].tolist()) if ok.any() else None
    boolean = signals is not None and signals.dtype != np.float64
    everything = np.full((n, *like.shape[1:]), np.nan, dtype=object if boolean else np.float64)
    if signals is not None:
        if signals.shape[1:] != like.shape[1:]:
            raise ValueError(f"z has shape {rows.shape}, but in fit it had {like.shape}.")
        everything[ok] = signals
    return outputs, everything, signals


def _refuse_given(given, name, statuses):
    for i in np.flatnonzero(given & (statuses != OK)):
        raise ValueError(
            f"{name} is given for observation {i}, whose status is {str(statuses[i])!r}. Pass NaN "
            "or None there, or 'ok' where it was measured."
        )


def _objects(z):
    """Safety measurements as objects, in which a gap is a gap."""
    columns = table_columns(z)
    if columns is not None:
        z = np.column_stack([column.astype(object) for column in columns])
    elif isinstance(z, np.ma.MaskedArray):
        z = z.astype(object).filled(np.nan)
    elif isinstance(z, (list, tuple)):
        z = [None if entry is np.ma.masked else entry for entry in z]
    elif np.ndim(z) == 0:
        z = [z]
    return np.atleast_1d(np.asarray(z, dtype=object))


def joined(old, new):
    """Safety measurements one after the other; booleans stay booleans beside NaN.

    Parameters
    ----------
    old, new : ndarray or None

    Returns
    -------
    ndarray or None
    """
    if old is not None and old.dtype != new.dtype:
        old, new = old.astype(object), new.astype(object)
    return None if old is None else np.concatenate([old, new])


def tidied(z, status):
    """Safety measurements in the type they would have, had none but these ever been told.

    Parameters
    ----------
    z : ndarray of shape (n,) or (n, n_limits)
    status : ndarray of str of shape (n,)

    Returns
    -------
    ndarray of the same shape
        Booleans beside NaN are objects; without NaN they are booleans.
    """
    ok = status == OK
    if z.dtype == np.float64 or not ok.any():
        return z
    measured = safety_signals(z[ok].tolist())
    if ok.all():
        return measured
    everything = np.full(z.shape, np.nan, dtype=object)
    everything[ok] = measured
    return everything


def aborted_margin(margin):
    """The margin of each limit that an aborted run counts with.

    No number says by how much a limit was violated. The run counts as a violation of typical
    size: minus the root mean square of the margins measured, or the lowest of them, whichever is
    lower. Which of several limits was violated is unknown, too, and it counts for each of them:
    so no model expects the neighbourhood of the run to be safe.

    Parameters
    ----------
    margin : ndarray of shape (n, n_limits)
        Those that were measured.

    Returns
    -------
    ndarray of shape (n_limits,)
        Negative; -1 where all that was measured lies at the limit.
    """
    # Sorted, for the last digit of a sum depends on its order.
    size = np.sqrt(np.mean(np.sort(np.square(margin), axis=0), axis=0))
    lowest = np.minimum(-size, margin.min(axis=0))
    return np.where(lowest < 0, lowest, -1.0)
