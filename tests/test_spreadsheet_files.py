"""What is read from CSV files and workbooks, and what is left of them when rows are added."""

import datetime
import io
import re
import sys
import zipfile
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.chart import Reference, ScatterChart
from openpyxl.comments import Comment
from openpyxl.styles import Font, PatternFill
from openpyxl.worksheet.table import Table

from sklearn_asal.__main__ import main
from sklearn_asal.spreadsheet.csv_file import CsvFile
from sklearn_asal.spreadsheet.excel_file import UNKNOWN, ExcelFile
from sklearn_asal.spreadsheet.excel_rows import column_letters
from sklearn_asal.spreadsheet.numbers import parsed, written
from sklearn_asal.spreadsheet.sheet import Sheet

FLAGS = "--inputs rpm load --output torque --bounds rpm=900:4000:integer load=0:60".split()
LIMIT = "--limit", "temperature <= 850"
ROWS = [
    ["run", "rpm", "load", "force", "torque", "temperature"],
    [1, 1200, 10, 100, 40.0, 512],
    [2, 1500, 14.5, 120, 48.0, 560],
    [3, 1800, 12, 130, 52.0, 571],
]


def quiet(text):
    raise AssertionError(text)


# -- numbers -------------------------------------------------------------------------------


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(".,"))
def test_written_numbers_are_read_as_they_were(value, decimal):
    assert parsed(written(value, decimal), decimal) == value


@pytest.mark.parametrize(
    "text", ["", "x", "1 000", "1_000", "1,5", "1.5.2", "nan", "inf", "1e999", "0x1", "5%", "--1"]
)
def test_what_is_no_number(text):
    assert parsed(text) is None


def test_other_ways_to_write_a_number():
    texts = " 2 ", "+2.", "2E0", "\u22122", "\u00a02", ".5"
    assert [parsed(text) for text in texts] == [2, 2, 2, -2, 2, 0.5]


# -- CSV -----------------------------------------------------------------------------------


@settings(max_examples=50)
@given(
    data=st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * 3), min_size=1, max_size=5),
    style=st.sampled_from(
        [(",", "."), (";", ","), (";", "."), ("\t", "."), ("\t", ","), ("|", ".")]
    ),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "cp1252", "utf-16"]),
    newline=st.sampled_from(["\n", "\r\n"]),
)
def test_csv_as_pandas_writes_it(data, style, encoding, newline):
    delimiter, decimal = style
    frame = pd.DataFrame(data, columns=["a", "größe b", "c"])
    frame.insert(1, "remark", f"some{delimiter} text")
    options = {"sep": delimiter, "decimal": decimal, "index": False, "lineterminator": newline}
    raw = frame.to_csv(**options).encode(encoding)
    names = ["c", "a", "größe b"]
    sheet = Sheet("x", CsvFile(raw, names), names, names, quiet)
    read = [[sheet.number(i, name) for name in names] for i in sheet.rows]
    np.testing.assert_array_equal(read, frame[names].to_numpy())
    # What is added is read by pandas, and all else is as it was.
    new = {sheet.columns["a"]: 0.25, sheet.columns["c"]: -3.0}
    content, first = sheet.file.with_rows(sheet.header, [new])
    assert first == len(data) + 1
    assert content.startswith(raw)
    again = pd.read_csv(io.BytesIO(content), sep=delimiter, decimal=decimal, encoding=encoding)
    assert again["a"].iloc[-1] == 0.25
    assert again["c"].iloc[-1] == -3.0
    assert again.iloc[-1].isna().sum() == 2


def test_quoted_line_breaks_count_as_one_row():
    raw = b'a,"b\nc",d\r\n1,"two\nlines",3\r\n4,5,x\r\n'
    sheet = Sheet("m.csv", CsvFile(raw, ["a", "d"]), ["a", "d"], ["a", "d"], quiet)
    assert sheet.number(1, "d") == 3
    with pytest.raises(ValueError, match=r"row 3, column d \(cell C3\)"):
        sheet.number(2, "d")
    with pytest.raises(ValueError, match="cannot be read as CSV"):
        CsvFile(b"a,b\n" + b"x" * 200_000, ["a"])


@pytest.mark.parametrize("delimiter", list(";\t,|"))
def test_the_delimiter_is_the_one_that_finds_the_names(delimiter):
    # More of the other characters than of the delimiter itself.
    others = "".join(set(";,|") - {delimiter})
    raw = f'"{others * 3} a"{delimiter}b\n1{delimiter}2\n'.encode()
    assert CsvFile(raw, [f"{others * 3} a", "b"]).delimiter == delimiter


# -- Excel ---------------------------------------------------------------------------------


def workbook(rows=ROWS, formulas=False):
    """A workbook with all sorts of things in it."""
    book = openpyxl.Workbook()
    book.active.title = "notes"
    book.active["A1"] = "=1+1"
    sheet = book.create_sheet("data")
    for row in rows:
        sheet.append(row)
    if formulas:
        for i in (2, 3, 4):
            sheet.cell(i, 5).value = f"=D{i}*0.4"
        for i in (5, 6):
            sheet.cell(i, 5).value = f'=IF(D{i}="","",D{i}*0.4)'
    for cell in sheet[4]:
        cell.number_format, cell.font = "0.00", Font(bold=True)
    for i in range(5, 9):  # rows that are formatted, and empty
        sheet.cell(i, 3).fill = PatternFill("solid", fgColor="FFFF00")
    sheet["B2"].comment = Comment("first run", "me")
    sheet.add_table(Table(displayName="Runs", ref="A1:F4"))
    chart = ScatterChart()
    chart.add_data(Reference(sheet, min_col=2, min_row=1, max_row=4), titles_from_data=True)
    sheet.add_chart(chart, "J1")
    return saved(book)


def saved(book):
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def edited(raw, part, change):
    """The same with another text in one part."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, change(content.decode()).encode() if name == part else content)
    return out.getvalue()


def calculated(raw, results):
    """The same with results of formulas, as a spreadsheet program saves them."""

    def fill(text):
        for cell, result in results.items():
            kind, value = (' t="str"', result) if result == "" else ("", result)
            pattern = rf'<c r="{cell}"( s="\d+")?><f>([^<]*)</f><v ?/>'
            text, n = re.subn(
                pattern, rf'<c r="{cell}"\g<1>{kind}><f>\g<2></f><v>{value}</v>', text
            )
            assert n == 1
        return text

    return edited(raw, "xl/worksheets/sheet2.xml", fill)


RESULTS = {"E2": 40, "E3": 48, "E4": 52, "E5": "", "E6": ""}


def parts(raw):
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def values(raw, title="data"):
    sheet = openpyxl.load_workbook(io.BytesIO(raw), data_only=True)[title]
    return [list(row) for row in sheet.iter_rows(max_col=6, values_only=True)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def proposed(capsys, *arguments):
    assert main(["next", "m.xlsx", "--sheet", "data", *arguments, "--out", "o.csv"]) == 0
    capsys.readouterr()
    return pd.read_csv("o.csv")


@pytest.mark.parametrize("formulas", [False, True])
def test_append_to_a_workbook(folder, capsys, formulas):
    raw = workbook(formulas=formulas)
    raw = calculated(raw, RESULTS) if formulas else raw
    Path("m.xlsx").write_bytes(raw)
    found = proposed(capsys, *FLAGS, *LIMIT, "--n", "2", "--append")
    now = Path("m.xlsx").read_bytes()
    new = found[["rpm", "load"]].to_numpy().tolist()
    assert values(now)[:4] == ROWS
    assert values(now)[4:6] == [[None, *x, None, None, None] for x in new]
    # All other parts are the same, the chart among them.
    changed = {name for name, content in parts(raw).items() if parts(now)[name] != content}
    assert changed == {"xl/worksheets/sheet2.xml", "xl/tables/table1.xml"}
    assert parts(now).keys() == parts(raw).keys()
    assert any("charts" in name for name in parts(now))
    sheet = openpyxl.load_workbook(io.BytesIO(now))["data"]
    assert sheet.tables["Runs"].ref == sheet.tables["Runs"].autoFilter.ref == "A1:F6"
    assert (sheet["B6"].number_format, sheet["B6"].font.b) == ("0.00", True)
    assert (sheet["F6"].number_format, sheet["F6"].value) == ("0.00", None)
    assert sheet["C6"].fill.fgColor.rgb == "00FFFF00"
    assert sheet["B2"].comment.text == "first run"
    if formulas:
        assert sheet["E2"].value == "=D2*0.4"
        assert sheet["E6"].value == '=IF(D6="","",D6*0.4)'
    # They are pending from now on.
    again = proposed(capsys, *FLAGS, *LIMIT, "--append")
    assert again["rpm"][0] not in set(found["rpm"])
    assert values(Path("m.xlsx").read_bytes())[6][1] == again["rpm"][0]


def test_same_proposals_from_csv_and_excel(folder, capsys):
    Path("m.xlsx").write_bytes(workbook())
    pd.DataFrame(ROWS[1:], columns=ROWS[0]).to_csv("m.csv", index=False)
    found = proposed(capsys, *FLAGS, *LIMIT, "--n", "3")
    assert main(["next", "m.csv", *FLAGS, *LIMIT, "--n", "3", "--out", "p.csv"]) == 0
    pd.testing.assert_frame_equal(found, pd.read_csv("p.csv"))


def test_new_rows_beside_those_of_another_writer(folder, capsys):
    # Rows on lines of their own, a gap between them, widths stated, blanks formatted.
    raw = workbook()

    def change(text):
        text = text.replace('<row r="4">', '<row r="4" spans="1:6" ht="20">')
        text = text.replace('<row r="5">', '\n<row r="5" spans="1:3" ht="30">')
        return re.sub(r'<row r="6">.*?</row>', "", text)

    Path("m.xlsx").write_bytes(edited(raw, "xl/worksheets/sheet2.xml", change))
    proposed(capsys, *FLAGS, "--n", "2", "--append")
    now = Path("m.xlsx").read_bytes()
    text = parts(now)["xl/worksheets/sheet2.xml"].decode()
    assert re.findall(r'<row r="(\d)"', text) == list("12345678")
    assert '<row r="4" spans="1:6" ht="20">' in text
    assert '<row r="5" ht="30">' in text
    assert all(row[1] for row in values(now)[4:6])


def test_what_depends_on_new_cells_is_worked_out_anew(folder, capsys):
    raw = edited(
        workbook(),
        "xl/workbook.xml",
        lambda text: re.sub("<calcPr[^>]*>", '<calcPr calcId="191029"/>', text),
    )
    Path("m.xlsx").write_bytes(raw)
    proposed(capsys, *FLAGS, "--append")
    text = parts(Path("m.xlsx").read_bytes())["xl/workbook.xml"].decode()
    assert '<calcPr fullCalcOnLoad="1" calcId="191029"/>' in text


@pytest.mark.parametrize(
    ("part", "old", "new"),
    [
        ("xl/worksheets/sheet2.xml", '<row r="5">', "<row>"),
        ("xl/worksheets/sheet2.xml", '<c r="A4" ', "<c "),
        ("xl/worksheets/sheet2.xml", "sheetData>", "x:sheetData>"),
        ("xl/worksheets/sheet2.xml", "</row>", "</row><!-- -->"),
    ],
)
def test_unusual_workbooks_are_left_alone(folder, capsys, part, old, new):
    def change(text):
        assert old in text
        text = text.replace("<worksheet ", f'<worksheet xmlns:x="{MAIN}" ')
        return text.replace(old, new)

    raw = edited(workbook(), part, change)
    Path("m.xlsx").write_bytes(raw)
    assert main(["next", "m.xlsx", "--sheet", "data", *FLAGS, "--append"]) == 1
    assert "rows cannot be added to this workbook, and nothing was changed" in (
        capsys.readouterr().err
    )
    assert Path("m.xlsx").read_bytes() == raw


MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def error_of(capsys, *arguments):
    assert main(["next", "m.xlsx", *arguments]) == 1
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    assert out == ""
    return err


def test_sheets(folder, capsys):
    Path("m.xlsx").write_bytes(workbook())
    error = error_of(capsys, *FLAGS)
    assert "m.xlsx has no column 'rpm'" in error
    assert "This is sheet 'notes' of notes, data; choose by --sheet." in error
    assert "no sheet 'Data'. Its sheets: notes, data." in error_of(
        capsys, *FLAGS, "--sheet", "Data"
    )


def test_formulas_without_results(folder, capsys):
    Path("m.xlsx").write_bytes(workbook(formulas=True))
    error = error_of(capsys, *FLAGS, "--sheet", "data")
    assert "row 2, column torque (cell E2): the result of its formula is not in the file" in error
    file = ExcelFile(calculated(workbook(formulas=True), RESULTS), "data")
    assert UNKNOWN not in [cell for row in file.cells for cell in row]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (datetime.datetime(2024, 5, 1), "it holds a date or time (2024-05-01 00:00:00). Excel"),
        (True, "'True' is not a number"),
        ("#DIV/0!", "'#DIV/0!' is not a number"),
        ("12,5", "'12,5' is not a plain number with a decimal point"),
    ],
)
def test_cells_that_are_no_numbers(folder, capsys, value, message):
    rows = [list(row) for row in ROWS]
    rows[2][2] = value
    Path("m.xlsx").write_bytes(workbook(rows))
    error = error_of(capsys, *FLAGS, "--sheet", "data")
    assert f"m.xlsx, row 3, column load (cell C3): {message}" in error


def test_numbers_that_are_text_and_units(folder, capsys):
    Path("m.xlsx").write_bytes(workbook())
    wanted = proposed(capsys, *FLAGS)
    rows = [list(row) for row in ROWS]
    rows[2][2] = " 14.5 "
    rows[0] = ["run", "rpm", "load\n", "force", "torque ", "temperature"]
    rows.insert(1, [None, "1/min", "%", "N", "Nm", None])
    Path("m.xlsx").write_bytes(workbook(rows))
    pd.testing.assert_frame_equal(proposed(capsys, *FLAGS), wanted)


def test_not_a_workbook(folder, capsys):
    Path("m.xlsx").write_text("rpm,load\n")
    assert "m.xlsx: it is not an Excel workbook that can be read" in error_of(capsys, *FLAGS)
    Path("m.xlsx").write_bytes(edited(workbook(), "xl/workbook.xml", lambda text: text[:-9]))
    assert "m.xlsx: it is not an Excel workbook that can be read" in error_of(capsys, *FLAGS)


def test_without_openpyxl(folder, capsys, monkeypatch):
    Path("m.xlsx").write_bytes(workbook())
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert 'pip install "sklearn-asal[data]"' in error_of(capsys, *FLAGS)


def test_letters_of_columns():
    for j in (0, 25, 26, 27, 701, 702, 16383):
        assert column_letters(j) == openpyxl.utils.get_column_letter(j + 1)
