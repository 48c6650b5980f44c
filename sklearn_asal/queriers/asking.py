"""Experiments that run at the same time."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._typing import FloatArray
from ..log import campaign as logging
from ..space import box_of
from ..validation import finite_array
from .history import still_pending

_Q = TypeVar("_Q", bound="Asking")


class Asking:
    """What every querier has for pending proposals: ``ask``, ``pending_``, ``withdraw``."""

    # What ``ask`` handed out, and is not yet told.
    _pending: FloatArray | None = None

    @property
    def pending_(self) -> FloatArray:
        """What :meth:`ask` handed out and is not yet told, ``(n_pending, n_features)``."""
        base: Any = self
        check_is_fitted(base, "X_")
        if self._pending is None:
            return np.empty((0, base.n_features_in_))
        return self._pending

    def ask(self, n_queries: int = 1, **options: Any) -> Any:
        """Propose where to measure next, and remember it as pending until it is told.

        For experiments that run at the same time: no later proposal repeats one that is pending,
        and each of them counts against the budget.

        Parameters
        ----------
        n_queries : int, default=1
            Number of points.
        **options
            Of :meth:`query`, but for ``X``, ``y`` and ``z``.

        Returns
        -------
        object
            What :meth:`query` returns.

        Raises
        ------
        sklearn.exceptions.NotFittedError, ValueError, TypeError
            See :meth:`query`. Nothing is pending then that was not before.

        Notes
        -----
        ``tell(x, ...)`` settles the pending point nearest to ``x``, if there is one within 0.02
        of the width of the bounds along each axis.

        Examples
        --------
        >>> from sklearn_asal import RandomQuerier
        >>> querier = RandomQuerier().fit([[0.5]], [0.3])
        >>> first, second = querier.ask(), querier.ask()
        >>> len(querier.pending_), len(querier.tell(second, 0.2).pending_)
        (2, 1)
        """
        base: Any = self
        check_is_fitted(base, "X_", msg="%(name)s: call fit(X, y) before ask.")
        wrong = {"X", "y", "z"} & set(options)
        if wrong:
            raise TypeError(f"ask is about the campaign's data, and takes no {min(wrong)}.")
        with base._campaign_cache().telling:
            answer = base.query(n_queries=n_queries, **options)
            points = finite_array(answer[0] if isinstance(answer, tuple) else answer, "points")
            if base.log is not None:
                logging.record(base, "ask", points=points)
            self._hand_out(points)
        return answer

    def _hand_out(self, points):
        points = points if self._pending is None else np.vstack([self._pending, points])
        points.setflags(write=False)
        self._pending = points

    def withdraw(self: _Q, x: ArrayLike | None = None) -> _Q:
        """Take back what :meth:`ask` handed out and will not be measured.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (k, n_features), default=None
            Pending points; None means all.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            Not a pending point. Nothing is taken back then.
        """
        base: Any = self
        check_is_fitted(base, "X_", msg="%(name)s: call fit(X, y) before withdraw.")
        points = None if x is None else base._points(x, "x", base.n_features_in_)
        with base._campaign_cache().telling:
            pending, left = self.pending_, None
            if points is not None and len(pending):
                left = still_pending(pending, points, box_of(base.bounds, base.n_features_in_))
            n_left = 0 if left is None else len(left)
            if points is not None and len(pending) - n_left < len(points):
                raise ValueError(
                    f"x: not all of {points.tolist()} are pending; pending_ has those that are."
                )
            if base.log is not None:
                logging.record(base, "withdraw", x=points)
            self._pending = left
        return self

    def _all_pending(self, pending, handed_out, n_features):
        """Points that are pending, in the user's units; None without any."""
        if pending is None or (np.ndim(pending) > 0 and len(pending) == 0):
            return handed_out
        points = self._points(pending, "pending", n_features)
        return points if handed_out is None else np.vstack([handed_out, points])
