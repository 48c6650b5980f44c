"""Drift against generalized least squares by the textbook, and its error rates."""

import numpy as np
import pytest
from scipy.stats import linregress
from scipy.stats import t as student

from sklearn_asal.surrogates import AmortizedGP
from sklearn_asal.surrogates.drift import Drift, linear_drift


def observed(n=30, drift=0.0, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    X[4::5] = 0.5
    y = np.sin(5 * X[:, 0]) + X[:, 1] + noise * rng.standard_normal(n)
    return X, y + drift * np.arange(n) / (n - 1)


def by_textbook(X, y, time, lengthscales, noise):
    """Slope, its standard error and p-value."""
    K = np.exp(-0.5 * np.square((X[:, None] - X) / lengthscales).sum(axis=-1))
    P = np.linalg.inv(K + noise**2 * np.eye(len(X)))
    A = np.column_stack([np.ones(len(X)), time])
    information = A.T @ P @ A
    both = np.linalg.solve(information, A.T @ P @ y)
    left = y - A @ both
    variance = left @ P @ left / (len(X) - 2)
    std = np.sqrt(variance * np.linalg.inv(information)[1, 1])
    return both[1], std, 2 * student.sf(np.abs(both[1]) / std, len(X) - 2)


def test_against_the_textbook():
    X, y = observed(drift=0.4)
    model = AmortizedGP().fit(X, y)
    found = linear_drift(model, X, y, np.arange(30))
    hyperparameters = zip(model.lengthscales_, model.noises_, strict=True)
    each = [by_textbook(X, y, np.linspace(0, 1, 30), *one) for one in hyperparameters]
    slopes, stds, p_values = np.transpose(each)
    weights = model.member_weights_
    assert found.change == pytest.approx(weights @ slopes)
    assert found.p_value == pytest.approx(weights @ p_values)
    variance = weights @ (stds**2 + slopes**2) - (weights @ slopes) ** 2
    assert found.std == pytest.approx(np.sqrt(variance))
    assert found.is_significant


def test_at_one_input_it_is_a_regression():
    rng = np.random.default_rng(0)
    X, order = np.full((9, 2), 0.5), np.array([0, 5, 10, 15, 20, 25, 30, 35, 40])
    y = 3.0 + 0.02 * order + 0.1 * rng.standard_normal(9)
    found = linear_drift(AmortizedGP().fit(X, y), X, y, order)
    expected = linregress(order, y)
    assert found.change == pytest.approx(40 * expected.slope)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6)


@pytest.mark.parametrize(("drift", "low", "high"), [(0.0, 0.0, 0.1), (0.3, 0.85, 1.0)])
def test_how_often_drift_is_found(drift, low, high):
    found = []
    for seed in range(40):
        X, y = observed(40, drift, seed)
        found.append(linear_drift(AmortizedGP().fit(X, y), X, y, np.arange(40)).is_significant)
    assert low <= np.mean(found) <= high


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_units(scale):
    X, y = observed(drift=0.2)
    expected = linear_drift(AmortizedGP().fit(X, y), X, y, np.arange(30)).scaled(scale)
    y = scale * (1e3 + y)
    found = linear_drift(AmortizedGP().fit(X, y), X, y, 7 + 2 * np.arange(30))
    assert found.change == pytest.approx(expected.change, rel=1e-3)
    assert found.p_value == pytest.approx(expected.p_value, rel=1e-2)


@pytest.mark.parametrize("y", [[1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 1.5]])
def test_too_little_to_say(y):
    X = np.linspace(0, 1, len(y))[:, None]
    found = linear_drift(AmortizedGP().fit(X, y), X, np.array(y), np.arange(len(y)))
    assert found.p_value == pytest.approx(1.0)
    assert not found.is_significant


def test_the_level():
    assert Drift(1.0, 0.5, 0.049).is_significant
    assert not Drift(1.0, 0.5, 0.05).is_significant
