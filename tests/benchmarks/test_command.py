"""``python -m sklearn_asal bench`` on all tasks and the real files."""

import csv
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from sklearn_asal.__main__ import main
from sklearn_asal.benchmarks import TASKS
from sklearn_asal.benchmarks.methods import SUITES
from sklearn_asal.benchmarks.results import Results

PAGE = "docs/benchmarks.md"


def bench(*arguments):
    return main(["bench", *map(str, arguments)])


def test_quick_runs_all_tasks(tmp_path, data_home, capsys):
    out = tmp_path / "quick"
    assert bench("run", "--quick", "--data-home", data_home, "--out", out) == 0
    printed = capsys.readouterr().out
    results = Results(out)
    assert results.failures == {}
    assert set(results.records) == {
        (task, method, 0) for task, suite in TASKS.items() for method in SUITES[suite]
    }
    for (task, method, _), records in results.records.items():
        assert re.search(rf"\| {task} +\| {method} ", printed)
        assert [record.query for record in records] == [1, 2]
        assert 0 < records[-1].rmse < 3
        if TASKS[task] == "safe":
            assert records[-1].safe_share in (0, 0.5, 1)
        else:
            assert math.isnan(records[-1].safe_share)


def test_suite_tasks_methods_then_report(tmp_path, policy, capsys):
    options = ("--queries", 2, "--seeds", 2, "--policy", policy(True), "--out", tmp_path)
    assert (
        bench("run", "--suite", "safe", "--tasks", "townsend", "--methods", "asal", *options) == 0
    )
    printed = capsys.readouterr().out
    assert (
        printed.splitlines()[0].split()
        == "| task | method | RMSE | safe share | ms a query |".split()
    )
    assert "townsend | asal" in printed
    with (tmp_path / "results.csv").open(newline="", encoding="utf-8") as file:
        cells = [
            (row["task"], row["method"], row["seed"], row["query"]) for row in csv.DictReader(file)
        ]
    assert cells == [("townsend", "asal", s, q) for s in "01" for q in "12"]
    assert bench("report", tmp_path) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h2>townsend</h2>" in page
    assert page.count("<img") == 1


def test_methods_with_parameters(tmp_path, policy, capsys):
    options = ("--queries", 2, "--seeds", 1, "--policy", policy(True), "--out", tmp_path)
    methods = ("asal:guard=True", "asal:z_scale=2, guard=False", "asal:guard=False")
    assert bench("run", "--tasks", "lobes", "--methods", *methods, *options) == 0
    assert "| asal:guard=False,z_scale=2 " in capsys.readouterr().out
    assert bench("report", tmp_path) == 0
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "RMSE added by the guard" in text
    assert re.search(r"\| ASAL, guard=True .*\| [+-]0\.\d+ ", text)


def test_failures_are_printed(tmp_path, policy, capsys):
    tasks = ("--tasks", "simionescu", "townsend")
    options = ("--queries", 2, "--seeds", 1, "--out", tmp_path, "--policy", policy(True, 3))
    assert bench("run", *tasks, "--methods", "asal", *options) == 1
    printed = capsys.readouterr().out
    assert f"2 of this run's cells failed ({tmp_path / 'failures.csv'})" in printed
    assert (
        "- asal on simionescu, townsend, seed 0: ValueError: X has 2 features, but policy"
        in printed
    )


def test_status_is_that_of_this_run(tmp_path, capsys):
    options = ("--methods", "random", "--queries", 2, "--seeds", 1, "--out", tmp_path)
    assert bench("run", "--tasks", "branin", *options) == 0
    # The folder holds a result, and yet this run has none.
    missing = ("--data-home", tmp_path / "none")
    assert bench("run", "--tasks", "lgbb", *missing, *options) == 1
    printed = capsys.readouterr().out
    assert "1 of this run's cells failed" in printed
    assert "- random on lgbb, seed 0: FileNotFoundError" in printed
    # Nor does that failure matter to the next run.
    assert bench("run", "--tasks", "branin", *options) == 0
    assert "failed" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--suite", "al", "--tasks", "townsend"], "townsend is not of the suite 'al'"),
        (["--tasks", "sinus", "--methods", "asal"], "none of the methods asal fits"),
        (["--tasks", "sinus", "--policy", "no-such-file"], "neither a preset"),
        (["--tasks", "no_such_module:task"], "the module no_such_module cannot be imported"),
    ],
)
def test_bad_arguments(tmp_path, capsys, arguments, message):
    assert bench("run", "--out", tmp_path / "new", *arguments) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_task_of_the_page_on_benchmarks(tmp_path):
    """A real command in the user's folder, whose module the worker processes have to find."""
    root = Path(__file__).parents[2]
    (block,) = re.findall(
        r"```python\n(# my_rig\.py\n.*?)```", (root / PAGE).read_text("utf-8"), re.S
    )
    (tmp_path / "my_rig.py").write_text(block, encoding="utf-8")
    command = [sys.executable, "-m", "sklearn_asal", "bench", "run", "--tasks", "my_rig:oven"]
    options = "--methods random safe-random --queries 2 --seeds 1 --jobs 2 --out out".split()
    done = subprocess.run(
        [*command, *options],
        cwd=tmp_path,
        env=dict(os.environ, PYTHONPATH=str(root)),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    records = Results(tmp_path / "out").records
    assert set(records) == {("oven", "random", 0), ("oven", "safe-random", 0)}
    assert all(0 <= record.safe_share <= 1 for record in records["oven", "safe-random", 0])


def test_interrupt_keeps_finished_cells(tmp_path):
    """A real process, a real Ctrl-C."""
    command = [sys.executable, "-m", "sklearn_asal", "bench", "run", "--out", str(tmp_path)]
    options = "--tasks branin --methods random --queries 2 --seeds 100000".split()
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True) as process:
        try:
            deadline = time.monotonic() + 120
            while not Results(tmp_path).records:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "finished cells are kept" in error
    results = Results(tmp_path)
    assert 0 < len(results.records) < 100_000
    assert results.failures == {}


def test_own_task_gets_the_methods_of_its_suite(tmp_path, capsys):
    task = "tests.benchmarks.synthetic:table_task"
    options = ("--queries", 1, "--seeds", 1, "--out", tmp_path)
    assert bench("run", "--suite", "al", "--tasks", task, *options) == 1
    assert "rows is not of the suite 'al'" in capsys.readouterr().err
    bench("run", "--tasks", task, *options)
    results = Results(tmp_path)
    assert {cell[:2] for cell in [*results.records, *results.failures]} == {
        ("rows", method) for method in SUITES["safe"]
    }


def test_own_task_with_several_limits(tmp_path, capsys):
    methods = "safe-gp", "safe-random", "min-unsafe", "gp", "random"
    options = ("--methods", *methods, "--queries", 4, "--seeds", 2, "--out", tmp_path)
    assert bench("run", "--tasks", "tests.benchmarks.synthetic:two_limits", *options) == 0
    printed = capsys.readouterr().out
    records = Results(tmp_path).records
    assert len(records) == 2 * len(methods)
    for method in methods:
        shares = [records["band", method, seed][-1].safe_share for seed in (0, 1)]
        assert f"| {np.mean(shares):.3f} " in re.search(rf"\| {method} .*", printed)[0]
    assert bench("report", tmp_path) == 0
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    worst = max(records["band", "random", seed][-1].worst_violation for seed in (0, 1))
    assert 0 < worst <= 4
    assert f"| {worst:.2f} " in re.search(r"\| Random .*", text)[0]


# As little as there may be: text is ASCII unless a file says otherwise.
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
SCRIPT = """
import locale, sys, warnings
warnings.filterwarnings("error", category=EncodingWarning, module="sklearn_asal")
from sklearn_asal.benchmarks import latency, run_cells
from sklearn_asal.benchmarks.report import report
from sklearn_asal.benchmarks.results import Results
from sklearn_asal.datasets import load_airfoil, load_airline, load_fluid_system, load_lgbb
from tests.benchmarks.synthetic import Sequence, task

assert "utf" not in locale.getpreferredencoding(False).lower()
folder, data_home = sys.argv[1:]
for load in (load_airfoil, load_airline, load_lgbb, load_fluid_system):
    load(data_home=data_home)
error = RuntimeError("h\\u00e4ngt \\u2264 \\u4e2d")
run_cells(folder, [task()], {"m": Sequence(fails_at=1, error=error)}, 2)
assert Results(folder).failures == {("wave", "m", 1): f"RuntimeError: {error}"}
report(folder)
latency._memory()
"""


def test_files_are_utf_8_whatever_the_locale(tmp_path, data_home):
    root = Path(__file__).parents[2]
    command = [sys.executable, "-X", "warn_default_encoding", "-c", SCRIPT, tmp_path, data_home]
    done = subprocess.run(
        list(map(str, command)),
        cwd=root,
        env={**os.environ, **ASCII},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    for name in ("failures.csv", "report.md", "report.html"):
        assert "hängt ≤ 中" in (tmp_path / name).read_text(encoding="utf-8")


def test_report_of_nothing(tmp_path, capsys):
    assert bench("report", tmp_path) == 1
    assert "holds no benchmark" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["run"],
        ["run", "--out", "x", "--tasks", "sinuss"],
        ["run", "--out", "x", "--methods", "asal:guards=True"],
        ["run", "--out", "x", "--jobs", "0"],
    ],
)
def test_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        bench(*arguments)
    assert stop.value.code == 2
    assert "usage:" in capsys.readouterr().err
