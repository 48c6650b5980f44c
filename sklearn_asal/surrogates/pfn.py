"""Predictions by a pretrained transformer: nothing is fitted, and no process is assumed."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._typing import FloatArray, StrPath
from ..settings import own_settings
from .bars import Bars
from .evidence import rank_features
from .validation import check_data, check_rows

# Digits of an input or a value that are told apart.
_DIGITS = 9


class PFNSurrogate(BaseEstimator):
    """A prior-data fitted network (Müller et al., 2022; paper, PFN).

    A transformer that was trained on simulated data sets reads the observations and predicts
    measurements, as histograms. ``fit`` encodes the observations, so that predictions at m points
    given n observations take O(n^2 + m n). It was trained on 1 to 100 observations.

    Predictions depend neither on the order of the rows nor on that of the features: the network
    gets the features in an order that the data decide. Where the data are the same with two
    features interchanged, it gets the smaller of each point's two values first.

    Parameters
    ----------
    policy : str or path-like, default="pfn"
        Name or file of the network.

    Attributes
    ----------
    bars_ : Bars
        What predictions are histograms of.
    n_features_in_ : int

    See Also
    --------
    AmortizedGP : Hyperparameters of Gaussian processes from a pretrained network.

    References
    ----------
    Müller, Hollmann, Pineda Arango, Grabocka, Hutter (2022). "Transformers Can Do Bayesian
    Inference".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_asal.surrogates import PFNSurrogate
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> mean, std = PFNSurrogate().fit(X, np.sin(6 * X[:, 0])).predict([[0.5]])
    >>> bool(abs(mean[0] - 0.14) < 0.2)
    True
    """

    def __init__(self, policy: StrPath = "pfn") -> None:
        self.policy = policy

    @own_settings()
    def fit(self, X: ArrayLike, y: ArrayLike) -> "PFNSurrogate":
        """Encode the observations.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            In the unit cube; beyond half a side around it is like that.
        y : array-like of shape (n,)
            At unit scale; beyond 10 is like 10.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Invalid data, or more features than the network takes (eight, as shipped).
        PolicyNotFoundError, PolicyFileError
            There is no such network.
        """
        from ..policies.registry import load_pfn

        X, y = check_data(X, y)
        self._runtime = runtime = load_pfn(self.policy)
        if X.shape[1] > runtime.most_features:
            raise ValueError(
                f"X has {X.shape[1]} features, and the network {str(self.policy)!r} takes at most "
                f"{runtime.most_features}; choose another surrogate, such as 'exact' or "
                "'amortized'."
            )
        self.n_features_in_ = X.shape[1]
        self.bars_ = Bars(runtime.borders, runtime.tails)
        self._order = np.argsort(rank_features(X, y))
        self._equal = _interchangeable(X[:, self._order], y)
        self._encoded: Any = runtime.encode(X[:, self._order], y)
        return self

    @own_settings()
    def predict(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of a measurement, noise included.

        Parameters
        ----------
        X : array-like of shape (m, n_features)

        Returns
        -------
        mean, std : ndarray of shape (m,)
        """
        probabilities = self.predict_bars(X)
        return self.bars_.mean(probabilities), np.sqrt(self.bars_.variance(probabilities))

    @own_settings()
    def predict_bars(self, X: ArrayLike) -> FloatArray:
        """Probabilities of the bars, a histogram for each point.

        Parameters
        ----------
        X : array-like of shape (m, n_features)

        Returns
        -------
        ndarray of shape (m, n_bars)
            For the methods of ``bars_``.
        """
        check_is_fitted(self, "bars_")
        X = check_rows(self, X, "X", self.n_features_in_)[:, self._order]
        for group in self._equal:
            X[:, group] = np.sort(X[:, group], axis=1)
        return self._runtime.probabilities(self._encoded, X)

    @own_settings()
    def entropy(self, X: ArrayLike) -> FloatArray:
        """Differential entropy of a measurement.

        Parameters
        ----------
        X : array-like of shape (m, n_features)

        Returns
        -------
        ndarray of shape (m,)
            In nats, of the histogram and not of a normal distribution.
        """
        return self.bars_.entropy(self.predict_bars(X))

    @own_settings()
    def probability_of_positive(self, X: ArrayLike) -> FloatArray:
        """Probability that a measurement is positive; of a safety margin, that it is safe.

        Parameters
        ----------
        X : array-like of shape (m, n_features)

        Returns
        -------
        ndarray of shape (m,)
        """
        return 1.0 - self.bars_.cdf(self.predict_bars(X), 0.0)


def _interchangeable(X, y):
    """Groups of neighbouring features, of which any two may change places in the data.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        With equal features beside each other.
    y : ndarray of shape (n,)

    Returns
    -------
    list of list of int
    """
    groups = [[0]]
    for feature in range(1, X.shape[1]):
        if _is_symmetric(X, y, feature):
            groups[-1].append(feature)
        else:
            groups.append([feature])
    return [group for group in groups if len(group) > 1]


def _is_symmetric(X, y, feature):
    """Whether the data are the same with this feature and the one before interchanged."""
    one, other = X[:, feature - 1].round(_DIGITS), X[:, feature].round(_DIGITS)
    if not np.array_equal(np.sort(one), np.sort(other)):  # mostly, quickly
        return False
    rows = np.column_stack([X, y]).round(_DIGITS)
    swapped = rows.copy()
    swapped[:, [feature - 1, feature]] = rows[:, [feature, feature - 1]]
    return np.array_equal(rows[np.lexsort(rows.T)], swapped[np.lexsort(swapped.T)])
