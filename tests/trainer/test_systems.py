"""Simulated systems whose hyperparameters a network learns to infer."""

import numpy as np
import pytest
from scipy.stats import kstest, spearmanr

from sklearn_asal.surrogates.evidence import N_OWN, N_SHARED, unit
from sklearn_asal.trainer.systems import (
    MOST_FEATURES,
    MOST_ROWS,
    draw_examples,
    draw_hyperparameters,
    draw_inputs,
    draw_values,
)

LENGTHSCALES, NOISES = (0.05, 8.0), (0.005, 0.6)


@pytest.mark.parametrize("n_features", [1, 3, 10])
def test_hyperparameters_lie_all_over_their_ranges(n_features):
    lengthscales, noises = draw_hyperparameters(np.random.default_rng(0), 4000, n_features)
    assert lengthscales.shape == (4000, n_features)
    assert noises.shape == (4000,)
    assert lengthscales.min() >= LENGTHSCALES[0]
    assert lengthscales.max() <= LENGTHSCALES[1]
    low, high = np.log(NOISES)
    assert kstest(np.log(noises), "uniform", (low, high - low)).pvalue > 0.01
    for at in (0.15, 0.5, 1.0, 2.0):  # a good share on either side
        assert 0.01 < np.mean(lengthscales < at) < 0.99
    if n_features > 1:
        # Those of one system are related, and yet not equal in most systems.
        assert spearmanr(lengthscales[:, 0], lengthscales[:, 1])[0] > 0.2
        isotropic = np.ptp(lengthscales, axis=1) < 1e-12
        assert 0.01 < isotropic.mean() < 0.2
        # In some systems a few features hardly matter.
        ratio = lengthscales.max(axis=1) / np.median(lengthscales, axis=1)
        assert 0.1 < np.mean(ratio > 3) < 0.9


def test_lengthscales_grow_with_the_number_of_features():
    def typical(n_features):
        lengthscales, _ = draw_hyperparameters(np.random.default_rng(0), 4000, n_features)
        return np.median(lengthscales)

    assert typical(10) > 1.2 * typical(2)


def test_inputs_are_those_of_campaigns():
    X = draw_inputs(np.random.default_rng(0), 600, 30, 3)
    assert X.shape == (600, 30, 3)
    assert X.min() == 0.0
    assert X.max() == 1.0
    # Many on the border in some, none in most.
    border = ((X == 0) | (X == 1)).any(axis=2).mean(axis=1)
    assert 0.4 < np.mean(border == 0) < 0.9
    assert np.mean(border > 0.4) > 0.05
    # Some begin in a part of the cube, with one point or several, some are scattered.
    first, last = np.ptp(X[:, :5], axis=1).max(axis=1), np.ptp(X[:, -5:], axis=1).max(axis=1)
    assert 0.1 < np.mean(first < 0.3) < 0.6
    assert np.mean(first > 0.7) > 0.2
    assert np.mean(first < 0.3) > 2 * np.mean(last < 0.3)


@pytest.mark.parametrize("zero_mean", [False, True])
def test_noise_of_values(zero_mean):
    """Functions may be bent and lifted; measured twice they differ by the noise alone."""
    rng, n = np.random.default_rng(0), 4000
    X = np.repeat(rng.random((n, 1, 2)), 2, axis=1)
    lengthscales, noises = draw_hyperparameters(rng, n, 2)
    values = draw_values(rng, X, lengthscales, noises, zero_mean)
    assert values.shape == (n, 2)
    apart = np.diff(values, axis=1)[:, 0] / (np.sqrt(2) * noises)
    assert kstest(apart[noises > 0.02], "norm").pvalue > 0.01


@pytest.mark.parametrize("n_features", [1, 4])
def test_functions_vary_with_their_lengthscales(n_features):
    """Rank correlation of two values by that of a Gaussian process; bending changes it little."""
    rng, n = np.random.default_rng(0), 20000
    lengthscales = rng.uniform(0.2, 1.0, n_features)
    for step in (0.3, 1.0, 2.0):
        X = np.stack([np.zeros(n_features), step * lengthscales / np.sqrt(n_features)])
        values = draw_values(
            rng,
            np.tile(X, (n, 1, 1)),
            np.tile(lengthscales, (n, 1)),
            np.full(n, 1e-3),
            zero_mean=False,
        )
        expected = 6 / np.pi * np.arcsin(0.5 * np.exp(-0.5 * step**2))
        assert spearmanr(*values.T)[0] == pytest.approx(expected, abs=0.06)
        assert 0.8 < values.std() < 1.6


def test_margins_are_lifted_in_half_of_the_systems():
    """Then all of them by the same."""
    n, rows = 8000, 3
    X = np.tile(np.arange(rows)[:, None] * 100.0, (n, 1, 1))

    def covariance(zero_mean):
        rng = np.random.default_rng(0)
        values = draw_values(rng, X, np.full((n, 1), 0.1), np.full(n, 0.01), zero_mean)
        return np.cov(values.T)[np.triu_indices(rows, 1)]

    np.testing.assert_allclose(covariance(True) - covariance(False), 0.5, atol=0.1)


def test_examples():
    found = set()
    for seed in range(60):
        parts = draw_examples(np.random.default_rng(seed), 3)
        own, shared, log_lengthscales, log_noises = parts
        n_features = own.shape[1]
        assert own.shape == (3, n_features, N_OWN)
        assert shared.shape == (3, N_SHARED)
        assert log_lengthscales.shape == (3, n_features)
        assert log_noises.shape == (3,)
        for part, again in zip(parts, draw_examples(np.random.default_rng(seed), 3), strict=True):
            assert part.dtype == np.float32
            assert np.isfinite(part).all()
            np.testing.assert_array_equal(part, again)
        lengthscales = unit(n_features) * np.exp(log_lengthscales)
        assert lengthscales.min() > 0.99 * LENGTHSCALES[0]
        assert lengthscales.max() < 1.01 * LENGTHSCALES[1]
        assert np.exp(log_noises).min() > 0.99 * NOISES[0]
        log_n, log_features, zero_mean = np.sinh(shared[:, -3:]).T
        np.testing.assert_allclose(np.exp(log_features), n_features, rtol=1e-4)
        rows = np.exp(log_n)
        np.testing.assert_allclose(rows, np.round(rows[0]), rtol=1e-4)
        assert 1 <= round(rows[0]) <= MOST_ROWS
        found.add((n_features, round(rows[0]) > 10, bool(zero_mean[0] > 0.5)))
    assert {n_features for n_features, _, _ in found} == set(range(1, MOST_FEATURES + 1))
    kinds = {(many, zero_mean) for _, many, zero_mean in found}
    assert kinds == {(False, False), (False, True), (True, False), (True, True)}


def test_evidence_tells_of_the_hyperparameters():
    """The slope at a probe in the middle points to where the lengthscale lies."""
    slopes, lengthscales = [], []
    for seed in range(40):
        own, shared, log_lengthscales, _ = draw_examples(np.random.default_rng(seed), 20)
        if np.sinh(shared[0, -3]) > np.log(20):  # with enough observations
            slopes.append(own[:, :, 4].ravel())  # at a lengthscale of 0.4 times the unit
            lengthscales.append(log_lengthscales.ravel())
    assert len(slopes) > 5
    assert spearmanr(np.concatenate(slopes), np.concatenate(lengthscales))[0] > 0.4
