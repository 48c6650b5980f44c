"""Processes with fixed hyperparameters, against scikit-learn's."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from sklearn_asal.surrogates import EnsembleGP, ensemble, factors

from ..reference import FACTORS, NOISES, ReferenceEnsemble

rng = np.random.default_rng(0)
X, POINTS = rng.random((12, 3)), rng.random((40, 3))
Y = np.sin(4 * X[:, 0]) + X[:, 1] - 0.8
SCALE = np.array([0.3, 0.6, 0.4])
every_scale = pytest.mark.parametrize("lengthscale", [0.3, SCALE], ids=["one", "each"])


def assert_same(model, other, rtol=1e-7, atol=1e-9, points=POINTS):
    np.testing.assert_allclose(model.member_weights_, other.member_weights_, rtol, atol)
    np.testing.assert_allclose(model.predict(points), other.predict(points), rtol, atol)
    np.testing.assert_allclose(
        model.predict_members(points), other.predict_members(points), rtol, atol
    )


# ---- each member, and all together


@every_scale
@pytest.mark.parametrize("noises", [NOISES, (0.05, 0.1, 0.2), (0.1,)], ids=str)
@pytest.mark.parametrize("n", [1, 3, 12])
def test_members_are_scikit_learn_s(lengthscale, noises, n, monkeypatch):
    monkeypatch.setattr(ensemble, "_NEGLIGIBLE", 0.0)  # all of them are kept
    model = EnsembleGP(lengthscale, noises).fit(X[:n], Y[:n])
    expected = ReferenceEnsemble(X[:n], Y[:n], lengthscale, noises)
    np.testing.assert_allclose(model.member_weights_, expected.weights, rtol=1e-7)
    means, stds = model.predict_members(POINTS)
    assert means.shape == stds.shape == (3 * len(noises), 40)
    np.testing.assert_allclose(means, expected.moments(POINTS)[0], atol=1e-8)
    np.testing.assert_allclose(stds, expected.moments(POINTS)[1], atol=1e-8)


@every_scale
@pytest.mark.parametrize("noises", [NOISES, (0.05, 0.1, 0.2)], ids=str)
@pytest.mark.parametrize("n", [1, 3, 12])
def test_the_mixture_is_scikit_learn_s(lengthscale, noises, n):
    model = EnsembleGP(lengthscale, noises).fit(X[:n], Y[:n])
    expected = ReferenceEnsemble(X[:n], Y[:n], lengthscale, noises)
    np.testing.assert_allclose(model.predict(POINTS), expected.predict(POINTS), atol=1e-7)
    np.testing.assert_allclose(
        model.probability_of_positive(POINTS), expected.probability_of_positive(POINTS), atol=1e-7
    )


def test_weights_are_evidence():
    """Of noisy and rough data the rough members and the noisy ones explain more."""
    random = np.random.default_rng(1)
    inputs = random.random((40, 1))
    truth = GaussianProcessRegressor(RBF(0.15) + WhiteKernel(0.09), optimizer=None)
    values = truth.sample_y(inputs, random_state=3)[:, 0]
    model = EnsembleGP(0.3).fit(inputs, values)
    expected = ReferenceEnsemble(inputs, values, 0.3)
    best = expected.weights.argmax()
    assert (FACTORS[best // 3], NOISES[best % 3]) == (0.5, 0.3)
    np.testing.assert_allclose(model.member_weights_.max(), expected.weights[best], rtol=1e-6)
    assert len(model.member_weights_) < 9  # others are negligible
    np.testing.assert_allclose(model.member_weights_.sum(), 1.0)


@pytest.mark.parametrize("n_features", [1, 2, 7])
def test_default_lengthscale(n_features):
    inputs = rng.random((9, n_features))
    stated = EnsembleGP(0.3 * np.sqrt(n_features / 2)).fit(inputs, inputs[:, 0])
    points = rng.random((5, n_features))
    default = EnsembleGP().fit(inputs, inputs[:, 0])
    np.testing.assert_array_equal(default.predict(points), stated.predict(points))


def test_probabilities_of_many_points_in_single_precision():
    points = rng.random((2000, 3))
    for n in (1, 5, 12):
        for values in (Y[:n], 3 * Y[:n] - 2, 0.05 * Y[:n]):
            model = EnsembleGP(SCALE).fit(X[:n], values)
            expected = ReferenceEnsemble(X[:n], values, SCALE).probability_of_positive(points)
            found = model.probability_of_positive(points)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)
            assert ((found >= 0) & (found <= 1)).all()


def test_single_precision_costs_no_more_than_rounding(monkeypatch):
    monkeypatch.setattr(ensemble, "_LITTLE", 0.0)  # of what is unlikely nothing is left out
    points = rng.random((2000, 3))
    model = EnsembleGP(SCALE).fit(X, Y)
    expected = ReferenceEnsemble(X, Y, SCALE).probability_of_positive(points)
    np.testing.assert_allclose(model.probability_of_positive(points), expected, rtol=0, atol=1e-4)


def test_probabilities_of_a_reference_set_are_those_of_the_most_probable_member():
    model, expected = EnsembleGP(SCALE).fit(X, Y), ReferenceEnsemble(X, Y, SCALE)
    found = model.probability_at(POINTS)
    np.testing.assert_allclose(found, expected.probability_at(POINTS), atol=1e-4)
    means, stds = model.predict_members(POINTS)
    best = model.member_weights_.argmax()
    np.testing.assert_allclose(found, norm.cdf(means[best] / stds[best]), atol=1e-4)


# ---- one observation after another


@every_scale
@settings(deadline=None, max_examples=30)
@given(lengths=st.lists(st.integers(1, 12), min_size=1, max_size=6))
def test_update_equals_fit(lengthscale, lengths):
    """Whatever came before: more, fewer, or many more observations."""
    model = EnsembleGP(lengthscale)
    for n in lengths:
        assert model.update(X[:n], Y[:n]) is model
        assert_same(model, EnsembleGP(lengthscale).fit(X[:n], Y[:n]))


def test_update_with_other_observations():
    model = EnsembleGP(SCALE).fit(X[:6], Y[:6])
    order = [1, 0, *range(2, 8)]
    for inputs, values in (
        (X[:6], -Y[:6]),  # other outputs at the same inputs
        (X[order], Y[order]),
        (np.vstack([X[:5], X[8:]]), np.append(Y[:5], Y[8:])),
        (X[:, :2], Y),
    ):
        scale = SCALE[: inputs.shape[1]]
        model.set_params(lengthscale=scale)
        fresh = EnsembleGP(scale).fit(inputs, values)
        assert_same(model.update(inputs, values), fresh, points=POINTS[:, : inputs.shape[1]])


def test_update_after_data_or_parameters_were_changed_in_place():
    inputs, values = X.copy(), Y.copy()
    model = EnsembleGP(SCALE).fit(inputs, values)
    values[3] = 2.0
    assert_same(model.update(inputs, values), EnsembleGP(SCALE).fit(inputs, values))
    inputs[5] = 0.9
    assert_same(model.update(inputs, values), EnsembleGP(SCALE).fit(inputs, values))
    for params in ({"lengthscale": 0.2}, {"noise_std": (0.2, 0.4)}):
        model.set_params(**params)
        assert_same(model.update(inputs, values), clone(model).fit(inputs, values))


def test_update_after_data_that_were_refused():
    bad = np.where(Y > 0, Y, np.nan)
    model = EnsembleGP(SCALE).fit(X, Y)
    for call in (model.fit, model.update, model.update):
        with pytest.raises(ValueError, match="y contains NaN"):
            call(X, bad)
    assert_same(model.update(X, Y), EnsembleGP(SCALE).fit(X, Y))


def test_a_measurement_that_is_repeated_many_times():
    """The worst that can happen to the last digits."""
    inputs, values = np.repeat(X[:1], 60, axis=0), np.sin(np.arange(60.0))
    model = EnsembleGP(0.2).fit(inputs[:1], values[:1])
    for n in range(2, 61):
        model.update(inputs[:n], values[:n])
    assert_same(model, EnsembleGP(0.2).fit(inputs, values), rtol=1e-6, atol=1e-6)


def test_known_factors_are_not_made_again(monkeypatch):
    """Neither for the same inputs, nor for a few more; whatever the values."""
    model = EnsembleGP(SCALE).fit(X[:6], Y[:6])
    monkeypatch.setattr(factors, "dtrtri", None)
    model.update(X[:6], -Y[:6]).update(X[:7], Y[:7]).update(X[:11], Y[:11])
    model.condition(np.vstack([X[:11], POINTS[:3]]), None).predict(POINTS)
    with pytest.raises(TypeError):
        model.update(X[1:7], Y[1:7])


# ---- points that are pending


@every_scale
@pytest.mark.parametrize("known", [3, 12])
@pytest.mark.parametrize("n_pending", [1, 4, 7])
def test_pending_points_lower_variances_and_leave_means(lengthscale, known, n_pending):
    """As if each had been observed to be what was expected there."""
    pending = np.random.default_rng(1).random((n_pending, 3))
    model = EnsembleGP(lengthscale).fit(X[:known], Y[:known])
    weights, before = model.member_weights_, model.predict_members(POINTS)
    assert model.condition(np.vstack([X[:known], pending]), np.zeros(known + n_pending)) is model
    np.testing.assert_array_equal(model.member_weights_, weights)
    means, stds = model.predict_members(POINTS)
    np.testing.assert_allclose(means, before[0], rtol=1e-9, atol=1e-12)
    assert (stds < before[1] + 1e-12).all()
    assert (
        model.predict(pending)[1]
        < 0.9 * EnsembleGP(lengthscale).fit(X[:known], Y[:known]).predict(pending)[1]
    ).any()
    expected = ReferenceEnsemble(X[:known], Y[:known], lengthscale, pending=pending)
    np.testing.assert_allclose(model.predict(POINTS), expected.predict(POINTS), atol=1e-7)
    assert len(model.X_) == known


def test_nothing_is_pending_after_an_update():
    pending = np.vstack([X[:6], POINTS[:3]])
    for again in ((X[:6], Y[:6]), (X[:7], Y[:7]), (X[:6].copy(), Y[:6].copy())):
        model = EnsembleGP(SCALE).fit(X[:6], Y[:6]).condition(pending, None)
        assert_same(model.update(*again), EnsembleGP(SCALE).fit(*again))
    # And none is by conditioning on what is known.
    model = EnsembleGP(SCALE).fit(X[:6], Y[:6]).condition(pending, None)
    assert_same(model.condition(X[:6], Y[:6]), EnsembleGP(SCALE).fit(X[:6], Y[:6]))


@pytest.mark.parametrize("n_pending", [0, 3])
def test_pending_points_are_no_evidence_of_safety(n_pending):
    """Both answers for a choice among few points at once."""
    pending = POINTS[:n_pending] + 0.01
    probability, std = EnsembleGP(SCALE).fit(X, Y).probability_and_std(POINTS, pending)
    expected = ReferenceEnsemble(X, Y, SCALE, pending=pending)
    np.testing.assert_allclose(std, expected.predict(POINTS)[1], atol=1e-7)
    known = ReferenceEnsemble(X, Y, SCALE)
    np.testing.assert_allclose(probability, known.probability_of_positive(POINTS), atol=1e-7)
    model = EnsembleGP(SCALE).fit(X, Y).condition(np.vstack([X, pending]), None)
    np.testing.assert_allclose(
        model.probability_at(POINTS), known.probability_at(POINTS), atol=1e-4
    )


# ---- what is worked out once for a reference set


@settings(deadline=None, max_examples=12)
@given(
    lengths=st.lists(st.tuples(st.integers(1, 12), st.integers(0, 3)), min_size=1, max_size=6),
    order=st.permutations(range(12)),
)
def test_a_reference_set_in_turn_is_as_if_seen_at_once(lengths, order):
    """Also where fewer or other observations are seen later, and points are pending or not."""
    model, weights = EnsembleGP(SCALE), np.linspace(0, 1, 40)
    inputs, values = X, Y
    for i, (n, n_pending) in enumerate(lengths):
        if i == 3:
            inputs, values = X[order], Y[order]
        model.update(inputs[:n], values[:n])
        everything = np.vstack([inputs[:n], POINTS[:n_pending] + 0.01])
        fresh = EnsembleGP(SCALE).fit(inputs[:n], values[:n]).condition(everything, None)
        model.condition(everything, None)
        for one in (model.probability_at(POINTS), fresh.probability_at(POINTS)):
            expected = ReferenceEnsemble(inputs[:n], values[:n], SCALE).probability_at(POINTS)
            np.testing.assert_allclose(one, expected, atol=1e-3)
        gain, expected = (
            one.variance_reduction(X + 0.02, POINTS, weights) for one in (model, fresh)
        )
        np.testing.assert_allclose(gain, expected, rtol=1e-3, atol=1e-4)


def test_another_reference_set_replaces_the_one_before():
    model = EnsembleGP(SCALE).fit(X, Y)
    for points in (POINTS, POINTS[::-1], POINTS[:7], POINTS.copy()):
        expected = ReferenceEnsemble(X, Y, SCALE).probability_at(points)
        np.testing.assert_allclose(model.probability_at(points), expected, atol=1e-4)


@every_scale
@pytest.mark.parametrize("pending", [0, 3])
def test_reduction_is_what_a_measurement_takes_away(lengthscale, pending):
    """From the variances, by one more observation."""
    candidates, weights = POINTS[:3] + 0.01, rng.random(len(POINTS))
    model = EnsembleGP(lengthscale).fit(X[:9], Y[:9])
    known = X[: 9 + pending]
    gain = model.condition(known, None).variance_reduction(candidates, POINTS, weights)
    reference = ReferenceEnsemble(X[:9], Y[:9], lengthscale)
    _, process, noise = reference.members[reference.weights.argmax()]

    def variance(inputs):
        one = GaussianProcessRegressor(process.kernel_.k1, optimizer=None, alpha=noise**2)
        return one.fit(inputs, np.zeros(len(inputs))).predict(POINTS, return_std=True)[1] ** 2

    for row, value in zip(candidates, gain, strict=True):
        lessened = variance(known) - variance(np.vstack([known, row]))
        np.testing.assert_allclose(value, weights @ lessened, rtol=1e-3)


# ---- as an estimator


def test_clone_and_copies():
    model = EnsembleGP(SCALE, (0.1, 0.2)).fit(X, Y)
    expected, at = model.predict(POINTS), model.probability_at(POINTS)
    fresh = clone(model)
    assert not hasattr(fresh, "X_")
    with pytest.raises(NotFittedError):
        fresh.predict(POINTS)
    with pytest.raises(NotFittedError):
        fresh.condition(X, Y)
    np.testing.assert_array_equal(fresh.get_params()["lengthscale"], SCALE)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), fresh.fit(X, Y)):
        np.testing.assert_array_equal(other.predict(POINTS), expected)
        np.testing.assert_allclose(other.probability_at(POINTS), at, atol=1e-6)
        more = np.vstack([X, POINTS[:1]]), np.append(Y, 0.3)
        assert_same(other.update(*more), EnsembleGP(SCALE, (0.1, 0.2)).fit(*more))


def test_pickles_leave_the_reference_set_behind():
    model, large = EnsembleGP(SCALE).fit(X, Y), rng.random((5000, 3))
    size = len(pickle.dumps(model))
    model.probability_at(large)
    assert len(pickle.dumps(model)) == size


def test_data_of_the_user_are_left_alone():
    inputs, values = X.copy(), Y.copy()
    model = EnsembleGP(SCALE).fit(inputs, values)
    expected = model.predict(POINTS)
    inputs[:], values[:] = 0.0, 0.0
    np.testing.assert_array_equal(model.predict(POINTS), expected)
    np.testing.assert_array_equal(X, EnsembleGP(SCALE).fit(X, Y).X_)
    again = EnsembleGP(SCALE).fit(X.tolist(), Y.tolist())
    np.testing.assert_array_equal(again.predict(POINTS.tolist()), expected)


@pytest.mark.filterwarnings("error")
def test_extreme_values_stay_finite():
    inputs = np.repeat(X, 2, axis=0)
    for factor in (1e300, 1e120, 1e-300):
        values = np.clip(np.repeat(factor * Y, 2), -1e120, 1e120)
        model = EnsembleGP(0.3).fit(inputs, values)
        p_safe = model.probability_of_positive(X)
        assert ((p_safe >= 0) & (p_safe <= 1)).all()
        assert np.isfinite(model.predict(X)).all()
        assert np.isfinite(model.variance_reduction(X, POINTS, np.ones(40))).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"lengthscale": 0.0}, "lengthscale must be positive and finite"),
        ({"lengthscale": [0.1, np.nan, 0.1]}, "lengthscale must be positive and finite"),
        ({"noise_std": (0.1, -0.1)}, "noise_std must be positive and finite"),
        ({"noise_std": np.inf}, "noise_std must be positive and finite"),
    ],
)
def test_bad_parameters(params, message):
    for call in (EnsembleGP(**params).fit, EnsembleGP(**params).update):
        with pytest.raises(ValueError, match=message):
            call(X, Y)


@pytest.mark.parametrize(
    ("inputs", "values", "message"),
    [
        ([[0.1, np.nan]], [0.1], "X contains NaN"),
        ([[0.1, 0.2]], [np.inf], "y contains NaN or infinity"),
        ([0.1, 0.2], [0.1, 0.2], r"X must have 2 dimension\(s\), got shape \(2,\)"),
        ([[0.1], [0.2]], [[0.1], [0.2]], "y must have 1 dimension"),
        ([[0.1], [0.2]], [0.1], "X has 2, y has 1"),
        (np.empty((0, 2)), [], "at least one; X has 0"),
    ],
)
def test_bad_data(inputs, values, message):
    for call in (EnsembleGP().fit, EnsembleGP().fit(X, Y).update):
        with pytest.raises(ValueError, match=message):
            call(inputs, values)


def test_other_numbers_of_features_are_refused():
    with pytest.raises(ValueError, match="X has 2 features, but EnsembleGP was fitted on 3"):
        EnsembleGP(SCALE).fit(X, Y).predict(POINTS[:, :2])
