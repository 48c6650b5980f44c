"""Finite sets of candidates: which rows are available, and which of them are near a point."""

import copy
import functools

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree
from scipy.stats import qmc

from ._typing import FloatArray
from .box import Box
from .exceptions import PoolExhaustedError
from .validation import column_names, finite_array, whole

# What a row may lie beyond the bounds, by rounding.
_OUTSIDE = 1e-9
# Two numbers that are equal up to this part of their size, and this size, are equal in float32.
_RELATIVE, _SMALLEST = 2.0**-23, 1.5e-45
# So few rows are quicker compared with all observations than these are looked up.
_FEW = 64
# Rounding of the map to the unit cube.
_ROUNDING = 1e-14


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
        Column names, when ``X`` was a table with text for names.

    Raises
    ------
    TypeError, ValueError
        Not a table of finite numbers.

    Notes
    -----
    A row is taken when an observation equals it in every feature, up to the rounding of single
    precision. Where measured inputs differ from the row that was set, or rows are equal, say which
    row was measured: ``tell(x, y, z, index=...)``. One observation takes one row: of two equal
    rows, the second is left for a repetition.

    Examples
    --------
    >>> from sklearn_asal import CandidatePool
    >>> pool = CandidatePool([[0.1, 0.2], [0.5, 0.5], [0.9, 0.1]])
    >>> len(pool)
    3
    """

    def __init__(self, X: ArrayLike) -> None:
        self.columns: list[str] | None = column_names(X)
        self.X: FloatArray = finite_array(X, "pool")
        self.X.setflags(write=False)
        self._index: PoolIndex | None = None

    @classmethod
    def from_bounds(cls, bounds: ArrayLike, n_rows: int = 4096) -> "CandidatePool":
        """Candidates from all over the bounds, where any point may be measured.

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
        limits = finite_array(bounds, "bounds", ndim=1)
        if limits.ndim == 1:
            raise ValueError(
                "bounds must hold one (low, high) pair for each feature here: their number is that "
                f"of the features. Repeat the pair, [{tuple(limits.tolist())}] * n_features."
            )
        return cls(Box(limits, len(limits)).from_unit(sobol(n_rows, len(limits))))

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        return f"CandidatePool(<{len(self.X)} candidates, {self.X.shape[1]} features>)"

    def __getstate__(self):
        # The tree is quicker to build than to ship.
        return {**self.__dict__, "_index": None}

    def index(self, box: Box, weights: FloatArray) -> "PoolIndex":
        """The rows inside a box, indexed for searches.

        Parameters
        ----------
        box : Box
        weights : ndarray of shape (n_features,)
            What a distance along each feature counts.

        Returns
        -------
        PoolIndex
            The one of the call before, if that was about the same box and weights.
        """
        index = self._index  # read once: another thread may replace it
        key = (*box.key, *weights)
        if index is None or index.key != key:
            index = self._index = PoolIndex(self.X, box, weights, key)
        return index


@functools.lru_cache(maxsize=16)
def sobol(n, n_features):
    """The first points of the Sobol sequence.

    Parameters
    ----------
    n, n_features : int

    Returns
    -------
    ndarray of shape (n, n_features)
        Of the unit cube; read-only.
    """
    # Of a power of two the sequence is balanced, and scipy says nothing.
    points = qmc.Sobol(n_features, scramble=False).random_base2(int(n - 1).bit_length())[:n]
    points.setflags(write=False)
    return points


class PoolIndex:
    """Rows of a pool inside a box, in an order that depends on their values alone.

    Rows are known by their position in the order of the leaves of a k-d tree: neighbours there
    are neighbours in space.

    Parameters
    ----------
    X : ndarray of shape (n_candidates, n_features)
        In the user's units.
    box : Box
    weights : ndarray of shape (n_features,)
    key : object
        What tells this index from others of the same pool.

    Attributes
    ----------
    rows : ndarray of int of shape (m,)
        Rows of ``X``.
    points : ndarray of shape (m, n_features)
        Those rows at unit scale.
    rank : ndarray of int of shape (m,)
        Place of each in lexicographic order; of equal rows the first of ``X`` comes first.
    tree : scipy.spatial.cKDTree or None
        Of the weighted points; None without any.
    references : dict of int to ndarray
        Reference sets by their size, see :meth:`Candidates.reference`.
    """

    def __init__(self, X, box, weights, key):
        self.X, self.box, self.weights, self.key = X, box, weights, key
        inside = np.flatnonzero(~box.outside(X, tolerance=_OUTSIDE))
        inside = inside[_lexicographic(X[inside])]
        self.rows, self.points, self.rank, self.tree = inside, X[inside], inside, None
        if len(inside):
            points = box.to_unit(X[inside])
            # A balanced tree takes longer to build and answers no faster here.
            self.rank = cKDTree(points * weights, balanced_tree=False).indices
            # Side by side in memory, the points of a leaf are found faster.
            self.points = np.ascontiguousarray(points[self.rank])
            self.rows = inside[self.rank]
            data = self.points if (weights == 1).all() else self.points * weights
            self.tree = cKDTree(data, balanced_tree=False, leafsize=24)
        self._positions = None
        self.references = {}

    def __len__(self):
        return len(self.rows)

    def positions(self, rows):
        """Where rows of the pool are.

        Parameters
        ----------
        rows : ndarray of int of shape (k,)

        Returns
        -------
        ndarray of int of shape (k,)
            -1 for rows outside the box.
        """
        if self._positions is None:
            positions = np.full(len(self.X), -1)
            positions[self.rows] = np.arange(len(self.rows))
            self._positions = positions
        return self._positions[rows]

    def equal(self, x):
        """Positions of the rows that equal a point up to the rounding of float32, nearest first.

        Parameters
        ----------
        x : ndarray of shape (n_features,)
            In the user's units.

        Returns
        -------
        list of int
        """
        reach = self.box.unit_reach(x, _RELATIVE * np.abs(x) + _SMALLEST) + _ROUNDING
        point = self.box.to_unit(x[None])[0]
        radius = 1.01 * (reach * self.weights).max()
        found = self.tree.query_ball_point(point * self.weights, radius, p=np.inf)
        if not found:
            return []
        found = np.array(found)
        found = found[_equal_in_float32(self.X[self.rows[found]], x).all(axis=1)]
        distance = np.linalg.norm((self.points[found] - point) * self.weights, axis=1)
        return found[np.lexsort((self.rank[found], distance))].tolist()


def _equal_in_float32(A, B):
    """Which numbers are equal up to the rounding of single precision."""
    return np.abs(A - B) <= _RELATIVE * np.maximum(np.abs(A), np.abs(B)) + _SMALLEST


def _flags(failed, n):
    return np.zeros(n, dtype=bool) if failed is None else failed[:n]


def _lexicographic(X):
    """Order of the rows by their values; equal ones stay in order."""
    order = np.argsort(X[:, 0], kind="stable")
    first = X[order, 0]
    tied = np.zeros(len(X), dtype=bool)
    tied[1:] = first[1:] == first[:-1]
    tied[:-1] |= tied[1:]
    # Few rows share their first value, and the others need no second look.
    some = order[tied]
    order[tied] = some[np.lexsort(X[some].T[::-1])]
    return order


class Candidates:
    """The rows of a pool as one query sees them.

    Parameters
    ----------
    pool : CandidatePool
    box : Box
        Rows outside it do not take part.
    X : ndarray of shape (n, n_features)
        Observed inputs in the user's units; each takes a row that equals it.
    index : ndarray of int of shape (n,), optional
        The row of the pool that each observation is known to be of, -1 where that is unknown.
    weights : ndarray of shape (n_features,), optional
        What a distance along each feature counts, by default 1.
    known : Candidates, optional
        Those of a query before, for what has been worked out there.
    failed : bool ndarray of shape (n,), optional
        Which observations are of runs that failed: these take all rows that equal them.
    reference : ndarray of shape (n_reference, n_features), optional
        Of rows that were drawn: points of the unit cube that stand for all of interest. By default
        they are rows of the pool.

    Attributes
    ----------
    points : ndarray of shape (m, n_features)
        All rows inside the box at unit scale, taken ones included, each at its position.
    is_drawn : bool
        Whether they were drawn, and are no rows of a user's pool.

    Raises
    ------
    PoolExhaustedError
        No row lies inside the box.
    ValueError
        ``index`` has a row that the pool has not.
    """

    # The candidates that these are some of, see :meth:`only`.
    _whole = None

    def __init__(
        self, pool, box, X, index=None, weights=None, known=None, failed=None, reference=None
    ):
        weights = np.ones(len(box.lower)) if weights is None else np.asarray(weights, float)
        self._index = pool.index(box, weights)
        if not len(self._index):
            raise PoolExhaustedError(
                f"none of the {len(pool)} rows of the pool lies inside bounds; set bounds to the "
                "box that the pool covers."
            )
        if index is not None and len(index) and index.max() >= len(pool):
            raise ValueError(
                f"index: row {index.max()} was told to be measured, but the pool has "
                f"{len(pool)} rows. Pass the pool that these numbers are of."
            )
        self.points = self._index.points
        self._n_candidates, self._reference = len(pool), reference
        self.is_drawn = reference is not None
        self._X, self._told, self._failed = X, index, failed
        # Worked out when somebody asks; of a query where nobody did, the one before knows more.
        self._known = known._known if known is not None and known._taken is None else known
        self._taken = None
        self._proposed = frozenset()

    def __len__(self):
        return len(self.points)

    @property
    def taken(self):
        """Positions of the rows that are measured or proposed (set of int)."""
        if self._taken is None:
            taken, start = self._taken_before()
            told = np.full(len(self._X), -1) if self._told is None else self._told
            by_index = told[start:] >= 0
            if by_index.any():
                taken.update(self._index.positions(told[start:][by_index]).tolist())
            for x in self._X[start:][~by_index]:
                free = (i for i in self._index.equal(x) if i not in taken)
                taken.update([*free][:1])
            if self._failed is not None:
                for x in self._X[start:][self._failed[start:]]:
                    taken.update(self._index.equal(x))
            # At once, for another thread may look on.
            self._taken, self._known = taken, None
        return self._taken | self._proposed if self._proposed else self._taken

    def _taken_before(self):
        """Rows that the query before knew to be taken, and by how many observations."""
        known = self._known
        if known is None or known._index is not self._index or known._taken is None:
            return set(), 0
        n = len(known._X)
        same = n <= len(self._X) and (known._X == self._X[:n]).all()
        if not same or (known._told is None) != (self._told is None):
            return set(), 0
        if not np.array_equal(_flags(known._failed, n), _flags(self._failed, n)):
            return set(), 0
        if self._told is not None:
            # A row told by its number might be one that another observation took by its value.
            if not (known._told == self._told[:n]).all() or (self._told[n:] >= 0).any():
                return set(), 0
        return set(known._taken), n

    def contradicted(self):
        """Observations that are told to be of one row, but equal another.

        Returns
        -------
        ndarray of int of shape (k,)
        """
        if self._told is None:
            return np.empty(0, dtype=int)
        told = np.flatnonzero(self._told >= 0)
        equal = _equal_in_float32(self._index.X[self._told[told]], self._X[told])
        others = told[~equal.all(axis=1)]
        return np.array([i for i in others if self._index.equal(self._X[i])], dtype=int)

    @property
    def n_available(self):
        """Number of rows that may still be proposed."""
        return len(self) - len(self.taken - {-1})

    @property
    def n_outside(self):
        """Number of rows outside the box."""
        return self._n_candidates - len(self)

    @property
    def available(self):
        """Positions of the rows that may still be proposed, in lexicographic order of the rows."""
        free = np.ones(len(self), dtype=bool)
        free[list(self.taken - {-1})] = False
        free = np.flatnonzero(free)
        return free[np.argsort(self._index.rank[free])]

    def raw(self, positions):
        """Rows in the user's units.

        Parameters
        ----------
        positions : ndarray of int of shape (k,)

        Returns
        -------
        ndarray of shape (k, n_features)
        """
        return self._index.X[self._index.rows[positions]]

    def row(self, position):
        """Row of the pool at a position.

        Parameters
        ----------
        position : int

        Returns
        -------
        int
        """
        return int(self._index.rows[position])

    def measured_row(self, i):
        """The row that an observation is of, whether it is available or not.

        Parameters
        ----------
        i : int
            Of the observations, those of runs that failed left out.

        Returns
        -------
        int or None
            Its position; None where the observation is of none of these rows.
        """
        if self._failed is not None:
            i = np.flatnonzero(~self._failed)[i]
        if self._told is not None and self._told[i] >= 0:
            found = self._index.positions(self._told[[i]]).tolist()
        else:
            found = self._index.equal(self._X[i])
        return found[0] if found and found[0] >= 0 else None

    def first_equal(self, position):
        """The first row of the pool that has the values of one and may still be proposed.

        Parameters
        ----------
        position : int
            Of an available row.

        Returns
        -------
        int
            Its position.
        """
        index = self._index
        same = np.array(index.tree.query_ball_point(index.tree.data[position], 0.0))
        if len(same) == 1:
            return position
        values = index.X[index.rows[same]] == index.X[index.rows[position]]
        same = same[values.all(axis=1) & self.is_available(same)]
        return same[index.rank[same].argmin()]

    def without(self, position):
        """These candidates less one.

        Parameters
        ----------
        position : int

        Returns
        -------
        Candidates
        """
        rest = copy.copy(self)
        rest._proposed = self._proposed | {int(position)}
        return rest

    def without_equal(self, X):
        """These candidates less one row for each of some points that equal it.

        Parameters
        ----------
        X : ndarray of shape (k, n_features)
            In the user's units.

        Returns
        -------
        Candidates
        """
        rest = self
        for x in X:
            free = (i for i in self._index.equal(x) if i not in rest.taken)
            rest = next((rest.without(i) for i in free), rest)
        return rest

    def within(self, centres, radius):
        """Rows near to some points, taken ones included, and maybe some that are farther away.

        Parameters
        ----------
        centres : ndarray of shape (k, n_features)
            In the unit cube.
        radius : float
            No row that is no farther away, in Euclidean distance, is left out.

        Returns
        -------
        ndarray of int
            Their positions, in ascending order.
        """
        weights = self._index.weights
        found = self._index.tree.query_ball_point(centres * weights, radius * weights.max())
        return np.unique(np.concatenate(found).astype(np.intp))

    def only(self, positions):
        """Some available rows alone; their reference sets are those of all.

        Parameters
        ----------
        positions : ndarray of int of shape (k,)

        Returns
        -------
        Candidates
            Positions there are others, see :meth:`in_whole`.
        """
        index = self._index
        rows = np.sort(index.rows[positions])  # so that of equal rows the first stays the first
        pool, nothing = CandidatePool(index.X[rows]), np.empty((0, index.X.shape[1]))
        some = Candidates(pool, index.box, nothing, weights=index.weights)
        some._whole, some.is_drawn = (self, rows), self.is_drawn
        return some

    def in_whole(self, position):
        """Position of a row in the candidates that these are some of.

        Parameters
        ----------
        position : int

        Returns
        -------
        int
        """
        whole, rows = self._whole
        return int(whole._index.positions(rows[[self.row(position)]])[0])

    @property
    def whole(self):
        """The candidates that these are some of, None where they are all."""
        return None if self._whole is None else self._whole[0]

    def is_available(self, positions):
        """Which of some rows may still be proposed.

        Parameters
        ----------
        positions : ndarray of int of shape (k,)

        Returns
        -------
        bool ndarray of shape (k,)
        """
        few = len(positions) <= _FEW
        if few and self._taken is None and not self._proposed and self._told is None:
            # Rows that no observation equals in the first feature need no search.
            values = self._index.X[self._index.rows[positions], 0]
            if not _equal_in_float32(values, self._X[:, :1]).any():
                return np.ones(len(positions), dtype=bool)
        taken = self.taken
        return np.array([i not in taken for i in positions.tolist()], dtype=bool)

    def reference(self, n):
        """Points of a subsample that is the same for all queries, see :meth:`subsample`.

        Parameters
        ----------
        n : int

        Returns
        -------
        ndarray of shape (min(n, m), n_features)
            Of points that are stated, as many as there are.
        """
        if self._whole is not None:
            return self._whole[0].reference(n)
        if self._reference is not None:
            return self._reference[:n]
        # Of a large pool they lie far apart in memory.
        known = self._index.references
        if n not in known:
            known[n] = self.points[self.subsample(n)]
        return known[n]

    def check_available(self):
        """Raise if no row is left.

        Raises
        ------
        PoolExhaustedError
        """
        # Each observation takes one row, unless it failed, so counting them is rarely needed.
        few = len(self._X) + len(self._proposed) < len(self) and self._failed is None
        if not few and self.n_available == 0:
            raise PoolExhaustedError(
                f"no row of the pool is left: of its {self._n_candidates} rows {len(self)} "
                "lie inside bounds, and each of these has been measured or proposed, by this query "
                "as well. Stop here, ask for fewer at once (n_queries) or pass a pool with new "
                "candidates."
            )

    def nearest(self, point, k=1):
        """The available rows nearest to a point, in (weighted) Euclidean distance at unit scale.

        Parameters
        ----------
        point : ndarray of shape (n_features,)
        k : int, default=1

        Returns
        -------
        ndarray of int of shape (min(k, n_available),)
            Their positions, nearest first; of equally near ones the first in lexicographic order.

        Raises
        ------
        PoolExhaustedError
            No row is left.
        """
        self.check_available()
        m, asked = len(self), k
        while True:
            # One more than needed shows whether others are as near as the last.
            asked = min(asked + 1, m)
            distance, found = self._index.tree.query(point * self._index.weights, k=asked)
            distance, found = np.atleast_1d(distance), np.atleast_1d(found)
            free = self.is_available(found)
            enough = np.flatnonzero(free)
            limit = distance[enough[k - 1]] * (1 + 1e-12) if len(enough) >= k else np.inf
            if asked == m or distance[-1] > limit:
                break
            asked = 2 * asked
        distance, found = distance[free], found[free]
        return found[np.lexsort((self._index.rank[found], distance))][:k]

    def nearest_first(self, positions, point):
        """Rows in the order in which :meth:`nearest` returns them.

        Parameters
        ----------
        positions : ndarray of int of shape (k,)
        point : ndarray of shape (n_features,)

        Returns
        -------
        ndarray of int of shape (k,)
        """
        away = np.linalg.norm((self.points[positions] - point) * self._index.weights, axis=1)
        return positions[np.lexsort((self._index.rank[positions], away))]

    def subsample(self, n, offset=0.5):
        """Rows spread over the pool as all of them are; all rows of a small pool.

        Parameters
        ----------
        n : int
        offset : float, default=0.5
            From 0 to 1; of large pools another number means other rows.

        Returns
        -------
        ndarray of int of shape (min(n, m),)
            Their positions; taken rows are among them.
        """
        m = len(self)
        n = min(n, m)
        positions = (np.arange(n) + (offset if n < m else 0.0)) * (m / n)
        # Rounding may lead to the row after the last.
        positions = np.minimum(positions, m - 1).astype(np.intp)
        # Their order is of no consequence to what was drawn, and that of a tree's leaves is.
        return self._index.positions(positions) if self.is_drawn else positions
