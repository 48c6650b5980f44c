"""What one of several processes does in test_distributed.py."""

import sys

import torch

from sklearn_asal.trainer.distributed import joined, rank
from sklearn_asal.trainer.presets import Preset
from sklearn_asal.trainer.step import Step, TaskStream

PRESET = Preset(
    n_init=3,
    n_functions=2,
    n_kernels=6,
    max_budget=4,
    embedding=16,
    hidden=8,
    heads=2,
    n_fourier=20,
)


def network():
    torch.manual_seed(0)
    return PRESET.replace(centre_gain=1.0).network()


def generator(number):
    return torch.Generator().manual_seed(number)


if __name__ == "__main__":
    with joined("cpu"):
        policy = network()
        result = Step(policy, PRESET)(next(TaskStream(PRESET, generator(rank()))))
        gradient = torch.cat([p.grad.flatten() for p in policy.parameters()])
        torch.save({"result": result, "gradient": gradient}, f"{sys.argv[1]}/{rank()}.pt")
