"""Several processes that train one policy, as started by ``torchrun``."""

import contextlib
import os

import torch
from torch import distributed


def n_ranks():
    """Number of processes that train together.

    Returns
    -------
    int
    """
    return distributed.get_world_size() if distributed.is_initialized() else 1


def rank():
    """Number of this process among those that train together.

    Returns
    -------
    int
    """
    return distributed.get_rank() if distributed.is_initialized() else 0


def broadcast(value):
    """Rank 0's value, on every rank.

    Parameters
    ----------
    value : object
        Picklable.

    Returns
    -------
    object
    """
    if n_ranks() == 1:
        return value
    values = [value]
    distributed.broadcast_object_list(values)
    return values[0]


def gather(value):
    """Every rank's value, on every rank.

    Parameters
    ----------
    value : object
        Picklable.

    Returns
    -------
    list of object
    """
    values = [value]
    if n_ranks() > 1:
        values = [None] * n_ranks()
        distributed.all_gather_object(values, value)
    return values


def mean(tensor):
    """Mean of a tensor over the ranks.

    Parameters
    ----------
    tensor : Tensor
        Overwritten where there are several.

    Returns
    -------
    Tensor
    """
    if n_ranks() == 1:
        return tensor
    distributed.all_reduce(tensor)
    return tensor / n_ranks()


@contextlib.contextmanager
def joined(device):
    """Join the other processes if ``torchrun`` started this one, and leave them at the end.

    Parameters
    ----------
    device : str
        "cuda" becomes the card of this process.

    Yields
    ------
    str
        The device to train on.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield device
        return
    if device == "cuda":
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        yield device
    finally:
        distributed.destroy_process_group()
