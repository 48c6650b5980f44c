"""Names of features and limits: what may have been meant, and values by name."""

import difflib
from collections.abc import Mapping
from typing import Any

import numpy as np


def titled(j: int, names: Any) -> str:
    """What messages call a feature.

    Parameters
    ----------
    j : int
        Its position.
    names : sequence of str or None
        Names of all features, where they have any.

    Returns
    -------
    str

    Examples
    --------
    >>> from sklearn_asal.names import titled
    >>> titled(1, None), titled(1, ["rpm", "load"])
    ('feature 1', "feature 'load'")
    """
    return f"feature {j}" if names is None else f"feature {names[j]!r}"


def suggestion(name, known):
    """The end of a sentence: what may have been meant by a name that is not known.

    Parameters
    ----------
    name : str
    known : sequence of str

    Returns
    -------
    str
        A full stop, and maybe one more sentence.

    Examples
    --------
    >>> from sklearn_asal.names import suggestion
    >>> suggestion("rmp", ["rpm", "load"])
    '. Did you mean rpm?'
    """
    lower = {other.lower(): other for other in known}
    close = difflib.get_close_matches(name.lower(), lower, n=3)
    close += [other for other in lower if name.lower() in other and other not in close]
    return f". Did you mean {' or '.join(lower[other] for other in close)}?" if close else "."


def difference(given, known):
    """How names differ from those that are known, in words.

    Parameters
    ----------
    given, known : sequence of str

    Returns
    -------
    str
        Sentences that begin with a space; empty where both are the same, in whatever order.

    Examples
    --------
    >>> from sklearn_asal.names import difference
    >>> difference(["rmp", "load"], ["rpm", "load"])
    " There is no 'rpm'. Nothing is known of 'rmp'. Did you mean rpm?"
    """
    missing = [name for name in known if name not in given]
    other = [name for name in given if name not in known]
    text = f" There is no {', '.join(map(repr, missing))}." if missing else ""
    if other:
        text += f" Nothing is known of {', '.join(map(repr, other))}"
        text += suggestion(str(other[0]), missing or known)
    return text


def in_order(values: Any, names: Any, what: str) -> Any:
    """A dict of values by name as a row, in the order of the names.

    Parameters
    ----------
    values : object
        Anything but a dict is returned as it is. A value is a number, or a sequence of them.
    names : sequence of str or None
        Names of the columns, where they have any.
    what : str
        What the user calls the values.

    Returns
    -------
    object
        A list for numbers, an array of shape (n, n_columns) for sequences.

    Raises
    ------
    ValueError
        There are no names, or others.
    """
    if not isinstance(values, Mapping):
        return values
    if names is None:
        raise ValueError(
            f"{what} is a dict, but there are no names. State bounds as a dict by name, pass a "
            f"table to fit, or pass {what} as an array."
        )
    if set(values) != set(names):
        raise ValueError(
            f"{what} has {list(values)}, but {list(names)} are needed."
            f"{difference(list(values), list(names))}"
        )
    row = [values[name] for name in names]
    if all(np.ndim(value) == 0 for value in row):
        return row
    lengths = {name: len(np.atleast_1d(values[name])) for name in names}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{what} has columns of different lengths: {lengths}.")
    return np.column_stack(row)
