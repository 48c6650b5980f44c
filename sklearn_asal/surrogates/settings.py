"""Numeric settings of the program around, which have no say in what a surrogate answers."""

import contextlib
from collections.abc import Iterator

import numpy as np

from .threads import one_thread


@contextlib.contextmanager
def own_settings() -> Iterator[None]:
    """One thread of linear algebra, and neither errors nor warnings from NumPy.

    Kernels of distant points underflow, as they should, whatever ``np.seterr`` says. The number
    of threads changes how sums are rounded.
    """
    with one_thread(), np.errstate(all="ignore"):
        yield
