"""Pretrained policies that pick the next safe and informative experiment."""

from .amortized import AmortizedQuerier, AmortizedSafeQuerier
from .exceptions import (
    BudgetExhaustedError,
    DataScaleWarning,
    NoSafeCandidateError,
    PolicyFileError,
    PolicyNotFoundError,
    PoolExhaustedError,
    SafetyWarning,
)
from .pool import CandidatePool

__version__ = "0.1.0"

__all__ = [
    "AmortizedQuerier",
    "AmortizedSafeQuerier",
    "BudgetExhaustedError",
    "CandidatePool",
    "DataScaleWarning",
    "NoSafeCandidateError",
    "PolicyFileError",
    "PolicyNotFoundError",
    "PoolExhaustedError",
    "SafetyWarning",
]
