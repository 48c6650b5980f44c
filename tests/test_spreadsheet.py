"""``python -m sklearn_asal next`` from end to end."""

import csv
import itertools
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sklearn_asal import AmortizedQuerier, AmortizedSafeQuerier, Grid, Integer, Log
from sklearn_asal.__main__ import main

ROOT = Path(__file__).parents[1]
X = [[1200, 10], [1500, 14], [1800, 12], [2000, 20], [2200, 25], [2500, 18]]
Y = [41.2, 55.0, 49.1, 78.4, 97.2, 71.3]
Z = [512, 560, 571, 640, 705, 668]
BOUNDS = {"rpm": (900, 4000), "load": (0, 60)}
COLUMNS = "--inputs", "rpm", "load", "--output", "torque"
FLAGS = *COLUMNS, "--bounds", "rpm=900:4000", "load=0:60"
LIMIT = "--limit", "temperature <= 850"
HEADER = ["rpm", "load", "torque", "temperature"]
ROWS = [[*x, y, z] for x, y, z in zip(X, Y, Z, strict=True)]


def text_of(rows, delimiter=","):
    return "".join(delimiter.join(map(str, row)) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.csv").write_text(text_of([HEADER, *ROWS]))
    return tmp_path


class Asked:
    """What a command printed."""

    def __init__(self, capsys, *arguments):
        self.status = main(["next", *map(str, arguments)])
        self.out, self.err = capsys.readouterr()
        assert "Traceback" not in self.err
        self.notes = [line for line in self.err.splitlines() if line.startswith("Note: ")]

    @property
    def table(self):
        """Titles, and columns of text."""
        lines = self.out.split("\n\n")[1].splitlines()
        rows = [re.split(r" {2,}", line.strip()) for line in lines]
        return dict(zip(rows[0], zip(*rows[1:], strict=True), strict=True))

    @property
    def X(self):
        return np.array([self.table["rpm"], self.table["load"]], dtype=float).T


@pytest.fixture
def ask(capsys):
    return lambda *arguments: Asked(capsys, *arguments)


def numbers(text):
    return [float(number) for number in re.findall(r"-?\d+\.?\d*(?:e[-+]\d+)?", text)]


# -- the same as in Python -----------------------------------------------------------------


def test_same_proposals_as_a_safe_querier(folder, ask):
    asked = ask("m.csv", *FLAGS, *LIMIT, "--n", 3, "--out", "next.csv")
    assert (asked.status, asked.err) == (0, "")
    querier = AmortizedSafeQuerier(bounds=BOUNDS, safety_threshold=850, safe_when="below")
    points = querier.fit(X, Y, Z).query(n_queries=3)
    np.testing.assert_allclose(
        asked.X, points, atol=0.5, rtol=0
    )  # of rpm, printed without decimals
    np.testing.assert_allclose(asked.X[:, 1], points[:, 1], atol=0.005, rtol=0)
    report = querier.assess(asked.X)
    for text, y, std in zip(
        asked.table["torque expected"], report.y_mean, report.y_std, strict=True
    ):
        assert numbers(text) == pytest.approx([y, std], rel=0.05)
    with open("next.csv") as file:
        written = list(csv.DictReader(file))
    wanted = {
        "probability safe": report.p_safe,
        "torque expected": report.y_mean,
        "torque std": report.y_std,
        "temperature expected": report.z_mean,
        "temperature std": report.z_std,
    }
    for name, values in wanted.items():
        np.testing.assert_allclose([float(row[name]) for row in written], values, rtol=1e-4)
    assert [row["rpm"] for row in written] == list(asked.table["rpm"])


def test_same_proposals_as_a_querier_without_limits(folder, ask):
    asked = ask("m.csv", *FLAGS, "--n", 2)
    points = AmortizedQuerier(bounds=BOUNDS).fit(X, Y).query(n_queries=2)
    np.testing.assert_allclose(asked.X, points, atol=0.5, rtol=0)
    assert list(asked.table) == ["rpm", "load", "torque expected"]


def test_several_limits_kinds_of_features_and_gamma(folder, ask):
    flags = "--bounds", "rpm=1000:4000:integer", "load=5,10,20,40", "--gamma", 0.1
    both = "--limit", "temperature <= 850", "--limit", "torque >= 20"
    asked = ask("m.csv", *COLUMNS, *flags, *both, "--n", 3)
    querier = AmortizedSafeQuerier(
        bounds={"rpm": Integer(1000, 4000), "load": Grid([5, 10, 20, 40])},
        safety_threshold=[850, 20],
        safe_when=["below", "above"],
        gamma=0.1,
    )
    points = querier.fit(X, Y, np.column_stack([Z, Y])).query(n_queries=3)
    np.testing.assert_array_equal(asked.X, points)
    assert list(asked.table)[2:] == ["probability safe", "torque expected", "temperature expected"]


def test_logarithmic_scale(folder, ask):
    asked = ask("m.csv", *COLUMNS, "--bounds", "rpm=900:4000", "load=0.001:60:log")
    querier = AmortizedQuerier(bounds={"rpm": (900, 4000), "load": Log(0.001, 60)}).fit(X, Y)
    np.testing.assert_allclose(asked.X[:, 1], querier.query()[:, 1], rtol=5e-4)


def test_runs_that_were_cut_short(folder, ask):
    rows = [[*row, ""] for row in ROWS]
    rows.insert(2, [3800, 55, "tripped", "", "aborted"])
    rows.insert(4, [1000, 40, "", "", "Failed"])
    rows.insert(5, [2100, 21, "", "", ""])
    Path("m.csv").write_text(text_of([[*HEADER, "end"], *rows]))
    asked = ask("m.csv", *FLAGS, *LIMIT, "--status", "end", "--max-step", "load=3")
    querier = AmortizedSafeQuerier(
        bounds=BOUNDS, safety_threshold=850, safe_when="below", max_step={"load": 3}
    )
    querier.fit(X[:-1], Y[:-1], Z[:-1])
    querier.tell([[3800, 55], [1000, 40]], status=["aborted", "failed"])
    querier.tell(X[-1], Y[-1], Z[-1])
    point = querier.query(pending=[[2100, 21]])
    np.testing.assert_allclose(asked.X, point, atol=0.5, rtol=0)
    assert "6 measured (6 safe), 1 aborted, 1 failed, 1 pending (row 7)" in asked.out
    assert len(asked.notes) == 1
    assert "row 4 of m.csv is aborted" in asked.notes[0]
    # The last row is a run that was cut short, and steps begin there.
    rows.append([2600, 30, "", "", "failed"])
    Path("m.csv").write_text(text_of([[*HEADER, "end"], *rows]))
    asked = ask("m.csv", *FLAGS, *LIMIT, "--status", "end", "--max-step", "load=3")
    assert 27 <= asked.X[0, 1] <= 33


def test_steps_need_the_last_row_told_last(folder, ask):
    rows = [[*HEADER, "end"], [3800, 55, "", "", "aborted"], [1200, 10, 41, 500, "ok"]]
    Path("m.csv").write_text(text_of(rows))
    flags = *FLAGS, *LIMIT, "--status", "end"
    assert ask("m.csv", *flags).status == 0
    asked = ask("m.csv", *flags, "--max-step", "load=3")
    assert asked.status == 1
    assert "--max-step begins at the last row" in asked.err


def test_output_missing_beside_a_limit(folder, ask):
    Path("m.csv").write_text(text_of([HEADER, *ROWS, [1900, 15, "", 600]]))
    asked = ask("m.csv", *FLAGS, *LIMIT)
    querier = AmortizedSafeQuerier(bounds=BOUNDS, safety_threshold=850, safe_when="below")
    querier.fit([*X, [1900, 15]], [*Y, np.nan], [*Z, 600])
    np.testing.assert_allclose(asked.X, querier.query(), atol=0.5, rtol=0)
    assert "row 8 of m.csv has temperature, but no torque" in asked.err


def test_pool(folder, ask):
    rng = np.random.default_rng(0)
    candidates = np.round(rng.uniform([900, 0], [4000, 40], (60, 2)), 2)
    rows = [[i, load, rpm] for i, (rpm, load) in enumerate(candidates.tolist())]
    rows.insert(3, ["", "", ""])
    Path("pool.csv").write_text(text_of([["id", "load", "rpm"], *rows]))
    asked = ask("m.csv", *COLUMNS, *LIMIT, "--pool", "pool.csv", "--n", 3, "--append")
    bounds = dict(zip(BOUNDS, np.stack([candidates.min(0), candidates.max(0)], -1), strict=True))
    bounds = {name: tuple(ends) for name, ends in bounds.items()}
    querier = AmortizedSafeQuerier(bounds=bounds, safety_threshold=850, safe_when="below")
    points, indices = querier.fit(X, Y, Z).query(pool=candidates, n_queries=3, return_indices=True)
    np.testing.assert_array_equal(asked.X, points)
    # The header is row 1, and row 5 is blank.
    expected = [i + 2 + (i >= 3) for i in indices]
    assert [int(row) for row in asked.table["row of pool.csv"]] == expected
    again = ask("m.csv", *COLUMNS, *LIMIT, "--pool", "pool.csv", "--n", 3)
    assert not {*again.table["row of pool.csv"]} & {*asked.table["row of pool.csv"]}


def test_policy_by_name(folder, ask):
    asked = ask("m.csv", *FLAGS, *LIMIT, "--policy", "2d")
    querier = AmortizedSafeQuerier(
        "2d", bounds=BOUNDS, safety_threshold=850, safe_when="below",
        y_loc="auto", y_scale="auto", z_scale="auto",
    )  # fmt: skip
    np.testing.assert_allclose(asked.X, querier.fit(X, Y, Z).query(), atol=0.5, rtol=0)


def test_order_of_columns_and_inputs_is_of_no_consequence(folder, ask):
    printed = {}
    for order in itertools.islice(itertools.permutations(range(4)), 0, None, 5):
        Path("m.csv").write_text(text_of([[row[j] for j in order] for row in [HEADER, *ROWS]]))
        asked = ask("m.csv", *FLAGS, *LIMIT)
        printed.setdefault(str(asked.X), asked)
        # In the order of the file's own columns.
        titles = [HEADER[j] for j in order if j < 2]
        assert list(asked.table)[:2] == titles
    assert len(printed) == 1
    asked = ask("m.csv", "--inputs", "load", "rpm", *FLAGS[3:], *LIMIT)
    assert str(asked.X) in printed


# -- what proposals keep to ----------------------------------------------------------------


@given(
    low=st.floats(-2000, 2000),
    width=st.floats(1e-3, 3000),
    kind=st.sampled_from(["", ":integer", "grid"]),
    n=st.integers(1, 3),
)
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_never_outside_the_bounds(folder, ask, low, width, kind, n):
    ends = [low, low + width]
    if kind == ":integer":
        ends = [round(low), round(low) + 1 + round(width)]
    values = np.linspace(*ends, 7).tolist()
    stated = ",".join(map(repr, values)) if kind == "grid" else f"{ends[0]}:{ends[1]}{kind}"
    asked = ask("m.csv", *COLUMNS, "--bounds", f"rpm={stated}", "load=0:60", "--n", n)
    rpm = asked.X[:, 0]
    assert len(rpm) == n
    assert ((rpm >= ends[0]) & (rpm <= ends[1])).all()
    if kind == ":integer":
        assert (rpm == np.round(rpm)).all()
    if kind == "grid":
        assert {*rpm} <= {*values}


def test_rounding_does_not_lengthen_a_step(folder, ask):
    # Shorter than what inputs are rounded to.
    for step in (0.004, 0.0123, 0.0377):
        asked = ask("m.csv", *FLAGS, "--max-step", f"load={step}", "--n", 4)
        steps = np.abs(np.diff([18, *asked.X[:, 1]]))
        assert (steps <= step + 1e-9).all()
        assert steps.max() > step / 4


def test_rounding_does_not_pass_a_step(folder, ask, monkeypatch):
    ends = np.array([[2000.0, 20.5066], [2000.0, 23.0132]])
    monkeypatch.setattr(AmortizedQuerier, "query", lambda self, **options: ends)
    assert ask("m.csv", *FLAGS, "--max-step", "load=2.5066").X.tolist() == ends.tolist()
    coarse = [[2000.0, 20.51], [2000.0, 23.01]]
    assert ask("m.csv", *FLAGS, "--max-step", "load=2.6").X.tolist() == coarse


def test_fixed_steps_and_constraints(folder, ask):
    asked = ask("m.csv", *FLAGS, "--fixed", "rpm=2123.456", "--max-step", "load=2.5", "--n", 4)
    assert (asked.X[:, 0] == 2123.456).all()
    steps = np.abs(np.diff([18, *asked.X[:, 1]]))
    assert (steps <= 2.5 + 1e-9).all()
    assert steps.max() > 1
    asked = ask("m.csv", *FLAGS, "--constraint", "rpm/1000 + 0.1*load <= 3.01234", "--n", 4)
    assert (asked.X @ [1e-3, 0.1] <= 3.01234).all()
    asked = ask("m.csv", *FLAGS, "--constraint", "2*rpm - load = 4000", "--n", 4)
    np.testing.assert_allclose(asked.X @ [2, -1], 4000, rtol=1e-9)


# -- pending and append --------------------------------------------------------------------

FORMATS = {
    "plain": (",", ".", "utf-8", "\n", ""),
    "no newline at the end": (",", ".", "utf-8", "\n", None),
    "European": (";", ",", "utf-8-sig", "\r\n", ";;;\r\n;;;\r\n\r\n"),
    "Windows": (";", ",", "cp1252", "\r\n", "  ;;;"),
    "UTF-16": ("\t", ",", "utf-16-le", "\r\n", ""),
    "old Mac": (",", ".", "utf-8", "\r", ""),
    "pipes": ("|", ".", "utf-8", "\n", "\n\n"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_append_keeps_every_byte(folder, ask, name):
    delimiter, decimal, encoding, newline, tail = FORMATS[name]
    rows = [["Run", "rpm", " load ", "Größe", "torque"], ["", "1/min", "%", "", "Nm"]]
    rows += [[f'"{i}{delimiter} first"', *x, "", y] for i, (x, y) in enumerate(zip(X, Y))]  # noqa: B905
    rows = [[str(cell) for cell in row] for row in rows]
    rows = [[c.replace(".", decimal) if c[:1].isdigit() else c for c in row] for row in rows]
    lines = newline.join(delimiter.join(row) for row in rows)
    mark = b"\xff\xfe" if encoding == "utf-16-le" else b""
    head, tail = mark + lines.encode(encoding), "" if tail is None else newline + tail
    tail = tail.encode("utf-8" if encoding == "utf-8-sig" else encoding)
    Path("m.csv").write_bytes(head + tail)
    asked = ask("m.csv", *FLAGS, "--n", 2, "--append")
    assert "6 measured, 0 pending" in asked.out
    assert "Added to m.csv: rows 9, 10." in asked.out
    now = Path("m.csv").read_bytes()
    assert now.startswith(head)
    middle = now[len(head) :].decode("utf-8" if encoding == "utf-8-sig" else encoding)
    new = "".join(
        delimiter.join(["", *row, "", ""]) + newline
        for row in zip(asked.table["rpm"], asked.table["load"], strict=True)
    ).replace(".", decimal)
    after = tail[len(newline.encode("utf-8" if encoding == "utf-8-sig" else encoding)) :]
    assert middle == newline + new + after.decode("utf-8" if encoding == "utf-8-sig" else encoding)
    # They are pending from now on, and others are proposed.
    again = ask("m.csv", *FLAGS, "--n", 2)
    assert "6 measured, 2 pending (rows 9, 10)" in again.out
    assert not {*map(tuple, again.X)} & {*map(tuple, asked.X)}
    querier = AmortizedQuerier(bounds=BOUNDS).fit(X, Y)
    points = querier.query(n_queries=2, pending=asked.X)
    np.testing.assert_allclose(again.X, points, atol=0.5, rtol=0)


def test_semicolons_stand_for_decimal_commas(folder, ask):
    Path("m.csv").write_text(text_of([HEADER[:3], [1200, 10, 41], [1500, 14, 55]], ";"))
    asked = ask("m.csv", *FLAGS, "--append")
    rpm, load = asked.table["rpm"][0], asked.table["load"][0].replace(".", ",")
    assert "," in load
    assert Path("m.csv").read_text().splitlines()[-1] == f"{rpm};{load};"


def test_a_campaign_in_a_file(folder, ask):
    Path("m.csv").write_text(text_of([HEADER, *ROWS[:2]]))
    for _ in range(3):
        asked = ask("m.csv", *FLAGS, *LIMIT, "--append")
        lines = Path("m.csv").read_text().splitlines()
        rpm, load = asked.X[0]
        assert lines[-1] == f"{asked.table['rpm'][0]},{asked.table['load'][0]},,"
        lines[-1] = lines[-1][:-2] + f",{rpm * load / 500},{400 + 0.05 * rpm + 3 * load}"
        Path("m.csv").write_text("\n".join(lines))
    assert "5 measured (5 safe), 0 pending" in ask("m.csv", *FLAGS, *LIMIT).out


def test_without_append_nothing_is_written(folder, ask):
    before = Path("m.csv").read_bytes()
    ask("m.csv", *FLAGS)
    assert [path.name for path in folder.iterdir()] == ["m.csv"]
    assert Path("m.csv").read_bytes() == before


def test_append_is_all_or_nothing(folder, ask, monkeypatch):
    before = Path("m.csv").read_bytes()

    def fail(*paths):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr("os.replace", fail)
        asked = ask("m.csv", *FLAGS, "--append")
    assert asked.status == 1
    assert "m.csv cannot be written (Permission denied)" in asked.err
    with monkeypatch.context() as patched:
        patched.setattr("os.access", lambda *arguments: False)
        asked = ask("m.csv", *FLAGS, "--append")
    assert "m.csv is read-only" in asked.err
    Path(".~lock.m.csv#").touch()
    asked = ask("m.csv", *FLAGS, "--append")
    assert asked.status == 1
    assert "open in another program" in asked.err
    Path(".~lock.m.csv#").unlink()
    with monkeypatch.context() as patched:
        change = lambda *paths: Path("m.csv").write_bytes(before + b"1,2,3,4\n")  # noqa: E731
        patched.setattr("shutil.copymode", change)
        asked = ask("m.csv", *FLAGS, "--append")
    assert asked.status == 1
    assert "changed by another program meanwhile" in asked.err
    assert Path("m.csv").read_bytes() == before + b"1,2,3,4\n"
    assert [path.name for path in folder.iterdir()] == ["m.csv"]


def test_append_through_a_link_keeps_the_mode(folder, ask):
    Path("m.csv").chmod(0o640)
    Path("link.csv").symlink_to("m.csv")
    assert ask("link.csv", *FLAGS, "--append").status == 0
    assert Path("link.csv").is_symlink()
    assert len(Path("m.csv").read_text().splitlines()) == 8
    assert Path("m.csv").stat().st_mode & 0o777 == 0o640


# -- odd files -----------------------------------------------------------------------------


def test_title_and_units_and_blank_rows(folder, ask):
    wanted = ask("m.csv", *FLAGS, *LIMIT).X
    rows = [["Test bench 3"], [], ["", *HEADER, "note"], ["", "1/min", "%", "Nm", "°C"]]
    for row in ROWS:
        rows += [["", *row, "x"], [" "]]
    rows += [["Mean of the above"], ["", "", "NaN", "n/a"]]
    Path("m.csv").write_text(text_of(rows))
    asked = ask("m.csv", *FLAGS, *LIMIT)
    np.testing.assert_array_equal(asked.X, wanted)
    assert asked.notes == [
        "Note: row 4 of m.csv has no numbers (1/min, %, Nm, °C): it is taken for units, and left "
        "out."
    ]


def test_excel_names_the_delimiter(folder, ask):
    wanted = ask("m.csv", *FLAGS).X
    Path("m.csv").write_text("sep=;\n" + text_of([HEADER, *ROWS], ";"))
    np.testing.assert_array_equal(ask("m.csv", *FLAGS).X, wanted)
    Path("m.csv").write_text("sep=;\n" + text_of([HEADER, *ROWS, ["x", 2, 3, 4]], ";"))
    assert "row 8, column rpm (cell A8): 'x' is not a number" in ask("m.csv", *FLAGS).err


def test_names_with_blanks_and_signs(folder, ask):
    wanted = ask("m.csv", *FLAGS, *LIMIT).X
    names = ["Speed [1/min]", "a = b", "Torque  (Nm)", "Temp. Öl"]
    Path("m.csv").write_text(text_of([names, *ROWS]), encoding="utf-8")
    asked = ask(
        "m.csv", "--inputs", "Speed [1/min]", "a = b", "--output", "Torque (Nm)",
        "--limit", "Temp. Öl ≤ 850", "--bounds", "Speed [1/min] = 900:4000", "a = b=0:60",
    )  # fmt: skip
    columns = asked.table["Speed [1/min]"], asked.table["a = b"]
    np.testing.assert_array_equal(np.array(columns, dtype=float).T, wanted)


ERRORS = {
    "no file": (None, ["none.csv", *FLAGS], "there is no file none.csv in"),
    "empty": ("\n\n", FLAGS, "m.csv is empty"),
    "workbook": ("PK\3\4 \0", FLAGS, "not a text file. An Excel workbook has to be named .xlsx"),
    "header alone": (text_of([HEADER]), FLAGS, "no row yet with its torque measured"),
    "all pending": (text_of([HEADER, [1, 2], [3, 4]]), FLAGS, "no row yet with its torque"),
    "unsafe start": (text_of([HEADER]), [*FLAGS, *LIMIT], "points that are known to be safe"),
    "text": (
        text_of([HEADER, *ROWS, [1200, "full", 3, 4]]),
        FLAGS,
        "m.csv, row 8, column load (cell B8): 'full' is not a number",
    ),
    "an open quotation": (
        text_of([HEADER, *ROWS]).replace("2500", '"2500'),
        FLAGS,
        "row 7, column rpm (cell A7): '2500,18,71.3,668' is not a plain",
    ),
    "long text": (
        text_of([HEADER, *ROWS, ["word " * 30, 2, 3, 4]]),
        FLAGS,
        "word word ...' is not a number",
    ),
    "infinite": (text_of([HEADER, [1200, "inf", 3, 4]]), FLAGS, "'inf' is not a number"),
    "mixed signs": (
        text_of([HEADER, *ROWS, ["2.000", "10,5", 3, 4]], ";"),
        FLAGS,
        "cell B8): '10,5' is not a plain number with a decimal point",
    ),
    "thousands": (
        text_of([HEADER, ["1.234,5", "10,5", 3, 4]], ";"),
        FLAGS,
        "cell A2): '1.234,5' is not a plain number with a decimal comma",
    ),
    "commas between commas": (
        text_of([HEADER, ["1200,5", "10,5", "3,0", 4]]),
        FLAGS,
        "row 2: it has more cells than row 1",
    ),
    "an input missing": (text_of([HEADER, [1200, "", 3, 4]]), FLAGS, "cell B2): it is empty"),
    "a limit missing": (
        text_of([HEADER, *ROWS, [1200, 10, 41, ""]]),
        [*FLAGS, *LIMIT],
        "row 8, column temperature (cell D8): it is empty, but other columns of this row are",
    ),
    "twice": (
        text_of([[*HEADER, "rpm"]]),
        FLAGS,
        "m.csv has 2 columns 'rpm': A, E",
    ),
    "near miss": (
        None,
        ["m.csv", "--inputs", "RPM", "lod", "--output", "torque"],
        "no column 'RPM' and no column 'lod'. Did you mean rpm? Its columns (row 1): rpm, load, "
        "torque, temperature.",
    ),
    "commas for blanks": (
        None,
        ["m.csv", "--inputs", "rpm,load", "--output", "torque"],
        "separated by spaces, not by commas",
    ),
    "no bounds": (
        None,
        ["m.csv", *COLUMNS],
        "rpm reaches from 1200 to 2500, load reaches from 10 to 25. With limits of your own, "
        "write --bounds rpm=1200:2500 load=10:25",
    ),
    "input as output": (None, ["m.csv", *COLUMNS, "--inputs", "torque"], "torque is one of"),
    "input twice": (None, ["m.csv", *COLUMNS, "--inputs", "rpm"], "--inputs names rpm twice"),
    "limit of an input": (
        None,
        ["m.csv", *FLAGS, "--limit", "load <= 5"],
        "load is an input. Where it may lie is stated by --bounds",
    ),
    "gamma alone": (None, ["m.csv", *FLAGS, "--gamma", "0.1"], "state one by --limit"),
    "gamma": (None, ["m.csv", *FLAGS, *LIMIT, "--gamma", "2"], "at most 1, got 2"),
    "status": (
        text_of([[*HEADER, "end"], [1, 2, 3, 4, "done"]]),
        [*FLAGS, "--status", "end"],
        "cell E2): 'done' is no status. It may be ok, aborted or failed",
    ),
    "aborted without limits": (
        text_of([[*HEADER, "end"], [1, 2, "", "", "aborted"]]),
        [*FLAGS, "--status", "end"],
        "State it by --limit, or write failed",
    ),
    "ok without numbers": (
        text_of([[*HEADER, "end"], [1, 2, "", "", "ok"]]),
        [*FLAGS, "--status", "end"],
        "cell C2): it is empty, but the status is ok",
    ),
    "status of a measured column": (None, ["m.csv", *FLAGS, "--status", "torque"], "no status"),
    "fixed outside": (
        None,
        ["m.csv", *FLAGS, "--fixed", "rpm=10"],
        "--fixed rpm=10 is not within --bounds of rpm",
    ),
    "step": (None, ["m.csv", *FLAGS, "--max-step", "load=0"], "--max-step of load must be"),
    "step and fixed": (
        None,
        ["m.csv", *FLAGS, "--max-step", "load=1", "--fixed", "load=5"],
        "--fixed: 5 in load is more than one step of 1 from the last point, which has 18",
    ),
    "far outside": (
        None,
        ["m.csv", *COLUMNS, "--bounds", "rpm=900:4000", "load=30:60", "--max-step", "load=1"],
        "--max-step: the last point has 18 in load",
    ),
    "impossible": (
        None,
        ["m.csv", *FLAGS, "--constraint", "rpm + load <= 10"],
        "no point inside bounds satisfies --constraint.",
    ),
    "not on a logarithmic scale": (
        text_of([HEADER, [1200, 0, 3, 4]]),
        [*COLUMNS, "--bounds", "rpm=1:2", "load=1:60:log"],
        "load is on a logarithmic scale, but a value of it is 0",
    ),
    "nothing safe": (
        None,
        ["m.csv", *FLAGS, "--limit", "temperature >= 850"],
        "no measurement is safe (safe means temperature >= 850); the least unsafe one is x = (",
    ),
    "no limit is kept": (
        None,
        ["m.csv", *FLAGS, "--limit", "temperature <= 300", "torque >= 100"],
        "Measure something safe to begin with, or check --limit.",
    ),
    "misspelt in a constraint": (
        None,
        ["m.csv", *FLAGS, "--constraint", "rpm + laod <= 4000"],
        "'laod' is not one of the inputs. Did you mean load? State a sum",
    ),
    "pool of what is measured": (
        None,
        ["m.csv", *FLAGS, "--pool", "m.csv"],
        "each of these has been measured or proposed, by this query as well. Stop here, ask for "
        "fewer at once (--n) or "
        "name other candidates by --pool.",
    ),
    "policy": (None, ["m.csv", *FLAGS, "--policy", "9d"], "policy '9d' is neither"),
    "sheet": (None, ["m.csv", *FLAGS, "--sheet", "x"], "--sheet is for Excel workbooks"),
    "out": (None, ["m.csv", *FLAGS, "--out", "./m.csv"], "would overwrite that file"),
    "out as a workbook": (None, ["m.csv", *FLAGS, "--out", "x.xlsx"], "name it .csv"),
    "out nowhere": (None, ["m.csv", *FLAGS, "--out", "no/x.csv"], "no/x.csv"),
    "pool": (None, ["m.csv", *FLAGS, "--pool", "no.csv"], "there is no file no.csv"),
    "other format": (None, ["m.ods", *FLAGS], "Save it as .xlsx or as .csv"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_sentences(folder, ask, name):
    text, arguments, message = ERRORS[name]
    if text is not None:
        Path("m.csv").write_text(text)
        arguments = ["m.csv", *arguments]
    before = Path("m.csv").read_bytes()
    asked = ask(*arguments)
    assert asked.status == 1
    assert message in asked.err
    assert asked.err.count("\n") == 1 + len(asked.notes)
    assert asked.out == "" or name == "out nowhere"
    assert [path.name for path in folder.iterdir()] == ["m.csv"]
    assert Path("m.csv").read_bytes() == before


NOTES = {
    "outside": (
        [*COLUMNS, "--bounds", "rpm=900:2100", "load=0:60"],
        "2 of 6 measured points lie outside bounds: rpm reaches from 1200 to 2500, but its bounds "
        "are (900, 2100). The points are kept and used; proposals stay inside. If the file has "
        "other units, or queries may lie there, state other --bounds.",
    ),
    "not safe enough": (
        [*FLAGS, "--limit", "temperature <= 512.5", "--gamma", "0.0001"],
        "nothing that was looked at is safe enough (--gamma 0.0001); the safest is proposed. ",
    ),
    "two values": (
        [*COLUMNS, "--bounds", "rpm=900:4000", "load=0,60"],
        "load is 0 or 60, and nothing in between. If it may be, write --bounds load=0:60.",
    ),
}


@pytest.mark.parametrize("name", NOTES)
def test_notes_are_sentences(folder, ask, name):
    arguments, message = NOTES[name]
    asked = ask("m.csv", *arguments, "--n", 3)
    assert asked.status == 0
    assert sum(message in note for note in asked.notes) == 1
    assert asked.err.splitlines() == list(dict.fromkeys(asked.notes))
    for word in ("safety_threshold", "safe_when", "bounds=[", " X ", "feature "):
        assert word not in asked.err


def test_flags_of_a_limit(folder, ask):
    rows = [[*row[:3], int(i == 3)] for i, row in enumerate(ROWS)]
    Path("m.csv").write_text(text_of([[*HEADER[:3], "trip"], *rows]))
    asked = ask("m.csv", *FLAGS, "--limit", "trip <= 0")
    assert "trip has the values 0, 1 and the limit is one of them (safe means trip <= 0)" in (
        asked.err
    )
    assert asked.notes[0].endswith("Of flags and counts, state a --limit between two values, "
                                   "such as 0.5.")  # fmt: skip


def test_one_row(folder, ask):
    Path("m.csv").write_text(text_of([HEADER, ROWS[0]]))
    asked = ask("m.csv", *FLAGS, *LIMIT)
    assert asked.status == 0
    assert asked.notes == ["Note: expected values are little more than guesses: 1 output measured."]


def test_a_limit_of_the_output(folder, ask):
    asked = ask("m.csv", *FLAGS, "--limit", "torque <= 200", "--out", "o.csv")
    querier = AmortizedSafeQuerier(bounds=BOUNDS, safety_threshold=200, safe_when="below")
    mean = float(Path("o.csv").read_text().splitlines()[1].split(",")[3])
    assert mean == pytest.approx(querier.assess(asked.X, X, Y).y_mean[0], rel=1e-4)
    assert list(asked.table) == ["rpm", "load", "probability safe", "torque expected"]
    Path("m.csv").write_text(text_of([HEADER, *ROWS, [3000, 10, "", ""]]))
    assert "1 pending (row 8)" in ask("m.csv", *FLAGS, "--limit", "torque <= 200").out


# -- the rest ------------------------------------------------------------------------------


def test_torch_is_not_loaded(folder):
    code = (
        "import sys; from sklearn_asal.__main__ import main; "
        f"print(main({['next', 'm.csv', *FLAGS, *LIMIT, '--append']!r}), "
        "sorted({'torch', 'openpyxl', 'gpytorch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.stdout.splitlines()[-1] == "0 []", done.stderr


def test_help(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["next", "--help"])
    assert stopped.value.code == 0
    assert '--limit "temperature <= 850"' in capsys.readouterr().out


def test_what_the_readme_shows(folder, ask):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    guide = (ROOT / "docs" / "guide" / "spreadsheet.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"`measurements\.csv`,\n\n```text\n(.*?)```", guide, re.DOTALL)
    Path("measurements.csv").write_text(table)
    command, shown = re.search(
        r"```bash\npython -m sklearn_asal next (.*?)```\s+```text\n(.*?)```", readme, re.DOTALL
    ).groups()
    arguments = re.findall(r'"[^"]*"|[^\s\\]+', command)
    asked = ask(*(argument.strip('"') for argument in arguments))
    assert re.sub(r"[\d.]+", "0", asked.out).split() == re.sub(r"[\d.]+", "0", shown).split()
    np.testing.assert_allclose(numbers(asked.out), numbers(shown), rtol=0.02)
