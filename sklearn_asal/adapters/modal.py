"""modAL: a querier as a query strategy, and a query strategy as a querier."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

try:
    from modAL.disagreement import max_std_sampling
    from modAL.models import ActiveLearner, BayesianOptimizer, CommitteeRegressor
except ImportError as error:
    from .optional import missing

    raise missing("modal") from error

from .._typing import Bounds, FloatArray, IntArray, Location, RandomState, Scale, StrPath
from ..log import CampaignLog
from ..queriers.reporting import ReportingQuerier
from ..validation import finite_array
from .rows import ready
from .strategies import StrategyQuerier, default_model


class QuerierStrategy:
    """A querier as a query strategy of modAL's learners.

    Parameters
    ----------
    querier : querier, default=None
        What chooses. None stands for ``AmortizedSafeQuerier()`` where a query gets ``z``, and
        ``AmortizedQuerier()`` where it does not. Without ``bounds`` it gets those of the pool and
        the training data. It is cloned, never fitted itself.

    Examples
    --------
    >>> import numpy as np
    >>> from modAL.models import ActiveLearner
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from sklearn_asal.adapters.modal import QuerierStrategy
    >>> X, pool = np.array([[4.0], [6.0]]), np.linspace(0, 10, 50)[:, None]
    >>> learner = ActiveLearner(
    ...     GaussianProcessRegressor(), QuerierStrategy(), X_training=X, y_training=np.sin(X[:, 0])
    ... )
    >>> indices, rows = learner.query(pool, n_instances=3)
    >>> rows.shape
    (3, 1)
    """

    def __init__(self, querier: Any = None) -> None:
        self.querier = querier

    def __repr__(self) -> str:
        return f"QuerierStrategy({'' if self.querier is None else repr(self.querier)})"

    def __call__(
        self, learner: Any, X_pool: ArrayLike, n_instances: int = 1, z: ArrayLike | None = None
    ) -> tuple[IntArray, FloatArray]:
        """Choose rows of a pool; ``learner.query(X_pool, n_instances=..., z=...)`` calls it.

        Parameters
        ----------
        learner : modAL.models.ActiveLearner or the like
            Its ``X_training`` and ``y_training`` are the observations.
        X_pool : array-like of shape (n_candidates, n_features)
            Rows that equal an observation are not chosen.
        n_instances : int, default=1
            Number of rows.
        z : array-like of shape (n,) or (n, n_limits), default=None
            Safety measurements of the training data. For a querier with limits None means
            ``z = y_training``.

        Returns
        -------
        indices : ndarray of int of shape (n_instances,)
        metrics : ndarray of shape (n_instances,)
            Standard deviations of the output there, in the units of ``y_training``; NaN for a
            querier without ``return_report``.

        Raises
        ------
        ValueError, TypeError
            Invalid data, or a learner without training data.
        PoolExhaustedError
            Too few rows of the pool are left.
        """
        X, y = getattr(learner, "X_training", None), getattr(learner, "y_training", None)
        if X is None:
            raise ValueError(
                "the learner has no training data; a querier needs at least one observation. Pass "
                "X_training and y_training to it."
            )
        pool = finite_array(X_pool, "X_pool")
        querier = ready(self.querier, z is not None, finite_array(X, "X_training"), pool)
        options = {"pool": pool, "n_queries": n_instances, "return_indices": True}
        if isinstance(querier, ReportingQuerier):
            _, indices, report = querier.query(X, y, z, return_report=True, **options)
            return indices, report.y_std
        return querier.query(X, y, z, **options)[1], np.full(n_instances, np.nan)


class ModalQuerier(StrategyQuerier):
    """A query strategy of modAL for regression as a querier.

    Parameters
    ----------
    strategy : callable, default=None
        ``strategy(learner, X_pool)`` returns the row to be measured, or a tuple with it in the
        first place. None stands for ``modAL.disagreement.max_std_sampling``.
    model : regressor or sequence of regressors, default=None
        What the learner fits; a sequence makes a ``CommitteeRegressor``. None stands for a Gaussian
        process with fitted hyperparameters.
    n_candidates : int, default=500
        Number of random points that the strategy compares, or of rows of a pool, others at each
        query.
    bounds, budget, random_state, y_loc, y_scale, constraints, max_step, log, stop_when, \
            repeat_every
        As for :class:`~sklearn_asal.RandomQuerier`. The strategy gets inputs in the unit cube and
        outputs scaled by the last two.

    Notes
    -----
    The learner is a ``BayesianOptimizer``, which is an ``ActiveLearner`` that knows the largest
    output, so that ``modAL.acquisition`` works, too.

    Examples
    --------
    >>> from sklearn_asal.adapters.modal import ModalQuerier
    >>> ModalQuerier(bounds=(0, 10)).query([[0.0], [5.0]], [0.1, 0.2]).shape
    (1, 1)
    """

    def __init__(
        self,
        strategy: Callable[..., Any] | None = None,
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
            strategy,
            model=model,
            n_candidates=n_candidates,
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

    def _check_setup(self, n_features, budget=None):
        super()._check_setup(n_features, budget)
        if self.strategy is not None and not callable(self.strategy):
            raise ValueError(
                "strategy must be callable, such as modAL.disagreement.max_std_sampling; got "
                f"{self.strategy!r}."
            )

    def _pick(self, X, y, points, seed):
        strategy = max_std_sampling if self.strategy is None else self.strategy
        model = default_model() if self.model is None else self.model
        if isinstance(model, (list, tuple)):
            members = [ActiveLearner(clone(one), strategy, X, y) for one in model]
            learner = CommitteeRegressor(members, strategy)
        else:
            learner = BayesianOptimizer(clone(model), strategy, X, y)
        answer = strategy(learner, points)
        return np.ravel(answer[0] if isinstance(answer, tuple) else answer)[0]
