"""Strategies of other packages as methods of the benchmark."""

import pytest

from sklearn_asal.__main__ import main
from sklearn_asal.benchmarks import get_task, run
from sklearn_asal.benchmarks.methods import METHODS, make
from sklearn_asal.benchmarks.results import Results

from .packages import needed

for module in ("skactiveml", "modAL", "botorch"):
    needed(module)

EXTERNAL = [name for name, method in METHODS.items() if method.extra]


def test_bench_run_and_report(tmp_path, capsys):
    methods = [name for name in EXTERNAL if name != "botorch"]
    options = ["--tasks", "simionescu", "--seeds", "1", "--queries", "2", "--out", str(tmp_path)]
    assert main(["bench", "run", "--methods", *methods, *options]) == 0
    assert set(Results(tmp_path).records) == {("simionescu", name, 0) for name in methods}
    printed = capsys.readouterr().out
    assert all(name in printed for name in methods)
    assert main(["bench", "report", str(tmp_path)]) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(METHODS[name].label in page for name in methods)


@pytest.mark.parametrize("name", EXTERNAL)
def test_campaign(name):
    querier = make(name, get_task("branin"))
    if name == "botorch":
        querier.set_params(n_points=16, num_restarts=1, raw_samples=4)
    records = run(querier, "branin", 0, 1)
    assert records[0].rmse > 0
