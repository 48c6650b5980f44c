"""modAL: both ways."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from sklearn_asal import (
    AmortizedQuerier,
    AmortizedSafeQuerier,
    GPQuerier,
    PoolExhaustedError,
    RandomQuerier,
)
from sklearn_asal.benchmarks import run

from .packages import needed

needed("modAL")

from modAL.acquisition import max_EI, max_PI, max_UCB
from modAL.disagreement import max_std_sampling
from modAL.models import ActiveLearner

from sklearn_asal.adapters.modal import ModalQuerier, QuerierStrategy

POOL = np.random.default_rng(0).uniform([0, -5], [6, 30], (40, 2))
X, Y, Z = POOL[:4], np.sin(POOL[:4, 0]), 3.5 - np.abs(POOL[:4, 0] - 3.0)
BOUNDS = np.column_stack([POOL.min(axis=0), POOL.max(axis=0)])
MODEL = GaussianProcessRegressor(RBF(1.0) + WhiteKernel(0.1))


def learner(querier=None, X=X, y=Y):
    # modAL 0.4.2 cannot teach with scikit-learn 1.8 and later, so learners are made anew.
    return ActiveLearner(MODEL, QuerierStrategy(querier), X_training=X, y_training=y)


class TestQuerierStrategy:
    @pytest.mark.parametrize("n", [1, 2, 3])
    @pytest.mark.parametrize("querier", [None, GPQuerier(n_candidates=50), RandomQuerier()])
    def test_is_the_querier_on_the_pool(self, querier, n):
        indices, rows = learner(querier).query(POOL, n_instances=n)
        own = AmortizedQuerier() if querier is None else clone(querier)
        points = own.set_params(bounds=BOUNDS).query(X, Y, pool=POOL, n_queries=n)
        assert np.array_equal(rows, points)
        assert np.array_equal(POOL[indices], points)

    def test_with_a_limit(self):
        _, rows = learner().query(POOL, n_instances=3, z=Z)
        own = AmortizedSafeQuerier(bounds=BOUNDS)
        assert np.array_equal(rows, own.query(X, Y, Z, pool=POOL, n_queries=3))

    def test_metrics_are_standard_deviations(self):
        _, rows, std = learner().query(POOL, n_instances=3, return_metrics=True)
        report = AmortizedQuerier(bounds=BOUNDS).assess(rows, X, Y)
        assert std == pytest.approx(report.y_std)
        _, _, std = learner(RandomQuerier()).query(POOL, return_metrics=True)
        assert np.isnan(std).all()

    def test_bounds_of_the_querier_are_kept(self):
        with pytest.warns(UserWarning, match="outside bounds"):
            _, rows = learner(RandomQuerier(bounds=[(2, 3), (-5, 30)])).query(POOL)
        assert 2 <= rows[0, 0] <= 3

    def test_their_loop(self):
        rows, y, left = X, Y, POOL[4:]
        for _ in range(8):
            (index,), row = learner(X=rows, y=y[:, None]).query(left)
            rows, y = np.vstack([rows, row]), np.append(y, np.sin(row[:, 0]))
            left = np.delete(left, index, axis=0)
        assert len(np.unique(rows, axis=0)) == 12

    def test_measured_rows_are_not_chosen(self):
        with pytest.raises(PoolExhaustedError):
            learner().query(POOL[:5], n_instances=2)
        assert learner().query(POOL[:5])[0] == [4]

    def test_no_data(self):
        with pytest.raises(ValueError, match="no training data"):
            ActiveLearner(MODEL, QuerierStrategy()).query(POOL)

    def test_repr_and_pickle(self):
        strategy = QuerierStrategy(RandomQuerier(budget=3))
        assert repr(strategy) == "QuerierStrategy(RandomQuerier(budget=3))"
        assert repr(pickle.loads(pickle.dumps(strategy))) == repr(strategy)
        assert repr(QuerierStrategy()) == "QuerierStrategy()"


def farthest(learner, pool, n_instances=1):
    """A strategy without a model, whose answer can be worked out by hand."""
    away = np.linalg.norm(pool[:, None] - learner.X_training, axis=2).min(axis=1)
    return np.argsort(-away)[:n_instances]


QUERIERS = {
    "default": ModalQuerier(n_candidates=50),
    "max_UCB": ModalQuerier(max_UCB, n_candidates=50),
    "max_EI": ModalQuerier(max_EI, model=MODEL, n_candidates=50),
    "max_PI": ModalQuerier(max_PI, model=MODEL, n_candidates=50),
    "committee": ModalQuerier(
        max_std_sampling, model=[LinearRegression(), DecisionTreeRegressor()], n_candidates=50
    ),
    "farthest": ModalQuerier(farthest, model=LinearRegression()),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
class TestModalQuerier:
    @pytest.mark.parametrize("name", QUERIERS)
    def test_is_a_querier(self, name):
        querier = clone(QUERIERS[name]).set_params(bounds=[(0, 6), (-5, 30)]).fit(X, Y)
        points = querier.query(n_queries=2)
        assert np.array_equal(points, querier.query(n_queries=2))
        for other in (pickle.loads(pickle.dumps(querier)), clone(querier).fit(X, Y)):
            assert np.array_equal(points, other.query(n_queries=2))
        assert ((points >= [0, -5]) & (points <= [6, 30])).all()
        assert (points[0] != points[1]).any()
        _, indices = querier.query(pool=POOL, n_queries=2, return_indices=True)
        assert len({*indices, 0, 1, 2, 3}) == 6

    def test_by_hand(self):
        querier = clone(QUERIERS["farthest"]).set_params(bounds=BOUNDS)
        (row,) = querier.query(X, Y, pool=POOL, return_indices=True)[1]
        unit = (POOL - POOL.min(axis=0)) / np.ptp(POOL, axis=0)
        away = np.linalg.norm(unit[:, None] - unit[:4], axis=2).min(axis=1)
        assert row == away.argmax()

    def test_largest_standard_deviation(self):
        querier = ModalQuerier(model=MODEL, bounds=BOUNDS)
        (row,) = querier.query(X, Y, pool=POOL, return_indices=True)[1]
        unit = (POOL - POOL.min(axis=0)) / np.ptp(POOL, axis=0)
        order = np.lexsort(unit[:4].T[::-1])
        _, std = clone(MODEL).fit(unit[order], Y[order]).predict(unit[4:], return_std=True)
        assert std[row - 4] == pytest.approx(std.max())

    def test_strategy_is_callable(self):
        with pytest.raises(ValueError, match="strategy must be callable"):
            ModalQuerier("max_std_sampling").query(X, Y)

    def test_benchmark(self):
        assert len(run(QUERIERS["farthest"], "branin", 0, 2, 2)) == 2
