"""Known constraints on the inputs, in the user's units."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import LinearConstraint, NonlinearConstraint

# What counts as rounding: of an equation, and of rows that the user passes, relative to the terms.
_ROUNDING = 1e-9
_KINDS = (
    "constraints must be a scipy.optimize.LinearConstraint or NonlinearConstraint, or a list of "
    "these"
)


class Constraints:
    """Constraints of SciPy's two kinds that hold together.

    Parameters
    ----------
    constraints : LinearConstraint, NonlinearConstraint, or sequence of these
        On inputs in the user's units. Functions take one point, ``(n_features,)``.
    n_features : int

    Attributes
    ----------
    A : ndarray of shape (k, n_features)
        Of the linear ones, and
    low, high : ndarray of shape (k,)
        their limits.
    nonlinear : list of NonlinearConstraint

    Raises
    ------
    TypeError, ValueError
        Other objects, or linear ones for another number of features.
    """

    def __init__(self, constraints: Any, n_features: int) -> None:
        kinds = LinearConstraint, NonlinearConstraint
        if isinstance(constraints, kinds):
            constraints = [constraints]
        if not isinstance(constraints, Sequence):
            raise TypeError(f"{_KINDS}, got {constraints!r}.")
        A, low, high = [np.empty((0, n_features))], [np.empty(0)], [np.empty(0)]
        self.nonlinear = []
        for i, one in enumerate(constraints):
            if isinstance(one, NonlinearConstraint):
                self.nonlinear.append(one)
                continue
            if not isinstance(one, LinearConstraint):
                raise TypeError(f"{_KINDS}, got {one!r}.")
            matrix = one.A.toarray() if hasattr(one.A, "toarray") else np.asarray(one.A, float)
            matrix = np.atleast_2d(matrix)
            if matrix.shape[1] != n_features or not np.isfinite(matrix).all():
                raise ValueError(
                    f"constraints[{i}]: A must have one finite number for each of the "
                    f"{n_features} features in each row; its shape is {matrix.shape}."
                )
            A.append(matrix)
            low.append(np.broadcast_to(one.lb, len(matrix)))
            high.append(np.broadcast_to(one.ub, len(matrix)))
        self.A, self.low, self.high = np.vstack(A), np.concatenate(low), np.concatenate(high)
        if (np.isnan(self.low) | np.isnan(self.high) | (self.low > self.high)).any():
            raise ValueError("constraints: lb must not be above ub, and neither may be NaN.")

    def __len__(self):
        return len(self.A) + len(self.nonlinear)

    @property
    def is_equation(self):
        """Which linear ones are equations, bool ndarray of shape (k,)."""
        return self.low == self.high

    @property
    def has_curved_equation(self):
        """Whether a function has to have a certain value."""
        return any(np.any(np.equal(one.lb, one.ub)) for one in self.nonlinear)

    def linear_hold(self, X, strict=False):
        """Which points satisfy the linear ones.

        Parameters
        ----------
        X, strict
            See :meth:`holds`.

        Returns
        -------
        bool ndarray of shape (n,)
        """
        value, size = X @ self.A.T, np.abs(X) @ np.abs(self.A).T
        slack = _ROUNDING * (size + np.where(self.is_equation, np.abs(self.low), 0.0))
        if strict:
            slack[:, ~self.is_equation] = 0.0
        return ((value >= self.low - slack) & (value <= self.high + slack)).all(axis=1)

    def holds(self, X, strict=False):
        """Which points satisfy all constraints.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
            In the user's units.
        strict : bool, default=False
            Whether inequalities have to hold to the last digit; equations never have to.

        Returns
        -------
        bool ndarray of shape (n,)

        Raises
        ------
        ValueError
            A function fails, or returns other than its limits are for.
        """
        enough = self.linear_hold(X, strict)
        for one in self.nonlinear:
            rounding = 0.0 if strict else _ROUNDING
            low, high = np.asarray(one.lb, float), np.asarray(one.ub, float)
            for i in np.flatnonzero(enough):
                enough[i] = _satisfied(one.fun, X[i], low, high, rounding)
        return enough


def _satisfied(fun, x, low, high, rounding):
    try:
        value = fun(x.copy())
        if value is None:  # which NumPy takes for NaN
            raise TypeError("it returned None")
        value = np.asarray(value, dtype=float)
        slack = rounding * np.abs(value)
        # NaN satisfies nothing.
        return bool(((value >= low - slack) & (value <= high + slack)).all())
    except Exception as error:
        raise ValueError(
            f"constraints: the function of a NonlinearConstraint fails at x={x.tolist()} "
            f"({type(error).__name__}: {error}). It takes one point, an array of shape "
            f"({len(x)},), and returns as many numbers as it has limits."
        ) from error
