"""Parameters and arrays as JSON, and back to the last bit."""

import dataclasses
import importlib
import math
import os

import numpy as np
from scipy.optimize import LinearConstraint

from ..space import Grid

# Names of what JSON has no type for begin so.
_MARK = "__"
#: Stands for a parameter that could not be written, and has to be passed again.
MISSING = {"__not_written__": True}

_PACKAGES = "sklearn_asal", "sklearn"


def encoded(value):
    """A value as what JSON can hold.

    Parameters
    ----------
    value : object
        Plain values, lists, tuples, dicts, arrays, generators of random numbers, kinds of
        features, linear constraints, and estimators of this package or of scikit-learn.

    Returns
    -------
    object

    Raises
    ------
    TypeError
        Anything else, such as a function.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, np.bool_):
        return int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if math.isfinite(number) else {"__float__": repr(number)}
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple)):
        parts = [encoded(one) for one in value]
        return parts if isinstance(value, list) else {"__tuple__": parts}
    if isinstance(value, dict):
        return {"__dict__": [[encoded(key), encoded(one)] for key, one in value.items()]}
    if isinstance(value, np.ndarray):
        return {"__array__": encoded(value.tolist()), "dtype": value.dtype.str}
    if isinstance(value, np.random.Generator):
        return {"__generator__": encoded(value.bit_generator.state)}
    if isinstance(value, np.random.RandomState):
        return {"__random_state__": encoded(value.get_state(legacy=False))}
    if isinstance(value, LinearConstraint):
        matrix = value.A.toarray() if hasattr(value.A, "toarray") else np.asarray(value.A)
        parts = [encoded(np.asarray(part, float)) for part in (matrix, value.lb, value.ub)]
        return {"__linear_constraint__": parts}
    return _of_a_class(value)


def _of_a_class(value):
    kind = type(value)
    if kind.__module__.partition(".")[0] not in _PACKAGES:
        raise TypeError(f"{value!r} cannot be written as JSON")
    if isinstance(value, Grid):
        arguments = {"values": value.levels.tolist(), "log": value.log}
    elif dataclasses.is_dataclass(value):
        arguments = {part.name: getattr(value, part.name) for part in dataclasses.fields(value)}
    elif hasattr(value, "get_params"):
        arguments = value.get_params(deep=False)
    else:
        raise TypeError(f"{value!r} cannot be written as JSON")
    arguments = {name: encoded(one) for name, one in arguments.items()}
    return {"__class__": f"{kind.__module__}:{kind.__qualname__}", "arguments": arguments}


def decoded(value):
    """What :func:`encoded` was given.

    Parameters
    ----------
    value : object

    Returns
    -------
    object

    Raises
    ------
    ValueError
        Something that this version does not know.
    """
    if isinstance(value, list):
        return [decoded(one) for one in value]
    if not isinstance(value, dict):
        return value
    name = next(iter(value), "")
    inner = value.get(name)
    if name == "__float__":
        return float(inner)
    if name == "__tuple__":
        return tuple(decoded(inner))
    if name == "__dict__":
        return {_key(key): decoded(one) for key, one in inner}
    if name == "__array__":
        return np.array(decoded(inner), dtype=np.dtype(value["dtype"]))
    if name == "__generator__":
        state = decoded(inner)
        generator = np.random.Generator(getattr(np.random, state["bit_generator"])())
        generator.bit_generator.state = state
        return generator
    if name == "__random_state__":
        random_state = np.random.RandomState()
        random_state.set_state(decoded(inner))
        return random_state
    if name == "__linear_constraint__":
        return LinearConstraint(*decoded(inner))
    if name == "__class__":
        module, _, kind = inner.partition(":")
        if module.partition(".")[0] not in _PACKAGES:
            raise ValueError(f"{inner} is no class of {' or '.join(_PACKAGES)}")
        found = getattr(importlib.import_module(module), kind)
        return found(**{key: decoded(one) for key, one in value["arguments"].items()})
    raise ValueError(f"{name!r} is unknown")


def _key(key):
    key = decoded(key)
    return tuple(key) if isinstance(key, list) else key


def rows(array):
    """An array of measurements as lists, with None for what was not measured.

    Parameters
    ----------
    array : ndarray or None

    Returns
    -------
    list or None
    """
    if array is None:
        return None
    if array.dtype.kind == "b":
        return array.tolist()
    if array.ndim == 2:
        return [rows(row) for row in array]
    return [_measured(value) for value in array.tolist()]


def _measured(value):
    return None if isinstance(value, float) and value != value else value
