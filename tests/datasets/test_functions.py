"""Benchmark functions against scalar mathematics written a second time, and dense grids."""

import copy
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import label

from sklearn_asal.datasets import Function, branin, edge, lobes, simionescu, sinus, townsend

from .settings import SETTINGS

FACTORIES = [sinus, branin, simionescu, townsend, lobes, edge]
SAFE = [simionescu, townsend, lobes, edge]


@pytest.fixture(params=FACTORIES, ids=lambda factory: factory.__name__)
def function(request):
    return request.param()


@pytest.fixture(params=SAFE, ids=lambda factory: factory.__name__)
def safe_function(request):
    return request.param()


def grid(function, n):
    """Midpoints of n cells a side: the midpoint rule of the box."""
    axes = [low + (np.arange(n) + 0.5) / n * (high - low) for low, high in function.bounds]
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes)], axis=1)


def in_box(X, bounds):
    return bool(((bounds[:, 0] <= X) & (bounds[:, 1] >= X)).all())


def unit(function, X):
    low, high = function.bounds.T
    return (X - low) / (high - low)


def scalar_simionescu(x1, x2):
    angle = math.copysign(math.pi / 2, x1) if x2 == 0 else math.atan(x1 / x2)
    return 0.1 * x1 * x2, (1 + 0.2 * math.cos(8 * angle)) ** 2 - x1**2 - x2**2


def scalar_townsend(x1, x2):
    sign = 1 if x1 >= 0 else -1
    if x2 > 0:
        b = math.atan(x1 / x2)
    elif x2 < 0:
        b = math.atan(x1 / x2) + sign * math.pi
    else:
        b = sign * math.pi / 2 if x1 != 0 else 0.0
    f = -(math.cos((x1 - 0.1) * x2) ** 2) - x1 * math.sin(3 * x1 + x2)
    first = 2 * math.cos(b) - 0.5 * math.cos(2 * b) - 0.25 * math.cos(3 * b)
    first -= 0.125 * math.cos(4 * b)
    return f, first**2 + (2 * math.sin(b)) ** 2 - x1**2 - x2**2


def scalar_lobes(x1, x2):
    z = -0.45
    for c1, c2 in [(0, 0), (0.05, 0.75), (-0.7, -0.3), (0.6, -0.5)]:
        z += math.exp(-8 * math.hypot(x1 - c1, x2 - c2) ** 2)
    return math.sin(3 * x1 + x2) + math.cos(3 * x2), z


def scalar_edge(x1, x2):
    f = math.sin(3 * x1) + math.cos(2 * x1 + 3 * x2)
    return f, 0.2 + math.sin(2 * x1) + math.sin(3 * x2) / 2


def test_branin_minima():
    minima = np.array([[-math.pi, 12.275], [math.pi, 2.275], [9.42478, 2.475]])
    task = branin()
    np.testing.assert_allclose(task.f(minima), 0.397887, atol=1e-5)
    assert task.f(grid(task, 400)).min() >= 0.397887


def test_branin_corner():
    # Worked by hand at x1 = 0: (x2 - 6)^2 + 10 (1 - 1 / (8 pi)) + 10.
    expected = 36 + 20 - 10 / (8 * math.pi)
    assert branin().f(np.array([[0.0, 0.0]]))[0] == pytest.approx(expected)


def test_sinus_is_not_normalised():
    task = sinus()
    X = np.array([[0.0], [math.pi / 40], [3 * math.pi / 40], [1.0]])
    np.testing.assert_allclose(task.output(X), [0, 1, -1, math.sin(20)], atol=1e-12)
    assert (task.y_loc, task.y_scale) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("factory", "scalar"),
    [
        (simionescu, scalar_simionescu),
        (townsend, scalar_townsend),
        (lobes, scalar_lobes),
        (edge, scalar_edge),
    ],
)
def test_against_scalar_mathematics(factory, scalar):
    task = factory()
    X = np.vstack([grid(task, 24), [[0.7, 0.0], [-0.7, 0.0], [0.0, 0.9], [0.0, -0.9]]])
    expected = np.array([scalar(*x) for x in X.tolist()])
    np.testing.assert_allclose(task.f(X), expected[:, 0], atol=1e-12)
    np.testing.assert_allclose(task.q(X), expected[:, 1], atol=1e-12)


def test_simionescu_known_minimum():
    # The constrained minimum, -0.072 at (+-0.84852813, -+0.84852813), lies on the limit.
    task = simionescu()
    edge = 0.84852813
    X = np.array([[edge, -edge], [-edge, edge]])
    np.testing.assert_allclose(task.f(X), -0.072, atol=1e-6)
    np.testing.assert_allclose(task.q(X), 0.0, atol=1e-6)
    X = grid(task, 600)
    assert task.f(X[task.q(X) >= 0]).min() == pytest.approx(-0.072, abs=5e-4)


def test_simionescu_on_the_axis():
    task = simionescu()
    on_axis = task.q(np.array([[0.5, 0.0], [-0.5, 0.0], [0.0, 0.0]]))
    np.testing.assert_allclose(on_axis, [1.44 - 0.25, 1.44 - 0.25, 1.44])
    beside = task.q(np.array([[0.5, 1e-9], [0.5, -1e-9]]))
    np.testing.assert_allclose(beside, on_axis[0], atol=1e-6)


def test_townsend_known_minimum():
    # Constrained minimum of the chebfun example: -2.0239884 at (2.0052938, 1.1944509).
    task = townsend()
    assert task.f(np.array([[2.0052938, 1.1944509]]))[0] == pytest.approx(-2.0239884, abs=1e-6)
    assert abs(task.q(np.array([[2.0052938, 1.1944509]]))[0]) < 1e-5
    X = grid(task, 600)
    # Minimum and limit meet at a slant, so the grid comes near the minimum but not below it.
    assert -2.0239884 < task.f(X[task.q(X) >= 0]).min() < -2.0


def test_lobes_are_joined_to_the_centre_by_necks():
    task = lobes()
    z = task.safety(grid(task, 200)).reshape(200, 200)
    assert label(z >= 0)[1] == 1
    # The centre and three lobes fall apart a little above the limit.
    parts, n_parts = label(z >= 0.7)
    assert n_parts == 4
    assert min(np.bincount(parts.ravel())) > 300
    assert (task.safety(task.sample(2000, "centre", 0)) > 0.2).all()


def test_edge_passes_close_to_the_centre():
    task = edge()
    X = grid(task, 400)
    z = task.safety(X)
    away = abs(unit(task, X) - 0.5).max(axis=1)
    assert 0.02 < away[z < 0].min() < 0.05
    assert 0.7 < (z[away <= 0.1] >= 0).mean() < 0.8
    # Safe starts lie close to the limit.
    assert np.median(z[(away <= 0.1) & (z >= 0)]) < 0.5 < 1.9 < z.max()


@pytest.mark.parametrize("factory", [branin, simionescu, townsend, lobes, edge])
def test_normalised_on_a_dense_grid(factory):
    task = factory()
    X = grid(task, 700)
    y = task.output(X)
    assert y.mean() == pytest.approx(0, abs=1e-3)
    assert y.std() == pytest.approx(1, abs=1e-3)
    if task.q is not None:
        z = task.safety(X)
        assert z.std() == pytest.approx(1, abs=1e-3)
        np.testing.assert_array_equal(z >= 0, task.q(X) >= 0)


def test_simionescu_moments_in_closed_form():
    task = simionescu()
    assert task.y_loc == pytest.approx(0, abs=1e-6)
    # x1 and x2 are independent and uniform: std(0.1 x1 x2) = 0.1 * 1.25^2 / 3.
    assert task.y_scale == pytest.approx(0.1 * 1.25**2 / 3, rel=1e-4)


def test_moments_are_the_same_at_every_call(function):
    again = {f.__name__: f for f in FACTORIES}[function.name]()
    assert (again.y_loc, again.y_scale, again.z_scale) == (
        function.y_loc,
        function.y_scale,
        function.z_scale,
    )


def test_measurements_scatter_by_the_noise(function):
    X = function.sample(20_000, random_state=0)
    measured = function.measure(X, random_state=1)
    pairs = [(measured, function.output(X))]
    if function.q is not None:
        pairs = list(zip(measured, (function.output(X), function.safety(X)), strict=True))
        noise = [values - truth for values, truth in pairs]
        assert abs(np.corrcoef(*noise)[0, 1]) < 0.03
    for values, truth in pairs:
        assert (values - truth).std() == pytest.approx(0.1, rel=0.03)
        assert (values - truth).mean() == pytest.approx(0, abs=0.003)


def test_noise_free_measurement(safe_function):
    X = safe_function.sample(10, random_state=0)
    y, z = safe_function.measure(X, noise=0)
    np.testing.assert_array_equal(y, safe_function.output(X))
    np.testing.assert_array_equal(z, safe_function.safety(X))


@settings(max_examples=25, deadline=None)
@given(n=st.integers(0, 50), seed=st.integers(0, 2**32 - 1))
def test_samples_stay_in_their_region(n, seed):
    for task in TASKS:
        X = task.sample(n, random_state=seed)
        C = unit(task, task.sample(n, "centre", random_state=seed))
        assert X.shape == C.shape == (n, task.n_features)
        assert in_box(X, task.bounds)
        assert in_box(C, np.array([[0.4 - 1e-12, 0.6 + 1e-12]] * task.n_features))
        np.testing.assert_array_equal(X, task.sample(n, "all", random_state=seed))


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 200), seed=st.integers(0, 2**32 - 1))
def test_initial_and_test_points_are_safe(n, seed):
    for task in TASKS[2:]:
        X, y, z = task.initial_points(n, random_state=seed, return_measurements=True)
        assert X.shape == (n, 2)
        assert y.shape == z.shape == (n,)
        assert (z >= 0).all()
        assert (abs(unit(task, X) - 0.5) <= 0.1 + 1e-12).all()
        np.testing.assert_array_equal(X, task.initial_points(n, random_state=seed))
        X = task.safe_test_points(n, random_state=seed)
        assert X.shape == (n, 2)
        assert in_box(X, task.bounds)
        assert (task.safety(X) >= 0).all()


TASKS = [factory() for factory in FACTORIES]


def _ramp(X):
    return X[:, 0]


def _never(X):
    return np.full(len(X), -9.0)


def test_initial_points_reject_by_measurement():
    # Half of the centre box is safe; with noise, points just beyond the limit may stay.
    ramp = Function("ramp", [(-1, 1)], _ramp, _ramp)
    X, _, z = ramp.initial_points(500, random_state=0, noise=0.05, return_measurements=True)
    assert (z >= 0).all()
    assert X.min() < 0
    assert (ramp.initial_points(500, random_state=0, noise=0) >= 0).all()


def test_without_safety_every_point_serves():
    task = branin()
    for X in (task.initial_points(300, 0), task.safe_test_points(300, 0)):
        assert in_box(X, task.bounds)
        # The whole box, not its centre.
        assert (np.ptp(unit(task, X), axis=0) > 0.9).all()
    X, y = task.initial_points(3, 0, return_measurements=True)
    assert X.shape == (3, 2)
    assert y.shape == (3,)
    with pytest.raises(ValueError, match="branin has no safety function"):
        task.safety(X)


def test_no_safe_point_is_said():
    task = Function("pit", [(0, 1)], _ramp, _never)
    with pytest.raises(RuntimeError, match=r"only 0 of .* centre box of pit .* sign of q"):
        task.initial_points(5, random_state=0)


def test_random_states(function):
    X = function.sample(5, random_state=3)
    np.testing.assert_array_equal(X, function.sample(5, random_state=3))
    assert not np.array_equal(X, function.sample(5, random_state=4))
    rng = np.random.default_rng(3)
    np.testing.assert_array_equal(X, function.sample(5, random_state=rng))
    assert not np.array_equal(X, function.sample(5, random_state=rng))
    legacy = [function.sample(5, random_state=np.random.RandomState(3)) for _ in range(2)]
    np.testing.assert_array_equal(*legacy)
    with pytest.raises(ValueError, match="random_state must be"):
        function.sample(5, random_state="three")


def test_global_random_state_is_left_alone(function):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    function.measure(function.initial_points(5))
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_input_is_never_modified(function):
    X = function.sample(20, random_state=0)
    before = X.copy()
    X.setflags(write=False)
    function.output(X)
    function.measure(X, random_state=0)
    np.testing.assert_array_equal(X, before)


def test_pickles_and_copies(function):
    X = function.sample(5, random_state=0)
    for twin in (pickle.loads(pickle.dumps(function)), copy.deepcopy(function)):
        np.testing.assert_array_equal(twin.output(X), function.output(X))
        np.testing.assert_array_equal(twin.bounds, function.bounds)


def test_bounds_are_read_only(function):
    with pytest.raises(ValueError, match="read-only"):
        function.bounds[0, 0] = 7


def test_messages_name_the_argument():
    task = branin()
    with pytest.raises(ValueError, match=r"X has 3 features, but branin takes 2"):
        task.output([[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="X contains NaN"):
        task.output([[1.0, np.nan]])
    with pytest.raises(ValueError, match="2D array"):
        task.output([1.0, 2.0])
    with pytest.raises(ValueError, match="noise"):
        task.measure([[1.0, 2.0]], noise=-1)
    with pytest.raises(ValueError, match="n == -1"):
        task.sample(-1)
    with pytest.raises(ValueError, match='"all" or "centre"'):
        task.sample(3, "center")


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("bounds", [0, 1], r"bounds must have shape \(n_features, 2\).*got shape \(2,\)"),
        ("bounds", [(0, 1, 2)], r"bounds must have shape \(n_features, 2\).*got shape \(1, 3\)"),
        ("bounds", [], "bounds"),
        ("bounds", [(1, 0)], "bounds of feature 0 must be finite with low < high"),
        ("bounds", [(0, 1), (2, 2)], "bounds of feature 1 must be finite with low < high"),
        ("bounds", [(0, np.inf)], "bounds"),
        ("bounds", [(0, np.nan)], "bounds"),
        ("bounds", [("0", "1")], "bounds"),
        ("bounds", None, "bounds"),
        ("y_loc", np.nan, "y_loc must be a finite number, got nan"),
        ("y_loc", "auto", "y_loc must be a finite number, got 'auto'"),
        ("y_scale", 0, "y_scale must be a positive finite number, got 0"),
        ("y_scale", [1.0, 2.0], "y_scale must be a positive finite number"),
        ("z_scale", -1.0, "z_scale must be a positive finite number, got -1"),
        ("z_scale", [1.0, 0.0], "z_scale must be a positive finite number, got 0"),
        ("z_scale", np.inf, "z_scale must be a positive finite number, got inf"),
        ("f", None, "f must be a function that takes X"),
        ("q", 3.0, r"q must be a function that takes X.*got 3\.0"),
    ],
)
def test_bad_arguments_are_named(argument, value, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Function(**{"name": "bad", "bounds": [(0, 1)], "f": _ramp, argument: value})


@pytest.mark.parametrize("noise", [-0.1, np.nan, np.inf, "0.1", None])
def test_bad_noise_is_named(noise):
    for measure in (branin().measure, simionescu().measure):
        with pytest.raises((TypeError, ValueError), match="noise"):
            measure([[1.0, 1.0]], noise=noise)
    with pytest.raises((TypeError, ValueError), match="noise"):
        simionescu().initial_points(3, noise=noise)


def _backwards(values):
    """Labelled from last to first, so that rows found by label are others' rows."""
    return pd.Series(values, index=np.arange(len(values))[::-1])


# Ways to return one number for each row.
FORMS = {
    "column": lambda values: values[:, None],
    "list": lambda values: values.tolist(),
    "tuple": tuple,
    "series": _backwards,
    "frame": lambda values: _backwards(values).to_frame("y"),
    "objects": lambda values: values.astype(object),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_f_and_q_return_is_taken_row_by_row(form):
    plain = branin()
    q = simionescu().q
    whole = Function("whole", plain.bounds, plain.f, q).normalise()
    other = Function(
        "other", plain.bounds, lambda X: FORMS[form](plain.f(X)), lambda X: FORMS[form](q(X))
    ).normalise()
    assert (other.y_loc, other.y_scale, other.z_scale) == (
        whole.y_loc,
        whole.y_scale,
        whole.z_scale,
    )
    for n in (1, 7):
        X = whole.sample(n, random_state=0)
        np.testing.assert_array_equal(other.output(X), whole.output(X))
        np.testing.assert_array_equal(other.safety(X), whole.safety(X))
        for one, two in zip(other.measure(X, 1), whole.measure(X, 1), strict=True):
            assert one.shape == (n,)
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    "returned",
    [
        lambda X: 3.0,
        lambda X: np.float64(3.0),
        lambda X: np.array(3.0),
        lambda X: X[:-1, 0],
        lambda X: np.append(X[:, 0], 0.0),
        lambda X: X[:, 0][None],
        lambda X: X[:, :, None],
        lambda X: None,
        lambda X: ["a"] * len(X),
        lambda X: np.full(len(X), np.nan),
        lambda X: np.where(X[:, 0] > 0.5, np.inf, 1.0),
        lambda X: X[:, 0] + 1j,
        lambda X: pd.Series([None] * len(X)),
        lambda X: [[1.0], [1.0, 2.0]] * (len(X) // 2),
    ],
)
@pytest.mark.parametrize("argument", ["f", "q"])
@pytest.mark.parametrize("call", ["output", "measure", "normalise", "safe_test_points"])
def test_what_f_and_q_must_not_return(returned, argument, call):
    bounds = [(0, 1), (0, 1)]
    function = Function(
        **{"name": "pit", "bounds": bounds, "f": _ramp, "q": _ramp, argument: returned}
    )
    X = np.linspace(0, 1, 8).reshape(4, 2)
    if call == "output":
        call = "safety" if argument == "q" else call
    elif call == "safe_test_points" and argument == "f":
        call = "initial_points"
    arguments = {"normalise": (), "safe_test_points": (3, 0), "initial_points": (3, 0)}
    with pytest.raises((TypeError, ValueError), match=f"{argument} of pit must return"):
        getattr(function, call)(*arguments.get(call, (X,)))


def test_outputs_have_one_column():
    function = Function("pair", [(0, 1), (0, 1)], lambda X: X, lambda X: X)
    with pytest.raises(ValueError, match=r"f of pair must return shape \(n,\), .*\(4, 2\)"):
        function.output(np.zeros((4, 2)))
    assert function.safety(np.zeros((4, 2))).shape == (4, 2)


def test_an_error_within_f_is_passed_on():
    def f(X):
        raise ValueError("the valve is stuck")

    with pytest.raises(ValueError, match=r"^the valve is stuck$"):
        Function("rig", [(0, 1)], f).output([[0.5]])


def test_f_cannot_change_what_q_sees():
    def f(X):
        X *= 0
        return X[:, 0]

    function = Function("greedy", [(0, 1)], f, _ramp)
    assert (
        function.normalise().z_scale
        == Function("plain", [(0, 1)], _ramp, _ramp).normalise().z_scale
    )
    X = np.array([[0.25], [0.75]])
    np.testing.assert_array_equal(function.measure(X, 0, noise=0)[1], [0.25, 0.75])
    np.testing.assert_array_equal(X, [[0.25], [0.75]])


def test_no_points_have_no_outputs():
    for function in (branin(), simionescu()):
        X = function.sample(0)
        assert function.output(X).shape == (0,)
        measured = function.measure(X)
        assert {part.shape for part in np.atleast_2d(measured)} == {(0,)}


def _edges(X):
    """Three limits: a floor, a ceiling and a diagonal."""
    return np.stack([X[:, 0] - 0.45, 3 * (0.55 - X[:, 1]), X[:, 1] - X[:, 0] + 0.02], axis=1)


@pytest.fixture
def three_limits():
    return Function("edges", [(0, 1), (0, 1)], _ramp, _edges)


def test_several_limits_have_a_column_each(three_limits):
    X = three_limits.sample(500, random_state=0)
    np.testing.assert_array_equal(three_limits.safety(X), _edges(X))
    scaled = three_limits.normalise()
    grid_deviation = _edges(grid(three_limits, 500)).std(axis=0)
    np.testing.assert_allclose(scaled.z_scale, grid_deviation, rtol=1e-3)
    np.testing.assert_allclose(scaled.safety(X), _edges(X) / scaled.z_scale)
    measured = scaled.measure(X, random_state=1)[1]
    noise = measured - scaled.safety(X)
    np.testing.assert_allclose(noise.std(axis=0), 0.1, rtol=0.15)
    assert abs(np.corrcoef(noise.T) - np.eye(3)).max() < 0.15
    twin = pickle.loads(pickle.dumps(scaled))
    np.testing.assert_array_equal(twin.safety(X), scaled.safety(X))


@pytest.mark.parametrize("n", [1, 40])
def test_points_are_safe_by_all_limits(three_limits, n):
    for function in (three_limits, three_limits.normalise()):
        X, y, z = function.initial_points(n, 0, return_measurements=True)
        assert X.shape == (n, 2)
        assert y.shape == (n,)
        assert z.shape == (n, 3)
        assert (z >= 0).all()
        X = function.safe_test_points(n, 0)
        assert (_edges(X) >= 0).all()
    # As many points would be safe by each limit alone, and few of those by all.
    X = three_limits.sample(20_000, random_state=0)
    share = (_edges(X) >= 0).all(axis=1).mean()
    assert share < 0.3 < (_edges(X) >= 0).mean(axis=0).min()


def test_one_limit_is_no_matter_of_form():
    flat = Function("flat", [(0, 1), (0, 1)], _ramp, lambda X: X[:, 0] - 0.5)
    column = Function("flat", [(0, 1), (0, 1)], _ramp, lambda X: X[:, :1] - 0.5, z_scale=[1.0])
    for one, two in zip(
        flat.initial_points(9, 3, return_measurements=True),
        column.initial_points(9, 3, return_measurements=True),
        strict=True,
    ):
        np.testing.assert_array_equal(one, two)


def test_limits_need_a_scale_each(three_limits):
    function = Function("edges", three_limits.bounds, _ramp, _edges, z_scale=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"z_scale has 2 values, but z has 3"):
        function.safety([[0.5, 0.5]])


def test_booleans_mean_safe_and_not_safe():
    flag = Function("flag", [(-1, 1)], _ramp, lambda X: X[:, 0] > 0)
    X = np.array([[-0.5], [0.0], [0.5]])
    for function in (flag, flag.normalise()):
        assert (np.sign(function.safety(X)) == [-1, -1, 1]).all()
        assert (function.safe_test_points(50, 0) > 0).all()
        assert (function.initial_points(50, 0) > 0).all()


@pytest.mark.parametrize("value", [0.0, 0.1, -7e5])
def test_constants_are_divided_by_one(value):
    def constant(X):
        return np.full(len(X), value)

    function = Function("flat", [(0, 1)], constant, constant).normalise()
    assert (function.y_scale, function.z_scale) == (1.0, 1.0)
    np.testing.assert_allclose(function.output([[0.3]]), 0, atol=1e-9)
    np.testing.assert_array_equal(function.safety([[0.3]]), value)


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_the_program_around_do_not_matter(setting):
    def faint(X):
        return np.exp(-1e3 * X[:, 0] ** 2) * 1e-200

    def answers():
        faints = Function("faint", [(-1, 1)], faint, faint, y_scale=1e-150, z_scale=1e150)
        for function in (*(factory() for factory in FACTORIES), faints):
            X, *measured = function.initial_points(4, 0, return_measurements=True)
            yield [function.y_loc, function.y_scale, function.z_scale]
            yield from (X, *measured, function.safe_test_points(9, 1), function.output(X))

    expected = list(answers())
    with SETTINGS[setting]():
        for one, two in zip(answers(), expected, strict=True):
            np.testing.assert_array_equal(one, two)
        for bad in (np.nan, np.inf, None):
            with pytest.raises(ValueError, match="X"):
                branin().output([[0.5, bad]])
            with pytest.raises(ValueError, match="f of hole must return"):
                Function("hole", [(0, 1)], lambda X, bad=bad: [bad] * len(X)).output([[0.5]])
            with pytest.raises(ValueError, match="q of hole must return"):
                Function("hole", [(0, 1)], _ramp, lambda X, bad=bad: [bad]).measure([[0.5]])
            with pytest.raises(ValueError, match="bounds"):
                Function("hole", [(0, bad)], _ramp)
