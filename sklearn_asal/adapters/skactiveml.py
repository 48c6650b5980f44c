"""scikit-activeml: a querier as a query strategy, and a query strategy as a querier."""

import inspect
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor

try:
    from skactiveml.base import SingleAnnotatorPoolQueryStrategy, SkactivemlRegressor
    from skactiveml.pool import GreedySamplingTarget, QueryByCommittee
    from skactiveml.regressor import SklearnNormalRegressor, SklearnRegressor
    from skactiveml.utils import MISSING_LABEL, is_labeled
except ImportError as error:
    from .optional import missing

    raise missing("skactiveml") from error

from .._typing import Bounds, Location, RandomState, Scale, StrPath
from ..exceptions import warn_user
from ..log import CampaignLog
from ..queriers.safe import SafeQuerierMixin
from .rows import chosen, ready
from .strategies import StrategyQuerier, default_model


class QuerierStrategy(SingleAnnotatorPoolQueryStrategy):
    """A querier as a pool-based query strategy for regression.

    Parameters
    ----------
    querier : querier, default=None
        What chooses. None stands for ``AmortizedSafeQuerier()`` where :meth:`query` gets ``z``, and
        ``AmortizedQuerier()`` where it does not. Without ``bounds`` it gets those of the samples.
        It is cloned, never fitted itself.
    missing_label : scalar, None or str, default=nan
        What stands for a missing label.
    random_state : int, RandomState or None, default=None
        Replaces that of the querier. With None the querier's own is used.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_asal.adapters.skactiveml import QuerierStrategy
    >>> X = np.linspace(0, 10, 50)[:, None]
    >>> y = np.full(50, np.nan)
    >>> y[[20, 30]] = np.sin(X[[20, 30], 0])
    >>> QuerierStrategy().query(X, y, batch_size=3).shape
    (3,)
    """

    def __init__(
        self,
        querier: Any = None,
        missing_label: Any = MISSING_LABEL,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(missing_label=missing_label, random_state=random_state)
        self.querier = querier

    def query(
        self,
        X: ArrayLike,
        y: ArrayLike,
        z: ArrayLike | None = None,
        candidates: ArrayLike | None = None,
        batch_size: int = 1,
        return_utilities: bool = False,
    ) -> Any:
        """Choose the samples to be measured next.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            All samples, measured or not.
        y : array-like of shape (n_samples,)
            Outputs; ``missing_label`` where none was measured.
        z : array-like of shape (n_samples,) or (n_samples, n_limits), default=None
            Safety measurements of the samples that have an output; the others are not looked at.
            For a querier with limits None means ``z = y``.
        candidates : array-like of int of shape (n_candidates,) or array-like of shape \
                (n_candidates, n_features), default=None
            Rows of ``X``, or other samples. None stands for all samples without an output.
        batch_size : int, default=1
            Number of samples.
        return_utilities : bool, default=False
            Return utilities as well.

        Returns
        -------
        query_indices : ndarray of int of shape (batch_size,)
            Rows of ``X``, or of ``candidates`` where these are samples.
        utilities : ndarray of shape (batch_size, n_samples) or (batch_size, n_candidates)
            One for the sample that is chosen, zero for the other candidates, and NaN for what is
            no candidate; a querier rules out and compares, but ranks not all of them.

        Raises
        ------
        ValueError
            Invalid data, or no sample has an output and the querier has limits.

        Warns
        -----
        UserWarning
            No sample has an output, so that samples are drawn at random.
        """
        X_, y_, candidates, batch_size, return_utilities = self._validate_data(
            X, y, candidates, batch_size, return_utilities, reset=True
        )
        rows, mapping = self._transform_candidates(candidates, X_, y_)
        known = is_labeled(y_, self.missing_label_)
        querier = ready(self.querier, z is not None, X_, rows)
        if known.any():
            if self.random_state is not None:
                querier.set_params(random_state=int(self.random_state_.randint(2**31 - 1)))
            # As objects, for beside a gap booleans would become numbers.
            z_ = z if z is None or isinstance(z, np.ndarray) else np.asarray(z, dtype=object)
            if z_ is not None and len(z_) != len(X_):
                raise ValueError(f"z has {len(z_)} entries, but X has {len(X_)} rows.")
            z_ = None if z_ is None else z_[known]
            picked = chosen(querier, X_[known], y_[known].astype(float), z_, rows, batch_size)
        else:
            picked = self._at_random(querier, len(rows), batch_size)
        indices = picked if mapping is None else mapping[picked]
        if not return_utilities:
            return indices
        columns = np.arange(len(rows)) if mapping is None else mapping
        n_columns = len(rows) if mapping is None else len(X_)
        return indices, _utilities(indices, columns, n_columns)

    def _at_random(self, querier, n_rows, batch_size):
        if isinstance(querier, SafeQuerierMixin):
            raise ValueError(
                "y: no sample has an output. A querier with limits needs at least one measured "
                "sample, and it should be a safe one."
            )
        warn_user("no sample has an output; samples are drawn at random.", UserWarning)
        return self.random_state_.choice(n_rows, batch_size, replace=False)


def _utilities(indices, columns, n_columns):
    """One where a sample was chosen, zero where it might have been, NaN elsewhere."""
    utilities = np.full((len(indices), n_columns), np.nan)
    utilities[:, columns] = 0.0
    for i, index in enumerate(indices):
        utilities[i, index] = 1.0
        utilities[i + 1 :, index] = np.nan
    return utilities


class SkactivemlQuerier(StrategyQuerier):
    """A query strategy of scikit-activeml for regression as a querier.

    Parameters
    ----------
    strategy : skactiveml.base.SingleAnnotatorPoolQueryStrategy, default=None
        It is cloned, and the clone's random state is set. None stands for
        ``GreedySamplingTarget()``.
    model : SkactivemlRegressor, regressor, or sequence of these, default=None
        What the strategy's ``query`` takes as ``reg`` or ``ensemble``, if it takes one. Regressors
        of scikit-learn are wrapped. None stands for a Gaussian process with fitted hyperparameters,
        for a committee 25 trees.
    query_params : dict, default=None
        Further arguments of the strategy's ``query``.
    n_candidates : int, default=500
        Number of random points that the strategy compares, or of rows of a pool, others at each
        query.
    bounds, budget, random_state, y_loc, y_scale, constraints, max_step, log, stop_when, \
            repeat_every
        As for :class:`~sklearn_asal.RandomQuerier`. The strategy gets inputs in the unit cube and
        outputs scaled by the last two.

    Examples
    --------
    >>> from skactiveml.pool import GreedySamplingX
    >>> from sklearn_asal.adapters.skactiveml import SkactivemlQuerier
    >>> querier = SkactivemlQuerier(GreedySamplingX(), bounds=(0, 10))
    >>> bool(querier.query([[0.0], [5.0]], [0.1, 0.2])[0, 0] > 9.5)
    True
    """

    def __init__(
        self,
        strategy: Any = None,
        *,
        model: Any = None,
        query_params: dict[str, Any] | None = None,
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
        self.query_params = query_params

    def _check_setup(self, n_features, budget=None):
        super()._check_setup(n_features, budget)
        strategy = self.strategy
        if strategy is not None and not isinstance(strategy, SingleAnnotatorPoolQueryStrategy):
            raise ValueError(
                "strategy must be a SingleAnnotatorPoolQueryStrategy of scikit-activeml, such as "
                f"GreedySamplingTarget(); got {strategy!r}."
            )
        if strategy is not None and "clf" in inspect.signature(strategy.query).parameters:
            raise ValueError(
                f"strategy {strategy!r} is for classification; take one for regression."
            )

    def _pick(self, X, y, points, seed):
        strategy = GreedySamplingTarget() if self.strategy is None else clone(self.strategy)
        strategy.set_params(random_state=seed)
        taken = inspect.signature(strategy.query).parameters
        models = {name: self._model(name) for name in ("reg", "ensemble") if name in taken}
        indices = strategy.query(
            np.vstack([X, points]),
            np.append(y, np.full(len(points), np.nan)),
            candidates=np.arange(len(X), len(X) + len(points)),
            **models,
            **(self.query_params or {}),
        )
        return np.ravel(indices)[0] - len(X)

    def _model(self, name):
        model = self.model
        if model is None:
            trees = RandomForestRegressor(n_estimators=25, random_state=0)
            model = trees if name == "ensemble" else default_model()
        return [*map(_wrapped, model)] if isinstance(model, (list, tuple)) else _wrapped(model)


def _wrapped(model):
    """A regressor as scikit-activeml wants it."""
    if isinstance(model, SkactivemlRegressor):
        return model
    is_probabilistic = "return_std" in inspect.signature(model.predict).parameters
    return (SklearnNormalRegressor if is_probabilistic else SklearnRegressor)(model)


def greedy_sampling() -> SkactivemlQuerier:
    """Greedy sampling in the space of inputs and outputs, of a benchmark.

    Returns
    -------
    SkactivemlQuerier
    """
    return SkactivemlQuerier(GreedySamplingTarget())


def query_by_committee() -> SkactivemlQuerier:
    """A committee of trees, of a benchmark.

    Returns
    -------
    SkactivemlQuerier
    """
    return SkactivemlQuerier(QueryByCommittee())
