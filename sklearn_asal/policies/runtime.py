"""A policy at deployment: the function of its network, in NumPy and without torch."""

import threading

import numpy as np

from .architecture import check_weights, complete

EPSILON = 1e-5  # of torch's LayerNorm
_MEMO = 1024  # budgets remembered at most
# Beyond this a float32 network may overflow, and no policy has seen the like anyway.
LARGEST = 1e6
# As arrays: NumPy takes half a microsecond to make one of a plain number.
ZERO, HALF, ONE, MINUS_ONE = np.array([0, 0.5, 1, -1], np.float32)[:, None]


def _clip(h):
    np.maximum(h, MINUS_ONE, out=h)
    return np.minimum(h, ONE, out=h)


_OUTPUTS = {"clip": _clip, "tanh": np.tanh}


class Runtime:
    """The next input from observations and remaining budget, for one policy.

    A kind of network each has a class of its own, made by
    :func:`~sklearn_asal.policies.architecture.build_runtime`. What belongs to one observation
    alone can be kept, see :class:`Tokens`. Safe to share between threads.

    Parameters
    ----------
    architecture : dict
        The arguments of the network.
    weights : dict of str to ndarray
        Its ``state_dict``, as in a policy file.
    dtype : dtype, default=float32
        What it computes in.

    Attributes
    ----------
    n_features : int
    safe : bool
    token_width : int
        Numbers kept of each observation.
    batch : int
        Observations, of all campaigns, that are quickest decided on together.

    Raises
    ------
    ValueError, TypeError
        Weights that do not fit the architecture.
    """

    batch = 256  # larger ones fall out of the cache

    def __init__(self, architecture, weights, dtype=np.float32):
        full = complete(architecture)
        check_weights(full, weights)
        self.n_features, self.safe = full["n_features"], bool(full["safe"])
        self._width, self._hidden, self._heads = (
            full[key] for key in ("embedding", "hidden", "heads")
        )
        self.dtype = np.dtype(dtype)
        self._output, self._lags = _OUTPUTS[full["output"]], full["lags"]
        self._by_root = full["pooling"] == "sqrt"
        weights = {name: np.asarray(value, np.float64) for name, value in weights.items()}
        self._fold(full, weights)
        # Those of training at once; a campaign meets each but one time.
        budgets = np.arange(1.0, 1 + min(full["max_budget"], _MEMO))
        parts = self._of_budgets(budgets).astype(self.dtype)
        self._budgets = dict(zip(budgets.tolist(), parts, strict=True))
        self._local = threading.local()

    def decide(self, budget, tokens):
        """The next input of one campaign.

        Parameters
        ----------
        budget : float
            Queries left, this one included.
        tokens : ndarray of shape (n_encoders, n, token_width)
            From :meth:`tokens`.

        Returns
        -------
        ndarray of shape (n_features,)
            Inside the unit cube.
        """
        raise NotImplementedError

    def decide_many(self, budget, rows, mask=None):
        """The next input of each of B campaigns.

        Parameters
        ----------
        budget : float or ndarray of shape (B,)
            Queries left, this one included.
        rows : ndarray of shape (n_encoders, B, n, width)
            From :meth:`rows`.
        mask : bool ndarray of shape (B, n), optional
            True where an observation is real, False for padding.

        Returns
        -------
        ndarray of shape (B, n_features)
            Inside the unit cube.
        """
        raise NotImplementedError

    def __call__(self, budget, X, y, margin=None, mask=None):
        """The next input of each of B campaigns from raw observations.

        Parameters
        ----------
        budget : float or ndarray of shape (B,)
        X : ndarray of shape (B, n, n_features)
            Inputs of the unit cube.
        y, margin : ndarray of shape (B, n)
            Outputs and, for a safe policy, margins at unit scale.
        mask : bool ndarray of shape (B, n), optional

        Returns
        -------
        ndarray of shape (B, n_features)
        """
        return self.decide_many(budget, self.rows(X, y, margin), mask)

    def _bounded(self, h):
        """The next input from what the head says, in place."""
        h = self._output(h)
        h *= HALF
        h += HALF
        for later, earlier, step in self._lags:
            start = h[..., earlier]
            low, high = np.maximum(start - step, 0), np.minimum(start + step, 1)
            h[..., later] = np.minimum(np.maximum(h[..., later], low), high)
        return h

    def _budget_part(self, budget):
        """What the budget adds, of shape (m,), or (B, m) for an array of budgets."""
        if isinstance(budget, np.ndarray):
            each, where = np.unique(budget, return_inverse=True)
            return np.array([self._budget_part(one) for one in each.tolist()])[where]
        part = self._budgets.get(budget)
        if part is None:
            part = self._of_budgets(np.array([budget]))[0].astype(self.dtype)
            if len(self._budgets) < _MEMO:
                self._budgets[budget] = part
        return part


class Tokens:
    """Tokens of one growing list of observations, computed once each.

    Parameters
    ----------
    runtime : Runtime
    """

    def __init__(self, runtime):
        self.runtime = runtime
        self.lock = threading.Lock()
        self._rows = self._tokens = None
        self._n = 0

    def __call__(self, rows):
        """Tokens of ``rows``, see ``tokens`` of the runtime; the leading ones known are taken over.

        Returns
        -------
        ndarray of shape (n_encoders, n, token_width)
            A later call may overwrite it. Threads have to hold ``lock`` from the call until
            they are done with it.
        """
        E, n, width = rows.shape
        if self._rows is None or self._rows.shape[1] < n:
            self._grow(E, 2 * n, width)
        known = min(self._n, n)
        same = rows[:, :known] == self._rows[:, :known]
        if not same.all():
            known = int(same.all(axis=(0, 2)).argmin())
        if known < n:
            self._n = known  # should the next line fail
            self._tokens[:, known:n] = self.runtime.tokens(rows[:, known:])
            self._rows[:, known:n] = rows[:, known:]
            self._n = n
        return self._tokens[:, :n]

    def _grow(self, E, capacity, width):
        old, n, dtype = (self._rows, self._tokens), self._n, self.runtime.dtype
        self._rows = np.empty((E, capacity, width), dtype)
        self._tokens = np.empty((E, capacity, self.runtime.token_width), dtype)
        if n:
            self._rows[:, :n], self._tokens[:, :n] = old[0][:, :n], old[1][:, :n]


def clipped(rows, largest, dtype):
    """Numbers beyond ``largest`` count as that."""
    np.minimum(np.maximum(rows, -largest, out=rows), largest, out=rows)
    return rows.astype(dtype)


def told_budget(header, left, n_observed):
    """The budget that a policy is told."""
    longest, n_init = header["max_budget"], header.get("n_init", 1)
    if left is None:
        # The number that training had left at this many observations.
        return float(min(max(longest + n_init - n_observed, 1), longest))
    # What follows from the data alone, so that it is the same with a campaign and without.
    whole = left + max(n_observed - n_init, 0)
    return float(max(left * min(1.0, longest / whole), 1.0))
