"""Rows added to a workbook, whose other parts stay as they are.

openpyxl would lose charts, pictures and the results of formulas when it saves.
"""

import io
import posixpath
import re
import zipfile
from xml.etree import ElementTree

from .numbers import written

_DATA = re.compile(r"<sheetData\s*/>|<sheetData>(.*)</sheetData>", re.DOTALL)
_ROW = re.compile(r"<row\b([^>]*?)(?:/>|>(.*?)</row>)", re.DOTALL)
_CELL = re.compile(r"<c\b([^>]*?)(?:/>|>(.*?)</c>)", re.DOTALL)
_MAIN = "xl/workbook.xml"


def with_rows(raw, title, rows, above):
    """A workbook with rows written to a sheet.

    Parameters
    ----------
    raw : bytes
        The workbook.
    title : str
        Of the sheet.
    rows : dict of int to (dict of int to float)
        By the number of the row, counted from 1, values by the position of their column.
    above : int
        The row whose style they take where they have none.

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        The sheet is written in another manner than the usual.
    """
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        parts = {info: archive.read(info) for info in archive.infolist()}
    named = {info.filename: content for info, content in parts.items()}
    try:
        changed = _changed(named, title, rows, above)
    except (KeyError, UnicodeDecodeError, ElementTree.ParseError) as error:
        raise _unusual() from error
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for info, content in parts.items():
            text = changed.get(info.filename)
            archive.writestr(info, content if text is None else text.encode())
    return out.getvalue()


def _changed(named, title, rows, above):
    """The parts of a workbook that change, by name."""
    sheet = _part_of(named, title)
    changed = {sheet: _sheet_with(named[sheet].decode(), rows, above)}
    for table in _targets(named, sheet, "/table").values():
        changed[table] = _table_with(named[table].decode(), above, max(rows))
    # What depends on the new cells is worked out when the file is opened.
    changed[_MAIN] = re.sub(
        r"<calcPr\b(?![^>]*fullCalcOnLoad)", '<calcPr fullCalcOnLoad="1"', named[_MAIN].decode()
    )
    return changed


def _part_of(named, title):
    """The part of the workbook that holds a sheet."""
    targets = _targets(named, _MAIN, "/worksheet")
    for element in ElementTree.fromstring(named[_MAIN]).iter():
        if element.tag.endswith("}sheet") and element.get("name") == title:
            for key, value in element.attrib.items():
                if key.endswith("}id") and value in targets:
                    return targets[value]
    raise _unusual()


def _targets(named, part, kind):
    """Parts that a part refers to, by identifier."""
    folder, name = posixpath.split(part)
    content = named.get(f"{folder}/_rels/{name}.rels")
    if content is None:
        return {}
    found = [one for one in ElementTree.fromstring(content) if one.get("Type", "").endswith(kind)]
    paths = (posixpath.normpath(posixpath.join("/", folder, one.get("Target"))) for one in found)
    return {one.get("Id"): path.lstrip("/") for one, path in zip(found, paths, strict=True)}


def _sheet_with(text, rows, above):
    data = _DATA.search(text)
    if not data:
        raise _unusual()
    known = {int(_attribute(row[1], "r")): row for row in _all(_ROW, data[1])}
    pieces = {number: row[0] for number, row in known.items()}
    styles = {letters: _attribute(cell[1], "s") for letters, cell in _cells(known.get(above))}
    for number, values in rows.items():
        pieces[number] = _row_with(number, known.get(number), values, styles)
    body = "".join(pieces[number] for number in sorted(pieces))
    text = f"{text[: data.start()]}<sheetData>{body}</sheetData>{text[data.end() :]}"
    return _reaching(text, "dimension", max(rows))


def _row_with(number, row, values, styles):
    """A row with some values, all its other cells as they are."""
    cells = dict(_cells(row))
    pieces = {letters: cell[0] for letters, cell in cells.items()}
    for letters, style in styles.items():
        if letters not in pieces and style:
            pieces[letters] = f'<c r="{letters}{number}" s="{style}"/>'
    for j, value in values.items():
        letters = column_letters(j)
        style = _attribute(cells[letters][1], "s") if letters in cells else styles.get(letters)
        style = f' s="{style}"' if style else ""
        pieces[letters] = f'<c r="{letters}{number}"{style}><v>{written(value)}</v></c>'
    kept = f' r="{number}"' if row is None else re.sub(r'\sspans="[^"]*"', "", row[1])
    body = "".join(pieces[letters] for letters in sorted(pieces, key=lambda one: (len(one), one)))
    return f"<row{kept}>{body}</row>"


def _cells(row):
    """The letters of each cell of a row, and the cell."""
    cells = [] if row is None else _all(_CELL, row[2])
    return [(_attribute(cell[1], "r").rstrip("0123456789"), cell) for cell in cells]


def _all(pattern, text):
    """The rows, or the cells, that a text consists of; each says where it is."""
    found = list(pattern.finditer(text or ""))
    if pattern.sub("", text or "").strip() or not all(_attribute(one[1], "r") for one in found):
        raise _unusual()
    return found


def _table_with(text, last, new_last):
    """A table of Excel that ends at one row, and is to end at another."""
    ref = re.search(r'<table\b[^>]*\sref="([A-Z]+\d+:[A-Z]+)(\d+)"', text)
    if not ref or int(ref[2]) != last or 'totalsRowCount="' in text:
        return text
    return text.replace(f'ref="{ref[1]}{last}"', f'ref="{ref[1]}{new_last}"')


def _reaching(text, element, last):
    """An element that says how far the cells reach, at least to a row."""

    def longer(found):
        return found[0] if int(found[2]) >= last else f"{found[1]}{last}{found[3]}"

    return re.sub(rf'(<{element} ref="[A-Z]+\d+:[A-Z]+)(\d+)(")', longer, text, count=1)


def _attribute(attributes, name):
    found = re.search(rf'(?:^|\s){name}="([^"]*)"', attributes)
    return found[1] if found else ""


def column_letters(j):
    """The letters of a column, as spreadsheet programs show them.

    Parameters
    ----------
    j : int
        Counted from 0.

    Returns
    -------
    str

    Examples
    --------
    >>> from sklearn_asal.spreadsheet.excel_rows import column_letters
    >>> column_letters(0), column_letters(25), column_letters(26)
    ('A', 'Z', 'AA')
    """
    text = ""
    while j >= 0:
        text, j = chr(ord("A") + j % 26) + text, j // 26 - 1
    return text


def _unusual():
    return ValueError(
        "rows cannot be added to this workbook, and nothing was changed. Open it in Excel, save "
        "it as .xlsx, and try again; or write the proposals by --out, and copy them."
    )
