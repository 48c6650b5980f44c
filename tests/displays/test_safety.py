"""SafetyDisplay: runs, predictions, violations, guards, and calibration."""

import numpy as np
import pytest
from scipy.stats import t as student

from sklearn_asal import AmortizedQuerier, AmortizedSafeQuerier
from sklearn_asal.displays import SafetyDisplay

from .conftest import labels, margin, marked, output

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def test_runs(campaign):
    querier = campaign(n_queries=12)
    display = SafetyDisplay.from_querier(querier, z_name="margin", units={"margin": "mm"})
    (ax,) = display.axes_
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("number of the run (from 0)", "margin (mm)")
    assert display.figure_ is ax.figure
    z, run, ok = querier.z_, np.arange(17), querier.status_ == "ok"
    groups = {
        "initial points": ok & (z >= 0) & (run < 5),
        "queries": ok & (z >= 0) & (run >= 5),
        "unsafe": ok & (z < 0),
    }
    for name, mask in groups.items():
        np.testing.assert_array_equal(marked(ax, name), np.column_stack([run, z])[mask])
    # Without a number: at the unsafe edge, and a failed run at the other one.
    np.testing.assert_array_equal(marked(ax, "aborted"), [[6, 0.04]])
    np.testing.assert_array_equal(marked(ax, "failed"), [[7, 0.96]])
    (limit,) = [line for line in ax.lines if line.get_label() == "limit"]
    assert set(limit.get_ydata()) == {0.0}
    (shade,) = [one for one in ax.patches if one.get_label() == "unsafe side"]
    assert shade.get_y() + shade.get_height() == pytest.approx(0.0)
    assert ax.get_ylim()[0] == pytest.approx(shade.get_y())
    assert all(float(tick).is_integer() for tick in ax.get_xticks())


def test_predictions_are_the_leave_one_out_ones(campaign):
    querier = campaign(n_queries=12)
    display = SafetyDisplay.from_querier(querier)
    (bars,) = display.axes_[0].containers
    line, _, (ranges,) = bars
    calibration, kept = querier.calibration(), querier.status_ != "failed"
    np.testing.assert_array_equal(line.get_xdata(), np.arange(17)[kept])
    np.testing.assert_array_equal(line.get_ydata(), calibration.z_mean)
    lengths = [np.ptp(segment[:, 1]) for segment in ranges.get_segments()]
    np.testing.assert_allclose(lengths, 4 * calibration.z_std)


def test_calibration(campaign):
    querier = campaign(n_queries=12)
    display = SafetyDisplay.from_querier(querier)
    (ax,) = display.calibration_axes_
    found = querier.calibration()
    measured = (querier.status_ == "ok")[querier.status_ != "failed"]
    quantiles = np.sort(student.cdf(-found.scores[measured, 0], found.dof[0]))
    steps = ax.lines[-1].get_xydata()
    np.testing.assert_allclose(steps[1:-1, 0], quantiles, rtol=1e-9)
    np.testing.assert_allclose(steps[1:-1, 1], np.arange(1, 16) / 15)
    assert len(SafetyDisplay.from_querier(querier, calibration=False).calibration_axes_) == 0


def test_predictions_too_safe_are_named(campaign, monkeypatch):
    monkeypatch.setattr("sklearn_asal.queriers.guard.is_believable", lambda limits: False)
    (ax,) = SafetyDisplay.from_querier(campaign()).calibration_axes_
    assert ax.get_title() == "predicted too safe"


@pytest.mark.parametrize("limit", [None, 1])
def test_several_limits(campaign, limit):
    querier = campaign(limits=2, safety_threshold=[0.0, 6.0], safe_when=["above", "below"])
    display = SafetyDisplay.from_querier(querier, limit=limit, z_name=["gap", "heat"])
    wanted = ["gap", "heat"] if limit is None else ["heat"]
    assert [ax.get_ylabel() for ax in display.axes_] == wanted
    heat = display.axes_[-1]
    (line,) = [line for line in heat.lines if line.get_label() == "limit"]
    assert set(line.get_ydata()) == {6.0}
    (shade,) = [one for one in heat.patches if one.get_label() == "unsafe side"]
    assert shade.get_y() == pytest.approx(6.0)
    np.testing.assert_array_equal(marked(heat, "aborted"), [[6, 0.96]])


def steep(X):
    return 5 * margin(X) - 4


def test_what_a_guard_did():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.3, 0.5, (6, 2))
    # A policy that takes margins for far larger than they are is pulled back.
    querier = AmortizedSafeQuerier("2d", guard=True, z_scale=0.02)
    querier.fit(X, output(X), steep(X))
    reports = []
    for _ in range(12):
        x, report = querier.query(return_report=True)
        reports.append(report)
        querier.tell(x, output(x), steep(x))
    x = rng.uniform(0.3, 0.5, (1, 2))
    querier.tell(x, output(x), steep(x))  # somebody's own
    reports.append(None)
    for n_queries in (1, 2):
        x, report = querier.query(n_queries=n_queries, return_report=True)
        reports.append(report)
        querier.tell(x, output(x), steep(x))
    (ax,) = SafetyDisplay.from_querier(querier, reports=reports).axes_
    actions = [action for report in reports for action in (report.guard if report else [None])]
    expected = {
        enough: [
            6 + i
            for i, action in enumerate(actions)
            if action is not None and not action.passed and action.is_safe_enough == enough
        ]
        for enough in (True, False)
    }
    assert expected[True]
    assert expected[False]
    names = {True: "pulled back by the guard", False: "guard found nothing safe enough"}
    for enough, name in names.items():
        found = [line.get_xdata()[0] for line in ax.lines if line.get_label() == name]
        assert found == expected[enough]


def test_an_output_with_a_limit():
    X = np.random.default_rng(0).uniform(0.2, 0.6, (6, 2))
    querier = AmortizedSafeQuerier(safety_threshold=0.5).fit(X, output(X))
    display = SafetyDisplay.from_querier(querier, y_name="power", units={"power": "W"})
    assert display.axes_[0].get_ylabel() == "power (W)"


def test_booleans():
    X = np.random.default_rng(0).uniform(0.2, 0.6, (6, 2))
    z = np.array([True, True, False, True, True, True])
    (ax,) = SafetyDisplay.from_querier(AmortizedSafeQuerier().fit(X, output(X), z)).axes_
    np.testing.assert_array_equal(marked(ax, "unsafe"), [[2, 0]])
    assert set(ax.lines[0].get_ydata()) == {0.5}


@pytest.mark.parametrize("n", [1, 3])
def test_too_few_to_leave_one_out(n):
    X, y, z = np.full((n, 2), 0.5), np.full(n, 0.1), np.full(n, 1.0)
    display = SafetyDisplay.from_querier(AmortizedSafeQuerier().fit(X, y, z))
    assert display.calibration is None
    assert len(marked(display.axes_[0], "initial points")) == n


def test_every_safe_querier_has_one(make_safe):
    X = np.random.default_rng(0).uniform(0.4, 0.6, (6, 2))
    querier = make_safe(random_state=0).fit(X, output(X), margin(X))
    display = SafetyDisplay.from_querier(querier)
    assert (display.calibration is not None) == hasattr(querier, "calibration")


def test_from_campaign():
    rng = np.random.default_rng(0)
    X, y, z = rng.random((9, 2)), rng.random(9), rng.random(9)
    display = SafetyDisplay.from_campaign(
        X, y, z, querier_params={"safety_threshold": 0.8, "safe_when": "below"}, n_init=2
    )
    (ax,) = display.axes_
    assert len(marked(ax, "unsafe")) == (z > 0.8).sum()
    assert len(marked(ax, "initial points")) == (z[:2] <= 0.8).sum()
    assert "limit" in labels(ax)


def test_bad_arguments(campaign):
    querier = campaign()
    with pytest.raises(ValueError, match="limit must be from 0 to 0, got 1"):
        SafetyDisplay.from_querier(querier, limit=1)
    with pytest.raises(TypeError, match="limit"):
        SafetyDisplay.from_querier(querier, limit="z")
    without = AmortizedQuerier().fit(querier.X_[:3], querier.y_[:3])
    with pytest.raises(ValueError, match="needs a querier with limits, which AmortizedQuerier has"):
        SafetyDisplay.from_querier(without)
