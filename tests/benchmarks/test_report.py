"""Tables and figures."""

import base64
import math
import re

import numpy as np
import pytest

from sklearn_asal.benchmarks.protocol import Record
from sklearn_asal.benchmarks.report import report
from sklearn_asal.benchmarks.results import Results
from sklearn_asal.benchmarks.summary import (
    curves,
    markdown,
    paper_rmse,
    short,
    summarise,
    tables,
    unfinished,
)
from sklearn_asal.displays import ComparisonDisplay

from ..datasets.settings import SETTINGS

NAN = math.nan


@pytest.fixture
def results(tmp_path):
    """Two tasks; numbers that can be averaged by hand."""
    results = Results(tmp_path)
    results.settings = {"n_queries": 2}
    for seed, (rmse, share, worst) in enumerate(
        [(0.1, 1.0, 0.0), (0.2, 0.5, 0.4), (0.6, 1.0, 0.1)]
    ):
        results.records["simionescu", "asal", seed] = [
            Record(1, 1.0 + seed, 1.0, 0.0, 0.002, False),
            Record(2, rmse, share, worst, 0.004 if seed else 0.008, seed == 1),
        ]
    results.records["simionescu", "mine", 0] = [Record(1, NAN, 1, 0, 1), Record(2, 0.5, 1, 0, 1)]
    results.records["sinus", "gp", 0] = [
        Record(query, 0.25, NAN, NAN, 0.1) for query in range(1, 21)
    ]
    results.failures["sinus", "aal", 0] = "ValueError: no | <policy>\nat all"
    results.save()
    return results


def test_means_over_seeds(results):
    lines = summarise(results)
    # In the order of the paper's tasks and methods; strangers last.
    assert [(line.task, line.method) for line in lines] == [
        ("sinus", "gp"),
        ("simionescu", "asal"),
        ("simionescu", "mine"),
    ]
    line = lines[1]
    assert (line.seeds, line.queries, line.forced) == (3, 2, 1)
    # 0.1, 0.2 and 0.6: mean 0.3, variance (0.04 + 0.01 + 0.09) / 2 = 0.07.
    assert line.rmse == pytest.approx((0.3, math.sqrt(0.07 / 3)))
    assert line.safe_share == pytest.approx((2.5 / 3, 0.5 / 3))
    assert line.worst_violation == 0.4
    # 2, 2, 2, 4, 4 and 8 ms.
    assert line.milliseconds == pytest.approx(3)
    assert lines[0].rmse[0] == 0.25
    assert math.isnan(lines[0].rmse[1])
    assert math.isnan(lines[0].safe_share[0])


def test_curves(results):
    ours, mine = curves(results.campaigns("simionescu"))
    assert (ours.method, ours.label, mine.method, mine.label) == ("asal", "ASAL", None, "mine")
    # Means over three seeds: RMSE 1, 2, 3, then 0.1, 0.2, 0.6.
    np.testing.assert_allclose(ours.rmse, [[1, 2, 1 / math.sqrt(3)], [2, 0.3, math.sqrt(0.07 / 3)]])
    np.testing.assert_allclose(ours.safe_share[:, :2], [[1, 1], [2, 2.5 / 3]])
    # One value of one seed: no standard error.
    np.testing.assert_array_equal(mine.rmse, [[2, 0.5, NAN]])
    (gp,) = curves(results.campaigns("sinus"))
    assert len(gp.safe_share) == 0
    assert [one.label for one in curves({"random": [], "gp": []}, named=False)] == ["random", "gp"]


def test_tables(results):
    made = tables(summarise(results))
    header, (row,) = made["sinus"]
    assert dict(zip(header, row, strict=True)) == {
        "method": "GP AL",
        "seeds": "1",
        "queries": "20",
        "RMSE": "0.250",
        "RMSE, paper": "0.130 ± 0.009",
        "ms a query": "100",
    }
    header, (row, other) = made["simionescu"]
    assert dict(zip(header, row, strict=True)) == {
        "method": "ASAL",
        "seeds": "3",
        "queries": "2",
        "RMSE": "0.300 ± 0.153",
        "RMSE, paper": "",
        "safe share": "0.833 ± 0.167",
        "safe share, paper": "",
        "truly safe share": "",
        "worst run": "0.500",
        "runs below 0.9": "33 %",
        "worst violation": "0.40",
        "forced": "1",
        "ms a query": "3",
    }
    # No standard error of one seed; no exponents in 1000 ms.
    assert (other[0], other[3], other[-1]) == ("mine", "0.500", "1000")


def test_methods_without_a_result_have_empty_cells_and_a_reason(results, tmp_path):
    lacks = "ImportError: TabPFNSurrogate needs the package tabpfn"
    for task in ("sinus", "simionescu", "branin"):
        for seed in range(2):
            results.failures[task, "tabpfn", seed] = lacks
    # Of a method that has finished some seeds, what it has is shown.
    results.failures["sinus", "gp", 1] = "ValueError: no"
    results.save()
    assert unfinished(results) == {
        ("sinus", "aal"): "ValueError: no | <policy> at all",
        ("sinus", "tabpfn"): lacks,
        ("branin", "tabpfn"): lacks,
        ("simionescu", "tabpfn"): lacks,
    }
    made = tables(summarise(results), unfinished(results))
    assert list(made) == ["sinus", "simionescu"]
    header, rows = made["sinus"]
    assert [row[0] for row in rows] == ["GP AL", "AAL [1]", "TabPFN AL [2]"]
    assert rows[2][1:] == ["0", *[""] * (len(header) - 2)]
    header, rows = made["simionescu"]
    assert rows[-1] == ["TabPFN AL [1]", "0", *[""] * (len(header) - 2)]
    report(tmp_path)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for written in (text, page):
        assert f"[2] {lacks}" in written
        assert written.count(f"[1] {lacks}") == 1


# Method, RMSE and truly safe share of three seeds.
GUARDED = {
    "asal:guard=False": ([0.1, 0.2, 0.3], [0.9, 0.95, 0.8]),
    "asal:guard=True": ([0.2, 0.2, 0.6], [1.0, 1.0, 0.9]),
    "asal:guard=True,z_scale=2": ([0.5, 0.5, 0.5], [1.0, 1.0, 1.0]),
    "safe-gp:guard=True": ([0.9, 0.9, 0.9], [0.5, 0.6, 0.7]),
    "asal:z_scale=2": ([0.4, 0.4, 0.4], [1.0, 1.0, 1.0]),
    "safe-gp:gamma=0.1": ([0.3, 0.3, 0.3], [0.5, 0.6, 0.7]),
    "safe-gp:guard=SafetyGuard(gamma=0.02),surrogate=SparseGP()": ([0.5] * 3, [1.0] * 3),
    "safe-gp:guard=False,surrogate=SparseGP()": ([0.3] * 3, [0.9] * 3),
    "asal:gone=3": ([0.3, 0.3, 0.3], [0.5, 0.6, 0.7]),
    "mine": ([0.3, 0.3, 0.3], [0.5, 0.6, NAN]),
}


@pytest.fixture
def guarded(tmp_path):
    """Some methods with a guard, and their other halves, or not."""
    results = Results(tmp_path)
    for method, values in GUARDED.items():
        for seed, (rmse, share) in enumerate(zip(*values, strict=True)):
            record = Record(1, rmse, 0.75, 0.0, 0.1, False, share)
            results.records["lobes", method, seed] = [record]
    results.save()
    return Results(tmp_path)


def test_truly_safe_runs(guarded):
    lines = {line.method: line for line in summarise(guarded)}
    line = lines["asal:guard=False"]
    assert line.truly_safe_share == pytest.approx(
        (2.65 / 3, np.std([0.9, 0.95, 0.8], ddof=1) / 3**0.5)
    )
    assert (line.worst_run, line.runs_below) == (0.8, pytest.approx(1 / 3))
    assert lines["asal:guard=True"].runs_below == 0
    # What is not known of all seeds is unknown; what was measured counts.
    assert math.isnan(lines["mine"].truly_safe_share[0])
    assert (lines["mine"].worst_run, lines["mine"].runs_below) == (0.75, 1)


def test_what_the_guard_adds(guarded):
    lines = {line.method: line for line in summarise(guarded)}
    # Seed by seed: 0.1, 0 and 0.3.
    changes = [0.1, 0.0, 0.3]
    expected = np.mean(changes), np.std(changes, ddof=1) / 3**0.5
    assert lines.pop("asal:guard=True").rmse_change == pytest.approx(expected)
    sparse = "safe-gp:guard=SafetyGuard(gamma=0.02),surrogate=SparseGP()"
    assert lines.pop(sparse).rmse_change == pytest.approx((0.2, 0.0))
    # Of the others none has a partner that differs by the guard alone.
    assert all(math.isnan(line.rmse_change[0]) for line in lines.values())
    header, rows = tables(summarise(guarded))["lobes"]
    column = header.index("RMSE added by the guard")
    assert [(row[0], row[column]) for row in rows if row[column]] == [
        ("ASAL, guard=True", "+0.133 ± 0.088"),
        ("Safe GP AL, guard=SafetyGuard(gamma=0.02),surrogate=SparseGP()", "+0.200 ± 0.000"),
    ]


def test_only_seeds_that_both_have_finished_are_compared(guarded):
    del guarded.records["lobes", "asal:guard=False", 1]
    del guarded.records["lobes", "asal:guard=True", 2]
    line = next(line for line in summarise(guarded) if line.method == "asal:guard=True")
    assert line.rmse_change[0] == pytest.approx(0.1)
    assert math.isnan(line.rmse_change[1])


def test_variants_come_after_their_method(guarded):
    guarded.records["lobes", "asal", 0] = guarded.records["lobes", "mine", 0]
    methods = [line.method for line in summarise(guarded)]
    assert methods[:2] == ["asal", "asal:gone=3"]
    assert methods[-1] == "mine"
    assert {method.partition(":")[0] for method in methods[-5:-1]} == {"safe-gp"}
    shown = ComparisonDisplay.from_benchmark(guarded, "lobes").curves
    assert [curve.label for curve in shown][:2] == ["ASAL", "ASAL, gone=3"]


def test_folder_of_a_version_that_did_not_record_the_truth(results):
    path, expected = results.folder / "results.csv", repr(Results(results.folder).records)
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(line.rpartition(",")[0] for line in lines), encoding="utf-8")
    assert repr(Results(results.folder).records) == expected


def test_truth_survives_the_file(guarded):
    record = guarded.records["lobes", "asal:guard=False", 1][0]
    assert (record.truly_safe_share, record.safe_share, record.forced) == (0.95, 0.75, False)


@pytest.mark.parametrize(("queries", "shown"), [(29, ""), (30, "> 0.95"), (31, "")])
def test_safe_share_of_the_paper_is_that_of_its_number_of_queries(tmp_path, queries, shown):
    results = Results(tmp_path)
    results.records["simionescu", "asal", 0] = [
        Record(query, 0.1, 1.0, 0.0, 0.1) for query in range(1, queries + 1)
    ]
    header, (row,) = tables(summarise(results))["simionescu"]
    assert row[header.index("safe share, paper")] == shown


def test_short_table(results):
    header, rows = short(summarise(results))
    assert header == ["task", "method", "RMSE", "safe share", "ms a query"]
    assert rows[0] == ["sinus", "gp", "0.250", "", "100"]
    assert rows[1] == ["simionescu", "asal", "0.300", "0.833", "3"]


def test_paper_figures():
    assert paper_rmse("sinus", "aal", 20) == (0.14, 0.004)
    assert paper_rmse("airfoil", "random", 40) == (0.79, 0.047)
    assert paper_rmse("branin", "gp", 20) == (0.36, 0.014)
    assert paper_rmse("branin", "dad", 30) == (0.99, 0.128)
    assert paper_rmse("sinus", "aline", 10) == (0.56, 0.022)
    assert paper_rmse("branin", "gp", 25) is None
    assert paper_rmse("airfoil", "mgp", 40) is None
    assert paper_rmse("townsend", "asal", 30) is None


def test_markdown():
    assert markdown(["a", "bcd"], [["xy", "1"], ["z", ""]]).splitlines() == [
        "| a  | bcd |",
        "| -- | --- |",
        "| xy | 1   |",
        "| z  |     |",
    ]


def test_report(results):
    path = report(results.folder)
    assert path == results.folder / "report.html"
    page = path.read_text(encoding="utf-8")
    pictures = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    assert len(pictures) == page.count("<img") == 2
    # Nothing is loaded from elsewhere.
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert all(base64.b64decode(picture).startswith(b"\x89PNG") for picture in pictures)
    for part in ("0.300 ± 0.153", "0.130 ± 0.009", "no | &lt;policy&gt;"):
        assert part in page
    text = (results.folder / "report.md").read_text(encoding="utf-8")
    for name in ("sinus", "simionescu"):
        assert f"## {name}\n" in text
        assert f"](figures/{name}.png)" in text
        assert (results.folder / "figures" / f"{name}.png").stat().st_size > 5000
    assert r"ValueError: no \| <policy> at all |" in text


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_the_program_around_do_not_matter(results, setting):
    def written():
        path = report(results.folder)
        return [path.with_suffix(kind).read_text(encoding="utf-8") for kind in (".md", ".html")]

    expected = written()
    with SETTINGS[setting]():
        assert written() == expected
        assert Results(results.folder).records == results.records


def test_settings_in_words(results):
    results.settings = {"n_queries": 2, "jobs": 2, "queriers": {"u": "U()"}, "python": "3.12"}
    results.save()
    report(results.folder)
    text = (results.folder / "report.md").read_text(encoding="utf-8")
    assert "- Settings: n_queries 2.\n- Last run with: python 3.12.\n" in text
    assert "jobs" not in text


def test_failures_alone_make_a_report(tmp_path):
    results = Results(tmp_path)
    results.failures["sinus", "aal", 0] = "ValueError: no policy"
    results.save()
    assert "no policy" in report(tmp_path).read_text(encoding="utf-8")


def test_no_benchmark(tmp_path):
    with pytest.raises(ValueError, match="holds no benchmark; make one with"):
        report(tmp_path)
    assert not list(tmp_path.iterdir())
