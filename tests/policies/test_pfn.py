"""The prior-data fitted network: in torch, and the same without torch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_asal.exceptions import PolicyFileError
from sklearn_asal.policies import load_policy, save_policy
from sklearn_asal.policies.architecture import check_weights, complete
from sklearn_asal.policies.checkpoint import read_weights
from sklearn_asal.policies.networks import build, restore
from sklearn_asal.policies.pfn import PFNNetwork
from sklearn_asal.policies.pfn_runtime import PFNRuntime
from sklearn_asal.policies.registry import load_pfn, load_runtime, locate_pfn

SIZES = {"most_features": 5, "bars": 7, "width": 12, "hidden": 10, "heads": 3, "layers": 2}
few = settings(max_examples=20, deadline=None, derandomize=True)


def network(seed=0, **sizes):
    """One whose answers depend on all it is shown."""
    torch.manual_seed(seed)
    made = PFNNetwork(**{**SIZES, **sizes})
    torch.nn.init.normal_(made.head[2].weight)
    return made


def runtime_of(made):
    weights = {name: value.numpy() for name, value in made.state_dict().items()}
    return PFNRuntime(made.architecture, weights)


def examples(n, m, n_features, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((n, n_features)), 2 * rng.standard_normal(n), rng.random((m, n_features))


@torch.no_grad()
def by_torch(made, X, y, points):
    parts = (torch.from_numpy(part)[None].double() for part in (X, y, points))
    return torch.softmax(made.double()(*parts)[0], -1).numpy()


@few
@given(
    n=st.integers(1, 30),
    n_features=st.integers(1, 5),
    layers=st.integers(1, 3),
    heads=st.sampled_from([1, 3, 4]),
    seed=st.integers(0, 99),
)
def test_runtime_as_the_network_in_double_precision(n, n_features, layers, heads, seed):
    made = network(seed, layers=layers, heads=heads)
    X, y, points = examples(n, 9, n_features, seed)
    runtime = runtime_of(made)
    found = runtime.probabilities(runtime.encode(X, y), points)
    np.testing.assert_allclose(found, by_torch(made, X, y, points), atol=2e-5)


def test_the_shipped_one():
    path = locate_pfn("pfn")
    header, weights = read_weights(path)
    assert header["preset"] == {"name": "pfn"}
    assert header["architecture"]["layers"] == 2
    assert 250_000 < sum(part.size for part in weights.values()) < 350_000
    assert path.stat().st_size < 2_000_000
    assert header["validation"]["objective"] < header["validation"]["true process"]
    tensors = {name: torch.from_numpy(weight) for name, weight in weights.items()}
    made = restore(header["architecture"], tensors)
    for n_features in (1, 3, 8):
        X, y, points = examples(40, 300, n_features)
        runtime = load_pfn("pfn")
        found = runtime.probabilities(runtime.encode(X, y), points)
        np.testing.assert_allclose(found, by_torch(made, X, y, points), atol=1e-4)


@few
@given(n=st.integers(1, 20), seed=st.integers(0, 99))
def test_observations_are_a_set(n, seed):
    X, y, points = examples(n, 6, 3, seed)
    order = np.random.default_rng(seed).permutation(n)
    made = network()
    expected = by_torch(made, X, y, points)
    np.testing.assert_allclose(by_torch(made, X[order], y[order], points), expected, atol=1e-12)
    # Each point is answered by itself.
    np.testing.assert_allclose(by_torch(made, X, y, points[2:3]), expected[2:3], atol=1e-12)


def test_all_that_it_is_shown_counts():
    X, y, points = examples(6, 4, 3)
    made = network()
    expected = by_torch(made, X, y, points)
    changed = [(X + 0.1, y, points), (X, y + 0.1, points), (X, y, points + 0.1)]
    changed.append((np.pad(X, ((0, 0), (0, 1)), constant_values=0.5), y, None))
    changed[-1] = (*changed[-1][:2], np.pad(points, ((0, 0), (0, 1)), constant_values=0.5))
    for parts in changed:
        assert np.abs(by_torch(made, *parts) - expected).max() > 1e-3


def test_attention_by_distance_is_a_kernel_smoother():
    """With nothing but distances, weights are those of a Gaussian kernel of the stated rate."""
    made = network(heads=1, width=4, layers=1).double()
    layer = made.layers[0]
    for linear in (layer.query, layer.ff2):
        torch.nn.init.zeros_(linear.weight)
        torch.nn.init.zeros_(linear.bias)
    X, _, points = examples(5, 3, 4)
    rate = layer.log_rate.exp().item()
    places = torch.from_numpy(np.concatenate([X, points]))[None]
    tokens = torch.randn(1, 8, 4, dtype=torch.float64)
    with torch.no_grad():
        value = layer.known(layer.norm1(tokens)[:, :5])[..., 4:]
        distance = np.square(points[:, None] - X).sum(axis=-1)
        weights = np.exp(-rate * distance)
        weights /= weights.sum(axis=1, keepdims=True)
        expected = tokens[:, 5:] + layer.out(torch.from_numpy(weights) @ value)
        found = layer(tokens, places, 5, 5)
    torch.testing.assert_close(found, expected)


def test_before_training_it_predicts_the_prior():
    torch.manual_seed(0)
    np.testing.assert_allclose(by_torch(PFNNetwork(**SIZES), *examples(5, 4, 2)), 1 / 7)


def test_beyond_all_bounds():
    runtime = runtime_of(network())
    X, y, points = examples(5, 4, 2)
    found = runtime.probabilities(runtime.encode(1e100 * X, 1e100 * y), -1e100 * points)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_files(tmp_path):
    made, path = network(), tmp_path / "pfn.safetensors"
    save_policy(made, path)
    X, y, points = examples(5, 4, 2)
    runtime = load_pfn(path)
    assert (runtime.most_features, len(runtime.borders), len(runtime.tails)) == (5, 6, 2)
    found = runtime.probabilities(runtime.encode(X, y), points)
    np.testing.assert_allclose(found, by_torch(made, X, y, points), atol=2e-5)
    for load in (load_policy, load_runtime):
        with pytest.raises(PolicyFileError, match="pass GPQuerier or GPSafeQuerier surrogate=PFN"):
            load(path, safe=False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bars": 2}, "bars must be at least 3, got 2"),
        ({"heads": 5}, "5 heads do not divide a width of 12"),
        ({"layers": 0}, "layers must be a positive integer, got 0"),
    ],
)
def test_architectures_that_make_no_network(changes, message):
    with pytest.raises(ValueError, match=message):
        build({"kind": "pfn", **SIZES, **changes})


def test_weights_that_do_not_fit():
    made = network()
    weights = {name: value.numpy() for name, value in made.state_dict().items()}
    check_weights(complete(made.architecture), weights)
    for name in ("borders", "tails", "layers.1.log_rate", "number.weight"):
        with pytest.raises(ValueError, match=name):
            check_weights(made.architecture, {**weights, name: np.zeros(1)})
