"""ALINE's network, against its runtime; the order of sets."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from sklearn_asal.policies.aline import ALINENetwork, log_density
from sklearn_asal.policies.aline_runtime import ALINERuntime
from sklearn_asal.policies.architecture import complete

SIZES = {"embedding": 8, "hidden": 12, "heads": 2, "layers": 2, "components": 3}


def pair(n_features=2, seed=0, **sizes):
    """A network in double precision and its runtime."""
    torch.manual_seed(seed)
    network = ALINENetwork(n_features, **SIZES | sizes).double().requires_grad_(False)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    return network, ALINERuntime(network.architecture, weights)


def data(n_features=2, n=5, m=4, k=6, seed=0):
    """Measurements, targets, candidates."""
    rng = np.random.default_rng(seed)
    X, targets, candidates = (rng.random((size, n_features)) for size in (n, m, k))
    return X, rng.normal(size=n), targets, candidates


def answers(network, X, y, targets, candidates):
    """Of the network, for one campaign."""
    mixture, scores = network(
        *(torch.from_numpy(np.array(part))[None] for part in (X, y, targets, candidates))
    )
    return *(part[0].numpy() for part in mixture), scores[0].numpy()


@pytest.mark.parametrize(("n_features", "n"), [(1, 1), (2, 5), (3, 40)])
def test_runtime_is_the_network(n_features, n):
    network, runtime = pair(n_features, seed=n)
    X, y, targets, candidates = data(n_features, n, seed=n)
    log_weight, mean, log_std, scores = answers(network, X, y, targets, candidates)
    weight, runtime_mean, std = runtime.predict(X, y, targets)
    np.testing.assert_allclose(weight, np.exp(log_weight), rtol=1e-9)
    np.testing.assert_allclose(runtime_mean, mean, rtol=1e-9)
    np.testing.assert_allclose(std, np.exp(log_std), rtol=1e-9)
    np.testing.assert_allclose(runtime.scores(X, y, targets, candidates), scores, rtol=1e-9)


def test_runtime_works_in_parts(monkeypatch):
    _, runtime = pair()
    X, y, targets, candidates = data(k=9)
    whole = runtime.scores(X, y, targets, candidates), *runtime.predict(X, y, candidates)
    monkeypatch.setattr("sklearn_asal.policies.aline_runtime._CHUNK", 4)
    parts = runtime.scores(X, y, targets, candidates), *runtime.predict(X, y, candidates)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 9))
@settings(max_examples=30, deadline=None)
def test_order_of_sets(seed, n, k):
    network, runtime = pair()
    X, y, targets, candidates = data(n=n, k=k, seed=seed)
    rng = np.random.default_rng(seed)
    of_n, of_m, of_k = (rng.permutation(size) for size in (n, len(targets), k))
    other = X[of_n], y[of_n], targets[of_m], candidates[of_k]
    *mixture, scores = answers(network, X, y, targets, candidates)
    *moved, moved_scores = answers(network, *other)
    for one, another in zip(mixture, moved, strict=True):
        np.testing.assert_allclose(one[of_m], another, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(scores[of_k], moved_scores, rtol=1e-8, atol=1e-10)
    deployed = runtime.scores(X, y, targets, candidates)[of_k]
    np.testing.assert_allclose(deployed, runtime.scores(*other), rtol=1e-8, atol=1e-10)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_candidates_and_targets_stand_alone(seed):
    _, runtime = pair()
    X, y, targets, candidates = data(seed=seed)
    scores = runtime.scores(X, y, targets, candidates)
    alone = [runtime.scores(X, y, targets, one[None])[0] for one in candidates]
    np.testing.assert_allclose(scores, alone, rtol=1e-9)
    means = runtime.predict(X, y, targets)[1]
    alone = [runtime.predict(X, y, one[None])[1][0] for one in targets]
    np.testing.assert_allclose(means, alone, rtol=1e-9)


def test_all_that_is_seen_matters():
    _, runtime = pair()
    X, y, targets, candidates = data()
    scores = runtime.scores(X, y, targets, candidates)
    means = runtime.predict(X, y, targets)[1]
    assert np.abs(scores - runtime.scores(X, y + 1, targets, candidates)).min() > 1e-6
    assert np.abs(scores - runtime.scores(1 - X, y, targets, candidates)).min() > 1e-6
    assert np.abs(scores - runtime.scores(X, y, targets[:2], candidates)).min() > 1e-6
    assert np.abs(means - runtime.predict(X, y + 1, targets)[1]).min() > 1e-6


def test_log_density_is_that_of_the_mixture():
    network, _ = pair()
    X, y, targets, candidates = data()
    log_weight, mean, log_std, _ = answers(network, X, y, targets, candidates)
    truth = np.random.default_rng(1).normal(size=len(targets))
    parts = np.exp(log_weight) * norm.pdf(truth[:, None], mean, np.exp(log_std))
    mixture = [torch.from_numpy(part)[None] for part in (log_weight, mean, log_std)]
    found = log_density(mixture, torch.from_numpy(truth)[None])[0]
    np.testing.assert_allclose(found, np.log(parts.sum(1)), rtol=1e-10)


@pytest.mark.parametrize(
    ("change", "named"),
    [({"heads": 3}, "heads"), ({"layers": 0}, "layers"), ({"embedding": 2.5}, "embedding")],
)
def test_bad_architecture(change, named):
    with pytest.raises(ValueError, match=named):
        complete({"kind": "aline", "n_features": 2, **change})


def test_weights_that_do_not_fit():
    network, _ = pair()
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    with pytest.raises(ValueError, match=r"score\.0\.bias"):
        ALINERuntime(network.architecture, weights | {"score.0.bias": np.zeros(3)})
