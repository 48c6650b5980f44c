"""How a method is judged on a task (label appendix-experiment_details-gp_modeling)."""

import math
import time
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, TypeVar, overload

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_scalar

from .. import NoSafeCandidateError
from ..limits import safety_margins
from ..settings import numpy_defaults
from .tasks import Task, get_task

# The likelihood of few points has several maxima; the best of three searches is taken.
_RESTARTS = 2
# Those start from equal lengthscales. From three features on the best maximum often belongs to a
# model that ignores some of them, which no such start leads to: there, this many searches per
# feature start at random. On the fluid system and the engine 15 to 100 % of them reach the best.
_RANDOM_STARTS = 4

_Q = TypeVar("_Q")


@dataclass(frozen=True)
class Record:
    """What was seen after one query.

    Parameters
    ----------
    query : int
        Number of the query, from 1.
    rmse : float
        Root mean square error on the test set of a Gaussian process fitted to all observations so
        far; NaN where none was fitted.
    safe_share : float
        Share of the queries so far that were measured safe, by all limits; NaN in the suite "al".
    worst_violation : float
        How far the worst measurement of the queries so far was on the unsafe side of its limit, in
        the units of z; 0 if none was, NaN in the suite "al". Where z says safe or not, 1 or 0.
    seconds : float
        Wall-clock time to choose this query. Measuring and fitting the model for ``rmse`` are not
        part of it.
    forced : bool
        No candidate was safe enough for the method, and its least unsafe one was measured.
    truly_safe_share : float
        Share of the queries so far that are safe without noise, by all limits; NaN where that is
        unknown, see :meth:`Trial.true_safety`.
    """

    query: int
    rmse: float
    safe_share: float
    worst_violation: float
    seconds: float
    forced: bool = False
    truly_safe_share: float = math.nan


@overload
def run(
    querier: Any,
    task: Task | str,
    seed: int,
    n_queries: int | None = ...,
    every: int = ...,
    *,
    return_querier: Literal[False] = ...,
) -> list[Record]: ...


@overload
def run(
    querier: _Q,
    task: Task | str,
    seed: int,
    n_queries: int | None = ...,
    every: int = ...,
    *,
    return_querier: Literal[True],
) -> tuple[list[Record], _Q]: ...


@numpy_defaults
def run(
    querier: Any,
    task: Task | str,
    seed: int,
    n_queries: int | None = None,
    every: int = 1,
    *,
    return_querier: bool = False,
) -> Any:
    """Run one campaign of a querier on a task.

    The querier is cloned, and the clone's bounds, budget, limits and random state are set from the
    task and the seed, as far as it has such parameters.

    A querier that raises NoSafeCandidateError has its least unsafe candidate measured instead, so
    that the campaign goes on; ``Record.forced`` says where.

    Parameters
    ----------
    querier : querier
        Any object with the contract of this package: ``get_params``, ``fit``, ``query``, ``tell``.
    task : Task or str
        A name, or ``"module:name"``, stands for :func:`get_task` of it.
    seed : int
        Of the trial and of the querier; not negative.
    n_queries : int, default=task.n_queries
        Number of queries.
    every : int, default=1
        The test error is taken after every so many queries, and after the last one.
    return_querier : bool, default=False
        Return the clone as well; it holds the observations of the campaign.

    Returns
    -------
    records : list of Record
        One for every query.
    querier : querier
        Only with ``return_querier``.

    Raises
    ------
    TypeError
        If ``task`` is neither a task nor a name.
    ValueError
        If the querier needs safety measurements and the task has none, or a number is not
        positive. Whatever the querier raises is passed on.
    """
    task = get_task(task) if isinstance(task, str) else task
    if not isinstance(task, Task):
        raise TypeError(f"task must be a Task or the name of one; got {task!r}.")
    n_queries = task.n_queries if n_queries is None else n_queries
    check_scalar(n_queries, "n_queries", Integral, min_val=1)
    check_scalar(every, "every", Integral, min_val=1)
    querier = clone(querier)
    parameters = querier.get_params()
    if task.suite == "al" and "safety_threshold" in parameters:
        raise ValueError(
            f"{type(querier).__name__} needs safety measurements, and task {task.name!r} has none; "
            "choose a task of the suite 'safe'."
        )
    settings = {
        "bounds": task.bounds,
        "budget": n_queries,
        "random_state": seed,
        "safety_threshold": task.safety_threshold,
        "safe_when": task.safe_when,
    }
    querier.set_params(**{name: settings[name] for name in settings if name in parameters})

    trial = task.begin(seed)
    X, y, worst, safe, truly_safe = trial.X, trial.y, 0.0, 0, 0
    querier.fit(X, y, trial.z)
    records = []
    taken: list[int | None] = []
    for query in range(1, n_queries + 1):
        begun = time.perf_counter()
        x, index, forced = choose(querier, trial.pool, taken)
        seconds = time.perf_counter() - begun
        taken.append(index)
        y_new, z_new = trial.measure(x, index)
        querier.tell(x, y_new, z_new)
        X, y = np.vstack([X, x]), np.append(y, y_new)
        if z_new is not None:
            margin = _margin(z_new, task)
            safe += int(margin >= 0)
            worst = max(worst, -float(margin))
        truth = trial.true_safety(x)
        if truth is not None:
            truly_safe += int(_margin(truth, task) >= 0)
        due = query % every == 0 or query == n_queries
        records.append(
            Record(
                query,
                _rmse(X, y, trial.X_test, trial.y_test, task.bounds) if due else math.nan,
                math.nan if z_new is None else safe / query,
                math.nan if z_new is None else worst,
                seconds,
                forced,
                math.nan if truth is None else truly_safe / query,
            )
        )
    return (records, querier) if return_querier else records


def choose(querier, pool, taken):
    """The next point to measure.

    Parameters
    ----------
    querier : querier
    pool : CandidatePool or None
        None where any point may be measured.
    taken : list of int
        Rows of the pool that were measured already.

    Returns
    -------
    x : ndarray of shape (1, n_features)
    index : int or None
        Its row in the pool; None without one.
    forced : bool
        Whether nothing was safe enough for the querier; ``x`` is its least unsafe candidate then.
    """
    try:
        if pool is None:
            return querier.query(), None, False
        x, indices = querier.query(pool=pool, return_indices=True)
        return x, int(indices[0]), False
    except NoSafeCandidateError as error:
        x = np.reshape(error.candidate, (1, -1))
        if pool is None:
            return x, None, True
        index = _nearest_left(pool.X, x, taken)
        return pool.X[[index]], index, True


def _margin(z, task):
    """The worst margin of one measurement, or of the truth, by all limits."""
    return safety_margins(z, task.safety_threshold, task.safe_when, 1.0).min()


def _nearest_left(rows, x, taken):
    """The row that a point stands for, which rounding may have moved; of equal ones the first left.

    Distances are in widths of the pool: the units of one feature must not outweigh the others.
    """
    width = np.ptp(rows, axis=0)
    distance = (np.abs(rows - x) / np.where(width > 0, width, 1.0)).max(axis=1)
    distance[taken] = np.inf
    return int(distance.argmin())


def _rmse(X, y, X_test, y_test, bounds):
    """Test error of a zero-mean Gaussian process with RBF kernel, fitted by maximum likelihood."""
    low, high = np.asarray(bounds, dtype=float).T
    mean, _ = _model((X - low) / (high - low), y).predict((X_test - low) / (high - low))
    return float(np.sqrt(np.mean((mean - y_test) ** 2)))


def _model(X, y):
    """The likeliest Gaussian process that several searches find, for X in the unit cube."""
    from ..surrogates import ExactGP

    best = ExactGP(prior=False, n_restarts=_RESTARTS).fit(X, y)
    n_features = X.shape[1]
    if n_features < 3:
        return best
    # Always the same starts: the error depends on the data alone.
    rng = np.random.default_rng(0)
    scale = np.sqrt(np.mean(np.square(y))) or 1.0
    for _ in range(_RANDOM_STARTS * n_features):
        lengthscales = rng.uniform(np.log(0.1), np.log(10.0), n_features)
        noise = rng.uniform(np.log(0.01), 0.0)
        model = ExactGP(prior=False, warm_start=True)
        model.theta_ = np.concatenate([lengthscales, np.log(scale) + [0.0, noise]])
        model.fit(X, y)
        if model.objective_ > best.objective_:
            best = model
    return best
