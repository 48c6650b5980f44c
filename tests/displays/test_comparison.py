"""ComparisonDisplay: curves of several methods."""

import itertools
import math

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sklearn_asal.benchmarks.methods import METHODS, SUITES
from sklearn_asal.benchmarks.protocol import Record
from sklearn_asal.benchmarks.results import Results
from sklearn_asal.displays import ComparisonDisplay

NAN = math.nan


@pytest.fixture
def results(tmp_path):
    """Two tasks; numbers that can be averaged by hand."""
    results = Results(tmp_path)
    for seed, (rmse, share) in enumerate([(0.1, 1.0), (0.2, 0.5), (0.6, 1.0)]):
        results.records["simionescu", "asal", seed] = [
            Record(1, 1.0 + seed, 1.0, 0.0, 0.002),
            Record(2, rmse, share, 0.0, 0.004 if seed else 0.008),
        ]
    results.records["simionescu", "mine", 0] = [Record(1, NAN, 1, 0, 1), Record(2, 0.5, 1, 0, 1)]
    results.records["sinus", "gp", 0] = [Record(query, 0.25, NAN, NAN, 0.1) for query in (1, 2)]
    results.save()
    return results


def shown(results, task):
    figure = Figure(layout="constrained")
    return ComparisonDisplay.from_benchmark(results, task, ax=figure.subplots())


@pytest.mark.parametrize("kind", ["results", "folder"])
def test_panels(results, kind):
    display = shown(results if kind == "results" else results.folder, "simionescu")
    rmse, share, times = display.axes_
    assert (rmse.get_ylabel(), share.get_ylabel()) == ("RMSE", "share of safe queries")
    assert rmse.get_title() == "simionescu"
    assert times.get_xscale() == "log"
    ours, mine = rmse.lines
    assert (ours.get_label(), mine.get_label()) == ("ASAL", "mine")
    np.testing.assert_allclose(ours.get_xydata(), [[1, 2], [2, 0.3]])
    np.testing.assert_allclose(mine.get_xydata(), [[2, 0.5]])
    np.testing.assert_allclose(share.lines[0].get_xydata(), [[1, 1], [2, 2.5 / 3]])
    band = rmse.collections[0].get_datalim(rmse.transData).get_points()[:, 1]
    np.testing.assert_allclose(band, [0.3 - math.sqrt(0.07 / 3), 2 + 1 / math.sqrt(3)])
    # 2, 2, 2, 4, 4 and 8 ms.
    np.testing.assert_allclose([line.get_xdata()[0] for line in times.lines[1::2]], [3, 1000])
    assert [text.get_text() for text in times.get_yticklabels()] == ["ASAL", "mine"]
    # Without safety there is no panel for it.
    assert len(shown(results, "sinus").axes_) == 2


def test_campaigns_without_a_folder(results):
    campaigns = {"random": results.campaigns("simionescu")["mine"], "b": [[Record(1, 1, 1, 0, 1)]]}
    display = ComparisonDisplay.from_benchmark(campaigns, "rig", columns=["safe_share"])
    (ax,) = display.axes_
    # The names are the user's own, not those of the benchmark, and so is their order.
    assert [line.get_label() for line in ax.lines[:2]] == ["random", "b"]
    assert ax.get_title() == "rig"
    assert len({line.get_color() for line in ax.lines[:2]}) == 2


def test_methods_that_are_chosen_keep_their_style(results):
    results.records["simionescu", "safe-gp", 0] = [Record(1, 0.5, 1, 0, 1)]
    both = ComparisonDisplay.from_benchmark(results, "simionescu")
    one = ComparisonDisplay.from_benchmark(results, "simionescu", methods=["safe-gp"])
    (line,) = one.axes_[0].lines
    (same,) = [line for line in both.axes_[0].lines if line.get_label() == "Safe GP AL"]
    assert (line.get_color(), line.get_marker()) == (same.get_color(), same.get_marker())


def test_no_two_methods_of_a_suite_look_alike(tmp_path):
    for methods in SUITES.values():
        results = Results(tmp_path)
        for method in methods:
            results.records["townsend", method, 0] = [Record(1, 0.5, 1.0, 0.0, 1.0)]
        lines = shown(results, "townsend").axes_[0].lines
        assert len({line.get_color() for line in lines}) == len(methods)
        assert [line.get_label() for line in lines] == [METHODS[one].label for one in methods]


def test_no_two_of_all_methods_look_alike(tmp_path):
    results, methods = Results(tmp_path), [name for name, one in METHODS.items() if not one.safe]
    for method in methods:
        results.records["townsend", method, 0] = [Record(1, 0.5, 1.0, 0.0, 1.0)]
    lines = shown(results, "townsend").axes_[0].lines
    assert len({(line.get_color(), str(line._dash_pattern)) for line in lines}) == len(methods)


def report_sized(display):
    """As the report draws it."""
    display.figure_.set_size_inches(4.2 * len(display.axes_), 3.6)
    return display


@pytest.mark.parametrize("fast", [3e-6, 0.0031, 0.031, 0.2])
@pytest.mark.parametrize("ratio", [1.0, 1.3, 6.0, 40.0, 1e3, 1e6])
def test_labels_of_times_do_not_overlap(tmp_path, fast, ratio):
    results = Results(tmp_path)
    for method, seconds in (("asal", fast), ("min-unsafe", fast * ratio)):
        results.records["fluid", method, 0] = [Record(1, 0.5, 1.0, 0.0, seconds)]
    display = report_sized(shown(results, "fluid"))
    drawing = display.figure_
    drawing.draw_without_rendering()
    axis = display.axes_[-1].xaxis
    low, high = axis.get_view_interval()
    labels = [
        label.get_window_extent()
        for minor in (False, True)
        for label in axis.get_ticklabels(minor=minor)
        if label.get_text() and low <= label.get_position()[0] <= high
    ]
    labels.sort(key=lambda box: box.x0)
    assert len(labels) >= 2
    assert all(one.x1 < two.x0 for one, two in itertools.pairwise(labels))


def test_equal_curves_all_show(tmp_path):
    results = Results(tmp_path)
    methods = [*SUITES["safe"], "mine"]
    for method in methods:
        results.records["fluid", method, 0] = [
            Record(query, 1 / query, 1.0, 0.0, 0.1) for query in range(1, 101)
        ]
    display = report_sized(shown(results, "fluid"))
    drawing = display.figure_
    lines = {line.get_label(): line for line in display.axes_[1].lines[: len(methods)]}
    assert len(lines) == len(methods)
    # Draw with and without each of them: the picture differs visibly.
    canvas = FigureCanvasAgg(drawing)
    canvas.draw()
    with_all = np.asarray(canvas.buffer_rgba()).astype(int)
    for label, line in lines.items():
        line.set_visible(False)
        canvas.draw()
        changed = abs(np.asarray(canvas.buffer_rgba()) - with_all).max(axis=-1) > 60
        assert changed.sum() > 20, label
        line.set_visible(True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "task must be one of 'simionescu', 'sinus'"),
        ({"task": "oven"}, "got 'oven'"),
        ({"task": "sinus", "methods": ["asal"]}, "methods must be of 'gp'"),
        ({"task": "sinus", "columns": ["error"]}, "columns must be of rmse"),
    ],
)
def test_bad_arguments(results, arguments, message):
    with pytest.raises(ValueError, match=message):
        ComparisonDisplay.from_benchmark(results, **arguments)


def test_nothing_to_compare(tmp_path):
    with pytest.raises(
        ValueError, match=r"there is no file .*nowhere.results\.csv; pass the folder"
    ):
        ComparisonDisplay.from_benchmark(tmp_path / "nowhere")
    Results(tmp_path).save()
    with pytest.raises(ValueError, match=r"there is no finished cell in .*results\.csv"):
        ComparisonDisplay.from_benchmark(tmp_path)
    with pytest.raises(ValueError, match="methods must be of none"):
        ComparisonDisplay.from_benchmark({})
