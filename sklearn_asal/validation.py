"""What users pass: arrays of numbers, tables with named columns, whole numbers."""

import contextlib
import datetime
import math
import re
from numbers import Integral

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array, check_scalar

from .names import difference

_DATES = datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64


def column_names(data):
    """Names of a table's columns.

    Parameters
    ----------
    data : object
        pandas, polars and pyarrow tables have named columns, and so has whatever offers the
        dataframe interchange protocol.

    Returns
    -------
    list of str or None
        None for arrays and lists, and where a name is not text.
    """
    if isinstance(data, (np.ndarray, list, tuple)):
        return None
    # The columns of a pyarrow table are arrays; its names come first, therefore.
    names = getattr(data, "column_names", getattr(data, "columns", None))
    if (names is None or callable(names)) and hasattr(data, "__dataframe__"):
        names = data.__dataframe__().column_names()
    if names is None or callable(names):
        return None
    names = list(names)
    return names if names and all(isinstance(name, str) for name in names) else None


def table_columns(data):
    """The columns of a table, each an array of its own type.

    Parameters
    ----------
    data : object

    Returns
    -------
    list of ndarray or None
        None for what is no table, or has no columns to be had by name.
    """
    names = column_names(data)
    if names is None or len(set(names)) < len(names) or not hasattr(data, "__getitem__"):
        return None
    return [np.asarray(data[name]) for name in names]


def check_feature_names(data, name, expected):
    """Raise if a table names its features otherwise than ``fit`` had them.

    Parameters
    ----------
    data : object
        Anything but a table with names for its columns passes.
    name : str
        What the user calls it.
    expected : sequence of str or None
        None lets everything pass.

    Raises
    ------
    ValueError
        Other names, or another order.
    """
    names = None if expected is None else column_names(data)
    if names is not None and names != list(expected):
        raise ValueError(
            "The feature names should match those that were passed during fit: "
            f"{name} has {names}, fit had {list(expected)}.{difference(names, list(expected))}"
        )


def finite_array(data, name, *, ndim=2, missing=False):
    """Copy finite real numbers into a float64 array, or say what is wrong with which input.

    Parameters
    ----------
    data : array-like
    name : str
        What the user calls it; part of every error message.
    ndim : {1, 2}, default=2
        2 demands rows and columns; 1 leaves the shape to the caller.
    missing : bool, default=False
        Whether values may be missing, of whatever kind; they become NaN.

    Returns
    -------
    ndarray of float64

    Raises
    ------
    TypeError, ValueError
        Sparse, complex, text, dates, missing, infinite, empty, or of the wrong dimension.
    """
    if data is None:
        raise ValueError(f"{name} is None; an array of numbers is needed.")
    dimensions = (1, 2) if ndim == 1 else (2,)  # of all else scikit-learn says what is wrong
    plain = type(data) is np.ndarray and data.dtype == np.float64
    if plain and data.ndim in dimensions and data.size:
        # What a control loop passes: the checks below take longer than a policy's answer.
        if np.isfinite(data).all():
            return np.array(data, order="C")
    with _named(name):
        if issparse(data):
            check_array(data, input_name=name)  # raises
        array = _screened(_unmasked(data) if missing else data, name, missing)
        if array.dtype.kind not in "biuf" or array.ndim not in dimensions or not array.size:
            array = check_array(
                array,
                dtype="numeric",
                ensure_2d=ndim == 2,
                allow_nd=ndim != 2,
                ensure_all_finite=False,
                input_name=name,
            )
        with np.errstate(over="ignore"):
            # One memory layout, for the last digit of a sum may depend on it.
            array = np.array(array, dtype=np.float64, order="C")
    # Not left to check_array, which can be told to take everything for finite.
    if not np.isfinite(array).all():
        n_missing, n_infinite = int(np.isnan(array).sum()), int(np.isinf(array).sum())
        if n_missing and not missing:
            raise ValueError(_of_missing(name, n_missing, array.size))
        if n_infinite:
            raise ValueError(
                f"Input {name} contains infinity or a value too large for float64: "
                f"{n_infinite} of {array.size} entries."
            )
    return array


@contextlib.contextmanager
def _named(name):
    """Errors name the input."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        named = re.search(rf"\b{name}\b", str(error))
        raise kind(str(error) if named else f"{name}: {error}") from error


def _screened(data, name, missing=False):
    """An array in which nothing but NaN, if values may be missing, stands for no number."""
    _refuse_masked(data, name)
    # Some tables make numbers of dates where other columns hold numbers.
    columns = table_columns(data)
    raw = np.asarray(data) if columns is None else None
    if any(map(_holds_dates, [raw] if columns is None else columns)):
        raise ValueError(
            f"{name} holds dates or durations. Convert them to numbers, such as the seconds since "
            "the start of the campaign."
        )
    raw = np.column_stack(columns) if raw is None else raw
    values = raw.ravel().tolist() if raw.dtype.kind in "OSU" else ()
    for i, value in enumerate(values):
        if isinstance(value, (str, bytes)):
            row = i // (raw.shape[1] if raw.ndim == 2 else 1)
            raise ValueError(
                f"{name}: text where numbers are needed, {value!r} in row {row}. Convert it to a "
                "number, or leave the row out."
            )
    n_missing = sum(map(is_missing, values))
    if n_missing:
        if not missing:
            raise ValueError(_of_missing(name, n_missing, raw.size))
        filled = [np.nan if is_missing(value) else value for value in values]
        raw = np.array(filled, dtype=object).reshape(raw.shape)
    return raw


def _unmasked(data):
    """The same with NaN in place of what is masked."""
    if isinstance(data, np.ma.MaskedArray):
        return data.astype(object).filled(np.nan)[()]  # a single one is no array
    if isinstance(data, (list, tuple)) and _n_masked(data):
        return [_unmasked(part) for part in data]
    return data


def _refuse_masked(data, name):
    # Before any conversion, in which NumPy warns of masks or drops them.
    n_masked = _n_masked(data)
    if n_masked:
        raise ValueError(_of_missing(name, n_masked, _size(data)))


def _n_masked(data):
    if isinstance(data, np.ma.MaskedArray):
        return int(np.ma.count_masked(data))
    return sum(map(_n_masked, data)) if isinstance(data, (list, tuple)) else 0


def _size(data):
    if isinstance(data, (list, tuple)):
        return sum(map(_size, data))
    return data.size if isinstance(data, np.ndarray) else 1


def _holds_dates(array):
    if array.dtype != object:
        return array.dtype.kind in "mM"
    # NaT is not equal to itself.
    return any(isinstance(value, _DATES) and value == value for value in array.ravel().tolist())


def is_missing(value):
    """Whether a value stands for no value: None, NaN, NA, NaT or masked.

    Parameters
    ----------
    value : object

    Returns
    -------
    bool
    """
    if value is None or value is np.ma.masked or type(value).__name__ == "NAType":
        return True
    return isinstance(value, (float, np.floating, *_DATES)) and value != value


def _of_missing(name, n_missing, size):
    return (
        f"Input {name} contains NaN or other missing values (None, NA, NaT, masked): {n_missing} "
        f"of {size} entries. Leave these rows out."
    )


def as_rows(data, n_columns):
    """Make a single row, or a column where there is one only, two-dimensional.

    Parameters
    ----------
    data : array-like or None
    n_columns : int

    Returns
    -------
    array-like or None
        A labelled row becomes a table, so that its names can be checked.
    """
    if data is None or column_names(data) is not None:
        return data
    if hasattr(data, "iloc") and data.ndim == 1 and n_columns > 1:
        return data.to_frame().T
    if not isinstance(data, np.ndarray):
        if _n_masked(data):  # validation says so with a name, and of ragged lists
            return data
        try:
            raw = np.asarray(data)
        except ValueError:
            return data
        if raw.ndim > 1:
            return data
        # A list may hold booleans beside numbers, which one type cannot.
        mixed = isinstance(data, (list, tuple)) and any(map(_is_bool, data))
        data = np.array(data, dtype=object) if mixed else raw
    return data.reshape((-1, 1) if n_columns == 1 else (1, -1)) if data.ndim < 2 else data


def observations(X, y, z=None, x_name="X", missing=False):
    """Validate observations.

    Parameters
    ----------
    X : array-like of shape (n, n_features)
    y : array-like of shape (n,) or (n, 1)
    z : array-like of shape (n,) or (n, n_limits), optional
    x_name : str, default="X"
        What the user calls the inputs.
    missing : bool, default=False
        Whether outputs may be missing.

    Returns
    -------
    X : ndarray of shape (n, n_features)
        A copy, as all of them.
    y : ndarray of shape (n,)
        NaN where it is missing.
    z : ndarray of shape (n,) or (n, n_limits), or None
        See :func:`safety_signals`. A single column becomes one-dimensional.

    Raises
    ------
    TypeError, ValueError
        Naming the input at fault.
    """
    X = finite_array(X, x_name)
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = finite_array(listed(y, missing), "y", ndim=1, missing=missing)
    y = check_lengths(y, "y", 1, len(X), x_name)
    if z is not None:
        z = check_lengths(safety_signals(listed(z)), "z", 2, len(X), x_name)
    return X, y, z


def listed(data, missing=False):
    """A single number as a list of one.

    Parameters
    ----------
    data : object
    missing : bool, default=False
        Whether it may be missing.

    Returns
    -------
    array-like
    """
    if isinstance(data, float):  # an array is checked faster
        return np.array([data])
    if missing and not isinstance(data, (np.ndarray, list, tuple)) and is_missing(data):
        return np.array([np.nan])
    if getattr(data, "ndim", None) == 0:
        return data.reshape(1)
    return [data] if np.isscalar(data) else data


def check_lengths(values, name, most_dimensions, n, x_name):
    """Raise unless there is one entry for each observation.

    Parameters
    ----------
    values : ndarray
    name : str
        What the user calls them.
    most_dimensions : {1, 2}
    n : int
        Number of observations.
    x_name : str
        What the user calls their inputs.

    Returns
    -------
    ndarray of shape (n,) or (n, k)
        A single column becomes one-dimensional.

    Raises
    ------
    ValueError
    """
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim > most_dimensions:
        allowed = "(n,)" if most_dimensions == 1 else "(n,) or (n, n_limits)"
        raise ValueError(f"{name} must have shape {allowed}, got {values.shape}.")
    if len(values) != n:
        raise ValueError(
            f"{name} has {len(values)} entries, but {x_name} has {n} rows; "
            "every observation needs one."
        )
    return values


def safety_signals(z):
    """Validate safety measurements, which are numbers or booleans.

    Parameters
    ----------
    z : array-like of shape (n,) or (n, n_limits)

    Returns
    -------
    ndarray of the same shape
        float64; bool where all are booleans; object where whole columns are booleans and others
        are numbers.

    Raises
    ------
    TypeError, ValueError
        See :func:`finite_array`.
    """
    if type(z) is np.ndarray and z.dtype == np.float64:
        return finite_array(z, "z", ndim=1)
    with _named("z"):
        _refuse_masked(z, "z")
        columns = table_columns(z)
        if columns is None:
            # One type for all would make numbers of booleans.
            raw = np.array(z, dtype=object) if isinstance(z, (list, tuple)) else np.asarray(z)
            if raw.ndim not in (1, 2) or not raw.size:
                return finite_array(z, "z", ndim=1)
            columns, shape = list(raw.reshape(len(raw), -1).T), raw.shape
        else:
            shape = -1, len(columns)
    boolean = [is_boolean(column) for column in columns]
    if all(boolean):
        return np.column_stack(columns).astype(bool).reshape(shape)
    if any(boolean):
        signals = np.empty((len(columns[0]), len(columns)), dtype=object)
        for j, column in enumerate(columns):
            signals[:, j] = safety_signals(column)
        return signals
    numbers = finite_array(z, "z", ndim=1)
    if any(any(map(_is_bool, column)) for column in columns if column.dtype == object):
        raise ValueError("z mixes booleans and numbers in one column. Pass one or the other.")
    return numbers


def is_boolean(column):
    """Whether a one-dimensional array holds booleans and nothing else.

    Parameters
    ----------
    column : ndarray

    Returns
    -------
    bool
    """
    if column.dtype == object:
        return len(column) > 0 and all(map(_is_bool, column))
    return column.dtype == bool


def _is_bool(value):
    return isinstance(value, (bool, np.bool_))


def whole(value, name, min_val=None):
    """``check_scalar`` for integers, quicker for a plain one.

    Parameters
    ----------
    value : object
    name : str
        What the user calls it.
    min_val : int, optional

    Returns
    -------
    int

    Raises
    ------
    TypeError, ValueError
        Not an integer, or below ``min_val``.
    """
    if type(value) is int and (min_val is None or value >= min_val):
        return value
    return check_scalar(value, name, Integral, min_val=min_val)


def finite_number(value, name, positive=False, auto=False):
    """One finite number.

    Parameters
    ----------
    value : object
        A zero-dimensional array counts as a number; a bool or text does not.
    name : str
        What the user calls it.
    positive : bool, default=False
        Whether it has to be above zero.
    auto : bool, default=False
        Whether "auto" is possible as well, for the message.

    Returns
    -------
    float

    Raises
    ------
    ValueError
    """
    try:
        if isinstance(value, (str, bool)) or _n_masked(value):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or (positive and number <= 0):
        kind = "positive finite" if positive else "finite"
        raise ValueError(
            f"{name} must be a {kind} number{' or ' + repr('auto') if auto else ''}, got {value!r}."
        )
    return number
