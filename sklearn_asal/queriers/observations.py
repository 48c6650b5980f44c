"""What was told: one record that is never changed, only replaced."""

from typing import Any, Generic, NamedTuple, NoReturn, TypeVar, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from .._typing import FloatArray, IntArray
from .cut_short import joined

_T = TypeVar("_T")


class _Parts(NamedTuple):
    X: FloatArray
    y: FloatArray
    z: NDArray[Any] | None
    status: NDArray[np.str_]
    rows: IntArray
    n_init: int


class Told(_Parts):
    """The observations of a campaign, in the user's units.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        Inputs. Read-only from now on, as all arrays here.
    y : ndarray of shape (n,)
        Outputs; NaN where none was measured.
    z : ndarray of shape (n,) or (n, n_limits), or None
        Safety measurements.
    status : ndarray of str of shape (n,)
        How each run ended.
    rows : ndarray of int of shape (n,)
        Of the pool, -1 where that is unknown.
    n_init : int
        The first so many are initial observations.
    """

    __slots__ = ()

    def __new__(cls, X, y, z, status, rows, n_init):
        # Here, so that those of a pickle are read-only as well.
        for part in (X, y, z, status, rows):
            if part is not None:
                part.setflags(write=False)
        return super().__new__(cls, X, y, z, status, rows, n_init)

    @property
    def n_told(self) -> int:
        """Observations told since ``fit``."""
        return len(self.X) - self.n_init

    @property
    def data(self):
        """Inputs, outputs, safety measurements and status."""
        return self[:4]

    def joined(self, X, y, z, status, rows):
        """With further observations.

        Parameters
        ----------
        X, y, z, status, rows
            See the class.

        Returns
        -------
        Told
        """
        new = X, y, z, status, rows
        return Told(*map(joined, self[:5], new), self.n_init)


class Part(Generic[_T]):
    """A part of what a querier was told, as a read-only attribute of it.

    Parameters
    ----------
    part : str
        Name of the part in :class:`Told`.
    """

    def __init__(self, part: str) -> None:
        self.part = part
        self.__doc__ = f"See :attr:`Told.{part}`."

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "Part[_T]": ...

    @overload
    def __get__(self, instance: object, owner: type) -> _T: ...

    def __get__(self, instance: object | None, owner: type) -> "Part[_T] | _T":
        if instance is None:
            return self
        told = instance.__dict__.get("_told")
        if told is None:
            raise NotFittedError(
                f"{type(instance).__name__} has no {self.name} yet: call fit(X, y) first."
            )
        return getattr(told, self.part)

    def __set__(self, instance: object, value: object) -> NoReturn:
        raise self._refusal("set")

    def __delete__(self, instance: object) -> NoReturn:
        raise self._refusal("deleted")

    def _refusal(self, done):
        return AttributeError(
            f"{self.name} is read-only and cannot be {done}: fit starts a campaign, and tell adds "
            "an observation."
        )
