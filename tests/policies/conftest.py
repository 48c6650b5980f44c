"""A policy file that several test modules share."""

import pytest
import torch

from sklearn_asal.policies import save_policy
from sklearn_asal.policies.networks import build


def small_network(kind="transformer"):
    """A network of random weights for two features."""
    return build({"n_features": 2, "kind": kind, "embedding": 16, "hidden": 8, "heads": 2})


@pytest.fixture(params=["transformer", "reader"])
def path(tmp_path, request):
    torch.manual_seed(0)
    path = tmp_path / "policy.safetensors"
    save_policy(small_network(request.param), path, {"note": "a test"})
    return path
