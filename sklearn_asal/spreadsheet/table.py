"""The table of proposals, for people and for programs."""

import math

import numpy as np

from .numbers import written


class Table:
    """Proposals, and what is expected of them.

    Parameters
    ----------
    inputs : sequence of str
    output : str
    limits : list of Limit
    X : ndarray of shape (n, n_features)
    report : Report
    """

    def __init__(self, inputs, output, limits, X, report):
        self._names, self._X = list(inputs), X
        self._p_safe = report.p_safe
        self._expected = {output: (report.y_mean, report.y_std)}
        if limits:
            shape = len(X), len(limits)
            means, stds = np.reshape(report.z_mean, shape), np.reshape(report.z_std, shape)
            for limit, mean, std in zip(limits, means.T, stds.T, strict=True):
                self._expected.setdefault(limit.column, (mean, std))
        self._numbers = {}

    def number(self, title, numbers):
        """Put a column of whole numbers first.

        Parameters
        ----------
        title : str
        numbers : list of int
        """
        self._numbers[title] = numbers

    def text(self):
        """The table as text, columns below each other.

        Returns
        -------
        str
        """
        columns = [[title, *map(str, numbers)] for title, numbers in self._numbers.items()]
        for name, values in zip(self._names, self._X.T, strict=True):
            columns.append([name, *map(written, values)])
        if self._p_safe is not None:
            columns.append(["probability safe", *map(probability, self._p_safe)])
        for name, (mean, std) in self._expected.items():
            columns.append([f"{name} expected", *map(expected, mean, std)])
        return aligned(list(zip(*columns, strict=True)))

    def cells(self):
        """The table as cells, each number one of its own.

        Returns
        -------
        list of list of (str or float)
        """
        columns = [[title, *numbers] for title, numbers in self._numbers.items()]
        for name, values in zip(self._names, self._X.T.tolist(), strict=True):
            columns.append([name, *values])
        if self._p_safe is not None:
            columns.append(["probability safe", *_short(self._p_safe)])
        for name, (mean, std) in self._expected.items():
            columns += [[f"{name} expected", *_short(mean)], [f"{name} std", *_short(std)]]
        return [list(line) for line in zip(*columns, strict=True)]


def _short(values):
    return [float(f"{value:.5g}") for value in values]


def expected(mean, std):
    """A prediction in words, such as "412 ± 15".

    Parameters
    ----------
    mean, std : float

    Returns
    -------
    str

    Examples
    --------
    >>> from sklearn_asal.spreadsheet.table import expected
    >>> expected(412.345, 15.2), expected(0.012345, 0.00123)
    ('412 ± 15', '0.0123 ± 0.0012')
    """
    places = 1 - math.floor(math.log10(std))
    if not -3 <= places <= 6:
        return f"{mean:.3g} ± {std:.2g}"
    places = max(places, 0)
    return f"{mean:.{places}f} ± {std:.{places}f}"


def probability(p):
    """A probability, which is never certain.

    Parameters
    ----------
    p : float

    Returns
    -------
    str
    """
    return "> 0.999" if p > 0.999 else f"{p:.3f}"


def aligned(lines):
    """Lines of a table, the columns below each other.

    Parameters
    ----------
    lines : list of list of str

    Returns
    -------
    str
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )
