"""The loop of queries and experiments."""

import pickle
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_asal import (
    ActiveLearner,
    AmortizedQuerier,
    AmortizedSafeQuerier,
    BudgetExhaustedError,
    CandidatePool,
    PoolExhaustedError,
    RandomQuerier,
)

BOUNDS = [(0.0, 6.0), (-5.0, 30.0)]
X = np.array([[3.0, 10.0], [2.5, 12.0], [3.5, 8.0]])


def output(x):
    return np.sin(x[:, 0]) + 0.1 * x[:, 1]


def margin(x):
    return 3.0 - np.abs(x[:, 0] - 3.0)


def measure(x):
    return float(output(x)[0])


def measure_both(x):
    return measure(x), float(margin(x)[0])


class Memory(RegressorMixin, BaseEstimator):
    """Counts its fits in a list that clones share, and keeps what it was fitted to."""

    fits: ClassVar[list[int]] = []

    def fit(self, X, y):
        self.X_, self.y_ = X, y
        Memory.fits.append(len(y))
        return self

    def predict(self, X):
        return np.zeros(len(X))


@pytest.fixture(autouse=True)
def no_fits():
    Memory.fits.clear()


def learner(estimator=None, querier=RandomQuerier, refit="end", **params):
    querier = querier(**{"bounds": BOUNDS, "random_state": 0, **params})
    return ActiveLearner(Memory() if estimator is None else estimator, querier, refit=refit)


def safe_learner(**params):
    return learner(querier=AmortizedSafeQuerier, **params).fit(X, output(X), margin(X))


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(
    [
        ActiveLearner(Ridge(), AmortizedSafeQuerier()),
        ActiveLearner(GaussianProcessRegressor(), RandomQuerier()),
    ]
)
def test_every_check_passes(estimator, check):
    check(estimator)


@pytest.mark.parametrize("querier", [RandomQuerier, AmortizedQuerier])
def test_run_is_the_loop_of_query_and_tell(querier):
    run = learner(querier=querier).fit(X, output(X)).run(measure, 5)
    by_hand = querier(bounds=BOUNDS, random_state=0).fit(X, output(X))
    for _ in range(5):
        x = by_hand.query()
        by_hand.tell(x, measure(x))
    assert np.array_equal(run.querier_.X_, by_hand.X_)
    assert np.array_equal(run.querier_.y_, by_hand.y_)
    assert np.array_equal(run.estimator_.X_, by_hand.X_)
    assert np.array_equal(run.estimator_.y_, by_hand.y_)


def test_run_with_a_limit():
    run = safe_learner().run(measure_both, 3)
    assert run.querier_.n_told_ == 3
    assert np.array_equal(run.querier_.z_, margin(run.querier_.X_))


def test_neither_part_is_fitted_itself():
    estimator, querier = Memory(), RandomQuerier(bounds=BOUNDS)
    ActiveLearner(estimator, querier).fit(X, output(X)).run(measure, 2)
    assert not hasattr(estimator, "X_")
    assert not hasattr(querier, "X_")


def test_pool_and_index():
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [5.0, 20.0], [2.0, 2.0]])
    run = learner().fit(X, output(X)).run(measure, 4, pool=rows)
    assert sorted(run.querier_.index_[3:]) == [0, 1, 2, 3]
    assert np.array_equal(run.querier_.X_[3:], rows[run.querier_.index_[3:]])
    with pytest.raises(PoolExhaustedError):
        run.run(measure, 1, pool=CandidatePool(rows))


@pytest.mark.parametrize(
    ("refit", "sizes"),
    [("end", [8]), ("each", [4, 5, 6, 7, 8]), (2, [5, 7, 8]), (5, [8]), (9, [8])],
)
def test_when_the_estimator_is_fitted(refit, sizes):
    run = learner(refit=refit).fit(X, output(X))
    assert Memory.fits == [3]
    run.run(measure, 5)
    assert Memory.fits == [3, *sizes]


@pytest.mark.parametrize("refit", ["never", 0, 1.5, None])
def test_refit_is_checked(refit):
    with pytest.raises((ValueError, TypeError), match="refit"):
        learner(refit=refit).fit(X, output(X))


@pytest.mark.parametrize("error", [RuntimeError("the rig is cold"), KeyboardInterrupt()])
def test_goes_on_after_an_exception(error):
    def fragile(x):
        calls.append(x)
        if len(calls) == 3:
            raise error
        return measure(x)

    calls = []
    broken = learner(refit="end").fit(X, output(X))
    with pytest.raises(type(error)):
        broken.run(fragile, 5)
    assert broken.querier_.n_told_ == 2
    assert len(broken.estimator_.y_) == 5
    broken.run(fragile, 3)
    unbroken = learner().fit(X, output(X)).run(measure, 5)
    assert np.array_equal(broken.querier_.X_, unbroken.querier_.X_)
    assert np.array_equal(broken.estimator_.X_, unbroken.estimator_.X_)


def test_goes_on_after_pickling():
    once = learner().fit(X, output(X)).run(measure, 5)
    twice = pickle.loads(pickle.dumps(learner().fit(X, output(X)).run(measure, 2)))
    assert np.array_equal(twice.run(measure, 3).querier_.X_, once.querier_.X_)


def test_a_failing_fit_loses_nothing():
    class Picky(Memory):
        def fit(self, X, y):
            if len(y) == 5:
                raise ValueError("no fives")
            return super().fit(X, y)

    run = learner(Picky(), refit="each").fit(X, output(X))
    with pytest.raises(ValueError, match="no fives"):
        run.run(measure, 4)
    assert len(run.querier_.y_) == 5
    assert len(run.estimator_.y_) == 4
    run.run(measure, 1)
    assert len(run.estimator_.y_) == 6


def test_runs_that_were_cut_short_are_no_part_of_the_fit():
    outcomes = iter(
        [
            {"status": "aborted"},
            {"y": 1.0, "z": 2.0},
            {"status": "failed"},
            {"z": 2.5},
            {"y": np.nan, "z": 1.5},
            {"y": 3.0, "z": 0.5, "status": "ok"},
        ]
    )
    run = safe_learner().run(lambda x: next(outcomes), 6)
    status = ["ok"] * 3 + ["aborted", "ok", "failed", "ok", "ok", "ok"]
    assert run.querier_.status_.tolist() == status
    assert run.estimator_.y_.tolist() == [*output(X), 1.0, 3.0]
    assert np.array_equal(run.estimator_.X_, run.querier_.X_[[0, 1, 2, 4, 8]])


@settings(deadline=None, max_examples=25)
@given(st.lists(st.sampled_from(["number", "pair", "failed", "missing"]), min_size=1, max_size=6))
def test_all_outcomes_are_told_and_those_with_output_are_learned(kinds):
    forms = {
        "pair": lambda x: measure_both(x),
        "number": lambda x: {"y": measure(x), "z": 1.0},
        "failed": lambda x: {"status": "failed"},
        "missing": lambda x: {"z": 1.0},
    }
    left = iter(kinds)
    run = learner().fit(X, output(X), margin(X)).run(lambda x: forms[next(left)](x), len(kinds))
    known = [True] * 3 + [kind in ("number", "pair") for kind in kinds]
    assert len(run.querier_.X_) == len(known)
    assert np.array_equal(~np.isnan(run.querier_.y_), known)
    assert np.array_equal(run.estimator_.X_, run.querier_.X_[known])
    assert np.array_equal(run.estimator_.y_, output(run.querier_.X_[known]))


def test_what_was_measured_may_not_be_what_was_proposed():
    run = learner().fit(X, output(X)).run(lambda x: {"x": x + 0.5, "y": 1.0}, 1)
    proposed = learner().fit(X, output(X)).querier_.query()
    assert np.array_equal(run.querier_.X_[-1:], proposed + 0.5)


def test_an_experiment_cannot_move_its_point():
    def greedy(x):
        x[:] = 0.0
        return 1.0

    run = learner().fit(X, output(X)).run(greedy, 1)
    assert (run.querier_.X_[-1] != 0.0).all()


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (None, "returned None.*'status': 'failed'"),
        ((1.0, 2.0, 3.0), "tuple of 3 entries"),
        ({"Y": 1.0}, "'Y'; known are 'x', 'y', 'z', 'status'"),
        ({}, "y"),
        (np.nan, "NaN"),
        ("much", "y"),
        ((1.0, 2.0), "z was not given to fit"),
        ({"status": "late"}, "status must be"),
        ([1.0, 2.0], "returned a list.*the tuple"),
    ],
)
def test_what_else_an_experiment_may_return(outcome, message):
    outcomes = iter([1.0, outcome, 2.0])
    run = learner().fit(X, output(X))
    with pytest.raises(ValueError, match=message):
        run.run(lambda x: next(outcomes), 3)
    assert run.querier_.y_[3:].tolist() == [1.0]
    assert len(run.estimator_.y_) == 4
    run.run(lambda x: next(outcomes), 1)
    assert run.querier_.y_[3:].tolist() == [1.0, 2.0]


def test_the_error_says_what_was_returned():
    run = learner().fit(X, output(X))
    with pytest.raises(ValueError, match="z was not given") as caught:
        run.run(lambda x: (17.25, 2.0), 1)
    if hasattr(caught.value, "__notes__"):  # since Python 3.11
        assert "17.25" in caught.value.__notes__[0]


def test_callback_sees_each_experiment_and_may_stop():
    seen = []
    run = learner(refit="each").fit(X, output(X))

    def callback(given):
        seen.append((given is run, given.querier_.n_told_, len(given.estimator_.y_)))
        return len(seen) == 3

    run.run(measure, 10, callback=callback)
    assert seen == [(True, 1, 4), (True, 2, 5), (True, 3, 6)]
    assert run.querier_.n_told_ == 3
    assert Memory.fits == [3, 4, 5, 6]


def test_an_exception_of_the_callback_loses_nothing():
    run = learner().fit(X, output(X))
    with pytest.raises(ZeroDivisionError):
        run.run(measure, 5, callback=lambda learner: 1 / 0)
    assert len(run.estimator_.y_) == len(run.querier_.y_) == 4


def test_budget():
    run = learner(budget=4).fit(X, output(X)).run(measure, 3)
    with pytest.raises(BudgetExhaustedError, match=r"1 queries are left \(3 of budget=4"):
        run.run(measure, 2)
    assert run.querier_.n_told_ == 3
    run.querier_.set_params(budget=6)
    assert run.run(measure, 3).querier_.n_told_ == 6


@pytest.mark.parametrize("refit", ["end", "each", 2])
def test_runs_until_the_querier_is_finished(refit):
    run = learner(refit=refit, budget=5).fit(X, output(X)).run(measure)
    assert run.querier_.n_told_ == 5
    np.testing.assert_array_equal(run.estimator_.X_, run.querier_.X_)
    assert run.run(measure).querier_.n_told_ == 5  # it is finished already
    pool = np.array([[1.0, 0.0], [2.0, 5.0], [4.0, 20.0]])
    run = learner().fit(X, output(X)).run(measure, pool=pool)
    assert run.querier_.n_told_ == 3
    run = learner(querier=AmortizedQuerier, stop_when=100.0).fit(X, output(X))
    assert run.run(measure).querier_.n_told_ == 0


def test_the_error_at_a_row_of_a_table_says_what_was_returned():
    frame = pd.DataFrame(X, columns=["a", "b"])
    run = learner().fit(frame, output(X))
    with pytest.raises(ValueError, match="y"):
        run.run(lambda x: np.nan, 1)


@pytest.mark.parametrize("n_queries", [0, -1, 2.0, "3", None])
def test_number_of_queries(n_queries):
    run = learner().fit(X, output(X))
    with pytest.raises((ValueError, TypeError), match="n_queries"):
        run.run(measure, n_queries)


def test_experiment_is_callable():
    with pytest.raises(TypeError, match="experiment must be callable"):
        learner().fit(X, output(X)).run(3.0, 1)


def test_not_fitted():
    for call in (lambda one: one.run(measure, 1), lambda one: one.predict(X)):
        with pytest.raises(NotFittedError, match="from_fitted"):
            call(learner())
    assert not hasattr(learner(), "n_features_in_")


def test_from_fitted_goes_on_with_the_querier():
    querier = RandomQuerier(bounds=BOUNDS, random_state=0).fit(X, output(X))
    x = querier.query()
    querier.tell(x, measure(x))
    run = ActiveLearner.from_fitted(Memory(), querier, refit="each")
    assert len(run.estimator_.y_) == 4
    run.run(measure, 4)
    assert run.querier_ is querier
    assert run.refit == "each"
    other = learner().fit(X, output(X)).run(measure, 5)
    assert np.array_equal(querier.X_, other.querier_.X_)
    with pytest.raises(NotFittedError, match="has no data"):
        ActiveLearner.from_fitted(Memory(), RandomQuerier())


def test_what_the_querier_is_told_beside_the_loop_is_learned_too():
    run = learner().fit(X, output(X))
    run.querier_.tell([1.0, 1.0], 0.5)
    run.run(measure, 1)
    assert len(run.estimator_.y_) == 5


def test_fit_starts_again_and_a_bad_one_changes_nothing():
    run = learner().fit(X, output(X)).run(measure, 2)
    with pytest.raises(ValueError, match="y has 2 entries"):
        run.fit(X, [1.0, 2.0])
    assert len(run.querier_.X_) == len(run.estimator_.y_) == 5
    assert len(run.fit(X, output(X)).querier_.X_) == 3


def test_parameters_of_both_parts():
    nested = ActiveLearner(Ridge(), AmortizedSafeQuerier())
    nested.set_params(querier__gamma=0.1, estimator__alpha=3.0, refit=4)
    copy = clone(nested)
    assert copy.querier.gamma == 0.1
    assert copy.estimator.alpha == 3.0
    assert copy.refit == 4
    assert copy.get_params()["querier__safe_when"] == "above"


def test_grid_search_and_pipeline_inside():
    model = make_pipeline(StandardScaler(), KNeighborsRegressor())
    grid = {"kneighborsregressor__n_neighbors": [1, 2]}
    points = np.random.default_rng(0).uniform(*np.transpose(BOUNDS), (12, 2))
    run = learner(GridSearchCV(model, grid, cv=3)).fit(points, output(points)).run(measure, 4)
    assert run.estimator_.best_params_["kneighborsregressor__n_neighbors"] in (1, 2)
    assert run.score(points, output(points)) == run.estimator_.score(points, output(points))


def test_grid_search_outside():
    points = np.random.default_rng(0).uniform(*np.transpose(BOUNDS), (12, 2))
    grid = {"estimator__alpha": [0.0, 1e6], "querier__gamma": [0.01, 0.1]}
    search = GridSearchCV(learner(Ridge(), AmortizedSafeQuerier), grid, cv=3)
    search.fit(points, points[:, 0], z=margin(points))
    assert search.best_params_["estimator__alpha"] == 0.0
    assert len(search.best_estimator_.querier_.z_) == 12
    assert (cross_val_score(learner(LinearRegression()), points, points[:, 1]) > 0.99).all()


def test_methods_are_those_of_the_estimator():
    assert is_regressor(learner(Ridge()))
    assert not hasattr(learner(Ridge()), "predict_proba")
    assert not hasattr(learner(Ridge()), "classes_")
    model = GaussianProcessRegressor()
    run = learner(model).fit(X, output(X))
    mean, std = run.predict(X, return_std=True)
    assert np.array_equal(std, clone(model).fit(X, output(X)).predict(X, return_std=True)[1])
    assert np.array_equal(mean, run.predict(X))


def test_classifier():
    labels = [0, 1, 0]
    run = learner(LogisticRegression()).fit(X, labels)
    assert is_classifier(run)
    assert run.classes_.tolist() == [0, 1]
    reference = LogisticRegression().fit(X, labels)
    for name in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        assert np.array_equal(getattr(run, name)(X), getattr(reference, name)(X))
    assert run.score(X, labels, sample_weight=[1, 2, 3]) == reference.score(X, labels, [1, 2, 3])


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame])
@pytest.mark.filterwarnings("error:X does not have valid feature names")
@pytest.mark.filterwarnings("error:X has feature names")
def test_names_of_features(table):
    named = table({"speed": X[:, 0], "load": X[:, 1]})
    asked = []

    def experiment(x):
        asked.append(x)
        return measure(np.asarray(x))

    run = learner(Ridge()).fit(named, output(X)).run(experiment, 2)
    assert all(isinstance(x, table) and list(x.columns) == ["speed", "load"] for x in asked)
    assert run.feature_names_in_.tolist() == ["speed", "load"]
    assert run.estimator_.feature_names_in_.tolist() == ["speed", "load"]
    assert run.n_features_in_ == 2
    assert len(run.predict(named)) == 3
    with pytest.raises(ValueError, match="feature names"):
        run.predict(table({"load": X[:, 1], "speed": X[:, 0]}))
    assert not hasattr(run.fit(X, output(X)), "feature_names_in_")


def test_progress_bar(capsys):
    learner().fit(X, output(X)).run(measure, 7, progress_bar=True)
    assert "7/7" in capsys.readouterr().err
    learner().fit(X, output(X)).run(measure, 7)
    assert capsys.readouterr() == ("", "")
