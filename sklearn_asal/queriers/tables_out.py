"""Proposals as tables, where the inputs are tables."""

from typing import TypeVar

import numpy as np

from ..space import Integer, box_of
from ..tables import check_output, library_of, table

_NOTHING: dict[str, str] = {}

_Q = TypeVar("_Q", bound="TablesOut")


class TablesOut:
    """What every querier has to say what proposals are returned as: ``set_output``."""

    # The library of the tables that were told.
    _library: str | None = None

    def set_output(self: _Q, *, transform: str | None = None) -> _Q:
        """State what proposals are returned as.

        Without a call of this method they are what the inputs are: tables of pandas or polars
        with names for their columns, else arrays.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, default=None
            Arrays, or tables of that library. None leaves it as it is.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Something else.
        """
        if transform is not None:
            check_output(transform)
            # The attribute that scikit-learn's clone copies.
            self._sklearn_output_config = {"transform": transform}
        return self

    def _as_told(self, points, told_as):
        """Proposals as what they are told as, or as ``set_output`` says."""
        wanted = self.__dict__.get("_sklearn_output_config", _NOTHING).get("transform")
        if wanted is None and told_as is None:
            wanted = self._library
        elif wanted is None and type(told_as) is not np.ndarray:
            wanted = library_of(told_as)
        if wanted is None or wanted == "default":
            return points
        kinds = box_of(self.bounds, points.shape[1]).kinds
        is_whole = [isinstance(kind, Integer) for kind in kinds]
        return table(points, wanted, self._names(told_as), is_whole)
