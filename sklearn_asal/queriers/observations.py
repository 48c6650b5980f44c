"""What was told: one record that is never changed, only replaced."""

from typing import Any, Generic, NamedTuple, NoReturn, TypeVar, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from .._typing import FloatArray, IntArray
from .cut_short import joined, tidied

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

    def joined(self, data, rows):
        """With further observations.

        Parameters
        ----------
        data : tuple
            Inputs, outputs, safety measurements and status.
        rows : ndarray of int
            Of the pool.

        Returns
        -------
        Told
        """
        return Told(*map(joined, self[:5], (*data, rows)), self.n_init)

    def without(self, positions):
        """Less some observations.

        Parameters
        ----------
        positions : ndarray of int of shape (k,)

        Returns
        -------
        Told
        """
        kept = np.ones(len(self.X), dtype=bool)
        kept[positions] = False
        X, y, z, status, rows = (None if part is None else part[kept] for part in self[:5])
        z = None if z is None else tidied(z, status)
        return Told(X, y, z, status, rows, int(kept[: self.n_init].sum()))

    def corrected(self, positions, y, z, status):
        """With other outcomes of some observations.

        Parameters
        ----------
        positions : ndarray of int of shape (k,)
        y : ndarray of shape (k,)
        z : ndarray of shape (k,) or (k, n_limits), or None
        status : ndarray of str of shape (k,)

        Returns
        -------
        Told
            Of arrays of its own: the inputs tell a record from another.
        """
        X, y_, z_, status_, rows = (None if part is None else part.copy() for part in self[:5])
        y_[positions], status_[positions] = y, status
        if z_ is not None:
            z_ = z_ if z_.dtype == z.dtype else z_.astype(object)
            z_[positions] = z
            z_ = tidied(z_, status_)
        return Told(X, y_, z_, status_, rows, self.n_init)


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
            f"{self.name} is read-only and cannot be {done}: fit starts a campaign, tell adds an "
            "observation, correct mends one, and forget takes one back."
        )
