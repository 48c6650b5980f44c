"""What flags of ``next`` state, and how proposals are rounded."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint

from sklearn_asal import Grid, Integer, Log
from sklearn_asal.constraints import Constraints
from sklearn_asal.spreadsheet.flags import Limit, bounds_of, constraint_of, limits_of, settings_of
from sklearn_asal.spreadsheet.proposals import rounded
from sklearn_asal.spreadsheet.table import expected, probability

INPUTS = ["a", "b", "a b", "x-1"]


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("temperature <= 850", Limit("temperature", "below", 850.0)),
        ("T<850", Limit("T", "below", 850.0)),
        ("  a  b ≥ -2.5e-3", Limit("a b", "above", -0.0025)),
        ("p => 1", Limit("p", "above", 1.0)),
        ("T [°C] > 1", Limit("T [°C]", "above", 1.0)),
    ],
)
def test_limits(text, limit):
    assert limits_of([text]) == [limit]
    assert limit.holds(limit.value)
    assert limit.holds(limit.value + 1) == (limit.side == "above")


@pytest.mark.parametrize("text", ["T", "T 850", "850 >= T", "T = 5", "<= 5", "T <= 2,5", "T <= x"])
def test_bad_limits(text):
    with pytest.raises(ValueError, match=r'--limit .* is not understood.*"temperature <= 850"'):
        limits_of([text])


@pytest.mark.parametrize(
    ("text", "feature"),
    [
        ("900:4000", (900.0, 4000.0)),
        (" -5 : 1e3 ", (-5.0, 1000.0)),
        ("1:6:integer", Integer(1, 6)),
        ("1:1000:log:integer", Integer(1, 1000, log=True)),
        ("1e-9:1e-3:log", Log(1e-9, 1e-3)),
        ("0.5,0.1, 0.2", Grid([0.1, 0.2, 0.5])),
        ("1,10,100:log", Grid([1, 10, 100], log=True)),
    ],
)
def test_bounds(text, feature):
    assert bounds_of([f"a b={text}"], INPUTS) == {"a b": feature}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5", "it needs two numbers"),
        ("1:2:3", "it needs two numbers"),
        ("5:1", "the first number has to be the smaller one"),
        ("1:1", "the first number has to be the smaller one"),
        ("0,5:1", "'0,5' is not a number"),
        ("900-4000", "'900-4000' is not a number"),
        ("1.5:6:integer", "not whole numbers"),
        ("0:6:log", "positive"),
        ("6:1:integer", "low < high"),
        ("1,1", "two or more different numbers"),
        (":log", "'' is not a number"),
        ("", "'' is not a number"),
    ],
)
def test_bad_bounds(text, message):
    with pytest.raises(ValueError, match=f"--bounds a=.* is not understood: .*{message}.*a=LOW"):
        bounds_of([f"a={text}"], INPUTS)


def test_settings():
    assert settings_of(["a=2000", "x-1=-.5"], INPUTS, "--fixed") == {"a": 2000, "x-1": -0.5}
    for texts, message in (
        (["a"], "--fixed 'a' is not understood. Write --fixed a=..."),
        (["bb=1"], "'bb' is not one of the inputs, a, b, a b, x-1. Did you mean"),
        (["a=1", "a=2"], "given twice for a"),
        (["a=one"], "'one' is not a number"),
    ):
        with pytest.raises(ValueError, match=message):
            settings_of(texts, INPUTS, "--fixed")


# -- constraints ---------------------------------------------------------------------------

factor = st.floats(0.001, 1000).map(lambda value: round(value, 4)).filter(bool)
term = st.tuples(
    st.sampled_from("+-"),
    st.sampled_from(INPUTS),
    st.sampled_from(["{x}", "{f}*{x}", "{f} * {x}", "{x}*{f}", "{x} / {f}", "{f}*{x}/{f}"]),
    factor,
)


@given(
    terms=st.lists(term, min_size=1, max_size=5),
    relation=st.sampled_from(["<=", ">=", "<", "=", "≥"]),
    value=st.floats(-100, 100),
    plus=st.booleans(),
)
def test_constraints_mean_what_python_takes_them_for(terms, relation, value, plus):
    parts = [f" {sign} {how.format(f=f, x=name)}" for sign, name, how, f in terms]
    text = "".join(parts).strip()
    if not plus:
        text = text.removeprefix("+").strip()
    found = constraint_of(f"{text} {relation} {value!r}", INPUTS)
    point = dict(zip(INPUTS, [3.0, 5.0, 7.0, 11.0], strict=True))
    # In Python a name has neither blanks nor signs.
    code = text.replace("a b", "C").replace("x-1", "D")
    wanted = eval(code, {"a": 3.0, "b": 5.0, "C": 7.0, "D": 11.0})
    assert (found.A @ list(point.values()))[0] == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    low = -math.inf if relation in ("<=", "<") else value
    high = math.inf if relation in (">=", "≥") else value
    assert (found.lb, found.ub) == (low, high)


@pytest.mark.parametrize(
    "text",
    [
        "a + b", "a + c <= 1", "a * b <= 1", "a ^ 2 <= 1", "2a <= 1", "a <= b", "a + 1 <= 2",
        "<= 1", "a - - b <= 1", "ab <= 1", "a / 0 <= 1", "(a + b) <= 1", "a + <= 1", "a b c <= 1",
        "__import__('os') <= 1", "a <= 1,5",
    ],
)  # fmt: skip
def test_bad_constraints(text):
    with pytest.raises(ValueError, match=r"--constraint .* is not understood\..*State a sum"):
        constraint_of(text, INPUTS)


# -- rounding ------------------------------------------------------------------------------


@settings(max_examples=200)
@given(
    low=st.floats(-1e6, 1e6),
    width=st.floats(1e-3, 1e6),
    part=st.floats(0, 1),
    bound=st.floats(0, 1),
)
def test_rounded_within_bounds_and_constraints(low, width, part, bound):
    high = low + width
    assume(high > low)
    x = min(max(low + part * width, low), high)
    limit = low + bound * width
    sides = LinearConstraint([[1.0]], -np.inf, limit) if x <= limit else (
        LinearConstraint([[1.0]], limit, np.inf)
    )  # fmt: skip
    ((found,),) = rounded([[x]], [(low, high)], {}, Constraints(sides, 1), lambda X: True)
    assert low <= found <= high
    # Half a unit of the last digit, and what floats can say of such a number.
    step = max(0.5e-3 * width, 0.5 if width > 1000 else 0)
    assert abs(found - x) <= step + 4 * np.spacing(max(abs(low), abs(high)))
    assert found <= limit if x <= limit else found >= limit


def test_rounded_by_kind():
    bounds = [(900.0, 4000.0), (0.0, 60.0), Log(1e-9, 1e-3), Integer(1, 6), Grid([0.1, 1 / 3])]
    point = [1234.56, 12.3456, 1.23456e-7, 3.0, 1 / 3]
    found = rounded([point], bounds, {}, None, lambda X: True)
    assert found.tolist() == [[1235.0, 12.35, 1.235e-7, 3.0, 1 / 3]]
    kept = rounded([point], bounds, {0: 1234.56}, None, lambda X: True)
    assert kept[0, 0] == 1234.56
    # Ends of the bounds are kept, whatever their digits.
    assert rounded([[0.123456]], [(0.123456, 9.0)], {}, None, lambda X: True) == [[0.123456]]


def test_rounded_to_more_digits_where_fewer_are_not_allowed():
    allowed = lambda X: X[0, 0] <= 12.3412  # noqa: E731
    assert rounded([[12.34119]], [(0.0, 60.0)], {}, None, allowed) == [[12.34]]
    allowed = lambda X: 12.3411 <= X[0, 0] <= 12.3412  # noqa: E731
    assert rounded([[12.34119]], [(0.0, 60.0)], {}, None, allowed) == [[12.3412]]
    allowed = lambda X: X[0, 0] == np.pi  # noqa: E731
    assert rounded([[np.pi]], [(0.0, 60.0)], {}, None, allowed) == [[np.pi]]


@given(st.lists(st.floats(0.05, 1), min_size=3, max_size=3))
def test_a_mixture_still_adds_up(parts):
    point = np.array(parts) / sum(parts)
    constraint = Constraints(LinearConstraint([[1, 1, 1]], 1, 1), 3)
    found = rounded([point], [(0.0, 1.0)] * 3, {}, constraint, lambda X: True)
    assert constraint.holds(found, strict=True).all()
    np.testing.assert_allclose(found, [point], atol=2e-3)
    assert max(len(repr(value)) for value in found[0].tolist()) <= 5


# -- the table -----------------------------------------------------------------------------


def test_expected_and_probability():
    assert expected(412.345, 15.2) == "412 ± 15"
    assert expected(412.345, 0.152) == "412.35 ± 0.15"
    assert expected(-1e-9, 2.34e-10) == "-1e-09 ± 2.3e-10"
    assert expected(123456.7, 2345.6) == "123457 ± 2346"
    assert [probability(p) for p in (0.5, 0.99899, 0.99999, 1.0)] == [
        "0.500", "0.999", "> 0.999", "> 0.999",
    ]  # fmt: skip
