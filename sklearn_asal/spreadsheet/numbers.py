"""Numbers in cells and on the command line."""

import math
import re

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
# What is written where there is no number; the last two are Excel's, in English and German.
_EMPTY = "", "nan", "na", "n/a", "none", "null", "#n/a", "#nv"


def parsed(text, decimal="."):
    """The number that a text is, without thousands separators.

    Parameters
    ----------
    text : str
    decimal : {".", ","}, default="."
        The decimal sign.

    Returns
    -------
    float or None
        None for what is no finite number.
    """
    text = text.strip().replace("\u2212", "-")  # the minus sign of typesetting
    if decimal == ",":
        text = text.replace(".", "?").replace(",", ".")
    number = float(text) if _NUMBER.fullmatch(text) else math.inf
    return number if math.isfinite(number) else None


def is_empty(cell):
    """Whether a cell holds nothing, or says that there is nothing.

    Parameters
    ----------
    cell : object

    Returns
    -------
    bool
    """
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in _EMPTY)


def written(value, decimal="."):
    """A number as the shortest text that stands for it.

    Parameters
    ----------
    value : float
    decimal : {".", ","}, default="."

    Returns
    -------
    str

    Examples
    --------
    >>> from sklearn_asal.spreadsheet.numbers import written
    >>> written(2350.0), written(34.27, ","), written(-0.0)
    ('2350', '34,27', '0')
    """
    return repr(float(value) + 0.0).removesuffix(".0").replace(".", decimal)


def decimal_sign(texts):
    """The decimal sign of some texts.

    Parameters
    ----------
    texts : iterable of str

    Returns
    -------
    {".", ","} or None
        None where no number has one; the first that has one decides.
    """
    for text in texts:
        for sign in ".,":
            if sign in text and parsed(text, sign) is not None:
                return sign
    return None
