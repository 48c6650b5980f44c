"""A task whose answers are known, and queriers that ask for known points."""

import os

import numpy as np

from sklearn_asal.benchmarks import Task
from sklearn_asal.benchmarks.sources import FunctionSource, TableSource
from sklearn_asal.datasets import Function
from sklearn_asal.exceptions import NoSafeCandidateError
from sklearn_asal.queriers.base import BaseQuerier
from sklearn_asal.queriers.safe import SafeQuerierMixin

BAD_LUCK = RuntimeError("no | <luck>")


def wave(X):
    return np.sin(X[:, 0])


def below_six(X):
    return 6.0 - X[:, 0]


def task(suite="safe", noise=0.0, n_init=2, n_queries=3, n_test=20, low=0.0, high=10.0):
    """sin(x) on [0, 10], safe up to 6; without noise unless asked for."""
    q = below_six if suite == "safe" else None
    function = Function("wave", [(low, high)], wave, q)
    return Task("wave", suite, FunctionSource(function, noise), n_init, n_queries, n_test, 0.05)


def table_task(n_init=2, n_test=3, safe_from=0.2):
    """Rows 0, 0.05, ..., 1, twice, with y the number of the row and z = x - ``safe_from``."""
    X = np.tile(np.arange(21) / 20, 2)[:, None]
    source = TableSource(X, np.arange(42.0), X[:, 0] - safe_from, np.array([[0.0, 1.0]]))
    return Task("rows", "safe", source, n_init, 4, n_test)


def from_two_to_six(X):
    return np.stack([X[:, 0] - 2.0, 6.0 - X[:, 0]], axis=1)


def two_limits(noise=0.0):
    """sin(x) on [0, 10], safe from 2 to 6."""
    function = Function("band", [(0.0, 10.0)], wave, from_two_to_six)
    return Task("band", "safe", FunctionSource(function, noise), 2, 4, 20, 0.05)


class Sequence(BaseQuerier):
    """Asks for ``points`` of the unit cube, one after another, from the first query on.

    Raises ``error`` when its random state is ``fails_at``, until the file ``mended`` exists.
    """

    calls = 0

    def __init__(
        self,
        points=(0.1, 0.9, 0.5),
        n_init=2,
        fails_at=None,
        error=BAD_LUCK,
        mended="",
        bounds=None,
        budget=None,
        random_state=None,
    ):
        super().__init__(bounds=bounds, budget=budget, random_state=random_state)
        self.points = points
        self.n_init = n_init
        self.fails_at = fails_at
        self.error = error
        self.mended = mended

    def _select(self, history, candidates, budget, rng):
        type(self).calls += 1
        if self.random_state == self.fails_at and not os.path.exists(self.mended):
            raise self.error
        n_told = len(history.X) - self.n_init
        assert budget == self.budget - n_told
        point = np.full(history.X.shape[1], self.points[n_told])
        return point if candidates is None else candidates.nearest(point)[0]


class Timid(SafeQuerierMixin, BaseQuerier):
    """Finds nothing safe; its least unsafe candidate is ``point`` or the nearest one left."""

    def __init__(
        self,
        point=0.7,
        bounds=None,
        budget=None,
        random_state=None,
        safety_threshold=-99.0,
        safe_when="below",
        y_loc=0.0,
        y_scale=1.0,
        z_scale=1.0,
    ):
        super().__init__(
            bounds=bounds, budget=budget, random_state=random_state, y_loc=y_loc, y_scale=y_scale
        )
        self.point = point
        self.safety_threshold = safety_threshold
        self.safe_when = safe_when
        self.z_scale = z_scale

    def _select(self, history, candidates, budget, rng):
        point = np.full(history.X.shape[1], self.point)
        if candidates is not None:
            point = candidates.points[candidates.nearest(point)[0]]
        raise NoSafeCandidateError(point, 0.5, 0.95)
