"""Constraints on the inputs, of SciPy's two kinds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint
from scipy.sparse import csr_matrix

from sklearn_asal.constraints import Constraints

some = settings(max_examples=25, deadline=None, derandomize=True)


def random_ones(rng, d):
    """A list of both kinds, some of which are equations."""
    A = rng.standard_normal((2, d))
    centre = rng.random(d)
    return [
        LinearConstraint(A, A @ centre - 0.2, A @ centre + [0.3, np.inf]),
        LinearConstraint(rng.standard_normal(d), -np.inf, 1.0),
        NonlinearConstraint(lambda x: np.square(x - centre).sum(), -np.inf, 0.5),
        NonlinearConstraint(lambda x: [x[0] * x[-1], x.sum()], [-np.inf, 0.1], [0.8, np.inf]),
    ]


def brute_force(constraints, x):
    """Whether one point satisfies all of them."""
    for one in constraints:
        value = one.A @ x if isinstance(one, LinearConstraint) else np.asarray(one.fun(x))
        if not (np.all(value >= one.lb) and np.all(value <= one.ub)):
            return False
    return True


@some
@given(seed=st.integers(0, 10**6), d=st.integers(1, 5), data=st.data())
def test_which_points_hold_equals_brute_force(seed, d, data):
    rng = np.random.default_rng(seed)
    ones, X = random_ones(rng, d), rng.uniform(-0.2, 1.2, (200, d))
    expected = [brute_force(ones, x) for x in X]
    for strict in (False, True):
        found = Constraints(ones, d).holds(X, strict)
        assert found.dtype == bool
        np.testing.assert_array_equal(found, expected)
    shuffled = data.draw(st.permutations(ones))
    np.testing.assert_array_equal(Constraints(shuffled, d).holds(X), expected)
    linear = Constraints([one for one in ones if isinstance(one, LinearConstraint)], d)
    np.testing.assert_array_equal(Constraints(ones, d).linear_hold(X), linear.holds(X))


def test_one_alone_and_none():
    X = np.array([[0.2, 0.3], [0.8, 0.9]])
    total = LinearConstraint([1, 1], ub=1)
    np.testing.assert_array_equal(Constraints(total, 2).holds(X), [True, False])
    disc = NonlinearConstraint(lambda x: x @ x, -np.inf, 1)
    np.testing.assert_array_equal(Constraints(disc, 2).holds(X), [True, False])
    assert Constraints([], 2).holds(X).all()
    assert [len(Constraints(one, 2)) for one in ([], total, (total, disc))] == [0, 1, 2]


def test_sparse_matrices():
    X = np.array([[0.2, 0.3], [0.8, 0.9]])
    one = LinearConstraint(csr_matrix([[1.0, 1.0]]), -np.inf, 1)
    np.testing.assert_array_equal(Constraints(one, 2).holds(X), [True, False])


def test_rounding():
    """Of equations always, of inequalities only where it is not strict."""
    x = np.array([[0.1, 0.2]])
    assert x.sum() > 0.3
    assert Constraints(LinearConstraint([1, 1], 0.3, 0.3), 2).holds(x, strict=True)
    at_most = Constraints(LinearConstraint([1, 1], -np.inf, 0.3), 2)
    assert at_most.holds(x)
    assert not at_most.holds(x, strict=True)
    assert not at_most.holds(x + 1e-8)
    # In large units, too.
    assert Constraints(LinearConstraint([1, 1], 3e8, 3e8), 2).holds(1e9 * x, strict=True)
    curved = Constraints(NonlinearConstraint(lambda x: x.sum(), -np.inf, 0.3), 2)
    assert curved.holds(x)
    assert not curved.holds(x, strict=True)


def test_equations():
    found = Constraints(LinearConstraint(np.eye(2), [0, 0.5], [1, 0.5]), 2)
    np.testing.assert_array_equal(found.is_equation, [False, True])
    assert not found.has_curved_equation
    for lb, ub in ((0.5, 0.5), ([0, 0.5], [1, 0.5])):
        assert Constraints(NonlinearConstraint(lambda x: x, lb, ub), 2).has_curved_equation


def test_functions_get_one_point_and_cannot_change_it():
    seen, X = [], np.array([[0.2, 0.3], [0.8, 0.9]])

    def spoil(x):
        seen.append(x.copy())
        x[:] = np.nan
        return 0.0

    assert Constraints(NonlinearConstraint(spoil, -1, 1), 2).holds(X).all()
    np.testing.assert_array_equal(seen, X)


def test_functions_are_asked_only_where_all_else_holds():
    seen, X = [], np.array([[0.2, 0.3], [0.8, 0.9]])
    asked = NonlinearConstraint(lambda x: seen.append(x) or 0.0, -1, 1)
    Constraints([asked, LinearConstraint([1, 1], ub=1)], 2).holds(X)
    np.testing.assert_array_equal(seen, X[:1])


def test_no_number_satisfies_nothing():
    with np.errstate(invalid="ignore"):
        found = Constraints(NonlinearConstraint(lambda x: np.sqrt(-x[0]), -np.inf, np.inf), 1)
        assert not found.holds(np.array([[0.5]]))


@pytest.mark.parametrize(
    ("stated", "error", "message"),
    [
        (3, TypeError, "constraints must be a scipy.optimize.LinearConstraint .*, got 3"),
        ({"type": "ineq"}, TypeError, "constraints must be"),
        (lambda x: x, TypeError, "constraints must be"),
        ([lambda x: x], TypeError, "constraints must be"),
        (Bounds([0, 0], [1, 1]), TypeError, "constraints must be"),
        (LinearConstraint([1, 1, 1]), ValueError, r"constraints\[0\]: A must .* 2 features .*1, 3"),
        ([LinearConstraint([1, 1]), LinearConstraint([1])], ValueError, r"constraints\[1\]: A"),
        (LinearConstraint([1, np.nan]), ValueError, r"constraints\[0\]: A must have one finite"),
        (LinearConstraint([1, 1], 2, 1), ValueError, "lb must not be above ub"),
        (LinearConstraint([1, 1], np.nan, 1), ValueError, "neither may be NaN"),
    ],
)
def test_bad_constraints(stated, error, message):
    with pytest.raises(error, match=message):
        Constraints(stated, 2)


@pytest.mark.parametrize(
    "fun", [lambda x: x[5], lambda x: [1, 2, 3], lambda x: "hot", lambda x: None]
)
def test_functions_that_fail_are_named(fun):
    found = Constraints(NonlinearConstraint(fun, [0, 0], [1, 1]), 2)
    with pytest.raises(ValueError, match=r"constraints: the function .* fails at x=\[0.5, 0.25\]"):
        found.holds(np.array([[0.5, 0.25]]))
