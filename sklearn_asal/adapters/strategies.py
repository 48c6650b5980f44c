"""A query strategy of another package in the place of a querier."""

import contextlib
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from .._typing import Bounds, Location, RandomState, Scale, StrPath
from ..log import CampaignLog
from ..queriers.base import BaseQuerier
from ..validation import whole


class StrategyQuerier(BaseQuerier):
    """What queriers share that ask a query strategy of another package.

    A subclass implements :meth:`_pick`.

    Parameters
    ----------
    strategy, model
        See the subclass.
    n_candidates : int, default=500
        Number of random points that the strategy compares, or of rows of a pool, others at each
        query.
    bounds, budget, random_state, y_loc, y_scale, constraints, max_step, log, stop_when, \
            repeat_every
        As for :class:`~sklearn_asal.RandomQuerier`. The strategy gets inputs in the unit cube and
        outputs scaled by the last two.
    """

    def __init__(
        self,
        strategy: Any = None,
        *,
        model: Any = None,
        n_candidates: int = 500,
        bounds: Bounds = None,
        budget: int | None = None,
        random_state: RandomState = None,
        y_loc: Location = 0.0,
        y_scale: Scale = 1.0,
        constraints: Any = None,
        max_step: Any = None,
        log: StrPath | CampaignLog | None = None,
        stop_when: float | None = None,
        repeat_every: int | None = None,
    ) -> None:
        super().__init__(
            bounds=bounds,
            budget=budget,
            random_state=random_state,
            y_loc=y_loc,
            y_scale=y_scale,
            constraints=constraints,
            max_step=max_step,
            log=log,
            stop_when=stop_when,
            repeat_every=repeat_every,
        )
        self.strategy = strategy
        self.model = model
        self.n_candidates = n_candidates

    def _pick(self, X, y, points, seed):
        """The position of one of ``points``, by a strategy that knows observations ``X``, ``y``."""
        raise NotImplementedError

    def _check_setup(self, n_features, budget=None):
        whole(self.n_candidates, "n_candidates", min_val=1)

    def _select(self, history, candidates, budget, rng):
        known = history.in_order().complete
        if candidates is None:
            points = rng.random((self.n_candidates, known.X.shape[1]))[:, history.feature_rank]
            free = history.is_free(points)
            points = points[free] if free.any() else points
        else:
            available = candidates.available
            if len(available) > self.n_candidates:
                some = rng.choice(len(available), self.n_candidates, replace=False)
                available = available[np.sort(some)]
            points = candidates.points[available]
        seed = int(rng.integers(2**31))
        with _global_seed(seed), warnings.catch_warnings():
            if self.model is None:  # whose hyperparameters may end at their bounds
                warnings.simplefilter("ignore", ConvergenceWarning)
            best = int(self._pick(known.X, known.y, points, seed))
        return points[best] if candidates is None else available[best]


def default_model():
    """A Gaussian process for inputs in the unit cube, with fitted hyperparameters.

    Returns
    -------
    GaussianProcessRegressor
        Its standard deviations include the noise.
    """
    kernel = ConstantKernel(1.0, (0.01, 100.0)) * RBF(0.3, (0.03, 10.0)) + WhiteKernel(
        0.01, (1e-5, 1.0)
    )
    return GaussianProcessRegressor(kernel, normalize_y=True)


@contextlib.contextmanager
def _global_seed(seed):
    """NumPy's global generator seeded, and as it was afterwards: strategies break ties by it."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
