"""A campaign as displays see it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..limits import boolean_limits, distances_to_limits
from ..queriers.cut_short import ABORTED, FAILED, OK
from ..space import box_of
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
        Whether a run kept all limits; True where nothing is known.
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
    z, is_safe = np.empty((n, 0)), np.ones(n, dtype=bool)
    thresholds, above = np.empty(0), np.empty(0, dtype=bool)
    if has_limits:
        ok, raw = status == OK, querier.z_
        threshold, when = querier.safety_threshold, querier.safe_when
        boolean = boolean_limits(raw[ok])
        is_safe[ok] = (distances_to_limits(raw[ok], threshold, when) >= 0).all(axis=1)
        is_safe[status == ABORTED] = False
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


def querier_of(X: Any, y: Any, z: Any, querier_params: Mapping[str, Any] | None) -> Any:
    """A querier, policy "any", fitted to data that have no querier.

    Parameters
    ----------
    X, y, z
        See ``fit``. ``z=None`` means that there are no limits, unless ``querier_params`` has a
        ``safety_threshold``.
    querier_params : dict or None
        Of AmortizedSafeQuerier or AmortizedQuerier. Without ``bounds`` the data's own range is
        taken.

    Returns
    -------
    querier

    Raises
    ------
    ValueError, TypeError
        See ``fit``.
    """
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
    return (AmortizedSafeQuerier if is_safe else AmortizedQuerier)(**params).fit(X, y, z)
