"""A policy at deployment: what all runtimes share."""

import numpy as np

from .architecture import check_weights, complete

#: Beyond this a float32 network may overflow, and no policy has seen the like anyway.
LARGEST = 1e6


class Runtime:
    """The next input from observations and remaining budget, for one policy.

    A kind of network has a runtime of its own, or else that of torch; see
    :func:`~sklearn_asal.policies.registry.load_runtime`. What belongs to one observation alone
    can be kept, see :class:`Tokens`. Safe to share between threads.

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
    dtype : dtype
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
        self.architecture = complete(architecture)
        check_weights(self.architecture, weights)
        self.n_features, self.safe = (self.architecture[key] for key in ("n_features", "safe"))
        self.safe = bool(self.safe)
        self.dtype = np.dtype(dtype)

    def rows(self, X, y, margin=None, largest=np.inf):
        """Observations as one array.

        Parameters
        ----------
        X : ndarray of shape (..., n_features)
            Inputs of the unit cube.
        y, margin : ndarray of shape (...,)
            Outputs and, for a safe policy, margins at unit scale.
        largest : float
            Numbers beyond it count as that.

        Returns
        -------
        ndarray of shape (1, ..., width)
        """
        raise NotImplementedError

    def tokens(self, rows):
        """What depends on an observation alone.

        Parameters
        ----------
        rows : ndarray of shape (1, n, width)
            From :meth:`rows`.

        Returns
        -------
        ndarray of shape (1, n, token_width)
        """
        raise NotImplementedError

    def tokens_singly(self, rows):
        """As :meth:`tokens`, but to the last digit the same whatever rows come along.

        Parameters
        ----------
        rows : ndarray of shape (1, n, width)
            From :meth:`rows`.

        Returns
        -------
        ndarray of shape (1, n, token_width)
        """
        each = [self.tokens(rows[:, i : i + 1]) for i in range(rows.shape[1])]
        return np.concatenate(each, axis=1)

    def decide(self, budget, tokens):
        """The next input of one campaign.

        Parameters
        ----------
        budget : float
            Queries left, this one included.
        tokens : ndarray of shape (1, n, token_width)
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
        rows : ndarray of shape (1, B, n, width)
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


class Tokens:
    """Tokens of one growing list of observations, computed once each.

    They do not depend on how many came at a time, to the last digit. Not to be used by two threads
    at once.

    Parameters
    ----------
    runtime : Runtime
    """

    def __init__(self, runtime):
        self.runtime = runtime
        self._rows = self._tokens = None
        self._n = 0

    def __call__(self, rows):
        """Tokens of a list of observations; the leading ones known are taken over.

        Parameters
        ----------
        rows : ndarray of shape (1, n, width)
            From ``rows`` of the runtime.

        Returns
        -------
        ndarray of shape (1, n, token_width)
            A later call may overwrite it.
        """
        _, n, width = rows.shape
        if self._rows is None or self._rows.shape[1] < n:
            self._grow(2 * n, width)
        known = min(self._n, n)
        same = rows[:, :known] == self._rows[:, :known]
        if not same.all():
            known = int(same.all(axis=(0, 2)).argmin())
        if known < n:
            self._n = known  # should the next line fail
            self._tokens[:, known:n] = self.runtime.tokens_singly(rows[:, known:])
            self._rows[:, known:n] = rows[:, known:]
            self._n = n
        return self._tokens[:, :n]

    def _grow(self, capacity, width):
        old, n, dtype = (self._rows, self._tokens), self._n, self.runtime.dtype
        self._rows = np.empty((1, capacity, width), dtype)
        self._tokens = np.empty((1, capacity, self.runtime.token_width), dtype)
        if n:
            self._rows[:, :n], self._tokens[:, :n] = old[0][:, :n], old[1][:, :n]


def clipped(rows, largest, dtype):
    """Numbers of limited size.

    Parameters
    ----------
    rows : ndarray
        Overwritten.
    largest : float
        Numbers beyond it count as that.
    dtype : dtype
        Of the result.

    Returns
    -------
    ndarray
    """
    np.minimum(np.maximum(rows, -largest, out=rows), largest, out=rows)
    return rows.astype(dtype)


def told_budget(header, left, n_observed):
    """The budget that a policy is told.

    Parameters
    ----------
    header : dict
        Of the policy.
    left : float or None
        Queries left, this one included; None where that is not stated.
    n_observed : int
        Number of observations.

    Returns
    -------
    float
        From 1 to the policy's ``max_budget``: a longer campaign goes through its plan in slow
        motion, and one of unstated length is planned as in training.
    """
    longest, n_init = header["max_budget"], header.get("n_init", 1)
    if left is None:
        # The number that training had left at this many observations.
        return float(min(max(longest + n_init - n_observed, 1), longest))
    # What follows from the data alone, so that it is the same with a campaign and without.
    whole = left + max(n_observed - n_init, 0)
    return float(max(left * min(1.0, longest / whole), 1.0))
