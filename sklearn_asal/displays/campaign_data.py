"""A campaign as displays see it."""

import copy
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..acquisition import Report
from ..limits import boolean_limits, distances_to_limits
from ..log import CampaignLog
from ..log.campaign import view
from ..log.record import record_of
from ..queriers.base import BaseQuerier
from ..queriers.cut_short import ABORTED, FAILED, OK
from ..space import box_of
from .measurements import measurements
from .style import check_units, named


@dataclass(frozen=True, eq=False)
class CampaignData:
    """Observations in the user's units, their limits, and what they are called.

    Attributes
    ----------
    X : ndarray of shape (n, n_features)
    y : ndarray of shape (n,)
        NaN where none was measured.
    z : ndarray of shape (n, n_limits)
        0 and 1 for booleans; NaN where nothing was measured. No columns for queriers without
        limits.
    is_safe : ndarray of bool of shape (n,)
        Whether a run is known to have kept all limits; True for all without limits.
    status : ndarray of str of shape (n,)
    n_init : int
        The first so many observations were not proposed.
    thresholds : ndarray of shape (n_limits,)
    above : ndarray of bool of shape (n_limits,)
        Which limits have their safe side above.
    is_output : bool
        Whether the output is its own safety measurement.
    box : Box
    feature_names, z_names : list of str
    y_name : str
    units : dict of str to str
    """

    X: np.ndarray
    y: np.ndarray
    z: np.ndarray
    is_safe: np.ndarray
    status: np.ndarray
    n_init: int
    thresholds: np.ndarray
    above: np.ndarray
    is_output: bool
    box: Any
    feature_names: list[str]
    y_name: str
    z_names: list[str]
    units: dict[str, str]

    @property
    def kinds(self) -> list[Any]:
        """An Integer, Log, Grid or None for each feature."""
        return list(getattr(self.box, "kinds", [None] * self.X.shape[1]))

    def groups(self) -> Iterator[tuple[str, np.ndarray]]:
        """The kinds of observations that there are, as in ``MARKS``, and which they are."""
        ok, is_query = self.status == OK, np.arange(len(self.X)) >= self.n_init
        masks = {
            "initial": ok & self.is_safe & ~is_query,
            "query": ok & self.is_safe & is_query,
            "unsafe": ok & ~self.is_safe,
            "aborted": self.status == ABORTED,
            "failed": self.status == FAILED,
        }
        return ((name, mask) for name, mask in masks.items() if mask.any())

    def label(self, name: str) -> str:
        """A name with its unit."""
        return named(name, self.units)


def data_of(
    querier: Any,
    *,
    n_init: int | None = None,
    y_name: str = "y",
    z_name: str | Sequence[str] | None = None,
    units: Mapping[str, str] | None = None,
) -> CampaignData:
    """The campaign of a fitted querier.

    Parameters
    ----------
    querier : querier
    n_init : int, optional
        By default the number of observations that ``fit`` got.
    y_name : str, default="y"
    z_name : str or sequence of str of shape (n_limits,), optional
        By default the names of columns that ``fit`` got, or "z", or "z[0]", "z[1]", ...
    units : dict of str to str, optional
        By the names of features, output and safety measurements.

    Returns
    -------
    CampaignData

    Raises
    ------
    sklearn.exceptions.NotFittedError
        Not fitted.
    ValueError
        Names of another number, or units of nothing.
    """
    check_is_fitted(querier, "X_", msg="%(name)s: call fit(X, y) before you draw its campaign.")
    X, y, status = querier.X_, querier.y_, querier.status_
    n, n_features = X.shape
    has_limits = hasattr(querier, "safety_threshold")
    z, is_safe = np.empty((n, 0)), np.full(n, not has_limits)
    thresholds, above = np.empty(0), np.empty(0, dtype=bool)
    if has_limits:
        ok, raw = status == OK, querier.z_
        threshold, when = querier.safety_threshold, querier.safe_when
        boolean = boolean_limits(raw[ok])
        is_safe[ok] = (distances_to_limits(raw[ok], threshold, when) >= 0).all(axis=1)
        z = raw.reshape(n, -1).astype(float)
        thresholds = np.where(boolean, 0.5, np.broadcast_to(threshold, len(boolean)))
        above = boolean | (np.broadcast_to(when, len(boolean)) == "above")
    names = querier._names(None)
    names = [f"x{j}" for j in range(n_features)] if names is None else list(map(str, names))
    is_output = has_limits and not querier._has_z
    z_names = _z_names(querier, z.shape[1], z_name) if not is_output else [y_name]
    check_units(units, [*names, y_name, *z_names])
    return CampaignData(
        X,
        y,
        z,
        is_safe,
        status,
        n - querier.n_told_ if n_init is None else n_init,
        thresholds,
        above,
        is_output,
        box_of(querier.bounds, n_features),
        names,
        y_name,
        z_names,
        dict(units or {}),
    )


def _z_names(querier, n_limits, z_name):
    if z_name is None:
        known = getattr(querier, "_z_names", None)
        if known is not None and len(known) == n_limits:
            return list(known)
        return ["z"] if n_limits == 1 else [f"z[{j}]" for j in range(n_limits)]
    z_names = [z_name] if isinstance(z_name, str) else list(z_name)
    if len(z_names) != n_limits:
        raise ValueError(
            f"z_name has {len(z_names)} names, but the campaign has {n_limits} limits; name each "
            "of them."
        )
    return z_names


class Campaign(NamedTuple):
    """A campaign that came as arrays, as a table, or as a log.

    Attributes
    ----------
    querier : querier
        Fitted, without a log.
    names : dict
        Of ``from_querier``: ``n_init``, ``y_name`` and ``z_name``.
    reports : list of Report or None
        What was expected of each measurement since ``n_init``; None where that is unknown.
    """

    querier: Any
    names: dict[str, Any]
    reports: list[Report | None] | None


def campaign_of(
    X: Any,
    y: Any = None,
    z: Any = None,
    querier_params: Mapping[str, Any] | None = None,
    *,
    n_init: int | None = None,
    y_name: str = "y",
    z_name: str | Sequence[str] | None = None,
    least: int = 0,
) -> Campaign:
    """A campaign that no querier holds.

    Parameters
    ----------
    X : array-like, table, path-like or CampaignLog
        Inputs; or, without ``y``, a table of measurements, or a log, which is only read.
    y, z : array-like, optional
        See ``fit``. ``z=None`` means that there are no limits, unless ``querier_params`` has a
        ``safety_threshold``.
    querier_params : dict, optional
        Of AmortizedSafeQuerier or AmortizedQuerier. Without ``bounds`` the data's own range is
        taken. With a log, parameters in place of those in it.
    n_init : int, optional
        By default what a log or a table says, else ``least``.
    y_name, z_name
        Names, and those of a table's columns.
    least : int, default=0

    Returns
    -------
    Campaign

    Raises
    ------
    FileNotFoundError
        There is no such log.
    ValueError, TypeError
        See ``fit``; a table without these columns; a damaged log.
    """
    names: dict[str, Any] = {
        "n_init": least if n_init is None else n_init,
        "y_name": y_name,
        "z_name": z_name,
    }
    if y is not None:
        return Campaign(_fitted(X, y, z, None, querier_params), names, None)
    if z is not None:
        raise ValueError("z was passed without y; pass both, or a table that has both.")
    if isinstance(X, (str, os.PathLike, CampaignLog)):
        log = X if isinstance(X, CampaignLog) else CampaignLog(X)
        events = log.read()
        record, querier = (
            record_of(events),
            view(BaseQuerier, log, dict(querier_params or {}), events),
        )
        n_first = sum(run.is_initial for run in record.kept)
        names["n_init"] = n_first if n_init is None else n_init
        known = [None] * n_first + record.reports()
        return Campaign(querier, names, known[names["n_init"] :])
    found = measurements(X, y_name, z_name, (querier_params or {}).get("bounds"))
    if n_init is None and found.n_init is not None:
        names["n_init"] = found.n_init
    querier = _fitted(found.X, found.y, found.z, found.status, querier_params)
    reports = None if found.reports is None else found.reports[names["n_init"] :]
    return Campaign(querier, names, reports)


def unlogged(querier: Any) -> Any:
    """A querier with the same campaign that writes to no log; itself if it has none."""
    if getattr(querier, "log", None) is None:
        return querier
    other = copy.copy(querier)
    other.log = None
    return other


def begun(querier: Any, X: Any, y: Any, z: Any, status: np.ndarray, n: int) -> int:
    """Fit a querier to the first observations, whose runs may have been cut short.

    Parameters
    ----------
    querier : querier
        Is fitted.
    X, y : array-like
    z : array-like or None
    status : ndarray of str of shape (n_all,)
    n : int
        So many, or as many as it takes to have an output.

    Returns
    -------
    n : int
        How many were told.

    Raises
    ------
    ValueError
        There is no output.
    """
    complete = (status == OK) & ~np.isnan(np.asarray(y, dtype=float))
    if not complete.any():
        raise ValueError("y: there is no measurement with an output.")
    n = max(n, int(complete.argmax()) + 1)
    ok = status[:n] == OK
    first = np.flatnonzero(ok)
    _quietly(querier.fit, _rows(X, first), _rows(y, first), _rows(z, first))
    continued(querier, X, y, z, status, np.flatnonzero(~ok))
    return n


def continued(querier: Any, X: Any, y: Any, z: Any, status: np.ndarray, which: Any) -> None:
    """Tell a querier some observations; see :func:`begun`."""
    if not len(which):
        return
    outputs = np.asarray(y, dtype=float)[which]
    margins = None if z is None else np.asarray(z)[which].tolist()
    if margins is not None:
        ok = status[which] == OK
        missing = [None] * len(margins[0]) if isinstance(margins[0], list) else None
        margins = [one if known else missing for one, known in zip(margins, ok, strict=True)]
    _quietly(
        querier.tell,
        np.asarray(X)[which],
        None if np.isnan(outputs).all() else outputs,
        margins,
        status=status[which].tolist(),
    )


def _rows(data, which):
    """Rows of an array or of a table of pandas or polars, whose names are kept."""
    if data is None:
        return None
    if hasattr(data, "iloc"):
        return data.iloc[which]
    return data[which] if hasattr(data, "columns") else np.asarray(data)[which]


def _fitted(X, y, z, status, querier_params):
    """A querier, policy "any"."""
    from ..queriers import AmortizedQuerier, AmortizedSafeQuerier
    from ..validation import finite_array

    params = dict(querier_params or {})
    if params.get("bounds") is None:
        values = finite_array(X, "X")
        low, high = values.min(axis=0), values.max(axis=0)
        wide = high > low
        if not wide.all():
            raise ValueError(
                f"X: feature {int(np.flatnonzero(~wide)[0])} has one value only; state bounds in "
                "querier_params."
            )
        params["bounds"] = np.column_stack([low, high])
    is_safe = z is not None or "safety_threshold" in params
    querier = (AmortizedSafeQuerier if is_safe else AmortizedQuerier)(**params)
    if status is None:
        return querier.fit(X, y, z)
    n = begun(querier, X, y, z, status, 1)
    continued(querier, X, y, z, status, np.arange(n, len(status)))
    return querier


def _quietly(call, *args, **params):
    """A call without warnings, which are known from the campaign itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*args, **params)
