"""One thread for operations of torch, and the previous number afterwards."""

import contextlib

import torch


@contextlib.contextmanager
def one_torch_thread():
    """Context manager, or decorator, that caps the threads of each operation at one.

    Operations this small gain nothing from more, and on busy cores threads that wait for each
    other cost a lot. Their number also changes the last digits.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
