import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from sklearn_asal import typical
from sklearn_asal.overview import Overview
from sklearn_asal.typical import FACTORS, Factors, TypicalProcesses

rng = np.random.default_rng(0)
SCALE = np.array([0.3, 0.6, 0.4])
NOISES = 0.05, 0.1, 0.2
X, ROWS = rng.random((12, 3)), rng.random((40, 3))
Y = np.sin(4 * X[:, 0]) + X[:, 1] - 0.8


def seen(n, values=Y, pending=()):
    overview = Overview(ROWS, SCALE)
    processes = TypicalProcesses(X[:n], values[:n], SCALE, pending=pending, noises=NOISES)
    overview.see(processes.expected)
    return overview, processes


@pytest.mark.parametrize("process", range(9))
def test_variances_are_those_of_scikit_learn(process):
    overview, _ = seen(12)
    kernel = RBF(FACTORS[process // 3] * SCALE)
    model = GaussianProcessRegressor(kernel, optimizer=None, alpha=NOISES[process % 3] ** 2)
    std = model.fit(X, Y).predict(ROWS, return_std=True)[1]
    explained = np.square(overview.whitened(process)).sum(axis=0)
    np.testing.assert_allclose(1 - explained, std**2, atol=1e-4)


@given(st.lists(st.integers(1, 12), min_size=1, max_size=5), st.integers(0, 8))
def test_what_is_seen_in_turn_is_as_if_seen_at_once(lengths, process):
    """Also where fewer are seen later."""
    overview = Overview(ROWS, SCALE)
    for n in lengths:
        overview.see(Factors(X[:n], SCALE, NOISES))
    expected = Overview(ROWS, SCALE)
    expected.see(Factors(X[: lengths[-1]], SCALE, NOISES))
    np.testing.assert_allclose(
        overview.whitened(process), expected.whitened(process), rtol=1e-5, atol=1e-5
    )


def test_other_observations_replace_those_seen():
    overview, _ = seen(12)
    other = np.vstack([X[:5], X[8:]])
    overview.see(Factors(other, SCALE, NOISES))
    expected = Overview(ROWS, SCALE)
    expected.see(Factors(other, SCALE, NOISES))
    np.testing.assert_allclose(overview.whitened(3), expected.whitened(3), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("pending", [(), X[9:]])
def test_probabilities_are_those_of_the_processes(pending, monkeypatch):
    overview, processes = seen(9, pending=pending)
    expected = processes.predict(ROWS)[1]
    np.testing.assert_allclose(processes.positive(ROWS), expected, rtol=0, atol=2e-3)
    monkeypatch.setattr(typical, "_LITTLE", 0.0)  # of what is unlikely nothing is left out
    np.testing.assert_allclose(processes.positive(ROWS), expected, rtol=0, atol=1e-4)
    best = processes._weights.argmax()
    kernel = RBF(FACTORS[processes._factor[best]] * SCALE)
    model = GaussianProcessRegressor(kernel, optimizer=None, alpha=processes._noise[best, 0])
    mean, std = model.fit(X[:9], Y[:9]).predict(ROWS, return_std=True)
    noisy = np.sqrt(std**2 + processes._noise[best, 0])
    np.testing.assert_allclose(processes.likely(overview), norm.cdf(mean / noisy), atol=1e-4)


@pytest.mark.parametrize("pending", [0, 3])
def test_gain_is_what_a_measurement_takes_away(pending):
    """From the variances, by one more observation."""
    overview, processes = seen(9, pending=X[9 : 9 + pending])
    candidates, weights = rng.random((3, 3)), rng.random(len(ROWS))
    gain = processes.gain(candidates, overview, weights)
    best = processes._weights.argmax()
    kernel = RBF(FACTORS[processes._factor[best]] * SCALE)

    def variance(inputs):
        model = GaussianProcessRegressor(kernel, optimizer=None, alpha=processes._noise[best, 0])
        return model.fit(inputs, np.zeros(len(inputs))).predict(ROWS, return_std=True)[1] ** 2

    known = X[: 9 + pending]
    for row, value in zip(candidates, gain, strict=True):
        lessened = variance(known) - variance(np.vstack([known, row]))
        np.testing.assert_allclose(value, weights @ lessened, rtol=1e-3)
