"""Data that the tests of the surrogates share."""

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays


@pytest.fixture
def data():
    """``data(n, n_features)``: inputs in the unit cube and noisy values of unit scale."""

    def draw(n=30, n_features=2, seed=0):
        rng = np.random.default_rng(seed)
        X = rng.random((n, n_features))
        y = np.sin(5 * X[:, 0]) + X.sum(axis=1) - n_features / 2
        return X, y + 0.1 * rng.standard_normal(n)

    return draw


#: Sizes of values: ordinary ones, zero, and the limits of what is allowed.
SIZES = [0.0, 1e-300, 1e-160, 1e-100, 1e-9, 0.1 + 0.2, 1.0, 1e9, 1e100, 1e120]


@st.composite
def finite_data(draw, largest=1e120):
    """Inputs, often replicated, and values that may be constant, almost so, or of any size.

    ``largest`` is the size of the largest inputs.
    """
    n_features, n = draw(st.integers(1, 8)), draw(st.integers(1, 30))
    n_distinct = draw(st.integers(1, n))
    unit = st.floats(0, 1)
    distinct = draw(arrays(float, (n_distinct, n_features), elements=unit))
    X = distinct[draw(arrays(int, n, elements=st.integers(0, n_distinct - 1)))]
    X = X * draw(st.sampled_from([1.0, 1.0, 1.0, *(size for size in SIZES if size <= largest)]))
    y = draw(st.sampled_from(SIZES)) * draw(st.sampled_from([-1.0, 1.0])) * np.ones(n)
    kind = draw(st.sampled_from(["constant", "rounded", "any", "sizes"]))
    if kind == "rounded":
        y *= 1 - 2.0**-52 * draw(arrays(int, n, elements=st.integers(0, 3)))
    elif kind == "any":
        y *= draw(arrays(float, n, elements=st.floats(-1, 1)))
    elif kind == "sizes":
        y = draw(arrays(float, n, elements=st.sampled_from(SIZES)))
    return X, y
