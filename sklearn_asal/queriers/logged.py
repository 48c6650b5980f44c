"""Campaigns that are written to a log."""

from typing import Any, TypeVar

from .._typing import StrPath
from ..log import CampaignLog
from ..log import campaign as logging

_Q = TypeVar("_Q", bound="Logged")


class Logged:
    """What every querier has for its log: ``resume`` and ``close_log``."""

    @classmethod
    def resume(cls: type[_Q], path: StrPath | CampaignLog, **params: Any) -> _Q:
        """Make a querier that goes on with the campaign of a log.

        It proposes what the one that wrote the log would have proposed next, and appends to it.

        Parameters
        ----------
        path : str, path-like or CampaignLog
        **params
            Parameters in place of those in the log, such as ``budget``. What could not be
            written, such as a function in ``constraints``, has to be passed.

        Returns
        -------
        querier
            Of the class in the log, which is this one or derived from it.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        ValueError, TypeError
            The log is damaged or of a later version, of another class of queriers, or a parameter
            has to be passed.
        RuntimeError
            Another querier, or another process, writes to it.

        Warns
        -----
        UserWarning
            The last line was cut off, and is set aside; or the policy is another one than it was.
        """
        return logging.resume(cls, path, params)

    def close_log(self: _Q) -> _Q:
        """Let others write to the log. What is told later opens it again.

        Returns
        -------
        self
        """
        logging.close(self)
        return self
