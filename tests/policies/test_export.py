"""ONNX files of policies, and the module that they are made of."""

import json
import sys

import numpy as np
import pytest
import torch

from sklearn_asal import AmortizedQuerier, AmortizedSafeQuerier
from sklearn_asal.__main__ import main
from sklearn_asal.exceptions import PolicyFileError
from sklearn_asal.policies import load_policy, save_policy
from sklearn_asal.policies.export import DeployedPolicy, export_onnx
from sklearn_asal.policies.networks import build
from sklearn_asal.policies.registry import load_runtime, shipped
from sklearn_asal.policies.runtime import told_budget

SHIPPED = [(safe, name) for safe in (True, False) for name in shipped(safe) if name != "any"]
every_shipped = pytest.mark.parametrize(("safe", "name"), SHIPPED)
NONSENSE = [0, -3, np.nan, np.inf, -np.inf, 0.5, 0.999]
# What float32 computations in another order may differ by.
ROUNDING = 5e-6


def saved(path, n_features=2, safe=True, **options):
    torch.manual_seed(0)
    options = {"embedding": 16, "hidden": 24, "heads": 2, "kind": "reader", **options}
    network = build({"n_features": n_features, "safe": safe, **options}, centre_gain=2.0)
    save_policy(network, path, {"note": "a", "n_init": 3})
    return path


class Graph:
    """An ONNX file under ONNX Runtime."""

    def __init__(self, policy, safe, path):
        ort = pytest.importorskip("onnxruntime")
        pytest.importorskip("onnx")
        export_onnx(policy, path, safe=safe)
        self.session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.names = [entry.name for entry in self.session.get_inputs()]

    def __call__(self, **inputs):
        return self.session.run(["x"], {name: inputs[name] for name in self.names})[0]


class Module:
    """The same before it is exported, so that its tests need torch only."""

    def __init__(self, policy, safe, path):
        network, header = load_policy(policy, safe=safe)
        self.policy = DeployedPolicy(network, header)
        self.names = ["budget", "X", "y", *["margin"][:safe], "mask"]

    def __call__(self, **inputs):
        return self.policy(*(torch.from_numpy(inputs[name]) for name in self.names)).numpy()


@pytest.fixture(params=[Module, Graph])
def deployed(request, tmp_path):
    """``deployed(policy, safe)`` is a function of the graph's inputs by name."""
    return lambda policy, safe: request.param(policy, safe, tmp_path / "deployed.onnx")


def inputs(B, n, n_features, seed=0):
    """Random inputs without padding."""
    rng = np.random.default_rng(seed)
    values = {
        "budget": rng.integers(1, 80, B),
        "X": rng.random((B, n, n_features)),
        "y": rng.standard_normal((B, n)),
        "margin": rng.standard_normal((B, n)),
    }
    values = {name: value.astype(np.float32) for name, value in values.items()}
    return values | {"mask": np.ones((B, n), dtype=bool)}


def padded(B, n, n_features, seed=0):
    """The same, the last observations of most campaigns padding."""
    values = inputs(B, n, n_features, seed)
    lengths = np.random.default_rng(seed).integers(1, n + 1, (B, 1))
    return values | {"mask": np.arange(n) < lengths}


def queried(name, safe, budget, X, y, margin, mask):
    """What a querier answers, campaign by campaign."""
    querier = AmortizedQuerier(name)
    if safe:
        querier = AmortizedSafeQuerier(name, guard=False, on_no_safe="least_unsafe")
    points = []
    for one in range(len(budget)):
        parts = [part[one][mask[one]].astype(float) for part in (X, y, margin)]
        points.append(querier.query(*parts[: 2 + safe], budget=int(budget[one]))[0])
    return np.array(points)


def by_runtime(policy, safe, budget, X, y, margin, mask):
    """What the Python path answers to all at once."""
    runtime, header = load_runtime(policy, safe=safe)
    plan = zip(budget.tolist(), mask.sum(axis=1).tolist(), strict=True)
    told = np.array([told_budget(header, left, known) for left, known in plan])
    return runtime(told, X, y, margin, mask)


ARCHITECTURES = [
    {},
    {"safe": False, "output": "tanh", "pooling": "sum"},
    {"n_features": 1},
    {"budget": False, "layers": 3},
    {"safe": False, "budget": False},
    {"n_features": 7, "standardize": False, "heads": 4},
    {"n_features": 3, "lags": ((1, 2, 0.1), (0, 1, 0.02))},
]


@pytest.mark.parametrize("kind", ["reader", "transformer"])
@pytest.mark.parametrize("options", ARCHITECTURES)
def test_any_architecture(tmp_path, deployed, options, kind):
    policy = saved(tmp_path / "p.safetensors", kind=kind, **options)
    safe, n_features = options.get("safe", True), options.get("n_features", 2)
    graph = deployed(policy, safe)
    for B, n in ((1, 1), (1, 45), (4, 7), (3, 150)):
        for values in (inputs(B, n, n_features), padded(B, n, n_features)):
            expected = by_runtime(policy, safe, **values)
            np.testing.assert_allclose(graph(**values), expected, rtol=0, atol=ROUNDING)


def test_policy_with_sobol_anchors(tmp_path, deployed):
    options = {"n_features": 3, "lead": True, "lags": ((0, 1, 0.2),)}
    policy = saved(tmp_path / "p.safetensors", **options)
    graph = deployed(policy, True)
    for n in (1, 2, 45, 150):
        values = padded(4, n, 3)
        expected = by_runtime(policy, True, **values)
        np.testing.assert_allclose(graph(**values), expected, rtol=0, atol=ROUNDING)


@pytest.mark.filterwarnings("ignore::UserWarning")
@every_shipped
def test_shipped_policies_answer_as_queries_do(deployed, safe, name):
    graph = deployed(name, safe)
    for n in (1, 5, 45, 150):
        for make in (inputs, padded):
            values = make(3, n, shipped(safe)[name], seed=n)
            values["budget"][:] = 1, 30, 200  # the last is longer than any plan
            expected = queried(name, safe, **values)
            np.testing.assert_allclose(graph(**values), expected, rtol=0, atol=ROUNDING)


@pytest.mark.filterwarnings("ignore::UserWarning")
@every_shipped
@pytest.mark.parametrize("size", [1e6, 1e20, -1e20])
def test_huge_numbers_are_clipped_as_in_query(deployed, safe, name, size):
    values = inputs(3, 9, shipped(safe)[name])
    for part in ("X", "y", "margin"):
        values[part][:, 4] = size
    expected = queried(name, safe, **values)
    np.testing.assert_allclose(deployed(name, safe)(**values), expected, rtol=0, atol=ROUNDING)


@pytest.mark.filterwarnings("ignore::UserWarning")
@every_shipped
def test_nonsense_budgets_count_as_one(deployed, safe, name):
    values = inputs(len(NONSENSE), 6, shipped(safe)[name])
    expected = queried(name, safe, **values | {"budget": np.ones(len(NONSENSE))})
    result = deployed(name, safe)(**values | {"budget": np.float32(NONSENSE)})
    np.testing.assert_allclose(result, expected, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("kind", ["reader", "transformer"])
@pytest.mark.parametrize("content", [np.nan, np.inf, -np.inf, 3e38, -3e38, 7.0])
def test_padding_is_ignored_whatever_it_is(tmp_path, deployed, content, kind):
    policy = saved(tmp_path / "p.safetensors", kind=kind)
    graph, values = deployed(policy, True), padded(5, 12, 2)
    expected = graph(**values)
    assert not values["mask"].all()
    for part in ("X", "y", "margin"):
        values[part][~values["mask"]] = content
    np.testing.assert_array_equal(graph(**values), expected)


@pytest.mark.parametrize("kind", ["reader", "transformer"])
@pytest.mark.parametrize("pooling", ["sqrt", "sum"])
def test_a_campaign_without_observations_has_no_answer(tmp_path, deployed, pooling, kind):
    policy = saved(tmp_path / "p.safetensors", pooling=pooling, kind=kind)
    graph, values = deployed(policy, True), inputs(3, 4, 2)
    expected = graph(**values)
    values["mask"][1] = False
    result = graph(**values)
    assert np.isnan(result[1]).all()
    np.testing.assert_allclose(result[[0, 2]], expected[[0, 2]], rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["reader", "transformer"])
@pytest.mark.parametrize("options", ARCHITECTURES)
def test_inputs_output_and_metadata(tmp_path, options, kind):
    policy = saved(tmp_path / "p.safetensors", kind=kind, **options)
    safe, n_features = options.get("safe", True), options.get("n_features", 2)
    session = Graph(policy, safe, tmp_path / "p.onnx").session
    shapes = {entry.name: (entry.shape, entry.type) for entry in session.get_inputs()}
    number, observed = "tensor(float)", ["B", "n"]
    assert shapes == {
        "budget": (["B"], number),
        "X": ([*observed, n_features], number),
        "y": (observed, number),
        **({"margin": (observed, number)} if safe else {}),
        "mask": (observed, "tensor(bool)"),
    }
    (output,) = session.get_outputs()
    assert (output.name, output.shape, output.type) == ("x", ["B", n_features], number)
    header = json.loads(session.get_modelmeta().custom_metadata_map["header"])
    assert header["note"] == "a"
    assert header["architecture"]["n_features"] == n_features


def test_one_file_for_old_runtimes(tmp_path):
    onnx = pytest.importorskip("onnx")
    export_onnx("safe-7d-fluid", tmp_path / "p.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["p.onnx"]
    model = onnx.load(tmp_path / "p.onnx", load_external_data=False)
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", 17)]
    assert model.ir_version == 8
    assert not any(part.external_data for part in model.graph.initializer)


def test_command_line(tmp_path, capsys):
    pytest.importorskip("onnx")
    file = tmp_path / "policy.onnx"
    assert main(["export", "safe-2d", str(file)]) == 0
    assert capsys.readouterr().out.strip() == str(file)
    assert file.stat().st_size > 100_000
    assert main(["export", "safe-99d", str(file)]) == 1
    assert "neither a preset" in capsys.readouterr().err


def test_wrong_kind(tmp_path):
    pytest.importorskip("onnx")
    policy = saved(tmp_path / "p.safetensors")
    with pytest.raises(PolicyFileError, match="AmortizedSafeQuerier"):
        export_onnx(policy, tmp_path / "p.onnx", safe=False)


@pytest.mark.parametrize("safe", [True, False, None])
def test_what_infers_hyperparameters_proposes_no_points(tmp_path, safe, capsys):
    pytest.importorskip("onnx")
    with pytest.raises(PolicyFileError, match=r"'any'.*hyperparameters"):
        export_onnx("any", tmp_path / "p.onnx", **({} if safe is None else {"safe": safe}))
    assert main(["export", "any", str(tmp_path / "p.onnx")]) == 1
    assert "hyperparameters" in capsys.readouterr().err
    assert not (tmp_path / "p.onnx").exists()


def test_without_the_package(tmp_path, monkeypatch, capsys):
    policy = saved(tmp_path / "p.safetensors")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'sklearn-asal\[onnx\]'"):
        export_onnx(policy, tmp_path / "p.onnx")
    assert main(["export", str(policy), str(tmp_path / "p.onnx")]) == 1
    assert "sklearn-asal[onnx]" in capsys.readouterr().err
