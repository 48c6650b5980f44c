"""Errors and warnings of the package."""

import math
import os
import sys
import warnings
from collections.abc import Sequence

from ._typing import FloatArray

__all__ = [
    "BudgetExhaustedError",
    "DataScaleWarning",
    "NoSafeCandidateError",
    "PolicyFileError",
    "PolicyNotFoundError",
    "PoolExhaustedError",
    "SafetyWarning",
]


class PolicyNotFoundError(ValueError):
    """Neither a shipped policy nor a file."""


class PolicyFileError(ValueError):
    """A policy file is damaged, foreign or of the wrong kind."""


class BudgetExhaustedError(ValueError):
    """More queries are asked for than the budget has left."""


class PoolExhaustedError(ValueError):
    """Nothing is left to be proposed, of a candidate pool or of features that take some values."""


class NoSafeCandidateError(ValueError):
    """No candidate is safe with the required probability.

    Parameters
    ----------
    candidate : array-like of shape (n_features,)
        The least unsafe candidate. A querier raises this error with a point of
        the unit cube; :meth:`BaseQuerier.query` turns it into the user's units.
    probability : float
        Its probability of being safe. NaN where no measurement is safe, so that nothing is
        proposed at all; the candidate is the least unsafe measurement then.
    required : float
        The probability asked for; NaN likewise.
    rule : str, optional
        What safe means.
    """

    def __init__(
        self,
        candidate: Sequence[float] | FloatArray,
        probability: float,
        required: float,
        rule: str | None = None,
    ) -> None:
        # All arguments go to args, so that the error survives pickling (joblib workers).
        super().__init__(candidate, probability, required, rule)
        self.candidate = candidate
        self.probability = probability
        self.required = required
        self.rule = rule

    def __str__(self) -> str:
        point = ", ".join(f"{value:.6g}" for value in self.candidate)
        rule = f" ({self.rule})" if self.rule else ""
        if math.isnan(self.probability):
            return (
                f"no measurement is safe{rule}; the least unsafe one is x = ({point}). Measure "
                "something safe to begin with, or check safety_threshold and safe_when. "
                "on_no_safe='least_unsafe' proposes a point all the same."
            )
        return (
            f"no candidate is safe with probability {self.required:.4g}{rule}. The least unsafe "
            f"one is x = ({point}), safe with probability {self.probability:.4g}. Measure more "
            "points known to be safe, check safety_threshold and safe_when (and z_scale, of a "
            "policy by name), or accept more risk, by a larger gamma or on_no_safe='least_unsafe'."
        )


class DataScaleWarning(UserWarning):
    """Data, or the budget, are outside what a querier was made for: bounds, scale, plan."""


class SafetyWarning(UserWarning):
    """Safety is in doubt: nothing measured or proposed is safe, or the signal says too little."""


def warn_user(message, category):
    """Warn at the line outside the package that led here, however deep the call."""
    package = os.path.dirname(__file__) + os.sep
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
