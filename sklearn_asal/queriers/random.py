"""Random search, the baseline of all baselines."""

from .base import BaseQuerier


class RandomQuerier(BaseQuerier):
    """Propose points at random, uniformly over the bounds or the rows of a pool.

    Knows no safety: it may propose anything. For random points within limits see
    ``GPSafeQuerier(acquisition="random")``.

    Parameters
    ----------
    bounds : None, pair of float, sequence of shape (n_features,), or dict, default=None
        Lower and upper limit of each feature in the user's units, a pair; one pair holds
        for all. None means the unit cube.
        In place of a pair there may be an :class:`~sklearn_asal.space.Integer`,
        :class:`~sklearn_asal.space.Log` or :class:`~sklearn_asal.space.Grid`. The keys of a dict
        are the names of the features, in the order of columns of arrays; columns of tables are
        taken by name.
    budget : int, default=None
        Number of queries of the campaign; with data passed to ``query``, the
        number left.
    random_state : None, int, RandomState or Generator, default=None
        Seeds the points, together with the number of observations. None takes the
        seed from the observed inputs.
    y_loc, y_scale : float or "auto", default=0.0, 1.0
        Part of every querier's interface; not used.
    constraints : LinearConstraint, NonlinearConstraint or sequence of these, default=None
        Of :mod:`scipy.optimize`, on the inputs in the user's units. Proposals satisfy all of
        them; rows of a pool up to rounding.
    max_step : float, array-like of shape (n_features,), or dict, default=None
        The largest change of each feature from the observation told last, that is the last row,
        or from one of ``n_queries`` to the next; in the user's units. A dict is by name or
        position; features that it leaves out may change at will.
    log : str, path-like or CampaignLog, default=None
        File that the campaign is written to, as JSON lines, so that it can be gone on with; see
        :meth:`resume`.
    stop_when : float, default=None
        Root mean square error of the output, in its units, that is small enough. ``is_finished``
        says when it is reached.
    repeat_every : int, default=None
        Each measurement whose number is a multiple of this, those of ``fit`` included, repeats the
        first input, so that ``progress`` can tell noise from drift.

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
        Their names, when ``fit`` got a table with text for column names, or ``bounds`` are a dict.

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
