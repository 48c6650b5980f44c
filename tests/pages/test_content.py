"""What pages say, against what the querier knows."""

import json
import re

import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint

from sklearn_asal import AmortizedQuerier, CampaignLog, RandomQuerier
from sklearn_asal.pages.blocks import Facts, Picture, Table, Text
from sklearn_asal.pages.content import Names, _spread, for_the_records, read, running
from sklearn_asal.pages.figures import Figures
from sklearn_asal.pages.markup import single_file

from .conftest import Parsed, measured, step

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def blank(monkeypatch):
    """Figures are not drawn, which takes most of the time."""

    def picture(self, name, size, alt, draw, *key):
        return Picture(name, alt, b"", (1, 1))

    monkeypatch.setattr(Figures, "_picture", picture)


def campaign_of(path, names):
    return read(CampaignLog(path).read(), str(path), names)


def page_of(path, names=None, figures=None):
    names = names or Names()
    return running(campaign_of(path, names), "Campaign", names, figures or Figures())


def section(page, title):
    (found,) = [one for one in page.sections if one.title == title]
    return found


def facts(page, title):
    return {n: t for b in section(page, title).blocks if isinstance(b, Facts) for n, t in b.pairs}


def texts(page, title):
    return " ".join(b.text for b in section(page, title).blocks if isinstance(b, Text))


def test_the_last_proposal_is_as_it_was_reported(blank, begin):
    querier, path = begin()
    x, report = querier.query(return_report=True)
    names = Names(units={"speed": "1/min"})
    page = page_of(path, names)
    found = facts(page, "The next measurement")
    assert texts(page, "The next measurement") == "Proposed, and not measured yet."
    assert found["speed"] == f"{x[0, 0]:.6g} 1/min"
    assert found["probability to be safe"] == f"{100 * report.p_safe[0]:.1f} %"
    mean, std = (float(part) for part in found["expected z"].split(" ± "))
    assert std == pytest.approx(report.z_std[0], rel=0.05)
    assert mean == pytest.approx(report.z_mean[0], abs=0.05 * report.z_std[0])
    querier.tell(x, *measured(x))
    page = page_of(path, names)
    assert "Nobody has asked for it yet" in texts(page, "The next measurement")
    expected = querier.query()[0, 1]
    assert facts(page, "The next measurement")["load"] == f"{expected:.6g}"


def test_no_next_one(blank, begin, tmp_path):
    querier, path = begin(budget=3)
    assert "3 of budget=3 are told" in texts(page_of(path), "The next measurement")
    pool = np.random.default_rng(0).uniform([900, 0], [4000, 60], (40, 2))
    querier, path = begin(0, "pool.jsonl")
    x, i = querier.query(pool=pool, return_indices=True)
    querier.tell(x, *measured(x), index=i)
    assert "chosen from a pool" in texts(page_of(path), "The next measurement")
    assert "all of the bounds" in texts(page_of(path), "Have I measured enough?")


def test_what_was_asked_for_at_the_same_time(blank, begin):
    querier, path = begin()
    points = querier.ask(2)
    blocks = [b for b in section(page_of(path), "The next measurement").blocks if b != Text]
    loads = [dict(b.pairs)["load"] for b in blocks if isinstance(b, Facts)]
    assert loads == [f"{x[1]:.6g}" for x in points]


def test_enough(blank, begin):
    querier, path = begin(stop_when=1e-9)
    progress = querier.progress(n_more=10)
    page = page_of(path, Names("torque", units={"torque": "Nm"}))
    found = facts(page, "Have I measured enough?")
    assert found["expected error of a model"] == f"{progress.rmse:.3g} Nm (RMSE of torque)"
    assert found["larger with 15 %"] == f"{progress.rmse_upper:.3g} Nm"
    assert found["after 10 more"] == f"{progress.rmse_after[-1]:.3g} Nm"
    assert texts(page, "Have I measured enough?").startswith("Not yet")
    _, path = begin(name="other.jsonl", stop_when=1e9)
    assert texts(page_of(path), "Have I measured enough?").startswith("Yes")


def test_nothing_can_be_said_of_one_measurement(tmp_path):
    path = tmp_path / "one.jsonl"
    AmortizedQuerier(bounds=[(0.0, 1.0)], log=path).fit([[0.5]], [1.0]).close_log()
    page = page_of(path)
    assert "Nothing can be said yet" in texts(page, "Have I measured enough?")
    assert "campaign" in page.pictures()


def test_state_and_measurements(blank, begin):
    querier, path = begin(budget=20)
    querier.tell([3900.0, 59.0], status="aborted", note="knocking")
    querier.forget(1)
    querier.correct(2, y=11.0)
    page = page_of(path)
    state = facts(page, "State")
    assert state["measurements"] == "7 (3 of them to begin with)"
    assert state["safe"] == "6 of 7"
    assert (state["aborted"], state["taken back"]) == ("1", "1")
    assert state["budget"] == "4 of 20 queries are told"
    (table,) = [b for b in section(page, "The last measurements").blocks if isinstance(b, Table)]
    assert table.header[:5] == ["number", "time (UTC)", "speed", "load", "y"]
    newest = table.rows[0]
    assert newest[0] == "6"  # as forget takes it
    assert querier.X_[6].tolist() == [3900.0, 59.0]
    assert "numbers as forget and correct take them" in table.caption
    assert newest[2:] == ["3900", "59", "–", "–", "aborted", "knocking"]
    assert list(table.marked) == ["unsafe", *[""] * 5, "forgotten", ""]
    assert table.rows[-2][-2] == "taken back"
    assert "safe, corrected" in [row[-2] for row in table.rows]


def test_failed_runs_are_in_no_count(blank, begin):
    querier, path = begin()
    for status in ("aborted", "failed"):
        querier.tell([3900.0, 59.0], status=status)
    state = facts(page_of(path), "State")
    assert state["measurements"].startswith("9 ")
    assert (state["safe"], state["aborted"]) == ("7 of 8", "1")
    assert state["failed"].startswith("1 (")


@pytest.mark.parametrize(
    ("mean", "std", "expected"),
    [
        (7.00039, 4e-5, "7.000390 ± 0.000040"),
        (850.31, 12.4, "850 ± 12"),
        (0.5, 0.0996, "0.50 ± 0.10"),
        (1234567.0, 250.4, "1234567 ± 250"),
        (-1.23456e-9, 2e-11, "-1.235e-09 ± 2.0e-11"),
        (3.0, 2e12, "3.0e+00 ± 2.0e+12"),
        (3.25, 0.0, "3.25 ± 0"),
        (np.nan, np.nan, "nan ± nan"),
    ],
)
def test_expected_values_have_the_digits_of_their_deviation(mean, std, expected):
    assert _spread([mean], [std]) == expected


def test_for_the_records(begin):
    querier, path = begin(30)
    querier.set_params(budget=99)
    step(querier, note="sensor\nreplaced")
    names = Names("torque", ["heat"], {"heat": "°C", "speed": "1/min"})
    campaign = campaign_of(path, names)
    page = for_the_records(campaign, "Campaign", names, Figures(), {"log": "campaign.jsonl"})
    (table,) = [b for b in section(page, "All measurements").blocks if isinstance(b, Table)]
    assert len(table.rows) == 35
    assert {"speed (1/min)", "torque", "heat (°C)", "probability to be safe then"} <= set(
        table.header
    )
    assert table.rows[-1][-1] == "sensor\nreplaced"
    place = table.header.index("probability to be safe then")
    reports = campaign.record.reports()
    shown = [row[place] for row in table.rows]
    assert shown == ["–"] * 4 + [f"{100 * one.p_safe[0]:.1f} %" for one in reports]
    done = facts(page, "How it was done")
    assert done["log"] == "campaign.jsonl"
    assert re.fullmatch("[0-9a-f]{64}", done["SHA-256 of the policy"])
    assert "AmortizedSafeQuerier" in done["querier"]
    assert "sklearn-asal" in done["this page"]
    tables = [b for b in section(page, "How it was done").blocks if isinstance(b, Table)]
    assert ["bounds", "{'speed': (900.0, 4000.0), 'load': (0.0, 60.0)}"] in tables[0].rows
    assert [row[1:] for row in tables[1].rows] == [["budget", "99"]]
    assert set(page.pictures()) == {"campaign", "safety", "progress"}


def test_figures_are_drawn_once(begin, monkeypatch):
    querier, path = begin()
    figures, drawn = Figures(), []
    display = "sklearn_asal.pages.figures.SafetyDisplay.from_querier"
    monkeypatch.setattr(display, lambda *arguments, **params: drawn.append(1))
    first = page_of(path, figures=figures).pictures()
    querier.ask(2)
    second = page_of(path, figures=figures).pictures()
    assert first["safety"].png is second["safety"].png
    assert first["campaign"].png != second["campaign"].png  # it has other stars
    step(querier)
    page_of(path, figures=figures)
    assert len(drawn) == 2


def test_errors_are_worked_out_once(blank, begin, monkeypatch):
    querier, path = begin()
    figures, asked, whole = Figures(), [], AmortizedQuerier.progress

    def progress(self, *data, **params):
        asked.append(len(self.X_))
        return whole(self, *data, **params)

    monkeypatch.setattr("sklearn_asal.queriers.base.BaseQuerier.progress", progress)
    page_of(path, figures=figures)
    assert sorted(asked) == [4, 5, 6, 7, 7]
    asked.clear()
    step(querier)
    page_of(path, figures=figures)
    assert sorted(asked) == [8, 8]


@pytest.mark.parametrize("n_features", [1, 3, 6])
def test_any_number_of_features(tmp_path, n_features):
    path = tmp_path / "a.jsonl"
    X = np.random.default_rng(0).random((6, n_features))
    RandomQuerier(log=path).fit(X, X.sum(axis=1)).close_log()
    page = page_of(path)
    assert set(page.pictures()) == {"campaign", "progress"}
    Parsed(single_file(page))


def test_a_querier_that_cannot_be_made_here(blank, begin):
    querier, path = begin()
    querier.close_log()
    lines = path.read_text().splitlines()
    lines[0] = json.dumps(json.loads(lines[0]) | {"querier": "no_such_package:Mine"})
    path.write_text("\n".join(lines) + "\n")
    page = page_of(path)
    assert "no_such_package" in texts(page, "To be noted")
    assert page.pictures() == {}
    assert len(section(page, "The last measurements").blocks[0].rows) == 7


def test_what_could_not_be_written_is_said(blank, begin):
    ring = NonlinearConstraint(lambda x: x[0] - 900, 0.0, np.inf)
    _, path = begin(0, constraints=ring)
    assert "constraints could not be written" in texts(page_of(path), "To be noted")


def test_dollar_signs_and_units_of_nothing(tmp_path):
    path, X = tmp_path / "a.jsonl", np.random.default_rng(0).random((5, 2))
    bounds = {"$x_{": (0.0, 1.0), "<b>": (0.0, 1.0)}
    AmortizedQuerier(bounds=bounds, log=path).fit(X, X.sum(axis=1)).close_log()
    page = page_of(path)
    assert set(page.pictures()) == {"campaign", "progress"}
    assert "$x_{, <b>" in page.pictures()["campaign"].alt
    assert not any(one.title == "To be noted" for one in page.sections)
    page = page_of(path, Names(units={"speed": "m/s"}))
    assert "units: nothing is called 'speed'" in texts(page, "To be noted")


def test_measurements_that_no_limit_is_on_are_listed(blank, tmp_path):
    path, X = tmp_path / "a.jsonl", np.random.default_rng(0).random((5, 2))
    AmortizedQuerier(log=path).fit(X, X.sum(axis=1), X[:, 0]).close_log()
    page = page_of(path)
    (table,) = section(page, "The last measurements").blocks
    assert table.header[4:6] == ["y", "z"]
    assert table.rows[-1][5] == f"{X[0, 0]:.6g}"
    assert "Margins" not in [one.title for one in page.sections]


class Broken(RandomQuerier):
    """A querier of somebody's, that answers nothing."""

    def query(self, *data, **options):
        raise ZeroDivisionError("no query")

    def progress(self, *data, **options):
        raise KeyError("no progress")


def test_what_a_querier_cannot_do_takes_nothing_else(tmp_path):
    path, X = tmp_path / "a.jsonl", np.random.default_rng(0).random((5, 2))
    Broken(log=path).fit(X, X.sum(axis=1)).close_log()
    page = page_of(path)
    assert "no query" in texts(page, "The next measurement")
    assert "no progress" in texts(page, "Have I measured enough?")
    assert set(page.pictures()) == {"campaign"}
