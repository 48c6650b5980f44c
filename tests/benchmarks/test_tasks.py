"""The tasks: their sizes, their splits, and what measuring them returns."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from sklearn_asal.benchmarks import TASKS, Task, get_task
from sklearn_asal.benchmarks.sources import TrajectorySource
from sklearn_asal.datasets import (
    Function,
    edge,
    fluid_system,
    load_airfoil,
    load_airline,
    load_engine,
    load_lgbb,
    lobes,
    simionescu,
    sinus,
    townsend,
)

from . import synthetic
from .synthetic import table_task

# Suite, features, initial points, queries, test points and rows of the pool.
SIZES = {
    "sinus": ("al", 1, 1, 20, 50, None),
    "airline": ("al", 1, 1, 20, 50, 144 - 51),
    "branin": ("al", 2, 1, 30, 200, None),
    "lgbb": ("al", 2, 1, 30, 200, 880 - 201),
    "airfoil": ("al", 5, 20, 40, 500, 1503 - 520),
    "simionescu": ("safe", 2, 5, 30, 200, None),
    "townsend": ("safe", 2, 5, 30, 200, None),
    "safe-lgbb": ("safe", 2, 5, 30, 200, 862 - 205),
    "engine": ("safe", 3, 5, 60, 200, 785 - 205),
    "fluid": ("safe", 7, 10, 100, 10_000, 3000),
    "lobes": ("safe", 2, 5, 30, 200, None),
    "edge": ("safe", 2, 5, 30, 200, None),
}
TABLES = {
    "airline": load_airline,
    "lgbb": lambda data_home: load_lgbb(data_home=data_home, safety=False),
    "airfoil": load_airfoil,
    "safe-lgbb": load_lgbb,
    "engine": load_engine,
}


@pytest.fixture(params=list(SIZES))
def name(request):
    return request.param


def unit(task, X):
    low, high = task.bounds.T
    return (X - low) / (high - low)


def test_names():
    assert {name: values[0] for name, values in SIZES.items()} == TASKS


def test_sizes(name, data_home):
    suite, d, n_init, n_queries, n_test, n_pool = SIZES[name]
    task = get_task(name, data_home, pool_size=3000)
    assert (task.name, task.suite, task.n_features) == (name, suite, d)
    assert (task.n_init, task.n_queries, task.n_test) == (n_init, n_queries, n_test)
    assert task.gamma == (0.05 if suite == "safe" else None)
    assert (task.safety_threshold, task.safe_when) == (0.0, "above")
    trial = task.begin(3)
    assert trial.X.shape == (n_init, d)
    assert trial.y.shape == (n_init,)
    assert trial.X_test.shape == (n_test, d)
    assert trial.y_test.shape == (n_test,)
    assert n_pool == (None if trial.pool is None else len(trial.pool))
    for X in (trial.X, trial.X_test, *([] if trial.pool is None else [trial.pool.X])):
        assert (unit(task, X) >= -1e-12).all()
        assert (unit(task, X) <= 1 + 1e-12).all()
    if suite == "al":
        assert trial.z is None
        return
    assert trial.z.shape == (n_init,)
    assert (trial.z >= 0).all()
    distance = abs(unit(task, trial.X) - 0.5).max(axis=1)
    assert (distance <= 0.1 + 1e-9).all() == (name != "engine")


def test_seeds(name, data_home):
    task = get_task(name, data_home, pool_size=3000)
    state = np.random.mtrand._rand.get_state()[1].copy()
    first, again, other = task.begin(7), task.begin(7), task.begin(8)
    np.testing.assert_array_equal(np.random.mtrand._rand.get_state()[1], state)
    for part in ("X", "y", "z", "X_test", "y_test"):
        np.testing.assert_array_equal(getattr(first, part), getattr(again, part))
    assert not np.array_equal(first.X_test, other.X_test)
    if first.pool is not None:
        np.testing.assert_array_equal(first.pool.X, again.pool.X)
        assert not np.array_equal(first.pool.X, other.pool.X)
    x, index = (first.X_test[:2], None) if first.pool is None else (first.pool.X[:2], [0, 1])
    for one, two in zip(first.measure(x, index), again.measure(x, index), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", list(TABLES))
def test_tables_are_split_into_their_rows(name, data_home):
    data = TABLES[name](data_home=data_home)
    task = get_task(name, data_home)
    trial = task.begin(0)
    indices = np.arange(len(trial.pool))
    y, z = trial.measure(trial.pool.X, indices)
    rows = [np.column_stack([trial.X, trial.y]), np.column_stack([trial.X_test, trial.y_test])]
    rows = np.vstack([*rows, np.column_stack([trial.pool.X, y])])
    # All rows, each of them once: what is tested is never asked for.
    expected = np.column_stack([data.data, data.target])
    np.testing.assert_array_equal(rows[np.lexsort(rows.T)], expected[np.lexsort(expected.T)])
    if task.suite == "al":
        assert z is None
        return
    of = {tuple(row): value for row, value in zip(expected, data.safety, strict=True)}
    pool = np.column_stack([trial.pool.X, y])
    np.testing.assert_array_equal(z, [of[tuple(row)] for row in pool])
    tested = rows[task.n_init : task.n_init + task.n_test]
    assert min(of[tuple(row)] for row in tested) >= 0


def test_engine_starts_around_the_median_of_the_safe_rows(data_home):
    data = load_engine(data_home=data_home)
    task = get_task("engine", data_home)
    safe = unit(task, data.data[data.safety >= 0])
    assert abs(safe - 0.5).max(axis=1).min() > 0.1  # none in the centre
    starts = [unit(task, task.begin(seed).X) for seed in range(10)]
    assert max(abs(X - np.median(safe, axis=0)).max() for X in starts) <= 0.1 + 1e-9
    assert not np.array_equal(starts[0], starts[1])


def test_functions_are_measured_with_noise_of_a_tenth():
    for task, function in ((get_task("sinus"), sinus()), (get_task("townsend"), townsend())):
        trial = task.begin(0)
        X = function.sample(4000, random_state=1)
        noise = [trial.measure(X)[0] - function.output(X)]
        noise.append(trial.measure(X)[0] - function.output(X))
        if task.suite == "safe":
            noise.append(trial.measure(X)[1] - function.safety(X))
        np.testing.assert_allclose(np.std(noise, axis=1), 0.1, rtol=0.05)
        assert abs(np.corrcoef(noise) - np.eye(len(noise))).max() < 0.06
        # One row, without its second axis.
        assert trial.measure(X[0])[0].shape == (1,)


def test_test_outputs_are_measured_and_test_points_safe():
    function = townsend()
    trials = [get_task("townsend").begin(seed) for seed in range(10)]
    noise = np.concatenate([t.y_test - function.output(t.X_test) for t in trials])
    assert noise.std() == pytest.approx(0.1, rel=0.05)
    assert min(function.safety(t.X_test).min() for t in trials) >= 0


def test_fluid(data_home):
    function = fluid_system(data_home=data_home)
    trial = get_task("fluid", data_home, pool_size=3000).begin(0)
    assert (function.output(trial.X_test) <= 0).all()
    assert (trial.y_test - function.output(trial.X_test)).std() == pytest.approx(0.1, rel=0.05)
    np.testing.assert_array_equal(trial.z, -trial.y)
    y, z = trial.measure(trial.pool.X, np.arange(3000))
    np.testing.assert_array_equal(z, -y)
    assert (y - function.output(trial.pool.X)).std() == pytest.approx(0.1, rel=0.05)
    # Trajectories: at most 900 a time step.
    assert abs(np.diff(trial.pool.X[:, :4], axis=1)).max() <= 900


def test_true_safety_is_that_of_the_function(name, data_home):
    trial = get_task(name, data_home, pool_size=100).begin(0)
    X = trial.X_test[:7]
    functions = {f.__name__: f for f in (simionescu, townsend, lobes, edge)}
    if name == "fluid":
        expected = -fluid_system(data_home=data_home).output(X)
    elif name in functions:
        expected = functions[name]().safety(X)
    else:  # tables have nothing but what was measured
        assert trial.true_safety(X) is None
        return
    np.testing.assert_array_equal(trial.true_safety(X), expected)
    np.testing.assert_allclose(trial.true_safety(X[0]), expected[:1], rtol=1e-12)
    # It draws no noise.
    trials = [get_task(name, data_home, pool_size=100).begin(0) for _ in range(2)]
    trials[0].true_safety(X)
    for one, two in zip(trials[0].measure(X), trials[1].measure(X), strict=True):
        np.testing.assert_array_equal(one, two)


def test_tasks_pickle(name, data_home):
    task = get_task(name, data_home, pool_size=100)
    twin = pickle.loads(pickle.dumps(task))
    np.testing.assert_array_equal(twin.begin(1).X, task.begin(1).X)


def test_centre_of_a_table_moves_and_grows_until_it_holds_enough():
    # Safe are 0.6 to 1 in steps of 0.05, twice each; their median is 0.8, and 0.6 in the centre.
    found = {v for seed in range(60) for v in table_task(3, 3, 0.59).begin(seed).X[:, 0]}
    assert found == {0.7, 0.75, 0.8, 0.85, 0.9}
    found = {v for seed in range(90) for v in table_task(11, 3, 0.59).begin(seed).X[:, 0]}
    assert found == {0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95}
    # It does not shrink: 0.4 to 0.6 stays.
    found = {v for seed in range(60) for v in table_task().begin(seed).X[:, 0]}
    assert found == {0.4, 0.45, 0.5, 0.55, 0.6}


def test_messages():
    with pytest.raises(
        ValueError, match=r"name must be one of sinus, .*module:name .*; got 'sinuss'"
    ):
        get_task("sinuss")
    with pytest.raises(ValueError, match="pool_size == 0"):
        get_task("sinus", pool_size=0)
    with pytest.raises(ValueError, match="seed == -1"):
        synthetic.task().begin(-1)
    with pytest.raises(ValueError, match="index is needed"):
        table_task().begin(0).measure([0.5])
    with pytest.raises(ValueError, match="n_init \\+ n_test = 9, but the table has 8 safe rows"):
        table_task(2, 7, safe_from=0.84).begin(0)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="lgbb_original"):
        get_task("lgbb", tmp_path)


def test_task_is_frozen():
    with pytest.raises(AttributeError):
        get_task("sinus").n_init = 3
    assert isinstance(get_task("sinus"), Task)


HERE = __name__
OWN = table_task()
NOT_A_TASK = 3


def named_as_the_paper_s():
    return get_task("townsend")


def test_own_task():
    assert get_task(f"{HERE}:OWN") is OWN
    made = get_task(f"{table_task.__module__}:table_task")
    assert (made.name, made.suite) == ("rows", "safe")


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        (":OWN", ValueError, "must be written module:name"),
        (f"{HERE}:", ValueError, "must be written module:name"),
        ("rig.py:OWN", ImportError, "the module rig.py cannot be imported.*PYTHONPATH"),
        (f"{HERE}:OWNN", ValueError, rf"OWNN must be a Task.*got None. Tasks in {HERE}: OWN\."),
        (f"{HERE}:NOT_A_TASK", ValueError, "must be a Task, or a function.*got 3"),
        (f"{HERE}:named_as_the_paper_s", ValueError, "'townsend', as a task of this package"),
    ],
)
def test_what_is_no_own_task(address, error, message):
    with pytest.raises(error, match=message) as caught:
        get_task(address)
    assert repr(address) in str(caught.value)


class Bare:
    """A source of somebody's own, with bounds to choose."""

    def __init__(self, bounds=((0.0, 1.0),), X=((0.5,), (0.6,)), y=(1.0, 2.0), z=None):
        self.bounds, self.X, self.y, self.z = bounds, X, y, z

    def draw(self, n_init, n_test, initial, test, pool):
        return (
            self.X,
            self.y,
            self.z,
            self.X,
            self.y,
            None,
            lambda x, index, rng: (self.y[:1], None),
        )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("name", name) for name in ("a/b", "", 3, None)),
        *(("suite", suite) for suite in ("sefa", None, ["al"])),
        *((n, v) for n in ("n_init", "n_queries", "n_test") for v in (0, -1, 1.0, "3", None)),
        *(("gamma", gamma) for gamma in (0.0, 1.0, -0.1, np.nan, "0.05")),
        *(("source", source) for source in (None, np.zeros((3, 2)), synthetic.wave)),
    ],
)
def test_bad_field_is_named(field, value):
    with pytest.raises((TypeError, ValueError), match=field):
        replace(table_task(), **{field: value})


@pytest.mark.parametrize(
    "bounds", [None, [], [0, 1], [(1, 0)], [(0, 0)], [(0, np.nan)], [(0, 1, 2)], [("a", "b")]]
)
def test_bad_bounds_of_a_source_are_named(bounds):
    with pytest.raises((TypeError, ValueError), match="bounds"):
        Task("bare", "al", Bare(bounds), 2, 3, 2)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"X": [[0.5], [np.nan]]}, "X"),
        ({"y": [1.0]}, "y has 1 entries, but X has 2 rows"),
        ({"y": [1.0, None]}, "y"),
        ({"z": [1.0, 2.0, 3.0]}, "z has 3 entries"),
    ],
)
def test_what_a_source_draws_is_checked(parts, message):
    suite = "safe" if "z" in parts else "al"
    with pytest.raises(ValueError, match=message):
        Task("bare", suite, Bare(**parts), 2, 3, 2).begin(0)


def test_what_a_source_measures_is_checked():
    trial = Task("bare", "al", Bare(y=np.array([[1.0], [2.0]])), 2, 3, 2).begin(0)
    assert trial.y.shape == trial.y_test.shape == (2,)
    assert trial.measure([0.5])[0].shape == (1,)
    with pytest.raises(ValueError, match="y has 1 entries, but x has 2 rows"):
        trial.measure([[0.5], [0.6]])


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([[0.5, 0.5]], "x has 2 features, but the task has 1"),
        ([[np.nan]], "x"),
        ([["0.5"]], "x"),
        (None, "x"),
    ],
)
def test_bad_points_are_named(x, message):
    for case in (synthetic.task(), table_task()):
        with pytest.raises((TypeError, ValueError), match=message):
            case.begin(0).measure(x, 0)
        with pytest.raises((TypeError, ValueError), match=message):
            case.begin(0).true_safety(x)


def test_a_point_may_be_a_row_or_a_table():
    trial = synthetic.task("al").begin(0)
    for x in (0.5, [0.5], [[0.5]], np.array(0.5)):
        np.testing.assert_allclose(trial.measure(x)[0], np.sin([0.5]))
    np.testing.assert_allclose(trial.measure([[0.5], [0.7]])[0], np.sin([0.5, 0.7]))
    wide = get_task("branin").begin(0)
    assert wide.measure([1.0, 2.0])[0].shape == (1,)
    with pytest.raises(ValueError, match="x has 4 features, but the task has 2"):
        wide.measure([1.0, 2.0, 3.0, 4.0])


def test_limits_are_those_of_the_source():
    task = synthetic.task()
    assert (task.safety_threshold, task.safe_when) == (0.0, "above")
    rows = replace(table_task().source, safety_threshold=0.3, safe_when="below")
    task = replace(table_task(), source=rows)
    assert (task.safety_threshold, task.safe_when) == (0.3, "below")


def test_numbers_are_written_alike_whatever_their_type():
    plain = replace(table_task(), gamma=0.05)
    numpy = replace(plain, n_init=np.int64(2), n_test=np.int32(3), gamma=np.float64(0.05))
    assert repr(numpy) == repr(plain)


@pytest.mark.parametrize(
    ("source", "arguments", "message"),
    [
        (synthetic.FunctionSource, (synthetic.wave,), "function must be a Function"),
        (synthetic.FunctionSource, (sinus(), -0.1), "noise"),
        (synthetic.FunctionSource, (sinus(), np.nan), "noise"),
        (synthetic.FunctionSource, (sinus(), "0.1"), "noise"),
        (TrajectorySource, (sinus, 10), "function must be a Function"),
        (TrajectorySource, (sinus(), 0), "pool_size"),
        (TrajectorySource, (sinus(), 1.5), "pool_size"),
        (TrajectorySource, (sinus(), 10, np.inf), "noise"),
    ],
)
def test_bad_arguments_of_sources_are_named(source, arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        source(*arguments)


def test_several_limits_of_a_function():
    trial = synthetic.two_limits(noise=0.3).begin(0)
    assert trial.z.shape == (2, 2)
    assert (trial.z >= 0).all()
    assert ((trial.X_test >= 2) & (trial.X_test <= 6)).all()
    y, z = synthetic.two_limits().begin(0).measure([[1.0], [7.0]])
    assert y.shape == (2,)
    np.testing.assert_array_equal(z, [[-1, 5], [5, -1]])


def test_bare_functions_with_columns_make_a_task():
    function = Function(
        "columns", [(0, 1)], lambda X: X.tolist(), lambda X: [[x > 0.2] for x in X[:, 0]]
    )
    trial = Task("columns", "safe", synthetic.FunctionSource(function), 2, 3, 5).begin(0)
    assert trial.y.shape == trial.z.shape == (2,)
    assert (trial.X_test > 0.2).all()


def test_source_has_to_fit_the_suite():
    with pytest.raises(ValueError, match=r"suite 'safe', but its source measures no safety"):
        replace(synthetic.task("al"), suite="safe").begin(0)
    with pytest.raises(ValueError, match=r"suite 'al', but its source measures a safety"):
        replace(synthetic.task("safe"), suite="al").begin(0)
