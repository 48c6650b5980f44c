"""Packages that adapters are for: tests skip without them, but not in CI."""

import importlib
import os
import sys

import pytest

from sklearn_asal.adapters.optional import PACKAGES


def needed(module):
    """Import a package of the test extra; skip the tests of a module that lacks it."""
    if os.environ.get("CI", "").lower() == "true":
        return importlib.import_module(module)
    return pytest.importorskip(module)


def without(monkeypatch, extra):
    """As if the package of an extra were not installed."""
    module = PACKAGES[extra][0]
    for name in [*sys.modules]:
        if name == module or name.startswith(f"{module}."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"sklearn_asal.adapters.{extra}", raising=False)
