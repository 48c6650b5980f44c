"""Cells, restarts, failures and processes."""

import csv
import errno
import itertools
import json
import signal
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sklearn

from sklearn_asal import AmortizedSafeQuerier
from sklearn_asal.benchmarks import runner
from sklearn_asal.benchmarks.methods import METHODS, SUITES, make
from sklearn_asal.benchmarks.results import COLUMNS, Results
from sklearn_asal.benchmarks.runner import _identity, run_cells
from sklearn_asal.benchmarks.tasks import TASKS, get_task
from sklearn_asal.surrogates import SparseGP

from ..common import BestSafeQuerier, UniformQuerier
from ..datasets.settings import SETTINGS
from .synthetic import Sequence, Timid, table_task, task, two_limits


def rows(folder, name="results.csv", without=()):
    with (folder / name).open(newline="", encoding="utf-8") as file:
        return [{k: v for k, v in row.items() if k not in without} for row in csv.DictReader(file)]


@pytest.fixture
def calls():
    """Counts the queries of ``Sequence`` in this process."""
    Sequence.calls = 0
    return lambda: Sequence.calls


def test_results_do_not_depend_on_the_number_of_jobs(tmp_path):
    methods = {"safe-gp": None, "best": BestSafeQuerier(), "mine": Sequence(fails_at=1)}
    for jobs in (1, 2):
        cases = [task(noise=0.1), "simionescu"]
        run_cells(tmp_path / str(jobs), cases, methods, 2, jobs=jobs, n_queries=3)
    one, two = (rows(tmp_path / name, without=["seconds"]) for name in "12")
    # Seed 1 of "mine" fails on both tasks; its n_init is not that of the second.
    assert len(one) == 2 * 2 * 2 * 3 + 3
    assert one == two
    assert rows(tmp_path / "1", "failures.csv") == rows(tmp_path / "2", "failures.csv")


def test_columns_and_order(tmp_path):
    methods = {"b": Sequence(), "a": UniformQuerier()}
    results = run_cells(tmp_path, [task()], methods, 2, every=2)
    table = rows(tmp_path)
    assert tuple(table[0]) == COLUMNS
    assert COLUMNS[:8] == (
        *("task", "method", "seed", "query"),
        *("rmse", "safe_share", "worst_violation", "seconds"),
    )
    cells = [(row["method"], row["seed"], row["query"]) for row in table]
    assert cells == [(m, s, q) for m in "ab" for s in "01" for q in "123"]
    assert [row["rmse"] == "" for row in table[-3:]] == [True, False, False]
    assert [float(row["safe_share"]) for row in table[-3:]] == [1, 1 / 2, 2 / 3]
    again = Results(tmp_path)
    assert repr(sorted(again.records.items())) == repr(sorted(results.records.items()))
    assert again.settings == results.settings
    assert rows(tmp_path, "failures.csv") == []
    assert not list(tmp_path.glob("*.part"))


def test_finished_cells_are_kept_and_skipped(tmp_path, calls):
    run_cells(tmp_path, [task()], {"mine": Sequence()}, seeds=2)
    assert calls() == 2 * 3
    before = rows(tmp_path)
    run_cells(tmp_path, [task()], {"mine": Sequence()}, seeds=2)
    assert calls() == 2 * 3
    assert rows(tmp_path) == before
    # One more seed of the first task, three of the second.
    rows_task = replace(table_task(), n_queries=3)
    run_cells(tmp_path, [task(), rows_task], {"mine": Sequence()}, seeds=3)
    assert calls() == 3 * 3 + 3 * 3
    assert rows(tmp_path)[-6 - 3 : -3] == before


def test_killed_run_goes_on_where_it_stopped(tmp_path, calls):
    mended = tmp_path / "mended"
    killed = Sequence(fails_at=2, error=KeyboardInterrupt(), mended=str(mended))
    with pytest.raises(KeyboardInterrupt):
        run_cells(tmp_path, [task()], {"mine": killed}, seeds=4)
    mended.touch()
    assert {row["seed"] for row in rows(tmp_path)} == {"0", "1"}
    Sequence.calls = 0
    run_cells(tmp_path, [task()], {"mine": killed}, seeds=4)
    assert calls() == 2 * 3
    whole = run_cells(tmp_path / "whole", [task()], {"mine": Sequence()}, seeds=4)
    assert rows(whole.folder, without=["seconds"]) == rows(tmp_path, without=["seconds"])


class InDestructor:
    """Is interrupted where Python drops the exception."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


class Interrupted(Sequence):
    """Sends an interrupt when its random state is ``at``, within a destructor or not."""

    def __init__(self, at=2, hidden=True, n_init=2, bounds=None, budget=None, random_state=None):
        super().__init__(n_init=n_init, bounds=bounds, budget=budget, random_state=random_state)
        self.at = at
        self.hidden = hidden

    def fit(self, X, y, z=None):
        if self.random_state == self.at:
            if self.hidden:
                InDestructor()
            else:
                signal.raise_signal(signal.SIGINT)
        return super().fit(X, y, z)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("hidden", [True, False])
def test_interrupt_ends_the_run_after_one_cell_at_most(tmp_path, hidden):
    Interrupted.calls = 0
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run_cells(tmp_path, [task()], {"mine": Interrupted(hidden=hidden)}, seeds=100_000)
    assert Interrupted.calls == (3 if hidden else 2) * 3
    assert {row["seed"] for row in rows(tmp_path)} == {"0", "1", *(["2"] if hidden else [])}
    assert Results(tmp_path).failures == {}
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_other_handlers_of_interrupts_stay(tmp_path, handler):
    before = signal.signal(signal.SIGINT, handler)
    try:
        run_cells(tmp_path, [task()], {"mine": Sequence()}, seeds=1)
        assert signal.getsignal(signal.SIGINT) is handler
        if handler is signal.SIG_IGN:
            run_cells(tmp_path, [task()], {"i": Interrupted(0, hidden=False)}, seeds=2)
    finally:
        signal.signal(signal.SIGINT, before)


def test_run_in_another_thread(tmp_path):
    arguments = tmp_path, [task()], {"mine": Sequence()}, 2
    thread = threading.Thread(target=run_cells, args=arguments)
    thread.start()
    thread.join()
    assert len(Results(tmp_path).records) == 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_cells_are_submitted_a_few_at_a_time(tmp_path, monkeypatch, jobs):
    submitted = []

    def counted(function):
        submitted.append(function)
        return delayed(function)

    delayed = runner.delayed
    monkeypatch.setattr(runner, "delayed", counted)
    killed = Sequence(fails_at=4, error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        run_cells(tmp_path, [task()], {"mine": killed}, seeds=100_000, jobs=jobs)
    # Some cells of the few milliseconds that these take go to a process together.
    assert len(submitted) <= (5 if jobs == 1 else 500)


def test_ray_is_handed_a_few_cells_at_a_time(monkeypatch):
    class Parallel:
        def __call__(self, calls):
            return [function(*arguments) for function, arguments, _ in calls]

    monkeypatch.setattr(runner, "Parallel", Parallel)
    calls = (runner.delayed(int)(number) for number in range(100_000))
    assert list(itertools.islice(runner._finished(calls, "ray", 2), 9)) == list(range(9))
    assert next(calls)[1][0] <= 9 + 8


@pytest.mark.parametrize("jobs", [1, 2])
def test_failed_cell_is_recorded_and_the_rest_goes_on(tmp_path, jobs):
    mended = tmp_path / "mended"
    mine = Sequence(fails_at=1, mended=str(mended))
    results = run_cells(tmp_path, [task()], {"mine": mine}, seeds=3, jobs=jobs)
    assert results.failed == [("wave", "mine", 1)]
    assert {row["seed"] for row in rows(tmp_path)} == {"0", "2"}
    assert rows(tmp_path, "failures.csv") == [
        {"task": "wave", "method": "mine", "seed": "1", "error": "RuntimeError: no | <luck>"}
    ]
    # It is tried again; other cells' failures stay.
    results = run_cells(tmp_path, [task()], {"other": Sequence(fails_at=0)}, seeds=1)
    assert results.failed == [("wave", "other", 0)]
    assert len(rows(tmp_path, "failures.csv")) == 2
    mended.touch()
    results = run_cells(tmp_path, [task()], {"mine": mine}, seeds=3)
    assert results.failed == []
    assert {row["seed"] for row in rows(tmp_path)} == {"0", "1", "2"}
    assert list(results.failures) == [("wave", "other", 0)]


def test_missing_file_fails_its_own_cells_only(tmp_path):
    tasks = ["lgbb", "branin"]
    results = run_cells(
        tmp_path, tasks, {"u": UniformQuerier()}, 1, n_queries=2, data_home=tmp_path
    )
    assert list(results.records) == [("branin", "u", 0)]
    assert "lgbb_original.txt is not in the data folder" in results.failures["lgbb", "u", 0]


def test_forced_queries_survive_the_file(tmp_path):
    run_cells(tmp_path, [task()], {"timid": Timid(), "bold": Sequence()}, 1)
    records = Results(tmp_path).records
    assert [r.forced for r in records["wave", "timid", 0]] == [True] * 3
    assert [r.forced for r in records["wave", "bold", 0]] == [False] * 3


def test_safe_methods_are_left_out_where_there_is_no_safety(tmp_path):
    methods = {"best": BestSafeQuerier(), "uniform": UniformQuerier()}
    results = run_cells(tmp_path, ["sinus", task()], methods, 1, n_queries=2)
    assert set(results.records) == {
        ("sinus", "uniform", 0),
        ("wave", "best", 0),
        ("wave", "uniform", 0),
    }
    with pytest.raises(ValueError, match=r"none of the methods asal fits a task of sinus, branin"):
        run_cells(tmp_path, ["sinus", "branin"], ["asal"])


def test_a_folder_holds_one_kind_of_results(tmp_path, policy):
    run_cells(tmp_path, [task()], {"u": UniformQuerier()}, 1, n_queries=2)
    with pytest.raises(ValueError, match="holds results with n_queries=2, but now n_queries is 3"):
        run_cells(tmp_path, [task()], {"u": UniformQuerier()}, 2, n_queries=3)
    assert len(rows(tmp_path)) == 2
    # A policy matters where methods that use it have finished.
    options = {"seeds": 1, "n_queries": 2}
    run_cells(tmp_path, ["simionescu"], ["asal"], policy=policy(True), **options)
    assert len(rows(tmp_path)) == 4
    other = tmp_path / "other.safetensors"
    other.write_bytes(Path(policy(True, 3)).read_bytes())
    with pytest.raises(ValueError, match="policy="):
        run_cells(tmp_path, ["townsend"], ["asal"], policy=other, **options)
    assert json.loads((tmp_path / "settings.json").read_text(encoding="utf-8"))["n_queries"] == 2


@pytest.mark.parametrize("name", sorted(runner._WITH_POLICY))
def test_a_method_stands_for_one_policy(tmp_path, policy, name):
    case = "simionescu" if METHODS[name].safe else "branin"
    options = {"tasks": [case], "methods": [name], "n_queries": 2}
    results = run_cells(tmp_path, seeds=1, policy=policy(METHODS[name].safe, 2), **options)
    assert list(results.records) == [(case, name, 0)]
    with pytest.raises(ValueError, match="holds results with policy="):
        run_cells(tmp_path, seeds=2, **options)


def test_a_name_stands_for_one_querier(tmp_path):
    options = {"seeds": 1, "n_queries": 2}
    run_cells(tmp_path, [task()], {"mine": Sequence(), "u": UniformQuerier()}, **options)
    before = rows(tmp_path)
    for other in (Sequence((0.3, 0.2)), UniformQuerier()):
        with pytest.raises(ValueError, match=r"holds results with mine=.*\.Sequence\(.*but now"):
            run_cells(tmp_path, [task()], {"mine": other}, **options)
    assert rows(tmp_path) == before
    # A run without it does not forget it.
    run_cells(tmp_path, [task()], {"new": UniformQuerier()}, **options)
    with pytest.raises(ValueError, match="holds results with mine="):
        run_cells(tmp_path, [task()], {"mine": UniformQuerier()}, **options)
    assert run_cells(tmp_path, [task()], {"mine": Sequence()}, **options).failed == []


def test_a_name_stands_for_one_task(tmp_path):
    mine, options = {"u": UniformQuerier()}, {"seeds": 1, "n_queries": 2}
    run_cells(tmp_path, [task()], mine, **options)
    changed = task(n_init=3)
    with pytest.raises(ValueError, match=r"holds results with wave=.Task\(.*n_init=2.*but now"):
        run_cells(tmp_path, [changed], mine, **options)
    # A run without it does not forget it.
    run_cells(tmp_path, ["branin"], mine, **options)
    with pytest.raises(ValueError, match="holds results with wave="):
        run_cells(tmp_path, [changed], mine, **options)
    with pytest.raises(ValueError, match="more than one is named 'wave'"):
        run_cells(tmp_path, [task(), task()], mine, **options)


def test_folder_of_a_version_that_did_not_record_tasks(tmp_path):
    mine, options = {"u": UniformQuerier()}, {"seeds": 1, "n_queries": 2}
    run_cells(tmp_path, [task()], mine, **options)
    path = tmp_path / "settings.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    del settings["tasks"]
    path.write_text(json.dumps(settings), encoding="utf-8")
    run_cells(tmp_path, [task()], mine, **options)
    assert "n_init=2" in json.loads(path.read_text(encoding="utf-8"))["tasks"]["wave"]


def test_task_by_address(tmp_path):
    address = f"{table_task.__module__}:table_task"
    results = run_cells(tmp_path, [address], {"u": UniformQuerier()}, 1, n_queries=2)
    assert list(results.records) == [("rows", "u", 0)]


def test_queriers_are_told_apart_by_all_their_parameters():
    long = np.zeros(2000)
    other = long.copy()
    other[1000] = 1
    texts = [_identity(Sequence(points)) for points in (long, other, long.copy())]
    assert texts[0] != texts[1]
    assert texts[0] == texts[2]
    # Objects without a repr of their own: equal in every process.
    assert _identity(Sequence(error=object())) == _identity(Sequence(error=object()))


@pytest.mark.parametrize("setting", [*SETTINGS, "everything of an estimator is printed"])
def test_queriers_are_told_apart_whatever_is_printed(setting):
    def texts():
        values = 0.1 + 1e-12 * np.arange(4)
        queriers = [Sequence(points) for points in (*values, values, values + 1e-12)]
        return [_identity(querier) for querier in [*queriers, Sequence(Sequence(values))]]

    expected = texts()
    assert len(set(expected)) == len(expected)
    printed = sklearn.config_context(print_changed_only=False)
    with SETTINGS.get(setting, lambda: printed)():
        assert texts() == expected


class Entering(Sequence):
    """Starts another run into the same folder."""

    def __init__(self, folder="", n_init=2, bounds=None, budget=None, random_state=None):
        super().__init__(n_init=n_init, bounds=bounds, budget=budget, random_state=random_state)
        self.folder = folder

    def fit(self, X, y, z=None):
        run_cells(self.folder, [task()], {"u": UniformQuerier()}, 1)
        return super().fit(X, y, z)


def test_one_run_at_a_time(tmp_path):
    results = run_cells(tmp_path, [task()], {"e": Entering(str(tmp_path)), "s": Sequence()}, 1)
    assert list(results.records) == [("wave", "s", 0)]
    message = results.failures["wave", "e", 0]
    assert message.startswith(f"RuntimeError: another run is using the folder {tmp_path} (--out)")
    # And free again afterwards, also after an error.
    with pytest.raises(ValueError, match="but now every is 2"):
        run_cells(tmp_path, [task()], {"s": Sequence()}, 1, every=2)
    run_cells(tmp_path, [task()], {"u": UniformQuerier()}, 1)
    assert {method for _, method, _ in Results(tmp_path).records} == {"s", "u"}


def test_a_killed_run_frees_its_folder(tmp_path):
    code = (
        "import sys, time; from sklearn_asal.benchmarks.results import locked\n"
        "with locked(sys.argv[1]): print('in', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout.readline().strip() == b"in"
            with pytest.raises(RuntimeError, match="another run is using the folder"):
                run_cells(tmp_path, [task()], {"u": UniformQuerier()}, 1)
            assert not (tmp_path / "results.csv").exists()
        finally:
            other.kill()
    assert len(run_cells(tmp_path, [task()], {"u": UniformQuerier()}, 1).records) == 1


def test_file_system_without_locks(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.warns(UserWarning, match=r"cannot be locked .*No locks available"):
        results = run_cells(tmp_path, [task()], {"u": UniformQuerier()}, 1)
    assert len(results.records) == 1


def test_messages(tmp_path):
    mine = {"u": UniformQuerier()}
    with pytest.raises(ValueError, match=r"tasks must be out of sinus, .*; got 'sinuss'"):
        run_cells(tmp_path / "new", ["sinuss"], mine)
    with pytest.raises(ValueError, match=r"methods must be out of asal, .*; got 'u'"):
        run_cells(tmp_path / "new", [task()], ["u"])
    with pytest.raises(ValueError, match=r"backend must be one of loky, dask, ray; got 'mpi'"):
        run_cells(tmp_path / "new", [task()], mine, backend="mpi")
    for name in ("seeds", "jobs", "every", "n_queries", "pool_size"):
        with pytest.raises(ValueError, match=f"{name} == 0"):
            run_cells(tmp_path / "new", [task()], mine, **{name: 0})
    with pytest.raises(FileNotFoundError, match="policy: there is no file"):
        run_cells(tmp_path / "new", [task()], mine, policy=tmp_path / "none")
    with pytest.raises(ValueError, match="'gp' is the name of a method of this package"):
        run_cells(tmp_path / "new", [task()], {"gp": UniformQuerier()})
    assert not (tmp_path / "new").exists()
    (tmp_path / "results.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"results\.csv without settings\.json"):
        run_cells(tmp_path, [task()], mine)
    (tmp_path / "settings.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(ValueError, match="not a benchmark's"):
        run_cells(tmp_path, [task()], mine)


@pytest.mark.parametrize(("backend", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_optional_backends(tmp_path, monkeypatch, backend, package):
    for module in ("distributed", "ray", "ray.util.joblib"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"backend '{backend}' needs the package {package}"):
        run_cells(tmp_path, [task()], {"u": UniformQuerier()}, backend=backend)


def test_every_task_has_a_suite_of_methods():
    assert set(TASKS.values()) == set(SUITES)
    own = [name for name, method in METHODS.items() if not method.extra and method.in_suite]
    assert sorted([*SUITES["al"], *SUITES["safe"]]) == sorted(own)
    assert set(own) == set(
        "asal asal-any safe-ensemble safe-gp safe-svgp safe-mgp min-unsafe safe-random "
        "aal aal-any ensemble gp svgp mgp random".split()
    )


@pytest.mark.parametrize("name", [*SUITES["al"], *SUITES["safe"]])
def test_methods_are_queriers(name):
    querier = make(name, task(n_init=1))
    assert hasattr(querier, "safety_threshold") is METHODS[name].safe
    assert name in SUITES["safe" if METHODS[name].safe else "al"]


def test_sparse_models_have_the_paper_s_numbers_of_inducing_points(data_home):
    for name, n_inducing in {"townsend": 15, "safe-lgbb": 15, "engine": 20, "fluid": 20}.items():
        case = get_task(name, data_home, pool_size=100)
        surrogate = make("safe-svgp", case).surrogate
        surrogate = SparseGP() if surrogate == "sparse" else surrogate
        assert surrogate.n_inducing == n_inducing


def test_policy_and_tolerance_reach_the_querier(policy):
    querier = make("asal", task(), policy(True))
    assert isinstance(querier, AmortizedSafeQuerier)
    assert querier.policy == policy(True)
    assert make("aal", task()).policy == "1d"
    assert make("asal", get_task("simionescu")).policy == "2d"
    case = replace(task(), gamma=0.2)
    for name in ("asal", "safe-gp", "min-unsafe", "safe-ensemble"):
        assert make(name, case).gamma == 0.2


@pytest.mark.parametrize("name", ["asal-any", "aal-any"])
def test_the_policy_for_any_system_is_the_shipped_one(policy, name):
    """With its own tolerance, whatever the policy of the other methods and the task's gamma."""
    querier = make(name, replace(two_limits(), gamma=0.2), policy(METHODS[name].safe))
    assert querier.policy == "any"
    assert getattr(querier, "gamma", None) is None


def test_methods_for_any_system_have_results_with_every_policy(tmp_path, policy):
    options = {"tasks": ["simionescu"], "methods": ["asal-any"], "n_queries": 2}
    run_cells(tmp_path, seeds=1, policy=policy(True), **options)
    results = run_cells(tmp_path, seeds=2, **options)
    assert list(results.records) == [("simionescu", "asal-any", seed) for seed in (0, 1)]


class Alarming(Sequence):
    """Warns in each campaign."""

    def fit(self, X, y, z=None):
        warnings.warn("the rig is hot", UserWarning, stacklevel=1)
        return super().fit(X, y, z)


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_the_program_around_do_not_matter(tmp_path, setting):
    methods = {
        **{name: None for name in ("asal", "safe-gp", "safe-random")},
        "mine": Sequence(n_init=5, fails_at=1),
        "alarming": Alarming(n_init=5),
        "best": BestSafeQuerier(),
    }
    cases = [
        replace(two_limits(noise=0.1), n_init=5),
        "simionescu",
        replace(table_task(n_init=5), n_queries=3),
    ]

    def results(folder):
        run_cells(folder, cases, methods, 2, n_queries=3)
        failures = {
            (row["task"], row["method"], row["seed"]): row["error"]
            for row in rows(folder, "failures.csv")
        }
        return rows(folder, without=["seconds"]), failures

    expected = results(tmp_path / "plain")
    assert ("simionescu", "mine", "1") in expected[1]
    assert not any("alarming" in cell for cell in expected[1])
    with SETTINGS[setting]():
        assert results(tmp_path / "other") == expected
        # The folder is taken for that of the same methods and tasks.
        again = run_cells(tmp_path / "plain", cases, methods, 2, n_queries=3)
    assert len(again.failed) == len(expected[1])
