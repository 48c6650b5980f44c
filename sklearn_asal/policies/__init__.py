"""Policy networks and their files."""

from .checkpoint import load_policy, read_header, save_policy, shipped

__all__ = ["load_policy", "read_header", "save_policy", "shipped"]
