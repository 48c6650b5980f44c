"""The network that infers hyperparameters, against torch's own distributions."""

import numpy as np
import pytest
import torch
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

from sklearn_asal.exceptions import PolicyFileError
from sklearn_asal.policies import load_policy, read_header, save_policy
from sklearn_asal.policies.architecture import complete
from sklearn_asal.policies.inference import InferenceNetwork
from sklearn_asal.policies.inference_runtime import HIGHEST, LOWEST, NOISE
from sklearn_asal.policies.networks import build
from sklearn_asal.policies.registry import load_any, load_inference, load_runtime

SIZES = {"own": 5, "shared": 7, "width": 16, "layers": 2, "components": 3}


def network(seed=0, **sizes):
    torch.manual_seed(seed)
    return InferenceNetwork(**{**SIZES, **sizes})


def inputs(batch=4, n_features=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = (batch, n_features, 5), (batch, 7), (batch, n_features), (batch,)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


@pytest.mark.parametrize("n_features", [1, 3, 10])
def test_log_density_of_the_mixture(n_features):
    model = network().double()
    own, shared, log_lengthscales, log_noise = inputs(n_features=n_features)
    location, log_scale, log_weight, noise, noise_log_scale = model(own, shared)
    # One more coordinate for the noise.
    means = torch.cat([location, noise[:, None]], 1).transpose(1, 2)
    deviations = torch.cat([log_scale, noise_log_scale[:, None]], 1).exp().transpose(1, 2)
    mixture = MixtureSameFamily(
        Categorical(logits=log_weight), Independent(Normal(means, deviations), 1)
    )
    expected = mixture.log_prob(torch.cat([log_lengthscales, log_noise[:, None]], 1))
    found = model.log_density(own, shared, log_lengthscales, log_noise)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(log_weight.exp().sum(-1), torch.ones(4).double())


def test_order_of_features():
    model = network().double()
    own, shared, *_ = inputs(n_features=6)
    order = torch.randperm(6)
    expected, found = model(own, shared), model(own[:, order], shared)
    for one, other in zip(found[:2], expected[:2], strict=True):
        torch.testing.assert_close(one, other[:, order])
    for one, other in zip(found[2:], expected[2:], strict=True):
        torch.testing.assert_close(one, other)
    # What is known of one feature has a part in what is said of another.
    own[:, 0] += 1
    assert (model(own, shared)[0][:, 1:] != expected[0][:, 1:]).any()


def test_a_batch_is_a_loop():
    model = network().double()
    own, shared, *_ = inputs()
    together = model(own, shared)
    for i in range(4):
        for one, every in zip(model(own[i : i + 1], shared[i : i + 1]), together, strict=True):
            torch.testing.assert_close(one[0], every[i])


def test_standardized_inputs():
    """Units of what comes in have no part in what comes out."""
    own, shared, *_ = inputs(batch=50)
    plain, scaled = network().double(), network().double()
    plain.standardize(own.flatten(0, 1), shared)
    torch.testing.assert_close(plain.own_mean, own.mean((0, 1)))
    torch.testing.assert_close(plain.shared_std, shared.std(0) + 1e-3)
    scaled.standardize(1e4 * own.flatten(0, 1) + 7, 1e4 * shared - 3)
    found, expected = scaled(1e4 * own + 7, 1e4 * shared - 3), plain(own, shared)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-2)


def test_deviations_are_limited():
    model = network()
    own, shared, *_ = (part.float() for part in inputs())
    for size in (1e4, -1e4):
        _, log_scale, _, _, noise_log_scale = model(size * own, size * shared)
        for part in (log_scale, noise_log_scale):
            assert part.min() >= LOWEST
            assert part.max() <= HIGHEST
            assert ((part == LOWEST) | (part == HIGHEST)).any()
    with torch.no_grad():
        model.shared_out.weight.zero_()
        model.shared_out.bias.zero_()
    torch.testing.assert_close(model(own, shared)[3], torch.full((4, 3), NOISE))


def test_files(tmp_path):
    model, path = network(width=24).eval(), tmp_path / "policy.safetensors"
    own, shared, *_ = (part.float() for part in inputs(batch=60))
    model.standardize(own.flatten(0, 1), shared)
    save_policy(model, path, {"note": "a test"})
    header = read_header(path)
    assert (header["note"], header["n_features"], header["safe"]) == ("a test", None, None)
    assert header["max_budget"] is None
    assert header["architecture"] == {"kind": "inference", **SIZES, "width": 24, "max_budget": None}
    for safe in (True, False):
        loaded, found = load_policy(path, safe=safe)
        assert type(loaded) is InferenceNetwork
        assert found == header
        for one, other in zip(loaded(own, shared), model(own, shared), strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0)
        assert load_runtime(path, safe=safe)[0] is load_inference(path)
    assert load_any(path)[0] is loaded
    weights = path.read_bytes()
    path.write_bytes(weights[:-100] + bytes(50) + weights[-50:])
    with pytest.raises(PolicyFileError, match="damaged"):
        load_inference(path)


def test_weights_that_are_not_finite(tmp_path):
    model, path = network(), tmp_path / "policy.safetensors"
    with torch.no_grad():
        model.own_mean[1] = np.nan
    save_policy(model, path)
    with pytest.raises(PolicyFileError, match="not finite"):
        load_inference(path)


def test_architectures():
    full = complete({"kind": "inference", "own": 5, "shared": 7})
    assert full == {
        "kind": "inference",
        "own": 5,
        "shared": 7,
        "width": 112,
        "layers": 3,
        "components": 6,
        "max_budget": None,
    }
    assert complete(full) == full
    assert build(full).architecture == full
    for name in ("own", "shared", "width", "layers", "components"):
        for wrong in (0, -1, 1.5, "2", None):
            with pytest.raises(ValueError, match=f"{name} must be a positive integer"):
                complete({**full, name: wrong})
    with pytest.raises(TypeError):
        complete({"kind": "inference", "own": 5})
    with pytest.raises(TypeError):
        complete({**full, "heads": 2})
