"""Which measurement is repeated, and the noise that repeats show, by brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_asal.box import Box
from sklearn_asal.queriers.history import Cache, History
from sklearn_asal.queriers.repeats import pooled_std, reference_points, same_inputs

few = settings(max_examples=25, deadline=None, derandomize=True)


def drawn(seed, n_limits=0, n=12):
    """Some inputs are measured more than once, and some lie outside the bounds."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.1, 1.1, (6, 2))[rng.integers(6, size=n)]
    margin = None if not n_limits else rng.normal(0.8, 1.0, (n, n_limits))
    return History(X, rng.random(n), margin, n, Box(None, 2), Cache())


@few
@given(st.integers(0, 10**6), st.integers(0, 2))
def test_reference_points(seed, n_limits):
    history = drawn(seed, n_limits)
    X, margin, ranked = history.X, history.margin, []
    for i, x in enumerate(X):
        rows = np.flatnonzero((X == x).all(axis=1))
        if rows[0] < i or not ((x >= 0) & (x <= 1)).all():
            continue
        worst = 0.0
        if margin is not None:
            worst = (margin[rows] / np.sqrt(np.mean(margin**2, axis=0))).min()
        if worst >= 0:
            ranked.append((-len(rows), -worst, i))
    assert reference_points(history) == [i for *_, i in sorted(ranked)]


@few
@given(st.integers(0, 10**6))
def test_same_inputs(seed):
    X = drawn(seed).X
    which = same_inputs(X + 1e-8 * np.random.default_rng(seed).standard_normal(X.shape))
    assert ((which[:, None] == which) == (X[:, None] == X).all(axis=2)).all()


@few
@given(st.integers(0, 10**6), st.floats(-1e3, 1e3))
def test_pooled_standard_deviation(seed, shift):
    X, y = drawn(seed).X, np.random.default_rng(seed).random(12)
    groups = [y[(X == x).all(axis=1)] for x in np.unique(X, axis=0)]
    dof = sum(len(group) - 1 for group in groups)
    expected = np.sqrt(sum(np.square(group - group.mean()).sum() for group in groups) / dof)
    std, found, most = pooled_std(X, shift + y)
    assert std == pytest.approx(expected)
    assert (found, most) == (dof, max(map(len, groups)))


def test_without_repeats():
    assert pooled_std(np.random.default_rng(0).random((5, 2)), np.arange(5.0)) == (None, 0, 1)


def test_nothing_is_safe():
    history = History(np.full((2, 1), 0.5), np.zeros(2), -np.ones((2, 1)), 2, Box(None, 1), Cache())
    assert reference_points(history) == []
