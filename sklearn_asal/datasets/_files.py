"""Finding, downloading, reading and packing data files."""

import importlib
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch

ENVIRONMENT_VARIABLE = "SKLEARN_ASAL_DATA"
DEFAULT_FOLDER = "~/sklearn_asal_data"


class Remote(NamedTuple):
    """A file that anyone may download.

    Parameters
    ----------
    url : str
    sha256 : str
        Of the file's bytes, in hexadecimal digits.
    """

    url: str
    sha256: str


def find(name, source, data_home=None, remote=None):
    """Return the path of a data file, which is downloaded first if it may and has to be.

    Parameters
    ----------
    name : str
        File name.
    source : str
        Where the file can be had, for the error message.
    data_home : str or path-like, optional
        Folder; by default the environment variable SKLEARN_ASAL_DATA, else ~/sklearn_asal_data.
    remote : Remote, optional
        Where to download the file from if it is not there; by default it is not downloaded. A file
        that is there is taken as it is, whatever its checksum.

    Returns
    -------
    path : Path

    Raises
    ------
    FileNotFoundError
        If the file is not there and is not or cannot be downloaded; says where it was looked for,
        how to set the folder and where to get the file.
    OSError
        If what was downloaded is another file; nothing is kept then.
    ImportError
        If the file has to be downloaded and pooch is missing.
    """
    folder = data_home or os.environ.get(ENVIRONMENT_VARIABLE) or DEFAULT_FOLDER
    folder = Path(folder).expanduser()
    path = folder / name
    if path.is_file():
        return path
    missing = f"{name} is not in the data folder {folder}"
    remedy = (
        "set the folder with data_home=... or with the environment variable "
        f"{ENVIRONMENT_VARIABLE} (default: {DEFAULT_FOLDER})."
    )
    if remote is None:
        raise FileNotFoundError(
            f"{missing}, and it is not downloaded for you. Put it there, or {remedy} "
            f"Where to get the file: {source}"
        )
    by_hand = f"save {remote.url} as {path} by hand, or {remedy}"
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            f"{missing}. To have it downloaded, install pooch with pip install "
            f'"sklearn-asal[data]"; else {by_hand}'
        ) from error
    try:
        pooch.retrieve(remote.url, f"sha256:{remote.sha256}", name, folder)
    except OSError as error:
        raise FileNotFoundError(
            f"{missing} and could not be downloaded ({error}). Try again when online, or {by_hand}"
        ) from error
    except ValueError as error:
        raise OSError(
            f"{remote.url} is not the file that was expected: its SHA-256 is not {remote.sha256}. "
            f"Nothing was kept. Try again later; if you trust the file, {by_hand}"
        ) from error
    return path


def optional(module):
    """Import `pandas` or `openpyxl`, or say how to install them.

    Parameters
    ----------
    module : str

    Returns
    -------
    module : module

    Raises
    ------
    ImportError
        If it is missing.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f'{module} is needed for this; install it with pip install "sklearn-asal[data]".'
        ) from error


def read_table(path, n_columns, delimiter=None):
    """Read a table of numbers, skipping `#` lines, blank lines and one header row if there is one.

    Parameters
    ----------
    path : Path
    n_columns : int
    delimiter : str, optional
        Between the numbers; by default blanks.

    Returns
    -------
    table : ndarray of shape (n, n_columns)

    Raises
    ------
    ValueError
        If the file holds anything else.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [line.split(delimiter) for line in lines if line.strip() and line[0] != "#"]
    if rows and not _is_number(rows[0][0]):
        rows = rows[1:]
    try:
        table = np.array(rows, dtype=float)
    except ValueError as error:
        raise ValueError(f"{path} is not a table of numbers ({error}).") from error
    if table.ndim != 2 or table.shape[1] != n_columns:
        raise ValueError(f"{path} must have {n_columns} columns; got shape {table.shape}.")
    return finite(table, path)


def finite(table, path):
    """The table itself, if it holds finite numbers.

    Parameters
    ----------
    table : ndarray
    path : Path
        Where it comes from.

    Returns
    -------
    table : ndarray

    Raises
    ------
    ValueError
        If it does not.
    """
    if not np.isfinite(table).all():
        raise ValueError(f"{path} holds NaN or infinity; get the file anew, or mend it.")
    return table


def standardise(values):
    """Shift and scale to mean 0 and standard deviation 1.

    Parameters
    ----------
    values : ndarray of shape (n,)

    Returns
    -------
    standardised : ndarray of shape (n,)
    """
    return (values - values.mean()) / values.std()


def span(X):
    """The box that the rows of `X` span.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)

    Returns
    -------
    bounds : ndarray of shape (n_features, 2)
    """
    return np.stack([X.min(axis=0), X.max(axis=0)], axis=1)


def pack(
    X,
    y,
    z=None,
    *,
    feature_names,
    target_name,
    safety_name=None,
    raw_target,
    raw_safety=None,
    bounds,
    description,
    return_X_y,
    as_frame,
):
    """Build what a loader returns.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    y : ndarray of shape (n,)
    z : ndarray of shape (n,), optional
    feature_names : list of str
    target_name, safety_name : str
    raw_target, raw_safety : ndarray of shape (n,)
        The file's own columns.
    bounds : array-like of shape (n_features, 2)
    description : str
    return_X_y, as_frame : bool
        See the loaders.

    Returns
    -------
    data : sklearn.utils.Bunch or tuple
        `(X, y)` or `(X, y, z)` with `return_X_y`.

    Raises
    ------
    ImportError
        If `as_frame` and pandas is missing.
    """
    frame = None
    if as_frame:
        pandas = optional("pandas")
        X = pandas.DataFrame(X, columns=feature_names)
        y = pandas.Series(y, name=target_name)
        columns = [X, y]
        if z is not None:
            z = pandas.Series(z, name=safety_name)
            columns.append(z)
        frame = pandas.concat(columns, axis=1)
    if return_X_y:
        return (X, y) if z is None else (X, y, z)
    bunch = Bunch(
        data=X,
        target=y,
        frame=frame,
        feature_names=feature_names,
        target_names=[target_name],
        raw_target=raw_target,
        bounds=np.array(bounds, dtype=float),
        DESCR=description,
    )
    if z is not None:
        bunch.update(safety=z, safety_names=[safety_name], raw_safety=raw_safety)
    return bunch


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True
