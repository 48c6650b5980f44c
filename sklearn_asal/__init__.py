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
from .gp import GPQuerier, GPSafeQuerier
from .pool import CandidatePool
from .random import RandomQuerier

__version__ = "0.1.0"

__all__ = [
    "AmortizedQuerier",
    "AmortizedSafeQuerier",
    "BudgetExhaustedError",
    "CandidatePool",
    "DataScaleWarning",
    "GPQuerier",
    "GPSafeQuerier",
    "NoSafeCandidateError",
    "PolicyFileError",
    "PolicyNotFoundError",
    "PoolExhaustedError",
    "RandomQuerier",
    "SafetyWarning",
]
