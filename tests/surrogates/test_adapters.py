"""Models of other packages: against our own with the same hyperparameters, and end to end."""

import copy
import pickle
import subprocess
import sys

import gpytorch
import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from hypothesis import given, settings
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.linear_model import BayesianRidge
from sklearn.preprocessing import StandardScaler

from sklearn_asal.surrogates import (
    SURROGATES,
    ExactGP,
    GPyTorchSurrogate,
    RegressorSurrogate,
    SparseGP,
    as_surrogate,
)

from .conftest import finite_data

NOISE = WhiteKernel(0.05, (1e-8, 10.0))
SCIKIT = ConstantKernel(1.0, (1e-6, 1e6)) * RBF([0.3, 0.3], (0.02, 50.0)) + NOISE
TORCH = ScaleKernel(RBFKernel(ard_num_dims=2))
TORCH.base_kernel.lengthscale = 0.3
ADAPTERS = {
    "scikit-learn": RegressorSurrogate(GaussianProcessRegressor(SCIKIT)),
    "exact": GPyTorchSurrogate(TORCH),
    "variational": GPyTorchSurrogate(TORCH, n_inducing=20),
}
every_adapter = pytest.mark.parametrize("name", ADAPTERS)


def double(value):
    return torch.tensor(value, dtype=torch.float64)


def torch_kernel(model):
    """The RBF kernel of one of our models, fixed."""
    kernel = ScaleKernel(RBFKernel(ard_num_dims=model.lengthscale_.shape[1])).double()
    kernel.base_kernel.lengthscale = double(model.lengthscale_)
    kernel.outputscale = double(model.signal_std_[0] ** 2)
    return kernel.requires_grad_(False)


def torch_noise(model):
    constraint = gpytorch.constraints.GreaterThan(1e-8)
    likelihood = GaussianLikelihood(noise_constraint=constraint).double()
    likelihood.noise = double(model.noise_std_[0] ** 2)
    return likelihood.requires_grad_(False)


def scikit(model, **params):
    """Scikit-learn's process with the hyperparameters of one of ours."""
    kernel = ConstantKernel(model.signal_std_[0] ** 2) * RBF(model.lengthscale_[0])
    if "alpha" not in params:
        kernel += WhiteKernel(model.noise_std_[0] ** 2)
    return GaussianProcessRegressor(kernel, optimizer=None, **params)


def same_hyperparameters(model):
    noise = model.noise_std_[0] ** 2
    return {
        "scikit-learn": RegressorSurrogate(scikit(model)),
        "scikit-learn, noise as alpha": RegressorSurrogate(scikit(model, alpha=noise)),
        "exact": GPyTorchSurrogate(torch_kernel(model), torch_noise(model)),
    }


@pytest.mark.parametrize("n_features", [1, 2, 5])
@pytest.mark.parametrize("name", ["scikit-learn", "scikit-learn, noise as alpha", "exact"])
def test_same_hyperparameters_same_answers(data, name, n_features):
    X, y = data(32, n_features)
    ours = ExactGP().fit(X[:25], y[:25])
    theirs = same_hyperparameters(ours)[name].fit(X[:25], y[:25])
    test = np.random.default_rng(1).random((1500, n_features))
    few = test[:7]
    np.testing.assert_allclose(theirs.predict(test), ours.predict(test), atol=1e-6)
    np.testing.assert_allclose(theirs.covariance(test, few), ours.covariance(test, few), atol=1e-6)
    assert theirs.condition(X, y) is theirs
    expected = ours.condition(X, y).predict(test)
    np.testing.assert_allclose(theirs.predict(test), expected, atol=1e-6)


def test_variational_predicts_by_its_formula(data):
    X, y = data(40)
    ours = ExactGP().fit(X, y)
    theirs = GPyTorchSurrogate(torch_kernel(ours), torch_noise(ours), n_inducing=7).fit(X, y)
    Z = theirs.model_.variational_strategy.inducing_points.detach().numpy()
    signal, noise, jitter = ours.signal_std_[0] ** 2, ours.noise_std_[0] ** 2, 1e-6

    def kernel(A, B):
        return signal * RBF(ours.lengthscale_[0])(A, B)

    Kmm = kernel(Z, Z) + jitter * np.eye(7)
    Sigma = np.linalg.inv(Kmm + kernel(Z, X) @ kernel(X, Z) / noise)
    inner = np.linalg.inv(Kmm) - Sigma
    test = np.random.default_rng(1).random((1500, 2))
    k, few = kernel(test, Z), test[:5]
    mean, std = theirs.predict(test)
    np.testing.assert_allclose(mean, k @ Sigma @ kernel(Z, X) @ y / noise, atol=1e-7)
    variance = signal + noise + jitter - np.einsum("ij,jk,ik->i", k, inner, k)
    np.testing.assert_allclose(std**2, variance, atol=1e-7)
    expected = kernel(test, few) - k @ inner @ kernel(Z, few)
    np.testing.assert_allclose(theirs.covariance(test, few), expected, atol=1e-7)


@every_adapter
@pytest.mark.parametrize("seed", range(3))
def test_fitted_like_ours(data, name, seed):
    X, y = data(40, seed=seed)
    ours = ExactGP(prior=False, n_restarts=3).fit(X, y)
    theirs = clone(ADAPTERS[name]).fit(X, y)
    test = np.random.default_rng(1).random((100, 2))
    np.testing.assert_allclose(theirs.predict(test), ours.predict(test), atol=5e-3)


def test_fitted_matern_kernels_agree(data):
    X, y = data(40)
    kernel = ConstantKernel(1.0, (1e-6, 1e6)) * Matern([0.5, 0.5], (0.02, 50.0), nu=2.5) + NOISE
    one = RegressorSurrogate(GaussianProcessRegressor(kernel)).fit(X, y)
    other = GPyTorchSurrogate(ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=2))).fit(X, y)
    test = np.random.default_rng(1).random((100, 2))
    np.testing.assert_allclose(one.predict(test), other.predict(test), atol=2e-3)
    truth = np.sin(5 * test[:, 0]) + test.sum(axis=1) - 1
    mean, std = other.predict(test)
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.1
    assert 0.05 < std.min() < std.max() < 0.3


def test_trained_inducing_points_beat_those_of_k_means(data):
    X, y = data(60)
    ours = SparseGP(n_inducing=6, prior=False).fit(X, y)
    theirs = GPyTorchSurrogate(TORCH, n_inducing=6).fit(X, y)
    inputs, targets = double(X), double(y)
    with torch.no_grad():
        bound = 60 * theirs.model_.train().bound(inputs, targets).item()
    assert bound > ours.objective_


def test_variational_values_are_the_best_for_their_inducing_points(data):
    X, y = data(30)
    theirs = GPyTorchSurrogate(ScaleKernel(RBFKernel()), n_inducing=6, max_iter=3).fit(X, y)
    model, inputs, targets = theirs.model_.train(), double(X), double(y)
    values = model.variational_strategy._variational_distribution
    parts = [values.variational_mean, values.chol_variational_covar]
    objective = gpytorch.mlls.VariationalELBO(model.likelihood, model, num_data=30)
    for part in parts:
        part.requires_grad_(True)
    for slope in torch.autograd.grad(objective(model(inputs), targets), parts):
        np.testing.assert_allclose(slope.numpy(), 0, atol=1e-8)


@every_adapter
def test_the_same_data_the_same_model(data, name):
    X, y = data(20)
    surrogate = clone(ADAPTERS[name])
    first = surrogate.fit(X, y).predict(X)
    state = torch.get_rng_state()
    surrogate.fit(X[:9], y[:9])
    surrogate.condition(X, y)
    np.testing.assert_array_equal(surrogate.fit(X, y).predict(X), first)
    np.testing.assert_array_equal(clone(surrogate).fit(X.tolist(), y.tolist()).predict(X), first)
    assert torch.equal(torch.get_rng_state(), state)


@every_adapter
def test_copies(data, name):
    X, y = data(20)
    fitted = clone(ADAPTERS[name]).fit(X, y)
    before = fitted.predict(X)
    for copied in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(copied.predict(X), before)
        copied.condition(X[:5], y[:5])
        assert not np.array_equal(copied.predict(X), before)
    np.testing.assert_array_equal(fitted.predict(X), before)
    again = clone(fitted)
    assert set(again.get_params()) == set(fitted.get_params())
    with pytest.raises(NotFittedError):
        again.predict(X)
    np.testing.assert_array_equal(again.fit(X, y).predict(X), before)


def test_what_the_user_passed_is_left_alone(data):
    X, y = data(20)
    kernel, likelihood = ScaleKernel(RBFKernel()), GaussianLikelihood()
    parameters = [*kernel.parameters(), *likelihood.parameters()]
    before = [(part.item(), part.dtype, part.requires_grad) for part in parameters]
    GPyTorchSurrogate(kernel, likelihood).fit(X, y).condition(X, y)
    assert [(part.item(), part.dtype, part.requires_grad) for part in parameters] == before
    regressor = GaussianProcessRegressor(SCIKIT)
    RegressorSurrogate(regressor).fit(X, y).condition(X, y)
    assert not hasattr(regressor, "kernel_")
    assert regressor.optimizer is not None


@every_adapter
def test_condition_keeps_hyperparameters(data, name):
    X, y = data(20)
    surrogate = clone(ADAPTERS[name]).fit(X[:15], y[:15])

    def hyperparameters():
        if name == "scikit-learn":
            return surrogate.regressor_.kernel_.theta
        model = surrogate.model_
        parts = [*model.covar_module.parameters(), *model.likelihood.parameters()]
        return np.concatenate([part.detach().numpy().ravel() for part in parts])

    before, std = hyperparameters(), surrogate.predict(X)[1]
    surrogate.condition(X, y)
    np.testing.assert_array_equal(hyperparameters(), before)
    assert (surrogate.predict(X)[1][15:] < std[15:]).all()


def test_parameters_without_gradient_stay(data):
    X, y = data(20)
    kernel = ScaleKernel(RBFKernel())
    kernel.base_kernel.lengthscale = 0.4
    kernel.base_kernel.requires_grad_(False)
    fitted = GPyTorchSurrogate(kernel).fit(X, y).model_.covar_module
    np.testing.assert_allclose(fitted.base_kernel.lengthscale.item(), 0.4, rtol=1e-6)
    assert abs(fitted.outputscale.item() - kernel.outputscale.item()) > 0.01


def test_priors_of_the_kernel_count(data):
    X, y = data(6)
    prior = gpytorch.priors.LogNormalPrior(np.log(0.3), 0.01)
    surrogate = GPyTorchSurrogate(ScaleKernel(RBFKernel(lengthscale_prior=prior))).fit(X, y)
    lengthscale = surrogate.model_.covar_module.base_kernel.lengthscale.item()
    np.testing.assert_allclose(lengthscale, 0.3, rtol=0.05)


@pytest.mark.parametrize("normalize_y", [True, False])
def test_alpha_is_noise_in_units_of_y(data, normalize_y):
    X, y = data(20)
    y = 100.0 + 10.0 * y
    noise = 0.3
    process = GaussianProcessRegressor(
        ConstantKernel(50.0) * RBF(0.4), alpha=noise, normalize_y=normalize_y, optimizer=None
    )
    surrogate = RegressorSurrogate(process).fit(X, y)
    test = np.random.default_rng(1).random((30, 2))
    variance = np.square(process.fit(X, y).predict(test, return_std=True)[1])
    added = noise * (np.var(y) if normalize_y else 1.0)
    np.testing.assert_allclose(surrogate.predict(test)[1] ** 2, variance + added)
    joint = process.predict(test, return_cov=True)[1]
    np.testing.assert_allclose(surrogate.covariance(test[:5], test[5:]), joint[:5, 5:], atol=1e-8)


def test_covariance_has_no_noise(data):
    X, y = data(20)
    surrogate = clone(ADAPTERS["scikit-learn"]).fit(X, y)
    noise = surrogate.regressor_.kernel_.k2.noise_level + 1e-10
    variance = np.diag(surrogate.covariance(X, X))
    np.testing.assert_allclose(variance + noise, surrogate.predict(X)[1] ** 2, atol=1e-8)


def test_any_regressor_that_tells_its_deviation(data):
    X, y = data(30)
    surrogate = RegressorSurrogate(BayesianRidge()).fit(X, y)
    expected = BayesianRidge().fit(X, y).predict(X, return_std=True)
    np.testing.assert_array_equal(surrogate.predict(X), expected)
    assert not hasattr(surrogate, "covariance")
    assert not hasattr(surrogate, "condition")
    assert (RegressorSurrogate(BayesianRidge()).fit(X, np.ones(30)).predict(X)[1] > 0).all()


def test_restarts_are_seeded(data):
    X, y = data(8)
    process = GaussianProcessRegressor(SCIKIT, n_restarts_optimizer=3)
    answers = [RegressorSurrogate(process).fit(X, y).predict(X) for _ in range(2)]
    np.testing.assert_array_equal(*answers)
    assert process.random_state is None
    seeded = process.set_params(random_state=7)
    assert RegressorSurrogate(seeded).fit(X, y).regressor_.random_state == 7


@pytest.mark.filterwarnings("ignore")
@every_adapter
@settings(max_examples=25, deadline=None)
@given(finite_data(largest=1.0))
def test_any_finite_data(name, drawn):
    X, y = drawn
    kernel = ConstantKernel() * RBF() + WhiteKernel(0.01)
    surrogate = {
        "scikit-learn": RegressorSurrogate(GaussianProcessRegressor(kernel)),
        "exact": GPyTorchSurrogate(ScaleKernel(RBFKernel())),
        "variational": GPyTorchSurrogate(ScaleKernel(RBFKernel()), n_inducing=5, max_iter=10),
    }[name].fit(X, y)
    test = np.vstack([np.random.default_rng(0).random((5, X.shape[1])), X])
    for _ in range(2):
        mean, std = surrogate.predict(test)
        assert np.isfinite([mean, std]).all()
        assert (std > 0).all()
        assert np.isfinite(surrogate.covariance(test, test)).all()
        surrogate.condition(np.vstack([X, X[:1]]), np.append(y, y[0]))


def test_more_observations_than_gpytorch_factorises_by_default(data):
    X, y = data(900, 1)
    surrogate = GPyTorchSurrogate(ScaleKernel(RBFKernel()), max_iter=3)
    with gpytorch.settings.max_cholesky_size(800):  # BoTorch states another default
        first, second = (clone(surrogate).fit(X, y).predict(X[:9]) for _ in range(2))
        assert gpytorch.settings.max_cholesky_size.value() == 800
    np.testing.assert_array_equal(first, second)


@every_adapter
def test_invalid_data(data, name):
    X, y = data(10)
    surrogate = clone(ADAPTERS[name])
    with pytest.raises(NotFittedError):
        surrogate.condition(X, y)
    with pytest.raises(NotFittedError):
        surrogate.covariance(X, X)
    with pytest.raises(ValueError, match="X has 10, y has 9"):
        surrogate.fit(X, y[:9])
    surrogate.fit(X, y)
    with pytest.raises(ValueError, match=r"X has 1 features, but .* was fitted on 2"):
        surrogate.predict(X[:, :1])
    with pytest.raises(ValueError, match="X has 1 features"):
        surrogate.condition(X[:, :1], y)
    with pytest.raises(ValueError, match="B has 1 features"):
        surrogate.covariance(X, X[:, :1])
    with pytest.raises(ValueError, match="A has 1 features"):
        surrogate.covariance(X[:, :1], X)


@pytest.mark.parametrize(
    ("surrogate", "message"),
    [
        (GPyTorchSurrogate(RBF()), r"kernel must be a gpytorch.kernels.Kernel, got RBF"),
        (GPyTorchSurrogate(RBFKernel), "kernel must be a gpytorch.kernels.Kernel, got <class"),
        (GPyTorchSurrogate(RBFKernel(), 0.1), "likelihood must be a .*GaussianLikelihood, got 0.1"),
        (
            GPyTorchSurrogate(RBFKernel(), gpytorch.likelihoods.StudentTLikelihood()),
            "likelihood must be a .*GaussianLikelihood, got StudentT",
        ),
        (GPyTorchSurrogate(RBFKernel(), n_inducing=0), "n_inducing == 0, must be >= 1"),
        (GPyTorchSurrogate(RBFKernel(), max_iter=0), "max_iter == 0, must be >= 1"),
        (
            RegressorSurrogate(GaussianProcessRegressor(alpha=np.full(2, 0.1))),
            r"alpha of the regressor must be one number.*shape \(2,\)",
        ),
        (RegressorSurrogate(RandomForestRegressor()), "predict of RandomForestRegressor takes no"),
        (RegressorSurrogate(3), "regressor must be a .*, got 3"),
    ],
)
def test_invalid_parameters(surrogate, message):
    with pytest.raises(ValueError, match=message):
        surrogate.fit([[0.1], [0.5]], [0.1, 0.2])


# ---- as_surrogate


@pytest.mark.parametrize("name", SURROGATES)
def test_names_become_new_instances(name):
    found = as_surrogate(name)
    assert type(found) is SURROGATES[name]
    assert as_surrogate(name) is not found


class Ours(GaussianProcessRegressor):
    """A regressor of scikit-learn that has become a surrogate."""

    def predict(self, X):
        return super().predict(X, return_std=True)


@pytest.mark.parametrize(
    "model", [ExactGP(prior=False), *ADAPTERS.values(), Ours(alpha=0.1), RandomForestRegressor()]
)
def test_surrogates_are_cloned(model):
    found = as_surrogate(model)
    assert type(found) is type(model)
    assert found is not model
    assert repr(found.get_params()) == repr(model.get_params())


@pytest.mark.parametrize("model", [GaussianProcessRegressor(SCIKIT), BayesianRidge()])
def test_regressors_are_wrapped(data, model):
    found = as_surrogate(model)
    assert type(found) is RegressorSurrogate
    assert type(found.regressor) is type(model)
    assert found.regressor is not model
    mean, std = found.fit(*data(20)).predict([[0.5, 0.5]])
    assert mean.shape == std.shape == (1,)


def test_kernels_are_wrapped(data):
    kernel = ScaleKernel(MaternKernel())
    found = as_surrogate(kernel)
    assert type(found) is GPyTorchSurrogate
    assert found.kernel is not kernel
    mean, std = found.fit(*data(20)).predict([[0.5, 0.5]])
    assert mean.shape == std.shape == (1,)


@pytest.mark.parametrize("model", ["exakt", 3, None, StandardScaler(), RBF(), GaussianLikelihood()])
def test_others_are_refused(model):
    message = (
        "surrogate must be one of 'exact', .*'mixture'.* an estimator whose predict returns mean "
        "and standard deviation, a scikit-learn regressor whose predict takes return_std, or a "
        "gpytorch.kernels.Kernel; got "
    )
    with pytest.raises(ValueError, match=message):
        as_surrogate(model)


@pytest.mark.parametrize(
    "model", [ExactGP, GaussianProcessRegressor, RBFKernel, RegressorSurrogate]
)
def test_classes_are_refused(model):
    message = rf"surrogate must be an instance: {model.__name__}\(\.\.\.\), or 'exact'"
    with pytest.raises(ValueError, match=message):
        as_surrogate(model)


def test_gpytorch_is_not_imported_without_need():
    code = (
        "import sys; from sklearn.linear_model import BayesianRidge\n"
        "from sklearn_asal.surrogates import as_surrogate\n"
        "for model in ('exact', BayesianRidge()):\n"
        "    as_surrogate(model).fit([[0.1], [0.2]], [0.1, 0.2]).predict([[0.3]])\n"
        "try:\n"
        "    as_surrogate(3)\n"
        "except ValueError:\n"
        "    pass\n"
        "assert not {'torch', 'gpytorch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
