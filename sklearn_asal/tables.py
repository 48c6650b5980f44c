"""Tables in, tables out."""

import importlib

from .validation import column_names

# Libraries whose tables proposals may be.
_LIBRARIES = "pandas", "polars"


def library_of(data):
    """The library that a table with names for its columns is of.

    Parameters
    ----------
    data : object

    Returns
    -------
    {"pandas", "polars"} or None
        None for all else, and where two columns have one name.
    """
    library = type(data).__module__.partition(".")[0]
    names = column_names(data) if library in _LIBRARIES else None
    return None if names is None or len(set(names)) < len(names) else library


def check_output(transform):
    """Raise unless proposals can be returned so.

    Parameters
    ----------
    transform : object

    Raises
    ------
    ValueError
        Not "default", "pandas" or "polars".
    """
    if transform not in ("default", *_LIBRARIES):
        raise ValueError(f"transform must be 'default', 'pandas' or 'polars', got {transform!r}.")


def table(points, library, names, whole):
    """Proposals as a table.

    Parameters
    ----------
    points : ndarray of shape (n, n_features)
    library : {"pandas", "polars"}
    names : sequence of str or None
        None means x0, x1, ...
    whole : sequence of bool of shape (n_features,)
        Which features are whole numbers.

    Returns
    -------
    pandas.DataFrame or polars.DataFrame

    Raises
    ------
    ImportError
        The library is not installed.
    """
    names = [f"x{j}" for j in range(points.shape[1])] if names is None else list(names)
    columns = zip(names, points.T, whole, strict=True)
    columns = {name: column.astype(int) if w else column for name, column, w in columns}
    return importlib.import_module(library).DataFrame(columns)
