"""ONNX files of policies."""

import json
import sys

import numpy as np
import pytest
import torch

from sklearn_asal import AmortizedQuerier
from sklearn_asal.__main__ import main
from sklearn_asal.exceptions import PolicyFileError
from sklearn_asal.policies import save_policy
from sklearn_asal.policies.architecture import build
from sklearn_asal.policies.checkpoint import load_runtime, shipped
from sklearn_asal.policies.export import export_onnx
from sklearn_asal.policies.runtime import told_budget

ort = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")


def saved(path, n_features=2, safe=True, **options):
    torch.manual_seed(0)
    options = {"embedding": 16, "hidden": 24, "heads": 2, "kind": "reader", **options}
    network = build({"n_features": n_features, "safe": safe, **options}, centre_gain=2.0)
    save_policy(network, path, {"note": "a"})
    return path


def compare(policy, safe, file):
    """The file, for several sizes of batch and history, with the Python path."""
    runtime, header = load_runtime(policy, safe=safe)
    session = ort.InferenceSession(file, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    for B, n in ((1, 1), (1, 45), (4, 7), (4, 60)):
        budget = rng.integers(1, 80, B).astype(np.float32)
        X = rng.random((B, n, runtime.n_features), dtype=np.float32)
        y, margin = rng.standard_normal((2, B, n), dtype=np.float32)
        mask = np.arange(n) < rng.integers(1, n + 1, (B, 1))
        feed = dict(budget=budget, X=X, y=y, mask=mask, **({"margin": margin} if safe else {}))
        (result,) = session.run(["x"], feed)
        plan = zip(budget.tolist(), mask.sum(axis=1).tolist(), strict=True)
        told = np.array([told_budget(header, left, known) for left, known in plan])
        expected = runtime(told, X, y, margin, mask)
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-5)
    return session


def test_onnx_of_a_policy_with_a_lead(tmp_path):
    policy = saved(tmp_path / "p.safetensors", n_features=3, lead=True, lags=((0, 1, 0.2),))
    export_onnx(policy, tmp_path / "p.onnx")
    compare(policy, True, tmp_path / "p.onnx")


@pytest.mark.parametrize("kind", ["reader", "transformer"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"safe": False, "output": "tanh", "pooling": "sum"},
        {"n_features": 1},
        {"budget": False, "layers": 3},
        {"n_features": 7, "standardize": False, "heads": 4},
        {"n_features": 3, "lags": ((1, 2, 0.1), (0, 1, 0.02))},
    ],
)
def test_onnx_equals_python(tmp_path, options, kind):
    policy = saved(tmp_path / "p.safetensors", kind=kind, **options)
    export_onnx(policy, tmp_path / "p.onnx")
    session = compare(policy, options.get("safe", True), tmp_path / "p.onnx")
    header = json.loads(session.get_modelmeta().custom_metadata_map["header"])
    assert header["note"] == "a"
    assert header["architecture"]["n_features"] == options.get("n_features", 2)


@pytest.mark.skipif("2d" not in shipped(True), reason="not trained yet")
def test_command_line(tmp_path, capsys):
    file = tmp_path / "policy.onnx"
    assert main(["export", "safe-2d", str(file)]) == 0
    assert capsys.readouterr().out.strip() == str(file)
    compare("2d", True, file)
    assert main(["export", "safe-99d", str(file)]) == 1
    assert "neither a preset" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", shipped(False))
@pytest.mark.parametrize(("n", "budget"), [(3, 4), (10, 30), (30, 30), (5, 200)])
def test_file_plans_long_campaigns_as_queries_do(tmp_path, name, n, budget):
    export_onnx(name, tmp_path / "p.onnx", safe=False)
    session = ort.InferenceSession(tmp_path / "p.onnx", providers=["CPUExecutionProvider"])
    querier, rng = AmortizedQuerier(name), np.random.default_rng(0)
    X, y = rng.random((n, shipped(False)[name])), rng.standard_normal(n)
    feed = {"budget": np.array([budget]), "X": X[None], "y": y[None]}
    feed = {key: value.astype(np.float32) for key, value in feed.items()}
    (result,) = session.run(["x"], {**feed, "mask": np.ones((1, n), dtype=bool)})
    np.testing.assert_allclose(result, querier.query(X, y, budget=budget), rtol=0, atol=1e-5)


def test_wrong_kind(tmp_path):
    policy = saved(tmp_path / "p.safetensors")
    with pytest.raises(PolicyFileError, match="AmortizedSafeQuerier"):
        export_onnx(policy, tmp_path / "p.onnx", safe=False)


def test_without_the_package(tmp_path, monkeypatch, capsys):
    policy = saved(tmp_path / "p.safetensors")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'sklearn-asal\[onnx\]'"):
        export_onnx(policy, tmp_path / "p.onnx")
    assert main(["export", str(policy), str(tmp_path / "p.onnx")]) == 1
    assert "sklearn-asal[onnx]" in capsys.readouterr().err
