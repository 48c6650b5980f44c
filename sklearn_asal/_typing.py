"""Types that several public signatures share."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
StrPath = str | os.PathLike[str]
RandomState = int | np.random.RandomState | np.random.Generator | None

# Constructor parameters of queriers.
if TYPE_CHECKING:
    from .space import Feature

    # A list of pairs and kinds of features is a list of objects to a type checker.
    Bounds = ArrayLike | Feature | Sequence[Any] | Mapping[str, Any] | None
else:
    Bounds = Any
Location = float | Literal["auto"]
Scale = float | Literal["auto"]
Side = Literal["above", "below"]
Sides = Side | Sequence[Side]
Thresholds = float | Sequence[float] | NDArray[Any]
Scales = Thresholds | Literal["auto"]

# How runs ended, of ``tell``.
Statuses = str | Sequence[str] | NDArray[Any]


class Surrogate(Protocol):
    """What every surrogate has; see :mod:`sklearn_asal.surrogates`."""

    def fit(self, X: Any, y: Any, /) -> Any: ...

    def predict(self, X: Any, /) -> Any: ...
