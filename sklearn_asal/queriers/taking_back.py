"""Taking back what was told: measurements that are forgotten or corrected."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._typing import Statuses
from ..log import campaign as logging
from ..settings import numpy_defaults
from .cut_short import OK, checked_statuses

_Q = TypeVar("_Q", bound="TakingBack")


class TakingBack:
    """What every querier has for measurements that were wrong."""

    @numpy_defaults
    def forget(self: _Q, index: int | ArrayLike) -> _Q:
        """Take measurements back: as if they had never been told.

        Parameters
        ----------
        index : int or array-like of int of shape (k,)
            Their positions in ``X_``; negative ones count from the end. Later observations move
            up.

        Returns
        -------
        self
            Of those told since ``fit``, each gives a query of the budget back.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            ``fit`` has not been called.
        ValueError
            There is no such position, or no output would be left. Nothing is changed then.
        """
        base: Any = self
        self._check_told("forget")
        with base._campaign_cache().telling:
            old = base._told
            positions = np.unique(_positions(index, len(old.X)))
            if len(positions) == len(old.X) or np.isnan(np.delete(old.y, positions)).all():
                raise ValueError(
                    "index: the output of at least one observation has to be left. Begin a new "
                    "campaign with fit."
                )
            self._replace(old, old.without(positions), "forget", {"index": positions})
        return self

    @numpy_defaults
    def correct(
        self: _Q,
        index: int | ArrayLike,
        y: ArrayLike | None = None,
        z: ArrayLike | None = None,
        *,
        status: Statuses | None = None,
    ) -> _Q:
        """Mend measurements: as if they had been told right.

        Where the inputs are wrong, ``forget`` the measurement and ``tell`` it again.

        Parameters
        ----------
        index : int or array-like of int of shape (k,)
            Their positions in ``X_``, each one once; negative ones count from the end.
        y, z : array-like, default=None
            The right outcomes of these, as in ``tell``. None leaves them as they are; an output
            that is missing after all is NaN.
        status : {"ok", "aborted", "failed"} or sequence of these of shape (k,), default=None
            How these runs ended. None leaves it as it is. Of runs that were cut short the
            outcomes go.

        Returns
        -------
        self

        Raises
        ------
        sklearn.exceptions.NotFittedError
            ``fit`` has not been called.
        ValueError, TypeError
            There is no such position, or invalid data. Nothing is changed then.
        """
        base: Any = self
        self._check_told("correct")
        if y is None and z is None and status is None:
            raise ValueError("pass what is right: y, z or status.")
        with base._campaign_cache().telling:
            old = base._told
            positions = _positions(index, len(old.X))
            if len(np.unique(positions)) < len(positions):
                raise ValueError(f"index: each position may be there once, got {index!r}.")
            filled = _filled(old, positions, y, z, status, base._has_z, base._has_limits)
            new = base._outcomes(old, old.X[positions], *filled)
            told = old.corrected(positions, *new[1:])
            if np.isnan(told.y).all():
                raise ValueError(
                    "y: the output of at least one observation has to be left. Begin a new "
                    "campaign with fit."
                )
            others = np.delete(np.arange(len(old.X)), positions)
            facts = {"index": positions, **base._facts(new)}
            self._replace(old, told, "correct", facts, len(others), np.append(others, positions))
        return self

    def _check_told(self, call):
        if "_told" not in self.__dict__:
            check_is_fitted(self, msg=f"%(name)s: call fit(X, y) with initial data before {call}.")

    def _replace(self, old, told, event, facts, *question):
        """Put a record in the place of another; to be called by whoever holds ``telling``.

        ``event`` and ``facts`` are for the log. ``question`` says which outcomes are new, see
        :func:`~.outliers.warnings_of`.
        """
        base: Any = self
        cache = base._campaign_cache().renewed()
        history = base._of(told.data, cache)
        # Before anything changes: a warning may be turned into an error.
        base._warn(told.data, base._names(None), old.data, history)
        if question and question[0]:
            base._warn_of_outliers(told, history.box, *question)
        if base.log is not None:
            logging.record(base, event, **facts)
        base._told, base._cache = told, cache
        base._prepare(base._history(True, told.data))


def _positions(index, n):
    """Positions from 0 to n - 1."""
    positions = np.atleast_1d(np.asarray(index))
    wrong = positions.dtype.kind not in "iu" or positions.ndim != 1 or not len(positions)
    if wrong or positions.min() < -n or positions.max() >= n:
        raise ValueError(
            f"index must be a position in X_, from 0 to {n - 1} or from the end -1 to {-n}, or a "
            f"list of them; got {index!r}."
        )
    return np.where(positions < 0, positions + n, positions).astype(np.intp)


def _filled(told, positions, y, z, status, has_z, safe):
    """Outcomes in which what is not stated is as it was: y, z and status, as of ``tell``."""
    k = len(positions)
    statuses = told.status[positions] if status is None else checked_statuses(status, k, safe)
    ok = statuses == OK
    if y is None:
        y = np.where(ok, told.y[positions], np.nan)
    if z is None and has_z:
        z = told.z[positions].astype(object)
        z[~ok] = None
        # As a list, in which columns of booleans are told from numbers.
        z = z.tolist()
    return y, z, OK if ok.all() else statuses
