"""ProgressDisplay: expected errors, by a replay that is done by hand."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_asal import AmortizedQuerier, GPSafeQuerier, RandomQuerier
from sklearn_asal.displays import ProgressDisplay

from .conftest import labels, margin, output

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def drawn(display, label):
    (line,) = [line for line in display.ax_.lines if line.get_label() == label]
    return line.get_xydata()


def test_from_values():
    display = ProgressDisplay.from_values(
        [5, 10, 20],
        [0.9, 0.4, 0.2],
        0.1,
        [1.0, 0.5, 0.15],
        rmse_upper=[1.2, 0.6, 0.25],
        stop_when=0.3,
        y_name="torque",
        y_unit="Nm",
    )
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == (
        "observations",
        "error (RMSE) of torque (Nm)",
    )
    expected = [[5, 0.9], [10, 0.4], [20, 0.2]]
    np.testing.assert_array_equal(drawn(display, "expected error"), expected)
    np.testing.assert_array_equal(drawn(display, "on test data")[:, 1], [1.0, 0.5, 0.15])
    assert set(drawn(display, "noise")[:, 1]) == {0.1}
    assert set(drawn(display, "enough (stop_when)")[:, 1]) == {0.3}
    (band,) = [one for one in display.ax_.collections if one.get_label() == "larger in 15 %"]
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0.2, 1.2)
    assert display.ax_.get_ylim()[0] == 0
    assert display.plot(log=True).ax_.get_yscale() == "log"
    assert labels(ProgressDisplay.from_values([1], [1.0]).ax_) == {"expected error"}


def test_observations_are_whole_numbers():
    ax = ProgressDisplay.from_values([5, 6, 7], [0.8, 0.4, 0.2]).ax_
    assert all(float(tick).is_integer() for tick in ax.get_xticks())


def test_replay(campaign):
    querier = campaign(n_queries=6, stop_when=0.7)
    before = pickle.dumps(querier)
    X_test = np.random.default_rng(1).uniform(0.3, 0.5, (50, 2))
    display = ProgressDisplay.from_querier(
        querier, X_test=X_test, y_test=output(X_test), units={"y": "V"}
    )
    assert pickle.dumps(querier) == before
    assert display.ax_.get_ylabel() == "error (RMSE) of y (V)"
    found = drawn(display, "expected error")
    np.testing.assert_array_equal(found[:, 0], np.arange(5, 12))
    # After five and six observations there are no aborted or failed ones.
    for n, expected, true in zip(
        (5, 6), found[:, 1], drawn(display, "on test data")[:, 1], strict=False
    ):
        then = clone(querier).fit(querier.X_[:n], querier.y_[:n], querier.z_[:n])
        assert expected == pytest.approx(then.progress().rmse, rel=1e-4)
        error = then.assess(X_test).y_mean - output(X_test)
        assert true == pytest.approx(np.sqrt((error**2).mean()), rel=1e-3, abs=1e-4)
    # In the end it is the querier itself.
    last = querier.progress()
    assert found[-1, 1] == pytest.approx(last.rmse, rel=1e-4)
    assert display.rmse_upper[-1] == pytest.approx(last.rmse_upper, rel=1e-4)
    np.testing.assert_allclose(drawn(display, "noise")[:, 1], last.noise_std, rtol=1e-4)
    assert set(drawn(display, "enough (stop_when)")[:, 1]) == {0.7}


def test_every(campaign):
    display = ProgressDisplay.from_querier(campaign(n_queries=7), every=3)
    assert drawn(display, "expected error")[:, 0].tolist() == [5, 8, 11, 12]
    display = ProgressDisplay.from_querier(campaign(n_queries=7), n_init=9)
    assert drawn(display, "expected error")[:, 0].tolist() == [9, 10, 11, 12]


@pytest.mark.parametrize("querier", [GPSafeQuerier("ensemble"), RandomQuerier()])
def test_any_querier(campaign, querier):
    if isinstance(querier, RandomQuerier):
        X = np.random.default_rng(0).random((9, 2))
        querier = querier.fit(X[:4], output(X[:4])).tell(X[4:], output(X[4:]))
    else:
        querier = campaign(querier=querier)
    display = ProgressDisplay.from_querier(querier, every=4)
    assert (drawn(display, "expected error")[:, 1] > 0).all()


def test_a_pool(campaign):
    querier, pool = campaign(n_queries=4), np.random.default_rng(2).uniform(0.3, 0.5, (30, 2))
    display = ProgressDisplay.from_querier(querier, every=9, pool=pool)
    expected = querier.progress(pool=pool).rmse
    assert drawn(display, "expected error")[-1, 1] == pytest.approx(expected, rel=1e-4)


def test_from_campaign():
    X = np.random.default_rng(0).random((8, 2))
    display = ProgressDisplay.from_campaign(X, output(X), n_init=3)
    assert drawn(display, "expected error")[:, 0].tolist() == [3, 4, 5, 6, 7, 8]
    # After one observation the scale of the output is unknown.
    display = ProgressDisplay.from_campaign(X, output(X))
    assert drawn(display, "expected error")[:, 0].tolist() == [2, 3, 4, 5, 6, 7, 8]


def test_noise_that_is_known(campaign):
    display = ProgressDisplay.from_querier(campaign(), every=9, noise_std=0.25)
    assert set(drawn(display, "noise")[:, 1]) == {0.25}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda q: ProgressDisplay.from_values([1, 2], [1.0]), ValueError, "expected_rmse must"),
        (lambda q: ProgressDisplay.from_values([1], [np.nan]), ValueError, "expected_rmse"),
        (lambda q: ProgressDisplay.from_querier(q, every=0), ValueError, "every"),
        (lambda q: ProgressDisplay.from_querier(q, X_test=q.X_), ValueError, "belong together"),
        (
            lambda q: ProgressDisplay.from_querier(q, X_test=q.X_, y_test=[1.0]),
            ValueError,
            "y_test must have one number for each of the 13 rows",
        ),
        (
            lambda q: ProgressDisplay.from_querier(
                RandomQuerier().fit(q.X_[:3], q.y_[:3]), X_test=q.X_, y_test=margin(q.X_)
            ),
            TypeError,
            "RandomQuerier has none",
        ),
        (
            lambda q: ProgressDisplay.from_querier(AmortizedQuerier().fit([[0.1]], [1.0])),
            ValueError,
            "nothing can be said of the error yet",
        ),
    ],
)
def test_bad_arguments(campaign, call, error, message):
    with pytest.raises(error, match=message):
        call(campaign())
