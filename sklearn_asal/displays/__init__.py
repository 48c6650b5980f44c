"""Figures in scikit-learn's style: a display holds what is drawn, and ``plot`` draws it."""

from .campaign import CampaignDisplay
from .comparison import ComparisonDisplay
from .progress import ProgressDisplay
from .safety import SafetyDisplay

__all__ = ["CampaignDisplay", "ComparisonDisplay", "ProgressDisplay", "SafetyDisplay"]
