"""Displays of arrays, of tables and of logs show the same campaign."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sklearn_asal import AmortizedSafeQuerier, CampaignLog, RandomQuerier
from sklearn_asal.displays import CampaignDisplay, ProgressDisplay, SafetyDisplay
from sklearn_asal.displays.campaign_data import campaign_of
from sklearn_asal.log.table import table

from .conftest import labels, margin, marked, output

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
BOUNDS = {"speed": (0.0, 1.0), "load": (0.0, 1.0)}


@pytest.fixture
def logged(tmp_path):
    """A campaign that goes on, and its log."""
    path = tmp_path / "campaign.jsonl"
    querier = AmortizedSafeQuerier(bounds=BOUNDS, log=path, y_scale=1.5)
    X = np.random.default_rng(0).uniform(0.3, 0.5, (5, 2))
    querier.fit(X, output(X), margin(X))
    for i in range(6):
        x, _ = querier.query(return_report=True)
        if i == 2:
            querier.tell(x, status="aborted")
        else:
            querier.tell(x, output(x), margin(x))
    querier.tell([0.35, 0.4], 99.0, 0.7).forget(-1)
    yield querier, path
    querier.close_log()


def test_a_log_that_is_being_written(logged):
    querier, path = logged
    with path.open("ab") as file:
        file.write(b'{"event": "tell", "time": "20')
    before = path.read_bytes()
    display = CampaignDisplay.from_campaign(path, x_next="query", y_name="torque", n_grid=9)
    assert display.ax_.get_xlabel() == "speed"
    for name, mask in display.data.groups():
        label = {"initial": "initial points", "query": "queries, by number"}.get(name, name)
        np.testing.assert_array_equal(marked(display.ax_, label), querier.X_[mask])
    assert display.data.n_init == 5
    safety = SafetyDisplay.from_campaign(str(path), z_name="heat")
    assert "predicted when proposed, ± 2 std" in labels(safety.axes_[0])
    progress = ProgressDisplay.from_campaign(CampaignLog(path), every=4)
    assert progress.n_observed.tolist() == [5, 9, 11]
    assert path.read_bytes() == before
    assert querier._open_log.is_open


def test_what_was_predicted_when_it_was_proposed(logged):
    querier, path = logged
    found = campaign_of(path)
    display = SafetyDisplay.from_campaign(path)
    mean, std = display.proposed[:, :, 0]
    assert np.isnan(mean[:5]).all()
    for i, report in enumerate(found.reports):
        assert mean[5 + i] == report.z_mean[0]
        assert std[5 + i] == report.z_std[0]
    # What was expected then knows nothing of what came later.
    first = AmortizedSafeQuerier(bounds=BOUNDS, y_scale=1.5)
    first.fit(querier.X_[:5], querier.y_[:5], querier.z_[:5])
    expected = first.assess(querier.X_[5])
    np.testing.assert_allclose(mean[5], expected.z_mean, rtol=1e-6)
    shifted = SafetyDisplay.from_campaign(path, n_init=7)
    np.testing.assert_array_equal(shifted.proposed[0, 7:], display.proposed[0, 7:])


def test_displays_do_not_write_to_the_log_of_a_querier(logged):
    querier, path = logged
    before = path.read_bytes()
    CampaignDisplay.from_querier(querier, n_grid=5)
    SafetyDisplay.from_querier(querier)
    ProgressDisplay.from_querier(querier, every=9)
    assert path.read_bytes() == before
    assert querier.log == path


@pytest.mark.parametrize("library", [pd, pl])
def test_the_table_of_the_command_log(logged, library):
    querier, path = logged
    header, lines = table(CampaignLog(path).read())
    columns = {name: [line[j] for line in lines] for j, name in enumerate(header)}
    frame = library.DataFrame(columns)
    found = campaign_of(frame, querier_params={"bounds": BOUNDS, "y_scale": 1.5})
    assert found.names["n_init"] == 5
    np.testing.assert_array_equal(found.querier.X_, querier.X_)
    np.testing.assert_array_equal(found.querier.y_, querier.y_)
    np.testing.assert_array_equal(found.querier.z_, querier.z_)
    np.testing.assert_array_equal(found.querier.status_, querier.status_)
    np.testing.assert_allclose(found.querier.query(), querier.query())
    display = CampaignDisplay.from_campaign(frame, querier_params={"bounds": BOUNDS}, n_grid=5)
    assert display.ax_.get_xlabel() == "speed"
    assert len(marked(display.ax_, "initial points")) == 5


def test_a_table_with_names_and_predictions():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(0.3, 0.6, (9, 2)), columns=["speed", "load"])
    frame["torque"] = output(frame.to_numpy())
    frame["heat"] = 800 + 100 * rng.random(9)
    frame["z_mean"], frame["z_std"], frame["y_mean"], frame["y_std"] = 850.0, 20.0, 1.0, 0.2
    frame.loc[4, ["z_mean", "z_std", "y_mean", "y_std"]] = np.nan
    params = {"safety_threshold": 880.0, "safe_when": "below"}
    display = SafetyDisplay.from_campaign(
        frame, querier_params=params, y_name="torque", z_name="heat", units={"heat": "°C"}, n_init=2
    )
    assert display.axes_[0].get_ylabel() == "heat (°C)"
    mean = display.proposed[0, :, 0]
    np.testing.assert_array_equal(mean, [np.nan] * 2 + [850.0] * 2 + [np.nan] + [850.0] * 4)
    progress = ProgressDisplay.from_campaign(
        frame, querier_params=params, y_name="torque", z_name="heat", every=5
    )
    assert progress.y_name == "torque"
    drawn = CampaignDisplay.from_campaign(
        frame, querier_params=params, y_name="torque", z_name="heat", n_grid=5
    )
    assert len(marked(drawn.ax_, "unsafe")) == (frame["heat"] > 880).sum()


def test_several_limits_of_a_table():
    X = np.random.default_rng(0).uniform(0.3, 0.6, (7, 2))
    frame = pl.DataFrame(
        {"a": X[:, 0], "b": X[:, 1], "y": output(X), "z[0]": margin(X), "z[1]": X[:, 0]}
    )
    found = campaign_of(frame)
    assert found.querier.z_.shape == (7, 2)
    assert CampaignDisplay.from_campaign(frame, n_grid=5).data.z_names == ["z[0]", "z[1]"]


def test_a_first_row_without_output():
    frame = pd.DataFrame({"x": [0.1, 0.2, 0.3], "y": [np.nan, 1.0, 2.0], "z": [np.nan, 0.5, 0.6]})
    frame["status"] = ["aborted", "ok", "ok"]
    querier = campaign_of(frame).querier
    assert querier.X_[:, 0].tolist() == [0.2, 0.1, 0.3]
    assert querier.status_.tolist() == ["ok", "aborted", "ok"]


def test_kinds_of_nothing_and_whole_numbers_of_pandas():
    frame = pd.DataFrame({"x": [1, 2, 3], "y": [1.0, None, 2.0], "z": [0.5, 0.4, 0.3]})
    querier = campaign_of(frame.convert_dtypes()).querier
    assert querier.X_[:, 0].tolist() == [1, 2, 3]
    np.testing.assert_array_equal(querier.y_, [1.0, np.nan, 2.0])
    with pytest.raises(ValueError, match="column 'day' does not hold numbers"):
        campaign_of(frame.assign(day=pd.Timestamp("2026-01-01")))


def test_one_point_far_outside_does_not_squeeze_the_others():
    X = np.random.default_rng(0).random((8, 2))
    X[3] = 900.0, 0.5
    querier = RandomQuerier(bounds=[(0.0, 1.0), (0.0, 1.0)]).fit(X, output(X))
    display = CampaignDisplay.from_querier(querier)
    np.testing.assert_allclose(display.ax_.get_xlim(), [-0.025, 1.025])
    label = "outside the bounds (at the edge)"
    np.testing.assert_allclose(marked(display.ax_, label), [[1.025, 0.5]])
    curve = CampaignDisplay.from_querier(querier, features=[0])
    np.testing.assert_allclose(marked(curve.axes_[0], label), [[1.025, querier.y_[3]]])
    parallel = CampaignDisplay.from_querier(querier, kind="parallel")
    np.testing.assert_allclose(marked(parallel.ax_, label), [[0, 1.02]])
    assert all(np.max(line.get_ydata()) < 1.1 for line in parallel.ax_.lines)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: campaign_of([[1.0, 2.0]]), TypeError, "y is missing: pass X, y"),
        (lambda: campaign_of([[1.0]], z=[1.0]), ValueError, "z was passed without y"),
        (lambda: campaign_of("no-such.jsonl"), FileNotFoundError, "no-such"),
        (lambda: campaign_of(pd.DataFrame({"x": [1.0]})), ValueError, "has no column 'y'"),
        (lambda: campaign_of(pd.DataFrame({"y": [1.0]})), ValueError, "has no inputs"),
        (
            lambda: campaign_of(pd.DataFrame({"x": [1.0, 2.0], "who": ["A", "B"], "y": [1.0, 2]})),
            ValueError,
            "column 'who' does not hold numbers",
        ),
        (
            lambda: campaign_of(pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2], "status": "bad"})),
            ValueError,
            "column 'status' must hold",
        ),
        (
            lambda: campaign_of(pd.DataFrame({"x": [1.0, 2.0], "y": [np.nan, np.nan]})),
            ValueError,
            "has no output",
        ),
    ],
)
def test_bad_data(call, error, message):
    with pytest.raises(error, match=message):
        call()
