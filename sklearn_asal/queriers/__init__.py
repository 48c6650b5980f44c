"""Queriers: what proposes the next experiment."""

from .amortized import AmortizedQuerier, AmortizedSafeQuerier
from .gp import GPQuerier, GPSafeQuerier
from .guard import SafetyGuard
from .lipschitz import LipschitzBound
from .random import RandomQuerier

__all__ = [
    "AmortizedQuerier",
    "AmortizedSafeQuerier",
    "GPQuerier",
    "GPSafeQuerier",
    "LipschitzBound",
    "RandomQuerier",
    "SafetyGuard",
]
