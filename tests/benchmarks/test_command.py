"""``python -m sklearn_asal bench`` on all ten tasks and the real files."""

import csv
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

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
    status = bench("run", "--quick", "--data-home", data_home, "--out", out)
    printed = capsys.readouterr().out
    results = Results(out)
    assert status == bool(results.failures)
    # Policies that are not shipped yet may be missing; nothing else is.
    assert {method for _, method, _ in results.failures} <= {
        "asal",
        "aal",
        "asal-informative",
        "aal-informative",
    }
    for task, suite in TASKS.items():
        methods = {method for name, method, _ in results.records if name == task}
        assert methods >= {"al": {"gp", "random"}, "safe": {"safe-gp", "safe-random"}}[suite]
        assert f"| {task} " in printed
    for (task, method, seed), records in results.records.items():
        assert seed == 0
        assert [record.query for record in records] == [1, 2]
        assert 0 < records[-1].rmse < 3
        if TASKS[task] == "safe":
            assert 0 <= records[-1].safe_share <= 1
        assert f"| {method} " in printed


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
    with (tmp_path / "results.csv").open(newline="") as file:
        cells = [
            (row["task"], row["method"], row["seed"], row["query"]) for row in csv.DictReader(file)
        ]
    assert cells == [("townsend", "asal", s, q) for s in "01" for q in "12"]
    assert bench("report", tmp_path) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h2>townsend</h2>" in page
    assert page.count("<img") == 1


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
    (tmp_path / "my_rig.py").write_text(block)
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


def test_report_of_nothing(tmp_path, capsys):
    assert bench("report", tmp_path) == 1
    assert "holds no benchmark" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [[], ["run"], ["run", "--out", "x", "--tasks", "sinuss"], ["run", "--out", "x", "--jobs", "0"]],
)
def test_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        bench(*arguments)
    assert stop.value.code == 2
    assert "usage:" in capsys.readouterr().err
