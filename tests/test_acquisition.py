"""Scores and probabilities against closed forms and brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from sklearn_asal.acquisition import (
    argbest,
    entropy,
    log_gain,
    min_unsafe,
    possibly_safe,
    predicted,
    price_of_risk,
    probability_of_feasibility,
    required_probability,
    variance_reduction,
)
from sklearn_asal.surrogates import EnsembleGP, ExactGP, MixtureGP

from .reference import ReferenceEnsemble


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


# ---- scores


def test_entropy():
    std = np.array([0.1, 1.0, 3.0])
    np.testing.assert_allclose(entropy(std), norm(scale=std).entropy())


def test_min_unsafe():
    std, p_safe = np.array([1.0, 2.0, 2.0, 2.0]), np.array([0.5, 0.5, 0.96, 1.0])
    score = min_unsafe(std, p_safe, 0.05)
    expected = -norm(scale=std).logpdf(0) - np.log([0.5, 0.5, 0.05, 0.05])
    np.testing.assert_allclose(score, expected)


def test_risk_has_a_price():
    p_safe = np.array([1.0, 0.95, 0.71])
    np.testing.assert_allclose(price_of_risk(p_safe, 0.05), [0.0, 0.35, 0.35 * 5.8])
    # It is lower where more of it is tolerated.
    np.testing.assert_allclose(price_of_risk(p_safe, 0.1)[1], 0.175)
    # Nothing gained is worse than anything gained, and no infinity.
    score = log_gain(np.array([0.0, 1e-20])) - price_of_risk(np.array([1.0, 0.95]), 0.05)
    assert np.isfinite(score).all()
    assert score[0] < score[1]


def test_what_is_tolerable():
    assert required_probability(0.05, False) == pytest.approx(0.95)
    assert required_probability(0.05, True) == pytest.approx(0.7)
    assert required_probability(0.01, True) == pytest.approx(0.94)
    assert required_probability(0.2, True) == 0.0


# ---- probabilities


def test_probability_of_feasibility(models):
    _, limits = models
    X = grid(5)
    members = [model.predict_members(X) for model in limits]
    expected = np.prod([norm.sf(0, *moments).mean(axis=0) for moments in members], axis=0)
    np.testing.assert_allclose(probability_of_feasibility(limits, X), expected)
    np.testing.assert_array_equal(probability_of_feasibility([], X), np.ones(25))


def test_probability_of_a_mixture_is_no_gaussian(models):
    class Two:
        """One member in five is sure of a disaster; the mean margin hides it."""

        def predict_members(self, X):
            means = np.repeat([[1.0], [1.0], [1.0], [1.0], [-0.2]], len(X), axis=1)
            return means, np.full(means.shape, 0.1)

    X = grid(70)  # more than one block
    np.testing.assert_allclose(probability_of_feasibility([Two()], X), (4 + norm.cdf(-2)) / 5)
    plain = models[1][0]
    np.testing.assert_allclose(
        probability_of_feasibility([plain], X), norm.sf(0, *plain.predict(X)), rtol=1e-9
    )


def test_members_of_other_weights_say_themselves_how_safe():
    class Weighted:
        def probability_of_positive(self, X):
            return X[:, 0]

        def predict_members(self, X):
            raise AssertionError

    X = grid(70)
    np.testing.assert_array_equal(probability_of_feasibility([Weighted()], X), X[:, 0])
    both = probability_of_feasibility([Weighted(), Weighted()], X)
    np.testing.assert_array_equal(both, X[:, 0] ** 2)


def test_predicted_members_are_checked():
    class Wrong:
        def predict_members(self, X):
            return np.zeros(len(X)), np.ones(len(X))

    with pytest.raises(ValueError, match=r"Wrong: predict_members.*shape \(n_members, n\)"):
        probability_of_feasibility([Wrong()], grid(3))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda n: np.zeros(n), r"two arrays of shape \(n,\).* 9 rows; it returned ndarray of sh"),
        (lambda n: (np.zeros(n), np.ones(n - 1)), "returned tuple of ndarray of shape"),
        (lambda n: None, "returned NoneType"),
        (lambda n: (np.full(n, np.nan), np.ones(n)), "returned 9 means and 0 deviations"),
        (lambda n: (np.zeros(n), np.full(n, np.inf)), "returned 0 means and 9 deviations"),
        (lambda n: (np.zeros(n), np.zeros(n)), "9 deviations of zero or less"),
    ],
)
def test_predictions_are_checked(answer, message):
    class Wrong:
        def predict(self, X):
            return answer(len(X))

    with pytest.raises(ValueError, match=rf"surrogate Wrong: predict\(X\).*{message}"):
        predicted(Wrong(), grid(3))


def test_predictions_may_be_lists():
    class Lists:
        def predict(self, X):
            return [0] * len(X), [1] * len(X)

    mean, std = predicted(Lists(), grid(3))
    assert (mean == 0).all()
    assert (std == 1.0).all()


# ---- what a measurement tells


def reference_points(n=9):
    return np.random.default_rng(0).random((n, 2))


def test_variance_reduction(models):
    model, _ = models
    X, reference = grid(70), reference_points()  # more than one block
    score = variance_reduction(model, X, reference, np.ones(9))
    some = [0, 2345, 4899]
    expected = model.covariance(X[some], reference) ** 2 / model.predict(X[some])[1][:, None] ** 2
    np.testing.assert_allclose(score[some], expected.mean(axis=1))
    weights = np.arange(9.0)
    score = variance_reduction(model, X, reference, weights)
    np.testing.assert_allclose(score[some], expected @ weights / weights.sum())
    assert (variance_reduction(model, X, reference, np.zeros(9)) == 0).all()


def variances(kernel, X, points):
    """Of the noise-free function, by scikit-learn."""
    model = GaussianProcessRegressor(kernel, optimizer=None, alpha=1e-12)
    std = model.fit(X, np.zeros(len(X))).predict(points, return_std=True)[1]
    return std**2 - kernel.k2.noise_level


def taken_away(kernel, known, X, reference, weights):
    """Variance before minus after one more measurement, for each row of X."""
    before = variances(kernel, known, reference)
    after = [variances(kernel, np.vstack([known, row]), reference) for row in X]
    return [weights @ (before - each) / weights.sum() for each in after]


@pytest.mark.parametrize("seed", range(3))
def test_variance_reduction_of_an_exact_process_is_what_conditioning_takes_away(seed):
    rng = np.random.default_rng(seed)
    known, X, weights = rng.random((12, 2)), rng.random((6, 2)), rng.random(9)
    model = ExactGP().fit(known, np.sin(6 * known[:, 0]) + 0.1 * rng.standard_normal(12))
    kernel = ConstantKernel(model.signal_std_[0] ** 2) * RBF(model.lengthscale_[0])
    kernel += WhiteKernel(model.noise_std_[0] ** 2)
    expected = taken_away(kernel, known, X, reference_points(), weights)
    gain = variance_reduction(model, X, reference_points(), weights)
    np.testing.assert_allclose(gain, expected, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("n_pending", [0, 3])
@pytest.mark.parametrize("seed", range(3))
def test_variance_reduction_of_an_ensemble_is_that_of_its_most_probable_member(seed, n_pending):
    """Which works in single precision; the reference in double."""
    rng = np.random.default_rng(seed)
    known, X, weights = rng.random((12, 2)), rng.random((6, 2)), rng.random(9)
    y = np.sin(6 * known[:, 0]) + 0.1 * rng.standard_normal(12)
    best = ReferenceEnsemble(known, y, 0.3)
    _, process, noise = best.members[best.weights.argmax()]
    kernel = ConstantKernel(1.0) * process.kernel_.k1 + WhiteKernel(noise**2)
    model, pending = EnsembleGP(0.3).fit(known, y), rng.random((n_pending, 2))
    everything = np.vstack([known, pending])
    model.condition(everything, np.zeros(len(everything)))
    expected = taken_away(kernel, everything, X, reference_points(), weights)
    gain = variance_reduction(model, X, reference_points(), weights)
    np.testing.assert_allclose(gain, expected, rtol=1e-3, atol=1e-6)


def test_variance_reduction_prefers_the_place_that_tells_most(models):
    model, _ = models
    X = np.array([[0.1, 0.1], [0.9, 0.9]])
    ensemble = EnsembleGP().fit(model.centres_, model.centres_[:, 0])
    for one in (model, ensemble):
        for reference, best in (([[0.88, 0.92]], 1), ([[0.12, 0.08]], 0)):
            assert variance_reduction(one, X, np.array(reference), np.ones(1)).argmax() == best
        # Weights decide among the same reference points.
        both = np.array([[0.88, 0.92], [0.12, 0.08]])
        for weights, best in (([1.0, 0.0], 1), ([0.0, 1.0], 0)):
            assert variance_reduction(one, X, both, np.array(weights)).argmax() == best


def test_what_may_be_safe(models):
    """With a probability of 0.16 by all limits together."""
    _, limits = models
    X = grid(20)
    p_safe = probability_of_feasibility(limits, X)
    weights = possibly_safe(limits, X)
    np.testing.assert_array_equal(weights, (p_safe >= 0.16).astype(float))
    assert 0.1 < weights.mean() < 0.9
    each = [possibly_safe([model], X) for model in limits]
    assert (weights < each[0] * each[1]).any()
    np.testing.assert_array_equal(possibly_safe([], X), np.ones(400))


def test_what_may_be_safe_by_an_ensemble():
    """By its most probable member."""
    rng = np.random.default_rng(0)
    known = 0.3 + 0.4 * rng.random((15, 2))
    margin = 1 - 12 * np.square(known - 0.5).sum(axis=1)
    model, X = EnsembleGP().fit(known, margin), grid(20)
    p_safe = ReferenceEnsemble(known, margin, 0.3).probability_at(X)
    assert np.abs(p_safe - 0.16).min() > 1e-3  # rounding does not decide
    weights = possibly_safe([model], X)
    np.testing.assert_array_equal(weights, (p_safe >= 0.16).astype(float))
    assert 0.1 < weights.mean() < 0.9


# ---- the best


def test_the_best_ignores_rounding():
    points = np.array([[0.4], [0.3], [0.2], [0.1]])
    assert argbest(np.array([0.0, 1.0, 1.0 - 1e-12, 0.5]), points) == 2
    assert argbest(np.array([0.0, 1.0, 1.0 - 1e-4, 0.5]), points) == 1
    # Relative to the scores where these are large.
    assert argbest(1e6 * np.array([0.0, 1.0, 1.0 - 1e-10, 0.5]), points) == 2
    assert argbest(-1e6 * np.array([2.0, 1.0, 1.0 + 1e-10, 1.5]), points) == 2
    assert argbest(np.array([3.0]), points[:1]) == 0


def test_of_equal_scores_the_first_point_in_lexicographic_order():
    points = np.array([[0.5, 0.1], [0.2, 0.9], [0.2, 0.3], [0.9, 0.0]])
    assert argbest(np.ones(4), points) == 2
    assert argbest(np.array([1.0, 1.0, 0.0, 1.0]), points) == 1
    assert argbest(np.ones(3), np.repeat(points[:1], 3, axis=0)) == 0


@given(data=st.data(), n=st.integers(1, 12), n_features=st.integers(1, 3))
def test_the_best_does_not_depend_on_the_order(data, n, n_features):
    coarse = st.integers(0, 3).map(lambda k: k / 4)
    scores = data.draw(arrays(float, n, elements=coarse))
    points = data.draw(arrays(float, (n, n_features), elements=coarse))
    order = data.draw(st.permutations(range(n)))
    best = argbest(scores, points)
    again = argbest(scores[order], points[order])
    np.testing.assert_array_equal(points[order][again], points[best])
    assert scores[best] == scores.max()
    tied = points[scores == scores.max()].tolist()
    assert points[best].tolist() == min(tied)
