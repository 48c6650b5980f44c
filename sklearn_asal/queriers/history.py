"""What a query is chosen from: observations at unit scale, and what past queries worked out."""

import os
import threading
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import cKDTree

from ..acquisition import argbest
from ..box import Box
from ..once import once
from ..pool import sobol
from ..surrogates.evidence import rank_features
from .neighbourhood import Neighbourhood

# Points that are no farther apart than this, at unit scale, are the same experiment.
SAME = 1e-6
# Distances and outcomes that differ by less, relative to their size, differ by rounding.
_ROUNDING = 1e-9
# How far a proposal that would repeat an experiment is moved at first.
_STEP = 0.02
# Points that are no farther from one that is pending, along any axis, teach nothing.
_APART = 1e-3


# How often this process has been forked off: a copied lock may be held by a thread that the copy
# does not have.
_generation = 0


def _count_fork():
    global _generation
    _generation += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


class Cache:
    """What queries of one campaign work out once; never part of a querier's state.

    Attributes
    ----------
    telling : Lock
        To be held while observations are added or taken back.
    lock : Lock
        To be held while anything below is extended and used.
    history : tuple (key, X, y, History) or None
        The campaign's observations at unit scale.
    policy : tuple or None
        The policy in use, with what it was chosen by.
    tokens : Tokens or None
        The policy's KV cache.
    attended : tuple (History, ndarray) or None
        The observations last asked about, and their tokens.
    models : dict of str to tuple (key, surrogate)
        Models that are extended observation by observation.
    candidates : Candidates or None
        Those of the last query with a pool, or where not everything may be proposed.
    feasible : Known or None
        What is worked out of constraints.
    probed : Probed or None
        What the inputs alone say about hyperparameters.
    reference : tuple of ndarray or None
        Ranks of the features, and points all over the unit cube that go with them.
    """

    def __init__(self):
        self._generation = _generation
        self.telling, self.lock = threading.Lock(), threading.Lock()
        self.history = self.policy = self.tokens = self.attended = None
        self.candidates = self.feasible = self.probed = self.reference = None
        self.models = {}

    def renewed(self):
        """An empty one in the place of this one, with the lock of those who wait to tell."""
        cache = Cache()
        cache.telling = self.telling
        return cache

    @property
    def is_inherited(self):
        """Whether it was made before this process was forked."""
        return self._generation != _generation


@dataclass(frozen=True, eq=False)
class History:
    """Observations at unit scale, and points that are proposed but not yet measured.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        Inputs; the bounds are the unit cube. Measured points may lie a little outside.
    y : ndarray of shape (n,)
        Outputs.
    margin : ndarray of shape (n, n_limits) or None
        Safety margins, safe where >= 0; None for a querier without limits.
    n_observed : int
        Rows from this one on are pending: their outcomes are guesses.
    box : Box
        The bounds, in the user's units.
    cache : Cache
        Of the campaign; an empty one where a query got its data passed.
    has_output : bool ndarray of shape (n_observed,) or None
        Which outputs were measured; the others are those of the nearest observations that have
        one. None where all were.
    failed : ndarray of shape (n_failed, n_features) or None
        Inputs of runs that failed, which are not among the observations. None without any.
    nearby : Neighbourhood or None
        Where alone may be proposed; None for anywhere.
    """

    X: np.ndarray
    y: np.ndarray
    margin: np.ndarray | None
    n_observed: int
    box: Box
    cache: Cache
    has_output: np.ndarray | None = None
    failed: np.ndarray | None = None
    nearby: Neighbourhood | None = None

    @property
    def n_points(self):
        """Number of points that are told, failed ones included, or pending."""
        return len(self.X) + (0 if self.failed is None else len(self.failed))

    @property
    def observed(self):
        """The same without pending points."""
        if self.n_observed == len(self.X):
            return self
        n = self.n_observed
        margin = None if self.margin is None else self.margin[:n]
        return replace(self, X=self.X[:n], y=self.y[:n], margin=margin)

    @property
    def pending(self):
        """Inputs of the pending points, ``(n_pending, n_features)``."""
        return self.X[self.n_observed :]

    @property
    def complete(self):
        """The same without observations that have no output."""
        return self if self.has_output is None else self._complete

    @once
    def _complete(self):
        kept = np.append(self.has_output, np.ones(len(self.pending), dtype=bool))
        margin = None if self.margin is None else self.margin[kept]
        n, parts = int(self.has_output.sum()), {"X": self.X[kept], "y": self.y[kept]}
        return replace(self, **parts, margin=margin, n_observed=n, has_output=None)

    def in_order(self):
        """This history with its observations sorted: rounding depends on their order."""
        observed = self.observed
        columns = () if observed.margin is None else observed.margin.T
        order = np.lexsort((*columns, observed.y, *observed.X.T))
        order = np.append(order, np.arange(self.n_observed, len(self.X)))
        margin = None if self.margin is None else self.margin[order]
        known = self.has_output
        if known is not None:
            known = known[order[: self.n_observed]]
        return replace(self, X=self.X[order], y=self.y[order], margin=margin, has_output=known)

    @once
    def feature_rank(self):
        """A rank for each feature that depends on its values only, not on its place."""
        observed = self.observed
        known = observed.X, observed.y, *observed.margins
        return rank_features(*known, pending=self.pending)

    def reference(self, n):
        """Points all over the unit cube whose coordinates go to features by their rank.

        Parameters
        ----------
        n : int

        Returns
        -------
        ndarray of shape (n, n_features)
        """
        rank, known = self.feature_rank, self.cache.reference
        if known is None or len(known[1]) != n or not np.array_equal(known[0], rank):
            known = self.cache.reference = rank, sobol(n, len(rank))[:, rank]
        return known[1]

    @once
    def margins(self):
        """Margins of each limit, a list of arrays of shape ``(n,)``; empty without limits."""
        return [] if self.margin is None else list(np.ascontiguousarray(self.margin.T))

    @once
    def worst_margin(self):
        """Smallest margin of each row, ``(n,)``; None without limits."""
        margin = self.margin
        if margin is None:
            return None
        return margin[:, 0] if margin.shape[1] == 1 else margin.min(axis=1)

    def with_pending(self, point):
        """This history and a point that will be measured.

        Its outcome is that of the observation nearest to it: of several equally near ones the
        mean output and the worst margins. Guesses are not handed on from guess to guess.

        Parameters
        ----------
        point : ndarray of shape (n_features,)

        Returns
        -------
        History
        """
        like = nearest(self.X[: self.n_observed], point)
        # Sorted, for the last digit of a sum depends on its order.
        y = np.append(self.y, np.sort(self.y[like]).mean())
        margin = self.margin
        if margin is not None:
            margin = np.vstack([margin, margin[like].min(axis=0)])
        return replace(self, X=np.vstack([self.X, point]), y=y, margin=margin)

    def with_all_pending(self, X):
        """This history and points that are being measured, see :meth:`with_pending`.

        Parameters
        ----------
        X : ndarray of shape (n_pending, n_features)
            In the user's units; their order is of no consequence.

        Returns
        -------
        History
        """
        history, points = self, np.clip(self.box.to_unit(X), 0.0, 1.0)
        for point in points[np.lexsort(points.T)]:
            history = history.with_pending(point)
        return history

    def is_apart(self, points):
        """Which points are not near to one that is pending.

        Parameters
        ----------
        points : ndarray of shape (n, n_features)

        Returns
        -------
        bool ndarray of shape (n,)
        """
        if len(self.X) == self.n_observed:
            return np.ones(len(points), dtype=bool)
        return cKDTree(self.pending).query(points, p=np.inf)[0] > _APART

    def is_repeated(self, point, reach=SAME):
        """Whether a point is measured with an outcome that has no noise, or is near to one that is
        pending or to a run that failed.

        Only replicates show noise: measurements at equal inputs with other outcomes.

        Parameters
        ----------
        point : ndarray of shape (n_features,)
        reach : float, default=1e-6
            Points that are no farther apart, along any axis, are the same; 1e-3 of points that are
            pending.

        Returns
        -------
        bool
        """
        if self.failed is not None and not self.is_free(point[None])[0]:
            return True
        if len(self.X) > self.n_observed and not self.is_apart(point[None])[0]:
            return True
        apart = self.X[:, 0] - point[0]
        if np.minimum.reduce(np.abs(apart, out=apart)) > reach:  # the usual, quickly
            return False
        same = (np.abs(self.X - point) <= reach).all(axis=1)
        if not same.any():
            return False
        return bool(same[self.n_observed :].any()) or not self._is_noisy()

    def is_free(self, points):
        """Which points are not near to a run that failed.

        Parameters
        ----------
        points : ndarray of shape (n, n_features)

        Returns
        -------
        bool ndarray of shape (n,)
        """
        if self.failed is None:
            return np.ones(len(points), dtype=bool)
        return cKDTree(self.failed).query(points, p=np.inf)[0] >= 0.5 * _STEP

    def _is_noisy(self):
        n = self.n_observed
        pairs = cKDTree(self.X[:n]).query_pairs(SAME, p=np.inf, output_type="ndarray")
        apart = np.abs(self.y[pairs[:, 0]] - self.y[pairs[:, 1]])
        size = np.abs(self.y[:n]).max()
        return bool((apart > _ROUNDING * size).any())


def nearest(X, point):
    """The rows that are nearest to a point, up to rounding.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    point : ndarray of shape (n_features,)

    Returns
    -------
    ndarray of int
    """
    distance = np.linalg.norm(X - point, axis=1)
    return np.flatnonzero(distance <= distance.min() * (1 + _ROUNDING) + _ROUNDING)


def still_pending(pending, told, box):
    """Points that are pending less those that were measured.

    Parameters
    ----------
    pending : ndarray of shape (n_pending, n_features)
        In the user's units.
    told : ndarray of shape (k, n_features)
        Each settles the point nearest to it, if that is near.
    box : Box

    Returns
    -------
    ndarray of shape (n_left, n_features) or None
        Read-only; None where none is left.
    """
    points, left = box.to_unit(pending), np.ones(len(pending), dtype=bool)
    for x in box.to_unit(told):
        away = np.where(left, np.abs(points - x).max(axis=1), np.inf)
        if away.min() <= _STEP:
            left[away.argmin()] = False
    if not left.any():
        return None
    pending = pending[left]
    pending.setflags(write=False)
    return pending


def moved_nearby(point, history):
    """A proposal, moved into ``history.nearby``, and off what is measured or pending there.

    Proposals from far away are moved to about the same place, again and again.

    Parameters
    ----------
    point : ndarray of shape (n_features,)
        Of the unit cube.
    history : History

    Returns
    -------
    ndarray of shape (n_features,)
    """
    moved = history.nearby.moved(point)
    return unrepeated(moved, history, SAME if moved is point else 0.5 * _STEP)


def unrepeated(point, history, reach=SAME):
    """A proposal, moved where it would repeat an experiment whose outcome is known.

    Policies are cut off at the bounds, and may propose a corner again and again.

    Parameters
    ----------
    point : ndarray of shape (n_features,)
    history : History
    reach : float, default=1e-6
        See :meth:`History.is_repeated`.

    Returns
    -------
    ndarray of shape (n_features,)
        The point itself, unless :meth:`History.is_repeated`; else one nearby, along an axis if
        there is room. It stays in ``history.nearby``, where that is stated.
    """
    if not history.is_repeated(point, reach):
        return point
    failed, nearby = history.failed, history.nearby
    known = cKDTree(history.X if failed is None else np.vstack([history.X, failed]))
    D, step = len(point), _STEP
    while step < 0.5:
        moves = step * np.vstack([np.eye(D), -np.eye(D)])
        near = np.clip(np.asarray(point, dtype=float) + moves, 0.0, 1.0)
        apart = known.query(near, p=np.inf)[0]
        if nearby is not None:
            apart[~nearby.holds(near)] = 0.0
        best = argbest(apart, near)
        if apart[best] >= 0.5 * _STEP:
            return near[best]
        step += _STEP
    # All around is measured. Of one point more than there are observations not all are.
    spread = sobol(known.n + 1, D)
    if nearby is not None:
        spread = nearby.about(point, spread)
    apart = known.query(spread, p=np.inf)[0]
    free = spread[apart >= 0.5 * apart.max()]
    return free[argbest(-np.linalg.norm(free - point, axis=1), free)]
