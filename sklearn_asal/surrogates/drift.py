"""A test for linear drift: whether values change with the order in which they were measured."""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from .._typing import FloatArray, IntArray
from ..settings import own_settings
from .amortized import AmortizedGP
from .factors import InverseFactors

# Probability of a false alarm.
_LEVEL = 0.05
# So little of a sum of squares comes from rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Drift:
    """How much a rig has drifted, if values drift in proportion to the order of measurement.

    Attributes
    ----------
    change : float
        Estimated change of the output from the first measurement to the last, in its units.
    std : float
        Standard error of that.
    p_value : float
        Probability of so large a change, up or down, without drift.
    """

    change: float
    std: float
    p_value: float

    @property
    def is_significant(self) -> bool:
        """Whether the p-value is below 0.05."""
        return self.p_value < _LEVEL

    def scaled(self, factor: float) -> "Drift":
        """The same in other units.

        Parameters
        ----------
        factor : float

        Returns
        -------
        Drift
        """
        return Drift(factor * self.change, factor * self.std, self.p_value)


@own_settings()
def linear_drift(
    model: AmortizedGP, X: FloatArray, y: FloatArray, order: FloatArray | IntArray
) -> Drift:
    """Generalized least squares of a linear drift on top of a Gaussian process.

    The hyperparameters are those of the model, its constant mean has a flat prior, and the scale
    is estimated with the drift: for each member this is a t-test. Estimates and p-values are
    averaged over the members.

    Parameters
    ----------
    model : AmortizedGP
        Of the same observations, fitted.
    X : ndarray of shape (n, n_features)
        In the unit cube, replicates included.
    y : ndarray of shape (n,)
    order : ndarray of shape (n,)
        When each was measured; not all the same.

    Returns
    -------
    Drift
        With a p-value of one for three observations or fewer.
    """
    lengthscales, noises, weights = model.lengthscales_, model.noises_, model.member_weights_
    inverse = InverseFactors(X, lengthscales, noises, np.arange(len(noises))).inverse
    time = (order - order.min()) / np.ptp(order)
    size = np.abs(y - y.mean()).max() or 1.0
    whitened = inverse @ np.column_stack([np.ones(len(y)), time, (y - y.mean()) / size])
    # Of each part what the ones before do not explain.
    ones, time, values = np.moveaxis(whitened, -1, 0)
    time = _residual(time, ones)
    values = _residual(values, ones)
    total = np.einsum("pi,pi->p", time, time)
    change = np.einsum("pi,pi->p", time, values) / total
    left = np.square(values - change[:, None] * time).sum(axis=1)
    dof = len(y) - 2
    if dof < 2:
        return Drift(float(size * weights @ change), np.inf, 1.0)
    left = np.maximum(left, _ROUNDING)
    std = np.sqrt(left / (dof * total))
    p_value = float(weights @ (2 * stdtr(dof, -np.abs(change) / std)))
    mean = weights @ change
    spread = np.sqrt(weights @ (std**2 + (change - mean) ** 2))
    return Drift(float(size * mean), float(size * spread), min(p_value, 1.0))


def _residual(values, regressor):
    """What a linear regression on one regressor leaves, member by member."""
    slope = np.einsum("pi,pi->p", regressor, values) / np.einsum("pi,pi->p", regressor, regressor)
    return values - slope[:, None] * regressor
