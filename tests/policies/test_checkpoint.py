import json
import os
import pickle

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from sklearn_asal.exceptions import PolicyFileError
from sklearn_asal.policies import load_policy, read_header, save_policy

from .conftest import small_network


def test_round_trip(path):
    torch.manual_seed(0)
    original = small_network(read_header(path)["architecture"]["kind"])
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
    network = small_network()
    with torch.no_grad():
        next(network.parameters())[0, 0] = float("nan")
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
