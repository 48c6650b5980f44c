"""Numeric settings of the program around change neither answers nor errors."""

import contextlib
import warnings

import gpytorch
import numpy as np
import pytest
import sklearn
import torch
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from threadpoolctl import threadpool_limits

from sklearn_asal.settings import own_settings
from sklearn_asal.surrogates import (
    ExactGP,
    GPyTorchSurrogate,
    MixtureGP,
    RegressorSurrogate,
    SparseGP,
)

KERNEL = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
MODELS = {
    "exact": ExactGP(),
    "exact without prior": ExactGP(prior=False),
    "sparse": SparseGP(n_inducing=8),
    "mixture": MixtureGP(n_members=4, n_steps=3),
    "regressor": RegressorSurrogate(
        GaussianProcessRegressor(RBF(0.3, "fixed") + WhiteKernel(0.01, "fixed"))
    ),
    "gpytorch": GPyTorchSurrogate(KERNEL, max_iter=20),
    "gpytorch, inducing points": GPyTorchSurrogate(KERNEL, n_inducing=8, max_iter=5),
}


@contextlib.contextmanager
def changed(set_, before, now):
    set_(now)
    try:
        yield
    finally:
        set_(before)


@contextlib.contextmanager
def warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


SETTINGS = {
    "np.seterr": lambda: np.errstate(all="raise"),
    "warnings": warnings_are_errors,
    "assume_finite": lambda: sklearn.config_context(assume_finite=True),
    "float64": lambda: changed(torch.set_default_dtype, torch.float32, torch.float64),
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "BLAS threads": lambda: threadpool_limits(4, user_api="blas"),
    "torch threads": lambda: changed(torch.set_num_threads, torch.get_num_threads(), 3),
}


def far_apart(n=60):
    """Two groups of inputs whose kernel underflows, and a function that bends in each."""
    rng = np.random.default_rng(0)
    X = np.vstack([0.05 * rng.random((n // 2, 2)), 1 - 0.05 * rng.random((n // 2, 2))])
    return X, np.sin(200 * X[:, 0]) + np.cos(150 * X[:, 1])


def answers(model):
    X, y = far_apart()
    model = clone(model).fit(X[3:], y[3:])
    test = np.random.default_rng(1).random((40, 2))
    found = [*model.predict(test)]
    for method in ("covariance", "predict_members"):
        if hasattr(model, method):
            arguments = (test, test[:3]) if method == "covariance" else (test,)
            found += [*getattr(model, method)(*arguments)]
    return [*found, *model.condition(X, y).predict(test)]


def refusals(model):
    X, y = far_apart()
    model = clone(model).fit(X, y)
    wrong = np.full((2, 2), np.nan)
    calls = [
        lambda: clone(model).fit(wrong, y[:2]),
        lambda: clone(model).fit(X[:2], wrong[0]),
        lambda: model.condition(wrong, y[:2]),
        lambda: model.condition(X[:2], wrong[0]),
        lambda: model.predict(wrong),
        lambda: model.covariance(X, wrong),
    ]
    if hasattr(model, "predict_members"):
        calls.append(lambda: model.predict_members(wrong))
    found = []
    for call in calls:
        with pytest.raises(ValueError, match="contains NaN or infinity") as caught:
            call()
        found.append(str(caught.value))
    return found


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", MODELS)
def test_answers_and_errors_are_the_same(name, setting):
    expected, errors = answers(MODELS[name]), refusals(MODELS[name])
    with SETTINGS[setting]():
        found, found_errors = answers(MODELS[name]), refusals(MODELS[name])
    assert found_errors == errors
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_settings_are_put_back():
    with np.errstate(all="raise", under="warn"):
        before = np.geterr()
        with own_settings():
            assert set(np.geterr().values()) == {"ignore"}
        assert np.geterr() == before
        with pytest.raises(KeyError), own_settings():
            raise KeyError
        assert np.geterr() == before


def test_a_decorated_function_can_call_itself():
    @own_settings()
    def countdown(n):
        return [n, *countdown(n - 1)] if n else []

    assert countdown(3) == [3, 2, 1]
