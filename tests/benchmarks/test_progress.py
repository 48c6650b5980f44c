"""The figures about expected errors, on a small scale."""

import numpy as np
import pytest

from sklearn_asal.benchmarks import progress
from sklearn_asal.benchmarks.progress import drift_found, errors, main, stops, systems


@pytest.mark.parametrize("safe", [False, True])
def test_errors_are_those_of_the_system(safe):
    (system,) = systems(2, safe, "broad", 1, 6, 3)
    course = errors(system, 6, [3, 6], [3])
    assert list(course) == [3, 6]
    assert np.isfinite(course[3]).all()
    assert np.isnan(course[6][4])  # nothing is looked at so far ahead
    (again,) = systems(2, safe, "broad", 1, 6, 3)
    campaign = again.begin()
    for _ in range(6):
        campaign.step()
    found = campaign.querier.progress()
    assert course[6][:2] == pytest.approx([found.rmse, found.rmse_upper])
    report, truth = campaign.querier.assess(again.x), again.output(again.x)
    counts = report.p_safe >= 0.5 if safe else np.ones(len(truth), dtype=bool)
    expected = np.sqrt(np.mean(np.square(report.y_mean - truth)[counts]))
    assert course[6][2] == pytest.approx(expected)


def test_noise_and_drift_are_as_stated():
    (system,) = systems(2, False, "broad", 1, 20, 0)
    campaign = system.begin(drift=7.0, n=2000)
    X = np.zeros((2000, 2))
    left = campaign._measured(X)[1] - system.output(X)
    slope, _ = np.polyfit(np.arange(1, 2001) / 2000, left, 1)
    assert slope == pytest.approx(7.0, rel=0.01)
    assert np.std(left - slope * np.arange(1, 2001) / 2000) == pytest.approx(system.noise, rel=0.1)
    p_value, ratio = drift_found(system, 15, 5, 30.0)
    assert p_value < 0.05
    assert ratio > 2


def test_where_campaigns_end():
    # Expected error, upper quantile, true error.
    first = {1: [9, 9, 0.3], 2: [9, 0.2, 0.1], 3: [9, 0.1, 0.2], 4: [9, 0.1, 0.1]}
    second = {1: [9, 0.15, 0.4], 2: [9, 0.1, 0.3]}
    third = {1: [9, 9, 0.3], 2: [9, 9, 0.05]}
    reached, extra = stops([first, second, third], 0.15)
    np.testing.assert_allclose(reached, [0.2 / 0.15, 0.4 / 0.15])
    np.testing.assert_allclose(extra, [0.5, np.inf])


def test_command(capsys, monkeypatch):
    monkeypatch.setattr(progress, "drift_found", lambda *_: (0.01, 1.5))
    main("--features 1 --tasks 2 --few 1 --queries 2 4 --stop-when 0.5".split())
    printed = capsys.readouterr().out
    assert printed.count("1 inputs, with") == 2
    assert printed.count("drift of 3 noises found in 100.0% of 1 campaigns") == 2
    assert printed.count("queries    true") == 2
    with pytest.raises(SystemExit):
        main(["--stop-when", "-1"])
