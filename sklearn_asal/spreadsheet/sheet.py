"""The table in a file: named columns, and numbers beneath."""

import datetime
import re

from ..names import suggestion
from .csv_file import HEADER_ROWS
from .excel_file import UNKNOWN
from .excel_rows import column_letters
from .numbers import is_empty, parsed

# Characters of a cell in a message.
_LONGEST = 40
# What is meant for a number, well written or not.
_MEANT = re.compile(r"[-+\u2212]?[\d.,'\s]*\d[\d.,'\s]*(e[-+]?\d+)?\s*%?", re.IGNORECASE)


class Sheet:
    """The table in a file.

    Parameters
    ----------
    path : str
        What messages call the file.
    file : CsvFile or ExcelFile
    names : sequence of str
        Columns that are needed.
    numeric : sequence of str
        Those of them that hold numbers.
    note : callable
        What to do with a remark.

    Attributes
    ----------
    header : int
        Position of the row of names: the one that has most of them.
    columns : dict of str to int
        Positions of the columns needed.
    rows : list of int
        Positions of the rows beneath that may hold data.

    Raises
    ------
    ValueError
        A column is missing, or there is more than one of its name.
    """

    def __init__(self, path, file, names, numeric, note):
        self.path, self.file = path, file
        self.header, titles = self._found_header(names)
        self._check(names, titles)
        self.columns = {name: titles.index(name) for name in names}
        self.rows = list(range(self.header + 1, len(file.cells)))
        self._skip_units(numeric, note)
        texts = (self.cell(i, name) for i in self.rows for name in numeric)
        file.settle_decimal([text for text in texts if isinstance(text, str)])
        self._check_widths(len(titles))

    def cell(self, row, name):
        """What a cell holds; None beyond the end of its row.

        Parameters
        ----------
        row : int
            Position of the row.
        name : str

        Returns
        -------
        object
        """
        cells, j = self.file.cells[row], self.columns[name]
        return cells[j] if j < len(cells) else None

    def place(self, row, name):
        """Where a cell is, in words.

        Parameters
        ----------
        row, name
            See :meth:`cell`.

        Returns
        -------
        str
        """
        return f"row {row + 1}, column {name} (cell {column_letters(self.columns[name])}{row + 1})"

    def number(self, row, name):
        """The number in a cell.

        Parameters
        ----------
        row, name
            See :meth:`cell`.

        Returns
        -------
        float
            NaN where it is empty.

        Raises
        ------
        ValueError
            It holds something else.
        """
        cell = self.cell(row, name)
        if is_empty(cell):
            return float("nan")
        value = None
        if isinstance(cell, str):
            value = parsed(cell, self.file.decimal)
        elif isinstance(cell, (int, float)) and not isinstance(cell, bool):
            value = float(cell)
        if value is None:
            raise ValueError(f"{self.path}, {self.place(row, name)}: {self._why(cell)}")
        return value

    def _why(self, cell):
        """Why a cell is no number, and what to do."""
        if cell is UNKNOWN:
            return (
                "the result of its formula is not in the file. Open the file in Excel or "
                "LibreOffice, and save it."
            )
        if isinstance(cell, (datetime.date, datetime.time, datetime.timedelta)):
            return (
                f"it holds a date or time ({cell}). Excel makes dates of numbers such as 1.5; "
                "format the cell as a number, and enter it again."
            )
        if isinstance(cell, str) and _MEANT.fullmatch(cell.strip()):
            sign = {".": "a decimal point", ",": "a decimal comma"}[self.file.decimal]
            return (
                f"{shown(cell)} is not a plain number with {sign}, as numbers of this file are "
                "read. Write all of them in one way, without thousands separators or percent."
            )
        return (
            f"{shown(cell)} is not a number. Correct it, or clear the cell if nothing was measured."
        )

    def _found_header(self, names):
        """Position of the row that has most of the names, and what its cells say."""
        best = 0, 0, []
        for i, cells in enumerate(self.file.cells[:HEADER_ROWS]):
            titles = [title_of(cell) for cell in cells]
            n = len(set(names) & set(titles))
            if n > best[0] or (not any(best[2]) and any(titles)):
                best = n, i, titles
        return best[1:]

    def _check(self, names, titles):
        there = [title for title in titles if title]
        missing = [name for name in names if name not in there]
        if missing:
            raise ValueError(
                f"{self.path} has no column {' and no column '.join(map(repr, missing))}"
                f"{suggestion(missing[0], there)} Its columns (row {self.header + 1}): "
                f"{', '.join(there) or 'none'}.{self._other_sheets()}"
                + " Names are separated by spaces, not by commas."
                * ("," in "".join(missing))
            )
        for name in names:
            at = [column_letters(j) for j, title in enumerate(titles) if title == name]
            if len(at) > 1:
                raise ValueError(
                    f"{self.path} has {len(at)} columns {name!r}: {', '.join(at)}. Rename all but "
                    "the one that is meant."
                )

    def _other_sheets(self):
        titles = getattr(self.file, "titles", [])
        if len(titles) < 2:
            return ""
        return f" This is sheet {self.file.title!r} of {', '.join(titles)}; choose by --sheet."

    def _skip_units(self, numeric, note):
        """Leave out a row of units right beneath the names."""
        first = next((i for i in self.rows if any(map(title_of, self.file.cells[i]))), None)
        if first is None:
            return
        cells = [self.cell(first, name) for name in numeric]
        cells = [cell for cell in cells if not is_empty(cell)]
        if cells and not any(map(_is_meant_for_number, cells)):
            self.rows = [i for i in self.rows if i > first]
            note(
                f"row {first + 1} of {self.path} has no numbers ({', '.join(map(title_of, cells))})"
                ": it is taken for units, and left out."
            )

    def _check_widths(self, width):
        for i in self.rows:
            if any(map(title_of, self.file.cells[i][width:])):
                raise ValueError(
                    f"{self.path}, row {i + 1}: it has more cells than row {self.header + 1}, "
                    "which names the columns. Name the others, too. Or are there decimal commas "
                    "in a file that is separated by commas? Save it separated by semicolons."
                )


def title_of(cell):
    """A cell as the name of a column, each gap in it one space.

    Parameters
    ----------
    cell : object

    Returns
    -------
    str
    """
    return "" if cell is None else " ".join(str(cell).split())


def shown(cell):
    """A cell in a message, not too long.

    Parameters
    ----------
    cell : object

    Returns
    -------
    str
    """
    text = title_of(cell)
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")


def _is_meant_for_number(cell):
    return not isinstance(cell, str) or _MEANT.fullmatch(cell.strip()) is not None
