"""CSV files: encoding, delimiter and decimal sign are found out, and kept."""

import codecs
import csv
import io
import re

from .numbers import decimal_sign, written

_DELIMITERS = ";\t,|"
# The names of the columns are looked for in so many rows.
HEADER_ROWS = 20
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Excel's first line that names the delimiter, and shows as no row.
_SEPARATOR = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)


class CsvFile:
    """The cells of a CSV file, and where rows are to be added.

    Parameters
    ----------
    raw : bytes
        What is in the file.
    names : sequence of str
        Columns that it should have; the delimiter is the one that finds most of them.

    Attributes
    ----------
    cells : list of list of str
        Row by row, as a spreadsheet program shows them.
    delimiter : str
    decimal : {".", ","}
        What :meth:`settle_decimal` found.

    Raises
    ------
    ValueError
        Not a text file, or not one of cells.
    """

    def __init__(self, raw, names):
        self._raw = raw
        self.text, self._mark, self._encoding = _decoded(raw)
        separator = _SEPARATOR.match(self.text)
        start = separator.end() if separator else 0
        try:
            if separator:
                self.delimiter = separator[1]
            else:
                self.delimiter = max(_DELIMITERS, key=lambda one: _found(self.text, one, names))
            records = list(_records(self.text, self.delimiter, start))
        except csv.Error as error:
            raise ValueError(f"it cannot be read as CSV: {error}.") from error
        self.cells = [cells for cells, _ in records]
        self._ends = [end for _, end in records]
        self.decimal = "."

    def settle_decimal(self, cells):
        """Find the decimal sign of the cells that matter.

        Parameters
        ----------
        cells : iterable of str
        """
        # A comma between cells is none inside them, and a semicolon is there because of it.
        found = "." if self.delimiter == "," else decimal_sign(cells)
        self.decimal = found or ("," if self.delimiter == ";" else ".")

    def with_rows(self, header, rows):
        """The file with rows added, all of its own bytes unchanged.

        Parameters
        ----------
        header : int
            Position of the row of names.
        rows : list of dict of int to float
            Values by the position of their column.

        Returns
        -------
        content : bytes
        first : int
            Position of the first row added: after the last that is not empty.
        """
        filled = [i for i, cells in enumerate(self.cells) if any(map(str.strip, cells))]
        end = self._ends[filled[-1]]
        head, tail = self.text[:end], self.text[end:]
        newline = re.search(r"\r\n|\n|\r", self.text)
        newline = newline[0] if newline else "\n"
        lead = "" if head.endswith(("\n", "\r")) else newline
        width = len(self.cells[header])
        lines = [
            [written(row[j], self.decimal) if j in row else "" for j in range(width)]
            for row in rows
        ]
        new = head + lead + lines_of(lines, self.delimiter, newline) + tail
        return self._mark + new.encode(self._encoding), filled[-1] + 1

    def table(self, lines):
        """A table in the manner of this file.

        Parameters
        ----------
        lines : list of list of (str or float)

        Returns
        -------
        bytes
        """
        texts = [
            [cell if isinstance(cell, str) else written(cell, self.decimal) for cell in line]
            for line in lines
        ]
        return self._mark + lines_of(texts, self.delimiter, "\n").encode(self._encoding)


def lines_of(lines, delimiter, newline):
    """Lines of CSV.

    Parameters
    ----------
    lines : list of list of str
    delimiter, newline : str

    Returns
    -------
    str
    """
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, lineterminator=newline).writerows(lines)
    return out.getvalue()


def _decoded(raw):
    """Text, byte order mark and encoding."""
    known = (pair for pair in _MARKS if raw.startswith(pair[0]))
    mark, encoding = next(known, (b"", "utf-8"))
    try:
        text = raw[len(mark) :].decode(encoding)
    except UnicodeDecodeError:
        # What Excel writes on Windows; the rest has a character for every byte.
        encoding, mark = "cp1252", b""
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            encoding = "latin-1"
            text = raw.decode(encoding)
    if "\0" in text or raw.startswith(b"PK\3\4"):
        raise ValueError("it is not a text file. An Excel workbook has to be named .xlsx.")
    return text, mark, encoding


def _records(text, delimiter, start=0):
    """Yield the cells of each row, and the position in the text where it ends."""
    end = start

    def lines():
        nonlocal end
        for line in io.StringIO(text[start:], newline=""):
            end += len(line)
            yield line

    for cells in csv.reader(lines(), delimiter=delimiter, skipinitialspace=True):
        yield cells, end


def _found(text, delimiter, names):
    """How many of the names a delimiter finds in one row, and how many cells."""
    rows = [cells for cells, _ in zip(_records(text, delimiter), range(HEADER_ROWS), strict=False)]
    rows = [[" ".join(cell.split()) for cell in cells[0]] for cells in rows]
    most = max((len(set(names) & set(cells)) for cells in rows), default=0)
    return most, max(map(len, rows), default=0)
