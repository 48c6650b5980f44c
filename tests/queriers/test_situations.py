"""Situations of real projects: tables, gaps in data, forks, settings of the host, ties."""

import contextlib
import datetime
import itertools
import locale
import os
import pickle
import re
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from sklearn_asal import (
    AmortizedQuerier,
    AmortizedSafeQuerier,
    CandidatePool,
    DataScaleWarning,
    GPSafeQuerier,
    NoSafeCandidateError,
    PoolExhaustedError,
    RandomQuerier,
    SafetyWarning,
)
from sklearn_asal.limits import without_distance
from sklearn_asal.policies.checkpoint import save_policy
from sklearn_asal.policies.transformer import TransformerNetwork

from ..common import QUERIERS, policy_file

# Ordinary data must not raise a single warning of ours.
pytestmark = [
    pytest.mark.filterwarnings(
        "error::UserWarning",
        "ignore:no observation in the middle",
        "ignore:no row of the pool near",
        "ignore:all measurements are of one point",
        "ignore:nothing that was looked at is safe",
        "ignore:the guard found no point that is safe enough",
        "ignore:z says whether",
    ),
    pytest.mark.timeout(120),
]
some = settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
REPOSITORY = Path(__file__).resolve().parents[2]

X = np.array([[0.45, 0.5], [0.5, 0.45], [0.55, 0.55]])
y = np.array([0.1, 0.3, 0.2])
z = np.array([0.9, 0.8, 0.7])
FRAME = pd.DataFrame(X, columns=["speed", "angle"])
# Two limits, one on each side.
LIMITS = dict(safety_threshold=[0.0, 5.0], safe_when=["above", "below"])
BOTH = pd.DataFrame({"force": z, "heat": [2.0, 2.1, 1.9]})


def campaign(seed=0, n=12):
    """Inputs around the middle, outputs, and measurements most of which are safe."""
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(0.3, 0.7, (n, 2))
    return inputs, rng.normal(size=n), np.append(0.5, rng.normal(1.0, 0.7, n - 1))


def many(querier):
    """``propose_many`` for one campaign, of those that have it."""
    if hasattr(querier, "propose_many"):
        return lambda *data: querier.propose_many([data])
    return querier.query


@contextlib.contextmanager
def unchanged(querier):
    """Nothing that was told is lost, nothing is added."""
    before = pickle.dumps(querier)
    yield
    assert pickle.dumps(querier) == before


# ---- labels of rows are no names of limits or features

LABELS = {
    "text": ["run-a", "run-b", "run-c"],
    "names of features": ["angle", "speed", "angle"],
    "times": pd.date_range("2024-01-01", periods=3),
    "numbers": [7, 3, 5],
    "pairs": pd.MultiIndex.from_product([["day 1"], [1, 2, 3]]),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_of_rows_name_nothing(make, labels):
    outputs, signals = pd.Series(y, index=labels), pd.Series(z, index=labels)
    frame = FRAME.set_index(pd.Index(labels))
    plain = make().fit(X, y, z).tell(X[:1], y[:1], z[:1]).tell(X[1:], y[1:], z[1:])
    querier = make().fit(frame, outputs, signals)
    querier.tell(frame[:1], pd.Series([y[0]], index=["run-d"]), pd.Series([z[0]], index=["run-d"]))
    querier.tell(frame[1:], outputs[1:], signals[1:])
    np.testing.assert_array_equal(querier.X_, plain.X_)
    np.testing.assert_array_equal(querier.z_, plain.z_)
    np.testing.assert_array_equal(querier.query(), plain.query())
    expected = make(budget=9).query(X, y, z)
    querier = make(budget=9).fit(frame, outputs, signals)
    for ask in querier.query, make(budget=9).query, many(querier):
        np.testing.assert_allclose(ask(frame, outputs, signals), expected, rtol=0, atol=1e-6)


def test_labels_of_rows_after_a_table_of_one_limit(make):
    querier = make().fit(FRAME, y, pd.DataFrame({"force": z}))
    querier.tell(FRAME.iloc[0], y[0], pd.Series([0.9], index=["run-d"]))
    querier.tell(FRAME[:2], y[:2], pd.Series([0.9, 0.8], index=["run-e", "run-f"]))
    assert querier.z_.tolist() == [*z, 0.9, 0.9, 0.8]
    with pytest.raises(ValueError, match="z has columns"):
        querier.tell(FRAME[:1], y[:1], pd.DataFrame({"heat": [0.9]}))


def test_one_row_of_several_limits_keeps_its_names(make):
    querier = make(**LIMITS if "safe_when" in make().get_params() else {}).fit(FRAME, y, BOTH)
    querier.tell(FRAME.iloc[0], y[0], BOTH.iloc[0])
    querier.tell(FRAME.iloc[0], y[0], pd.Series([0.9, 2.0]))  # without names
    np.testing.assert_array_equal(querier.z_[-2:], [[0.9, 2.0]] * 2)
    for names in ["heat", "force"], ["run-d", "run-e"]:
        for row in pd.Series([2.0, 0.9], index=names), pd.DataFrame([[2.0, 0.9]], columns=names):
            with unchanged(querier), pytest.raises(ValueError, match="z has columns"):
                querier.tell(FRAME.iloc[0], y[0], row)
    with unchanged(querier), pytest.raises(ValueError, match="z has columns"):
        querier.query(X, y, BOTH[["heat", "force"]])


def test_one_row_of_features_keeps_its_names(make):
    querier = make().fit(FRAME, y, z)
    for row in FRAME.iloc[0], FRAME.loc[0, ["speed", "angle"]], FRAME[:1]:
        querier.tell(row, 0.1, 0.9)
    querier.tell(pd.Series([0.45, 0.5]), 0.1, 0.9)  # without names
    np.testing.assert_array_equal(querier.X_[3:], X[[0] * 4])
    for names in ["angle", "speed"], ["run-a", "run-b"]:
        row = pd.Series([0.45, 0.5], index=names)
        with unchanged(querier), pytest.raises(ValueError, match="feature names should match"):
            querier.tell(row, 0.1, 0.9)
        if hasattr(querier, "assess"):
            with pytest.raises(ValueError, match="feature names should match"):
                querier.assess(row)


def test_one_feature_and_labels_of_rows():
    querier = AmortizedQuerier("1d").fit(pd.DataFrame({"speed": [0.5, 0.4]}), [0.1, 0.2])
    querier.tell(pd.Series([0.3, 0.6], index=["run-d", "run-e"]), pd.Series([0.1, 0.2]))
    querier.tell(pd.Series([0.7], index=["speed"]), 0.1)
    assert querier.X_.ravel().tolist() == [0.5, 0.4, 0.3, 0.6, 0.7]
    with pytest.raises(ValueError, match="feature names should match"):
        querier.tell(pd.DataFrame({"angle": [0.3]}), 0.1)


# ---- tables that are not pandas


class Bare:
    """As little of a table as scikit-learn understands."""

    def __init__(self, frame):
        self._frame = frame

    def __dataframe__(self, nan_as_null=False, allow_copy=True):
        return self

    def column_names(self):
        return iter(self._frame.columns)

    def __array__(self, dtype=None, copy=None):
        return np.array(self._frame, dtype=dtype)


TABLES = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.DataFrame({name: frame[name].tolist() for name in frame}),
    "pyarrow": lambda frame: pa.table({name: frame[name].tolist() for name in frame}),
    "batch": lambda frame: pa.RecordBatch.from_pydict(
        {name: frame[name].tolist() for name in frame}
    ),
    "bare": Bare,
}


@pytest.fixture(params=TABLES)
def table(request):
    """Makes a table of some library of a pandas one."""
    return TABLES[request.param]


def test_tables_give_the_answers_of_arrays(make, table):
    plain = make(budget=9).fit(X, y, z)
    querier = make(budget=9).fit(table(FRAME), y, table(pd.DataFrame({"force": z})))
    assert querier.feature_names_in_.tolist() == ["speed", "angle"]
    np.testing.assert_array_equal(querier.X_, X)
    np.testing.assert_array_equal(querier.query(), plain.query())
    for ask in querier.query, many(querier):
        np.testing.assert_allclose(ask(table(FRAME), y, z), plain.query(), rtol=0, atol=1e-6)
    querier.tell(table(FRAME[:1]), 0.1, table(pd.DataFrame({"force": z[:1]})))
    querier.tell(table(FRAME[1:]), y[1:], z[1:])
    np.testing.assert_array_equal(querier.X_, [*X, *X])
    found, rows = querier.query(pool=table(0.9 * FRAME), return_indices=True)
    np.testing.assert_array_equal(found, 0.9 * X[rows])
    np.testing.assert_array_equal(querier.query(pool=CandidatePool(table(0.9 * FRAME))), found)


def test_swapped_columns_of_any_table(make, table):
    querier = make().fit(table(FRAME), y, z)
    swapped = FRAME[["angle", "speed"]]
    calls = {
        "x": lambda: querier.tell(table(swapped[:1]), y[:1], z[:1]),
        "X": lambda: querier.query(table(swapped), y, z),
        "pool": lambda: querier.query(pool=table(swapped)),
        # In a pool of its own, and made of another library than the data of fit.
        "pool ": lambda: querier.query(pool=CandidatePool(swapped)),
        "X ": lambda: many(querier)(table(swapped), y, z),
    }
    if hasattr(querier, "assess"):
        calls["x "] = lambda: querier.assess(table(swapped))
    for name, call in calls.items():
        message = rf"feature names should .*: {name.strip()} has \['angle', 'speed'\], fit had"
        with unchanged(querier), pytest.raises(ValueError, match=message):
            call()
    assert querier.tell(swapped.to_numpy(), y, z).n_told_ == 3  # arrays have no names


def test_swapped_limits_of_any_table(make, table):
    params = LIMITS if "safe_when" in make().get_params() else {}
    querier = make(**params).fit(FRAME, y, table(BOTH))
    np.testing.assert_array_equal(querier.z_, BOTH)
    querier.tell(X[0], y[0], table(BOTH[:1]))
    swapped = BOTH[["heat", "force"]]
    for call in (
        lambda: querier.tell(X[0], y[0], table(swapped[:1])),
        lambda: querier.tell(X, y, table(swapped)),
        lambda: querier.query(X, y, table(swapped)),
        lambda: many(querier)(X, y, table(swapped)),
    ):
        with unchanged(querier), pytest.raises(ValueError, match=r"z has columns .*'heat', 'for"):
            call()


@pytest.mark.parametrize("kind", [AmortizedQuerier, AmortizedSafeQuerier])
def test_campaigns_whose_columns_differ(kind, table):
    swapped = table(FRAME[["angle", "speed"]])
    querier = kind(policy_file(kind is AmortizedSafeQuerier))
    with pytest.raises(ValueError, match=r"campaign 1: X has .*\['angle', 'speed'\], campaign 0"):
        querier.propose_many([(table(FRAME), y, z), (swapped, y, z)])
    if kind is AmortizedSafeQuerier:
        querier.set_params(**LIMITS)
        histories = [(X, y, table(BOTH)), (X, y, BOTH), (X, y, table(BOTH[["heat", "force"]]))]
        with pytest.raises(ValueError, match=r"campaign 2: z has .*\['heat', 'force'\], campaign"):
            querier.propose_many(histories)


def test_columns_without_names(make):
    querier = make().fit(FRAME, y, z)
    expected = make().query(X, y, z)
    for data in X, X.tolist(), pd.DataFrame(X), pd.DataFrame(X, columns=[("a", 1), ("b", 2)]):
        np.testing.assert_array_equal(querier.query(data, y, z), expected)
    querier.tell(pd.DataFrame(X), y, z)
    for row in pl.Series([0.45, 0.5]), pa.array([0.45, 0.5]), (0.45, 0.5):
        querier.tell(row, pl.Series([0.1]), pa.array([0.9]))
    np.testing.assert_array_equal(querier.X_[6:], X[[0] * 3])


# ---- missing values that are not NaN

NULL = {
    "NaN": np.nan,
    "None": None,
    "NA": pd.NA,
    "NaT": pd.NaT,
    "NaT of NumPy": np.datetime64("NaT"),
    "masked": np.ma.masked,
    "Decimal": Decimal("NaN"),
}


def replaced(rows, value):
    """Nested lists with another first entry in the second row."""
    rows = np.array(rows).tolist()
    if isinstance(rows[1], list):
        rows[1][0] = value
    else:
        rows[1] = value
    return rows


def masked(rows):
    rows = np.array(replaced(rows, -999.0))
    return np.ma.masked_values(rows, -999.0)


def columns(rows):
    rows = replaced(rows, None)
    rows = [row if isinstance(row, list) else [row] for row in rows]
    return {f"c{j}": list(column) for j, column in enumerate(zip(*rows, strict=True))}


def nullable(rows, dtype):
    return pd.DataFrame({name: pd.array(part, dtype) for name, part in columns(rows).items()})


def objects(rows, value):
    array = np.array(rows).astype(object)
    array[(1, 0)[: array.ndim]] = value
    return array


GAPS = {
    **{name: lambda rows, value=value: replaced(rows, value) for name, value in NULL.items()},
    **{f"{name}, object": lambda rows, v=value: objects(rows, v) for name, value in NULL.items()},
    "masked array": masked,
    "masked rows in a list": lambda rows: [*masked(rows)],
    "masked rows in a tuple": lambda rows: (*masked(rows),),
    "Float64": lambda rows: nullable(rows, "Float64"),
    "Arrow in pandas": lambda rows: nullable(rows, "double[pyarrow]"),
    "polars": lambda rows: pl.DataFrame(columns(rows)),
    "pyarrow": lambda rows: pa.table(columns(rows)),
}


def missing(name, n):
    return rf"Input {name} contains NaN or other missing values .*: 1 of {n} entries"


@pytest.mark.parametrize("gap", GAPS.values(), ids=GAPS)
def test_missing_values(make, gap):
    data = {"X": X, "y": y, "z": z}
    querier, without_z = make().fit(**data), make().fit(X, y)
    output = gap(y)  # may be missing where there is z, but is needed where there is none
    kept = make().fit(X, y=output, z=z)
    np.testing.assert_array_equal(kept.y_, [y[0], np.nan, y[2]])
    np.testing.assert_array_equal(kept.tell(X, output, z).y_[3:], kept.y_[:3])
    assert np.isfinite(make().query(X, output, z)).all()
    for call in without_z.fit, without_z.query, many(without_z), without_z.tell:
        with unchanged(without_z), pytest.raises(ValueError, match=missing("y", 3)):
            call(X, output)
    for name in "Xz":
        values = data[name]
        # A pool of one is not a table that names its features otherwise than fit.
        spoiled = [gap(value) if key == name else value for key, value in data.items()]
        for call in querier.fit, querier.query, many(querier), make().fit, make().query:
            with unchanged(querier), pytest.raises(ValueError, match=missing(name, values.size)):
                call(*spoiled)
        told = name.replace("X", "x")
        with unchanged(querier), pytest.raises(ValueError, match=missing(told, values.size)):
            querier.tell(*spoiled)
    for pool in gap(X), [*gap(X)] if isinstance(gap(X), np.ndarray) else gap(X):
        with pytest.raises(ValueError, match=missing("pool", 6)):
            querier.query(pool=pool)
    message = missing("bounds", 4) + r"|bounds of feature 1 must be finite .* got \(nan, 1\)"
    with pytest.raises(ValueError, match=message):
        make(bounds=gap([[0.0, 1.0]] * 2)).fit(X, y, z)
    with pytest.raises(ValueError, match=missing("bounds", 4)):
        CandidatePool.from_bounds(gap([[0.0, 1.0]] * 2), 8)
    if hasattr(querier, "assess"):
        with pytest.raises(ValueError, match=missing("x", 6)):
            querier.assess(gap(X))


@pytest.mark.parametrize("value", [v for v in NULL.values() if v is not None], ids=str)
def test_one_missing_number(make, value):
    querier = make().fit(X, y, z)
    # One date alone has a type, which is wrong whatever its value.
    message = "Input {0} contains NaN or other missing|{0} holds dates"
    for name, x, output, signal in (
        ("x", [0.4, value], 0.1, 0.9),
        ("z", [0.4, 0.4], 0.1, value),
        ("z", [0.4, 0.4], 0.1, np.ma.masked_array([0.9], mask=[True])),
        ("z", [0.4, 0.4], 0.1, np.ma.masked_array(0.9, mask=True)),
    ):
        with unchanged(querier), pytest.raises(ValueError, match=message.format(name)):
            querier.tell(x, output, signal)
    querier = make().fit(X, y)
    for output in value, [value]:
        with unchanged(querier), pytest.raises(ValueError, match=message.format("y")):
            querier.tell([0.4, 0.4], output)


def test_missing_booleans(make):
    for gap in (
        [True, None, False],
        [True, pd.NA, False],
        pd.array([True, None, False], "boolean"),
        pd.Series([True, None, False]),
        pl.Series([True, None, False]),
        pa.array([True, None, False]),
        np.ma.masked_array([True, True, False], mask=[False, True, False]),
    ):
        querier = make().fit(X, y, [True, True, False])
        for call in querier.fit, querier.tell, querier.query:
            with unchanged(querier), pytest.raises(ValueError, match=missing("z", 3)):
                call(X, y, gap)
    both = pl.DataFrame({"ok": [True, None, False], "heat": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match="Input z contains NaN or other missing values"):
        make().fit(X, y, both)
    with pytest.raises(ValueError, match="Input z contains NaN or other missing values"):
        make().fit(X, y, both.with_columns(ok=pl.lit(True), heat=pl.lit(None)))


def test_data_without_gaps_whatever_their_type(make):
    plain = make().fit(X, y, z).query()
    for convert in (
        np.ma.masked_array,
        lambda data: np.ma.masked_array(data, mask=np.zeros(np.shape(data))),
        lambda data: pd.DataFrame(data).convert_dtypes().to_numpy(),
        lambda data: pd.DataFrame(data).astype("Float64"),
        lambda data: pd.DataFrame(data).astype("double[pyarrow]"),
        lambda data: np.array(data, dtype=object),
        lambda data: np.asarray(data, order="F"),
        lambda data: np.asarray(data).astype(">f8"),
        lambda data: [*np.array(data)],
    ):
        querier = make().fit(convert(X), convert(y), convert(z))
        np.testing.assert_array_equal(querier.query(), plain)
        querier.tell(convert(X), convert(y), convert(z))
        np.testing.assert_array_equal(querier.X_, [*X, *X])


DAY, HOUR = datetime.date(2024, 1, 1), datetime.timedelta(hours=1)
DATES = {
    "date": DAY,
    "time": datetime.time(12),
    "datetime": datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc),
    "duration": HOUR,
    "Timestamp": pd.Timestamp("2024-01-01"),
    "datetime64": np.datetime64("2024-01-01"),
    "timedelta64": np.timedelta64(1, "s"),
}
TIMES = {
    **{f"{name} in a list": lambda d=date: [[d, 0.5]] * 3 for name, date in DATES.items()},
    **{
        f"{name} in pandas": lambda d=date: pd.DataFrame({"t": [d] * 3, "b": [0.5] * 3})
        for name, date in DATES.items()
    },
    **{
        f"{name} in polars": lambda d=date: pl.DataFrame({"t": [d] * 3, "b": [0.5] * 3})
        for name, date in DATES.items()
        if "64" not in name
    },
    **{
        f"{name} in pyarrow": lambda d=date: pa.table({"t": [d] * 3, "b": [0.5] * 3})
        for name, date in DATES.items()
        if "64" not in name
    },
    "datetime64 array": lambda: np.array([["2024-01-01"] * 2] * 3, dtype="M8[s]"),
    "timedelta64 array": lambda: np.array([[1, 2]] * 3, dtype="m8[s]"),
    "with NaT": lambda: pd.DataFrame({"t": pd.to_timedelta([1, None, 2]), "b": [0.5] * 3}),
    "nothing but times": lambda: pl.DataFrame({"t": [HOUR] * 3, "b": [HOUR] * 3}),
}


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
def test_dates_are_no_features(make, times):
    querier, data = make().fit(X, y, z), times()
    hint = r"{} holds dates or durations\. Convert them to numbers, such as the seconds since"
    for name, call in {
        "X": lambda: querier.fit(data, y, z),
        "X ": lambda: querier.query(data, y, z),
        "X  ": lambda: many(querier)(data, y, z),
        "x": lambda: querier.tell(data, y, z),
        "pool": lambda: querier.query(pool=data),
        "z": lambda: querier.fit(X, y, data),
        "bounds": lambda: make(bounds=data[:2]).fit(X, y, z),
    }.items():
        with unchanged(querier), pytest.raises(ValueError, match=hint.format(name.strip())):
            call()


@pytest.mark.parametrize("date", DATES.values(), ids=DATES)
def test_dates_are_no_outputs(make, date):
    querier = make().fit(X, y, z)
    for name, call in {
        "y": lambda: querier.tell(X[0], date, 0.9),
        "y ": lambda: querier.tell(X[:1], [date], 0.9),
        "z": lambda: querier.tell(X[0], 0.1, date),
        "z ": lambda: querier.tell(X[:1], [0.1], pd.Series([date])),
    }.items():
        with unchanged(querier), pytest.raises(ValueError, match=f"{name.strip()} holds dates or"):
            call()


# ---- safety signals without a distance

INPUTS, OUTPUTS, _ = campaign(n=10)
FLAGS = np.array([True, True, False, True, True, True, False, True, True, True])
BOOLEANS = {
    "array": FLAGS,
    "column": FLAGS[:, None],
    "list": FLAGS.tolist(),
    "tuple of NumPy's": (*FLAGS,),
    "list of lists": FLAGS[:, None].tolist(),
    "objects": FLAGS.astype(object),
    "Series": pd.Series(FLAGS, index=[f"run-{i}" for i in range(10)]),
    "nullable": pd.array(FLAGS, "boolean"),
    "nullable Series": pd.Series(FLAGS, dtype="boolean"),
    "Arrow in pandas": pd.Series(FLAGS, dtype="bool[pyarrow]"),
    "frame": pd.DataFrame({"ok": FLAGS}),
    "polars": pl.Series(FLAGS),
    "polars table": pl.DataFrame({"ok": FLAGS}),
    "pyarrow": pa.array(FLAGS),
    "pyarrow table": pa.table({"ok": FLAGS}),
    "bare": Bare(pd.DataFrame({"ok": FLAGS})),
}


@pytest.mark.parametrize("flags", BOOLEANS.values(), ids=BOOLEANS)
def test_booleans_say_what_is_safe(make_safe, flags):
    expected = make_safe(budget=20).query(INPUTS, OUTPUTS, np.where(FLAGS, 1.0, -1.0))
    for threshold, side, scale in [
        (0.0, "above", 1.0),
        (350.0, "below", 50.0),
        (1, "below", "auto"),
    ]:
        querier = make_safe(
            budget=20, safety_threshold=threshold, safe_when=side, z_scale=scale
        ).fit(INPUTS, OUTPUTS, flags)
        assert querier.z_.dtype == bool
        np.testing.assert_array_equal(querier.z_, FLAGS)
        assert querier.safety_rule == "safe means z is True"
        np.testing.assert_array_equal(querier.query(), expected)
        for ask in querier.query, many(querier):
            np.testing.assert_allclose(ask(INPUTS, OUTPUTS, flags), expected, rtol=0, atol=1e-6)


def test_booleans_are_told_one_by_one(make_safe):
    whole = make_safe().fit(INPUTS, OUTPUTS, FLAGS)
    told = make_safe().fit(INPUTS[:2], OUTPUTS[:2], FLAGS[:2])
    forms = (
        bool,
        np.bool_,
        lambda flag: [bool(flag)],
        lambda flag: pd.Series([bool(flag)], index=["run-d"]),
        lambda flag: pl.Series([bool(flag)]),
        lambda flag: pd.array([flag], "boolean"),
        np.asarray,
        lambda flag: [[flag]],
    )
    for x, output, flag, form in zip(INPUTS[2:], OUTPUTS[2:], FLAGS[2:], forms, strict=True):
        told.tell(x, output, form(flag))
    np.testing.assert_array_equal(told.z_, FLAGS)
    assert told.z_.dtype == bool
    np.testing.assert_array_equal(told.query(), whole.query())
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(told)).query(), whole.query())
    for number in 1, 0.0, [1.0], "yes":
        with unchanged(told), pytest.raises(ValueError, match=r"z: "):
            told.tell(INPUTS[0], OUTPUTS[0], number)
    measured = make_safe().fit(X, y, z)
    for flag in True, np.False_, [True], pl.Series([True]):
        with unchanged(measured), pytest.raises(ValueError, match="limit 0 is measured in boolean"):
            measured.tell(X[0], y[0], flag)
    for mixed in [True, 0.3, False], np.array([True, 0.3, False], dtype=object):
        with pytest.raises(ValueError, match="z mixes booleans and numbers"):
            make_safe().fit(X, y, mixed)


def test_unconstrained_queriers_keep_booleans(make):
    querier = make().fit(INPUTS[:9], OUTPUTS[:9], FLAGS[:9].tolist()).tell(INPUTS[9], 0.1, True)
    assert querier.z_.dtype == bool
    np.testing.assert_array_equal(querier.z_, FLAGS)


def test_booleans_are_warned_of_once(make_safe):
    def messages(call):
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            call()
        texts = [str(w.message) for w in record if issubclass(w.category, SafetyWarning)]
        others = (
            "observation in the middle",
            "nothing that was looked at is safe",
            "the guard found",
        )
        return [text for text in texts if not any(other in text for other in others)]

    querier = make_safe(safety_threshold=0.5)
    (message,) = messages(lambda: querier.fit(INPUTS[:4], OUTPUTS[:4], FLAGS[:4]))
    assert "A distance teaches far more: pass the measured number and safety_threshold" in message
    assert messages(lambda: querier.tell(INPUTS[4:], OUTPUTS[4:], FLAGS[4:])) == []
    assert messages(querier.query) == []
    assert len(messages(lambda: querier.query(INPUTS, OUTPUTS, FLAGS))) == 1
    if hasattr(querier, "propose_many"):
        histories = [(INPUTS, OUTPUTS, FLAGS)] * 3
        assert len(messages(lambda: querier.propose_many(histories))) == 1
    (message,) = messages(lambda: make_safe().fit(X, y, [False] * 3))[:1]
    assert "none of the 3 observations is safe: safe means z is True" in message


@pytest.mark.parametrize("kind", TABLES)
def test_a_boolean_and_a_numeric_limit(make_safe, kind):
    heat = np.where(FLAGS, 300.0, 360.0) + np.arange(10)
    both = pd.DataFrame({"ok": FLAGS, "heat": heat})
    params = dict(safe_when=["below", "below"], z_scale=[7.0, 20.0])
    querier = make_safe(safety_threshold=[0.0, 350.0], **params)
    querier.fit(INPUTS, OUTPUTS, TABLES[kind](both))
    assert querier.safety_rule == "safe means z[0] is True and z[1] <= 350.0"
    numbers = np.column_stack([np.where(FLAGS, -7.0, 7.0), heat])
    expected = make_safe(safety_threshold=[0.0, 350.0], **params).query(INPUTS, OUTPUTS, numbers)
    np.testing.assert_array_equal(querier.query(), expected)
    for row in (
        both.iloc[0],
        [True, 300.0],
        (np.True_, 300),
        [[True, 300.0]],
        np.array([True, 300.0], dtype=object),
        TABLES[kind](both[:1]),
    ):
        querier.tell(INPUTS[0], OUTPUTS[0], row)
    querier.tell(INPUTS[:2], OUTPUTS[:2], [[True, 300.0], [True, 301.0]])
    assert querier.z_[10:].tolist() == [[True, 300.0]] * 7 + [[True, 301.0]]
    assert isinstance(querier.z_[0, 0], bool)
    for row in [1, 300.0], [True, False], [[1.0, 300.0]]:
        with unchanged(querier), pytest.raises(ValueError, match=r"z: limit \d is measured in"):
            querier.tell(INPUTS[0], OUTPUTS[0], row)
    again = make_safe(safety_threshold=[0.0, 350.0], **params)
    np.testing.assert_array_equal(again.query(querier.X_, querier.y_, querier.z_), querier.query())
    auto = make_safe(safety_threshold=[0.0, 350.0], safe_when="below", z_scale="auto")
    distance = np.sqrt(np.mean((heat - 350.0) ** 2))
    stated = make_safe(safety_threshold=[0.0, 350.0], safe_when="below", z_scale=[1.0, distance])
    np.testing.assert_allclose(
        auto.query(INPUTS, OUTPUTS, both), stated.query(INPUTS, OUTPUTS, both), rtol=0, atol=1e-5
    )


def test_campaigns_measured_in_booleans_and_in_numbers():
    querier = AmortizedSafeQuerier(policy_file(True))
    flags, numbers = (INPUTS, OUTPUTS, FLAGS), (INPUTS, OUTPUTS, FLAGS + 0.5)
    for histories in [flags, numbers], [numbers, flags], [numbers, numbers, flags]:
        with pytest.raises(ValueError, match=r"campaign \d: z mixes booleans and numbers"):
            querier.propose_many(histories)
    shorter = INPUTS[:4], OUTPUTS[:4], FLAGS[:4]
    found = querier.propose_many([flags, shorter, flags], budgets=[5, 6, 7])
    single = [querier.query(*flags, budget=5), querier.query(*shorter, budget=6)]
    np.testing.assert_allclose(found[:2], np.concatenate(single), rtol=0, atol=1e-6)


@pytest.mark.parametrize("surrogate", ["exact", "sparse", "mixture", "ensemble", "amortized"])
def test_report_on_booleans(surrogate):
    inputs = np.random.default_rng(0).random((40, 2))
    flags = inputs[:, 0] < 0.5
    querier = GPSafeQuerier(surrogate, safety_threshold=350.0, safe_when="below", z_scale=9.0)
    querier.fit(inputs, inputs[:, 1], flags)
    asked = np.array([[0.1, 0.5], [0.2, 0.4], [0.8, 0.5], [0.9, 0.6]])
    report = querier.assess(asked)
    assert (report.p_safe[:2] > 0.9).all()
    assert (report.p_safe[2:] < 0.1).all()
    np.testing.assert_allclose(report.z_mean, [1, 1, 0, 0], atol=0.2)
    assert ((report.z_std > 0) & (report.z_std < 0.5)).all()
    both = pd.DataFrame({"ok": flags, "heat": 300 + 100 * inputs[:, 0]})
    querier.set_params(safety_threshold=[0, 350.0], safe_when=["below", "below"], z_scale="auto")
    report = querier.fit(inputs, inputs[:, 1], both).assess(asked)
    np.testing.assert_allclose(report.z_mean[:, 0], [1, 1, 0, 0], atol=0.2)
    np.testing.assert_allclose(report.z_mean[:, 1], 300 + 100 * asked[:, 0], atol=5)


def test_nothing_safe_by_booleans():
    querier = GPSafeQuerier(safety_threshold=350.0, safe_when="below", gamma=1e-9)
    with pytest.raises(NoSafeCandidateError, match=r"\(safe means z is True\)") as caught:
        querier.query(INPUTS, OUTPUTS, FLAGS)
    assert caught.value.rule == "safe means z is True"
    both = np.column_stack([FLAGS, FLAGS])
    with pytest.raises(NoSafeCandidateError, match=r"\(safe means z\[0\] is True and z\[1\] is"):
        querier.query(INPUTS, OUTPUTS, both)


def named_threshold(call):
    """The threshold that a warning of flags or counts names."""
    with pytest.warns(SafetyWarning, match="set safety_threshold between two values") as record:
        call()
    (message,) = (str(w.message) for w in record if "between two values" in str(w.message))
    return float(message.partition("such as ")[2].partition(";")[0])


@some
@given(
    values=st.lists(st.integers(0, 5), min_size=3, max_size=9).filter(
        lambda v: min(v) == 0 and max(v) > 0
    ),
    shape=st.sampled_from(["flags", "counts"]),
    side=st.sampled_from(["above", "below"]),
    kind=st.sampled_from([np.int64, np.float64, np.uint8]),
)
def test_flags_and_counts_at_the_limit(make_safe, values, shape, side, kind):
    values = np.array(values if shape == "counts" else np.sign(values), dtype=kind)
    inputs = np.tile(X[0], (len(values), 1)) + 0.01 * np.arange(len(values))[:, None]
    querier = make_safe(safe_when=side)
    threshold = named_threshold(lambda: querier.fit(inputs, 0.1 * values, values))
    for ask in querier.query, many(querier):
        assert named_threshold(lambda ask=ask: ask(inputs, 0.1 * values, values)) == threshold
    assert 0 < threshold < 1
    querier.set_params(safety_threshold=threshold).fit(inputs, 0.1 * values, values)  # silent
    assert ((querier.z_ <= threshold) == (values == 0)).all()


def test_flags_are_warned_of_when_they_show(make_safe):
    querier = make_safe().fit(X[:1], y[:1], [1])
    querier.tell(X[1], y[1], 1)  # numbers like others so far
    assert named_threshold(lambda: querier.tell(X[2], y[2], 0)) == 0.5
    querier.tell(X[2], y[2], 0)  # said once
    both = np.column_stack([[0.3, 0.4, 0.5], [1, 0, 1]])
    querier = make_safe(safety_threshold=[0.0, 1.0], safe_when=["above", "above"])
    assert named_threshold(lambda: querier.fit(X, y, both)) == 0.5


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 40),
    limit=st.sampled_from([0.0, 0.5, 300.0, -7.0]),
    decimals=st.sampled_from([2, 4, 20]),
    side=st.sampled_from(["above", "below"]),
    one_sided=st.booleans(),
)
def test_ordinary_measurements_are_no_flags(seed, n, limit, decimals, side, one_sided):
    values = np.random.default_rng(seed).normal(size=n)
    values = limit + np.round(np.abs(values) if one_sided else values, decimals)
    values[0] = limit  # one lies at the limit by chance
    assume(n < 3 or len(np.unique(values)) > 2)
    assume(n < 2 or (values != np.round(values)).any())  # nor are they whole by chance
    assert without_distance(values, limit, side) == []


def test_ordinary_measurements_raise_no_warning(make_safe):
    inputs, outputs, signals = campaign(n=20)
    signals[3] = 0.0
    make_safe().fit(inputs, outputs, signals).tell(inputs[0], 0.1, 0.0)


# ---- forked processes and threads

FORKS = """
import os, signal, sys, threading, time, warnings
import joblib
import numpy as np
from sklearn_asal import AmortizedQuerier, CandidatePool
from tests.common import QUERIERS

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
data = rng.uniform(0.3, 0.7, (30, 2)), rng.normal(size=30), 1 + rng.random(30)
rows = CandidatePool(rng.random((2000, 2)))

def answer_of_child(querier, pool):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, querier.query(pool=pool).tobytes())
        querier.tell(*(part[0] for part in data)).query(pool=pool)
        os._exit(0)
    os.close(write)
    deadline = time.monotonic() + 10
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "hangs"
        time.sleep(0.001)
    with os.fdopen(read, "rb") as pipe:
        return np.frombuffer(pipe.read()).reshape(-1, 2)

CASES = [
    (QUERIERS["AmortizedQuerier"], None),
    (QUERIERS["AmortizedSafeQuerier"], rows),
    (QUERIERS["GPSafeQuerier, ensemble"], None),
    (QUERIERS["GPSafeQuerier, ensemble"], rows),
]
if sys.argv[1:]:
    CASES = [(lambda: AmortizedQuerier(sys.argv[1]), None)]
for make, pool in CASES:
    querier = make().fit(*data)
    print(querier, pool, file=sys.stderr)
    expected, stop = querier.query(pool=pool), threading.Event()

    def ask():
        while not stop.is_set():
            querier.query(pool=pool)
            querier.query(*data, pool=pool)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(20):
            time.sleep(0.005 * rng.random())
            np.testing.assert_array_equal(answer_of_child(querier, pool), expected)
        jobs = [joblib.delayed(querier.query)(pool=pool) for _ in range(2)]
        for found in joblib.Parallel(2, backend="multiprocessing")(jobs):
            np.testing.assert_array_equal(found, expected)
    finally:
        stop.set()
    asking.join()
    np.testing.assert_array_equal(querier.query(pool=pool), expected)
"""


def run_forks(*arguments):
    # In a process of its own, which a child that hangs does no harm; with all threads there are.
    environment = {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name}
    found = subprocess.run(
        [sys.executable, "-c", FORKS, *arguments],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert found.returncode == 0, found.stderr


has_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@has_fork
def test_forked_while_another_thread_queries():
    run_forks()


@has_fork
def test_forked_while_another_thread_queries_a_policy_in_torch(tmp_path):
    network = TransformerNetwork(2, safe=False)
    save_policy(network, tmp_path / "policy", {"max_budget": 40, "noise_std": [0.1, 0.1]})
    run_forks(tmp_path / "policy")


def in_threads(*calls):
    """Results of calls at the same time, of which none gets far before it is another's turn."""
    interval, barrier = sys.getswitchinterval(), threading.Barrier(len(calls))
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(len(calls)) as executor:
            waiting = [executor.submit(lambda c=call: (barrier.wait(), c())[1]) for call in calls]
            return [one.result() for one in waiting]
    finally:
        sys.setswitchinterval(interval)


def test_threads_that_ask_one_querier(make):
    inputs, outputs, signals = campaign(n=20)
    pool = CandidatePool(np.random.default_rng(1).random((500, 2)))
    querier = make(budget=40).fit(inputs, outputs, signals)
    other = inputs[:9], outputs[:9], signals[:9]
    asked = [
        querier.query,
        lambda: querier.query(pool=pool, n_queries=2),
        lambda: querier.query(*other),
        lambda: querier.query(n_queries=3),
    ]
    expected = [call() for call in asked]
    for found in in_threads(*(lambda: [call() for call in asked for _ in range(3)],) * 4):
        for k, answer in enumerate(found):
            np.testing.assert_array_equal(answer, expected[k // 3])


def test_a_thread_that_tells_while_others_ask(make):
    inputs, outputs, signals = campaign(n=30)
    pool = CandidatePool(np.random.default_rng(1).random((300, 2)))
    querier = make().fit(inputs[:5], outputs[:5], signals[:5])
    # What it answers after each observation.
    single, possible = make().fit(inputs[:5], outputs[:5], signals[:5]), []
    for i in range(5, 31):
        possible.append((single.query().tobytes(), single.query(pool=pool).tobytes()))
        if i < 30:
            single.tell(inputs[i], outputs[i], signals[i])

    def tell():
        for i in range(5, 30):
            querier.tell(inputs[i], outputs[i], signals[i])

    def ask():
        return [(querier.query().tobytes(), querier.query(pool=pool).tobytes()) for _ in range(15)]

    _, *answers = in_threads(tell, ask, ask)
    for free, of_pool in itertools.chain(*answers):
        assert free in {one for one, _ in possible}
        assert of_pool in {one for _, one in possible}
    assert querier.n_told_ == 25
    np.testing.assert_array_equal(querier.X_, inputs)
    np.testing.assert_array_equal(querier.query(), single.query())


def test_threads_that_tell_one_querier(make):
    inputs, outputs, signals = campaign(n=41)
    querier = make().fit(inputs[:1], outputs[:1], signals[:1])

    def tell(first):
        for i in range(first, 41, 4):
            querier.tell(inputs[i], outputs[i], signals[i])

    in_threads(*(lambda first=first: tell(first) for first in range(1, 5)))
    assert querier.n_told_ == 40
    told = sorted(zip(querier.X_[:, 0], querier.y_, querier.z_, strict=True))
    assert told == sorted(zip(inputs[:, 0], outputs, signals, strict=True))


# ---- settings of the host


@contextlib.contextmanager
def floating_point_errors():
    before = np.seterr(all="raise")
    try:
        yield
    finally:
        np.seterr(**before)


@contextlib.contextmanager
def torch_in_double():
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def errors_of_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "nothing that was looked at is safe")
        warnings.filterwarnings("ignore", "the guard found no point that is safe enough")
        yield


HOSTS = {
    "np.seterr": floating_point_errors,
    "warnings": errors_of_warnings,
    "assume_finite": lambda: sklearn.config_context(assume_finite=True),
    "no validation": lambda: sklearn.config_context(skip_parameter_validation=True),
    "pandas output": lambda: sklearn.config_context(transform_output="pandas"),
    "one thread": lambda: threadpool_limits(1),
    "two threads": lambda: threadpool_limits(2),
    "torch": torch_in_double,
    "printing": lambda: np.printoptions(legacy="1.13", precision=1),
}


@pytest.fixture(params=HOSTS)
def host(request):
    """Makes a context with other settings."""
    return HOSTS[request.param]


def everything(make, factor=1.0):
    """Answers to all sorts of questions, and what is raised in place of one."""
    inputs, outputs, signals = campaign(n=30)
    pool = np.random.default_rng(1).random((400, 2))
    querier = make(budget=40, y_loc="auto", y_scale="auto", bounds=[(0.0, 1.0), (0.0, 1.0)])
    querier.fit(inputs[:20], factor * outputs[:20], signals[:20])
    yield querier.query()
    querier.tell(inputs[20], factor * outputs[20], signals[20])
    querier.tell(inputs[21:].tolist(), (factor * outputs[21:]).tolist(), [*signals[21:]])
    yield querier.query(n_queries=3)
    yield querier.query(pool=pool, n_queries=2)
    yield querier.query(pool=pd.DataFrame(pool))
    yield querier.query(pool=CandidatePool.from_bounds([(0.0, 1.0)] * 2, 50))
    yield make().query(inputs[:1], outputs[:1], signals[:1])
    yield many(querier)(inputs, factor * outputs, signals)
    if hasattr(querier, "assess"):
        report = querier.assess(pool[:9])
        yield from (part for part in vars(report).values() if part is not None)


def test_settings_of_the_host_change_no_answer(make, host):
    expected = list(everything(make))
    with host():
        found = list(everything(make))
    assert len(found) == len(expected) >= 6
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_decimal_comma():
    makers = QUERIERS["AmortizedSafeQuerier"], QUERIERS["GPSafeQuerier"]
    expected = [list(everything(make)) for make in makers]
    before = locale.setlocale(locale.LC_ALL)
    try:
        for name in "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "German_Germany.1252":
            with contextlib.suppress(locale.Error):
                locale.setlocale(locale.LC_ALL, name)
                break
        else:
            pytest.skip("no locale with a decimal comma is installed")
        for make, answers in zip(makers, expected, strict=True):
            for one, other in zip(everything(make), answers, strict=True):
                np.testing.assert_array_equal(one, other)
    finally:
        locale.setlocale(locale.LC_ALL, before)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_floating_point_errors_and_numbers_of_any_size(make):
    for factor in 1e-300, 1e150, 0.0:
        expected = list(everything(make, factor))
        with floating_point_errors():
            found = list(everything(make, factor))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
            assert np.isfinite(one).all()


def test_bad_numbers_are_refused_whatever_the_settings(make, host):
    with_z, without_z = make().fit(X, y, z), make().fit(X, y)
    for bad, kind in (
        (np.nan, np.array),
        (np.inf, np.ndarray.tolist),
        (-np.inf, pd.DataFrame),
        (np.nan, lambda data: data.astype(np.float32)),
        (np.nan, lambda data: pd.DataFrame(data).astype("Float64")),
    ):
        for name, values in {"X": X, "y": y, "z": z}.items():
            wrong = np.array(values)
            wrong.flat[0] = bad
            data, querier = {"X": X, "y": y, "z": z, name: kind(wrong)}, with_z
            if name == "y" and np.isnan(bad):  # with z an output may be missing
                querier = without_z
                del data["z"]
            for call in querier.fit, querier.query, many(querier):
                with unchanged(querier), pytest.raises(ValueError, match=f"Input {name} contains"):
                    with host():
                        call(*data.values())
            told = name.replace("X", "x")
            with unchanged(querier), pytest.raises(ValueError, match=f"Input {told} contains"):
                with host():
                    querier.tell(*data.values())
        wrong = kind(np.array([[0.5, bad]]))
        with host(), pytest.raises(ValueError, match="Input pool contains"):
            with_z.query(pool=wrong)
        with host(), pytest.raises(ValueError, match="Input pool contains"):
            CandidatePool(wrong)
        if hasattr(querier, "assess"):
            with host(), pytest.raises(ValueError, match="Input x contains"):
                with_z.assess(wrong)
            with host(), pytest.raises(ValueError, match="Input X contains"):
                with_z.assess(X[:1], wrong, [0.1], [0.1])
    for gap in np.ma.masked, None, pd.NA, pd.NaT:
        with unchanged(with_z), host(), pytest.raises(ValueError, match="Input x contains NaN"):
            with_z.tell([0.5, gap], 0.1, 0.1)


def test_bad_parameters_are_refused_whatever_the_settings(make, host):
    for params, message in (
        ({"bounds": [(0, np.nan), (0, 1)]}, "bounds of feature 0"),
        ({"bounds": [(0, np.ma.masked), (0, 1)]}, "bounds contains NaN or other missing"),
        ({"y_scale": -1.0}, "y_scale must be a positive"),
        ({"y_loc": np.ma.masked}, "y_loc must be a finite number"),
        ({"budget": 0}, "budget == 0, must be >= 1"),
        ({"random_state": -3}, "seed|Seed"),
    ):
        with host(), pytest.raises(ValueError, match=message):
            make(**params).fit(X, y, z)


# ---- values that are constant but for rounding

CONSTANTS = [0.1 + 0.2, 1 / 3, -7.3, 300.0, 1e-9, 3.3e19]
AUTO = dict(y_loc="auto", y_scale="auto")
SURROGATES = {
    name: lambda name=name, **params: GPSafeQuerier(
        name, n_candidates=200, on_no_safe="least_unsafe", **params
    )
    for name in ("exact", "sparse", "mixture", "ensemble", "amortized")
}


def jittered(constant, n, seed=0):
    """The same number computed in many ways: apart by a few units in the last place."""
    units = np.random.default_rng(seed).integers(-20, 21, n)
    return constant + units * np.spacing(abs(constant))


@pytest.mark.parametrize("constant", CONSTANTS)
def test_outputs_constant_but_for_rounding(make, constant):
    inputs, _, signals = campaign(n=30)
    expected = make(**AUTO).query(inputs, np.full(30, constant), signals)
    zero = make().query(inputs, np.zeros(30), signals)
    np.testing.assert_allclose(expected, zero, rtol=0, atol=1e-6)
    for seed in range(3):
        found = make(**AUTO).query(inputs, jittered(constant, 30, seed), signals)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    querier = make(y_loc=constant, y_scale="auto")
    found = querier.query(inputs, jittered(constant, 30), signals)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_outputs_as_of_a_rounded_sum(make):
    inputs, _, signals = campaign(n=30)
    expected = make(**AUTO).query(inputs, np.full(30, 300.0), signals)
    found = make(**AUTO).query(inputs, 300 + 1e-13 * np.arange(30), signals)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("constant", CONSTANTS[:4])
def test_surrogates_of_constants(surrogate, constant):
    inputs, _, _ = campaign(n=30)
    scaling = dict(**AUTO, z_scale="auto", safety_threshold=constant)
    reports = []
    for values in np.full(30, constant), jittered(constant, 30):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SafetyWarning)  # nothing is safe, or all at the limit
            querier = SURROGATES[surrogate](**scaling).fit(inputs, values, values)
        point, report = querier.query(return_report=True)
        assert ((point >= 0) & (point <= 1)).all()
        for mean in report.y_mean, report.z_mean:
            np.testing.assert_allclose(mean, constant, atol=1e-6)
        reports.append(report)
    exact, rounded = reports
    np.testing.assert_allclose(rounded.y_std, exact.y_std, rtol=1e-6)
    np.testing.assert_allclose(rounded.z_std, exact.z_std, rtol=1e-6)
    np.testing.assert_allclose(rounded.p_safe, exact.p_safe, atol=1e-6)


@pytest.mark.parametrize("side", ["above", "below"])
@pytest.mark.parametrize("limit", [0.1 + 0.2, 300.0, -1e6, 3.3e19])
def test_measurements_at_the_limit_but_for_rounding(make_safe, limit, side):
    inputs, outputs, _ = campaign(n=30)
    params = dict(safety_threshold=limit, safe_when=side, z_scale="auto")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SafetyWarning)  # nothing is safe, or no distance known
        expected = make_safe(**params).query(inputs, outputs, np.full(30, limit))
        for seed in range(3):
            found = make_safe(**params).query(inputs, outputs, jittered(limit, 30, seed))
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_small_differences_that_are_real(make):
    inputs, outputs, signals = campaign(n=30)
    expected = make(**AUTO).query(inputs, outputs, signals)
    found = make(**AUTO).query(inputs, 300 + 1e-6 * outputs, signals)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)


# ---- ties


def shuffled(*parts, seed):
    order = np.random.default_rng(seed).permutation(len(parts[0]))
    return [part[order] for part in parts]


def test_replicates_and_pending_points(make):
    inputs = np.repeat([[0.5, 0.5]], 6, axis=0)
    outputs = np.array([-1.5, 0.25, 2.0, 0.5, -0.75, 1.0])
    signals = np.array([0.5, 2.0, 1.5, -0.25, 1.0, 0.75])
    pool = np.random.default_rng(0).random((60, 2))
    querier = make(random_state=0)
    expected = querier.query(inputs, outputs, signals, n_queries=3)
    rows = querier.query(inputs, outputs, signals, n_queries=3, pool=pool)
    for seed in range(5):
        data = shuffled(inputs, outputs, signals, seed=seed)
        np.testing.assert_allclose(querier.query(*data, n_queries=3), expected, rtol=0, atol=35e-5)
        np.testing.assert_array_equal(querier.query(*data, n_queries=3, pool=pool), rows)


def test_a_row_halfway_between_observations(make):
    inputs = np.array([[0.4, 0.5], [0.6, 0.5], [0.5, 0.4], [0.5, 0.6]])
    outputs, signals = np.array([-1.5, 2.0, 0.25, 0.75]), np.array([1.5, 0.25, 2.0, 1.0])
    # As near to all four but for rounding, and so are the points of its own mirror images.
    pool = np.array([[0.5, 0.5], [0.45, 0.45], [0.55, 0.55], [0.1 + 0.2, 0.1 * 3], [0.7, 0.7]])
    querier = make(random_state=0)
    expected = querier.query(inputs, outputs, signals, pool=pool, n_queries=5)
    for seed in range(5):
        data = shuffled(inputs, outputs, signals, seed=seed)
        (other,) = shuffled(pool, seed=seed)
        found = querier.query(*data, pool=other, n_queries=5)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n_features", [1, 2, 3])
def test_margins_of_zero(n_features):
    rng = np.random.default_rng(n_features)
    inputs, outputs = rng.uniform(0.4, 0.6, (8, n_features)), rng.normal(size=8)
    pool = np.vstack([rng.random((40, n_features)), rng.integers(0, 3, (20, n_features)) / 2])
    for querier in (
        *(GPSafeQuerier(name, on_no_safe="least_unsafe") for name in ("exact", "ensemble")),
        GPSafeQuerier("ensemble", acquisition="variance_reduction", on_no_safe="least_unsafe"),
        AmortizedSafeQuerier(policy_file(True, n_features)),
        AmortizedQuerier(policy_file(False, n_features)),
        RandomQuerier(),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SafetyWarning)
            expected = querier.query(inputs, outputs, np.zeros(8), pool=pool, n_queries=3)
            for seed in range(4):
                data = shuffled(inputs, outputs, np.zeros(8), seed=seed)
                (other,) = shuffled(pool, seed=seed)
                found = querier.query(*data, pool=other, n_queries=3)
                np.testing.assert_array_equal(found, expected)


def test_equal_rows(make):
    inputs, outputs, signals = campaign()
    rows = np.random.default_rng(1).random((15, 2))
    pool = np.repeat(rows, 3, axis=0)
    querier = make(random_state=0).fit(inputs, outputs, signals)
    expected, indices = querier.query(pool=pool, n_queries=6, return_indices=True)
    assert len(set(indices.tolist())) == 6
    for i in indices:  # of equal rows the first comes first
        assert all(first in indices for first in range(i - i % 3, i))
    for seed in range(4):
        (other,) = shuffled(pool, seed=seed)
        np.testing.assert_array_equal(querier.query(pool=other, n_queries=6), expected)


def test_mirrored_data(make):
    corner = np.array([[0.35, 0.4], [0.45, 0.3], [0.3, 0.3]])
    inputs = np.vstack([corner, 1 - corner, corner * [1, -1] + [0, 1], corner * [-1, 1] + [1, 0]])
    outputs, signals = np.tile([0.5, -1.0, 0.25], 4), np.tile([1.0, 0.5, 0.75], 4)
    quarter = np.random.default_rng(0).uniform(0, 0.5, (10, 2))
    pool = np.vstack([quarter, 1 - quarter, quarter * [1, -1] + [0, 1], quarter * [-1, 1] + [1, 0]])
    querier = make(random_state=0)
    expected = querier.query(inputs, outputs, signals, pool=pool, n_queries=4)
    for seed in range(4):
        data = shuffled(inputs, outputs, signals, seed=seed)
        (other,) = shuffled(pool, seed=seed)
        np.testing.assert_array_equal(querier.query(*data, pool=other, n_queries=4), expected)


# ---- repeated proposals


def distances(points):
    return np.abs(points[:, None] - points).max(axis=2)[np.triu_indices(len(points), 1)]


@pytest.mark.parametrize("start", [0.0, 20.0, 50.0, 99.0])
@pytest.mark.parametrize(("n_queries", "budget"), [(8, 12), (12, 12), (20, 20)])
def test_no_two_equal_points_in_a_batch(start, n_queries, budget):
    querier = AmortizedQuerier("1d", bounds=(0, 100), budget=budget)
    points = querier.query([[start]], [0.3], n_queries=n_queries)
    assert distances(np.vstack([[[start]], points])).min() > 1e-3
    assert ((points >= 0) & (points <= 100)).all()


@pytest.mark.parametrize("kind", [AmortizedQuerier, AmortizedSafeQuerier])
def test_no_two_equal_points_in_a_batch_of_two_features(kind):
    querier = kind("2d", bounds=[(0, 10), (-5, 5)], budget=30)
    for start in [5.0, 0.0], [0.0, -5.0], [10.0, 5.0], [9.99, -5.0]:
        points = querier.query([start], [0.3], [1.0], n_queries=30)
        assert distances(np.vstack([[start], points])).min() > 1e-4


FUNCTIONS = {
    "wave": lambda x: np.sin(6 * x),
    "slope": lambda x: 2 * x - 1,
    "bowl": lambda x: 4 * (x - 0.5) ** 2,
    "step": lambda x: float(x > 0.5),
    "nothing": lambda x: 0.0,
}


@pytest.mark.parametrize("start", [0.0, 0.2, 0.5, 0.97])
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_without_noise_nothing_is_measured_twice(function, start):
    querier = AmortizedQuerier("1d", bounds=(0, 100), budget=30)
    querier.fit([[100 * start]], [function(start)])
    for _ in range(30):
        point = querier.query()
        many_points = querier.propose_many([(querier.X_, querier.y_)], budgets=30 - querier.n_told_)
        np.testing.assert_allclose(many_points, point, rtol=0, atol=1e-3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataScaleWarning)  # a function is wide or flat
            querier.tell(point, function(point[0, 0] / 100))
    assert distances(querier.X_).min() > 1e-4


@pytest.mark.parametrize("kind", [AmortizedQuerier, AmortizedSafeQuerier])
def test_corners_without_and_with_noise(kind, monkeypatch):
    safe = kind is AmortizedSafeQuerier
    alone = {"guard": False} if safe else {}
    querier = kind(policy_file(safe), bounds=[(0, 10), (-5, 5)], **alone)
    inputs, outputs, signals = campaign()
    inputs = inputs * 10 - [0, 5]
    runtime = querier.fit(inputs, outputs, signals)._load(2).runtime
    corner = np.array([10.0, 5.0])
    monkeypatch.setattr(runtime, "decide", lambda *data: np.ones(2))
    monkeypatch.setattr(runtime, "decide_many", lambda left, *data: np.ones((len(left), 2)))
    np.testing.assert_array_equal(querier.query(), [corner])
    # Pending points are not repeated either.
    batch = querier.query(n_queries=9)
    assert distances(batch).min() > 0.01
    np.testing.assert_allclose(batch, np.tile(corner, (9, 1)), atol=2.0)
    querier.tell(corner, 0.3, 0.5)
    (moved,) = querier.query()
    assert 0.01 < np.abs(moved - corner).max() < 1.0
    data = querier.X_, querier.y_, querier.z_
    found = querier.propose_many([data, (inputs, outputs, signals), data])
    np.testing.assert_array_equal(found, [moved, corner, moved])
    # The same outcome, but for rounding, is no noise; measured with noise it is worth another go.
    querier.tell(corner, 0.3 + 1e-16, 0.5)
    np.testing.assert_array_equal(querier.query(), [moved])
    querier.tell(inputs[0], outputs[0] + 0.1, signals[0])
    np.testing.assert_array_equal(querier.query(), [corner])
    data = querier.X_, querier.y_, querier.z_
    np.testing.assert_array_equal(querier.propose_many([data]), [corner])
    assert distances(querier.query(n_queries=5)).min() > 0.01


# ---- advice


def complaints(call):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in record]


def many_observations(n):
    rng = np.random.default_rng(0)
    inputs = rng.random((n, 2))
    inputs[0] = 0.5
    waves = np.sqrt(2) * np.sin(2 * np.pi * inputs)
    return inputs, waves[:, 0], waves[:, 1] + 0.5


@pytest.mark.parametrize("kind", [AmortizedQuerier, AmortizedSafeQuerier])
@pytest.mark.parametrize("policy", ["auto", "any", "2d"])
@pytest.mark.parametrize("budget", [None, 30, 5000])
def test_advice_can_be_followed(kind, policy, budget):
    inputs, outputs, signals = many_observations(600)
    pool = np.random.default_rng(1).random((500, 2))

    def use(querier):
        querier.fit(inputs, outputs, signals)
        querier.query(pool=pool)
        querier.query()

    messages = complaints(lambda: use(kind(policy, budget=budget)))
    assert (messages == []) == (budget == 30 or policy != "2d")
    for message in messages:
        # What is named has no such complaint.
        named = re.search(r"Policy '([\w-]+)' needs no plan", message)
        assert complaints(lambda name=named[1]: use(kind(name, budget=budget))) == []
        longer = re.search(r"Policy '([\w-]+)' was trained for more", message)
        if longer:
            assert longer[1] != policy
            again = complaints(lambda name=longer[1]: use(kind(name, budget=budget)))
            assert not any(longer[0] in one for one in again)
    if budget is None:
        assert all("Set budget" in message for message in messages)
        assert len(set(messages)) <= 1


def test_advice_on_scales_is_not_given_where_it_is_followed(make_safe):
    inputs, outputs, signals = many_observations(40)
    auto = dict(y_loc="auto", y_scale="auto", z_scale="auto")
    querier = make_safe(safety_threshold=500.0, safe_when="below", **auto)
    assert complaints(lambda: querier.fit(inputs, 300 * outputs, 500 - 300 * signals)) == []
    assert complaints(querier.query) == []


# ---- rows of a pool by their number


def test_rows_told_by_number_are_not_proposed_again(make):
    inputs, outputs, signals = campaign()
    pool = np.random.default_rng(1).random((12, 2))
    querier, found = make(random_state=0).fit(inputs, outputs, signals), []
    for k in range(12):
        points, rows = querier.query(pool=pool, return_indices=True)
        found += rows.tolist()
        # The device set something else than asked for.
        forms = rows, rows.tolist(), rows[0], int(rows[0]), pd.Series(rows), pl.Series(rows)
        querier.tell(points + 0.01, 0.1, 0.9, index=forms[k % 6])
    assert sorted(found) == list(range(12))
    np.testing.assert_array_equal(querier.index_, [-1] * 12 + found)
    with pytest.raises(PoolExhaustedError):
        querier.query(pool=pool)
    copied = pickle.loads(pickle.dumps(querier))
    with pytest.raises(PoolExhaustedError):
        copied.query(pool=pool)
    # A new campaign, and data passed, know of no rows.
    assert querier.query(querier.X_, querier.y_, querier.z_, pool=pool).shape == (1, 2)
    assert querier.fit(inputs, outputs, signals).query(pool=pool, n_queries=12).shape == (12, 2)


def test_several_rows_at_once(make):
    inputs, outputs, signals = campaign()
    pool = np.random.default_rng(1).random((12, 2))
    querier, found = make(random_state=0).fit(inputs, outputs, signals), []
    for _ in range(3):
        points, rows = querier.query(pool=pool, n_queries=4, return_indices=True)
        found += rows.tolist()
        querier.tell(points + 0.01, [0.1] * 4, [0.9] * 4, index=rows)
    assert sorted(found) == list(range(12))


def test_the_second_of_two_equal_rows(make):
    inputs, outputs, signals = campaign()
    pool = np.array([[0.5, 0.5], [0.5, 0.5], [0.4, 0.6], [0.4, 0.6]])
    querier = make(random_state=0).fit(inputs, outputs, signals)
    querier.tell(pool[1], 0.1, 0.9, index=1).tell(pool[3], 0.1, 0.9, index=3)
    _, rows = querier.query(pool=pool, n_queries=2, return_indices=True)
    assert sorted(rows.tolist()) == [0, 2]
    # By their values, the first ones count as measured.
    querier = make(random_state=0).fit(inputs, outputs, signals)
    querier.tell(pool[[1, 3]], [0.1, 0.1], [0.9, 0.9])
    _, rows = querier.query(pool=pool, n_queries=2, return_indices=True)
    assert sorted(rows.tolist()) == [1, 3]
    # By number and by value together, in any order, each observation takes a row of its own.
    for indices in [0, None], [None, 0], [1, None], [None, 1]:
        querier = make(random_state=0).fit(inputs, outputs, signals)
        for index in indices:
            querier.tell(pool[0], 0.1, 0.9, index=index)
        _, rows = querier.query(pool=pool, n_queries=2, return_indices=True)
        assert sorted(rows.tolist()) == [2, 3]


@some
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 7), st.sampled_from(["value", "number", "both", "ask"])),
        max_size=12,
    )
)
def test_what_is_known_from_the_query_before_changes_nothing(steps):
    pool = np.array([[0.5, 0.5], [0.5, 0.5], [0.4, 0.6], [0.4, 0.6], [0.2, 0.7], [0.5, 0.5]] * 2)
    querier = AmortizedSafeQuerier(policy_file(True)).fit(X, y, z)
    for row, kind in steps:
        if kind == "ask":
            querier.query(pool=pool, n_queries=3)
        else:
            measured = pool[row] if kind != "number" else pool[row] + 0.05
            querier.tell(measured, 0.1, 0.9, index=None if kind == "value" else row)
    # A copy starts without anything worked out.
    for n_queries in 1, 4:
        expected = pickle.loads(pickle.dumps(querier)).query(pool=pool, n_queries=n_queries)
        np.testing.assert_array_equal(querier.query(pool=pool, n_queries=n_queries), expected)


@pytest.mark.parametrize(
    "index",
    [1.0, "1", True, -2, [0, 1], [[0]], [], [None], np.nan, [1.5], np.array(["a"]), -(10**30)],
    ids=str,
)
def test_numbers_that_are_none_of_a_row(make, index):
    querier = make().fit(X, y, z)
    message = r"index must hold one row of the pool, counted from 0, for each of the 1 observations"
    with unchanged(querier), pytest.raises(ValueError, match=message):
        querier.tell(X[0], 0.1, 0.9, index=index)


def test_rows_that_the_pool_has_not(make):
    pool = np.random.default_rng(1).random((12, 2))
    querier = make().fit(X, y, z).tell(pool[11], 0.1, 0.9, index=11)
    assert querier.query(pool=pool).shape == (1, 2)
    for smaller in pool[:11], CandidatePool(pool[:3]):
        message = f"index: row 11 was told to be measured, but the pool has {len(smaller)} rows"
        with pytest.raises(ValueError, match=message):
            querier.query(pool=smaller)
    assert querier.query(pool=pool).shape == (1, 2)
    # Without numbers pools may change from query to query.
    querier = make().fit(X, y, z).tell(pool[11], 0.1, 0.9)
    for other in pool[:11], pool[5:], pool[::-1]:
        assert querier.query(pool=other, n_queries=len(other) - (len(other) != 11)).size
    with pytest.raises(PoolExhaustedError):
        querier.query(pool=pool[11:])


def test_rows_outside_the_bounds_and_numbers(make):
    pool = np.array([[0.5, 0.5], [7.0, 7.0], [0.4, 0.4]])
    querier = make().fit(X, y, z).tell([0.5, 0.49], 0.1, 0.9, index=1)
    with pytest.warns(DataScaleWarning, match="1 of the 3 rows of the pool lie outside bounds"):
        _, rows = querier.query(pool=pool, n_queries=2, return_indices=True)
    assert sorted(rows.tolist()) == [0, 2]


def test_rows_that_differ_by_decades(make):
    values = np.array([0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-3, 0.5])
    pool = np.column_stack([values, np.full(7, 0.5)])
    querier, found = make(random_state=0).fit(X, y, z), []
    # None of the rows, however near.
    querier.tell([[5e-9, 0.5], [2e-8, 0.5], [1.001e-7, 0.5]], [0.1] * 3, [0.9] * 3)
    assert querier.query(pool=pool, n_queries=7).shape == (7, 2)
    for _ in range(7):
        point, row = querier.query(pool=pool, return_indices=True)
        found += row.tolist()
        querier.tell(point, 0.1, 0.9)
    assert sorted(found) == list(range(7))


def test_rows_known_in_single_precision(make):
    pool = np.random.default_rng(1).random((9, 2)) * [1e-6, 1e6] + [0, 1e3]
    querier = make(bounds=[(0, 1e-6), (0, 2e6)], random_state=0)
    querier.fit(X * [1e-6, 1e6], y, z)
    found = []
    for _ in range(9):
        point, row = querier.query(pool=pool, return_indices=True)
        found += row.tolist()
        querier.tell(point.astype(np.float32), 0.1, 0.9)
    assert sorted(found) == list(range(9))


# ---- random_state

STATES = {
    "module": lambda: np.random,
    "RandomState": lambda: np.random.RandomState(3),
    "the global one": lambda: np.random.mtrand._rand,
    "Generator": lambda: np.random.default_rng(3),
    "of a SeedSequence": lambda: np.random.default_rng(np.random.SeedSequence(3)),
    "MT19937": lambda: np.random.Generator(np.random.MT19937(3)),
    "int": lambda: 3,
    "int64": lambda: np.int64(3),
    "uint8": lambda: np.uint8(3),
    "largest": lambda: 2**32 - 1,
    "None": lambda: None,
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_every_kind_of_random_state(make, state):
    inputs, outputs, signals = campaign()
    before = np.random.get_state()  # noqa: NPY002
    given_state = state()
    querier = make(random_state=given_state).fit(inputs, outputs, signals)
    first = querier.query(n_queries=2)
    np.testing.assert_array_equal(querier.query(n_queries=2), first)
    np.testing.assert_array_equal(make(random_state=state()).fit(*campaign()).query(), first[:1])
    np.testing.assert_array_equal(querier.query(inputs, outputs, signals), first[:1])
    assert querier.query(pool=inputs[:, ::-1]).shape == (1, 2)
    many(querier)(inputs, outputs, signals)
    querier.tell(inputs[0], 0.1, 0.9)
    assert querier.random_state is given_state
    for part, known in zip(np.random.get_state(), before, strict=True):  # noqa: NPY002
        np.testing.assert_array_equal(part, known)
    if given_state is not np.random:  # which neither pickle nor scikit-learn's clone can copy
        copied = pickle.loads(pickle.dumps(querier))
        np.testing.assert_array_equal(copied.query(), querier.query())
        np.testing.assert_array_equal(clone(querier).fit(*campaign()).query(), first[:1])


def test_the_global_generator_counts(make):
    """A module stands for the generator that ``np.random.seed`` seeds."""
    before = np.random.get_state()  # noqa: NPY002
    try:
        found = []
        for seed in 0, 1, 0:
            np.random.seed(seed)  # noqa: NPY002
            found.append(make(random_state=np.random).query(*campaign()))
    finally:
        np.random.set_state(before)  # noqa: NPY002
    np.testing.assert_array_equal(found[0], found[2])
    if make in (RandomQuerier, QUERIERS["UniformQuerier"]):
        assert not np.array_equal(found[0], found[1])


@pytest.mark.parametrize("state", ["seed", -1, 1.5, np.random.SeedSequence(3), [1, 2]], ids=str)
def test_no_random_state(make, state):
    with pytest.raises(ValueError, match=r"(?i)seed"):
        make(random_state=state).fit(X, y, z)
