"""The high-pressure fluid system: a 7-D function, and the pool of trajectories drawn from it."""

from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_scalar

from .._typing import FloatArray, RandomState, StrPath
from ._files import find, pack, read_table
from ._random import generator
from .function import Function

_FILE = "fluid_system_coefficients.csv"
_SOURCE = (
    "it holds coefficients fitted to the system of Zimmer et al. (NeurIPS 2018, safe active "
    "learning for time series) and belongs to this project's reference data; ask its maintainers."
)
_DESCR = """High-pressure fluid system

Rail pressure by engine speed n (rpm) and actuation v, at the present and past time steps:
(n[k], n[k-1], n[k-2], n[k-3], v[k], v[k-1], v[k-3]). The pressure is a fitted trigonometric model.
Rows are random trajectories of bounded step size, 0.3 of the domain a time step.
Normalised output (pressure - 18) / 15; safe is a pressure of at most 18.

Source: Zimmer et al., NeurIPS 2018.
Licence: see the source.
"""
_FEATURES = ["n_k", "n_k-1", "n_k-2", "n_k-3", "v_k", "v_k-1", "v_k-3"]
_BOUNDS = [(1000, 4000)] * 4 + [(0, 60)] * 3
_LIMIT = 18.0
_SCALE = 15.0
# The model has ten inputs; the last three (inlet terms) stay at this value.
_INLET = np.full(3, 0.7)
_CHUNK = 4096


@dataclass(frozen=True, eq=False)
class RailPressure:
    """Sum of cosines `shift + sum_i amplitude_i cos(weights_i . x - phase_i)`.

    Parameters
    ----------
    weights : ndarray of shape (n_terms, 7)
    phase, amplitude : ndarray of shape (n_terms,)
    shift : float
    """

    weights: np.ndarray
    phase: np.ndarray
    amplitude: np.ndarray
    shift: float

    def __call__(self, X):
        pressure = np.empty(len(X))
        # Chunks bound the memory: a million rows by 100 terms would take 800 MB.
        for start in range(0, len(X), _CHUNK):
            rows = slice(start, start + _CHUNK)
            angle = X[rows] @ self.weights.T
            angle -= self.phase
            np.cos(angle, out=angle)
            pressure[rows] = angle @ self.amplitude
        pressure += self.shift
        return pressure


@dataclass(frozen=True, eq=False)
class PressureMargin:
    """How far the pressure is below its limit of 18.

    Parameters
    ----------
    pressure : callable
        `pressure(X)` of shape (n,).
    """

    pressure: RailPressure

    def __call__(self, X):
        return _LIMIT - self.pressure(X)


def fluid_system(
    coefficients: StrPath | None = None, *, data_home: StrPath | None = None
) -> Function:
    """High-pressure fluid system, 7-D on [1000, 4000]^4 x [0, 60]^3, safe up to a pressure of 18.

    Parameters
    ----------
    coefficients : str or path-like, optional
        The file of coefficients. By default fluid_system_coefficients.csv in the data folder.
    data_home : str or path-like, optional
        Data folder, if `coefficients` is not given; by default the environment variable
        SKLEARN_ASAL_DATA, else ~/sklearn_asal_data.

    Returns
    -------
    function : Function
        `f` is the pressure, `output` is `(f - 18) / 15` and `safety` is `-output`. Inputs in the
        order n[k], n[k-1], n[k-2], n[k-3], v[k], v[k-1], v[k-3]. Evaluated in chunks, so a million
        points need little memory.

    Raises
    ------
    FileNotFoundError
        If the file is not there.
    ValueError
        If the file lacks one of its `#` lines or columns.
    """
    if coefficients is None:
        path = find(_FILE, _SOURCE, data_home)
    else:
        path = Path(coefficients).expanduser()
        path = find(path.name, _SOURCE, path.parent)
    pressure = _read(path)
    return Function(
        "fluid_system",
        _BOUNDS,
        f=pressure,
        q=PressureMargin(pressure),
        y_loc=_LIMIT,
        y_scale=_SCALE,
        z_scale=_SCALE,
    )


def sample_fluid_trajectories(n: int, random_state: RandomState = None) -> FloatArray:
    """Random trajectories of bounded step size: the rows of the 7-D pool.

    Parameters
    ----------
    n : int
        Number of trajectories. The paper uses 1,000,000.
    random_state : None, int or numpy.random.Generator

    Returns
    -------
    X : ndarray of shape (n, 7)
        n[k], n[k-1], n[k-2], n[k-3] in [1000, 4000] and v[k], v[k-1], v[k-3] in [0, 60], moving at
        most 900 and 18 a time step (36 from v[k-3] to v[k-1]).

    Raises
    ------
    ValueError
        If `n` is negative.
    """
    check_scalar(n, "n", Integral, min_val=0)
    rng = generator(random_state)
    X = np.empty((n, 7))
    X[:, 3] = rng.uniform(1000, 4000, n)
    for now, before in ((2, 3), (1, 2), (0, 1)):
        X[:, now] = _step(rng, X[:, before], 900, 1000, 4000)
    X[:, 6] = rng.uniform(0, 60, n)
    X[:, 5] = _step(rng, X[:, 6], 2 * 18, 0, 60)
    X[:, 4] = _step(rng, X[:, 5], 18, 0, 60)
    return X


def load_fluid_system(
    n_samples: int = 10_000,
    random_state: RandomState = 0,
    *,
    noise: float = 0.0,
    data_home: StrPath | None = None,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:
    """Draw a data set of the high-pressure fluid system.

    Parameters
    ----------
    n_samples : int, default=10000
        Number of trajectories. The paper's pool has 1,000,000, which takes a few seconds.
    random_state : None, int or numpy.random.Generator, default=0
    noise : float, default=0.0
        Standard deviation of the Gaussian noise on the normalised output; 0.1 in the paper. The
        trajectories do not depend on it.
    data_home : str or path-like, optional
        Folder of fluid_system_coefficients.csv; by default the environment variable
        SKLEARN_ASAL_DATA, else ~/sklearn_asal_data.
    return_X_y : bool, default=False
        Return `(data, target, safety)`.
    as_frame : bool, default=False
        Return pandas objects.

    Returns
    -------
    data : sklearn.utils.Bunch
        - data : (n_samples, 7), see `sample_fluid_trajectories`
        - target : (n_samples,), (pressure - 18) / 15
        - safety : (n_samples,), -target: one measurement serves as both; safe, >= 0, are 61.6 %
        - raw_target, raw_safety : (n_samples,), both the pressure (safe means <= 18)
        - bounds : (7, 2), [1000, 4000] four times and [0, 60] three times
        - feature_names, target_names, safety_names, DESCR
        - frame : all columns as a DataFrame, with `as_frame`, else None

    Raises
    ------
    FileNotFoundError
        If the file of coefficients is not in the data folder.
    ValueError
        If `n_samples` is not positive or `noise` is negative.
    ImportError
        If `as_frame` and pandas is missing.
    """
    check_scalar(n_samples, "n_samples", Integral, min_val=1)
    check_scalar(noise, "noise", Real, min_val=0)
    function = fluid_system(data_home=data_home)
    rng = generator(random_state)
    X = sample_fluid_trajectories(n_samples, rng)
    y = function.output(X)
    if noise:
        y += noise * rng.standard_normal(n_samples)
    pressure = _LIMIT + _SCALE * y
    return pack(
        X,
        y,
        -y,
        feature_names=list(_FEATURES),
        target_name="pressure",
        safety_name="pressure_margin",
        raw_target=pressure,
        raw_safety=pressure.copy(),
        bounds=_BOUNDS,
        description=_DESCR,
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def _step(rng, before, reach, low, high):
    return rng.uniform(np.maximum(low, before - reach), np.minimum(before + reach, high))


def _read(path):
    settings = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#") and ":" in line:
            key, _, value = line[1:].partition(":")
            settings[key.strip()] = value
    try:
        offset, width, scale, shift = (
            np.array(settings[key].split(), dtype=float).reshape(size)
            for key, size in (("offset", 10), ("width", 10), ("scale", 1), ("shift", 1))
        )
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"{path} must have '#' lines with the numbers of offset, width, scale and shift "
            f"({error})."
        ) from error
    table = read_table(path, 12, delimiter=",")
    # Fold the standardisation of the inputs into the weights and phases, once.
    weights = table[:, :10] / width
    cosine, sine = table[:, 10], table[:, 11]
    constant = weights[:, 7:] @ _INLET - weights @ offset
    # a cos(t) + b sin(t) = r cos(t - phi): one cosine a term instead of two functions.
    phase = np.arctan2(sine, cosine) - constant
    return RailPressure(
        weights=weights[:, :7].copy(),
        phase=phase,
        amplitude=scale[0] * np.hypot(cosine, sine),
        shift=float(shift[0]),
    )
