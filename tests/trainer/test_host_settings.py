"""Global settings of the host change no result of training, evaluation, export and answers."""

import contextlib
import csv
import locale
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn
import torch

from sklearn_asal.__main__ import main
from sklearn_asal.policies import load_policy
from sklearn_asal.policies.export import DeployedPolicy
from sklearn_asal.policies.registry import load_runtime
from sklearn_asal.trainer.evaluate import evaluate
from sklearn_asal.trainer.loop import Trainer
from sklearn_asal.trainer.plot import plot_run
from sklearn_asal.trainer.presets import PRESETS, Preset

SIZES = {
    "n_kernels": 4,
    "n_functions": 1,
    "embedding": 16,
    "hidden": 16,
    "heads": 2,
    "n_fourier": 20,
    "max_budget": 4,
    "direct_steps": 2,
    "steps": 4,
    "warmup": 1,
}
RUNS = {
    "safe": Preset(objective="S_Imean", n_grid=9, average=0.5, **SIZES),
    "transformer": Preset(kind="transformer", **SIZES),
    "unconstrained": PRESETS["2d"].replace(n_grid=9, **SIZES),
    "dad": PRESETS["dad-2d"].replace(n_contrastive=5, **SIZES),
}


@contextlib.contextmanager
def setting(get, put, value):
    """A global setting for a while."""
    before = get()
    put(value)
    try:
        yield
    finally:
        put(before)


@contextlib.contextmanager
def strict_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


SETTINGS = {
    "double precision": lambda: setting(
        torch.get_default_dtype, torch.set_default_dtype, torch.float64
    ),
    "one thread": lambda: setting(torch.get_num_threads, torch.set_num_threads, 1),
    "three threads": lambda: setting(torch.get_num_threads, torch.set_num_threads, 3),
    "no gradients": lambda: setting(torch.is_grad_enabled, torch.set_grad_enabled, False),
    "floating-point errors": lambda: np.errstate(all="raise"),
    "strict warnings": strict_warnings,
    "finite data": lambda: sklearn.config_context(assume_finite=True),
    "locale": lambda: setting(
        lambda: locale.setlocale(locale.LC_ALL),
        lambda name: locale.setlocale(locale.LC_ALL, name),
        "C",
    ),
}


def results(preset, out):
    """All that a run leaves, but times."""
    Trainer(preset, out, validate_every=2, validation_tasks=8, progress=False, threads=1).run()
    with (out / "log.csv").open(newline="", encoding="utf-8") as file:
        log = [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]
    (network, header), (runtime, _) = (
        load(out / "policy.safetensors", safe=preset.safe) for load in (load_policy, load_runtime)
    )
    rng = np.random.default_rng(0)
    X, y, z = (rng.random((3, 7, 2)), *rng.standard_normal((2, 3, 7)))
    values = [y, z][: 1 + preset.safe]
    inputs = [torch.from_numpy(part.astype(np.float32)) for part in (np.full(3, 4.0), X, *values)]
    deployed = DeployedPolicy(network, header)(*inputs, torch.ones(3, 7, dtype=torch.bool))
    alone = runtime.decide(4.0, runtime.tokens(runtime.rows(X[0], y[0], z[0], 1e6)))
    assert plot_run(out).stat().st_size > 0
    return {
        "log": log,
        "weights": {key: value.numpy() for key, value in network.state_dict().items()},
        "evaluation": evaluate(network, preset, 20),
        "deployed": deployed.numpy(),
        "answers": runtime(np.full(3, 4.0), X, y, z),
        "alone": alone,
    }


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return {name: results(p, tmp_path_factory.mktemp(name) / "run") for name, p in RUNS.items()}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("host", SETTINGS)
def test_results_stay(tmp_path, expected, name, host):
    with SETTINGS[host]():
        found = results(RUNS[name], tmp_path / "run")
    np.testing.assert_equal(found, expected[name])
    for part in (*found["weights"].values(), found["deployed"], found["answers"]):
        assert part.dtype == np.float32


@pytest.mark.parametrize("name", ["safe", "transformer"])
@pytest.mark.parametrize("host", SETTINGS)
def test_exported_files_stay(tmp_path, name, host):
    pytest.importorskip("onnx")
    files = [str(tmp_path / file) for file in ("policy.safetensors", "usual.onnx", "here.onnx")]
    Trainer(RUNS[name], tmp_path, validation_tasks=8, progress=False, threads=1).run()
    assert main(["export", files[0], files[1]]) == 0
    with SETTINGS[host]():
        assert main(["export", files[0], files[2]]) == 0
    assert Path(files[1]).read_bytes() == Path(files[2]).read_bytes()


ALL = """
import sys, warnings
from sklearn_asal.__main__ import main

warnings.filterwarnings("error", category=EncodingWarning, module="sklearn_asal")
run = ["train", "safe-2d", "--out", sys.argv[1], "--steps", "2", "--validate-every", "1"]
run += "--batch 4 --max-budget 3 --embedding 8 --hidden 8 --heads 2 --validation-tasks 2".split()
policy = sys.argv[1] + "/policy.safetensors"
for command in (run, [*run, "--resume"], ["train", "--plot", sys.argv[1]], ["info", policy]):
    assert main(command) == 0
"""


@pytest.mark.parametrize("variables", [{"LC_ALL": "C"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_files_are_read_and_written_in_a_stated_encoding(tmp_path, variables):
    command = [sys.executable, "-X", "warn_default_encoding", "-c", ALL, str(tmp_path / "run")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "curves.png").exists()
