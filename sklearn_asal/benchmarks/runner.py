"""Many campaigns, spread over processes: every method on every task for every seed."""

import hashlib
import importlib
import itertools
import os
import platform
import re
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed, parallel_config
from sklearn import config_context
from sklearn.utils import check_scalar
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from .. import __version__
from .._typing import StrPath
from ..adapters.optional import adapter
from .methods import METHODS, base_of, make, method_of
from .protocol import run
from .results import Results, locked
from .tasks import TASKS, Task, get_task, suite_of

BACKENDS = "loky", "dask", "ray"

#: What ``--quick`` sets.
QUICK = {"seeds": 1, "n_queries": 2, "every": 2, "pool_size": 2_000}

# Arrays in full and to the last digit, however the program around likes to see them.
_PRINT_OPTIONS = {
    "precision": 8,
    "threshold": sys.maxsize,
    "edgeitems": 3,
    "linewidth": 75,
    "suppress": False,
    "nanstr": "nan",
    "infstr": "inf",
    "formatter": None,
    "sign": "-",
    "floatmode": "unique",
    "legacy": False,
}

# Warnings that Python does not show by default.
_NOT_FOR_USERS = DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning

# Methods whose results depend on the policy.
_WITH_POLICY = {"asal", "aal"}

# These decide what a number in results.csv means, so that one folder holds one value of each.
_COMMON = "n_queries", "every", "pool_size"


def run_cells(
    out: StrPath,
    tasks: Sequence[str | Task],
    methods: Sequence[str] | dict[str, Any],
    seeds: int = 5,
    *,
    jobs: int = 1,
    backend: Literal["loky", "dask", "ray"] = "loky",
    n_queries: int | None = None,
    every: int = 1,
    policy: StrPath | None = None,
    pool_size: int | None = None,
    data_home: StrPath | None = None,
    progress: bool = True,
) -> Results:
    """Run every method on every task for every seed; keep what is finished already.

    Cells finished in an earlier run into the same folder are skipped, failed ones are tried again.
    Safe methods are left out on tasks without a safety measurement. Results do not depend on
    ``jobs`` and ``backend``; times do, when processes compete for cores.

    Parameters
    ----------
    out : str or path-like
        Folder of the results.
    tasks : sequence of str or Task
        Names of the paper's tasks, and tasks of your own, also as ``"module:name"`` (see
        :func:`get_task`). Sizes and suite of your own are recorded, and a changed task of the same
        name is refused.
    methods : sequence of str, or dict of str to querier
        Names out of ``METHODS``, also with constructor parameters of the querier, as in
        ``"asal:guard=True,z_scale=2.0"`` (see ``methods.method_of``). In a dict, None as the
        querier stands for the method of that name; queriers of your own take other names. Their
        class and parameters are recorded, and another querier of the same name is refused.
    seeds : int, default=5
        Seeds 0 to ``seeds - 1``.
    jobs : int, default=1
        Number of processes, each of them kept to one thread. A dask cluster uses all its workers.
    backend : {"loky", "dask", "ray"}, default="loky"
        Processes of this machine, or the cluster that DASK_SCHEDULER_ADDRESS or RAY_ADDRESS names
        (without one, dask and ray start workers here).
    n_queries : int, optional
        By default every task's own number.
    every : int, default=1
        The test error is taken after every so many queries, and after the last one.
    policy : str or path-like, optional
        Policy file for the methods that have a policy; by default the shipped policies.
    pool_size : int, optional
        Number of trajectories in the pool of "fluid"; a million by default.
    data_home : str or path-like, optional
        Folder of the data files.
    progress : bool, default=True
        Show a progress bar, if standard error is a terminal.

    Returns
    -------
    results : Results
        Of everything in the folder; ``results.failed`` lists the cells that failed in this run.

    Raises
    ------
    ValueError
        If an argument is invalid, nothing would be run, or the folder holds results of other
        settings. An error within a cell is recorded and not raised.
    FileNotFoundError
        If the policy is not there.
    RuntimeError
        If another run is using the folder.
    ImportError
        If dask's ``distributed`` or ``ray`` is asked for and missing, or the module of a task
        cannot be imported, or the package of a method is not installed.
    KeyboardInterrupt
        After an interrupt. Finished cells are kept.
    """
    for name, value in (("seeds", seeds), ("jobs", jobs), ("every", every)):
        check_scalar(value, name, Integral, min_val=1)
    for name, number in (("n_queries", n_queries), ("pool_size", pool_size)):
        if number is not None:
            check_scalar(number, name, Integral, min_val=1)
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}; got {backend!r}.")
    named = _by_name(tasks)
    queriers = _queriers(methods)
    cells = _cells(named, queriers, range(seeds))
    for name, querier in queriers.items():
        if querier is None and method_of(name).extra:
            adapter(method_of(name).extra)

    policy = None if policy is None else Path(policy).resolve()
    settings = {
        "n_queries": n_queries,
        "every": every,
        "pool_size": pool_size,
        "policy": _digest(policy),
        "queriers": {name: _identity(q) for name, q in queriers.items() if q is not None},
        "tasks": {name: repr(task) for name, task in named.items() if isinstance(task, Task)},
    }
    if data_home is not None:
        data_home = str(Path(data_home).expanduser().resolve())
    options = data_home, pool_size, None if policy is None else str(policy)
    with ExitStack() as stack:
        stack.enter_context(locked(out))
        results = Results(out)
        _settle(results, settings)
        for cell in cells:
            results.failures.pop(cell, None)
        results.save()
        left = [cell for cell in cells if cell not in results.records]
        calls = (
            delayed(_run_cell)(
                named[task], method, queriers[method], seed, n_queries, every, *options
            )
            for task, method, seed in left
        )
        is_off = None if progress else True
        bar = stack.enter_context(tqdm(total=len(left), unit="cell", disable=is_off))
        _start(stack, backend, jobs)
        interrupts = stack.enter_context(_interrupts())
        # As they finish, so that whatever ends this run leaves them saved.
        for cell, records, error in _finished(calls, backend, jobs):
            if error is None:
                results.records[cell] = records
            else:
                results.failures[cell] = error
                results.failed.append(cell)
            results.save()
            bar.set_postfix_str(" ".join(map(str, cell)), refresh=False)
            bar.update()
            if interrupts:
                raise KeyboardInterrupt
    return results


@contextmanager
def _interrupts():
    """A list that notes every interrupt.

    Python drops the exception of one that comes during a destructor or a callback from C, and the
    run would go on through all its cells.
    """
    noted, handle = [], signal.getsignal(signal.SIGINT)
    # Only the main thread may change handlers, and what is none of Python's says: leave it.
    if threading.current_thread() is not threading.main_thread() or not callable(handle):
        yield noted
        return

    def note(number, frame):
        noted.append(number)
        handle(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, handle)


@cache
def _task(name, data_home, pool_size):
    return get_task(name, data_home, pool_size=pool_size)


def _run_cell(task, method, querier, seed, n_queries, every, data_home, pool_size, policy):
    """One campaign; returns the cell and its records or its error."""
    cell = task if isinstance(task, str) else task.name, method, seed
    try:
        # One process, one thread: more of them would compete with the other cells.
        with threadpool_limits(1), _default_warnings():
            if isinstance(task, str):
                task = _task(task, data_home, pool_size)
            if querier is None:
                querier = make(method, task, policy)
            return cell, run(querier, task, seed, n_queries, every), None
    except Exception as error:
        return cell, None, "".join(traceback.format_exception_only(error)).strip()


@contextmanager
def _default_warnings():
    """Python's own filters: a warning fails no cell, whichever process runs it."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for category in _NOT_FOR_USERS:
            warnings.simplefilter("ignore", category)
        yield


def _by_name(tasks):
    """The tasks by name; those given as module:name are loaded."""
    named = {}
    for task in tasks:
        if isinstance(task, str) and ":" in task:
            task = get_task(task)
        name = task.name if isinstance(task, Task) else task
        if named.setdefault(name, task) != task:
            raise ValueError(f"tasks: more than one is named {name!r}; give each its own name.")
    return named


def _queriers(methods):
    """Queriers by name, None for methods of this package; all spellings of a variant are one."""
    given = methods if isinstance(methods, dict) else dict.fromkeys(methods)
    for method, querier in given.items():
        # Tables would show it beside the paper's figures of that method.
        if querier is not None and base_of(method) in METHODS:
            raise ValueError(
                f"methods: {method!r} is the name of a method of this package; give your "
                f"{type(querier).__name__} another one."
            )
    return {
        method_of(name).name if querier is None else name: querier
        for name, querier in given.items()
    }


def _cells(tasks, methods, seeds):
    """All (task, method, seed) that fit together, in the order to run them."""
    for task, given in tasks.items():
        if isinstance(given, str) and given not in TASKS:
            raise ValueError(
                f"tasks must be out of {', '.join(TASKS)}, or module:name for one of your own; got "
                f"{task!r}."
            )
    cells = []
    for task, given in tasks.items():
        suite = suite_of(given)
        for method, querier in methods.items():
            safe = method_of(method).safe if querier is None else _is_safe(querier)
            if suite == "safe" or not safe:
                cells += [(task, method, seed) for seed in seeds]
    if not cells:
        raise ValueError(
            f"nothing to run: none of the methods {', '.join(methods) or '(none)'} fits a task of "
            f"{', '.join(tasks) or '(none)'}; safe methods need tasks of the suite 'safe'."
        )
    return cells


def _is_safe(querier):
    return "safety_threshold" in querier.get_params()


def _identity(querier):
    """Class and parameters of a querier as text, the same in every process."""
    with np.printoptions(**_PRINT_OPTIONS), config_context(print_changed_only=True):
        params = ", ".join(f"{name}={value!r}" for name, value in querier.get_params().items())
    # Objects without a repr of their own are told by their address, which says nothing.
    params = re.sub(r" at 0x[0-9a-fA-F]+", "", params)
    return f"{type(querier).__module__}.{type(querier).__qualname__}({params})"


def _digest(policy):
    if policy is None:
        return None
    if not policy.is_file():
        raise FileNotFoundError(f"policy: there is no file {policy}.")
    return hashlib.sha256(policy.read_bytes()).hexdigest()


def _settle(results, settings):
    """Compare the settings with those of the folder, then write them there."""
    old, finished = results.settings, {method for _, method, _ in results.records}
    done = {"queriers": finished, "tasks": {task for task, _, _ in results.records}}
    compared = [(name, old.get(name), settings[name]) for name in _COMMON if finished]
    if {base_of(method) for method in finished} & _WITH_POLICY:
        compared.append(("policy", old.get("policy"), settings["policy"]))
    for kind, names in done.items():
        # Folders of earlier versions know nothing of tasks.
        known = old.get(kind, settings[kind])
        compared += [(n, known.get(n), new) for n, new in settings[kind].items() if n in names]
    for name, before, now in compared:
        if before != now:
            raise ValueError(
                f"{results.folder} holds results with {name}={before!r}, but now {name} is "
                f"{now!r}. Choose another folder for out, or the same settings."
            )
    results.settings = {
        **settings,
        **{kind: {**old.get(kind, {}), **settings[kind]} for kind in done},
        "version": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, {platform.system()}",
    }


def _finished(calls, backend, jobs):
    """What the calls return, as they finish."""
    if backend != "ray":
        yield from Parallel(return_as="generator_unordered")(calls)
        return
    # Ray's backend returns lists only: a few cells at a time.
    while batch := list(itertools.islice(calls, 4 * jobs)):
        yield from Parallel()(batch)


def _start(stack, backend, jobs):
    """Make ``backend`` the one that joblib uses, until the stack is closed."""
    if backend == "dask":
        client = _optional("distributed", "dask").Client
        if os.environ.get("DASK_SCHEDULER_ADDRESS"):
            stack.enter_context(client())
        else:
            workers = {"n_workers": jobs, "threads_per_worker": 1, "dashboard_address": None}
            stack.enter_context(client(**workers))
    elif backend == "ray":
        _optional("ray.util.joblib", "ray").register_ray()
    stack.enter_context(parallel_config(backend=backend, n_jobs=jobs))


def _optional(module, backend):
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"backend {backend!r} needs the package {package}; install it with pip install "
            f"{package}, or leave backend at 'loky'."
        ) from error
