"""The foundation model TabPFN as a surrogate; its package and its weights come from elsewhere."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from .._typing import FloatArray
from ..settings import own_settings
from .validation import SMALLEST, check_data, check_rows


class TabPFNSurrogate(BaseEstimator):
    """TabPFN, version 2 (Hollmann et al., 2025; paper, TabPFN).

    Needs the package ``tabpfn``: ``pip install "sklearn-asal[tabpfn]"``. When it is used for the
    first time, it downloads its weights (or reads them from ``TABPFN_MODEL_CACHE_DIR``). Version 2
    is asked for: weights of later versions are not for commercial use.

    Predictions depend a little on the order of rows and features, as an ensemble of TabPFN does.
    Queriers sort the rows.

    Parameters
    ----------
    regressor : tabpfn.TabPFNRegressor, default=None
        Cloned, never fitted itself. None means that of version 2 with its defaults, on the CPU.

    Attributes
    ----------
    regressor_ : tabpfn.TabPFNRegressor or None
        The fitted one. None where all values are the same, from which TabPFN learns nothing: then
        the prediction is this value with a standard deviation of one, everywhere.
    n_features_in_ : int

    See Also
    --------
    PFNSurrogate : A small network of that kind, which is shipped.

    References
    ----------
    Hollmann, Müller, Purucker, Krishnakumar, Körfer, Hoo, Schirrmeister, Hutter (2025). "Accurate
    predictions on small data with a tabular foundation model".

    Examples
    --------
    >>> from sklearn_asal import GPQuerier
    >>> querier = GPQuerier(surrogate="tabpfn", random_state=0)
    """

    #: Values need no particular scale: TabPFN standardises them.
    scale_free = True

    def __init__(self, regressor: Any = None) -> None:
        self.regressor = regressor

    @own_settings()
    def fit(self, X: ArrayLike, y: ArrayLike) -> "TabPFNSurrogate":
        """Take the observations as context.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,)

        Returns
        -------
        self

        Raises
        ------
        ImportError
            The package is not installed.
        ValueError
            Invalid data.
        """
        X, y = check_data(X, y)
        regressor = _version_2() if self.regressor is None else clone(self.regressor)
        self.n_features_in_, self._value = X.shape[1], float(y[0])
        self.regressor_ = None if np.ptp(y) == 0 else regressor.fit(X, y)
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
        X = self._checked(X)
        if self.regressor_ is None:
            return np.full(len(X), self._value), np.ones(len(X))
        bars, logits = self._bars(X)
        std = np.sqrt(_array(bars.variance(logits)))
        return _array(bars.mean(logits)), np.maximum(std, SMALLEST)

    @own_settings()
    def entropy(self, X: ArrayLike) -> FloatArray:
        """Differential entropy of a measurement: ``-sum p log(p / width)`` over the bars.

        Parameters
        ----------
        X : array-like of shape (m, n_features)

        Returns
        -------
        ndarray of shape (m,)
            In nats.
        """
        X = self._checked(X)
        if self.regressor_ is None:
            return np.full(len(X), 0.5 * np.log(2 * np.pi * np.e))
        bars, logits = self._bars(X)
        p, widths = _array(logits.softmax(-1)), np.diff(_array(bars.borders))
        return -np.sum(p * np.log(np.where(p > 0, p, widths) / widths), axis=1)

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
        X = self._checked(X)
        if self.regressor_ is None:
            return np.full(len(X), ndtr(self._value))
        bars, logits = self._bars(X)
        return 1.0 - _array(bars.cdf(logits, logits.new_zeros(len(X), 1)))[:, 0]

    def _bars(self, X):
        """Distribution and logits; all rows in one batch."""
        found = self.regressor_.predict(X, output_type="full")
        bars = found["criterion"]
        return bars, found["logits"].to(bars.borders)

    def _checked(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self, "n_features_in_")
        return check_rows(self, X, "X", self.n_features_in_)


def _version_2():
    """The regressor of version 2."""
    try:
        from tabpfn import TabPFNRegressor
        from tabpfn.constants import ModelVersion
    except ImportError as error:
        raise ImportError(
            "TabPFNSurrogate needs the package tabpfn; install it with pip install "
            "'sklearn-asal[tabpfn]'."
        ) from error
    return TabPFNRegressor.create_default_for_version(ModelVersion.V2, device="cpu", random_state=0)


def _array(values):
    return values.detach().cpu().numpy().astype(np.float64)
