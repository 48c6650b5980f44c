"""What an experiment is: its cells, and the tables that are made of their results."""

import dataclasses
import math
from collections.abc import Callable

from ..benchmarks.summary import mean_and_error, plus_minus


@dataclasses.dataclass(frozen=True)
class Number:
    """A mean and its standard error, as a table shows it.

    Parameters
    ----------
    mean : float
    error : float
        NaN where there is none.
    text : str, optional
        In place of both, as for "< 0.3".
    """

    mean: float
    error: float = math.nan
    text: str | None = None

    def __str__(self):
        return plus_minus((self.mean, self.error)) if self.text is None else self.text


def number(values):
    """Mean and standard error of what is known.

    Parameters
    ----------
    values : iterable of float or None

    Returns
    -------
    Number or None
        None of no values.
    """
    known = [value for value in values if value is not None]
    return Number(*mean_and_error(known)) if known else None


def three_digits(value):
    """A number with three digits and no error.

    Parameters
    ----------
    value : float

    Returns
    -------
    Number
    """
    return Number(value, text=f"{value:.3g}" if value < 1000 else f"{value:.0f}")


@dataclasses.dataclass
class Table:
    """One of the paper's tables or figures, with our numbers.

    Parameters
    ----------
    title : str
    label : str
        Of the paper.
    keys : tuple of str
        What rows are told apart by.
    columns : tuple of str
        Quantities.
    scale : {"linear", "log"}
        Of the quantities in the picture.
    along : tuple of float
        Where the columns are values of one quantity along another, the values of that, for a
        picture with a line for each row.
    across : str
        What that is.
    drawn : tuple of str
        The columns in a picture with a point for each row; all of them if empty.
    """

    title: str
    label: str
    keys: tuple
    columns: tuple
    scale: str = "linear"
    along: tuple = ()
    across: str = ""
    drawn: tuple = ()
    rows: list = dataclasses.field(default_factory=list)

    def add(self, keys, ours, paper=()):
        """Add a row.

        Parameters
        ----------
        keys : tuple
        ours : sequence of Number or None
            One for each column.
        paper : sequence of Number or None
            The paper's figures; empty where it gives none.
        """
        paper = tuple(paper) or (None,) * len(self.columns)
        self.rows.append((tuple(map(str, keys)), tuple(ours), paper))


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A grid and what becomes of it.

    Parameters
    ----------
    name : str
        Of the command.
    title : str
    labels : tuple of str
        Of the paper's tables and figures.
    about : str
        What is done, and what is cut down at scale "small", in words.
    cells : callable
        Takes a Scale, returns a list of Cell.
    tables : callable
        Takes a Scale and the results by cell; returns a list of Table.
    """

    name: str
    title: str
    labels: tuple
    about: str
    cells: Callable
    tables: Callable
    says: str = ""
