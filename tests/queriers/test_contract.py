"""What every querier promises, whatever is behind it."""

import copy
import io
import pickle
import re
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklearn_asal import (
    AmortizedSafeQuerier,
    BudgetExhaustedError,
    CandidatePool,
    DataScaleWarning,
    GPSafeQuerier,
    PoolExhaustedError,
    SafetyWarning,
)

# Ordinary data must not raise a single warning of ours.
# Where the points lie, and whether rows of a pool are safe, is of no consequence here.
pytestmark = pytest.mark.filterwarnings(
    "error::UserWarning",
    "ignore:no observation in the middle",
    "ignore:no row of the pool near",
    "ignore:all measurements are of one point",
    "ignore:nothing that was looked at is safe",
    "ignore:the guard found no point that is safe enough",
)
BOUNDS = [(0.0, 6.0), (-5.0, 30.0)]
# The queriers that a fixture hands over keep nothing between examples.
some = settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)


def campaign(seed, n=6, bounds=BOUNDS):
    """Inputs in raw units, and outputs and measurements of unit scale, most of them safe.

    The latter are multiples of 1/64, which sums and products with such numbers keep exact: a
    choice among candidates may turn on the last digit.
    """
    rng = np.random.default_rng(seed)
    low, high = np.transpose(bounds)
    X = low + (high - low) * rng.random((n, 2))
    y, z = (np.round(64 * rng.normal(mean, 1.0, n)) / 64 for mean in (0.0, 1.0))
    z[0] = 0.5
    X[0] = low + (high - low) * rng.uniform(0.4, 0.6, 2)  # where safe campaigns begin
    return X, y, z


seeds = st.integers(0, 10**6)


def state(querier):
    return pickle.dumps(querier)


@some
@given(seed=seeds, n_queries=st.integers(1, 3), pooled=st.booleans())
def test_query_changes_nothing(make, seed, n_queries, pooled):
    X, y, z = campaign(seed)
    pool = campaign(seed + 1, n=20)[0] if pooled else None
    querier = make(bounds=BOUNDS, budget=9).fit(X, y, z)
    before, given_data = state(querier), pickle.dumps((X, y, z, pool))
    random = np.random.get_state()[1].copy()  # noqa: NPY002
    first = querier.query(pool=pool, n_queries=n_queries)
    # Whatever else it is asked meanwhile, the answer stays.
    querier.query(X[:3], y[:3], z[:3], budget=2)
    np.testing.assert_array_equal(querier.query(pool=pool, n_queries=n_queries), first)
    assert state(querier) == before
    assert pickle.dumps((X, y, z, pool)) == given_data
    np.testing.assert_array_equal(np.random.get_state()[1], random)  # noqa: NPY002


@some
@given(seed=seeds, pooled=st.booleans())
def test_points_under_way_count_as_those_of_one_query(make, seed, pooled):
    """As adapters ask, whose packages know what is being measured."""
    X, y, z = campaign(seed)
    pool = campaign(seed + 1, n=20)[0] if pooled else None
    querier = make(bounds=BOUNDS).fit(X, y, z)
    expected = querier.query(pool=pool, n_queries=3, budget=9)
    for j in range(3):
        found = querier.query(budget=9 - j, pool=pool, pending=expected[:j])
        # The order of what is pending is of no consequence, but for the last digit.
        np.testing.assert_allclose(found, expected[j : j + 1], rtol=1e-4)


@some
@given(seed=seeds)
def test_global_seed_has_no_influence(make, seed):
    querier = make(bounds=BOUNDS).fit(*campaign(seed))
    np.random.seed(0)  # noqa: NPY002
    first = querier.query()
    np.random.seed(1)  # noqa: NPY002
    np.testing.assert_array_equal(querier.query(), first)


@some
@given(seed=seeds, n_queries=st.integers(1, 4))
def test_shape_and_bounds(make, seed, n_queries):
    points = make(bounds=BOUNDS).fit(*campaign(seed)).query(n_queries=n_queries)
    assert points.shape == (n_queries, 2)
    assert points.dtype == np.float64
    low, high = np.transpose(BOUNDS)
    assert ((points >= low) & (points <= high)).all()


numbers = st.floats(-1e6, 1e6)


@some
@given(
    data=st.integers(1, 6).flatmap(
        lambda n: st.tuples(
            arrays(float, (n, 2), elements=numbers),
            arrays(float, n, elements=numbers),
            arrays(float, n, elements=numbers),
        )
    ),
    low=st.floats(-1e5, 1e5),
    width=st.floats(1e-3, 1e5),
)
def test_any_finite_data_give_a_point_inside_the_bounds(make, data, low, width):
    assume(low + width > low)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        point = make(bounds=(low, low + width)).query(*data)
    assert point.shape == (1, 2)
    assert ((point >= low) & (point <= low + width)).all()


@some
@given(seed=seeds, order=st.permutations(range(6)))
def test_order_of_observations_has_no_influence(make, seed, order):
    X, y, z = campaign(seed)
    querier = make(bounds=BOUNDS)
    permuted = querier.query(X[order], y[order], z[order])
    np.testing.assert_allclose(permuted, querier.query(X, y, z), rtol=0, atol=35e-5)


@some
@given(seed=seeds, factor=st.floats(0.01, 100), shift=st.floats(-1000, 1000))
def test_units_of_the_inputs_have_no_influence(make, seed, factor, shift):
    X, y, z = campaign(seed)
    point = make(bounds=BOUNDS, random_state=0).query(X, y, z)
    bounds = factor * np.array(BOUNDS) + shift
    mapped = make(bounds=bounds, random_state=0).query(factor * X + shift, y, z)
    np.testing.assert_allclose((mapped - shift) / factor, point, rtol=0, atol=35e-5)


@some
@given(seed=seeds, factor=st.floats(0.01, 100), shift=st.floats(-1000, 1000), auto=st.booleans())
def test_units_of_the_outputs_have_no_influence(make, seed, factor, shift, auto):
    X, y, z = campaign(seed)
    scaling = dict(y_loc="auto", y_scale="auto") if auto else dict(y_loc=shift, y_scale=factor)
    reference = make(bounds=BOUNDS, **(scaling if auto else {})).query(X, y, z)
    point = make(bounds=BOUNDS, **scaling).query(X, factor * y + shift, z)
    np.testing.assert_allclose(point, reference, rtol=0, atol=35e-5)


@some
@given(seed=seeds, random_state=st.sampled_from([None, 0, 7]))
def test_copies_give_the_same_answer(make, seed, random_state):
    X, y, z = campaign(seed)
    querier = make(bounds=BOUNDS, budget=9, random_state=random_state).fit(X, y, z)
    expected = querier.query(n_queries=2)
    file = io.BytesIO()
    joblib.dump(querier, file)
    file.seek(0)
    copies = pickle.loads(pickle.dumps(querier)), copy.deepcopy(querier), joblib.load(file)
    for other in (*copies, clone(querier).fit(X, y, z)):
        np.testing.assert_array_equal(other.query(n_queries=2), expected)
        assert other.get_params() == querier.get_params()
    with pytest.raises(NotFittedError):
        clone(querier).query()


@some
@given(seed=seeds, split=st.integers(1, 5))
def test_one_by_one_all_at_once_and_stateless_agree(make, seed, split):
    X, y, z = campaign(seed)
    start = X[:split], y[:split], z[:split]
    single = make(bounds=BOUNDS, budget=9).fit(*start)
    for i in range(split, 6):
        assert single.tell(X[i], y[i], z[i]) is single
    together = make(bounds=BOUNDS, budget=9).fit(*start).tell(X[split:], y[split:], z[split:])
    left = 9 - (6 - split)
    expected = make(bounds=BOUNDS).query(X, y, z, budget=left)
    for querier in single, together:
        np.testing.assert_array_equal(querier.query(), expected)
        np.testing.assert_array_equal(querier.X_, X)
        np.testing.assert_array_equal(querier.y_, y)
        np.testing.assert_array_equal(querier.z_, z)
        assert querier.n_told_ == 6 - split
    np.testing.assert_array_equal(make(bounds=BOUNDS, budget=left).query(X, y, z), expected)


def test_without_a_stated_budget_campaign_and_stateless_agree(make):
    X, y, z = campaign(0)
    querier = make(bounds=BOUNDS).fit(X[:4], y[:4], z[:4]).tell(X[4:], y[4:], z[4:])
    np.testing.assert_array_equal(querier.query(), make(bounds=BOUNDS).query(X, y, z))


def test_passed_data_take_precedence_over_the_campaign(make):
    X, y, z = campaign(0)
    other = campaign(1, n=3)
    querier = make(bounds=BOUNDS, random_state=0).fit(X, y, z)
    expected = make(bounds=BOUNDS, random_state=0).query(*other)
    np.testing.assert_array_equal(querier.query(*other), expected)
    assert not np.array_equal(querier.query(), expected)


def test_fit_copies_and_forgets(make):
    X, y, z = campaign(0)
    querier = make(bounds=BOUNDS).fit(X, y, z).tell(X[0], y[0], z[0])
    expected = querier.query()
    X[:], y[:], z[:] = 0.0, 0.0, 0.0
    np.testing.assert_array_equal(querier.query(), expected)
    querier.fit(*campaign(1, n=3))
    assert querier.n_told_ == 0
    assert len(querier.X_) == 3


def test_tell_what_query_returned(make):
    querier = make(bounds=BOUNDS, budget=4).fit(*campaign(0))
    for k in range(4):
        point = querier.query()
        querier.tell(point, np.array([[0.1]]) if k % 2 else 0.1, [0.2])
        np.testing.assert_array_equal(querier.X_[-1:], point)
    assert querier.X_.shape == (10, 2)
    assert querier.n_told_ == 4


def test_one_observation_and_duplicates(make):
    X, y, z = campaign(0, n=1)
    querier = make(bounds=BOUNDS).fit(X, y, z)
    assert querier.query().shape == (1, 2)
    querier.tell(np.repeat(X, 30, axis=0), np.repeat(y, 30), np.repeat(z, 30))
    assert np.isfinite(querier.query()).all()


def test_parameters_are_stored_untouched(make):
    bounds = np.array(BOUNDS)
    querier = make(bounds=bounds, budget=3, random_state=5, y_loc="auto", y_scale=2.0)
    assert querier.bounds is bounds
    assert set(vars(querier)) == set(querier.get_params())
    querier.fit(*campaign(0)).query()
    assert querier.bounds is bounds
    assert "bounds" in repr(querier)


# ---- budget


def test_budget_counts_down_and_ends(make):
    X, y, z = campaign(0)
    querier = make(bounds=BOUNDS, budget=2).fit(X, y, z)
    assert querier.query(n_queries=2).shape == (2, 2)
    with pytest.raises(BudgetExhaustedError, match=r"2 queries are left.*n_queries=3.*budget"):
        querier.query(n_queries=3)
    querier.tell(X[:2], y[:2], z[:2])
    with pytest.raises(BudgetExhaustedError, match=r"0 queries.*2 of budget=2.*set_params\(budget"):
        querier.query()
    assert querier.query(budget=1).shape == (1, 2)
    # Data that arrive late are data all the same.
    assert querier.tell(X[2], y[2], z[2]).n_told_ == 3
    assert querier.set_params(budget=4).query().shape == (1, 2)


@pytest.mark.parametrize("budget", [0, -3])
def test_no_budget_left_in_a_keyword(make, budget):
    message = rf"0 queries are left \(budget={budget}\), but n_queries=1 .* pass at least 1\."
    with pytest.raises(BudgetExhaustedError, match=message):
        make(bounds=BOUNDS).query(*campaign(0), budget=budget)


def test_bad_budget_and_n_queries(make):
    data = campaign(0)
    with pytest.raises(ValueError, match="budget == 0, must be >= 1"):
        make(bounds=BOUNDS, budget=0).fit(*data)
    with pytest.raises(TypeError, match="budget must be an instance of int"):
        make(bounds=BOUNDS, budget=2.5).fit(*data)
    with pytest.raises(TypeError, match="budget must be an instance of int"):
        make(bounds=BOUNDS).query(*data, budget="3")
    with pytest.raises(ValueError, match="n_queries == 0, must be >= 1"):
        make(bounds=BOUNDS).query(*data, n_queries=0)


# ---- pool


@some
@given(seed=seeds, n_queries=st.integers(1, 4))
def test_pool_rows_are_returned_once(make, seed, n_queries):
    X, y, z = campaign(seed)
    pool = np.vstack([X[:3], campaign(seed + 1, n=4)[0]])
    querier = make(bounds=BOUNDS).fit(X, y, z)
    points, indices = querier.query(pool=pool, n_queries=n_queries, return_indices=True)
    np.testing.assert_array_equal(points, pool[indices])
    assert len(set(indices)) == n_queries
    assert indices.min() >= 3  # the first three are measured already
    reusable = CandidatePool(pool)
    for _ in range(2):
        np.testing.assert_array_equal(querier.query(pool=reusable, n_queries=n_queries), points)


def test_pool_runs_out(make):
    X, y, z = campaign(0)
    querier = make(bounds=BOUNDS).fit(X, y, z)
    pool = CandidatePool(campaign(1, n=3)[0])
    with pytest.raises(PoolExhaustedError, match=r"no row of the pool is left.*3 rows"):
        querier.query(pool=pool, n_queries=4)
    told = set()
    for _ in range(3):
        point, index = querier.query(pool=pool, return_indices=True)
        told.add(int(index[0]))
        querier.tell(point, 0.0, 0.5)
    assert told == {0, 1, 2}
    with pytest.raises(PoolExhaustedError):
        querier.query(pool=pool)


def test_pool_outside_bounds(make):
    querier = make(bounds=BOUNDS, budget=9).fit(*campaign(0))
    pool = [[3.0, 10.0], [600.0, 10.0]]
    with pytest.warns(
        DataScaleWarning, match="1 of the 2 rows of the pool lie outside bounds"
    ) as seen:
        point, index = querier.query(pool=pool, return_indices=True)
    assert seen[0].filename == __file__
    np.testing.assert_array_equal(point, pool[:1])
    np.testing.assert_array_equal(index, [0])
    with pytest.raises(PoolExhaustedError, match=r"none of the 1 rows.*bounds"):
        querier.query(pool=pool[1:])


def test_bad_pool(make):
    querier = make(bounds=BOUNDS).fit(*campaign(0))
    with pytest.raises(ValueError, match=r"pool has 3 features, but .* is expecting 2"):
        querier.query(pool=np.ones((4, 3)))
    with pytest.raises(ValueError, match="Input pool contains NaN"):
        querier.query(pool=[[0.0, np.nan]])
    with pytest.raises(ValueError, match="pool: Found array with 0 sample"):
        querier.query(pool=np.ones((0, 2)))
    with pytest.raises(ValueError, match="return_indices=True needs a pool"):
        querier.query(return_indices=True)


# ---- names


def test_dataframes(make):
    X, y, z = campaign(0)
    frame = pd.DataFrame(X, columns=["mach", "alpha"])
    querier = make(bounds=BOUNDS).fit(frame, pd.Series(y), pd.DataFrame({"pitch": z}))
    assert list(querier.feature_names_in_) == ["mach", "alpha"]
    point = querier.query()
    assert type(point) is pd.DataFrame
    assert list(point.columns) == ["mach", "alpha"]
    np.testing.assert_array_equal(point, make(bounds=BOUNDS).fit(X, y, z).query())
    querier.tell(point.to_numpy(), 0.0, 0.5)
    querier.tell(point, 0.0, 0.5)
    np.testing.assert_array_equal(querier.X_[-2:], np.vstack([point, point]))
    querier.tell(frame.iloc[0], 0.0, 0.5)
    querier.tell(frame.iloc[:2], [0.0, 0.1], [0.5, 0.4])
    np.testing.assert_array_equal(querier.X_[-3:], X[[0, 0, 1]])
    pool = pd.DataFrame(campaign(1)[0], columns=frame.columns, index=range(10, 16))
    picked, index = querier.query(pool=pool, return_indices=True)
    np.testing.assert_array_equal(picked, pool.iloc[index])
    swapped = frame[["alpha", "mach"]]
    for call in (
        lambda: querier.query(swapped, y, z),
        lambda: querier.query(pool=swapped),
        lambda: querier.tell(swapped, y, z),
        lambda: querier.tell(swapped.iloc[0], 0.0, 0.5),
    ):
        with pytest.raises(ValueError, match=r"feature names should match those .* during fit"):
            call()
    assert not hasattr(querier.fit(X, y, z), "feature_names_in_")


# ---- invalid data

BAD = {
    "X": [
        ([[0.1, np.nan]], "Input X contains NaN"),
        ([[0.1, np.inf]], "Input X contains infinity"),
        ([0.1, 0.2], "X: Expected 2D array, got 1D array"),
        (np.ones((1, 2, 2)), "X.*dim 3"),
        (np.ones((0, 2)), "X: Found array with 0 sample"),
        (np.ones((1, 0)), "X: Found array with 0 feature"),
        ([[1j, 0.2]], "X: Complex data not supported"),
        ([["a", "b"]], "X: .*"),
        ([["0.1", "0.2"]], "X: .*"),
        (np.array([["0.1", 0.2]], dtype=object), "X: text"),
        ([[0.1, 0.2], [0.3]], "X: .*"),
        (None, "X is None"),
    ],
    "y": [
        ([np.nan], "Input y contains NaN"),
        ([-np.inf], "Input y contains infinity"),
        ([0.1, 0.2], "y has 2 entries, but X has 1 rows"),
        ([[0.1, 0.2]], r"y must have shape \(n,\), got \(1, 2\)"),
        ([], "y: Found array with 0 sample"),
        ([1j], "y: Complex data not supported"),
        (["0.1"], "y: .*"),
        (None, "requires y to be passed"),
    ],
    "z": [
        ([np.nan], "Input z contains NaN"),
        ([np.inf], "Input z contains infinity"),
        ([0.1, 0.2], "z has 2 entries, but X has 1 rows"),
        (np.ones((1, 1, 2)), r"z must have shape \(n,\) or \(n, n_limits\)"),
        ([1j], "z: Complex data not supported"),
        (["high"], "z: .*"),
    ],
}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [(name, *case) for name, cases in BAD.items() for case in cases],
)
def test_errors_name_the_input(make, name, value, message):
    data = {"X": [[0.1, 0.2]], "y": [0.3], "z": [0.4]}
    querier = make().fit(**data)
    before = state(querier)
    for call, x_name in ((querier.fit, "X"), (querier.query, "X"), (querier.tell, "x")):
        if x_name == "x" and "got 1D" in message:
            continue  # one row is fine to tell
        if x_name == "x" and name == "y" and message.startswith(("Input y contains NaN", "req")):
            continue  # with z an output may be missing there
        arguments = {**data, name: value}
        arguments[x_name] = arguments.pop("X")
        expected = message.replace("X", x_name)
        with pytest.raises((ValueError, TypeError), match=expected):
            call(**arguments)
        assert state(querier) == before


def test_ragged_tell(make):
    querier = make().fit([[0.1, 0.2]], [0.3], [0.4])
    with pytest.raises(ValueError, match="x: "):
        querier.tell([[0.1, 0.2], [0.3]], [0.1, 0.2], [0.1, 0.2])


def test_sparse_input(make):
    sparse = csr_array(np.eye(2))
    with pytest.raises(TypeError, match="Sparse data was passed for X"):
        make().fit(sparse, [0.1, 0.2])
    with pytest.raises(TypeError, match="Sparse data was passed for y"):
        make().fit(np.eye(2), sparse)


def test_wrong_number_of_features_after_fit(make):
    querier = make().fit([[0.1, 0.2]], [0.3])
    with pytest.raises(ValueError, match=r"x has 3 features, but .* is expecting 2 features"):
        querier.tell([0.1, 0.2, 0.3], 0.1)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 2 features"):
        querier.query([[0.1, 0.2, 0.3]], [0.1])


def test_z_has_to_be_given_always_or_never(make):
    with_z = make().fit([[0.1, 0.2]], [0.3], [0.4])
    with pytest.raises(ValueError, match="z is missing: fit was given"):
        with_z.tell([0.1, 0.2], 0.3)
    with pytest.raises(ValueError, match=r"z has shape \(1, 2\), but in fit it had \(1,\)"):
        with_z.tell([0.1, 0.2], 0.3, [[0.4, 0.5]])
    without = make().fit([[0.1, 0.2]], [0.3])
    with pytest.raises(ValueError, match="z was not given to fit"):
        without.tell([0.1, 0.2], 0.3, 0.4)
    assert without.tell([0.1, 0.2], 0.3).n_told_ == 1


def test_not_fitted(make):
    with pytest.raises(NotFittedError, match=r"call fit\(X, y\) first, or pass data"):
        make().query()
    with pytest.raises(NotFittedError, match="before tell"):
        make().tell([0.1, 0.2], 0.3)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"bounds": [(0, 1)] * 3}, r"bounds .* 2 features, shape \(2, 2\); its shape is \(3, 2\)"),
        ({"bounds": [(0, 1), (2, 2)]}, r"bounds of feature 1 .* low < high, got \(2, 2\)"),
        ({"bounds": [(1, 0), (0, 1)]}, "bounds of feature 0"),
        ({"bounds": [(0, np.inf), (0, 1)]}, "bounds of feature 0"),
        ({"bounds": (np.nan, 1)}, "bounds of feature 0"),
        ({"bounds": (-1e308, 1e308)}, "bounds of feature 0"),
        ({"bounds": "unit"}, "bounds must hold"),
        ({"y_loc": np.nan}, "y_loc must be a finite number or 'auto', got nan"),
        ({"y_loc": "mean"}, "y_loc must be a finite number or 'auto', got 'mean'"),
        ({"y_scale": 0}, "y_scale must be a positive finite number or 'auto', got 0"),
        ({"y_scale": [1.0, 2.0]}, "y_scale must be"),
        ({"y_scale": True}, "y_scale must be"),
        ({"random_state": "seed"}, "seed"),
    ],
)
def test_bad_parameters(make, params, message):
    querier = make(**params)
    for call in querier.fit, querier.query:
        with pytest.raises(ValueError, match=message):
            call([[0.1, 0.2]], [0.3])
    assert not hasattr(querier, "X_")


# ---- warnings


def test_measured_points_outside_bounds(make):
    X, y, z = campaign(0)
    X[1, 1] = 31.0
    querier = make(bounds=BOUNDS, budget=9)
    message = (
        r"1 of 6 measured points lie outside bounds: feature 1 .* to 31, .*\(-5, 30\).*bounds="
    )
    with pytest.warns(DataScaleWarning, match=message) as record:
        querier.fit(X, y, z)
    assert len(record) == 1
    assert record[0].filename == __file__
    querier.query()  # says nothing more
    with pytest.warns(DataScaleWarning, match="1 of 2 measured points"):
        querier.tell([[3.0, 0.0], [6.5, 0.0]], [0.0, 0.1], [0.5, 0.5])
    np.testing.assert_array_equal(querier.X_[1], X[1])
    with pytest.warns(DataScaleWarning, match="1 of 6 measured points") as record:
        make(bounds=BOUNDS).query(X, y, z)
    assert record[0].filename == __file__
    X[1, 1] = 30.0 + 1e-6  # rounding
    querier.fit(X, y, z)


def test_warnings_turned_into_errors_change_nothing(make):
    querier = make().fit([[0.1, 0.2]], [0.3], [0.4])
    before = state(querier)
    for call in querier.tell, querier.fit:
        with pytest.raises(DataScaleWarning):
            call([[0.1, 20.0]], [0.3], [0.4])
        assert state(querier) == before


# ---- safe queriers


@some
@given(seed=seeds, threshold=st.integers(-320, 320).map(lambda k: k / 64), scale=st.floats(0.5, 2))
def test_below_is_above_turned_round(make_safe, seed, threshold, scale):
    X, y, z = campaign(seed)
    common = dict(bounds=BOUNDS, z_scale=scale)
    above = make_safe(safety_threshold=threshold, **common).query(X, y, threshold + z)
    below = make_safe(safety_threshold=-threshold, safe_when="below", **common)
    np.testing.assert_allclose(below.query(X, y, -threshold - z), above, rtol=0, atol=35e-5)
    shifted = make_safe(**common).query(X, y, z)
    np.testing.assert_allclose(above, shifted, rtol=0, atol=35e-5)


@some
@given(seed=seeds)
def test_several_limits_each_in_its_units(make_safe, seed):
    X, y, z = campaign(seed)
    other = campaign(seed + 1)[2]
    # At unit scale, and with one value of each parameter for all limits.
    expected = make_safe(bounds=BOUNDS).query(X, y, np.column_stack([z, other]))
    querier = make_safe(
        bounds=BOUNDS, safety_threshold=[0, 300], safe_when=("above", "below"), z_scale=[1, 64]
    )
    both = np.column_stack([z, 300 - 64 * other])
    np.testing.assert_allclose(querier.query(X, y, both), expected, rtol=0, atol=35e-5)
    querier.fit(X[:4], y[:4], both[:4]).tell(X[4], y[4], both[4]).tell(X[5:], y[5:], both[5:])
    np.testing.assert_allclose(querier.query(), expected, rtol=0, atol=35e-5)
    # Models, and the guard's, look at each limit on its own; else the worst is all that counts.
    if not (isinstance(querier, GPSafeQuerier) or getattr(querier, "policy", None) == "auto"):
        if isinstance(querier, AmortizedSafeQuerier):
            params = {"bounds": BOUNDS, "guard": False}
            expected = make_safe(**params).query(X, y, np.column_stack([z, other]))
        else:
            params = {"bounds": BOUNDS}
        worst = make_safe(**params).query(X, y, np.minimum(z, other))
        np.testing.assert_allclose(worst, expected, rtol=0, atol=35e-5)


def test_a_column_of_measurements_is_a_list_of_them(make_safe):
    X, y, z = campaign(0)
    flat = make_safe(bounds=BOUNDS).fit(X, y, z)
    column = make_safe(bounds=BOUNDS).fit(X, y[:, None], z[:, None])
    np.testing.assert_array_equal(column.query(), flat.query())
    assert column.z_.shape == (6,)
    column.tell(X[0], y[0], [[z[0]]]).tell(X[:2], y[:2], z[:2, None])
    assert column.z_.shape == (9,)


def test_missing_z_is_y(make_safe):
    X, _, z = campaign(0)
    both = make_safe(bounds=BOUNDS).fit(X, z, z).tell(X[0], z[0], z[0])
    one = make_safe(bounds=BOUNDS).fit(X, z).tell(X[0], z[0])
    np.testing.assert_array_equal(one.query(), both.query())
    np.testing.assert_array_equal(one.z_, one.y_)
    np.testing.assert_array_equal(one.query(X, z), both.query(X, z, z))


@some
@given(seed=seeds, factor=st.integers(-6, 6).map(lambda k: 2.0**k))
def test_auto_scale_of_the_margin(make_safe, seed, factor):
    X, y, z = campaign(seed)
    querier = make_safe(bounds=BOUNDS, z_scale="auto", safety_threshold=300.0)
    first = querier.query(X, y, 300 + z)
    np.testing.assert_allclose(querier.query(X, y, 300 + factor * z), first, rtol=0, atol=35e-5)
    stated = make_safe(bounds=BOUNDS, z_scale=np.sqrt(np.mean(z**2)))
    np.testing.assert_allclose(stated.query(X, y, z), first, rtol=0, atol=35e-5)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"safety_threshold": np.nan}, "safety_threshold must be a finite number, got nan"),
        ({"safety_threshold": "auto"}, "safety_threshold must be a finite number, got 'auto'"),
        ({"safety_threshold": [0, 1]}, r"safety_threshold has 2 values, but z has 1 column"),
        ({"safe_when": "up"}, "safe_when must be 'above' or 'below', got 'up'"),
        ({"safe_when": ["above", "below"]}, "safe_when has 2 values, but z has 1 column"),
        ({"z_scale": ["auto"]}, "z_scale must be 'auto' for all limits or a number for each"),
        ({"z_scale": -1}, "z_scale must be a positive finite number or 'auto', got -1"),
        ({"z_scale": [1, 2, 3]}, "z_scale has 3 values, but z has 1 column"),
    ],
)
def test_bad_safety_parameters(make_safe, params, message):
    querier = make_safe(**params)
    for call in querier.fit, querier.query:
        with pytest.raises(ValueError, match=message):
            call([[0.1, 0.2]], [0.3], [0.4])


def test_nothing_safe_to_start_from(make_safe):
    querier = make_safe(safety_threshold=0.5, safe_when="below")
    message = r"none of the 2 observations is safe: safe means z <= 0.5.*safe_when"
    with pytest.warns(SafetyWarning, match=message):
        querier.fit([[0.1, 0.2], [0.2, 0.3]], [0.3, 0.1], [0.6, 0.7])
    querier.tell([0.1, 0.2], 0.3, 0.8)  # said once
    np.testing.assert_array_equal(querier.z_, [0.6, 0.7, 0.8])
    querier.fit([[0.1, 0.2]], [0.3], [0.5])  # the limit itself is safe


def test_repr_says_what_safe_means(make_safe):
    text = repr(make_safe())
    assert re.search(r"safety_threshold=0\.0, safe_when='above'\)$", text)
    text = repr(make_safe(safety_threshold=3.5))
    assert text.count("safety_threshold=3.5") == 1
    assert make_safe(safety_threshold=3.5, safe_when="below").safety_rule == "safe means z <= 3.5"


def test_limits_are_checked_by_name(make_safe):
    querier = make_safe(safety_threshold=[0.0, 5.0], safe_when=["above", "below"])
    z = pd.DataFrame({"T": [1.0, 1.2, 0.8], "p": [2.0, 2.1, 1.9]})
    X, y = np.array([[0.45, 0.5], [0.5, 0.55], [0.55, 0.5]]), [0.1, 0.2, -0.1]
    querier.fit(X, y, z)
    swapped = z[["p", "T"]]
    with pytest.raises(ValueError, match="z has columns"):
        querier.tell(X, y, swapped)
    with pytest.raises(ValueError, match="z has columns"):
        querier.tell(X[0], y[0], swapped.iloc[0])
    with pytest.raises(ValueError, match="z has columns"):
        querier.query(X, y, swapped)
    assert querier.tell(X[0], y[0], z.iloc[0]).n_told_ == 1


def test_a_forgotten_z_is_missed(make_safe):
    X, y = np.array([[0.45, 0.5], [0.5, 0.55], [0.55, 0.5]]), [0.1, 0.2, -0.1]
    querier = make_safe().fit(X, y, [1.0, 1.2, 0.8])
    with pytest.raises(ValueError, match="z is missing"):
        querier.query(X, y)
    with pytest.raises(ValueError, match="z is missing"):
        querier.tell(X, y)
