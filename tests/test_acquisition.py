"""Scores against closed forms, refinement against brute force."""

import numpy as np
import pytest
from scipy.stats import norm

from sklearn_asal.acquisition import (
    _log_safe,
    entropy,
    first_best,
    min_unsafe,
    refinable,
    refine,
    safe_probability,
    variance_reduction,
)
from sklearn_asal.surrogates import ExactGP, MixtureGP


@pytest.fixture(scope="module")
def models():
    """A model of the output and two of margins that are safe around the centre."""
    rng = np.random.default_rng(0)
    X = 0.3 + 0.4 * rng.random((15, 2))
    y = np.sin(8 * X[:, 0]) + X[:, 1]
    centre = np.square(X - 0.5).sum(axis=1)
    limits = [ExactGP().fit(X, 1 - 8 * centre), MixtureGP(n_members=3).fit(X, 0.8 - X[:, 0])]
    return ExactGP().fit(X, y), limits


def grid(n=101):
    axis = np.linspace(0, 1, n)
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def test_entropy():
    std = np.array([0.1, 1.0, 3.0])
    np.testing.assert_allclose(entropy(std), norm(scale=std).entropy())


def test_min_unsafe():
    std, p_safe = np.array([1.0, 2.0, 2.0, 2.0]), np.array([0.5, 0.5, 0.96, 1.0])
    score = min_unsafe(std, p_safe, 0.05)
    expected = -norm(scale=std).logpdf(0) - np.log([0.5, 0.5, 0.05, 0.05])
    np.testing.assert_allclose(score, expected)


def test_safe_probability(models):
    _, limits = models
    X = grid(5)
    members = [model.predict_members(X) for model in limits]
    expected = np.prod([norm.sf(0, *moments).mean(axis=0) for moments in members], axis=0)
    np.testing.assert_allclose(safe_probability(limits, X), expected)
    np.testing.assert_array_equal(safe_probability([], X), np.ones(25))


def test_safe_probability_of_a_mixture_is_no_gaussian(models):
    class Two:
        """One member in five is sure of a disaster; the mean margin hides it."""

        def predict_members(self, X):
            means = np.repeat([[1.0], [1.0], [1.0], [1.0], [-0.2]], len(X), axis=1)
            return means, np.full(means.shape, 0.1)

    X = grid(70)  # more than one block
    np.testing.assert_allclose(safe_probability([Two()], X), (4 + norm.cdf(-2)) / 5)
    plain = models[1][0]
    np.testing.assert_allclose(
        safe_probability([plain], X), norm.sf(0, *plain.predict(X)), rtol=1e-9
    )


def test_predicted_members_are_checked():
    class Wrong:
        def predict_members(self, X):
            return np.zeros(len(X)), np.ones(len(X))

    with pytest.raises(ValueError, match=r"Wrong: predict_members.*shape \(n_members, n\)"):
        safe_probability([Wrong()], grid(3))


def test_what_refinement_needs(models):
    class Gradient:
        predict_gradient = None

    class Members(Gradient):
        predict_members = None

    model, limits = models
    assert refinable(model, limits)
    assert refinable(model, [Gradient()])
    assert not refinable(model, [Members()])
    assert not refinable(object(), [])


def test_variance_reduction(models):
    model, _ = models
    X, reference = grid(70), np.random.default_rng(0).random((9, 2))  # more than one block
    score = variance_reduction(model, X, reference)
    some = [0, 2345, 4899]
    expected = model.covariance(X[some], reference) ** 2 / model.predict(X[some])[1][:, None] ** 2
    np.testing.assert_allclose(score[some], expected.mean(axis=1))


def test_variance_reduction_prefers_the_place_that_tells_most(models):
    model, _ = models
    X = np.array([[0.1, 0.1], [0.9, 0.9]])
    assert variance_reduction(model, X, np.array([[0.88, 0.92]])).argmax() == 1
    assert variance_reduction(model, X, np.array([[0.12, 0.08]])).argmax() == 0


def test_first_best_ignores_rounding():
    assert first_best(np.array([0.0, 1.0 - 1e-12, 1.0, 0.5])) == 1
    assert first_best(np.array([0.0, 1.0 - 1e-6, 1.0, 0.5])) == 2


def test_gradient_of_the_safety(models):
    _, limits = models
    x, step = np.array([0.7, 0.2]), 1e-5
    value, gradient = _log_safe(limits, x)
    np.testing.assert_allclose(np.exp(value), safe_probability(limits, x[None])[0])
    numeric = [
        (_log_safe(limits, x + step * e)[0] - _log_safe(limits, x - step * e)[0]) / (2 * step)
        for e in np.eye(2)
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-6)


def test_refined_point_is_the_best_of_a_fine_grid(models):
    model, limits = models
    X = grid()
    std, p_safe = model.predict(X)[1], safe_probability(limits, X)
    coarse = np.random.default_rng(0).random((200, 2))
    coarse_std, coarse_safe = model.predict(coarse)[1], safe_probability(limits, coarse)

    starts = coarse[np.argsort(-np.where(coarse_safe >= 0.95, coarse_std, -1))[:5]]
    point = refine(model, limits, starts, 0.05)
    found = model.predict(point[None])[1][0]
    assert safe_probability(limits, point[None])[0] >= 0.95 - 1e-12
    assert found > std[p_safe >= 0.95].max() - 1e-3
    assert found > model.predict(starts[:1])[1][0]

    starts = coarse[np.argsort(-min_unsafe(coarse_std, coarse_safe, 0.05))[:5]]
    point = refine(model, limits, starts, 0.05, soft=True)
    found = min_unsafe(model.predict(point[None])[1], safe_probability(limits, point[None]), 0.05)[
        0
    ]
    assert found > min_unsafe(std, p_safe, 0.05).max() - 1e-2

    starts = coarse[np.argsort(-coarse_std)[:5]]
    point = refine(model, [], starts, 0.0)
    assert model.predict(point[None])[1][0] > std.max() - 1e-6
    assert ((point >= 0) & (point <= 1)).all()


def test_refinement_falls_back_to_the_best_start(models):
    model, limits = models
    corner = np.array([[1.0, 1.0]])  # already the best point, and not a safe one
    np.testing.assert_array_equal(refine(model, [], corner, 0.0), corner[0])
    assert safe_probability(limits, corner)[0] < 0.05
