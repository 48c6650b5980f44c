"""Excel workbooks, by openpyxl."""

import io
import warnings

from ..datasets._files import optional
from .excel_rows import with_rows
from .numbers import written

#: A formula whose result is not in the file.
UNKNOWN = object()


class ExcelFile:
    """The cells of a sheet, and where rows are to be added.

    Parameters
    ----------
    raw : bytes
        What is in the file.
    sheet : str or None
        Its title; None means the first.

    Attributes
    ----------
    cells : list of list of object
        Row by row; ``UNKNOWN`` for a formula whose result is not in the file.
    decimal : str
        Of numbers that are text.

    Raises
    ------
    ImportError
        openpyxl is not installed.
    ValueError
        Not a workbook, or no such sheet.
    """

    decimal = "."

    def __init__(self, raw, sheet):
        self._raw = raw
        results, formulas = _workbook(raw, data_only=True), _workbook(raw)
        self.titles = [one.title for one in results.worksheets]
        if sheet is not None and sheet not in self.titles:
            raise ValueError(f"it has no sheet {sheet!r}. Its sheets: {', '.join(self.titles)}.")
        self.title = self.titles[0] if sheet is None else sheet
        stated = formulas[self.title]
        self.cells = [
            [
                UNKNOWN
                if cell.value is None
                and cell.data_type == "n"
                and stated.cell(cell.row, cell.column).data_type == "f"
                else cell.value
                for cell in row
            ]
            for row in results[self.title].iter_rows()
        ]

    def settle_decimal(self, cells):
        """Nothing to settle: numbers are numbers.

        Parameters
        ----------
        cells : iterable of str
        """

    def with_rows(self, header, rows):
        """The workbook with rows added, in the style of the row above.

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

        Raises
        ------
        ValueError
            The workbook is written in an unusual manner.
        """
        first = 1 + max(i for i, cells in enumerate(self.cells) if any(map(_is_filled, cells)))
        above = first if first > header + 1 else -1  # not the style of the names
        numbered = dict(enumerate(rows, first + 1))
        content = with_rows(self._raw, self.title, numbered, above)
        self._check_written(content, first, rows)
        return content, first

    def _check_written(self, content, first, rows):
        """Raise unless all that was there is there, and the new rows are."""
        new, old = ExcelFile(content, self.title).cells, self.cells[:first]
        for i, row in enumerate(rows, first):
            old = [*old, [row.get(j) for j in range(len(new[i]))]]
            new[i] = [cell if j in row else None for j, cell in enumerate(new[i])]
        if [_trimmed(cells) for cells in new[: len(old)]] != [_trimmed(cells) for cells in old]:
            raise RuntimeError("the rows were not written as they should be; nothing was changed.")

    def table(self, lines):
        """A table as CSV, for Excel to open.

        Parameters
        ----------
        lines : list of list of (str or float)

        Returns
        -------
        bytes
        """
        from .csv_file import lines_of

        texts = [[cell if isinstance(cell, str) else written(cell) for cell in c] for c in lines]
        return lines_of(texts, ",", "\n").encode("utf-8-sig")


def _workbook(raw, **options):
    openpyxl = optional("openpyxl")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about what only Excel shows
            book = openpyxl.load_workbook(io.BytesIO(raw), **options)
    except Exception as error:  # whatever openpyxl makes of a damaged file
        raise ValueError(
            "it is not an Excel workbook that can be read. Open it in Excel and save it as .xlsx, "
            f"without a password ({type(error).__name__}: {' '.join(str(error).split())})."
        ) from error
    if not book.worksheets:
        raise ValueError("it has no sheet of cells.")
    return book


def _is_filled(cell):
    return cell is not None and (not isinstance(cell, str) or bool(cell.strip()))


def _trimmed(cells):
    """Cells less empty ones at the end."""
    filled = [j for j, cell in enumerate(cells) if cell is not None]
    return cells[: filled[-1] + 1] if filled else []
