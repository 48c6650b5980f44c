"""Data sets of the paper, from a data folder (label appendix-experiment_details-datasets)."""

import csv
from typing import Any

import numpy as np

from .._typing import StrPath
from ._files import Remote, find, finite, optional, pack, read_table, span, standardise

_LGBB = """Langley Glide-Back Booster (LGBB), side-slip angle 0

Simulations of a rocket booster gliding back to Earth: lift and pitching moment
coefficients by speed (mach) and angle of attack (alpha, degrees). 880 rows, 19 of which repeat
another row's inputs with slightly different results.

Source: Cart3D solutions for the LGBB geometry, NASA Ames Research Center; file lgbb_original.txt in
lgbb.tar.gz on the web page of R. B. Gramacy's book "Surrogates".
Licence: its custodians ask that it not be passed on; this package neither holds nor downloads it.
"""
_LGBB_SOURCE = (
    'download lgbb.tar.gz from the web page of the book "Surrogates" '
    "(https://bobby.gramacy.com/surrogates/lgbb.tar.gz) and unpack lgbb_original.txt from it; its "
    "custodians ask that it not be passed on, so this package neither holds nor downloads it."
)

_AIRLINE = """Airline passengers

Monthly number of airline passengers (thousands), January 1949 to December 1960; 144 rows. The input
is the time in years, year + (month - 1) / 12.

Source: https://github.com/jbrownlee/Datasets, file airline-passengers.csv.
Licence: see the source.
"""
_AIRLINE_SOURCE = "https://github.com/jbrownlee/Datasets, file airline-passengers.csv."
_AIRLINE_REMOTE = Remote(
    "https://raw.githubusercontent.com/jbrownlee/Datasets/master/airline-passengers.csv",
    "8cb51be753a718d9be5d76d7e238cc224792754676adc21faa59e954b0201621",
)

_AIRFOIL = """Airfoil self-noise

Sound pressure level (dB) of airfoil sections in a wind tunnel by frequency (Hz), angle of attack
(degrees), chord length (m), free-stream velocity (m/s) and displacement thickness of the suction
side (m); 1503 rows.

Source: NASA, by way of https://archive.ics.uci.edu/dataset/291/airfoil+self+noise.
Licence: see the source.
"""
_AIRFOIL_SOURCE = (
    "https://archive.ics.uci.edu/dataset/291/airfoil+self+noise, file airfoil_self_noise.dat."
)
_AIRFOIL_REMOTE = Remote(
    "https://archive.ics.uci.edu/ml/machine-learning-databases/00291/airfoil_self_noise.dat",
    "74c75fd71783f1e6b71f8a622b993dc592897a97cd689c5090a07147a1b097b3",
)

_ENGINE = """Bosch engine measurements (engine2)

Roughness (the output) and exhaust manifold temperature (the safety) of a combustion engine by
speed, load and air-fuel ratio; 785 rows. All columns were standardised by Bosch before publication,
so the "raw" units are those of the file. A high temperature is unsafe: the safety is
-temperature_exhaust_manifold - 0.2.

Note: the box spanned by the data has 12 rows in its centre (0.4 to 0.6 of every side), and all 12
are unsafe. The safe rows closest to the centre are at 0.29 to 0.71 of every side.

Source: https://github.com/boschresearch/Bosch-Engine-Datasets, folder pengines.
Licence: CC BY-SA 4.0.
"""
_ENGINE_SOURCE = (
    "https://github.com/boschresearch/Bosch-Engine-Datasets/tree/master/pengines, file "
    "engine2_normalized.xlsx (CC BY-SA 4.0)."
)
_ENGINE_REMOTE = Remote(
    "https://github.com/boschresearch/Bosch-Engine-Datasets/raw/master/pengines/"
    "engine2_normalized.xlsx",
    "85bd5b1b9f0da361d931adb59450834036c3b637482991da92bd61744a172692",
)
_ENGINE_INPUTS = ["engine_speed", "engine_load", "air_fuel_ratio"]
_ENGINE_SHIFT = 0.2


def load_lgbb(
    *,
    data_home: StrPath | None = None,
    safety: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:
    """Load the Langley Glide-Back Booster data: lift, and pitching moment as safety.

    Rows with side-slip angle 0 only. With `safety`, rows whose pitching moment lies outside its 1 %
    to 99 % quantiles are dropped (862 of 880 stay) and the pitching moment is standardised, so
    that safe, z >= 0, means an above-average pitching moment (61.7 % of rows). The raw pitching
    moment is >= 0 in 27 % of rows only: the paper's "around 60 %" is about the standardised one.

    Parameters
    ----------
    data_home : str or path-like, optional
        Folder of lgbb_original.txt; by default the environment variable SKLEARN_ASAL_DATA, else
        ~/sklearn_asal_data.
    safety : bool, default=True
        Whether to load the safety measurement.
    return_X_y : bool, default=False
        Return `(data, target, safety)`, or `(data, target)` with `safety=False`.
    as_frame : bool, default=False
        Return pandas objects.

    Returns
    -------
    data : sklearn.utils.Bunch
        - data : (n, 2), mach and alpha (degrees)
        - target : (n,), lift coefficient, standardised over the rows returned
        - safety : (n,), pitching moment coefficient, standardised likewise; safe means >= 0
        - raw_target, raw_safety : (n,), the file's own columns
        - bounds : (2, 2), [[0, 6], [-5, 30]]: the box mapped to [0, 1]^2
        - feature_names, target_names, safety_names, DESCR
        - frame : all columns as a DataFrame, with `as_frame`, else None

    Raises
    ------
    FileNotFoundError
        If the file is not in the data folder.
    ValueError
        If the file is not the expected table.
    ImportError
        If `as_frame` and pandas is missing.
    """
    path = find("lgbb_original.txt", _LGBB_SOURCE, data_home)
    # mach alpha beta lift drag pitch side yaw roll
    table = read_table(path, 9)
    table = table[table[:, 2] == 0]
    if safety:
        low, high = np.quantile(table[:, 5], [0.01, 0.99])
        table = table[(table[:, 5] >= low) & (table[:, 5] <= high)]
    lift, pitch = table[:, 3].copy(), table[:, 5].copy()
    return pack(
        table[:, :2].copy(),
        standardise(lift),
        standardise(pitch) if safety else None,
        feature_names=["mach", "alpha"],
        target_name="lift",
        safety_name="pitch",
        raw_target=lift,
        raw_safety=pitch,
        bounds=[(0, 6), (-5, 30)],
        description=_LGBB,
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def load_airline(
    *,
    data_home: StrPath | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:
    """Load the airline passenger series.

    Parameters
    ----------
    data_home : str or path-like, optional
        Folder of airline-passengers.csv; by default the environment variable SKLEARN_ASAL_DATA,
        else ~/sklearn_asal_data.
    download_if_missing : bool, default=True
        Download the file into that folder if it is not there, with pooch.
    return_X_y : bool, default=False
        Return `(data, target)`.
    as_frame : bool, default=False
        Return pandas objects.

    Returns
    -------
    data : sklearn.utils.Bunch
        - data : (144, 1), time in years, year + (month - 1) / 12
        - target : (144,), number of passengers, standardised
        - raw_target : (144,), thousands of passengers
        - bounds : (1, 2), first and last month
        - feature_names, target_names, DESCR
        - frame : all columns as a DataFrame, with `as_frame`, else None

    Raises
    ------
    FileNotFoundError
        If the file is not in the data folder and is not or cannot be downloaded.
    OSError
        If what was downloaded is another file.
    ValueError
        If the file is not the expected table.
    ImportError
        If pooch is missing and needed for the download, or pandas with `as_frame`.
    """
    remote = _AIRLINE_REMOTE if download_if_missing else None
    path = find("airline-passengers.csv", _AIRLINE_SOURCE, data_home, remote)
    try:
        with path.open(newline="", encoding="utf-8") as file:
            _, *lines = [line for line in csv.reader(file) if line]
        rows = [(month.split("-"), float(count)) for month, count in lines]
        time = np.array([[int(year) + (int(month) - 1) / 12] for (year, month), _ in rows])
    except ValueError as error:
        raise ValueError(f"{path} must have rows of month (YYYY-MM) and count.") from error
    passengers = finite(np.array([count for _, count in rows]), path)
    return pack(
        time,
        standardise(passengers),
        feature_names=["year"],
        target_name="passengers",
        raw_target=passengers,
        bounds=span(time),
        description=_AIRLINE,
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def load_airfoil(
    *,
    data_home: StrPath | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:
    """Load the airfoil self-noise data.

    Parameters
    ----------
    data_home : str or path-like, optional
        Folder of airfoil_self_noise.dat; by default the environment variable SKLEARN_ASAL_DATA,
        else ~/sklearn_asal_data.
    download_if_missing : bool, default=True
        Download the file into that folder if it is not there, with pooch.
    return_X_y : bool, default=False
        Return `(data, target)`.
    as_frame : bool, default=False
        Return pandas objects.

    Returns
    -------
    data : sklearn.utils.Bunch
        - data : (1503, 5), Hz, degrees, m, m/s, m
        - target : (1503,), sound pressure level, standardised
        - raw_target : (1503,), dB
        - bounds : (5, 2), smallest and largest value of every input
        - feature_names, target_names, DESCR
        - frame : all columns as a DataFrame, with `as_frame`, else None

    Raises
    ------
    FileNotFoundError
        If the file is not in the data folder and is not or cannot be downloaded.
    OSError
        If what was downloaded is another file.
    ValueError
        If the file is not the expected table.
    ImportError
        If pooch is missing and needed for the download, or pandas with `as_frame`.
    """
    remote = _AIRFOIL_REMOTE if download_if_missing else None
    table = read_table(find("airfoil_self_noise.dat", _AIRFOIL_SOURCE, data_home, remote), 6)
    X, level = table[:, :5].copy(), table[:, 5].copy()
    return pack(
        X,
        standardise(level),
        feature_names=["frequency", "angle", "chord", "velocity", "thickness"],
        target_name="sound_level",
        raw_target=level,
        bounds=span(X),
        description=_AIRFOIL,
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def load_engine(
    *,
    data_home: StrPath | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:
    """Load the Bosch engine data: roughness, and exhaust manifold temperature as safety.

    Parameters
    ----------
    data_home : str or path-like, optional
        Folder of engine2_normalized.xlsx; by default the environment variable SKLEARN_ASAL_DATA,
        else ~/sklearn_asal_data.
    download_if_missing : bool, default=True
        Download the file into that folder if it is not there, with pooch.
    return_X_y : bool, default=False
        Return `(data, target, safety)`.
    as_frame : bool, default=False
        Return pandas objects.

    Returns
    -------
    data : sklearn.utils.Bunch
        - data : (785, 3), engine_speed, engine_load and air_fuel_ratio, standardised by Bosch
        - target : (785,), engine_roughness_s, standardised by Bosch
        - safety : (785,), -temperature_exhaust_manifold - 0.2; safe, >= 0, are 42 % of rows
        - raw_target, raw_safety : (785,), the file's own columns: `raw_target` equals `target`,
          `raw_safety` is the temperature itself (safe means <= -0.2)
        - bounds : (3, 2), smallest and largest value of every input. The 12 rows in the centre of
          this box are all unsafe: see DESCR
        - feature_names, target_names, safety_names, DESCR
        - frame : all columns as a DataFrame, with `as_frame`, else None

    Raises
    ------
    FileNotFoundError
        If the file is not in the data folder and is not or cannot be downloaded.
    OSError
        If what was downloaded is another file.
    ValueError
        If a column is missing from the file.
    ImportError
        If openpyxl is missing, pooch and needed for the download, or pandas with `as_frame`.
    """
    remote = _ENGINE_REMOTE if download_if_missing else None
    path = find("engine2_normalized.xlsx", _ENGINE_SOURCE, data_home, remote)
    columns = [*_ENGINE_INPUTS, "engine_roughness_s", "temperature_exhaust_manifold"]
    table = _read_sheet(path, columns)
    X, roughness, temperature = table[:, :3].copy(), table[:, 3].copy(), table[:, 4].copy()
    return pack(
        X,
        roughness.copy(),
        -temperature - _ENGINE_SHIFT,
        feature_names=list(_ENGINE_INPUTS),
        target_name="engine_roughness_s",
        safety_name="temperature_margin",
        raw_target=roughness,
        raw_safety=temperature,
        bounds=span(X),
        description=_ENGINE,
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def _read_sheet(path, columns):
    workbook = optional("openpyxl").load_workbook(path, read_only=True, data_only=True)
    try:
        # Two header rows, the second one empty.
        header, _, *rows = workbook["data"].iter_rows(values_only=True)
        places = [header.index(column) for column in columns]
        cells = [[row[place] for place in places] for row in rows]
        # Empty rows below the table are Excel's; a half-empty row is an error.
        cells = [row for row in cells if any(cell is not None for cell in row)]
        if any(None in row for row in cells):
            raise ValueError("a cell is empty")
        return finite(np.array(cells, dtype=float), path)
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(
            f"{path} must have a sheet 'data' with the columns {', '.join(columns)} ({error})."
        ) from error
    finally:
        workbook.close()
