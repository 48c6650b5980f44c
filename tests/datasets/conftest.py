"""Where the tests find the data files, which the project never holds."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


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
