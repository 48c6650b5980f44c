"""Packages that are not installed."""

import re
from pathlib import Path

import pytest

from sklearn_asal.adapters.optional import PACKAGES, adapter, missing
from sklearn_asal.benchmarks import run_cells
from sklearn_asal.benchmarks.methods import METHODS, SUITES

from .packages import without

EXTERNAL = {name: method.extra for name, method in METHODS.items() if method.extra}


@pytest.mark.parametrize("extra", PACKAGES)
def test_error_names_the_extra(monkeypatch, extra):
    without(monkeypatch, extra)
    with pytest.raises(ImportError, match=re.escape(f"pip install 'sklearn-asal[{extra}]'")):
        adapter(extra)


@pytest.mark.parametrize("method", EXTERNAL)
def test_a_benchmark_says_so_before_it_begins(monkeypatch, tmp_path, method):
    without(monkeypatch, EXTERNAL[method])
    with pytest.raises(ImportError, match=re.escape(str(missing(EXTERNAL[method])))):
        run_cells(tmp_path, ["branin"], [method], seeds=1, progress=False)
    assert not (tmp_path / "results.csv").exists()


def test_methods_of_other_packages_are_run_on_demand_only():
    assert set(EXTERNAL.values()) == {"botorch", "skactiveml", "modal"}
    assert not set(EXTERNAL) & {name for suite in SUITES.values() for name in suite}


@pytest.mark.parametrize("extra", PACKAGES)
def test_every_extra_is_one_of_the_package(extra):
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\n{extra} = ["{PACKAGES[extra][1]}>=' in text
