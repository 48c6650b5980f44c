"""Data that the tests of the surrogates share."""

import numpy as np
import pytest


@pytest.fixture
def data():
    """``data(n, n_features)``: inputs in the unit cube and noisy values of unit scale."""

    def draw(n=30, n_features=2, seed=0):
        rng = np.random.default_rng(seed)
        X = rng.random((n, n_features))
        y = np.sin(5 * X[:, 0]) + X.sum(axis=1) - n_features / 2
        return X, y + 0.1 * rng.standard_normal(n)

    return draw
