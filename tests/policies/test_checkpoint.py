import json
import os
import pickle

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from sklearn_asal.exceptions import PolicyFileError, PolicyNotFoundError
from sklearn_asal.policies import load_policy, save_policy, shipped
from sklearn_asal.policies.checkpoint import load_any, locate, resolve
from sklearn_asal.policies.network import PolicyNetwork


@pytest.fixture
def path(tmp_path):
    torch.manual_seed(0)
    path = tmp_path / "policy.safetensors"
    save_policy(PolicyNetwork(2, embedding=16, hidden=8, heads=2), path, {"note": "a test"})
    return path


def test_round_trip(path):
    torch.manual_seed(0)
    original = PolicyNetwork(2, embedding=16, hidden=8, heads=2)
    loaded, header = load_policy(path, safe=True)
    assert header["note"] == "a test"
    assert header["architecture"] == original.architecture
    assert not loaded.training
    for name, value in original.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value)
    budget, X, y = torch.tensor([3]), torch.rand(1, 4, 2), torch.randn(1, 4)
    assert torch.equal(loaded(budget, X, y, y), original(budget, X, y, y))


def test_no_temporary_file_stays(path):
    assert [entry.name for entry in path.parent.iterdir()] == ["policy.safetensors"]


def test_a_changed_file_is_loaded_anew(path):
    before, _ = load_policy(path, safe=True)
    torch.manual_seed(1)
    save_policy(PolicyNetwork(2, embedding=16, hidden=8, heads=2), path)
    after, _ = load_policy(path, safe=True)
    assert not torch.equal(before.decision[0].weight, after.decision[0].weight)


@pytest.mark.parametrize("keep", [0, 5, 100, -1])
def test_truncated(path, keep):
    content = path.read_bytes()
    path.write_bytes(content[:keep])
    with pytest.raises(PolicyFileError, match="cannot be read"):
        load_policy(path, safe=True)


def test_damaged_in_the_header(path):
    content = bytearray(path.read_bytes())
    content[8:40] = b"\xff" * 32
    path.write_bytes(content)
    with pytest.raises(PolicyFileError, match="cannot be read"):
        load_policy(path, safe=True)


def test_damaged_in_the_weights(path):
    content = bytearray(path.read_bytes())
    content[-100:] = bytes(100)
    path.write_bytes(content)
    with pytest.raises(PolicyFileError, match="checksum"):
        load_policy(path, safe=True)


def test_weights_that_are_not_finite(path):
    network = PolicyNetwork(2, embedding=16, hidden=8, heads=2)
    with torch.no_grad():
        network.decision[0].weight[0, 0] = float("nan")
    save_policy(network, path)
    with pytest.raises(PolicyFileError, match="not finite"):
        load_policy(path, safe=True)


def test_readable_by_everyone(path):
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


def test_pickle_is_refused(path):
    path.write_bytes(pickle.dumps({"weights": [1, 2, 3]}))
    with pytest.raises(PolicyFileError, match="cannot be read"):
        load_policy(path, safe=True)


def test_foreign_safetensors(path):
    save_file({"weight": torch.zeros(3)}, path)
    with pytest.raises(PolicyFileError, match="not a sklearn-asal policy"):
        load_policy(path, safe=True)


def test_header_without_architecture(path):
    metadata = {"format": "sklearn-asal-policy-1", "header": json.dumps({"safe": True})}
    save_file({"weight": torch.zeros(3)}, path, metadata=metadata)
    with pytest.raises(PolicyFileError, match="header"):
        load_policy(path, safe=True)


def test_weights_that_do_not_fit_the_header(path):
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    save_file({"weight": torch.zeros(3)}, path, metadata=metadata)
    with pytest.raises(PolicyFileError, match="do not fit"):
        load_policy(path, safe=True)


def test_wrong_kind(path):
    with pytest.raises(PolicyFileError, match="AmortizedSafeQuerier"):
        load_policy(path, safe=False)


@pytest.mark.parametrize("name", ["no-such-policy", "", "/no/such/file.safetensors", 3])
def test_unknown_name_lists_the_names_there_are(name):
    with pytest.raises(PolicyNotFoundError, match="neither a shipped safe policy nor a file") as e:
        load_policy(name, safe=True)
    for known in shipped(True):
        assert repr(known) in str(e.value)


def test_load_any(path):
    assert load_any(path)[1]["note"] == "a test"
    with pytest.raises(PolicyNotFoundError, match="Shipped:"):
        load_any("safe-99d")


@pytest.mark.parametrize(
    ("safe", "name"), [(s, n) for s in (True, False) for n in sorted(shipped(s))]
)
def test_shipped(safe, name):
    network, header = load_policy(name, safe=safe)
    assert header["safe"] == safe
    assert header["n_features"] == shipped(safe)[name] == network.n_features
    preset = f"safe-{name}" if safe else name
    assert load_any(preset)[0] is load_policy(preset, safe=safe)[0] is network
    for key in ("n_init", "max_budget", "noise_std", "preset", "steps_done", "validation"):
        assert key in header


def test_a_folder_is_not_a_policy(tmp_path):
    for find in (lambda: locate(tmp_path, safe=True), lambda: resolve(tmp_path)):
        with pytest.raises(PolicyNotFoundError, match=r"is a folder; .*policy\.safetensors"):
            find()


def test_early_files_are_not_read_as_others(path):
    """They pooled by a sum with a factor, which is another function of the same weights."""
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
        weights = {name: file.get_tensor(name) for name in file.keys()}
    header = json.loads(metadata["header"])
    del header["architecture"]["pooling"]
    save_file(weights, path, metadata | {"header": json.dumps(header)})
    with pytest.raises(PolicyFileError, match="early version"):
        load_policy(path, safe=True)
