"""A querier in the place of a network, in simulated campaigns."""

import warnings

import numpy as np
import torch
from sklearn.base import clone

from ..exceptions import DataScaleWarning, SafetyWarning
from .protocol import choose


class Querying:
    """What :func:`~sklearn_asal.trainer.simulator.simulate` takes for a network.

    Campaigns are those of :func:`~sklearn_asal.benchmarks.run`, on simulated tasks.

    Parameters
    ----------
    querier : querier, or list of querier
        With bounds of the unit cube. Each campaign gets a clone with a budget and a random state
        of its own; of a list, a clone of the querier at its place.
    """

    #: Campaigns at a time; each keeps what it knows of its observations.
    chunk = 25

    def __init__(self, querier):
        self.querier = querier

    def campaigns(self, n_queries, n_init, longest):
        """Campaigns that begin, as of a network.

        Parameters
        ----------
        n_queries : int tensor of shape (B,)
            Of each campaign.
        n_init, longest : int
            Initial observations, and the most queries. What a network makes room for; not used.

        Returns
        -------
        campaigns : object
            Its ``see`` takes observations, and its ``decide`` returns the next inputs.

        Raises
        ------
        ValueError
            There is a list of queriers, and not one for each campaign.
        """
        n, queriers = len(n_queries), self.querier
        if not isinstance(queriers, list):
            queriers = [queriers] * n
        if len(queriers) != n:
            raise ValueError(f"there are {len(queriers)} queriers, and {n} campaigns.")
        return _Campaigns(queriers, n_queries.tolist())


class _Campaigns:
    def __init__(self, queriers, n_queries):
        self.begun = False
        self.queriers = [
            clone(querier).set_params(budget=int(n), random_state=i)
            for i, (querier, n) in enumerate(zip(queriers, n_queries, strict=True))
        ]

    def see(self, X, Y, Z=None):
        """Observations of the first campaigns, ``(B, n, n_features)`` and ``(B, n)``."""
        with warnings.catch_warnings():
            _ignore_scales()
            for i, querier in enumerate(self.queriers[: len(X)]):
                data = [None if part is None else part[i].double().numpy() for part in (X, Y, Z)]
                (querier.tell if self.begun else querier.fit)(*data)
        self.begun = True

    def decide(self, n):
        """The next inputs of the first ``n`` campaigns, ``(n, n_features)``."""
        with warnings.catch_warnings():
            _ignore_scales()
            points = [choose(querier, None, [])[0][0] for querier in self.queriers[:n]]
        return torch.tensor(np.array(points), dtype=torch.float32)


def _ignore_scales():
    """Simulated data are at unit scale, and a few outliers no matter for the user."""
    for category in (DataScaleWarning, SafetyWarning):
        warnings.simplefilter("ignore", category)
