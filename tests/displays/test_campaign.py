"""CampaignDisplay: what is drawn where."""

import itertools
import pickle

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from scipy.optimize import LinearConstraint
from sklearn.exceptions import NotFittedError

from sklearn_asal import (
    AmortizedQuerier,
    AmortizedSafeQuerier,
    GPSafeQuerier,
    Grid,
    Integer,
    Log,
    RandomQuerier,
)
from sklearn_asal.box import Box
from sklearn_asal.constraints import Constraints
from sklearn_asal.displays import CampaignDisplay
from sklearn_asal.displays.campaign import HELD
from sklearn_asal.displays.sections import on_equations

from .conftest import labels, margin, marked, output

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def test_map(campaign):
    querier = campaign()
    display = CampaignDisplay.from_querier(querier, units={"x0": "bar", "z": "K"})
    ax = display.ax_
    assert display.kind == "map"
    assert display.figure_ is ax.figure
    assert list(display.axes_) == [ax]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x0 (bar)", "x1")
    assert ax.figure.axes[1].get_ylabel() == "expected y"
    X, z, status = querier.X_, querier.z_, querier.status_
    ok = status == "ok"
    query = np.arange(13) >= 5
    np.testing.assert_array_equal(marked(ax, "initial points"), X[:5])
    np.testing.assert_array_equal(marked(ax, "queries, by number"), X[ok & query & (z >= 0)])
    np.testing.assert_array_equal(marked(ax, "unsafe"), X[ok & (z < 0)])
    np.testing.assert_array_equal(marked(ax, "aborted"), X[status == "aborted"])
    np.testing.assert_array_equal(marked(ax, "failed"), X[status == "failed"])
    np.testing.assert_array_equal(marked(ax, "next proposal"), querier.query())
    numbers = {text.get_text(): text.get_position() for text in ax.texts}
    expected = {str(i): tuple(X[i]) for i in range(5, 13) if ok[i]}
    assert numbers == expected
    assert labels(ax) > {"safe with 95 %", "z at its limit", "unsafe", "aborted"}
    # Room for what lies at the bounds.
    np.testing.assert_allclose(ax.get_xlim() + ax.get_ylim(), [-0.025, 1.025] * 2)


def test_predictions_of_a_map_are_those_of_the_querier(campaign):
    querier = campaign(bounds=[(0.0, 1.0), (-1.0, 2.0)])
    (section,) = CampaignDisplay.from_querier(querier, n_grid=7).sections
    x0, x1 = section.values
    np.testing.assert_allclose([x0[0], x0[-1], x1[0], x1[-1]], [0, 1, -1, 2])
    for row, column in [(0, 0), (2, 5), (6, 1)]:
        report = querier.assess([x0[column], x1[row]])
        found = (section.mean, section.std, section.p_safe, section.z_mean[..., 0])
        expected = report.y_mean, report.y_std, report.p_safe, report.z_mean
        np.testing.assert_allclose(
            [part[row, column] for part in found], np.ravel(expected), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize(
    ("response", "label"),
    [("std", "standard deviation of y (kg)"), ("p_safe", "probability to be safe")],
)
def test_responses(campaign, response, label):
    display = CampaignDisplay.from_querier(campaign(), response=response, units={"y": "kg"})
    assert display.figure_.axes[1].get_ylabel() == label
    low, high = display.figure_.axes[1].get_ylim()
    values = getattr(display.sections[0], response)
    assert low <= values.min()
    assert values.max() <= high


def test_curve_with_a_limit_of_its_own(campaign):
    querier = campaign(1, z_scale="auto")
    display = CampaignDisplay.from_querier(querier, z_name="pressure", units={"pressure": "bar"})
    assert display.kind == "curve"
    assert [ax.get_ylabel() for ax in display.axes_] == ["y", "pressure (bar)"]
    (section,) = display.sections
    for ax, values, mean, std in zip(
        display.axes_,
        (querier.y_, querier.z_),
        (section.mean, section.z_mean[:, 0]),
        (section.std, section.z_std[:, 0]),
        strict=True,
    ):
        (line,) = [line for line in ax.lines if line.get_label() == "expected"]
        np.testing.assert_allclose(line.get_ydata(), mean)
        (band,) = [one for one in ax.collections if one.get_label() == "± 2 std"]
        low, high = band.get_datalim(ax.transData).get_points()[:, 1]
        np.testing.assert_allclose([low, high], [(mean - 2 * std).min(), (mean + 2 * std).max()])
        found = marked(ax, "initial points")
        np.testing.assert_array_equal(found, np.column_stack([querier.X_[:5], values[:5]]))
        assert {"aborted", "next proposal"} < labels(ax)
    # Where an output is missing, marks lie at the edge, and at that of the unsafe side.
    np.testing.assert_array_equal(marked(display.axes_[0], "aborted"), [[querier.X_[6, 0], 0.03]])
    (limit,) = [line for line in display.axes_[1].lines if line.get_label() == "limit"]
    assert set(limit.get_ydata()) == {0.0}


def test_aborted_runs_lie_on_the_unsafe_side(campaign):
    querier = campaign(1, safety_threshold=0.9, safe_when="below")
    ax = CampaignDisplay.from_querier(querier).axes_[1]
    np.testing.assert_array_equal(marked(ax, "aborted"), [[querier.X_[6, 0], 0.97]])
    np.testing.assert_array_equal(marked(ax, "failed"), [[querier.X_[7, 0], 0.03]])
    (shade,) = [one for one in ax.patches if one.get_label() == "unsafe side"]
    assert shade.get_y() == pytest.approx(0.9)
    assert shade.get_y() + shade.get_height() == pytest.approx(ax.get_ylim()[1])


def test_constant_values_have_no_bar():
    querier = AmortizedQuerier().fit([[0.3, 0.4]], [7.0])
    display = CampaignDisplay.from_querier(querier, n_grid=9)
    assert len(display.figure_.axes) == 1
    assert "expected y: 7 everywhere" in labels(display.ax_)
    assert len(display.plot(response="std").figure_.axes) == 2
    # A large offset is no rounding.
    querier.fit([[0.3, 0.4], [0.5, 0.5]], [1e6, 1e6 + 0.1])
    assert len(CampaignDisplay.from_querier(querier, n_grid=9).figure_.axes) == 2


@pytest.mark.parametrize("n_features", [1, 6])
def test_responses_are_for_maps(campaign, n_features):
    with pytest.raises(ValueError, match="response='p_safe' is for maps and slices"):
        CampaignDisplay.from_querier(campaign(n_features), response="p_safe")


def test_shades_are_where_it_is_not_safe_enough(campaign):
    display = CampaignDisplay.from_querier(campaign(1), level=0.9)
    (section,) = display.sections
    (shade,) = [
        one for one in display.axes_[0].collections if one.get_label() == "safe with less than 90 %"
    ]
    x = np.concatenate([path.vertices[:, 0] for path in shade.get_paths()])
    wrong = section.values[0][section.p_safe < 0.9]
    assert np.isin(wrong, x).all()
    assert np.isin(x, wrong).all()


def test_an_output_with_a_limit_has_one_panel():
    X = np.linspace(0.2, 0.6, 6)[:, None]
    querier = AmortizedSafeQuerier(safety_threshold=0.5).fit(X, output(X))
    display = CampaignDisplay.from_querier(querier)
    assert len(display.axes_) == 1
    assert display.axes_[0] is display.ax_
    (limit,) = [line for line in display.ax_.lines if line.get_label() == "limit"]
    assert set(limit.get_ydata()) == {0.5}


def held_in(display):
    """What the figure says of inputs that panels do not show."""
    texts = [text.get_text() for ax in display.axes_ for text in ax.texts if text.get_gid() == HELD]
    return " ".join(" ".join(texts).split())


def test_slices(campaign):
    querier = campaign(3)
    display = CampaignDisplay.from_querier(querier, units={"x2": "mm"}, n_grid=9)
    assert display.kind == "slices"
    assert [section.features for section in display.sections] == [(0, 1), (0, 2), (1, 2)]
    x = [ax.get_xlabel() for ax in display.axes_]
    y = [ax.get_ylabel() for ax in display.axes_]
    assert (x, y) == (["", "x0", "x1"], ["x1", "x2 (mm)", ""])
    section, (row, column) = display.sections[1], (3, 6)
    (x_next,) = querier.query()
    np.testing.assert_array_equal(display.at, x_next)  # the star is in the slice
    held = [f"x0 = {x_next[0]:.4g}", f"x1 = {x_next[1]:.4g}", f"x2 = {x_next[2]:.4g} mm"]
    said = held_in(display)
    assert said == f"other inputs at {', '.join(held)}"
    point = [section.values[0][column], x_next[1], section.values[1][row]]
    expected = querier.assess(point).y_mean[0]
    assert section.mean[row, column] == pytest.approx(expected, rel=1e-4)
    # What is far from the slice is faint.
    (queries,) = [one for one in display.axes_[0].collections if one.get_label() == "queries"]
    safe = (querier.status_ == "ok") & (querier.z_ >= 0) & (np.arange(13) >= 5)
    away = np.abs(querier.X_[safe, 2] - x_next[2])
    assert (np.diff(queries.get_facecolors()[np.argsort(away), 3]) <= 0).all()
    assert len(np.unique(queries.get_facecolors()[:, 3])) > 1


def test_slices_without_a_proposal(campaign):
    querier = campaign(3).tell([0.3, 0.3, 0.3], status="aborted")
    last = CampaignDisplay.from_querier(querier, x_next=None, n_grid=5)
    np.testing.assert_array_equal(last.at, querier.X_[-2])  # which was not cut short
    x = querier.ask()
    pending = CampaignDisplay.from_querier(querier, x_next=None, n_grid=5)
    np.testing.assert_array_equal(pending.at, x[0])
    plane = CampaignDisplay.from_querier(querier, features=[0, 2], at="last", n_grid=5)
    assert held_in(plane) == f"other inputs at x1 = {querier.X_[-2, 1]:.4g}"
    whole = CampaignDisplay.from_querier(campaign(2), n_grid=5)
    assert held_in(whole) == ""


@pytest.mark.parametrize(("n_features", "low", "high"), [(3, 0, 1e5), (5, 1e5, 1.4e5)])
def test_labels_of_large_numbers_do_not_overlap(n_features, low, high):
    X = np.random.default_rng(0).uniform(low, high, (5, n_features))
    querier = RandomQuerier(bounds=[(low, high)] * n_features).fit(X, X[:, 0])
    display = CampaignDisplay.from_querier(querier, x_next=None)
    display.figure_.canvas.draw()
    last = [ax for ax in display.axes_ if ax.get_xlabel()]
    boxes = [
        tick.label1.get_window_extent()
        for ax in last
        for tick in ax.xaxis.get_major_ticks()
        if low <= tick.get_loc() <= high
    ]
    assert len(boxes) >= 2 * len(last)
    ends = sorted((box.x0, box.x1) for box in boxes)
    assert all(one[1] < other[0] for one, other in itertools.pairwise(ends))


@pytest.mark.parametrize("at", ["best", [0.1, 0.2, 0.3]])
def test_where_slices_are(campaign, at):
    querier = campaign(3)
    display = CampaignDisplay.from_querier(querier, at=at, n_grid=5)
    safe = (querier.status_ == "ok") & (querier.z_ >= 0)
    best = np.flatnonzero(safe)[querier.y_[safe].argmax()]
    np.testing.assert_array_equal(display.at, querier.X_[best] if at == "best" else at)


def test_parallel(campaign):
    querier = campaign(6, limits=2, safety_threshold=[0.0, 8.0], safe_when=["above", "below"])
    display = CampaignDisplay.from_querier(querier)
    assert display.kind == "parallel"
    names = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert names == [f"x{j}" for j in range(6)] + ["y", "z[0]", "z[1]"]
    lines = [line for line in display.ax_.lines if len(line.get_xdata()) == 9]
    assert len(lines) == 13
    (proposal,) = [line for line in display.ax_.lines if line.get_label() == "next proposal"]
    np.testing.assert_allclose(proposal.get_ydata(), querier.query()[0])
    first = next(line for line in lines if line.get_label() == "initial points").get_ydata()
    np.testing.assert_allclose(first[:6], querier.X_[0])
    y = querier.y_[~np.isnan(querier.y_)]
    assert first[6] == pytest.approx((querier.y_[0] - y.min()) / np.ptp(y))
    assert "limit" in labels(display.ax_)


def test_dollar_signs_in_parallel_coordinates(campaign):
    units = {"x0": "US$/kg and $/h", "y": "$"}
    display = CampaignDisplay.from_querier(campaign(6), units=units)
    texts = [text.get_text().replace("\n", " ") for text in display.ax_.get_xticklabels()]
    assert texts[0] == r"x0 (US\$/kg and \$/h)"
    assert texts[6] == r"y (\$)"


def test_features_are_chosen_by_name_or_position(campaign):
    querier = campaign(6)
    querier.fit(
        pd.DataFrame(querier.X_[:5], columns=list("abcdef")), querier.y_[:5], querier.z_[:5]
    )
    display = CampaignDisplay.from_querier(querier, features=["e", 1], n_grid=5)
    assert display.features == (4, 1)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("e", "b")
    assert CampaignDisplay.from_querier(querier, features="c", n_grid=5).kind == "curve"


def test_scales_and_whole_numbers():
    querier = AmortizedSafeQuerier(bounds={"gears": Integer(1, 6), "flow": Log(1e-3, 1e3)})
    querier.fit([[2, 1.0], [3, 2.0]], [0.1, 0.3], [1.0, 0.8])
    ax = CampaignDisplay.from_querier(querier).ax_
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("gears", "flow")
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "log")
    np.testing.assert_allclose(np.log10(ax.get_ylim()), [-3.15, 3.15])
    assert all(float(tick).is_integer() for tick in ax.get_xticks())


def few_settings():
    bounds = {"size": Grid([0.1, 0.2, 0.5]), "gear": Integer(1, 4), "dose": Log(1e-6, 1e-3)}
    querier = AmortizedSafeQuerier(bounds=bounds)
    X = [[0.1, 1, 1e-5], [0.2, 2, 1e-4], [0.5, 3, 1e-4]]
    return querier.fit(X, [0.1, 0.3, 0.2], [1.0, 0.8, 0.7])


def test_predictions_are_of_the_settings_that_there_are():
    querier = few_settings()
    display = CampaignDisplay.from_querier(querier, features=["size", "gear"])
    (section,) = display.sections
    assert [values.tolist() for values in section.values] == [[0.1, 0.2, 0.5], [1, 2, 3, 4]]
    assert section.mean.shape == (4, 3)
    expected = querier.assess([0.5, 2, querier.query()[0, 2]]).y_mean
    np.testing.assert_allclose(section.mean[1, 2], expected, rtol=1e-4)
    # Each setting has a cell of its own, that ends halfway to the next one.
    x, y = section.coordinates()
    np.testing.assert_allclose(x, [0.05, 0.15, 0.15, 0.35, 0.35, 0.65])
    np.testing.assert_allclose(y, [0.5, 1.5, 1.5, 2.5, 2.5, 3.5, 3.5, 4.5])
    cells = section.cells(section.mean)
    assert cells.shape == (8, 6)
    np.testing.assert_array_equal(cells[::2, ::2], section.mean)
    np.testing.assert_array_equal(cells[1::2, 1::2], section.mean)
    assert display.ax_.get_xticks().tolist() == [0.1, 0.2, 0.5]
    assert display.ax_.get_yticks().tolist() == [1, 2, 3, 4]


def test_a_curve_over_settings_has_steps():
    display = CampaignDisplay.from_querier(few_settings(), features=["size"])
    (line,) = [line for line in display.axes_[0].lines if line.get_label() == "expected"]
    x, y = line.get_data()
    assert x.tolist() == display.sections[0].coordinates()[0].tolist()
    assert (y[::2] == y[1::2]).all()


def test_settings_beside_a_continuous_feature():
    (section,) = CampaignDisplay.from_querier(few_settings(), features=[2, 0], n_grid=7).sections
    dose, size = section.coordinates()
    assert (len(dose), len(size)) == (7, 6)
    assert section.cells(section.std).shape == (6, 7)
    parallel = CampaignDisplay.from_querier(few_settings(), kind="parallel").ax_
    ticks = [line for line in parallel.lines if line.get_marker() == "_"]
    np.testing.assert_allclose(ticks[0].get_ydata(), [0, 0.25, 1])


@pytest.mark.parametrize("kind", ["slices", "parallel"])
def test_constraints_that_are_equations(kind):
    mixture = LinearConstraint(np.ones(3), 1.0, 1.0)
    querier = AmortizedSafeQuerier(constraints=mixture)
    X = np.random.default_rng(0).dirichlet([2, 2, 2], 6)
    display = CampaignDisplay.from_querier(querier.fit(X, output(X), margin(X)), kind=kind)
    for section in display.sections:
        first, second = np.meshgrid(*section.values)
        np.testing.assert_array_equal(section.may_be, first + second <= 1 + 1e-9)
        i = (10, 15)
        a, b = first[i], second[i]
        point = np.empty(3)
        point[list(section.features)] = a, b
        (other,) = {0, 1, 2} - set(section.features)
        point[other] = 1 - a - b
        assert section.mean[i] == pytest.approx(querier.assess(point).y_mean[0], rel=1e-4)
        # All measurements lie in the plane of the mixtures.
        np.testing.assert_allclose(section.distances, 0, atol=1e-12)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 999), n_features=st.integers(2, 6), n_kept=st.integers(0, 2))
def test_points_are_moved_onto_equations_as_little_as_can_be(seed, n_features, n_kept):
    rng = np.random.default_rng(seed)
    A, kept = rng.normal(size=(1, n_features)), tuple(range(min(n_kept, n_features - 1)))
    constraints = Constraints(LinearConstraint(A, 0.7, 0.7), n_features)
    box = Box(np.sort(rng.normal(size=(n_features, 2)), axis=1), n_features)
    points = rng.normal(size=(4, n_features))
    moved = on_equations(points, kept, constraints, box)
    np.testing.assert_allclose(moved @ A.T, 0.7)
    np.testing.assert_array_equal(moved[:, kept], points[:, kept])
    free = [j for j in range(n_features) if j not in kept]
    step = ((moved - points) / box.width)[:, free]
    normal = (A * box.width)[:, free]
    # The shortest way is along the normal.
    np.testing.assert_allclose(
        np.abs(step @ normal.T)[:, 0], np.linalg.norm(step, axis=1) * np.linalg.norm(normal)
    )


def test_inequalities_leave_parts_blank():
    querier = AmortizedQuerier(constraints=LinearConstraint([1.0, 1.0], -np.inf, 1.2))
    querier.fit([[0.2, 0.3], [0.4, 0.1]], [0.1, 0.3])
    (section,) = CampaignDisplay.from_querier(querier, n_grid=11).sections
    first, second = np.meshgrid(*section.values)
    np.testing.assert_array_equal(section.may_be, first + second <= 1.2 + 1e-9)


def test_every_querier_has_a_display_and_stays_as_it_is(make):
    querier = make(budget=12, random_state=0)
    X = np.random.default_rng(0).uniform(0.4, 0.6, (6, 2))
    querier.fit(X, output(X), margin(X))
    querier.tell([0.45, 0.52], 0.3, 0.7)
    before = pickle.dumps(querier)
    display = CampaignDisplay.from_querier(querier, n_grid=5)
    assert pickle.dumps(querier) == before
    assert {"initial points", "queries, by number"} <= labels(display.ax_)
    assert bool(display.sections) == hasattr(querier, "assess")


@pytest.mark.parametrize("kind", ["curve", "map", "slices", "parallel"])
def test_queriers_without_models(kind):
    n_features = {"curve": 1, "map": 2}.get(kind, 3)
    X = np.random.default_rng(0).random((5, n_features))
    querier = RandomQuerier(random_state=0).fit(X, output(X))
    display = CampaignDisplay.from_querier(querier, kind=kind)
    assert display.sections == []
    assert "next proposal" in labels(display.axes_[0])


def test_proposals(campaign):
    querier = campaign(budget=8)
    assert "next proposal" not in labels(CampaignDisplay.from_querier(querier).ax_)  # it is spent
    querier.set_params(budget=None)
    assert "next proposal" not in labels(CampaignDisplay.from_querier(querier, x_next=None).ax_)
    display = CampaignDisplay.from_querier(querier, x_next=[[0.1, 0.2], [0.3, 0.4]])
    np.testing.assert_array_equal(marked(display.ax_, "next proposal"), display.x_next)
    x = querier.ask()
    np.testing.assert_array_equal(marked(CampaignDisplay.from_querier(querier).ax_, "pending"), x)
    pool = np.random.default_rng(1).uniform(0.3, 0.5, (30, 2))
    display = CampaignDisplay.from_querier(querier, pool=pool)
    assert (display.x_next == pool).all(axis=1).any()
    assert "candidates" in labels(display.ax_)
    nothing = GPSafeQuerier(safety_threshold=50.0, n_candidates=20).fit(
        querier.X_[:3], querier.y_[:3], querier.z_[:3]
    )
    assert len(CampaignDisplay.from_querier(nothing).x_next) == 0


def test_from_campaign():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform([0, 100], [10, 200], (12, 2)), columns=["time", "heat"])
    y, z = rng.random(12), rng.random(12)
    display = CampaignDisplay.from_campaign(
        X, y, z, querier_params={"safety_threshold": 0.5, "safe_when": "below"}, n_init=3
    )
    ax = display.ax_
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time", "heat")
    assert len(marked(ax, "unsafe")) == (z > 0.5).sum()
    assert len(ax.texts) == 9
    low, high = X["time"].min(), X["time"].max()
    room = 0.025 * (high - low)
    np.testing.assert_allclose(ax.get_xlim(), (low - room, high + room))
    without = CampaignDisplay.from_campaign(X.to_numpy(), y, x_next="query")
    assert without.sections[0].p_safe is None
    assert "next proposal" in labels(without.ax_)


def test_plot_again_elsewhere(campaign):
    display = CampaignDisplay.from_querier(campaign(3), n_grid=5)
    figure = Figure(layout="constrained")
    left, right = figure.subplots(1, 2)
    assert display.plot(right, legend=False) is display
    assert display.ax_ is right
    assert display.figure_ is figure
    assert all(ax.figure is figure for ax in display.axes_)
    assert left.axison
    assert not any(ax.get_legend() for ax in figure.axes)
    # Without a grid there is no room for panels.
    with pytest.raises(ValueError, match=r"ax has to be made by plt\.subplots"):
        display.plot(plt.figure().add_axes([0.1, 0.1, 0.8, 0.8]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "surface"}, "kind must be 'auto', 'curve'"),
        ({"kind": "curve"}, "kind='curve' shows 1 feature"),
        ({"features": [7]}, "features has a feature 7"),
        ({"features": []}, "features must name one feature"),
        ({"at": "first"}, "at must be 'last', 'best', a point or None"),
        ({"at": [0.1, 0.2, 0.3]}, "at must be one point with 2 features"),
        ({"x_next": "all"}, "x_next must be 'query', None or points"),
        ({"x_next": [0.1, 0.2, 0.3]}, "x_next has 3 features, not 2"),
        ({"n_grid": 1}, "n_grid"),
        ({"units": {"speed": "m/s"}}, "units: nothing is called 'speed'"),
        ({"z_name": ["a", "b"]}, "z_name has 2 names, but the campaign has 1"),
        ({"response": "variance"}, "response must be 'mean', 'std' or 'p_safe'"),
        ({"level": 0.3}, "level must be above 0.5"),
    ],
)
def test_bad_arguments(campaign, arguments, message):
    with pytest.raises(ValueError, match=message):
        CampaignDisplay.from_querier(campaign(), **arguments)


def test_without_a_campaign_or_limits():
    with pytest.raises(NotFittedError, match="before you draw its campaign"):
        CampaignDisplay.from_querier(AmortizedQuerier())
    querier = AmortizedQuerier().fit([[0.1, 0.2], [0.3, 0.4]], [1.0, 2.0])
    with pytest.raises(ValueError, match="response='p_safe' needs a querier with limits"):
        CampaignDisplay.from_querier(querier, response="p_safe")
    with pytest.raises(ValueError, match="feature 0 has one value only"):
        CampaignDisplay.from_campaign([[1.0, 2.0], [1.0, 3.0]], [1.0, 2.0])
