"""ProgressDisplay: expected errors, by a replay that is done by hand."""

import pickle

import numpy as np
import pytest
from scipy.optimize import LinearConstraint
from sklearn.base import clone

from sklearn_asal import AmortizedQuerier, GPSafeQuerier, RandomQuerier
from sklearn_asal.displays import ProgressDisplay
from sklearn_asal.pool import sobol

from .conftest import labels, output

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def drawn(display, label):
    (line,) = [line for line in display.ax_.lines if line.get_label() == label]
    return line.get_xydata()


def test_from_values():
    display = ProgressDisplay.from_values(
        [5, 10, 20], [0.9, 0.4, 0.2], 0.1, [1.0, 0.5, 0.15], y_name="torque", y_unit="Nm"
    )
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == (
        "observations",
        "RMSE of torque (Nm)",
    )
    np.testing.assert_array_equal(drawn(display, "expected"), [[5, 0.9], [10, 0.4], [20, 0.2]])
    np.testing.assert_array_equal(drawn(display, "on test data")[:, 1], [1.0, 0.5, 0.15])
    assert set(drawn(display, "noise")[:, 1]) == {0.1}
    assert display.ax_.get_ylim()[0] == 0
    assert display.plot(log=True).ax_.get_yscale() == "log"
    assert labels(ProgressDisplay.from_values([1], [1.0]).ax_) == {"expected"}


def test_replay(campaign):
    querier = campaign(n_queries=6)
    before = pickle.dumps(querier)
    X_test = np.random.default_rng(1).uniform(0.3, 0.5, (50, 2))
    display = ProgressDisplay.from_querier(
        querier, n_points=64, X_test=X_test, y_test=output(X_test), units={"y": "V"}
    )
    assert pickle.dumps(querier) == before
    assert display.ax_.get_ylabel() == "RMSE of y (V)"
    points = sobol(64, 2)
    points = points[querier.assess(points).p_safe >= 0.16]
    assert 0 < len(points) < 64
    found = drawn(display, "expected")
    np.testing.assert_array_equal(found[:, 0], np.arange(5, 12))
    # After five and six observations there are no aborted or failed ones.
    for n, expected, true in zip(
        (5, 6), found[:, 1], drawn(display, "on test data")[:, 1], strict=False
    ):
        then = clone(querier).fit(querier.X_[:n], querier.y_[:n], querier.z_[:n])
        variance = then.assess(points).y_std ** 2
        assert expected == pytest.approx(np.sqrt(variance.mean()), rel=1e-4)
        error = then.assess(X_test).y_mean - output(X_test)
        assert true == pytest.approx(np.sqrt((error**2).mean()), rel=1e-3, abs=1e-4)
    # In the end it is the querier itself.
    last = querier.assess(points).y_std ** 2
    assert found[-1, 1] == pytest.approx(np.sqrt(last.mean()), rel=1e-4)


def test_every(campaign):
    display = ProgressDisplay.from_querier(campaign(n_queries=7), every=3, n_points=16)
    assert drawn(display, "expected")[:, 0].tolist() == [5, 8, 11, 12]
    display = ProgressDisplay.from_querier(campaign(n_queries=7), n_init=9, n_points=16)
    assert drawn(display, "expected")[:, 0].tolist() == [9, 10, 11, 12]


@pytest.mark.parametrize("querier", [GPSafeQuerier(), GPSafeQuerier("ensemble")])
def test_other_models(campaign, querier):
    display = ProgressDisplay.from_querier(campaign(querier=querier), every=4, n_points=16)
    assert (drawn(display, "expected")[:, 1] > 0).all()


def test_without_limits_all_points_count_and_constraints_hold():
    rng = np.random.default_rng(0)
    X = rng.dirichlet([2, 2, 2], 12)
    querier = AmortizedQuerier(constraints=LinearConstraint(np.ones(3), 1.0, 1.0))
    querier.fit(X[:6], output(X[:6])).tell(X[6:], output(X[6:]))
    display = ProgressDisplay.from_querier(querier)
    # Of 512 points on the simplex, by another sample of it; the former varies by some 5 %.
    inside = rng.dirichlet([1, 1, 1], 4000)
    expected = np.sqrt(np.mean(querier.assess(inside).y_std ** 2))
    assert drawn(display, "expected")[-1, 1] == pytest.approx(expected, rel=0.2)


def test_from_campaign():
    X = np.random.default_rng(0).random((8, 2))
    display = ProgressDisplay.from_campaign(X, output(X), n_init=3, n_points=16)
    assert drawn(display, "expected")[:, 0].tolist() == [3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda q: ProgressDisplay.from_values([1, 2], [1.0]), ValueError, "expected_rmse must"),
        (lambda q: ProgressDisplay.from_values([1], [np.nan]), ValueError, "expected_rmse"),
        (lambda q: ProgressDisplay.from_querier(q, every=0), ValueError, "every"),
        (lambda q: ProgressDisplay.from_querier(q, n_points=0), ValueError, "n_points"),
        (lambda q: ProgressDisplay.from_querier(q, X_test=q.X_), ValueError, "belong together"),
        (
            lambda q: ProgressDisplay.from_querier(q, X_test=q.X_, y_test=[1.0]),
            ValueError,
            "y_test must have one number for each of the 13 rows",
        ),
        (
            lambda q: ProgressDisplay.from_querier(RandomQuerier().fit(q.X_[:3], q.y_[:3])),
            TypeError,
            "RandomQuerier has none",
        ),
    ],
)
def test_bad_arguments(campaign, call, error, message):
    with pytest.raises(error, match=message):
        call(campaign())
