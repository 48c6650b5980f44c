"""The loop of queries and experiments, and a model of what was measured."""

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from tqdm import tqdm

from .exceptions import BudgetExhaustedError, warn_user
from .pool import CandidatePool
from .validation import whole

# What an experiment may return in a mapping; the arguments of ``tell``.
_OUTCOME = "x", "y", "z", "status"

# In scikit-learn's words, which its checks look for.
_COLUMN = (
    "A column-vector y was passed when a 1d array was expected. Change the shape of y to "
    "(n_samples,), for example using ravel()."
)

_NO_DATA = (
    "%(name)s has no data yet: call fit(X, y) first. With a querier that has data use "
    "ActiveLearner.from_fitted(estimator, querier)."
)

_L = TypeVar("_L", bound="ActiveLearner")


def _has(method):
    """Whether the estimator has a method, for ``available_if``."""

    def check(self):
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    return check


class ActiveLearner(MetaEstimatorMixin, BaseEstimator):
    """A querier that chooses experiments, and an estimator that learns from all of them.

    Parameters
    ----------
    estimator : estimator
        What is learned, such as a regressor or a Pipeline that ends in one. It is cloned, never
        fitted itself.
    querier : querier
        What chooses: any object with ``fit``, ``query`` and ``tell``. It is cloned, never fitted
        itself.
    refit : {"end", "each"} or int, default="end"
        When :meth:`run` fits the estimator: at its end, after each experiment, or after every so
        many and at the end.

    Attributes
    ----------
    querier_ : querier
        The campaign; its ``X_``, ``y_``, ``z_`` and ``status_`` are all that was measured.
    estimator_ : estimator
        Fitted to the observations that have an output.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, when ``fit`` got a table with text for column names.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.kernel_ridge import KernelRidge
    >>> from sklearn_asal import ActiveLearner, AmortizedQuerier
    >>> def experiment(x):
    ...     return np.sin(6 * x[0, 0])
    >>> model = KernelRidge(alpha=1e-3, kernel="rbf", gamma=10)
    >>> learner = ActiveLearner(model, AmortizedQuerier()).fit([[0.2], [0.8]], [0.932, -0.996])
    >>> learner.run(experiment, n_queries=8).querier_.n_told_
    8
    >>> bool(abs(learner.predict([[0.5]])[0] - np.sin(3.0)) < 0.02)
    True
    """

    def __init__(
        self, estimator: Any, querier: Any, *, refit: Literal["end", "each"] | int = "end"
    ) -> None:
        self.estimator = estimator
        self.querier = querier
        self.refit = refit

    @classmethod
    def from_fitted(
        cls: type[_L], estimator: Any, querier: Any, *, refit: Literal["end", "each"] | int = "end"
    ) -> _L:
        """Go on with the campaign of a querier that has data.

        Parameters
        ----------
        estimator, refit
            See the class.
        querier : querier
            A fitted one. It is not cloned: :meth:`run` tells it what is measured.

        Returns
        -------
        learner : ActiveLearner
            With the estimator fitted to the querier's observations.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            The querier has no data.
        """
        check_is_fitted(querier, msg="%(name)s has no data: call its fit first, or learner.fit.")
        return cls(estimator, querier, refit=refit)._adopt(querier)

    def fit(self: _L, X: ArrayLike, y: ArrayLike, z: ArrayLike | None = None) -> _L:
        """Start a campaign from initial observations, and fit the estimator to them.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Measured inputs in the user's units.
        y : array-like of shape (n,)
            Outputs. With ``z`` some may be missing (NaN, None), but not all.
        z : array-like of shape (n,) or (n, n_limits), default=None
            Safety measurements, see the ``fit`` of the querier.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            Invalid data or parameters. A campaign under way is left as it was.
        """
        if not hasattr(self.querier, "query"):
            swapped = " The arguments are swapped." * hasattr(self.estimator, "query")
            raise TypeError(
                f"querier must be one of this package, such as AmortizedQuerier(); got "
                f"{self.querier!r}.{swapped}"
            )
        if getattr(y, "ndim", 1) == 2:
            warn_user(_COLUMN, DataConversionWarning)
        return self._adopt(clone(self.querier).fit(X, y, z))

    def run(
        self: _L,
        experiment: Callable[..., Any],
        n_queries: int | None = None,
        *,
        pool: ArrayLike | CandidatePool | None = None,
        callback: "Callable[[ActiveLearner], Any] | None" = None,
        progress_bar: bool = False,
    ) -> _L:
        """Choose, measure and tell, again and again, and fit the estimator.

        It goes on where the run before stopped. An exception out of ``experiment`` or
        ``callback``, and an interrupt, too, ends the run and is passed on. All that was told until
        then is kept, and the estimator is fitted to it.

        Parameters
        ----------
        experiment : callable
            ``experiment(x)`` measures at ``x``, what ``query`` returns: an ndarray of shape
            (1, n_features), or a table of one row where the inputs are tables, in the user's
            units. It returns the output ``y``; or a tuple ``(y, z)``; or a mapping with some of
            the keys "y", "z", "status" (how the run ended: "ok", "aborted" or "failed") and "x"
            (what was measured, where that is not what was proposed), see the querier's ``tell``.
        n_queries : int, default=None
            Number of experiments. None means until the querier is finished: the budget is spent,
            no row of the pool is left, or ``stop_when`` is reached.
        pool : array-like of shape (n_candidates, n_features) or CandidatePool, default=None
            The only points that may be measured.
        callback : callable, default=None
            ``callback(learner)`` is called after each experiment. Where it returns something
            true, the run ends.
        progress_bar : bool, default=False
            Show a progress bar.

        Returns
        -------
        self

        Raises
        ------
        sklearn.exceptions.NotFittedError
            ``fit`` has not been called.
        BudgetExhaustedError
            The querier's budget has fewer than ``n_queries`` left. Nothing is measured.
        PoolExhaustedError, NoSafeCandidateError
            Raised by the querier; what was told is kept.
        ValueError, TypeError
            Invalid parameters, or the experiment returned something else. That observation is not
            told; those before are kept.
        """
        check_is_fitted(self, msg=_NO_DATA)
        if not callable(experiment):
            raise TypeError(f"experiment must be callable, experiment(x) -> y; got {experiment!r}.")
        if pool is not None and not isinstance(pool, CandidatePool):
            pool = CandidatePool(pool)
        if n_queries is not None:
            n_queries = whole(n_queries, "n_queries", min_val=1)
            self._check_budget(n_queries)
        else:
            self._check_has_end(pool)
        every = self._every(math.inf if n_queries is None else n_queries)
        with tqdm(total=n_queries, disable=not progress_bar, unit="query") as bar:
            try:
                for count in itertools.count(1) if n_queries is None else range(1, n_queries + 1):
                    if n_queries is None and self.querier_.is_finished(pool=pool):
                        break
                    self._step(experiment, pool)
                    if count % every == 0:
                        self._fit_estimator(self.querier_)
                    bar.update()
                    if callback is not None and callback(self):
                        break
            finally:
                if len(self.querier_.X_) != self._n_fitted:
                    self._fit_estimator(self.querier_)
        return self

    def _step(self, experiment, pool):
        """One experiment."""
        querier = self.querier_
        if pool is None:
            x, known = querier.query(), {}
        else:
            x, index = querier.query(pool=pool, return_indices=True)
            known = {"index": index}
        outcome = experiment(x.copy() if isinstance(x, np.ndarray) else x)
        told = {"x": x, **known, **_as_told(outcome)}
        try:
            querier.tell(told.pop("x"), **told)
        except (TypeError, ValueError) as error:
            if hasattr(error, "add_note"):  # since Python 3.11
                error.add_note(
                    f"The experiment at x={np.asarray(x).tolist()} returned {outcome!r}."
                )
            raise

    def _every(self, n_queries):
        """After how many experiments the estimator is fitted."""
        if isinstance(self.refit, str):
            if self.refit not in ("end", "each"):
                raise ValueError(
                    f"refit must be 'end', 'each' or a positive whole number, got {self.refit!r}."
                )
            return n_queries if self.refit == "end" else 1
        return whole(self.refit, "refit", min_val=1)

    def _check_has_end(self, pool):
        """Raise where a campaign would never be finished."""
        stated = (getattr(self.querier_, name, None) for name in ("budget", "stop_when"))
        if pool is None and all(one is None for one in stated):
            raise ValueError(
                "n_queries=None goes on until the querier is finished, but it has neither a budget "
                "nor stop_when. State one of them, or n_queries."
            )

    def _check_budget(self, n_queries):
        budget = getattr(self.querier_, "budget", None)
        if budget is None:
            return
        left = budget - self.querier_.n_told_
        if left < n_queries:
            raise BudgetExhaustedError(
                f"{max(left, 0)} queries are left ({self.querier_.n_told_} of budget={budget} are "
                f"told), but n_queries={n_queries} is asked for. Ask for fewer, or raise the "
                "budget with learner.querier_.set_params(budget=...)."
            )

    def _adopt(self, querier):
        """Take a campaign for this learner's own."""
        self._every(1)
        self._fit_estimator(querier)
        self.querier_ = querier
        return self

    def _fit_estimator(self, querier):
        X, y = querier.X_, querier.y_
        kept = ~np.isnan(y)
        # The old one stays if this raises.
        self.estimator_ = clone(self.estimator).fit(_named(X[kept], querier), y[kept])
        self._n_fitted = len(X)

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self.querier_.n_features_in_

    @property
    def feature_names_in_(self) -> Any:
        """Names of the features, when ``fit`` got a table (ndarray of str)."""
        return self.querier_.feature_names_in_

    def __sklearn_is_fitted__(self):
        return hasattr(self, "querier_")

    @property
    def classes_(self) -> Any:
        """The classes of a classifier (ndarray of shape (n_classes,))."""
        return self.estimator_.classes_

    @available_if(_has("predict"))
    def predict(self, X: ArrayLike, **params: Any) -> Any:
        """Predict with the estimator.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            In the user's units.
        **params
            Passed on, such as ``return_std=True``.

        Returns
        -------
        ndarray of shape (n,)
            Or what else the estimator returns.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            ``fit`` has not been called.
        """
        return self._delegate("predict", X, **params)

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: ArrayLike, **params: Any) -> Any:
        """Predict probabilities of classes with the estimator.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        **params
            Passed on.

        Returns
        -------
        ndarray of shape (n, n_classes)
        """
        return self._delegate("predict_proba", X, **params)

    @available_if(_has("predict_log_proba"))
    def predict_log_proba(self, X: ArrayLike, **params: Any) -> Any:
        """Predict logarithms of probabilities of classes with the estimator.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        **params
            Passed on.

        Returns
        -------
        ndarray of shape (n, n_classes)
        """
        return self._delegate("predict_log_proba", X, **params)

    @available_if(_has("decision_function"))
    def decision_function(self, X: ArrayLike, **params: Any) -> Any:
        """The estimator's decision function.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        **params
            Passed on.

        Returns
        -------
        ndarray of shape (n,) or (n, n_classes)
        """
        return self._delegate("decision_function", X, **params)

    @available_if(_has("score"))
    def score(self, X: ArrayLike, y: ArrayLike, **params: Any) -> float:
        """The estimator's score.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,)
        **params
            Passed on, such as ``sample_weight``.

        Returns
        -------
        float
            The coefficient of determination for a regressor.
        """
        return self._delegate("score", X, y, **params)

    def _delegate(self, method, *args, **params):
        check_is_fitted(self, msg=_NO_DATA)
        return getattr(self.estimator_, method)(*args, **params)

    def __sklearn_tags__(self):
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.regressor_tags, tags.classifier_tags = inner.regressor_tags, inner.classifier_tags
        tags.target_tags.required = True
        return tags


def _as_told(outcome):
    """What an experiment returned as arguments of ``tell``."""
    if isinstance(outcome, Mapping):
        unknown = [key for key in outcome if key not in _OUTCOME]
        if unknown:
            raise ValueError(
                f"experiment returned a mapping with the key(s) {', '.join(map(repr, unknown))}; "
                f"known are {', '.join(map(repr, _OUTCOME))}. It returned {outcome!r}."
            )
        return outcome
    if isinstance(outcome, tuple):
        if len(outcome) != 2:
            raise ValueError(
                f"experiment returned a tuple of {len(outcome)} entries. Return y, (y, z), or a "
                f"mapping with the keys {', '.join(map(repr, _OUTCOME))}. It returned {outcome!r}."
            )
        return {"y": outcome[0], "z": outcome[1]}
    if isinstance(outcome, list):
        raise ValueError(
            f"experiment returned a list, {outcome!r}. Return y, the tuple (y, z), or a mapping "
            f"with the keys {', '.join(map(repr, _OUTCOME))}."
        )
    if outcome is None:
        raise ValueError(
            "experiment returned None. Return y, (y, z), or a mapping; of a run without a result "
            "{'status': 'failed'}."
        )
    return {"y": outcome}


def _named(X, querier):
    """Inputs as the estimator gets them: with names, where the querier has some."""
    if querier._library is None:  # arrays were told, whatever names bounds may have
        return X
    names = querier.feature_names_in_
    try:
        import pandas as pd
    except ImportError:
        return X
    return pd.DataFrame(X, columns=names)
