"""Random search, the baseline of all baselines."""

from .base import BaseQuerier


class RandomQuerier(BaseQuerier):
    """Propose points at random, uniformly over the bounds or the rows of a pool.

    Knows no safety: it may propose anything. For random points within limits see
    ``GPSafeQuerier(acquisition="random")``.

    Parameters
    ----------
    bounds : None, pair of float, or array-like of shape (n_features, 2), default=None
        Lower and upper limit of each feature in the user's units; one pair holds
        for all. None means the unit cube.
    budget : int, default=None
        Number of queries of the campaign; with data passed to ``query``, the
        number left.
    random_state : None, int, RandomState or Generator, default=None
        Seeds the points, together with the number of observations. None takes the
        seed from the observed inputs.
    y_loc, y_scale : float or "auto", default=0.0, 1.0
        Part of every querier's interface; not used.

    Attributes
    ----------
    X_, y_, z_ : ndarray
        Observations so far, in the user's units.
    status_ : ndarray of str of shape (n,)
        "ok", "aborted" or "failed", see :meth:`tell`.
    index_ : ndarray of int of shape (n,)
        Rows of the pool that were measured, as far as ``tell`` was given them; else -1.
    n_told_ : int
        Observations told since ``fit``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, when ``fit`` got a table with text for column names.

    Examples
    --------
    >>> from sklearn_asal import RandomQuerier
    >>> RandomQuerier(bounds=[(0, 6), (-5, 30)]).query([[3.0, 0.0]], [0.3]).shape
    (1, 2)
    """

    def _select(self, history, candidates, budget, rng):
        if candidates is None:
            return rng.random(history.X.shape[1])
        # Not the row nearest to a random point: rows far from others would come too often.
        available = candidates.available
        return available[rng.integers(len(available))]
