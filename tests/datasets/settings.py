"""Settings of the program around, none of which may change an answer or an error."""

import contextlib
import warnings

import numpy as np
import sklearn
import torch
from threadpoolctl import threadpool_limits


@contextlib.contextmanager
def _warnings_as_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@contextlib.contextmanager
def _torch_in_double_precision():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def _three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with threadpool_limits(3):
            yield
    finally:
        torch.set_num_threads(before)


SETTINGS = {
    "floating-point errors raise": lambda: np.errstate(all="raise"),
    "everything is taken for finite": lambda: sklearn.config_context(assume_finite=True),
    "two digits are printed": lambda: np.printoptions(precision=2, suppress=True, legacy="1.21"),
    "torch in double precision": _torch_in_double_precision,
    "warnings are errors": _warnings_as_errors,
    "three threads": _three_threads,
}
