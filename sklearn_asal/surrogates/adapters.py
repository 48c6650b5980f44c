"""Models of other packages as surrogates."""

import copy
import inspect
import sys
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.utils import check_scalar
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._typing import FloatArray, Surrogate
from ..settings import own_settings
from .amortized import AmortizedGP
from .ensemble import EnsembleGP
from .exact import ExactGP
from .mixture import MixtureGP
from .pfn import PFNSurrogate
from .sparse import SparseGP
from .tabpfn import TabPFNSurrogate
from .validation import SMALLEST, check_data, check_rows

if TYPE_CHECKING:
    from gpytorch.kernels import Kernel
    from gpytorch.likelihoods import GaussianLikelihood

#: What queriers call surrogates.
SURROGATES: dict[str, type[Surrogate]] = {
    "exact": ExactGP,
    "sparse": SparseGP,
    "mixture": MixtureGP,
    "ensemble": EnsembleGP,
    "amortized": AmortizedGP,
    "pfn": PFNSurrogate,
    "tabpfn": TabPFNSurrogate,
}


def as_surrogate(model: "str | Surrogate | Kernel") -> Surrogate:
    """A surrogate of one's own from a name or a model.

    Parameters
    ----------
    model : str, surrogate, regressor or gpytorch.kernels.Kernel
        A name in ``SURROGATES``; an estimator with the methods of a surrogate; a
        scikit-learn regressor whose ``predict`` takes ``return_std``; or a kernel of
        GPyTorch.

    Returns
    -------
    surrogate : surrogate
        Unfitted, and independent of ``model``.

    Raises
    ------
    ValueError
        Anything else.
    """
    names = ", ".join(map(repr, SURROGATES))
    if isinstance(model, type):
        raise ValueError(f"surrogate must be an instance: {model.__name__}(...), or {names}.")
    if isinstance(model, str) and model in SURROGATES:
        return SURROGATES[model]()
    if _is_kernel(model):
        return GPyTorchSurrogate(copy.deepcopy(model))
    if not all(hasattr(model, name) for name in ("fit", "predict", "get_params")):
        raise ValueError(
            f"surrogate must be one of {names}, an estimator whose predict returns mean and "
            "standard deviation, a scikit-learn regressor whose predict takes return_std, or a "
            f"gpytorch.kernels.Kernel; got {model!r}."
        )
    if is_regressor(model) and _tells_std(model):
        return RegressorSurrogate(clone(model))
    return clone(model)


def _is_kernel(model):
    # Whoever has a kernel has imported GPyTorch.
    gpytorch = sys.modules.get("gpytorch")
    return gpytorch is not None and isinstance(model, gpytorch.kernels.Kernel)


def _tells_std(model):
    return "return_std" in inspect.signature(model.predict).parameters


def _is_gaussian_process(surrogate):
    return isinstance(surrogate.regressor, GaussianProcessRegressor)


class RegressorSurrogate(BaseEstimator):
    """A scikit-learn regressor that tells its standard deviation.

    Warnings of the regressor are passed on.

    Parameters
    ----------
    regressor : estimator
        Its ``predict`` takes ``return_std``; that standard deviation has to include the
        noise, as of ``BayesianRidge`` and of Gaussian processes with a ``WhiteKernel``.
        To that of a ``GaussianProcessRegressor`` its ``alpha``, one number, is added
        as noise. It is cloned, never fitted itself; a ``random_state`` of None counts
        as 0, so that the same data give the same model.

    Attributes
    ----------
    regressor_ : estimator
        The fitted one.
    n_features_in_ : int

    See Also
    --------
    GPyTorchSurrogate : The same for kernels of GPyTorch.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from sklearn.gaussian_process.kernels import Matern, WhiteKernel
    >>> from sklearn_asal.surrogates import RegressorSurrogate
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> surrogate = RegressorSurrogate(GaussianProcessRegressor(Matern() + WhiteKernel(0.01)))
    >>> mean, std = surrogate.fit(X, np.sin(6 * X[:, 0])).predict([[0.5]])
    >>> mean.round(2)
    array([0.14])
    """

    def __init__(self, regressor: BaseEstimator) -> None:
        self.regressor = regressor

    @own_settings()
    def fit(self, X: ArrayLike, y: ArrayLike) -> "RegressorSurrogate":
        """Fit a clone of the regressor.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,)

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Invalid data, another kind of regressor, or an ``alpha`` for each observation.
        """
        if not hasattr(self.regressor, "predict"):
            raise ValueError(f"regressor must be a scikit-learn regressor, got {self.regressor!r}.")
        if not _tells_std(self.regressor):
            raise ValueError(
                f"predict of {type(self.regressor).__name__} takes no return_std; choose a "
                "regressor that tells its standard deviation."
            )
        return self._fit(_seeded(clone(self.regressor)), *check_data(X, y))

    @available_if(_is_gaussian_process)
    @own_settings()
    def condition(self, X: ArrayLike, y: ArrayLike) -> "RegressorSurrogate":
        """Take other data, with the kernel that ``fit`` chose; Gaussian processes only.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,)

        Returns
        -------
        self

        Raises
        ------
        sklearn.exceptions.NotFittedError
        ValueError
            Invalid data.
        """
        X, y = check_data(X, y)
        X = self._checked(X)
        regressor = clone(self.regressor).set_params(kernel=self.regressor_.kernel_, optimizer=None)
        return self._fit(regressor, X, y)

    @own_settings()
    def predict(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of a measurement, noise included.

        Parameters
        ----------
        X : array-like of shape (n, n_features)

        Returns
        -------
        mean, std : ndarray of shape (n,)

        Raises
        ------
        sklearn.exceptions.NotFittedError
        ValueError
            Invalid X.
        """
        X = self._checked(X)
        mean, std = self.regressor_.predict(X, return_std=True)
        if _is_gaussian_process(self):
            std = np.sqrt(np.square(std) + self.regressor_.alpha * self._scale**2)
        return mean, np.maximum(std, SMALLEST)

    @available_if(_is_gaussian_process)
    @own_settings()
    def covariance(self, A: ArrayLike, B: ArrayLike) -> FloatArray:
        """Covariance of noise-free values at two sets of points; Gaussian processes only.

        Parameters
        ----------
        A : array-like of shape (n, n_features)
        B : array-like of shape (k, n_features)

        Returns
        -------
        covariance : ndarray of shape (n, k)

        Raises
        ------
        sklearn.exceptions.NotFittedError
        ValueError
            Invalid A or B.
        """
        A, B = self._checked(A, "A"), self._checked(B, "B")
        process = self.regressor_
        of_A, of_B = (
            solve_triangular(process.L_, process.kernel_(process.X_train_, part), lower=True)
            for part in (A, B)
        )
        return self._scale**2 * (process.kernel_(A, B) - of_A.T @ of_B)

    def _fit(self, regressor, X, y):
        if _is_gaussian_process(self):
            if np.ndim(regressor.alpha):
                raise ValueError(
                    "alpha of the regressor must be one number, for measurements to come have "
                    f"none of their own; it has shape {np.shape(regressor.alpha)}."
                )
            # What the regressor divides y by.
            self._scale = (np.std(y) or 1.0) if regressor.normalize_y else 1.0
        self.n_features_in_ = X.shape[1]
        self.regressor_ = regressor.fit(X, y)
        return self

    def _checked(self, X: ArrayLike, name: str = "X") -> FloatArray:
        check_is_fitted(self, "regressor_")
        return check_rows(self, X, name, self.n_features_in_)


def _seeded(regressor):
    """The same with seeds in place of no seeds."""
    unseeded = {
        name: 0
        for name, value in regressor.get_params().items()
        if name.rpartition("__")[2] == "random_state" and value is None
    }
    return regressor.set_params(**unseeded)


class GPyTorchSurrogate(BaseEstimator):
    """Zero-mean GP with a kernel of GPyTorch, fitted by type-II maximum likelihood.

    Computed in double precision, by L-BFGS-B from the hyperparameters that the kernel
    and the likelihood have. Priors registered with them count; parameters that require
    no gradient stay. GPyTorch's settings and Python's warnings belong to the process, so
    several threads should not use such surrogates at once.

    Parameters
    ----------
    kernel : gpytorch.kernels.Kernel
        Copied, never changed itself.
    likelihood : gpytorch.likelihoods.GaussianLikelihood, default=None
        The noise. None means one of variance 0.01 at the start.
    n_inducing : int, default=None
        With it, the model is a variational one with so many inducing points (Hensman
        et al., 2015), which are trained together with the hyperparameters; with no more
        distinct inputs than this, they start at the inputs. None means an exact one.
    max_iter : int, default=200
        Of L-BFGS-B.

    Attributes
    ----------
    model_ : gpytorch.models.GP
        In evaluation mode, with its ``likelihood``.
    n_features_in_ : int

    See Also
    --------
    ExactGP, SparseGP : Their RBF kernel is much faster.

    Examples
    --------
    >>> import gpytorch, numpy as np
    >>> from sklearn_asal.surrogates import GPyTorchSurrogate
    >>> kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel())
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> mean, std = GPyTorchSurrogate(kernel).fit(X, np.sin(6 * X[:, 0])).predict([[0.5]])
    >>> mean.round(2)
    array([0.14])
    """

    def __init__(
        self,
        kernel: "Kernel",
        likelihood: "GaussianLikelihood | None" = None,
        *,
        n_inducing: int | None = None,
        max_iter: int = 200,
    ) -> None:
        self.kernel = kernel
        self.likelihood = likelihood
        self.n_inducing = n_inducing
        self.max_iter = max_iter

    @own_settings()
    def fit(self, X: ArrayLike, y: ArrayLike) -> "GPyTorchSurrogate":
        """Choose hyperparameters and condition on the data.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,)

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            Invalid data or parameters.
        """
        if not _is_kernel(self.kernel):
            raise ValueError(f"kernel must be a gpytorch.kernels.Kernel, got {self.kernel!r}.")
        if self.n_inducing is not None:
            check_scalar(self.n_inducing, "n_inducing", Integral, min_val=1)
        check_scalar(self.max_iter, "max_iter", Integral, min_val=1)
        X, y = check_data(X, y)
        self.n_features_in_ = X.shape[1]
        return self._fit(X, y, self.kernel, self.likelihood)

    @own_settings()
    def condition(self, X: ArrayLike, y: ArrayLike) -> "GPyTorchSurrogate":
        """Take other data, with the hyperparameters that ``fit`` chose.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,)

        Returns
        -------
        self

        Raises
        ------
        sklearn.exceptions.NotFittedError
        ValueError
            Invalid data.
        """
        X, y = check_data(X, y)
        X = self._checked(X)
        return self._fit(X, y, self.model_.covar_module, self.model_.likelihood, frozen=True)

    @own_settings()
    def predict(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of a measurement, noise included.

        Parameters
        ----------
        X : array-like of shape (n, n_features)

        Returns
        -------
        mean, std : ndarray of shape (n,)

        Raises
        ------
        sklearn.exceptions.NotFittedError
        ValueError
            Invalid X.
        """
        X = self._checked(X)
        from . import gpytorch_models

        return gpytorch_models.predict(self.model_, X)

    @own_settings()
    def covariance(self, A: ArrayLike, B: ArrayLike) -> FloatArray:
        """Covariance of noise-free values at two sets of points.

        Parameters
        ----------
        A : array-like of shape (n, n_features)
        B : array-like of shape (k, n_features)

        Returns
        -------
        covariance : ndarray of shape (n, k)

        Raises
        ------
        sklearn.exceptions.NotFittedError
        ValueError
            Invalid A or B.
        """
        A, B = self._checked(A, "A"), self._checked(B, "B")
        from . import gpytorch_models

        return gpytorch_models.covariance(self.model_, A, B)

    def _fit(self, X, y, kernel, likelihood, frozen=False):
        from . import gpytorch_models

        self.model_ = gpytorch_models.trained(
            X, y, kernel, likelihood, self.n_inducing, self.max_iter, frozen
        )
        return self

    def _checked(self, X: ArrayLike, name: str = "X") -> FloatArray:
        check_is_fitted(self, "model_")
        return check_rows(self, X, name, self.n_features_in_)
