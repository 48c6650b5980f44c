"""What models expect, in the units of the user."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Report:
    """What the models expect of measurements at some points, in the user's units.

    Attributes
    ----------
    y_mean, y_std : ndarray of shape (n,)
        Predicted output and its standard deviation, noise included.
    p_safe : ndarray of shape (n,) or None
        Probability that a measurement keeps all limits. This and the next are None
        for a querier without limits.
    z_mean, z_std : ndarray of shape (n,) or (n, n_limits), or None
        Predicted safety measurements and their standard deviations, noise included.
    """

    y_mean: np.ndarray
    y_std: np.ndarray
    p_safe: np.ndarray | None = None
    z_mean: np.ndarray | None = None
    z_std: np.ndarray | None = None
