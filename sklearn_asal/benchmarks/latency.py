"""How long a query takes on this machine, and how much that varies."""

import os
import threading
import time
import warnings

import numpy as np

from .. import AmortizedQuerier, AmortizedSafeQuerier, CandidatePool, GPQuerier, GPSafeQuerier
from ..exceptions import DataScaleWarning
from ..policies.registry import load_runtime, picks

LENGTHS = (5, 25, 45)


def observations(n, n_features, rng):
    """Made-up data of about unit scale.

    Parameters
    ----------
    n, n_features : int
    rng : numpy.random.Generator

    Returns
    -------
    X : ndarray of shape (n, n_features)
        Around the centre of the unit cube.
    y, z : ndarray of shape (n,)
        Outputs, and safe measurements.
    """
    X = rng.uniform(0.3, 0.7, (n, n_features))
    return X, 0.3 * rng.standard_normal(n), 1 + 0.1 * rng.standard_normal(n)


def methods(policy, safe, n_features, guard=None):
    """What is timed: for each name a function of data that returns the call to time.

    Parameters
    ----------
    policy : str or path-like
        Name for, or path of, a policy.
    safe : bool
        Its kind.
    n_features : int
        Its number of inputs.
    guard : bool, optional
        Of a safe querier; None means its default.

    Returns
    -------
    dict of str to callable
        The function does, untimed, what comes before the call: ``fit`` and ``tell``.

    Raises
    ------
    PolicyNotFoundError, PolicyFileError
        If there is no such policy, or it is of the other kind.
    """
    # A stated budget, for the end of an unstated one is warned of.
    budget = load_runtime(policy, safe=safe)[1]["max_budget"]
    querier = _querier(policy, safe, guard, budget=budget)
    # Models, or candidates, so that the network alone is no query.
    asks_other = budget is None or picks(policy)
    plain = (GPSafeQuerier if safe else GPQuerier)(random_state=0)

    def told(X, y, z):
        if len(X) > 1:
            querier.fit(X[:-1], y[:-1], z[:-1]).query()
            querier.tell(X[-1], y[-1], z[-1])
        else:
            querier.fit(X, y, z)
        return querier.query

    def telling(X, y, z):
        told(X, y, z)()
        x = np.random.default_rng(len(X)).uniform(0.3, 0.7, X.shape[1])
        return lambda: querier.tell(x, y[0], z[0])

    return {
        "query() after tell": told,
        "tell(x, y, z)": telling,
        "query(X, y, z)": lambda X, y, z: lambda: querier.query(X, y, z),
        **({} if asks_other else {"network in eager torch": _eager(policy, safe)}),
        type(plain).__name__: lambda X, y, z: lambda: plain.query(X, y, z),
    }


def _querier(policy, safe, guard, **params):
    if safe:
        # Whatever is drawn as data.
        return AmortizedSafeQuerier(policy, guard=guard, on_no_safe="least_unsafe", **params)
    return AmortizedQuerier(policy, **params)


def _eager(policy, safe):
    """The bare network as it is trained, without validation and scaling, on one thread."""
    import torch

    from ..policies import load_policy

    network, _ = load_policy(policy, safe=safe)
    budget = torch.tensor([7.0], dtype=torch.float32)

    def prepare(X, y, z):
        parts = [torch.tensor(part, dtype=torch.float32)[None] for part in (X, y, z)[: 2 + safe]]

        def call():
            threads = torch.get_num_threads()
            torch.set_num_threads(1)
            try:
                with torch.inference_mode():
                    network(budget, *parts)
            finally:
                torch.set_num_threads(threads)

        return call

    return prepare


def latencies(prepare, n, n_features, calls, seed=0):
    """Wall time of each of many calls.

    Parameters
    ----------
    prepare : callable
        One of :func:`methods`.
    n : int
        Observations in each call; new ones every time.
    n_features, calls : int
    seed : int, default=0

    Returns
    -------
    ndarray of shape (calls,)
        Seconds. Two calls before them are not counted.
    """
    rng = np.random.default_rng(seed)
    seconds = np.empty(calls + 2)
    for i in range(len(seconds)):
        call = prepare(*observations(n, n_features, rng))
        start = time.perf_counter()
        call()
        seconds[i] = time.perf_counter() - start
    return seconds[2:]


def soak(policy, safe, n_features, calls, load=0, rate=1000.0, seed=0, guard=None):
    """Query at a fixed rate, campaign after campaign, with threads of other work beside it.

    Parameters
    ----------
    policy, safe, n_features
        See :func:`methods`.
    calls : int
        Number of queries. A campaign has five initial points and forty queries.
    load : int, default=0
        Threads of this process that multiply matrices all the while.
    rate : float, default=1000.0
        Queries a second; where the machine cannot keep up they follow each other at once.
    seed : int, default=0
    guard : bool, optional
        See :func:`methods`.

    Returns
    -------
    seconds : ndarray of shape (calls,)
        Wall time of each query; of ``tell``, nothing.
    late : int
        Periods in which query and ``tell`` together took longer than the period.
    growth : float
        MiB by which the memory of the process grew after the first tenth of the calls.
    """
    querier = _querier(policy, safe, guard)
    rng = np.random.default_rng(seed)
    stop = threading.Event()
    workers = [threading.Thread(target=_work, args=(stop,), daemon=True) for _ in range(load)]
    for worker in workers:
        worker.start()
    seconds, late, before = np.empty(calls), 0, _memory()
    try:
        for i in range(calls):
            if i % 40 == 0:
                querier.fit(*observations(5, n_features, rng))
                due = time.perf_counter()
            if i == calls // 10:
                before = _memory()
            _, y, z = observations(1, n_features, rng)
            start = time.perf_counter()
            x = querier.query()
            seconds[i] = time.perf_counter() - start
            querier.tell(x, y, z)
            due += 1 / rate
            wait = due - time.perf_counter()
            if wait > 0:
                time.sleep(wait)
            else:
                late, due = late + 1, time.perf_counter()
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    return seconds, late, _memory() - before


def _work(stop):
    matrix = np.random.default_rng(0).standard_normal((256, 256)) / 16
    product = matrix
    while not stop.is_set():
        product = np.tanh(product @ matrix)


def _memory():
    """Resident memory of this process in MiB."""
    try:
        with open("/proc/self/statm", encoding="utf-8") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except OSError:  # not Linux: the largest so far must do
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def throughput(policy, safe, n_features, campaigns, n=25, seed=0, guard=None):
    """How many proposals a second ``propose_many`` makes.

    Parameters
    ----------
    policy, safe, n_features
        See :func:`methods`.
    campaigns : int
        Histories in one call.
    n : int, default=25
        Observations in each of them.
    seed : int, default=0
    guard : bool, optional
        See :func:`methods`.

    Returns
    -------
    float
    """
    querier = _querier(policy, safe, guard)
    rng = np.random.default_rng(seed)
    histories = [observations(n, n_features, rng) for _ in range(campaigns)]
    querier.propose_many(histories[:20], 7)
    start = time.perf_counter()
    querier.propose_many(histories, 7)
    return campaigns / (time.perf_counter() - start)


def pool_latency(policy, safe, rows, n_features, calls=100, seed=0, guard=None):
    """How long a random pool takes.

    Parameters
    ----------
    policy, safe
        See :func:`methods`.
    rows, n_features : int
        Of the pool.
    calls : int, default=100
        The campaign has 10 observations at first, around the centre, and one more in each call.
    seed : int, default=0
    guard : bool, optional
        See :func:`methods`.

    Returns
    -------
    index : float
        Seconds to index the pool.
    nearest : ndarray of shape (calls,)
        Seconds of each search for the nearest row that is left.
    query, tell : ndarray of shape (calls,)
        Seconds of each ``query``, and of the ``tell`` that follows.
    """
    from ..box import Box
    from ..pool import Candidates

    rng = np.random.default_rng(seed)
    pool, box = CandidatePool(rng.random((rows, n_features))), Box.of(None, n_features)
    observed = pool.X[rng.integers(rows, size=10)]
    start = time.perf_counter()
    candidates = Candidates(pool, box, observed)
    index = time.perf_counter() - start
    nearest = np.empty(calls)
    for i in range(calls):
        point = rng.random(n_features)
        start = time.perf_counter()
        candidates = Candidates(pool, box, observed, known=candidates)
        position = candidates.nearest(point)[0]
        nearest[i] = time.perf_counter() - start
        observed = np.vstack([observed, pool.X[candidates.row(position)]])

    def measured(x):
        # The safe region is a ball that holds about half of the box.
        return np.cos(4 * x).mean(axis=1), 2 - 24 * np.square(x - 0.5).mean(axis=1)

    querier = _querier(policy, safe, guard, budget=calls)
    first = rng.uniform(0.4, 0.6, (10, n_features))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataScaleWarning)  # of more calls than it was trained for
        querier.fit(first, *measured(first))
    querier.query(pool=pool)  # a policy that weighs features has an index of its own
    query, tell = np.empty((2, calls))
    for i in range(calls):
        start = time.perf_counter()
        x = querier.query(pool=pool)
        query[i] = time.perf_counter() - start
        y, z = measured(x)
        start = time.perf_counter()
        querier.tell(x, y, z)
        tell[i] = time.perf_counter() - start
    return index, nearest, query, tell


def table(results, deadline_ms):
    """Lines of a table of latencies.

    Parameters
    ----------
    results : dict of (str, int) to ndarray
        Seconds of each call, by method and number of observations.
    deadline_ms : float
        The last column is the share of calls that took longer.

    Returns
    -------
    list of str
    """
    names = [f"{name}, {n} observations" for name, n in results]
    width = max(map(len, names))
    lines = [f"{'':{width}}   p50 ms   p99 ms   max ms   over {deadline_ms:g} ms"]
    for name, seconds in zip(names, results.values(), strict=True):
        ms = 1e3 * seconds
        middle, high, most = np.median(ms), np.percentile(ms, 99), ms.max()
        over = np.mean(ms > deadline_ms)
        lines.append(f"{name:{width}} {middle:8.3f} {high:8.3f} {most:8.3f}   {over:8.2%}")
    return lines


def plot(results, deadline_ms, path):
    """Draw the time of every call, call after call, and save the figure.

    Parameters
    ----------
    results : dict of (str, int) to ndarray
        As for :func:`table`.
    deadline_ms : float
        A line in the figure.
    path : path-like
        The file; its ending says of what kind.

    Raises
    ------
    OSError, ValueError
        If the file cannot be written, or there is no such kind.
    """
    from matplotlib.figure import Figure

    lengths = list(dict.fromkeys(n for _, n in results))
    figure = Figure(figsize=(4 * len(lengths), 3.5), layout="constrained")
    axes = figure.subplots(1, len(lengths), sharey=True, squeeze=False)[0]
    for ax, n in zip(axes, lengths, strict=True):
        for name in dict.fromkeys(name for name, _ in results):
            ms = 1e3 * results[name, n]
            ax.plot(np.linspace(0, 1, len(ms)), ms, ".", markersize=2, label=name)
        ax.axhline(deadline_ms, color="k", linewidth=0.8)
        ax.set(title=f"{n} observations", xlabel="calls, first to last", yscale="log")
    axes[0].set_ylabel("ms")
    axes[-1].legend(fontsize="small", markerscale=4)
    figure.savefig(path, dpi=150)
