"""Tables in, tables out."""

import copy
import pickle
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from sklearn_asal import AmortizedSafeQuerier, Grid, Integer, RandomQuerier
from sklearn_asal.tables import library_of, table

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
LIBRARIES = {"pandas": pd, "polars": pl}
BOUNDS = {"T": (0.0, 6.0), "n": Integer(1, 80)}
X = np.array([[3.0, 30.0], [2.5, 40.0], [3.5, 50.0]])
Y, Z = np.array([0.3, 0.1, 0.2]), np.array([1.0, 0.9, 1.1])


@pytest.fixture(params=LIBRARIES)
def library(request):
    return LIBRARIES[request.param]


def told(library, order=("T", "n")):
    columns = {"T": X[:, 0], "n": X[:, 1].astype(int)}
    return library.DataFrame({name: columns[name] for name in order})


def test_what_is_told_as_tables_is_proposed_as_tables(make, library):
    arrays = make(bounds=BOUNDS).fit(X, Y, Z)
    querier = make(bounds=BOUNDS).fit(told(library), Y, Z)
    for _ in range(2):
        expected, points = arrays.query(n_queries=2), querier.query(n_queries=2)
        assert type(points) is library.DataFrame
        assert type(expected) is np.ndarray
        assert list(points.columns) == ["T", "n"]
        assert [str(kind).lower() for kind in points.dtypes] == ["float64", "int64"]
        np.testing.assert_array_equal(points.to_numpy(), expected)
        arrays.tell(expected, [0.1, 0.2], [1.0, 1.0])
        querier.tell(points, [0.1, 0.2], [1.0, 1.0])
    np.testing.assert_array_equal(querier.X_, arrays.X_)


def test_the_other_order_of_columns(make, library):
    expected = make(bounds=BOUNDS).fit(X, Y, Z)
    turned = told(library, order=("n", "T"))
    querier = make(bounds=BOUNDS).fit(turned, Y, Z)
    assert list(querier.feature_names_in_) == ["T", "n"]
    np.testing.assert_array_equal(querier.X_, X)
    assert list(querier.query().columns) == ["T", "n"]
    np.testing.assert_array_equal(querier.query().to_numpy(), expected.query())
    np.testing.assert_array_equal(
        querier.query(turned, Y, Z, pending=turned[:1]).to_numpy(),
        expected.query(X, Y, Z, pending=X[:1]),
    )
    pool = library.DataFrame({"n": [7, 8], "T": [1.0, 2.0]})
    picked, row = querier.query(pool=pool, return_indices=True)
    np.testing.assert_array_equal(picked.to_numpy(), pool.to_numpy()[row][:, ::-1])
    querier.tell(turned[:1], 0.1, 1.0)
    np.testing.assert_array_equal(querier.X_[-1], X[0])
    if library is pd:  # a labelled row
        querier.tell(turned.iloc[1], 0.1, 1.0)
        np.testing.assert_array_equal(querier.X_[-1], X[1])
    if hasattr(querier, "assess"):
        np.testing.assert_array_equal(
            querier.assess(turned).y_mean, querier.assess(told(library)).y_mean
        )
    x = querier.query()
    np.testing.assert_array_equal(querier.approach(x).points[-1:], x.to_numpy())


def test_tables_that_are_passed_to_a_query(make, library):
    querier = make(bounds=[(0.0, 6.0), (1.0, 80.0)])
    points = querier.query(told(library), Y, Z)
    assert type(points) is library.DataFrame
    assert list(points.columns) == ["T", "n"]
    assert type(querier.query(X, Y, Z)) is np.ndarray
    # A campaign's answers are as it was told, whatever else is asked meanwhile.
    querier.fit(X, Y, Z)
    assert type(querier.query(told(library), Y, Z)) is library.DataFrame
    assert type(querier.query()) is np.ndarray


def test_everything_that_has_points_is_a_table(library):
    querier = AmortizedSafeQuerier(bounds=BOUNDS).fit(told(library), Y, Z)
    points, report, way = querier.query(return_report=True, path=True)
    assert type(points) is library.DataFrame
    assert len(report.p_safe) == 1
    assert type(way.points) is np.ndarray
    pool = library.DataFrame({"T": [1.0, 2.0], "n": [3, 4]})
    points, rows = querier.query(pool=pool, return_indices=True)
    np.testing.assert_array_equal(points.to_numpy(), pool.to_numpy()[rows])
    asked = querier.ask(n_queries=2)
    assert type(asked) is library.DataFrame
    np.testing.assert_array_equal(querier.pending_, asked.to_numpy())
    querier.tell(asked[:1], 0.1, 1.0).withdraw(asked[1:])
    assert len(querier.pending_) == 0
    many = querier.propose_many([(told(library), Y, Z)])
    assert type(many) is np.ndarray


def test_calibration_of_tables(library):
    querier = AmortizedSafeQuerier(bounds=BOUNDS)
    expected = querier.calibration(X, Y, Z).scores
    turned = told(library, order=("n", "T"))
    np.testing.assert_array_equal(querier.calibration(turned, Y, Z).scores, expected)
    checked = querier.fit(X, Y, Z).guard_.check(turned)
    np.testing.assert_array_equal(checked, querier.guard_.check(X))


def test_set_output(library):
    name = library.__name__
    querier = RandomQuerier(bounds=[(0.0, 6.0), Integer(1, 80)]).fit(X, Y)
    expected = querier.query()
    assert querier.set_output(transform=name) is querier
    points = querier.query()
    assert type(points) is library.DataFrame
    assert list(points.columns) == ["x0", "x1"]
    np.testing.assert_array_equal(points.to_numpy(), expected)
    # None leaves it as it is.
    for other in (
        querier.set_output(transform=None),
        pickle.loads(pickle.dumps(querier)),
        copy.deepcopy(querier),
        clone(querier).fit(X, Y),
    ):
        assert type(other.query()) is library.DataFrame
    querier.set_output(transform="default")
    assert type(querier.query()) is np.ndarray
    assert type(querier.fit(told(library), Y).query()) is np.ndarray
    # One library's tables in, another's out.
    querier.set_output(transform="polars")
    assert type(querier.fit(told(pd), Y).query()) is pl.DataFrame
    for wrong in ("arrow", 3, "Pandas"):
        with pytest.raises(ValueError, match="transform must be 'default', 'pandas' or 'polars'"):
            querier.set_output(transform=wrong)


def test_arrays_with_names_from_bounds(library):
    querier = RandomQuerier(bounds=BOUNDS).set_output(transform=library.__name__).fit(X, Y)
    assert list(querier.query().columns) == ["T", "n"]


def test_a_campaign_goes_on_after_fit_with_arrays(library):
    querier = RandomQuerier(bounds=BOUNDS).fit(told(library), Y)
    assert type(querier.query()) is library.DataFrame
    for other in (pickle.loads(pickle.dumps(querier)), copy.deepcopy(querier)):
        assert type(other.query()) is library.DataFrame
    querier.fit(X, Y)
    assert type(querier.query()) is np.ndarray


def test_whole_numbers_alone_are_whole():
    bounds = {"n": Integer(1, 10**9), "g": Grid([1.0, 2.0]), "x": (0, 5)}
    querier = RandomQuerier(bounds=bounds).fit(pd.DataFrame({"n": [3], "g": [1], "x": [2]}), [0.3])
    assert [str(kind) for kind in querier.query().dtypes] == ["int64", "float64", "float64"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (pd.DataFrame({"a": [1]}), "pandas"),
        (pl.DataFrame({"a": [1]}), "polars"),
        (pd.DataFrame([[1]]), None),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), None),
        (pa.table({"a": [1]}), None),
        ([[1]], None),
        (None, None),
    ],
)
def test_which_library(data, expected):
    assert library_of(data) == expected


def test_without_names_arrays_come_back():
    for frame in (pd.DataFrame(X), pd.DataFrame(X, columns=["a", "a"])):
        assert type(RandomQuerier(bounds=(0, 80)).fit(frame, Y).query()) is np.ndarray


def test_missing_columns_are_named(library):
    querier = RandomQuerier(bounds=BOUNDS)
    with pytest.raises(ValueError, match=r"X has columns \['T'\], but bounds are of \['T', 'n'\]"):
        querier.fit(told(library)[["T"]], Y)
    querier.fit(told(library), Y)
    with pytest.raises(ValueError, match="x has columns"):
        querier.tell(told(library)[["n"]], Y)
    with pytest.raises(ValueError, match="pool has columns"):
        querier.query(pool=told(library)[["n"]])


def test_a_library_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError):
        table(X, "polars", ["a", "b"], [False, False])
