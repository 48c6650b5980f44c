"""The averaged process against numerical integrals, and what units must not change."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

from sklearn_asal.surrogates import AveragedGP

rng = np.random.default_rng(0)
X = rng.random((9, 2))
Y = np.sin(5 * X[:, 0]) + X[:, 1]
POINTS = rng.random((6, 2))
few = settings(max_examples=15, deadline=None, derandomize=True)


def log_marginal(y, K, zero_mean):
    """Logarithm of the marginal likelihood, with the variance integrated out numerically."""
    n, inverse = len(y), np.linalg.inv(K)
    total = inverse.sum()
    at = 0.0 if zero_mean else inverse.sum(axis=0) @ y / total
    squares = (y - at) @ inverse @ (y - at)
    count = n if zero_mean else n - 1
    # In the logarithm of the variance its prior is flat, or that of an inverse gamma with a = 1.
    shape = 1.0 if zero_mean else 0.0
    peak = np.log(squares / count)

    def density(u):
        return np.exp(-(0.5 * count + shape) * (u - peak) - 0.5 * squares * np.exp(-u) + count / 2)

    integral = quad(density, peak - 15, peak + 40, limit=200)[0]
    constant = -0.5 * np.linalg.slogdet(K)[1] - (0 if zero_mean else 0.5 * np.log(total))
    return np.log(integral) - (0.5 * count + shape) * peak - count / 2 + constant


def covariance(A, lengthscale, noise):
    return RBF(lengthscale)(A) + noise**2 * np.eye(len(A))


def members(model, n_features=2):
    lengthscales, noises, which = model._hyperparameters(n_features)
    return [(lengthscales[which[i]], noises[i]) for i in model._kept]


@pytest.mark.parametrize("zero_mean", [False, True])
def test_predictions_are_ratios_of_marginal_likelihoods(zero_mean):
    model = AveragedGP(16, zero_mean=zero_mean).fit(X, Y)
    grid = np.linspace(-2, 4, 7)
    for x in POINTS[:2]:
        locations, scales = model.predict_members(x[None])
        for (lengthscale, noise), location, scale in zip(
            members(model), locations[:, 0], scales[:, 0], strict=True
        ):
            before = log_marginal(Y, covariance(X, lengthscale, noise), zero_mean)
            K = covariance(np.vstack([X, x]), lengthscale, noise)
            found = [log_marginal(np.append(Y, value), K, zero_mean) - before for value in grid]
            expected = student.logpdf(grid, model.dof_, location, scale)
            # What is left out of the marginal likelihoods is the same for all values.
            apart = np.array(found) - expected
            np.testing.assert_allclose(apart, apart[0], rtol=0, atol=2e-3)


@pytest.mark.parametrize("zero_mean", [False, True])
def test_weights_are_marginal_likelihoods(zero_mean):
    model = AveragedGP(16, zero_mean=zero_mean).fit(X, Y)
    logs = [log_marginal(Y, covariance(X, *member), zero_mean) for member in members(model)]
    expected = np.exp(np.array(logs) - max(logs))
    np.testing.assert_allclose(model.member_weights_, expected / expected.sum(), atol=1e-6)
    assert 1 < len(expected) <= 12


def test_hyperparameters_lie_all_over_their_ranges():
    lengthscales, noises, _ = AveragedGP()._hyperparameters(2)
    assert len(noises) == 128
    for values, (low, high) in ((lengthscales, (0.06, 1.6)), (noises, (0.01, 0.5))):
        assert (values >= low).all()
        assert (values <= high).all()
        thirds = np.digitize(values, np.geomspace(low, high, 4)[1:-1])
        assert np.bincount(thirds.ravel()).min() > 0.3 * values.size
    assert np.ptp(lengthscales, axis=1).min() == 0  # some are isotropic
    assert AveragedGP()._hyperparameters(8)[0].max() > 2


@few
@given(factor=st.floats(1e-6, 1e6), shift=st.floats(-1e6, 1e6), seed=st.integers(0, 99))
def test_units_are_of_no_consequence(factor, shift, seed):
    r = np.random.default_rng(seed)
    inputs, values, points = r.random((8, 3)), r.normal(size=8), r.random((20, 3))
    shift *= factor / 1e3
    model, other = AveragedGP(32).fit(inputs, values), AveragedGP(32)
    other.fit(inputs, factor * values + shift)
    mean, std = model.predict(points)
    found, spread = other.predict(points)
    np.testing.assert_allclose((found - shift) / factor, mean, rtol=0, atol=2e-5)
    np.testing.assert_allclose(spread / factor, std, rtol=1e-4)
    gain, weights = model.variance_reduction(points, inputs, np.ones(8)), np.ones(8)
    np.testing.assert_allclose(
        other.variance_reduction(points, inputs, weights) / factor**2, gain, rtol=1e-3
    )
    margin, scaled = AveragedGP(32, zero_mean=True), AveragedGP(32, zero_mean=True)
    np.testing.assert_allclose(
        scaled.fit(inputs, factor * values).probability_of_positive(points),
        margin.fit(inputs, values).probability_of_positive(points),
        rtol=0,
        atol=1e-5,
    )


@few
@given(order=st.permutations(range(9)))
def test_order_is_of_no_consequence(order):
    expected = AveragedGP(32).fit(X, Y).predict(POINTS)
    found = AveragedGP(32).fit(X[order], Y[order]).predict(POINTS)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("zero_mean", [False, True])
def test_updates_are_fits(zero_mean):
    model = AveragedGP(32, zero_mean=zero_mean).fit(X[:2], Y[:2])
    weights = np.ones(len(POINTS))
    for n in (3, 4, 4, 8, 9, 5):
        model.update(X[:n], Y[:n])
        expected = AveragedGP(32, zero_mean=zero_mean).fit(X[:n], Y[:n])
        for name, arguments in (
            ("predict", (POINTS,)),
            ("probability_at", (POINTS,)),
            ("variance_reduction", (POINTS, X[:4], np.ones(4))),
            ("variance_reduction", (X, POINTS, weights)),
        ):
            np.testing.assert_allclose(
                getattr(model, name)(*arguments),
                getattr(expected, name)(*arguments),
                rtol=2e-4,
                atol=1e-5,
            )


def test_probability_at_a_reference_set():
    model = AveragedGP(32, zero_mean=True).fit(X, Y - 0.7)
    expected = model.probability_of_positive(POINTS)
    np.testing.assert_allclose(model.probability_at(POINTS), expected, rtol=0, atol=1e-5)
    by_hand = sum(
        weight * student.sf(0, model.dof_, location, scale)
        for weight, location, scale in zip(
            model.member_weights_, *model.predict_members(POINTS), strict=True
        )
    )
    np.testing.assert_allclose(expected, by_hand, rtol=0, atol=1e-6)


def test_variance_reduction_by_brute_force():
    """The variance of a member with and without one more input, in float64."""
    model, weights = AveragedGP(16).fit(X, Y), rng.random(5)
    reference = rng.random((5, 2))

    def variances(inputs, lengthscale, noise):
        inverse = np.linalg.inv(covariance(inputs, lengthscale, noise))
        across = RBF(lengthscale)(inputs, reference)
        h = 1 - inverse.sum(axis=0) @ across
        explained = np.einsum("ij,ik,kj->j", across, inverse, across)
        return 1 - explained + h**2 / inverse.sum()

    expected = np.zeros(len(POINTS))
    for member, weight, scale in zip(
        members(model), model.member_weights_, model._scale, strict=True
    ):
        before = variances(X, *member)
        for i, x in enumerate(POINTS):
            gain = weights @ (before - variances(np.vstack([X, x]), *member))
            expected[i] += weight * scale**2 * gain
    found = model.variance_reduction(POINTS, reference, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_pending_points_lower_the_gain_there():
    model = AveragedGP(32).fit(X, Y)
    before = model.variance_reduction(POINTS, X, np.ones(9))
    after = model.condition(np.vstack([X, POINTS[:1]]), None).variance_reduction(
        POINTS, X, np.ones(9)
    )
    assert after[0] < 0.9 * before[0]


@pytest.mark.parametrize("zero_mean", [False, True])
@pytest.mark.parametrize(
    "values", [np.zeros(9), np.full(9, 0.1 + 0.2), 300 + 1e-13 * np.arange(9), 1e-9 * Y, 1e90 * Y]
)
def test_any_values_give_an_answer(values, zero_mean):
    for n in (1, 2, 9):
        model = AveragedGP(16, zero_mean=zero_mean).fit(X[:n], values[:n])
        mean, std = model.predict(POINTS)
        assert np.isfinite(mean).all()
        assert np.isfinite(std).all()
        assert (std > 0).all()
        p = model.probability_of_positive(POINTS)
        assert ((p >= 0) & (p <= 1)).all()
    if zero_mean and not values.any():
        np.testing.assert_array_equal(p, 0.5)


def test_copies():
    model = AveragedGP(16, zero_mean=True).fit(X, Y)
    expected = model.predict(POINTS)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(POINTS), expected)
    assert clone(model).zero_mean
