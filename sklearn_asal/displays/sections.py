"""What models expect on lines and planes through the domain."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..constraints import Constraints
from .style import between, cell_edges, settings_of


@dataclass(frozen=True, eq=False)
class Section:
    """Predictions along one feature, or two, with the others held at one point.

    Attributes
    ----------
    features : tuple of int
        One or two; the first is drawn from left to right.
    values : tuple of ndarray of shape (k,)
        Of these features, in the user's units; of one that takes a few values only, all of them.
    mean, std : ndarray of shape (k,) or (k, k)
        Of the output; rows belong to the second feature. As the next ones.
    p_safe : ndarray or None
        None without limits.
    z_mean, z_std : ndarray of shape (..., n_limits) or None
    may_be : ndarray of bool
        Where the constraints on the inputs hold.
    distances : ndarray of shape (n,)
        Of the measurements from the section: the root mean square over the other features, in
        widths of the bounds.
    kinds : tuple of Integer, Log, Grid or None
        Of the features.
    is_moved : bool
        Whether the other features are moved from point to point, so that equations hold.
    """

    features: tuple[int, ...]
    values: tuple[np.ndarray, ...]
    mean: np.ndarray
    std: np.ndarray
    p_safe: np.ndarray | None
    z_mean: np.ndarray | None
    z_std: np.ndarray | None
    may_be: np.ndarray
    distances: np.ndarray
    kinds: tuple[Any, ...]
    is_moved: bool = False

    def coordinates(self) -> tuple[np.ndarray, ...]:
        """Where :meth:`cells` are drawn: from edge to edge of each setting, else ``values``."""
        both = zip(self.values, self.kinds, strict=True)
        return tuple(v if settings_of(k) is None else _both_edges(v, k.log) for v, k in both)

    def cells(self, part: np.ndarray) -> Any:
        """A masked array over :meth:`coordinates`, the same all over the cell of a setting."""
        part = self.masked(part)
        for axis, kind in enumerate(reversed(self.kinds)):
            if settings_of(kind) is not None:
                part = np.ma.repeat(part, 2, axis=axis)
        return part

    def masked(self, values: np.ndarray) -> Any:
        """A masked array, without points that break the constraints."""
        return np.ma.masked_array(values, ~self.may_be)


def section_of(
    querier: Any, data: Any, features: tuple[int, ...], at: np.ndarray, n_grid: int
) -> Section:
    """Ask a querier's models about a line or a plane.

    Parameters
    ----------
    querier : querier
        Fitted, with a method ``assess``.
    data : CampaignData
    features : tuple of int
    at : ndarray of shape (n_features,)
        Where the other features are. Where a linear constraint is an equation, they are moved by
        as little as it demands, in widths of the bounds.
    n_grid : int
        Values of each feature.

    Returns
    -------
    Section
    """
    box, kinds = data.box, data.kinds

    def along(j):
        few, log = settings_of(kinds[j]), kinds[j] is not None and kinds[j].log
        return between(box.lower[j], box.upper[j], n_grid, log) if few is None else few

    values = tuple(map(along, features))
    grids = np.meshgrid(*values)
    stated = getattr(querier, "constraints", None)
    constraints = None if stated is None else Constraints(stated, len(at))

    def on_section(values):
        points = np.tile(at, (len(values), 1))
        points[:, features] = values
        if constraints is None:
            return points
        return on_equations(points, features, constraints, box)

    points = on_section(np.column_stack([grid.ravel() for grid in grids]))
    may_be = np.ones(len(points), dtype=bool)
    if constraints is not None:
        may_be = constraints.holds(points) & ~box.outside(points)
    others = [j for j in range(len(at)) if j not in features]
    beside = np.clip(on_section(data.X[:, features]), box.lower, box.upper)
    away = box.to_unit(data.X) - box.to_unit(beside)
    distances = np.sqrt(np.square(away[:, others]).sum(axis=1) / max(len(others), 1))
    # Others are asked about as well, but where they break the bounds there may be no answer.
    report = querier.assess(np.clip(points, box.lower, box.upper))
    shape = grids[0].shape

    def shaped(part):
        return None if part is None else part.reshape(*shape, *part.shape[1:])

    z_mean, z_std = shaped(report.z_mean), shaped(report.z_std)
    if z_mean is not None and z_mean.ndim == len(shape):
        z_mean, z_std = z_mean[..., None], z_std[..., None]
    return Section(
        features,
        values,
        shaped(report.y_mean),
        shaped(report.y_std),
        shaped(report.p_safe),
        z_mean,
        z_std,
        may_be.reshape(shape),
        distances,
        tuple(kinds[j] for j in features),
        constraints is not None and bool(constraints.is_equation.any()),
    )


def _both_edges(levels, log):
    """The edges of cells, those between two cells twice."""
    edges = cell_edges(levels, log)
    return np.repeat(edges, 2)[1:-1]


def on_equations(
    points: np.ndarray, features: tuple[int, ...], constraints: Constraints, box: Any
) -> np.ndarray:
    """Points moved to where linear equations hold, by changes of all but some features.

    Parameters
    ----------
    points : ndarray of shape (n, n_features)
    features : tuple of int
        They stay as they are.
    constraints : Constraints
    box : Box
        Changes are as small as can be, in its widths.

    Returns
    -------
    ndarray of shape (n, n_features)
    """
    equations = constraints.is_equation
    others = [j for j in range(points.shape[1]) if j not in features]
    if not equations.any() or not others:
        return points
    A, right = constraints.A[equations], constraints.low[equations]
    weighted = A[:, others] * box.width[others]
    moved = points.copy()
    moved[:, others] += (right - points @ A.T) @ np.linalg.pinv(weighted).T * box.width[others]
    return moved
