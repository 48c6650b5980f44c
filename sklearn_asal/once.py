"""Attributes that are worked out once."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

_T = TypeVar("_T")


class once(Generic[_T]):
    """Decorator: a property that is worked out when it is first asked for, and kept.

    Like :class:`functools.cached_property` of Python 3.12. That of earlier versions holds a lock,
    which a process that is forked meanwhile would wait for in vain.

    Parameters
    ----------
    method : callable
        Of the instance; two threads that ask at once both call it.
    """

    def __init__(self, method: Callable[[Any], _T]) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "once[_T]": ...

    @overload
    def __get__(self, instance: object, owner: type) -> _T: ...

    def __get__(self, instance: object | None, owner: type) -> "once[_T] | _T":
        if instance is None:
            return self
        value = self.method(instance)
        # From now on the instance's own attribute comes first.
        instance.__dict__[self.name] = value
        return value
