import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from sklearn_asal.trainer.simulator import draw_batches
from sklearn_asal.trainer.step import loss_gradient

from . import rank as one_rank

ROOT = Path(__file__).parents[2]


def torchrun(n, *command):
    """Run real processes over gloo."""
    start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *start, *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("n", [2, 3])
def test_everyone_gets_the_gradient_of_the_joint_batch(n, tmp_path):
    done = torchrun(n, one_rank.__file__, str(tmp_path))
    assert done.returncode == 0, done.stderr
    preset, policy = one_rank.PRESET, one_rank.network()
    parts = []
    for number in range(n):
        counts = (preset.n_kernels // n, preset.n_functions, preset.n_noises)
        (tasks,) = draw_batches(preset, 1, counts, one_rank.generator(number))
        parts.append(loss_gradient(policy, tasks, preset))
    joint = torch.stack(parts).mean(0)
    norm = joint[2:].norm()
    for number in range(n):
        found = torch.load(tmp_path / f"{number}.pt", weights_only=True)
        torch.testing.assert_close(found["result"], torch.cat([joint[:2], norm[None]]))
        expected = joint[2:] * (preset.clip_norm / norm).clamp(max=1)
        torch.testing.assert_close(found["gradient"], expected)


def train(out, *options):
    sizes = (
        "--max-budget 4 --n-init 2 --embedding 16 --hidden 8 --heads 2 --n-fourier 20 --warmup 1"
    )
    return torchrun(
        2,
        *f"-m sklearn_asal train safe-2d --out {out} --device cpu --threads 1".split(),
        *f"--validate-every 2 --validation-tasks 8 {sizes}".split(),
        *options,
    )


def test_training_with_two_processes(tmp_path):
    out = tmp_path / "run"
    done = train(out, "--steps", "4")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("best validation objective") == 1
    with (out / "log.csv").open(newline="") as file:
        assert [row["step"] for row in csv.DictReader(file)] == ["1", "2", "3", "4"]
    assert (out / "policy.safetensors").exists()
    states = torch.load(out / "state.pt", weights_only=True)["tasks"]
    assert not torch.equal(*(state["generator"] for state in states))


def test_batch_that_cannot_be_divided(tmp_path):
    done = train(tmp_path / "run", "--n-kernels", "5")
    assert done.returncode != 0
    assert "n_kernels=5 has to be a multiple of the 2 processes" in done.stderr
