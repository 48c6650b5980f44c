"""Fixtures of the tests of displays."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from sklearn_asal import AmortizedSafeQuerier


@pytest.fixture(autouse=True)
def no_screen():
    """Figures without a screen, all closed in the end."""
    matplotlib.use("Agg")
    yield
    plt.close("all")


def output(X):
    return np.sin(3 * X).sum(axis=1)


def margin(X):
    return 1 - 12 * np.square(X - 0.4).mean(axis=1)


@pytest.fixture
def campaign():
    """``campaign(n_features, n_queries)`` is a querier that was told a campaign; 7 is aborted."""

    def told(n_features=2, n_queries=8, querier=None, limits=1, **params):
        rng = np.random.default_rng(0)
        X = rng.uniform(0.3, 0.5, (5, n_features))
        querier = querier or AmortizedSafeQuerier(**params)

        def z(X):
            return margin(X) if limits == 1 else np.column_stack([margin(X), 10 * X[:, 0]])

        querier.fit(X, output(X), z(X))
        for i in range(n_queries):
            x = np.clip(rng.uniform(0.0, 0.9, (1, n_features)), 0, 1)
            if i == 1:
                querier.tell(x, status="aborted")
            elif i == 2:
                querier.tell(x, status="failed")
            else:
                querier.tell(x, output(x), z(x))
        return querier

    return told


def marked(ax, label):
    """Where points of a label are, ``(n, 2)``."""
    (found,) = [one for one in ax.collections if one.get_label() == label]
    return np.asarray(found.get_offsets())


def labels(ax):
    return set(ax.get_legend_handles_labels()[1])
