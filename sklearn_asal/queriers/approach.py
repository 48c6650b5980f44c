"""The way from the last point to the next, in small steps."""

from dataclasses import dataclass

import numpy as np

from .._typing import FloatArray


@dataclass(frozen=True, eq=False)
class Approach:
    """A straight way, along which a rig can stop and measure.

    Attributes
    ----------
    points : ndarray of shape (n_points, n_features)
        In the user's units; the last is the proposal, and the start is not among them. Fewer than
        ``n_steps`` where discrete features take no values in between.
    p_safe : ndarray of shape (n_points,) or None
        The probability of each to be safe; None for queriers without limits.
    """

    points: FloatArray
    p_safe: FloatArray | None


def way_to(box, start, end, n_steps):
    """Points on the straight way in the unit cube.

    Parameters
    ----------
    box : Box
    start, end : ndarray of shape (n_features,)
        In the user's units.
    n_steps : int

    Returns
    -------
    ndarray of shape (k, n_features)
        In the user's units, the end itself the last. Where discrete features leave fewer
        different points than ``n_steps``, so many.
    """
    first, last = box.to_unit(np.array([start, end]))
    parts = np.arange(1, n_steps) / n_steps
    points = box.from_unit((first + parts[:, None] * (last - first)).clip(0.0, 1.0))
    points = np.vstack([start, points, end])
    new = (points[1:] != points[:-1]).any(axis=1)
    return points[1:][new] if new.any() else end[None]
