"""Fixtures that several test modules share."""

import os
from pathlib import Path

import pytest

# Small problems gain nothing from threads, and on busy machines lose much by them.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from .common import QUERIERS, policy_file

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def data_home():
    """Folder of the data files: SKLEARN_ASAL_DATA, else shared/data beside the repository.

    Without it the tests skip; in CI they fail, so that a lost folder is not taken for success.
    """
    folder = os.environ.get("SKLEARN_ASAL_DATA") or REPOSITORY.parent / "shared" / "data"
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        message = f"no data folder at {folder}; set SKLEARN_ASAL_DATA"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(message)
        pytest.skip(message)
    return folder


@pytest.fixture(scope="session")
def policy():
    """``policy(safe, n_features)`` is the path of an untrained policy."""
    return policy_file


@pytest.fixture(params=QUERIERS)
def make(request):
    """A constructor of each querier; takes the querier's parameters."""
    return QUERIERS[request.param]


@pytest.fixture(params=[name for name in QUERIERS if "Safe" in name])
def make_safe(request):
    """A constructor of each safe querier."""
    return QUERIERS[request.param]
