"""Where errors matter, and which queries are expected to come, by brute force."""

import numpy as np
import pytest

from sklearn_asal import CandidatePool
from sklearn_asal.acquisition import price_of_risk, probability_of_feasibility
from sklearn_asal.box import Box
from sklearn_asal.pool import Candidates, sobol
from sklearn_asal.queriers.forecast import LikelySafe
from sklearn_asal.queriers.history import Cache, History
from sklearn_asal.surrogates import AmortizedGP
from sklearn_asal.surrogates.rmse import RootMeanSquareError


def observed(n=10, width=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = 0.5 + width * (rng.random((n, 2)) - 0.5)
    y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)
    margin = 1 - 6 * np.square(X - 0.5).sum(axis=1)
    return History(X, y, margin[:, None], n, Box(None, 2), Cache())


def models(history):
    margin = AmortizedGP(n_sets=1, zero_mean=True).fit(history.X, history.margin[:, 0])
    return AmortizedGP(n_sets=1).fit(history.X, history.y), [margin]


def candidates(points):
    return Candidates(CandidatePool(points), Box(None, 2), np.empty((0, 2)))


def trace(model, X, pending, points):
    """Mean posterior variance, by the textbook."""
    lengthscales, noise = model.lengthscales_[0], model.noises_[0]

    def rbf(A, B):
        return np.exp(-0.5 * np.square((A[:, None] - B) / lengthscales).sum(axis=-1))

    X = np.vstack([X, *pending])
    K = rbf(X, X) + noise**2 * np.eye(len(X))
    k, ones = rbf(X, points), np.linalg.solve(K, np.ones(len(X)))
    solved = np.linalg.solve(K, k)
    return np.mean(1 - (k * solved).sum(axis=0) + (1 - ones @ k) ** 2 / ones.sum())


@pytest.mark.parametrize("safe", [False, True])
def test_the_queries_that_come_are_the_best_ones(safe):
    history = observed(width=0.6)
    output, limits = models(history)
    limits = limits if safe else []
    pool = np.random.default_rng(1).random((40, 2))
    region = LikelySafe(history, candidates(pool), limits)
    error = RootMeanSquareError(output, region.points)
    found = region.error_after(2, error, output, limits)
    p_safe = probability_of_feasibility(limits, pool)
    assert (p_safe < 0.88).any() == safe
    pending = []
    for _ in range(2):
        now = trace(output, history.X, pending, region.points)
        gains = [now - trace(output, history.X, [*pending, [x]], region.points) for x in pool]
        worth = np.log(gains) - price_of_risk(p_safe, 0.02)
        pending.append(pool[[np.where(p_safe >= 0.88, worth, -np.inf).argmax()]])
    expected = [error.quantiles_after(np.vstack(pending[:k]), [0.5])[0] for k in (1, 2)]
    assert found == pytest.approx(expected, rel=1e-6)


def test_where_the_error_matters():
    history = observed(width=0.6)
    limits = models(history)[1]
    region = LikelySafe(history, None, limits)
    assert region.points.shape == (128, 2)
    assert (probability_of_feasibility(limits, region.points) >= 0.5).all()
    points = sobol(512, 2)
    assert region.share == (probability_of_feasibility(limits, points) >= 0.5).mean()
    everywhere = LikelySafe(history, None, [])
    np.testing.assert_array_equal(everywhere.points, points[:128, history.feature_rank])
    assert everywhere.share == 1.0
    rows = np.random.default_rng(0).random((700, 2))
    some = LikelySafe(history, candidates(rows), []).points
    assert len(np.unique(some, axis=0)) == 128
    assert (np.abs(some[:, None] - rows).sum(axis=2).min(axis=1) < 1e-12).all()
    assert np.abs(some.mean(axis=0) - 0.5).max() < 0.05


def test_where_nothing_is_likely_safe_the_likeliest_point_counts():
    history = observed()
    output, _ = models(history)
    limit = AmortizedGP(zero_mean=True).fit(history.X, -1 - history.X[:, 0])
    region = LikelySafe(history, None, [limit])
    assert region.share == 0.0
    p_safe = probability_of_feasibility([limit], sobol(4096, 2)[:, history.feature_rank])
    assert limit.probability_of_positive(region.points) == pytest.approx(p_safe.max(), abs=1e-4)
    error = RootMeanSquareError(output, region.points)
    after = region.error_after(3, error, output, [limit])
    assert (after == error.quantiles([0.5])).all()  # nothing may be measured
