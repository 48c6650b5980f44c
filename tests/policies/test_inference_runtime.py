"""The same network without torch, and the points that stand for its posterior."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_asal.policies.inference import InferenceNetwork
from sklearn_asal.policies.inference_runtime import InferenceRuntime, Posterior
from sklearn_asal.policies.registry import load_inference, load_policy
from sklearn_asal.surrogates.evidence import N_OWN, N_SHARED, Probed, features

few = settings(max_examples=15, deadline=None, derandomize=True)


def pair(own=5, shared=7, seed=0, **sizes):
    """A network in double precision and its runtime."""
    torch.manual_seed(seed)
    network = InferenceNetwork(own, shared, **sizes).double()
    network.standardize(torch.randn(50, own).double(), 3 * torch.randn(50, shared).double() - 1)
    return network, runtime_of(network)


def runtime_of(network):
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    return InferenceRuntime(network.architecture, weights)


def assert_same(posterior, answer, atol):
    location, log_scale, log_weight, noise, noise_log_scale = (
        part[0].detach().numpy() for part in answer
    )
    for found, expected in (
        (posterior.location, location),
        (posterior.scale, np.exp(log_scale)),
        (posterior.weight, np.exp(log_weight)),
        (posterior.noise_location, noise),
        (posterior.noise_scale, np.exp(noise_log_scale)),
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


@few
@given(
    n_features=st.integers(1, 10),
    layers=st.integers(1, 4),
    components=st.integers(1, 5),
    size=st.sampled_from([1.0, 100.0]),
    seed=st.integers(0, 99),
)
def test_as_the_network(n_features, layers, components, size, seed):
    network, runtime = pair(width=12, layers=layers, components=components, seed=seed)
    rng = np.random.default_rng(seed)
    own, shared = size * rng.standard_normal((n_features, 5)), size * rng.standard_normal(7)
    expected = network(torch.from_numpy(own[None]), torch.from_numpy(shared[None]))
    assert_same(runtime.posterior(own, shared), expected, 1e-9)


@pytest.mark.parametrize("zero_mean", [False, True])
@pytest.mark.parametrize(("n", "n_features"), [(1, 1), (6, 2), (40, 7)])
def test_the_shipped_one_as_its_network(n, n_features, zero_mean):
    network, header = load_policy("any", safe=zero_mean)
    exact = InferenceNetwork(
        N_OWN,
        N_SHARED,
        **{key: header["architecture"][key] for key in ("width", "layers", "components")},
    ).double()
    exact.load_state_dict(network.state_dict())
    rng = np.random.default_rng(n)
    X, values = rng.random((n, n_features)), rng.standard_normal(n)
    known = features(Probed(X), values, zero_mean)
    expected = exact(*(torch.from_numpy(part[None]) for part in known))
    assert_same(load_inference("any").posterior(*known), expected, 1e-9)


def posterior(n_features, n_components=4, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    weight = rng.random(n_components) + 0.2
    return Posterior(
        rng.normal(size=(n_features, n_components)),
        spread * rng.uniform(0.1, 1.0, (n_features, n_components)),
        weight / weight.sum(),
        rng.normal(-2, 1, n_components),
        spread * rng.uniform(0.1, 1.0, n_components),
    )


@pytest.mark.parametrize("n_features", [1, 2, 5, 10])
def test_spread_points_have_the_moments_of_the_posterior(n_features):
    mixture = posterior(n_features)
    log_lengthscales, log_noises = mixture.spread(20000)
    assert log_lengthscales.shape == (20000, n_features)
    assert log_noises.shape == (20000,)
    for found, location, scale in (
        (log_lengthscales, mixture.location, mixture.scale),
        (log_noises[:, None], mixture.noise_location[None], mixture.noise_scale[None]),
    ):
        mean = location @ mixture.weight
        variance = (scale**2 + (location - mean[:, None]) ** 2) @ mixture.weight
        np.testing.assert_allclose(found.mean(axis=0), mean, rtol=0, atol=0.02)
        np.testing.assert_allclose(found.var(axis=0), variance, rtol=0.03)
    # Within a component features are independent.
    one = posterior(n_features, 1).spread(20000)
    together = np.column_stack(one)
    correlation = np.corrcoef(together.T) - np.eye(n_features + 1)
    assert np.abs(correlation).max() < 0.03


@pytest.mark.parametrize("n", [1, 5, 12])
@pytest.mark.parametrize("n_features", [1, 2, 6])
def test_few_points_lie_apart(n, n_features):
    """Each in another part of the posterior, and components have their shares of them."""
    mixture = posterior(n_features, 1)
    points = np.column_stack(mixture.spread(n))
    for feature in points.T:
        assert len(np.unique(feature)) == n
    if n == 12:
        middle = np.append(mixture.location[:, 0], mixture.noise_location)
        scale = np.append(mixture.scale[:, 0], mixture.noise_scale)
        share = np.mean(points < middle, axis=0)
        np.testing.assert_allclose(share, 0.5, atol=0.25)
        assert np.abs((points - middle) / scale).max() < 3.5
    apart = Posterior(
        np.array([[-10.0, 0.0, 10.0]]).repeat(n_features, axis=0),
        np.full((n_features, 3), 0.01),
        np.array([0.25, 0.5, 0.25]),
        np.array([-10.0, 0.0, 10.0]),
        np.full(3, 0.01),
    )
    log_lengthscales, log_noises = apart.spread(12)
    counts = [(np.abs(log_noises - at) < 1).sum() for at in (-10, 0, 10)]
    assert counts == [3, 6, 3]
    np.testing.assert_allclose(log_lengthscales, log_noises[:, None].repeat(n_features, 1), atol=1)


@few
@given(n_features=st.integers(1, 10), seed=st.integers(0, 999), n=st.integers(1, 30))
def test_spread_does_not_depend_on_the_order_of_features(n_features, seed, n):
    mixture = posterior(n_features, seed=seed)
    order = np.random.default_rng(seed).permutation(n_features)
    permuted = Posterior(
        mixture.location[order],
        mixture.scale[order],
        mixture.weight,
        mixture.noise_location,
        mixture.noise_scale,
    )
    expected, found = mixture.spread(n), permuted.spread(n)
    np.testing.assert_array_equal(found[0], expected[0][:, order])
    np.testing.assert_array_equal(found[1], expected[1])
    for again, before in zip(mixture.spread(n), expected, strict=True):
        np.testing.assert_array_equal(again, before)


def test_weights_that_do_not_fit():
    network, _ = pair()
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    for name, shape in (
        ("own_in.weight", r"\(112, 5\)"),
        ("own.1.weight", r"\(112, 336\)"),
        ("shared.2.bias", r"\(112,\)"),
        ("own_out.bias", r"\(12,\)"),
        ("shared_out.weight", r"\(18, 112\)"),
        ("shared_std", r"\(7,\)"),
    ):
        wrong = {**weights, name: weights[name][..., :-1]}
        with pytest.raises(ValueError, match=rf"{name}: shape .*, expected {shape}"):
            InferenceRuntime(network.architecture, wrong)
        missing = {key: value for key, value in weights.items() if key != name}
        with pytest.raises(ValueError, match=rf"{name}: shape None, expected {shape}"):
            InferenceRuntime(network.architecture, missing)
    with pytest.raises(ValueError, match=r"more: shape \(3,\), expected None"):
        InferenceRuntime(network.architecture, {**weights, "more": np.zeros(3)})
    with pytest.raises(ValueError, match="width must be a positive integer"):
        InferenceRuntime({**network.architecture, "width": 0}, weights)
