"""scikit-activeml: both ways."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from sklearn_asal import (
    AmortizedQuerier,
    AmortizedSafeQuerier,
    BudgetExhaustedError,
    GPQuerier,
    RandomQuerier,
)
from sklearn_asal.benchmarks import run

from .packages import needed

needed("skactiveml")

from skactiveml.pool import (
    ExpectedModelVarianceReduction,
    GreedySamplingTarget,
    GreedySamplingX,
    KLDivergenceMaximization,
    ParallelUtilityEstimationWrapper,
    QueryByCommittee,
    RandomSampling,
    RegressionTreeBasedAL,
    SubSamplingWrapper,
    UncertaintySampling,
)
from skactiveml.regressor import NICKernelRegressor, SklearnRegressor

from sklearn_asal.adapters.skactiveml import QuerierStrategy, SkactivemlQuerier

RNG = np.random.default_rng(0)
X = RNG.uniform([0, -5], [6, 30], (40, 2))
KNOWN = [3, 8, 20, 31]
Y = np.full(40, np.nan)
Y[KNOWN] = np.sin(X[KNOWN, 0])
Z = np.where(np.isnan(Y), np.nan, 3.5 - np.abs(X[:, 0] - 3.0))
BOUNDS = np.column_stack([X.min(axis=0), X.max(axis=0)])


class TestQuerierStrategy:
    @pytest.mark.parametrize(
        "querier", [None, GPQuerier(n_candidates=100), RandomQuerier(random_state=3)]
    )
    def test_is_the_querier_on_the_samples(self, querier):
        indices = QuerierStrategy(querier).query(X, Y, batch_size=3)
        own = AmortizedQuerier() if querier is None else clone(querier)
        own.set_params(bounds=BOUNDS)
        points = own.query(X[KNOWN], Y[KNOWN], pool=X, n_queries=3)
        assert np.array_equal(X[indices], points)

    def test_with_a_limit(self):
        indices = QuerierStrategy().query(X, Y, Z, batch_size=3)
        own = AmortizedSafeQuerier(bounds=BOUNDS)
        points = own.query(X[KNOWN], Y[KNOWN], Z[KNOWN], pool=X, n_queries=3)
        assert np.array_equal(X[indices], points)
        # Several limits, and the output as its own.
        both = np.column_stack([Z, Z])
        assert QuerierStrategy().query(X, Y, both).shape == (1,)
        QuerierStrategy(AmortizedSafeQuerier(safety_threshold=-2.0)).query(X, Y)

    @pytest.mark.filterwarnings("ignore::sklearn_asal.SafetyWarning")
    def test_booleans_beside_gaps_stay_booleans(self):
        flags = [None if np.isnan(value) else bool(value > 2) for value in Z]
        own = AmortizedSafeQuerier(bounds=BOUNDS)
        expected = own.query(X[KNOWN], Y[KNOWN], Z[KNOWN] > 2, pool=X)
        assert np.array_equal(X[QuerierStrategy().query(X, Y, flags)], expected)

    def test_bounds_of_the_querier_are_kept(self):
        querier = RandomQuerier(bounds=[(2, 3), (-5, 30)])
        with pytest.warns(UserWarning, match="outside bounds"):
            index = QuerierStrategy(querier).query(X, Y)
        assert 2 <= X[index[0], 0] <= 3
        assert querier.bounds == [(2, 3), (-5, 30)]

    def test_constant_feature(self):
        flat = np.column_stack([X[:, 0], np.full(40, 7.0)])
        assert QuerierStrategy().query(flat, Y)[0] not in KNOWN

    @settings(deadline=None, max_examples=20)
    @given(st.permutations(range(40)), st.integers(1, 5))
    def test_order_of_samples(self, order, batch_size):
        strategy = QuerierStrategy(GPQuerier(n_candidates=50))
        indices = strategy.query(X, Y, batch_size=batch_size)
        moved = strategy.query(X[order], Y[order], batch_size=batch_size)
        assert np.array_equal(np.array(order)[moved], indices)

    def test_candidates_in_all_their_forms(self):
        free = np.setdiff1d(np.arange(40), KNOWN)
        strategy = QuerierStrategy()
        expected = strategy.query(X, Y)
        assert np.array_equal(strategy.query(X, Y, candidates=free), expected)
        assert free[strategy.query(X, Y, candidates=X[free])] == expected
        some = free[::3]
        assert np.isin(strategy.query(X, Y, candidates=some, batch_size=4), some).all()

    def test_a_sample_may_be_measured_again(self):
        indices = QuerierStrategy(RandomQuerier()).query(X, Y, candidates=KNOWN, batch_size=4)
        assert sorted(indices) == KNOWN
        # A copy that was not measured is a candidate as any other.
        twice, y = np.vstack([X[KNOWN], X[KNOWN]]), np.append(Y[KNOWN], [np.nan] * 4)
        indices = QuerierStrategy(RandomQuerier()).query(twice, y, batch_size=4)
        assert sorted(indices) == [4, 5, 6, 7]

    @pytest.mark.parametrize("candidates", [None, [0, 1, 2], X[:3]])
    def test_utilities(self, candidates):
        indices, utilities = QuerierStrategy().query(
            X, Y, candidates=candidates, batch_size=2, return_utilities=True
        )
        is_sample = candidates is not None and np.ndim(candidates) == 2
        assert utilities.shape == (2, 3 if is_sample else 40)
        assert np.array_equal(np.nanargmax(utilities, axis=1), indices)
        n = 36 if candidates is None else 3
        assert (~np.isnan(utilities)).sum(axis=1).tolist() == [n, n - 1]
        assert np.nansum(utilities, axis=1).tolist() == [1.0, 1.0]

    def test_other_missing_labels(self):
        expected = QuerierStrategy().query(X, Y)
        none = np.array([None if np.isnan(y) else y for y in Y], dtype=object)
        assert np.array_equal(QuerierStrategy(missing_label=None).query(X, none), expected)
        minus = np.where(np.isnan(Y), -99.0, Y)
        assert np.array_equal(QuerierStrategy(missing_label=-99.0).query(X, minus), expected)

    def test_nothing_is_labelled(self):
        strategy = QuerierStrategy(random_state=0)
        with pytest.warns(UserWarning, match="drawn at random"):
            indices, utilities = strategy.query(
                X, np.full(40, np.nan), batch_size=5, return_utilities=True
            )
        assert len(set(indices)) == 5
        assert np.array_equal(np.nanargmax(utilities, axis=1), indices)
        with pytest.raises(ValueError, match="at least one measured"):
            QuerierStrategy(AmortizedSafeQuerier()).query(X, np.full(40, np.nan))

    def test_random_state(self):
        def rows(**params):
            return QuerierStrategy(RandomQuerier(), **params).query(X, Y, batch_size=9).tolist()

        assert rows(random_state=0) == rows(random_state=0) != rows(random_state=1)
        assert rows() == rows()

    def test_invalid_data(self):
        with pytest.raises(ValueError, match="z has 3 entries"):
            QuerierStrategy().query(X, Y, Z[:3])
        with pytest.raises(ValueError, match="z contains NaN"):
            QuerierStrategy().query(X, Y, np.full(40, np.nan))
        with pytest.raises(BudgetExhaustedError):
            QuerierStrategy(RandomQuerier(budget=2)).query(X, Y, batch_size=3)

    def test_parameters(self):
        strategy = QuerierStrategy(GPQuerier(), random_state=4)
        strategy.set_params(querier__n_candidates=7)
        assert clone(strategy).querier.n_candidates == 7

    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_in_their_wrappers(self):
        inner = QuerierStrategy(GPQuerier(n_candidates=50))
        sub = SubSamplingWrapper(inner, max_candidates=10, random_state=0)
        assert sub.query(X, Y)[0] not in KNOWN
        parallel = ParallelUtilityEstimationWrapper(
            inner, n_jobs=2, parallel_dict={"backend": "threading"}, random_state=0
        )
        assert parallel.query(X, Y)[0] not in KNOWN

    def test_their_loop(self):
        y, model = Y.copy(), SklearnRegressor(LinearRegression())
        for _ in range(10):
            (index,) = QuerierStrategy().query(X, y)
            assert np.isnan(y[index])
            y[index] = np.sin(X[index, 0])
            model.fit(X, y)
        assert np.isnan(y).sum() == 26


STRATEGIES = {
    "GreedySamplingX": SkactivemlQuerier(GreedySamplingX()),
    "GreedySamplingTarget": SkactivemlQuerier(n_candidates=50),
    "kernel": SkactivemlQuerier(
        ExpectedModelVarianceReduction(), model=NICKernelRegressor(), n_candidates=8
    ),
    "divergence": SkactivemlQuerier(
        KLDivergenceMaximization(), model=NICKernelRegressor(), n_candidates=4
    ),
    "committee": SkactivemlQuerier(QueryByCommittee(), n_candidates=50),
    "list": SkactivemlQuerier(
        QueryByCommittee(), model=[LinearRegression(), DecisionTreeRegressor()], n_candidates=50
    ),
    "tree": SkactivemlQuerier(
        RegressionTreeBasedAL(), model=DecisionTreeRegressor(min_samples_leaf=2), n_candidates=50
    ),
    "RandomSampling": SkactivemlQuerier(RandomSampling()),
}


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
class TestSkactivemlQuerier:
    @pytest.mark.parametrize("name", STRATEGIES)
    def test_is_a_querier(self, name):
        querier = clone(STRATEGIES[name]).set_params(bounds=[(0, 6), (-5, 30)])
        querier.fit(X[KNOWN], Y[KNOWN])
        state = np.random.get_state()[1].copy()
        points = querier.query(n_queries=2)
        assert np.array_equal(points, querier.query(n_queries=2))
        assert np.array_equal(np.random.get_state()[1], state)
        for other in (pickle.loads(pickle.dumps(querier)), clone(querier).fit(X[KNOWN], Y[KNOWN])):
            assert np.array_equal(points, other.query(n_queries=2))
        assert ((points >= [0, -5]) & (points <= [6, 30])).all()
        assert (points[0] != points[1]).any()
        _, indices = querier.query(pool=X, n_queries=2, return_indices=True)
        assert len({*indices, *KNOWN}) == 6

    @pytest.mark.parametrize("name", ["GreedySamplingX", "GreedySamplingTarget", "committee"])
    def test_order_of_observations_and_rows(self, name):
        querier = clone(STRATEGIES[name]).set_params(bounds=[(0, 6), (-5, 30)])
        back = slice(None, None, -1)
        there = querier.query(X[KNOWN], Y[KNOWN], pool=X)
        assert np.array_equal(there, querier.query(X[KNOWN][back], Y[KNOWN][back], pool=X[back]))

    def test_greedy_sampling_by_hand(self):
        querier = SkactivemlQuerier(GreedySamplingX(), bounds=BOUNDS)
        (row,) = querier.query(X[KNOWN], Y[KNOWN], pool=X, return_indices=True)[1]
        unit = (X - X.min(axis=0)) / np.ptp(X, axis=0)
        away = np.linalg.norm(unit[:, None] - unit[KNOWN], axis=2).min(axis=1)
        assert row == away.argmax()

    def test_outputs_that_are_missing_are_left_out(self):
        querier = SkactivemlQuerier(GreedySamplingX(), bounds=BOUNDS)
        z = np.ones(4)
        y = np.array([0.1, np.nan, 0.3, 0.4])
        kept = [0, 2, 3]
        points = querier.query(X[KNOWN], y, z, pool=X[::2])
        assert np.array_equal(points, querier.query(X[KNOWN][kept], y[kept], z[kept], pool=X[::2]))

    def test_arguments_of_the_strategy(self):
        querier = SkactivemlQuerier(
            ExpectedModelVarianceReduction(),
            model=NICKernelRegressor(),
            query_params={"X_eval": [[0.1, 0.1]]},
            n_candidates=30,
            bounds=BOUNDS,
            random_state=0,
        )
        here = querier.query(X[KNOWN], Y[KNOWN], pool=X)
        querier.set_params(query_params={"X_eval": [[0.9, 0.9]]})
        assert (here != querier.query(X[KNOWN], Y[KNOWN], pool=X)).any()

    def test_wrong_strategies(self):
        for strategy in ("GreedySamplingX", UncertaintySampling()):
            with pytest.raises(ValueError, match="strategy"):
                SkactivemlQuerier(strategy).query([[0.5]], [0.1])
        with pytest.raises(ValueError, match="n_candidates"):
            SkactivemlQuerier(n_candidates=0).query([[0.5]], [0.1])

    def test_nothing_is_changed(self):
        strategy = GreedySamplingTarget()
        SkactivemlQuerier(strategy).query([[0.2], [0.5]], [0.1, 0.2])
        assert strategy.method is None
        assert not hasattr(strategy, "n_features_in_")

    def test_benchmark(self):
        records = run(SkactivemlQuerier(GreedySamplingX(), n_candidates=20), "branin", 0, 2, 2)
        assert records[-1].rmse > 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert len(run(STRATEGIES["GreedySamplingTarget"], "simionescu", 0, 2, 2)) == 2
