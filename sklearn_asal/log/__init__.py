"""Campaigns on disk: an append-only log, and queriers that go on from it."""

from .file import CampaignLog

__all__ = ["CampaignLog"]
