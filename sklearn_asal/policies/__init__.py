"""Policy networks and their files."""

from .checkpoint import read_header, save_policy
from .registry import load_policy, shipped

__all__ = ["load_policy", "read_header", "save_policy", "shipped"]
