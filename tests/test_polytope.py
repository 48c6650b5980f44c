"""Random points of a polytope, against closed forms and brute force."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sklearn_asal.polytope import Polytope

some = settings(max_examples=30, deadline=None, derandomize=True)


def polytope(d, A=(), b=(), A_eq=(), b_eq=(), lower=0.0, upper=1.0):
    """One in the unit cube, unless limits are stated."""
    rows = (np.array(part, dtype=float).reshape(-1, d) for part in (A, A_eq))
    A, A_eq = rows
    limits = (np.broadcast_to(np.asarray(part, float), d) for part in (lower, upper))
    return Polytope(*limits, A, np.array(b, float), A_eq, np.array(b_eq, float))


def draw(found, n=20_000):
    return found.draw(n, np.random.default_rng(0))


# ---- uniform


@pytest.mark.parametrize("d", [1, 2, 3, 6, 12])
def test_moments_of_a_box(d):
    x = draw(polytope(d, lower=-1.0, upper=np.arange(1, d + 1)))
    width = np.arange(2, d + 2)
    np.testing.assert_allclose((x.mean(axis=0) - (width / 2 - 1)) / width, 0, atol=0.02)
    np.testing.assert_allclose(x.var(axis=0) * 12 / width**2, 1, atol=0.06)
    correlation = np.corrcoef(x.T).reshape(d, d) - np.eye(d)
    assert np.abs(correlation).max() < 0.08


@pytest.mark.parametrize("d", [2, 3, 5, 10])
def test_moments_of_a_simplex(d):
    """A mixture: parts that add up to one have a Dirichlet distribution."""
    x = draw(polytope(d, A_eq=np.ones(d), b_eq=[1.0]))
    np.testing.assert_allclose(x.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert x.min() >= -1e-12
    deviation = np.sqrt((d - 1) / (d + 1)) / d
    np.testing.assert_allclose((x.mean(axis=0) - 1 / d) / deviation, 0, atol=0.1)
    np.testing.assert_allclose(x.std(axis=0).mean() / deviation, 1, atol=0.05)


@pytest.mark.parametrize("d", [2, 6])
@pytest.mark.parametrize("width", [1e-1, 1e-3, 1e-5])
def test_a_long_and_thin_set_is_no_harder(d, width):
    """Two coordinates that are nearly equal, as a ratio that is kept."""
    row = np.eye(d)[0] - np.eye(d)[1]
    x = draw(polytope(d, A=[row, -row], b=[width, width]))
    along, across = x[:, :2].mean(axis=1), (x[:, 0] - x[:, 1]) / width
    assert abs(along.mean() - 0.5) < 0.03
    trimmed = 1 - 0.9 * width  # at both ends, about
    np.testing.assert_allclose(along.var() * 12, trimmed, atol=0.08)
    assert abs(across.mean()) < 0.05
    np.testing.assert_allclose(across.var() * 3, 1, atol=0.08)


@some
@given(seed=st.integers(0, 10**6), d=st.integers(2, 4))
def test_moments_are_those_of_what_is_left_of_random_points(seed, d):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((3, d))
    b = A @ rng.random(d) + 0.3 * rng.random(3)
    all_over = rng.random((40_000, d))
    left = all_over[(all_over @ A.T <= b).all(axis=1)]
    assume(len(left) >= 2000)
    x = draw(polytope(d, A, b), n=4000)
    apart = (x.mean(axis=0) - left.mean(axis=0)) / left.std(axis=0)
    np.testing.assert_allclose(apart, 0, atol=0.15)
    size = left.var(axis=0).max()
    np.testing.assert_allclose(np.cov(x.T) / size, np.cov(left.T) / size, atol=0.15)


# ---- inside, to rounding


@some
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 8),
    k=st.integers(0, 5),
    m=st.integers(0, 3),
    n_fixed=st.integers(0, 2),
    n=st.integers(1, 3000),
)
def test_all_points_lie_inside(seed, d, k, m, n_fixed, n):
    rng = np.random.default_rng(seed)
    inside = rng.uniform(0.1, 0.9, d)
    A, A_eq = rng.standard_normal((k, d)), rng.standard_normal((m, d))
    b, b_eq = A @ inside + rng.exponential(0.3, k), A_eq @ inside
    lower, upper = np.zeros(d), np.ones(d)
    fixed = rng.permutation(d)[:n_fixed]
    lower[fixed] = upper[fixed] = inside[fixed]
    found = polytope(d, A, b, A_eq, b_eq, lower, upper)
    assert not found.is_empty
    x = found.draw(n, rng)
    assert x.shape == (n, d)
    assert (x @ A.T <= b + 1e-9).all()
    assert ((x >= lower - 1e-9) & (x <= upper + 1e-9)).all()
    np.testing.assert_allclose(x @ A_eq.T, np.tile(b_eq, (n, 1)), rtol=0, atol=1e-9)
    np.testing.assert_allclose(x[:, fixed], np.tile(inside[fixed], (n, 1)), rtol=0, atol=1e-9)
    if m + len(fixed) < d and n > 1:
        assert len(np.unique(x, axis=0)) > 1


def test_the_same_generator_draws_the_same_points():
    found = polytope(3, A=[[1, 1, 1]], b=[1.5])
    np.testing.assert_array_equal(draw(found, 300), draw(found, 300))
    assert len(np.unique(draw(found, 300), axis=0)) == 300


# ---- nothing, a point, a face


def test_nothing_satisfies_all():
    assert polytope(2, A=[[1, 1]], b=[-0.1]).is_empty
    assert polytope(2, A=[[1, 1], [-1, -1]], b=[0.5, -0.6]).is_empty
    assert polytope(2, A_eq=[[1, 1]], b_eq=[2.1]).is_empty
    assert polytope(2, A_eq=[[1, 1], [1, 1]], b_eq=[1.0, 1.1]).is_empty
    assert not polytope(2, A_eq=[[1, 1], [1, 1]], b_eq=[1.0, 1.0]).is_empty


def test_a_single_point():
    corner = polytope(2, A_eq=[[1, 1]], b_eq=[2.0])
    np.testing.assert_allclose(draw(corner, 5), np.ones((5, 2)), rtol=0, atol=1e-9)
    fixed = polytope(3, A=[[1, 1, 1]], b=[2.0], lower=[0.1, 0.2, 0.3], upper=[0.1, 0.2, 0.3])
    np.testing.assert_allclose(draw(fixed, 5), np.tile([0.1, 0.2, 0.3], (5, 1)), atol=1e-12)
    # Of a mixture with one part, the others are nought.
    mixture = polytope(3, A_eq=[[1, 1, 1]], b_eq=[1.0], lower=[1, 0, 0], upper=[1, 1, 1])
    np.testing.assert_allclose(draw(mixture, 5), np.tile([1, 0, 0], (5, 1)), rtol=0, atol=1e-9)


def test_two_inequalities_may_be_an_equation():
    x = draw(polytope(3, A=[[1, 1, 1], [-1, -1, -1]], b=[1.0, -1.0]))
    np.testing.assert_allclose(x.sum(axis=1), 1, rtol=0, atol=1e-9)
    np.testing.assert_allclose(x.mean(axis=0), 1 / 3, atol=0.02)
    np.testing.assert_allclose(x.var(axis=0) * 18, 1, atol=0.06)


def test_a_face_of_the_cube():
    x = draw(polytope(3, A=[[-1, -1, 0]], b=[-2.0]))
    np.testing.assert_allclose(x[:, :2], 1, rtol=0, atol=1e-9)
    np.testing.assert_allclose([x[:, 2].mean(), x[:, 2].var() * 12], [0.5, 1], atol=0.05)
