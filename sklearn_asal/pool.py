"""Finite sets of candidates: which rows are left, and which of them is nearest."""

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import qmc

from .exceptions import PoolExhaustedError
from .space import Box, finite_array, whole

# Two points are the same measurement when no coordinate differs by more, at unit scale: a row that
# comes back in single precision or with six digits is still that row.
_SAME = 2e-6
# What a row may lie beyond the bounds, by rounding.
_ROUNDING = 1e-9
# Rows that are quicker compared with all observations than these are looked up.
_FEW = 64
# One in so many rows is in the next coarser selection; the coarsest has less than these squared.
_STRIDE = 8
# Observations whose equals in a pool are remembered.
_REMEMBERED = 10_000


class CandidatePool:
    """The points that may be measured, when only finitely many can be.

    Pass it as ``pool`` to ``query``. A plain array does as well; this class
    keeps the k-d tree between queries, which pays off for large pools. It never
    remembers what was measured: every query works that out from the
    observations, so one pool serves several queriers.

    Parameters
    ----------
    X : array-like of shape (n_candidates, n_features)
        Candidates in the user's units. Rows outside a querier's ``bounds`` are
        never returned by it.

    Attributes
    ----------
    X : ndarray of shape (n_candidates, n_features)
        A read-only copy.
    columns : list of str or None
        Column names, when ``X`` was a DataFrame.

    Notes
    -----
    A row is spent when an observation equals it, up to 2e-6 of the width of the
    bounds in each feature. One observation spends one row: of two equal rows,
    the second is left for a repetition.

    Examples
    --------
    >>> from sklearn_asal import CandidatePool
    >>> pool = CandidatePool([[0.1, 0.2], [0.5, 0.5], [0.9, 0.1]])
    >>> len(pool)
    3
    """

    def __init__(self, X):
        columns = getattr(X, "columns", None)
        self.columns = None if columns is None else list(columns)
        self.X = finite_array(X, "pool")
        self.X.setflags(write=False)
        self._indexed = None

    @classmethod
    def from_bounds(cls, bounds, n_rows=4096):
        """Candidates from all over the bounds, where any point may be measured.

        Policies compare them with ``pool_choice="informative"``.

        Parameters
        ----------
        bounds : array-like of shape (n_features, 2)
            Lower and upper limit of each feature in the user's units.
        n_rows : int, default=4096
            How many; the first ones of the Sobol sequence.

        Returns
        -------
        CandidatePool

        Raises
        ------
        ValueError, TypeError
            Invalid bounds, or no positive whole number.

        Examples
        --------
        >>> from sklearn_asal import CandidatePool
        >>> CandidatePool.from_bounds([(0, 6), (-5, 30)], n_rows=4).X
        array([[ 0.  , -5.  ],
               [ 3.  , 12.5 ],
               [ 4.5 ,  3.75],
               [ 1.5 , 21.25]])
        """
        n_rows = whole(n_rows, "n_rows", min_val=1)
        if np.ndim(bounds) == 1:
            raise ValueError(
                "bounds must hold one (low, high) pair for each feature here: their number is that "
                f"of the features. Repeat the pair, [{tuple(bounds)}] * n_features."
            )
        limits = finite_array(bounds, "bounds")
        box = Box(limits, len(limits))
        # Of a power of two the sequence is balanced, and scipy says nothing.
        unit = qmc.Sobol(len(limits), scramble=False).random_base2(int(n_rows - 1).bit_length())
        return cls(box.from_unit(unit[:n_rows]))

    def __len__(self):
        return len(self.X)

    def __repr__(self):
        return f"CandidatePool(<{len(self.X)} candidates, {self.X.shape[1]} features>)"

    def __getstate__(self):
        # The tree is quicker to build than to ship.
        return {**self.__dict__, "_indexed": None}

    def _index(self, box, weights):
        """Of the rows inside a box: k-d trees, points, indices, what was asked."""
        limits = (*box.lower, *box.upper, *weights)
        indexed = self._indexed  # read once: another thread may replace it
        if indexed is None or indexed[0] != limits:
            rows = np.flatnonzero(~box.outside(self.X, tolerance=_ROUNDING))
            trees, points = [], None
            if len(rows):
                points = box.to_unit(self.X[rows])
                # A balanced tree takes longer to build and answers no faster here.
                order = cKDTree(points * weights, balanced_tree=False).indices
                # In the order of its leaves the data of a leaf are side by side in memory.
                rows, points = rows[order], np.ascontiguousarray(points[order])
                data = points if (weights == 1).all() else points * weights
                trees = [cKDTree(data, balanced_tree=False, leafsize=24)]
                # In the order of leaves, every so many rows are spread as all of them are.
                while len(data) > _STRIDE**2:
                    data = data[::_STRIDE]
                    trees.append(cKDTree(data))
            indexed = self._indexed = (limits, trees, points, rows, {})
        return indexed[1:]


class PoolView:
    """The rows of a pool that one set of observations leaves.

    What a querier's ``_propose`` gets to see of the pool.

    Parameters
    ----------
    pool : CandidatePool
    box : Box
        Rows outside it do not take part.
    observed : ndarray of shape (n, n_features)
        Observed inputs, at unit scale.
    weights : ndarray of shape (n_features,), optional
        What a distance along each feature counts, by default 1.

    Raises
    ------
    PoolExhaustedError
        No row lies inside the box.
    """

    def __init__(self, pool, box, observed, weights=None):
        self._weights = np.ones(len(box.lower)) if weights is None else np.asarray(weights, float)
        index = pool._index(box, self._weights)
        self._trees, self._points, self._rows, self._answers = index
        if not self._trees:
            raise PoolExhaustedError(
                f"none of the {len(pool)} rows of the pool lies inside bounds; set bounds to the "
                "box that the pool covers."
            )
        self._n_candidates = len(pool)
        self._observed = np.ascontiguousarray(observed, dtype=float)
        self._settled = set()  # positions in the tree that the first observations have spent
        self._n_settled = 0

    @property
    def _spent(self):
        """Positions in the tree of the spent rows; worked out when somebody asks."""
        n = len(self._observed)
        if self._n_settled == n:
            return self._settled
        observed = self._observed.tobytes()
        if not self._n_settled:
            # The query before saw the first of these observations.
            known, settled = self._answers.get("last", (b"", ()))
            if observed.startswith(known):
                self._settled = set(settled)
                self._n_settled = len(known) * n // len(observed)
        for point in self._observed[self._n_settled :]:
            self._n_settled += 1
            same = [i for i in self._same(point) if i not in self._settled]
            if len(same) == 1:
                self._settled.add(same[0])
            elif same:
                self._settled.add(self._closest(point, same))
        self._answers["last"] = observed, frozenset(self._settled)
        return self._settled

    def _same(self, point):
        """Rows that a point equals; looked up once, for each query sees the same observations."""
        key = point.tobytes()
        same = self._answers.get(key)
        if same is None:
            if len(self._answers) >= _REMEMBERED:
                self._answers.clear()
            reach = _SAME * self._weights.max()
            found = self._trees[0].query_ball_point(point * self._weights, reach, p=np.inf)
            apart = np.abs(self._points[found] - point).max(axis=1, initial=0.0)
            same = [i for i, gap in zip(found, apart, strict=True) if gap <= _SAME]
            self._answers[key] = same
        return same

    def _is_left(self, positions):
        """Which of some rows may still be proposed."""
        if len(positions) <= _FEW:
            # A row that no observation equals in the first feature cannot be spent.
            apart = np.abs(self._observed[:, :1] - self._points[positions, 0])
            if not (apart <= 2 * _SAME).any():
                return np.ones(len(positions), dtype=bool)
        spent = self._spent
        return np.array([i not in spent for i in positions], dtype=bool)

    def _closest(self, point, positions):
        """Position in the tree of the closest row, the first of equally close ones."""
        distance = np.linalg.norm((self._points[positions] - point) * self._weights, axis=1)
        _, _, best = min(zip(distance, self._rows[positions], positions, strict=True))
        return best

    def _left(self):
        """Positions in the tree of the rows left, by ascending row."""
        left = np.ones(len(self._rows), dtype=bool)
        left[list(self._spent)] = False
        left = np.flatnonzero(left)
        return left[np.argsort(self._rows[left])]

    @property
    def n_left(self):
        """Number of rows that may still be proposed."""
        return len(self._rows) - len(self._spent)

    @property
    def n_rows(self):
        """Number of rows inside the box, spent ones included."""
        return len(self._rows)

    @property
    def n_outside(self):
        """Number of rows outside the box."""
        return self._n_candidates - len(self._rows)

    @property
    def indices(self):
        """Rows of the pool that may still be proposed, ``(n_left,)`` in ascending order."""
        return self._rows[self._left()]

    @property
    def points(self):
        """Those rows at unit scale, ``(n_left, n_features)``; costs a pass over the pool."""
        return self._points[self._left()]

    def spend(self, point):
        """Mark as spent one row that equals a point of unit scale, if there is one left."""
        self._observed = np.vstack([self._observed, point])

    def _check_left(self):
        # Each observation spends one row at most, so counting them is rarely needed.
        if len(self._observed) >= len(self._rows) and self.n_left == 0:
            raise PoolExhaustedError(
                f"no row of the pool is left: of its {self._n_candidates} rows {len(self._rows)} "
                "lie inside bounds and all of these have been measured or proposed. Stop here, ask "
                "for fewer at once (n_queries) or pass a pool with new candidates."
            )

    def has_left(self, n, selection):
        """Whether so many rows of a selection are left, see :meth:`near`."""
        size, step = self._trees[selection].n, _STRIDE**selection
        # Each observation spends one row at most, so counting them is rarely needed.
        if size < n or size - len(self._observed) >= n:
            return size >= n
        return size - sum(i % step == 0 for i in self._spent) >= n

    @property
    def n_selections(self):
        """Number of selections that :meth:`near` knows: all rows, and ever fewer."""
        return len(self._trees)

    def near(self, point, n, selection=0):
        """The rows left that are near to a point, nearest first.

        Parameters
        ----------
        point : ndarray of shape (n_features,)
        n : int
            How many, if so many are left.
        selection : int, default=0
            0: among all rows. From 1 to ``n_selections - 1``: among one row in 8, 64 and so on,
            spread as all are, so that as many rows reach the farther.

        Returns
        -------
        indices : ndarray of shape (n_near,)
            Rows of the pool.
        points : ndarray of shape (n_near, n_features)
            Those rows at unit scale.

        Raises
        ------
        PoolExhaustedError
            No row is left.
        """
        self._check_left()
        tree, stride = self._trees[selection], _STRIDE**selection
        k = min(n, tree.n)
        while True:
            distances, found = tree.query(point * self._weights, k=k)
            distances, found = np.atleast_1d(distances), stride * np.atleast_1d(found)
            found = found[np.lexsort((self._rows[found], distances))]
            left = found[self._is_left(found)][:n]
            if len(left) == n or k == tree.n:
                return self._rows[left], self._points[left]
            k = min(2 * k, tree.n)  # rarely are spent rows among the nearest

    def spread(self, n, start=0.5):
        """About ``n`` rows from all over the pool, spent or not, at unit scale; all of a small one.

        Parameters
        ----------
        n : int
        start : float, default=0.5
            From 0 to 1; of large pools another number means other rows.

        Returns
        -------
        ndarray of shape (n_spread, n_features)
        """
        key = "spread", n, start
        found = self._answers.get(key)
        if found is None:
            # In the order of leaves, neighbours in the list are neighbours in space.
            step = max(len(self._rows) / n, 1.0)
            positions = np.arange(start * step, len(self._rows), step).astype(np.intp)
            found = self._answers[key] = self._points[positions]
        return found

    def is_left(self, row):
        """Whether a row that equals this one may still be proposed."""
        same = self._same(row)
        return bool(self._is_left(same).any())

    def equal(self, row):
        """The first row left that equals a row left, as :meth:`nearest` returns it."""
        same = self._same(row)
        if len(same) != 1:
            return self.nearest(row)
        return int(self._rows[same[0]]), self._points[same[0]].copy()

    def nearest(self, point):
        """The row left that is nearest to a point, in (weighted) Euclidean distance at unit scale.

        Parameters
        ----------
        point : ndarray of shape (n_features,)

        Returns
        -------
        index : int
            Row of the pool; the first of equally near ones.
        row : ndarray of shape (n_features,)
            That row at unit scale.

        Raises
        ------
        PoolExhaustedError
            No row is left.
        """
        self._check_left()
        n, k = len(self._rows), 1
        while True:
            k = min(2 * k, n)
            distances, found = self._trees[0].query(point * self._weights, k=k)
            distances, found = np.atleast_1d(distances), np.atleast_1d(found)
            left = self._is_left(found)
            if left.any():
                limit = distances[left][0] * (1 + 1e-12)
                # Go on until every row at the same distance is among those found.
                if k == n or distances[-1] > limit:
                    break
        tied = found[left & (distances <= limit)]
        best = self._closest(point, tied)
        return int(self._rows[best]), self._points[best].copy()
