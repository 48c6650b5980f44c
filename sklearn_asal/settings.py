"""Shields results from the numeric settings of the calling program."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import numpy as np

from .threads import one_thread

# What users set with np.seterr must not change an answer.
_ERRORS: dict[str, Any] = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}

_P = ParamSpec("_P")
_T = TypeVar("_T")


def numpy_defaults(method: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorator: NumPy handles floating-point errors as it does by default.

    Parameters
    ----------
    method : callable

    Returns
    -------
    callable
    """

    # Not a decorator of NumPy's, whose frame would end the search for the user's line in warnings.
    @functools.wraps(method)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        with np.errstate(**_ERRORS):
            return method(*args, **kwargs)

    return wrapped


@contextlib.contextmanager
def own_settings() -> Iterator[None]:
    """One thread of linear algebra, and neither errors nor warnings from NumPy.

    Kernels of distant points underflow, as they should, whatever ``np.seterr`` says. The number
    of threads changes how sums are rounded.
    """
    with one_thread(), np.errstate(all="ignore"):
        yield
