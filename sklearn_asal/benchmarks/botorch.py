"""Active learning beside BoTorch: ``python -m sklearn_asal.benchmarks.botorch``.

BoTorch is no dependency: ``pip install 'sklearn-asal[botorch]'``.
"""

import argparse
import importlib.util
from dataclasses import dataclass

import numpy as np
from scipy.stats import qmc

from .._arguments import positive
from ..datasets import Function, branin
from ..queriers.base import BaseQuerier
from .methods import make
from .protocol import run
from .sources import FunctionSource
from .tasks import Task, get_task

#: The methods and the tasks, in the order of the tables.
METHODS = "aal-any", "gp", "sobol", "random", "botorch"
TASKS = "branin", "lgbb", "airfoil", "rough-3d", "borehole-8d"


@dataclass(frozen=True, eq=False)
class Noiseless(FunctionSource):
    """A function that is measured with noise, but tested without."""

    def draw(self, n_init, n_test, initial, test, pool):
        """As :meth:`FunctionSource.draw`.

        Parameters
        ----------
        n_init, n_test, initial, test, pool
            See there.

        Returns
        -------
        tuple
        """
        X, y, z, X_test, _, *rest = super().draw(n_init, n_test, initial, test, pool)
        return X, y, z, X_test, self.function.output(X_test), *rest


def task(name):
    """One of the tasks.

    Parameters
    ----------
    name : str
        One of ``TASKS``: tasks of the paper (``branin`` tested without noise), a rough function
        of three inputs and a smooth one of eight.

    Returns
    -------
    Task
    """
    if name == "branin":
        return Task(name, "al", Noiseless(branin()), 1, 30, 200)
    if name == "rough-3d":
        function = Function(name, [(0, 1)] * 3, _rough)
        return Task(name, "al", Noiseless(function.normalise()), 5, 40, 500)
    if name == "borehole-8d":
        function = Function(name, _BOREHOLE, _borehole)
        return Task(name, "al", Noiseless(function.normalise()), 5, 60, 500)
    return get_task(name)


def _rough(X, lengthscale=0.1, n_features=200):
    """A draw from a Gaussian process with RBF kernel, by random Fourier features."""
    rng = np.random.default_rng(0)
    frequencies = rng.standard_normal((X.shape[1], n_features)) / lengthscale
    phases = rng.uniform(0, 2 * np.pi, n_features)
    return np.cos(X @ frequencies + phases) @ rng.standard_normal(n_features)


# Radius of the borehole and of its influence, transmissivities and heads of the upper and of the
# lower aquifer, length, conductivity.
_BOREHOLE = [
    (0.05, 0.15),
    (100, 50_000),
    (63_070, 115_600),
    (990, 1_110),
    (63.1, 116),
    (700, 820),
    (1_120, 1_680),
    (9_855, 12_045),
]


def _borehole(X):
    """Logarithm of the flow through a borehole (Morris, Mitchell, Ylvisaker, 1993)."""
    r_w, r, T_u, H_u, T_l, H_l, L, K_w = X.T
    ratio = np.log(r / r_w)
    resistance = ratio * (1 + T_u / T_l) + 2 * L * T_u / (r_w**2 * K_w)
    return np.log(2 * np.pi * T_u * (H_u - H_l) / resistance)


class SobolQuerier(BaseQuerier):
    """Points of a scrambled Sobol sequence, or the rows of a pool that are nearest to them.

    Parameters
    ----------
    bounds, budget, random_state, y_loc, y_scale
        As for :class:`~sklearn_asal.RandomQuerier`; the random state scrambles the sequence.
    """

    def _select(self, history, candidates, budget, rng):
        sequence = qmc.Sobol(history.X.shape[1], seed=self.random_state)
        point = sequence.random_base2((self.n_told_ + 1).bit_length())[self.n_told_]
        return point if candidates is None else candidates.nearest(point)[0]


def is_installed():
    """Whether BoTorch can be imported.

    Returns
    -------
    bool
    """
    return importlib.util.find_spec("botorch") is not None


def querier(method, task):
    """The querier of a method.

    Parameters
    ----------
    method : str
        One of ``METHODS``.
    task : Task

    Returns
    -------
    querier
    """
    return SobolQuerier() if method == "sobol" else make(method, task)


def compare(tasks, methods, seeds, n_queries=None):
    """Run campaigns of all methods on all tasks.

    Parameters
    ----------
    tasks : sequence of str
        Of ``TASKS``.
    methods : sequence of str
        Of ``METHODS``.
    seeds : int
        Number of campaigns of each method on each task.
    n_queries : int, optional
        By default each task's own number.

    Returns
    -------
    rmse : ndarray of shape (len(methods), len(tasks), seeds)
        After the last query, of an exact Gaussian process fitted to all data, at test points
        without noise.
    seconds : ndarray of shape (len(methods), len(tasks), seeds)
        Mean time of a query.

    Raises
    ------
    ImportError
        For the method ``botorch``, which is not installed.
    """
    built = [task(name) for name in tasks]
    rmse, seconds = np.empty((2, len(methods), len(tasks), seeds))
    for i, j, seed in np.ndindex(rmse.shape):
        count = n_queries or built[j].n_queries
        if seed == 0:  # the first query loads a policy or a package
            run(querier(methods[i], built[j]), built[j], seed, 1)
        records = run(querier(methods[i], built[j]), built[j], seed, count, count)
        rmse[i, j, seed] = records[-1].rmse
        seconds[i, j, seed] = np.mean([record.seconds for record in records])
    return rmse, seconds


def table(title, values, tasks, methods, digits):
    """Lines of a table.

    Parameters
    ----------
    title : str
    values : ndarray of shape (len(methods), len(tasks), seeds)
        Means of the seeds are shown.
    tasks, methods : sequence of str
    digits : int
        After the point.

    Returns
    -------
    list of str
    """
    lines = [title, " " * 10 + "".join(f"{name:>13}" for name in tasks)]
    for method, row in zip(methods, values.mean(axis=2), strict=True):
        lines.append(f"{method:10}" + "".join(f"{value:13.{digits}f}" for value in row))
    return lines


def main(arguments=None):
    """Compare, and print the tables.

    Parameters
    ----------
    arguments : list of str, optional
        By default those of the command line.
    """
    parser = argparse.ArgumentParser("python -m sklearn_asal.benchmarks.botorch")
    add = parser.add_argument
    add("--seeds", type=positive, default=4, help="campaigns of each; default: %(default)s")
    add("--tasks", nargs="+", choices=TASKS, default=TASKS, help="default: all")
    add("--methods", nargs="+", choices=METHODS, help="default: all, botorch if it is installed")
    add("--queries", type=positive, help="default: each task's own number")
    given = parser.parse_args(arguments)
    methods = given.methods or [m for m in METHODS if m != "botorch" or is_installed()]
    rmse, seconds = compare(given.tasks, methods, given.seeds, given.queries)
    lines = table("RMSE at noise-free test points", rmse, given.tasks, methods, 3)
    print("\n".join([*lines, "", *table("ms per query", 1e3 * seconds, given.tasks, methods, 2)]))


if __name__ == "__main__":
    main()
