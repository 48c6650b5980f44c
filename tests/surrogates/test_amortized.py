"""The amortised process against numerical integrals, and what must not change its answers."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF

from sklearn_asal import GPQuerier, PolicyFileError, PolicyNotFoundError
from sklearn_asal.policies.registry import locate
from sklearn_asal.surrogates import AmortizedGP

from ..common import policy_file

rng = np.random.default_rng(0)
X = rng.random((9, 2))
Y = np.sin(5 * X[:, 0]) + X[:, 1]
POINTS = rng.random((6, 2))
few = settings(max_examples=15, deadline=None, derandomize=True)
both = pytest.mark.parametrize("zero_mean", [False, True])


def data(n, n_features=2, seed=0):
    r = np.random.default_rng(seed)
    inputs = r.random((n, n_features))
    values = np.sin(5 * inputs[:, 0]) + inputs.sum(axis=1) - n_features / 2
    return inputs, values + 0.1 * r.standard_normal(n)


def covariance(A, lengthscale, noise):
    return RBF(lengthscale)(A) + noise**2 * np.eye(len(A))


def members(model):
    return list(zip(model.lengthscales_, model.noises_, strict=True))


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


def unscaled(known, points, lengthscale, noise, zero_mean):
    """Variances of measurements of a process of unit signal variance, with an unknown mean."""
    inverse = np.linalg.inv(covariance(known, lengthscale, noise))
    across = RBF(lengthscale)(known, points)
    variances = 1 + noise**2 - np.einsum("ij,ik,kj->j", across, inverse, across)
    if zero_mean:
        return variances
    return variances + (1 - inverse.sum(axis=0) @ across) ** 2 / inverse.sum()


def brute_force(model, inputs, values, points, pending=()):
    """Locations and scales of each member in double precision, from scratch."""
    known = np.vstack([inputs, *pending]) if len(pending) else inputs
    locations, scales = [], []
    for lengthscale, noise in members(model):
        inverse = np.linalg.inv(covariance(inputs, lengthscale, noise))
        total = inverse.sum()
        mean = 0.0 if model.zero_mean else inverse.sum(axis=0) @ values / total
        dof = len(values) + 2 if model.zero_mean else len(values) - 1
        squares = (values - mean) @ inverse @ (values - mean)
        locations.append(mean + RBF(lengthscale)(points, inputs) @ inverse @ (values - mean))
        variances = unscaled(known, points, lengthscale, noise, model.zero_mean)
        scales.append(np.sqrt(squares / dof * variances))
    return np.array(locations), np.array(scales)


def assert_same_members(found, locations, scales):
    """But for single precision, which tells little noise from none by two digits."""
    np.testing.assert_allclose((found[0] - locations) / scales, 0, atol=2e-2)
    np.testing.assert_allclose(found[1], scales, rtol=2e-2)


@both
def test_predictions_are_ratios_of_marginal_likelihoods(zero_mean):
    model = AmortizedGP(zero_mean=zero_mean).fit(X, Y)
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
            np.testing.assert_allclose(apart, apart[0], rtol=0, atol=5e-2)


@both
@pytest.mark.parametrize(("n", "n_features"), [(2, 1), (9, 2), (40, 5), (96, 3), (150, 2)])
def test_predictions_by_brute_force(n, n_features, zero_mean):
    inputs, values = data(n, n_features)
    points = np.random.default_rng(1).random((20, n_features))
    model = AmortizedGP(zero_mean=zero_mean).fit(inputs, values)
    assert model.dof_ == n + (2 if zero_mean else -1)
    locations, scales = brute_force(model, inputs, values, points)
    assert_same_members(model.predict_members(points), locations, scales)
    weights, dof = model.member_weights_, max(model.dof_, 3)
    np.testing.assert_allclose(weights.sum(), 1.0)
    mean, std = model.predict(points)
    moments = student.var(dof, 0, scales) + (locations - weights @ locations) ** 2
    expected = np.sqrt(weights @ moments)
    np.testing.assert_allclose(std, expected, rtol=2e-2)
    np.testing.assert_allclose((mean - weights @ locations) / expected, 0, atol=2e-2)
    expected = weights @ student.sf(0, model.dof_, locations, scales)
    found = model.probability_of_positive(points)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-2)
    by_hand = weights @ student.sf(0, model.dof_, *model.predict_members(points))
    np.testing.assert_allclose(found, by_hand, rtol=0, atol=2e-4)
    np.testing.assert_allclose(model.probability_at(points), found, rtol=0, atol=1e-5)


@both
def test_weights_are_tempered_marginal_likelihoods(zero_mean):
    """The network has seen the evidence already: its square root counts."""
    model = AmortizedGP(zero_mean=zero_mean).fit(X, Y)
    logs = [log_marginal(Y, covariance(X, *member), zero_mean) for member in members(model)]
    expected = np.exp(0.5 * (np.array(logs) - max(logs)))
    np.testing.assert_allclose(model.member_weights_, expected / expected.sum(), atol=1e-6)
    assert model.member_weights_.min() >= 0.02 * model.member_weights_.max()
    assert model.lengthscales_.shape == (len(logs), 2)
    assert 1 < len(logs) <= 16


@pytest.mark.parametrize("n_sets", [1, 2, 5, 40])
def test_numbers_of_sets(n_sets):
    model = AmortizedGP(n_sets=n_sets).fit(X, Y)
    assert 1 <= len(model.noises_) <= n_sets
    mean, std = model.predict(X)
    assert np.abs(mean - Y).mean() < 0.5 * Y.std()
    assert (std > 0).all()


def test_the_noise_and_the_length_of_functions_are_inferred():
    """Roughly: of noisy data more noise, of slow functions and idle features longer scales."""
    r = np.random.default_rng(0)
    inputs = r.random((60, 2))

    def typical(values):
        model = AmortizedGP().fit(inputs, values)
        weights = model.member_weights_
        return np.exp(weights @ np.log(model.lengthscales_)), np.exp(
            weights @ np.log(model.noises_)
        )

    waves = np.sin(12 * inputs[:, 0])
    (fast, idle), quiet = typical(waves)
    assert idle > 1.5 * fast
    (slow, _), _ = typical(np.sin(3 * inputs[:, 0]))
    assert slow > 1.5 * fast
    _, loud = typical(waves + 0.5 * r.standard_normal(60))
    assert loud > 2 * quiet


# ---- what must not matter


@few
@given(
    factor=st.floats(1e-6, 1e6),
    shift=st.floats(-1e3, 1e3),
    seed=st.integers(0, 99),
    n=st.sampled_from([2, 3, 8, 30]),
)
def test_units_are_of_no_consequence(factor, shift, seed, n):
    inputs, values = data(n, 3, seed)
    points = np.random.default_rng(seed + 1).random((20, 3))
    shift *= factor
    model, other = AmortizedGP().fit(inputs, values), AmortizedGP()
    other.fit(inputs, factor * values + shift)
    np.testing.assert_allclose(other.lengthscales_, model.lengthscales_, rtol=1e-4)
    mean, std = model.predict(points)
    found, spread = other.predict(points)
    np.testing.assert_allclose((found - shift) / factor, mean, rtol=0, atol=2e-4)
    np.testing.assert_allclose(spread / factor, std, rtol=1e-3)
    gain, weights = model.variance_reduction(points, inputs, np.ones(n)), np.ones(n)
    np.testing.assert_allclose(
        other.variance_reduction(points, inputs, weights) / factor**2,
        gain,
        rtol=1e-2,
        atol=1e-4 * gain.max(),
    )
    margin, scaled = AmortizedGP(zero_mean=True), AmortizedGP(zero_mean=True)
    np.testing.assert_allclose(
        scaled.fit(inputs, factor * values).probability_of_positive(points),
        margin.fit(inputs, values).probability_of_positive(points),
        rtol=0,
        atol=1e-4,
    )


def test_a_limit_from_below_is_one_from_above():
    model, mirrored = (AmortizedGP(zero_mean=True).fit(X, sign * (Y - 0.7)) for sign in (1, -1))
    np.testing.assert_allclose(
        mirrored.probability_of_positive(POINTS),
        1 - model.probability_of_positive(POINTS),
        rtol=0,
        atol=1e-5,
    )


@pytest.mark.parametrize("n", [9, 130])
@few
@given(seed=st.integers(0, 999), zero_mean=st.booleans())
def test_order_of_rows_is_of_no_consequence(n, seed, zero_mean):
    inputs, values = data(n)
    order = np.random.default_rng(seed).permutation(n)
    model = AmortizedGP(zero_mean=zero_mean).fit(inputs, values)
    other = AmortizedGP(zero_mean=zero_mean).fit(inputs[order], values[order])
    np.testing.assert_allclose(other.lengthscales_, model.lengthscales_, rtol=1e-5)
    np.testing.assert_allclose(other.member_weights_, model.member_weights_, rtol=1e-4)
    for one, expected in zip(other.predict(POINTS), model.predict(POINTS), strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-3, atol=2e-4)


def test_order_of_replicates_is_of_no_consequence():
    """Nothing tells one set of hyperparameters from another then; all are equally probable."""
    inputs, values = np.full((6, 2), 0.5), np.array([-1.5, 0.25, 2.0, 0.5, -0.75, 1.0])
    model = AmortizedGP().fit(inputs, values)
    for seed in range(5):
        other = AmortizedGP().fit(inputs, np.random.default_rng(seed).permutation(values))
        np.testing.assert_allclose(other.lengthscales_, model.lengthscales_, rtol=1e-5)
        np.testing.assert_allclose(other.noises_, model.noises_, rtol=1e-5)
        found, expected = other.predict(POINTS), model.predict(POINTS)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-2)


@pytest.mark.parametrize("n", [1, 2, 12, 130])
@few
@given(n_features=st.integers(1, 10), seed=st.integers(0, 99), zero_mean=st.booleans())
def test_order_of_features_is_of_no_consequence(n, n_features, seed, zero_mean):
    inputs, values = data(n, n_features, seed)
    points = np.random.default_rng(seed).random((8, n_features))
    order = np.random.default_rng(seed).permutation(n_features)
    model = AmortizedGP(zero_mean=zero_mean).fit(inputs, values)
    other = AmortizedGP(zero_mean=zero_mean).fit(inputs[:, order], values)
    # One observation says nothing of any feature, so that all have the same posterior.
    if n > 1:
        np.testing.assert_allclose(other.lengthscales_, model.lengthscales_[:, order], rtol=1e-4)
    np.testing.assert_allclose(other.noises_, model.noises_, rtol=1e-4)
    if n > 1:
        found, expected = other.predict(points[:, order]), model.predict(points)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-3, atol=2e-4)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-3)


# ---- updates and pending points


def answers(model, n_features=2):
    r = np.random.default_rng(3)
    points, reference = r.random((6, n_features)), r.random((7, n_features))
    return [
        *model.predict_members(points),
        *model.predict(points),
        model.probability_of_positive(points),
        model.probability_at(reference),
        model.variance_reduction(points, reference, np.arange(7.0)),
    ]


def assert_same_answers(model, expected):
    for one, other in zip(answers(model), answers(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-4)


@both
@pytest.mark.parametrize(
    "numbers", [(1, 2, 3, 4, 4, 8, 9, 5), (20, 21, 40, 44), (94, 95, 96, 97, 98, 102, 130, 131, 96)]
)
def test_updates_are_fits(numbers, zero_mean):
    inputs, values = data(131)
    model = AmortizedGP(zero_mean=zero_mean)
    for n in numbers:
        model.update(inputs[:n], values[:n])
        expected = AmortizedGP(zero_mean=zero_mean).fit(inputs[:n], values[:n])
        assert_same_answers(model, expected)
        np.testing.assert_array_equal(model.X_, inputs[:n])


def test_updates_with_other_data_and_parameters():
    model = AmortizedGP().fit(X, Y)
    for inputs, values in ((X, -Y), (X[::-1], Y[::-1]), (POINTS, Y[:6]), (X, Y)):
        assert_same_answers(model.update(inputs, values), AmortizedGP().fit(inputs, values))
    for params in ({"n_sets": 3}, {"zero_mean": True}):
        model.set_params(**params)
        assert_same_answers(model.update(X, Y), clone(model).fit(X, Y))
    inputs, values = data(7, 3)
    found = model.update(inputs, values).predict(inputs)
    np.testing.assert_allclose(found, clone(model).fit(inputs, values).predict(inputs), rtol=1e-5)


def test_data_changed_in_place():
    inputs, values = X.copy(), Y.copy()
    model = AmortizedGP().fit(inputs, values)
    expected = model.predict(POINTS)
    inputs[:], values[:] = 0.3, 7.0
    np.testing.assert_array_equal(model.predict(POINTS), expected)
    changed = model.update(inputs, values).predict(POINTS)
    np.testing.assert_array_equal(changed, AmortizedGP().fit(inputs, values).predict(POINTS))


def reduction(model, inputs, values, points, reference, weights):
    """Weighted variances of each member before less those after, by brute force."""
    _, scales = brute_force(model, values=values, inputs=inputs, points=points)
    found = []
    for i, member in enumerate(members(model)):
        now = unscaled(inputs, points, *member, model.zero_mean)
        square = np.mean(scales[i] ** 2 / now)
        before = unscaled(inputs, reference, *member, model.zero_mean)
        gains = [
            weights
            @ (before - unscaled(np.vstack([inputs, x]), reference, *member, model.zero_mean))
            for x in points
        ]
        found.append(square * np.array(gains))
    return np.array(found)


@both
@pytest.mark.parametrize(("n", "n_features"), [(3, 1), (9, 2), (30, 4), (120, 2)])
def test_variance_reduction_by_brute_force(n, n_features, zero_mean):
    inputs, values = data(n, n_features)
    r = np.random.default_rng(1)
    points, reference = r.random((6, n_features)), r.random((5, n_features))
    weights = np.array([0.0, 1.0, 0.3, 0.0, 2.0])
    model = AmortizedGP(zero_mean=zero_mean).fit(inputs, values)
    each = reduction(model, inputs, values, points, reference, weights)
    expected = model.member_weights_ @ each
    found = model.variance_reduction(points, reference, weights)
    np.testing.assert_allclose(found, expected, rtol=2e-2, atol=1e-3 * expected.max())
    np.testing.assert_array_equal(model.variance_reduction(points, reference, 0 * weights), 0.0)
    # By the most probable ones only.
    for k in (1, 2):
        best = np.argsort(-model.member_weights_, kind="stable")[:k]
        expected = model.member_weights_[best] @ each[best]
        found = model.variance_reduction(points, reference, weights, n_members=k)
        np.testing.assert_allclose(found, expected, rtol=2e-2, atol=1e-3 * expected.max())


@both
def test_pending_points(zero_mean):
    """They lower the variances as measurements would do, and leave the means as they are."""
    model = AmortizedGP(zero_mean=zero_mean).fit(X, Y)
    pending = np.array([[0.9, 0.1], [0.1, 0.95]])
    before, mean = model.predict_members(POINTS), model.predict(POINTS)[0]
    assert model.condition(np.vstack([X, pending]), None) is model
    locations, scales = brute_force(model, X, Y, POINTS, pending=[pending])
    assert_same_members(model.predict_members(POINTS), locations, scales)
    np.testing.assert_allclose(model.predict(POINTS)[0], mean, rtol=0, atol=1e-5)
    model.condition(X, Y)
    np.testing.assert_allclose(model.predict_members(POINTS), before, rtol=0, atol=1e-6)


@both
def test_pending_points_lower_the_gain(zero_mean):
    model = AmortizedGP(zero_mean=zero_mean).fit(X, Y)
    pending, reference = POINTS[:2], np.random.default_rng(2).random((30, 2))
    before = model.variance_reduction(POINTS, reference, np.ones(30))
    model.condition(np.vstack([X, pending]), np.append(Y, [9.0, 9.0]))
    found = model.variance_reduction(POINTS, reference, np.ones(30))
    expected = np.zeros(6)
    known = np.vstack([X, pending])
    _, scales = brute_force(model, X, Y, POINTS)
    for i, member in enumerate(members(model)):
        square = np.mean(scales[i] ** 2 / unscaled(X, POINTS, *member, zero_mean))
        now = unscaled(known, reference, *member, zero_mean)
        for j, x in enumerate(POINTS):
            after = unscaled(np.vstack([known, x]), reference, *member, zero_mean)
            expected[j] += model.member_weights_[i] * square * (now - after).sum()
    np.testing.assert_allclose(found, expected, rtol=2e-2, atol=1e-3 * before.max())
    assert (found[:2] < 0.5 * before[:2]).all()
    # An update with the same data forgets them, one with more knows nothing of them.
    found = model.update(X, Y).variance_reduction(POINTS, reference, np.ones(30))
    np.testing.assert_allclose(found, before, rtol=1e-5)
    inputs, values = np.vstack([X, [[0.3, 0.3]]]), np.append(Y, 0.5)
    model.condition(np.vstack([X, pending]), None)
    found = model.update(inputs, values).variance_reduction(POINTS, reference, np.ones(30))
    fresh = AmortizedGP(zero_mean=zero_mean).fit(inputs, values)
    expected = fresh.variance_reduction(POINTS, reference, np.ones(30))
    np.testing.assert_allclose(found, expected, rtol=2e-3)


@pytest.mark.parametrize("acquisition", ["entropy", "variance_reduction"])
def test_points_of_a_batch_lie_apart(acquisition):
    querier = GPQuerier("amortized", acquisition=acquisition, random_state=0)
    points = querier.query([[0.5, 0.5], [0.4, 0.5], [0.5, 0.6]], [0.1, 0.3, 0.2], n_queries=4)
    apart = np.linalg.norm(points[:, None] - points, axis=2)[np.triu_indices(4, 1)]
    assert apart.min() > 0.15


# ---- any data


@pytest.mark.filterwarnings("error")
@both
@pytest.mark.parametrize(
    "values",
    [
        np.zeros(9),
        np.full(9, 0.1 + 0.2),
        300 + 1e-13 * np.arange(9),
        1e-9 * Y,
        1e90 * Y,
        1e-90 * Y,
        1e8 + Y,
    ],
    ids=["zero", "constant", "rounded", "small", "large", "smallest", "offset"],
)
def test_any_values_give_an_answer(values, zero_mean):
    for n in (1, 2, 9):
        model = AmortizedGP(zero_mean=zero_mean).fit(X[:n], values[:n])
        mean, std = model.predict(POINTS)
        assert np.isfinite(mean).all()
        assert np.isfinite(std).all()
        assert (std > 0).all()
        p = model.probability_of_positive(POINTS)
        assert ((p >= 0) & (p <= 1)).all()
        gain = model.variance_reduction(POINTS, X, np.ones(9))
        assert np.isfinite(gain).all()
        assert (gain >= 0).all()
    if zero_mean and not values.any():
        np.testing.assert_allclose(p, 0.5, rtol=1e-12)


@both
def test_values_constant_but_for_rounding(zero_mean):
    constant, rounded = np.full(9, 300.0), 300 + 5e-14 * np.array([0, 1, 1, 0, 2, 0, 1, 2, 0])
    assert np.ptp(rounded) > 0
    exact = AmortizedGP(zero_mean=zero_mean).fit(X, constant).predict(POINTS)
    found = AmortizedGP(zero_mean=zero_mean).fit(X, rounded).predict(POINTS)
    np.testing.assert_allclose(found, exact, rtol=1e-6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [2, 30, 120])
@both
def test_repeated_inputs(n, zero_mean):
    inputs = np.repeat(X[:1], n, axis=0)
    values = np.random.default_rng(0).standard_normal(n)
    model = AmortizedGP(zero_mean=zero_mean).fit(inputs, values)
    mean, std = model.predict(X)
    assert np.isfinite(mean).all()
    assert (std > 0).all()
    # Where all was measured there is but the noise of the values.
    if n > 2:
        assert std[0] == pytest.approx(values.std(), rel=0.3)
    assert std.argmin() == 0


def test_inputs_outside_the_cube():
    inputs = 3 * X - 1
    mean, std = AmortizedGP().fit(inputs, Y).predict(inputs)
    assert np.isfinite(mean).all()
    assert (std > 0).all()


def test_it_learns():
    for n_features in (1, 2, 4):
        inputs, values = data(70, n_features)
        test, truth = data(200, n_features, seed=1)
        mean, std = AmortizedGP().fit(inputs, values).predict(test)
        residuals = np.abs(truth - mean)
        assert np.sqrt(np.mean(residuals**2)) < 0.4 * truth.std()
        assert 0.75 < np.mean(residuals < 1.645 * std) <= 1.0


# ---- an estimator


def test_copies():
    model = AmortizedGP(zero_mean=True).fit(X, Y)
    expected = answers(model)
    for one, other in zip(answers(pickle.loads(pickle.dumps(model))), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    again = pickle.loads(pickle.dumps(model)).update(np.vstack([X, POINTS]), np.append(Y, Y[:6]))
    assert_same_answers(again, clone(model).fit(np.vstack([X, POINTS]), np.append(Y, Y[:6])))
    other = clone(model)
    assert other.get_params() == model.get_params()
    for call in (other.predict, other.predict_members, other.probability_of_positive):
        with pytest.raises(NotFittedError):
            call(X)
    with pytest.raises(NotFittedError):
        other.condition(X, None)
    assert other.fit(X.tolist(), Y.tolist()) is other
    np.testing.assert_array_equal(other.predict(POINTS), model.predict(POINTS))
    with pytest.raises(ValueError, match=r"X has 3 features, but .* was fitted on 2"):
        model.predict(np.ones((4, 3)))


@pytest.mark.parametrize(
    ("inputs", "values", "message"),
    [
        ([[0.1, np.nan]], [0.1], "X contains NaN"),
        ([[0.1, 0.2]], [np.inf], "y contains NaN or infinity"),
        ([0.1, 0.2], [0.1, 0.2], r"X must have 2 dimension\(s\), got shape \(2,\)"),
        ([[0.1], [0.2]], [0.1], "X has 2, y has 1"),
        (np.empty((0, 2)), [], "at least one; X has 0"),
    ],
)
def test_invalid_data(inputs, values, message):
    for model in (AmortizedGP(), AmortizedGP().fit(X, Y)):
        for call in (model.fit, model.update):
            with pytest.raises(ValueError, match=message):
                call(inputs, values)


def test_policies(tmp_path):
    own = tmp_path / "own.safetensors"
    own.write_bytes(locate("any", safe=True).read_bytes())
    for policy in (own, str(own)):
        found = AmortizedGP(policy).fit(X, Y).predict(POINTS)
        np.testing.assert_array_equal(found, AmortizedGP().fit(X, Y).predict(POINTS))
    with pytest.raises(PolicyNotFoundError):
        AmortizedGP("no-such-policy").fit(X, Y)
    for policy in ("2d", policy_file(True)):
        with pytest.raises(PolicyFileError, match="infers no hyperparameters; take 'any'"):
            AmortizedGP(policy).fit(X, Y)


@pytest.mark.parametrize("n_sets", [0, -1, 2.5, "many"])
def test_bad_numbers_of_sets(n_sets):
    for call in (AmortizedGP(n_sets=n_sets).fit, AmortizedGP(n_sets=n_sets).update):
        with pytest.raises((ValueError, TypeError), match="n_sets"):
            call(X, Y)


# ---- leave one out


@both
@pytest.mark.parametrize(("n", "n_features"), [(3, 1), (9, 2), (40, 5), (96, 3), (110, 2)])
def test_leave_one_out_by_brute_force(n, n_features, zero_mean):
    """Each observation by the processes of all others, of the same hyperparameters and weights."""
    inputs, values = data(n, n_features)
    model = AmortizedGP(zero_mean=zero_mean).fit(inputs, values)
    found, p_positive = model.leave_one_out(), model.leave_one_out_probability()
    means, stds = model.leave_one_out_prediction()
    weights, dof = model.member_weights_, max(model.dof_ - 1, 3)
    for i in range(0, n, max(n // 9, 1)):
        others = np.delete(inputs, i, axis=0), np.delete(values, i)
        locations, scales = (part[:, 0] for part in brute_force(model, *others, inputs[[i]]))
        mean = weights @ locations
        scale = np.sqrt(weights @ (scales**2 + (locations - mean) ** 2))
        assert found[i] == pytest.approx((mean - values[i]) / scale, rel=1e-5, abs=1e-7)
        assert means[i] == pytest.approx(mean, rel=1e-5, abs=1e-7)
        variance = student.var(dof) * scales**2 + (locations - mean) ** 2
        assert stds[i] == pytest.approx(np.sqrt(weights @ variance), rel=1e-5)
        expected = weights @ student.sf(0, model.dof_ - 1, locations, scales)
        assert p_positive[i] == pytest.approx(expected, abs=2e-4)


@both
@few
@given(n=st.integers(4, 30), seed=st.integers(0, 99), size=st.sampled_from([1e-6, 1.0, 1e5]))
def test_leave_one_out_depends_on_neither_order_nor_units(zero_mean, n, seed, size):
    inputs, values = data(n, 2, seed)
    expected = AmortizedGP(zero_mean=zero_mean).fit(inputs, values).leave_one_out()
    order = np.random.default_rng(seed).permutation(n)
    model = AmortizedGP(zero_mean=zero_mean).fit(inputs[order], size * values[order])
    np.testing.assert_allclose(model.leave_one_out(), expected[order], rtol=1e-5, atol=1e-6)


@both
def test_leave_one_out_follows_the_data(zero_mean):
    inputs, values = data(14, 2)
    model = AmortizedGP(zero_mean=zero_mean).fit(inputs[:12], values[:12])
    model.leave_one_out()
    model.condition(inputs, None)  # what is pending says nothing about residuals
    expected = AmortizedGP(zero_mean=zero_mean).fit(inputs[:12], values[:12]).leave_one_out()
    np.testing.assert_array_equal(model.leave_one_out(), expected)
    fresh = AmortizedGP(zero_mean=zero_mean).fit(inputs, values)
    found = model.update(inputs, values).leave_one_out()
    np.testing.assert_allclose(found, fresh.leave_one_out(), rtol=1e-6)
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(copied.leave_one_out(), found, rtol=1e-9)


def test_leave_one_out_of_values_the_model_knows():
    """Residuals of draws from the model itself are of unit size."""
    r, inputs = np.random.default_rng(0), np.random.default_rng(1).random((60, 2))
    root = np.linalg.cholesky(covariance(inputs, 0.3, 0.1))
    scores = [
        AmortizedGP().fit(inputs, root @ r.standard_normal(60)).leave_one_out() for _ in "abc"
    ]
    assert 0.8 < np.std(scores) < 1.25
    assert abs(np.mean(scores)) < 0.25


@both
def test_leave_one_out_at_the_edges(zero_mean):
    least = 2 if zero_mean else 3
    with pytest.raises(ValueError, match=f"needs {least} observations or more, and there are 1"):
        AmortizedGP(zero_mean=zero_mean).fit(X[:1], Y[:1]).leave_one_out()
    assert np.isfinite(
        AmortizedGP(zero_mean=zero_mean).fit(X[:least], Y[:least]).leave_one_out()
    ).all()
    zeros = AmortizedGP(zero_mean=zero_mean).fit(X, np.zeros(9)).leave_one_out()
    np.testing.assert_array_equal(zeros, 0.0)
    one = np.where(np.arange(9) == 4, 1.0, 0.0)
    scores = AmortizedGP(zero_mean=zero_mean).fit(X, one).leave_one_out()
    assert np.isfinite(scores).all()
    assert scores.argmin() == 4
    with pytest.raises(NotFittedError):
        AmortizedGP().leave_one_out()


@both
def test_location_and_scale(zero_mean):
    model = AmortizedGP(zero_mean=zero_mean).fit(X, Y)
    location, scale = model.location_and_scale(POINTS)
    mean, std = model.predict(POINTS)
    np.testing.assert_array_equal(location, mean)
    within, weights = model.predict_members(POINTS), model.member_weights_
    spread = weights @ (within[0] - mean) ** 2
    np.testing.assert_allclose(scale**2 - spread, weights @ within[1] ** 2, rtol=1e-5)
    assert (scale < std).all()
