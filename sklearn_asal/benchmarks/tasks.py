"""The paper's ten experiments (label appendix-experiment_details-datasets), two more, yours."""

import importlib
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_scalar

from .. import CandidatePool
from .._typing import FloatArray, Sides, StrPath, Thresholds
from ..box import Box
from ..datasets import (
    branin,
    edge,
    fluid_system,
    load_airfoil,
    load_airline,
    load_engine,
    load_lgbb,
    lobes,
    simionescu,
    sinus,
    townsend,
)
from ..settings import numpy_defaults
from ..validation import as_rows, finite_array, finite_number, observations
from .sources import FunctionSource, TableSource, TrajectorySource

_POOL_SIZE = 1_000_000
_GAMMA = 0.05

_Suite = Literal["al", "safe"]


@dataclass(frozen=True, eq=False)
class Task:
    """One experiment: what is measured, from how many points, for how many queries.

    Inputs are in the task's own units; outputs and safety measurements of the paper's tasks are
    normalised as there. Safe means ``z >= 0``, unless the source states other limits.

    Parameters
    ----------
    name : str
        Used in messages, results and names of files: letters, digits, spaces and ``_-.``.
    suite : {"al", "safe"}
        Active learning without or with a safety measurement.
    source : FunctionSource, TableSource or TrajectorySource
        What is measured.
    n_init : int
        Number of initial observations.
    n_queries : int
        Number of queries (T in the paper).
    n_test : int
        Number of test points; safe ones in the suite "safe".
    gamma : float, optional
        Tolerated probability that a query is unsafe, for methods that take one; above 0, below 1.

    Raises
    ------
    ValueError, TypeError
        If the name has other characters, there is no such suite, the source is none, or a number
        is not positive.

    Examples
    --------
    >>> from sklearn_asal.benchmarks import get_task
    >>> task = get_task("townsend")
    >>> trial = task.begin(seed=0)
    >>> trial.X.shape, trial.pool is None
    ((5, 2), True)
    >>> y, z = trial.measure(trial.X[0])
    >>> y.shape, z.shape
    ((1,), (1,))
    """

    name: str
    suite: _Suite
    source: FunctionSource | TableSource | TrajectorySource = field(repr=False)
    n_init: int
    n_queries: int
    n_test: int
    gamma: float | None = None

    def __post_init__(self):
        if not isinstance(self.name, str) or not re.fullmatch(r"\w[\w .-]*", self.name):
            raise ValueError(
                f"name must be of letters, digits, spaces and _-. only, for it names files; got "
                f"{self.name!r}."
            )
        if self.suite not in ("al", "safe"):
            raise ValueError(f"suite must be 'al' or 'safe'; got {self.suite!r}.")
        if not hasattr(self.source, "draw") or not hasattr(self.source, "bounds"):
            raise TypeError(
                f"source must be a FunctionSource, TableSource or TrajectorySource; got "
                f"{self.source!r}."
            )
        Box(self.bounds, self.n_features)  # raises unless low < high
        for number in ("n_init", "n_queries", "n_test"):
            value = check_scalar(getattr(self, number), number, Integral, min_val=1)
            object.__setattr__(self, number, int(value))
        if self.gamma is not None:
            gamma = finite_number(self.gamma, "gamma")
            check_scalar(gamma, "gamma", float, min_val=0, max_val=1, include_boundaries="neither")
            object.__setattr__(self, "gamma", gamma)

    @property
    def bounds(self) -> FloatArray:
        """Lower and upper end of every input, (n_features, 2), in the task's units."""
        return finite_array(self.source.bounds, "bounds")

    @property
    def n_features(self) -> int:
        """Number of inputs."""
        return len(self.bounds)

    @property
    def safety_threshold(self) -> Thresholds:
        """The limit of the safety measurement, or one for each column of it."""
        return getattr(self.source, "safety_threshold", 0.0)

    @property
    def safe_when(self) -> Sides:
        """On which side of its limit a safety measurement is safe, "above" or "below"."""
        return getattr(self.source, "safe_when", "above")

    @numpy_defaults
    def begin(self, seed: int) -> "Trial":
        """Draw initial data, test set and pool.

        Parameters
        ----------
        seed : int
            The same seed gives the same trial, whatever else the process has drawn.

        Returns
        -------
        trial : Trial

        Raises
        ------
        TypeError, ValueError
            If ``seed`` is negative, a table has too few (safe) rows for the numbers asked for, the
            source measures no safety and the suite is "safe", or the other way round, or it
            returns no finite numbers.
        """
        check_scalar(seed, "seed", Integral, min_val=0)
        # The name is part of the seed: tasks on the same box start from different points.
        streams = np.random.SeedSequence([zlib.crc32(self.name.encode()), seed]).spawn(4)
        initial, test, pool, noise = map(np.random.default_rng, streams)
        X, y, z, X_test, y_test, candidates, measure = self.source.draw(
            self.n_init, self.n_test, initial, test, pool
        )
        X, y, z = observations(X, y, z)
        X_test, y_test, _ = observations(X_test, y_test, x_name="X_test")
        if (z is None) == (self.suite == "safe"):
            measured, other = ("no", "al") if z is None else ("a", "safe")
            raise ValueError(
                f"task {self.name!r} is of the suite {self.suite!r}, but its source measures "
                f"{measured} safety; change the source, or take suite={other!r}."
            )
        truth = getattr(self.source, "safety", None) if self.suite == "safe" else None
        return Trial(X, y, z, X_test, y_test, candidates, partial(measure, rng=noise), truth)


@dataclass(frozen=True, eq=False)
class Trial:
    """A task that has begun: what is known, what may be asked, and what to test on.

    Attributes
    ----------
    X : ndarray of shape (n_init, n_features)
        Initial inputs, in the task's units.
    y : ndarray of shape (n_init,)
        Their outputs.
    z : ndarray of shape (n_init,) or (n_init, n_limits), or None
        Their safety measurements; None in the suite "al".
    X_test : ndarray of shape (n_test, n_features)
    y_test : ndarray of shape (n_test,)
        Measured, noise included; see :func:`get_task`.
    pool : CandidatePool or None
        The points that may be measured; None if any point of the bounds may.
    """

    X: FloatArray
    y: FloatArray
    z: NDArray[Any] | None
    X_test: FloatArray
    y_test: FloatArray
    pool: CandidatePool | None
    _measure: Callable[..., Any] = field(repr=False)
    _truth: Callable[..., Any] | None = field(default=None, repr=False)

    @numpy_defaults
    def measure(
        self, x: ArrayLike, index: ArrayLike | None = None
    ) -> tuple[FloatArray, NDArray[Any] | None]:
        """Measure one or more points, with noise where the task is a function.

        The noise belongs to the number of the measurement, not to the point: two methods that
        measure the same points in the same order get the same values.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (n, n_features)
            In the task's units.
        index : int or array-like of int of shape (n,), optional
            Rows of the pool. Tables need it; the others take no notice.

        Returns
        -------
        y : ndarray of shape (n,)
        z : ndarray of shape (n,) or (n, n_limits), or None
            None in the suite "al".

        Raises
        ------
        TypeError, ValueError
            If ``x`` is no finite point, a table is measured without ``index`` or with an index
            that names no row of the pool, or the source returns no finite numbers.
        """
        points = self._checked(x)
        y, z = self._measure(points, index)
        _, y, z = observations(points, y, z, "x")
        return y, z

    @numpy_defaults
    def true_safety(self, x: ArrayLike) -> FloatArray | None:
        """Safety of one or more points without noise.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (n, n_features)
            In the task's units.

        Returns
        -------
        ndarray of shape (n,) or (n, n_limits), or None
            None where it is unknown: in the suite "al", and of sources without a method
            ``safety``, such as tables.

        Raises
        ------
        TypeError, ValueError
            If ``x`` is no finite point.
        """
        points = self._checked(x)
        if self._truth is None:
            return None
        return self._truth(points)

    def _checked(self, x):
        n_features = self.X.shape[1]
        points = finite_array(as_rows(x, n_features), "x")
        if points.shape[1] != n_features:
            raise ValueError(f"x has {points.shape[1]} features, but the task has {n_features}.")
        return points


def get_task(name: str, data_home: StrPath | None = None, *, pool_size: int | None = None) -> Task:
    """Build a task by its name, or load one of your own.

    Suite "al": sinus (1 initial point + 20 queries), airline (1 + 20), branin (1 + 30), lgbb
    (1 + 30), airfoil (20 + 40). Suite "safe": simionescu, townsend and safe-lgbb (5 + 30), engine
    (5 + 60), fluid (10 + 100). Not of the paper: lobes and edge, safe functions (5 + 30). Initial
    points of the safe tasks are safe as measured and lie in the centre, 0.4 to 0.6 of every side.
    Noise of standard deviation 0.1 is added to functions and to the fluid system. What is left of
    a table after initial and test rows is its pool.

    The engine data have no safe row in that centre: all 12 are unsafe. There a box of the same
    size is put around the median of the safe rows, where somebody who runs the engine would begin.
    (The safe rows nearest to the middle are chance results at operating points that were measured
    several times and are mostly unsafe: from there no method stays safe.)

    Test outputs are measurements as well, so the test error of a perfect model is 0.1 on functions
    and the fluid system. The paper does not say, but its figures fit this: entropy search with an
    exact Gaussian process ends at 0.13 on sinus there, at 0.13 here, and at 0.09 without noise.

    Parameters
    ----------
    name : str
        One of ``TASKS``, or ``"module:name"`` for a task of your own: a :class:`Task` in a module
        that can be imported, or a function there that takes nothing and returns one. Its own name
        must not be one of ``TASKS``. The other arguments are not for such tasks.
    data_home : str or path-like, optional
        Folder of the data files; by default the environment variable SKLEARN_ASAL_DATA, else
        ~/sklearn_asal_data.
    pool_size : int, default=1_000_000
        Number of trajectories in the pool of "fluid". The other tasks take no notice.

    Returns
    -------
    task : Task

    Raises
    ------
    ValueError
        If there is no such task, or what ``"module:name"`` names is not one.
    ImportError
        If the module cannot be imported.
    FileNotFoundError
        If its file is not in the data folder and is not or cannot be downloaded.
    """
    if ":" in name:
        return _load(name)
    if name not in _BUILDERS:
        raise ValueError(
            f"name must be one of {', '.join(TASKS)}, or module:name for a task of your own; got "
            f"{name!r}."
        )
    size = check_scalar(
        _POOL_SIZE if pool_size is None else pool_size, "pool_size", Integral, min_val=1
    )
    suite, build, n_init, n_queries, n_test = _BUILDERS[name]
    gamma = _GAMMA if suite == "safe" else None
    return Task(name, suite, build(data_home, size), n_init, n_queries, n_test, gamma)


def suite_of(task: Task | str) -> _Suite:
    """The suite of a task.

    Parameters
    ----------
    task : Task or str
        A name is one out of ``TASKS``.

    Returns
    -------
    {"al", "safe"}
    """
    return TASKS[task] if isinstance(task, str) else task.suite


def _load(address):
    """The user's task that ``"module:name"`` stands for."""
    if not re.fullmatch(r"\w+(\.\w+)*:\w+", address):
        raise ValueError(
            f"task {address!r} must be written module:name, such as my_rig:oven for the task "
            "`oven` in my_rig.py."
        )
    place, name = address.split(":")
    try:
        module = importlib.import_module(place)
    except ImportError as error:
        raise ImportError(
            f"task {address!r}: the module {place} cannot be imported ({error}). Start in the "
            "folder that holds it, or add that folder to PYTHONPATH."
        ) from error
    task = getattr(module, name, None)
    if callable(task):
        task = task()
    if not isinstance(task, Task):
        known = [key for key, value in vars(module).items() if isinstance(value, Task)]
        raise ValueError(
            f"task {address!r}: {name} must be a Task, or a function without arguments that "
            f"returns one; got {task!r}. Tasks in {place}: {', '.join(known) or 'none'}."
        )
    if task.name in TASKS:
        raise ValueError(
            f"task {address!r} is named {task.name!r}, as a task of this package, whose figures "
            "would stand beside yours; give it another name."
        )
    return task


def _function(make):
    return lambda data_home, pool_size: FunctionSource(make())


def _table(load, **options):
    def build(data_home, pool_size):
        data = load(data_home=data_home, **options)
        return TableSource(data.data, data.target, data.get("safety"), data.bounds)

    return build


def _fluid(data_home, pool_size):
    return TrajectorySource(fluid_system(data_home=data_home), pool_size)


# Suite, source, initial points, queries, test points.
_BUILDERS: dict[str, tuple[_Suite, Callable[..., Any], int, int, int]] = {
    "sinus": ("al", _function(sinus), 1, 20, 50),
    "airline": ("al", _table(load_airline), 1, 20, 50),
    "branin": ("al", _function(branin), 1, 30, 200),
    "lgbb": ("al", _table(load_lgbb, safety=False), 1, 30, 200),
    "airfoil": ("al", _table(load_airfoil), 20, 40, 500),
    "simionescu": ("safe", _function(simionescu), 5, 30, 200),
    "townsend": ("safe", _function(townsend), 5, 30, 200),
    "safe-lgbb": ("safe", _table(load_lgbb), 5, 30, 200),
    "engine": ("safe", _table(load_engine), 5, 60, 200),
    "fluid": ("safe", _fluid, 10, 100, 10_000),
    "lobes": ("safe", _function(lobes), 5, 30, 200),
    "edge": ("safe", _function(edge), 5, 30, 200),
}
_NOT_OF_THE_PAPER = "lobes", "edge"

#: Names of the tasks and their suites: the ten of the paper, then two more.
TASKS = {name: suite for name, (suite, *_) in _BUILDERS.items()}

#: The paper's number of queries of each of its own.
N_QUERIES = {
    name: n_queries
    for name, (_, _, _, n_queries, _) in _BUILDERS.items()
    if name not in _NOT_OF_THE_PAPER
}
