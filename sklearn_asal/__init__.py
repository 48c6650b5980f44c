"""Pretrained policies that pick the next safe and informative experiment."""

from .exceptions import (
    BudgetExhaustedError,
    DataScaleWarning,
    NoSafeCandidateError,
    PolicyFileError,
    PolicyNotFoundError,
    PoolExhaustedError,
    SafetyWarning,
)
from .learner import ActiveLearner
from .log import CampaignLog
from .pool import CandidatePool
from .queriers import (
    AmortizedQuerier,
    AmortizedSafeQuerier,
    GPQuerier,
    GPSafeQuerier,
    LipschitzBound,
    RandomQuerier,
    SafetyGuard,
)
from .space import Grid, Integer, Log

__version__ = "0.1.0"

__all__ = [
    "ActiveLearner",
    "AmortizedQuerier",
    "AmortizedSafeQuerier",
    "BudgetExhaustedError",
    "CampaignLog",
    "CandidatePool",
    "DataScaleWarning",
    "GPQuerier",
    "GPSafeQuerier",
    "Grid",
    "Integer",
    "LipschitzBound",
    "Log",
    "NoSafeCandidateError",
    "PolicyFileError",
    "PolicyNotFoundError",
    "PoolExhaustedError",
    "RandomQuerier",
    "SafetyGuard",
    "SafetyWarning",
]
