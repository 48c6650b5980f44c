import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from sklearn_asal import policies
from sklearn_asal.exceptions import PolicyFileError, PolicyNotFoundError
from sklearn_asal.policies import load_policy, save_policy, shipped
from sklearn_asal.policies.registry import (
    baselines,
    find,
    infers,
    load_any,
    load_inference,
    load_runtime,
    locate,
    resolve,
)

from .conftest import small_network


def test_a_changed_file_is_loaded_anew(path):
    (before, _), (runtime, _) = load_policy(path, safe=True), load_runtime(path, safe=True)
    torch.manual_seed(1)
    save_policy(small_network(), path)
    after, _ = load_policy(path, safe=True)
    assert not torch.equal(next(before.parameters()), next(after.parameters()))
    assert load_runtime(path, safe=True)[0] is not runtime


@pytest.mark.parametrize("kind", ["reader", "transformer"])
def test_runtime_answers_as_the_network(tmp_path, kind):
    path = tmp_path / "policy.safetensors"
    save_policy(small_network(kind), path)
    (network, header), (runtime, same) = load_policy(path, safe=True), load_runtime(path, safe=True)
    assert header == same
    X, y, z = torch.rand(3, 5, 2), torch.randn(3, 5), torch.randn(3, 5)
    expected = network(torch.tensor([1.0, 7.0, 40.0]), X, y, z)
    result = runtime(np.array([1.0, 7.0, 40.0]), X.numpy(), y.numpy(), z.numpy())
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-6)


def test_shipped_policies_answer_without_torch():
    code = """
import sys
from sklearn_asal.policies.registry import baselines, load_runtime, shipped
for safe in (True, False):
    for name in shipped(safe):
        load_runtime(name, safe=safe)
for name in baselines():
    load_runtime(name, safe=False)
from sklearn_asal.surrogates import PFNSurrogate
PFNSurrogate().fit([[0.1, 0.2]], [0.3]).predict([[0.5, 0.6]])
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_every_shipped_policy_is_there():
    assert shipped(True) == {"any": None, "2d": 2, "3d": 3, "7d-fluid": 7}
    assert shipped(False) == {"any": None, "1d": 1, "2d": 2, "2d-long": 2, "5d": 5}
    assert baselines() == {"aline-1d": 1, "aline-2d": 2, "dad-2d": 2}


@pytest.mark.parametrize("name", sorted(baselines()))
def test_baselines(name):
    """They are found by name, and nothing else proposes them."""
    network, header = load_any(name)
    assert header["name"] == name
    assert header["n_features"] == baselines()[name] == network.n_features
    assert header["safe"] is False
    assert (header["architecture"]["kind"] == "aline") == name.startswith("aline")
    for key in ("n_init", "max_budget", "noise_std", "preset", "steps_done", "validation"):
        assert key in header
    policy = find(name, baselines()[name], False)
    assert policy.picks == name.startswith("aline")
    assert not policy.infers
    with pytest.raises(ValueError, match="'any' and '5d' fit") as error:
        find(name, 5, False)
    assert not {"dad-5d", "aline-5d"} & set(str(error.value).split("'"))


def test_imports_point_one_way():
    """Each module imports only from those before it, wherever in the file."""
    order = (
        "architecture checkpoint runtime reader_runtime inference_runtime aline_runtime "
        "pfn_runtime kv_cache layers reader transformer inference aline pfn networks "
        "torch_runtime registry export"
    ).split()
    folder = Path(policies.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} == {"__init__", *order}
    for i, name in enumerate(order):
        text = (folder / f"{name}.py").read_text(encoding="utf-8")
        imported = set(re.findall(r"^ *from \.(\w+) import", text, re.M))
        assert imported <= set(order[:i]), name


def test_wrong_kind(path):
    with pytest.raises(PolicyFileError, match="AmortizedSafeQuerier"):
        load_policy(path, safe=False)


@pytest.mark.parametrize("name", ["no-such-policy", "", "/no/such/file.safetensors"])
def test_unknown_name_lists_the_names_there_are(name):
    with pytest.raises(PolicyNotFoundError, match="neither a shipped safe policy nor a file") as e:
        load_policy(name, safe=True)
    for known in shipped(True):
        assert repr(known) in str(e.value)


def test_neither_name_nor_path():
    """Bounds are a likely first argument."""
    with pytest.raises(PolicyNotFoundError, match=r"a name or a path, got list.*bounds="):
        load_policy([(0, 1)], safe=True)


def test_load_any(path):
    assert load_any(path)[1]["note"] == "a test"
    with pytest.raises(PolicyNotFoundError, match="Shipped:"):
        load_any("safe-99d")


@pytest.mark.parametrize(
    ("safe", "name"), [(s, n) for s in (True, False) for n in sorted(shipped(s)) if n != "any"]
)
def test_shipped(safe, name):
    network, header = load_policy(name, safe=safe)
    assert header["safe"] == safe
    assert header["n_features"] == shipped(safe)[name] == network.n_features
    preset = f"safe-{name}" if safe else name
    assert load_any(preset)[0] is load_policy(preset, safe=safe)[0] is network
    for key in ("n_init", "max_budget", "noise_std", "preset", "steps_done", "validation"):
        assert key in header


def test_the_shipped_policy_for_any_system():
    """One file with and without a limit."""
    network, header = load_any("any")
    assert header["n_features"] is header["safe"] is header["max_budget"] is None
    assert {"training", "validation", "steps_done"} <= set(header)
    for safe in (True, False):
        assert load_policy("any", safe=safe)[0] is network
        assert load_runtime("any", safe=safe)[0] is load_inference("any")
        for policy in "any", "auto":
            for n_features in 1, 2, 13:
                found = find(policy, n_features, safe)
                assert found.runtime is load_inference("any")
                assert found.infers
                assert found.is_current


def test_which_policies_infer_hyperparameters(path, tmp_path):
    own = tmp_path / "own.safetensors"
    own.write_bytes(locate("any", safe=True).read_bytes())
    for policy in ("auto", "any", own, str(own)):
        assert infers(policy)
    for policy in ("1d", "2d", "2d-long", "7d-fluid", path, str(path)):
        assert not infers(policy)
    for policy in ("no-such-policy", tmp_path, tmp_path / "none", None, 3, __file__):
        assert not infers(policy)
    own.write_bytes(path.read_bytes())
    assert not infers(own)


def test_only_some_policies_infer_hyperparameters(path):
    for policy in (path, "1d"):
        with pytest.raises(PolicyFileError, match="infers no hyperparameters; take 'any'"):
            load_inference(policy)
    with pytest.raises(PolicyNotFoundError):
        load_inference("no-such-policy")


def test_the_policy_for_any_system_fits_where_others_do_not(path):
    for n_features, fitting in ((2, ""), (3, " and '3d' fit"), (4, "'any' fits")):
        if fitting:
            with pytest.raises(ValueError, match=rf"takes 2\. .*{fitting}\."):
                find(path, n_features, True)
        else:
            assert not find(path, n_features, True).infers


def test_a_folder_is_not_a_policy(tmp_path):
    for call in (lambda: locate(tmp_path, safe=True), lambda: resolve(tmp_path)):
        with pytest.raises(PolicyNotFoundError, match=r"is a folder; .*policy\.safetensors"):
            call()
