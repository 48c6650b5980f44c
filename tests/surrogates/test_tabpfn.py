"""TabPFN as a surrogate: with a stand-in of its interface, and with the package where it is."""

import importlib.util
import sys
import types

import numpy as np
import pytest
import torch
from scipy.stats import norm
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from sklearn_asal import GPQuerier, GPSafeQuerier
from sklearn_asal.acquisition import predicted_entropy, probability_of_feasibility
from sklearn_asal.surrogates import TabPFNSurrogate, as_surrogate

is_installed = importlib.util.find_spec("tabpfn") is not None


class Criterion:
    """Bars without tails, with the methods of TabPFN's distribution that are used."""

    def __init__(self, borders):
        self.borders = borders

    def mean(self, logits):
        return logits.softmax(-1) @ (0.5 * (self.borders[1:] + self.borders[:-1]))

    def variance(self, logits):
        low, high = self.borders[:-1], self.borders[1:]
        square = logits.softmax(-1) @ ((low**2 + low * high + high**2) / 3)
        return square - self.mean(logits) ** 2

    def cdf(self, logits, ys):
        share = (ys[:, :1] - self.borders[:-1]) / self.borders.diff()
        return (logits.softmax(-1) * share.clamp(0, 1)).sum(-1, keepdim=True)


class Regressor(BaseEstimator):
    """Predicts normal distributions about a weighted mean, wider far from data, as bars."""

    def __init__(self, n_bars=2000):
        self.n_bars = n_bars

    def fit(self, X, y):
        assert np.ptp(y) > 0
        self.X_, self.y_, self.batches_ = X, y, []
        return self

    def moments(self, X):
        squares = np.square(X[:, None] - self.X_).sum(axis=-1)
        weights = np.exp(-20 * squares) + 1e-9
        return weights @ self.y_ / weights.sum(axis=1), 0.1 + np.sqrt(squares.min(axis=1))

    def predict(self, X, output_type="mean"):
        assert output_type == "full"
        self.batches_.append(len(X))
        mean, std = self.moments(X)
        borders = np.linspace(-10, 10, self.n_bars + 1)
        mass = np.diff(norm.cdf((borders - mean[:, None]) / std[:, None]), axis=1)
        return {
            "mean": mean,
            "criterion": Criterion(torch.from_numpy(borders)),
            "logits": torch.from_numpy(np.log(mass + 1e-30)).float(),
        }


def of_package():
    """The package's regressor, version 2, small and with random weights."""
    from tabpfn import TabPFNRegressor
    from tabpfn.architectures import tabpfn_v2
    from tabpfn.architectures.shared.bar_distribution import FullSupportBarDistribution
    from tabpfn.base import ModelSpecs
    from tabpfn.constants import ModelVersion
    from tabpfn.inference_config import InferenceConfig

    with torch.random.fork_rng():
        torch.manual_seed(0)
        sizes = {"max_num_classes": 0, "num_buckets": 100, "emsize": 24, "nlayers": 2, "nhead": 2}
        config = tabpfn_v2.TabPFNV2Config(**sizes)
        network = tabpfn_v2.get_architecture(config)
        for weight in network.parameters():
            torch.nn.init.normal_(weight, std=0.3)
        bars = FullSupportBarDistribution(1.5 * torch.sort(torch.randn(101)).values)
    defaults = InferenceConfig.get_default(task_type="regression", model_version=ModelVersion.V2)
    specs = ModelSpecs(network, config, defaults, bars)
    return TabPFNRegressor(model_path=specs, device="cpu", n_estimators=2, random_state=0)


REGRESSORS = {"stand-in": Regressor, "package": of_package}


@pytest.fixture(params=REGRESSORS)
def regressor(request):
    if request.param == "package" and not is_installed:
        pytest.skip("tabpfn is not installed")
    return REGRESSORS[request.param]()


def test_answers_are_those_of_normal_distributions(data):
    X, y = data(12)
    test = np.random.default_rng(1).random((50, 2))
    model = TabPFNSurrogate(Regressor()).fit(X, y)
    mean, std = Regressor().fit(X, y).moments(test)
    np.testing.assert_allclose(model.predict(test), (mean, std), atol=1e-3)
    np.testing.assert_allclose(predicted_entropy(model, test), norm.entropy(mean, std), atol=1e-3)
    p_safe = probability_of_feasibility([model], test)
    np.testing.assert_allclose(p_safe, norm.sf(0.0, mean, std), atol=1e-3)
    # One batch each time.
    assert model.regressor_.batches_ == [50, 50, 50]
    many = TabPFNSurrogate(Regressor(n_bars=10)).fit(X, y)
    many.predict(np.zeros((5000, 2)))
    assert many.regressor_.batches_ == [5000]


def test_answers_go_together(regressor, data):
    X, y = data(12, 3)
    test = np.random.default_rng(1).random((40, 3))
    model = TabPFNSurrogate(regressor).fit(X, y)
    found = model.regressor_.predict(test, output_type="full")
    bars, logits = found["criterion"], found["logits"]
    mean, std = model.predict(test)
    np.testing.assert_allclose(mean, found["mean"], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(std**2, bars.variance(logits.to(bars.borders)), rtol=1e-3)
    assert len(np.unique(std.round(6))) > 20
    p = torch.softmax(logits.double(), -1).numpy()
    entropy = -(p * np.log(p / np.diff(np.asarray(bars.borders)))).sum(axis=1)
    np.testing.assert_allclose(model.entropy(test), entropy, rtol=1e-4, atol=1e-4)
    p_positive = model.probability_of_positive(test)
    assert ((p_positive >= 0) & (p_positive <= 1)).all()
    # The same data, the same model.
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(test), (mean, std))
    assert as_surrogate(model) is not model


@pytest.mark.parametrize("n", [1, 5])
def test_constants(regressor, n):
    X = np.random.default_rng(0).random((n, 2))
    model = TabPFNSurrogate(regressor).fit(X, np.full(n, 0.7))
    mean, std = model.predict(X)
    np.testing.assert_array_equal((mean, std), (np.full(n, 0.7), np.ones(n)))
    np.testing.assert_allclose(model.entropy(X), norm.entropy())
    np.testing.assert_allclose(model.probability_of_positive(X), norm.cdf(0.7))


def test_campaigns(regressor, data):
    X, y = data(8)
    options = {"surrogate": TabPFNSurrogate(regressor), "n_candidates": 100, "random_state": 0}
    querier = GPQuerier(**options).fit(X[:1], y[:1])
    for _ in range(3):
        x = querier.query()
        querier.tell(x, x.sum(axis=1))
    safe = GPSafeQuerier(on_no_safe="least_unsafe", **options)
    point, report = safe.query(X, y, y + 1, return_report=True)
    assert ((point >= 0) & (point <= 1)).all()
    assert 0 <= report.p_safe[0] <= 1


def test_without_the_package(monkeypatch, data):
    monkeypatch.setitem(sys.modules, "tabpfn", None)
    with pytest.raises(ImportError, match=r"pip install 'sklearn-asal\[tabpfn\]'"):
        GPQuerier(surrogate="tabpfn").query(*data(5))


def test_version_2_is_asked_for(monkeypatch, data):
    asked = []

    class TabPFNRegressor(Regressor):
        @classmethod
        def create_default_for_version(cls, version, **options):
            asked.append((version, options))
            return Regressor()

    package, constants = types.ModuleType("tabpfn"), types.ModuleType("tabpfn.constants")
    package.TabPFNRegressor = TabPFNRegressor
    constants.ModelVersion = types.SimpleNamespace(V2="v2")
    monkeypatch.setitem(sys.modules, "tabpfn", package)
    monkeypatch.setitem(sys.modules, "tabpfn.constants", constants)
    GPQuerier(surrogate="tabpfn", n_candidates=50).query(*data(5))
    assert asked == [("v2", {"device": "cpu", "random_state": 0})]


def test_invalid_data(data):
    X, y = data(5)
    model = TabPFNSurrogate(Regressor())
    for method in ("predict", "entropy", "probability_of_positive"):
        with pytest.raises(NotFittedError):
            getattr(model, method)(X)
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(X, np.full(5, np.nan))
    with pytest.raises(ValueError, match="X has 1 features"):
        model.fit(X, y).entropy(X[:, :1])
