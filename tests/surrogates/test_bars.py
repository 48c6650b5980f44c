"""Histograms with half-normal tails: against numerical integration and torch's distributions."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from torch.distributions import AffineTransform, HalfNormal, TransformedDistribution, Uniform

from sklearn_asal.surrogates.bars import Bars

few = settings(max_examples=30, deadline=None, derandomize=True)


@st.composite
def histograms(draw):
    """Some bars, and probabilities of them."""
    seed, n_bars = draw(st.integers(0, 999)), draw(st.integers(3, 12))
    rng = np.random.default_rng(seed)
    borders = rng.normal() + np.cumsum(rng.uniform(0.01, 1.0, n_bars - 1))
    probabilities = rng.dirichlet(np.full(n_bars, draw(st.sampled_from([0.2, 1.0, 9.0]))), 2)
    return Bars(borders, rng.uniform(0.1, 2.0, 2)), probabilities


def density(bars, row):
    return lambda y: np.exp(bars.log_density(row[None], [y]))[0]


def integral(bars, function, high=None):
    """Over all of the line, or up to a number, from border to border."""
    ends = [
        bars.borders[0] - 9 * bars.tails[0],
        *bars.borders,
        bars.borders[-1] + 9 * bars.tails[1],
    ]
    if high is not None:
        ends = [end for end in ends if end < high] + [high]
    return sum(quad(function, *piece, epsabs=1e-10)[0] for piece in pairwise(ends))


@few
@given(histograms())
def test_moments_and_entropy_by_integration(drawn):
    bars, probabilities = drawn
    mean, variance, entropy = (
        getattr(bars, name)(probabilities) for name in ("mean", "variance", "entropy")
    )
    for i, row in enumerate(probabilities):
        p = density(bars, row)
        assert integral(bars, p) == pytest.approx(1, abs=1e-8)
        assert integral(bars, lambda y, p=p: y * p(y)) == pytest.approx(mean[i], abs=1e-7)
        second = integral(bars, lambda y, p=p, m=mean[i]: (y - m) ** 2 * p(y))
        assert second == pytest.approx(variance[i], abs=1e-7)
        surprise = integral(bars, lambda y, p=p: -p(y) * np.log(p(y)) if p(y) > 0 else 0.0)
        assert surprise == pytest.approx(entropy[i], abs=1e-7)


@few
@given(drawn=histograms(), part=st.floats(-0.5, 1.5))
def test_cdf_by_integration(drawn, part):
    bars, probabilities = drawn
    y = bars.borders[0] + part * (bars.borders[-1] - bars.borders[0])
    found = bars.cdf(probabilities, y)
    expected = [integral(bars, density(bars, row), y) for row in probabilities]
    np.testing.assert_allclose(found, expected, atol=1e-7)
    assert bars.cdf(probabilities, -1e9) == pytest.approx(0.0)
    assert bars.cdf(probabilities, 1e9) == pytest.approx(1.0)


@few
@given(histograms())
def test_as_distributions_of_torch(drawn):
    bars, probabilities = drawn
    borders, (low, high) = torch.from_numpy(bars.borders), torch.from_numpy(bars.tails)
    parts = [
        TransformedDistribution(HalfNormal(low), AffineTransform(borders[0], -1.0)),
        *(Uniform(*pair) for pair in pairwise(borders)),
        TransformedDistribution(HalfNormal(high), AffineTransform(borders[-1], 1.0)),
    ]
    middles = bars.borders[:-1] + 0.3 * bars.widths
    ys = np.array([bars.borders[0] - 1.7, *middles, bars.borders[-1] + 0.4])
    for row in probabilities:
        expected = [
            np.log(row[i]) + part.log_prob(torch.tensor(y, dtype=torch.float64)).item()
            for i, (part, y) in enumerate(zip(parts, ys, strict=True))
        ]
        found = bars.log_density(np.tile(row, (len(ys), 1)), ys)
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_bars_of_draws_are_equally_probable():
    draws = np.random.default_rng(0).standard_normal(10_000)
    bars = Bars.of_draws(draws, 100)
    assert bars.n_bars == 100
    counts = np.bincount(np.searchsorted(bars.borders, draws), minlength=100)
    assert (counts == 100).all()
    prior = np.full((1, 100), 0.01)
    assert bars.mean(prior) == pytest.approx(draws.mean(), abs=0.01)
    assert bars.variance(prior) == pytest.approx(draws.var(), abs=0.02)
    # Of a normal distribution, 1.4189 nats.
    assert bars.entropy(prior) == pytest.approx(0.5 * np.log(2 * np.pi * np.e), abs=0.02)


def test_no_probability():
    bars = Bars([-1.0, 0.0, 1.0], [1.0, 1.0])
    row = np.array([[0.0, 1.0, 0.0, 0.0]])
    assert bars.entropy(row) == 0.0
    assert bars.log_density(row, [0.5]) == -np.inf
    assert bars.cdf(row, -1.0) == 0.0


@pytest.mark.parametrize(
    ("borders", "tails", "message"),
    [
        ([1.0], [1, 1], "borders must be two or more increasing numbers"),
        ([1.0, 1.0], [1, 1], "borders must be two or more increasing numbers"),
        ([0.0, 1.0], [1, 0], "tails must be two positive numbers"),
        ([0.0, 1.0], [1], "tails must be two positive numbers"),
    ],
)
def test_invalid_bars(borders, tails, message):
    with pytest.raises(ValueError, match=message):
        Bars(borders, tails)
