"""Types of command line arguments, and checks of them."""

import argparse
import math
from pathlib import Path


def positive_number(text):
    """A number above zero."""
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text}")
    return value


def positive(text):
    """A whole number from 1."""
    return _from(1, text)


def not_negative(text):
    """A whole number from 0."""
    return _from(0, text)


def _from(least, text):
    value = int(text)
    if value < least:
        raise argparse.ArgumentTypeError(f"must be at least {least}, got {value}")
    return value


def check_figure(path, flag):
    """Raise unless a figure can be written there, before what is drawn is worked out.

    Parameters
    ----------
    path : str
    flag : str
        That named it.

    Raises
    ------
    ValueError
        Its folder is missing, or its format is unknown.
    """
    from matplotlib.backend_bases import FigureCanvasBase

    file, kinds = Path(path).absolute(), FigureCanvasBase.get_supported_filetypes()
    if not file.parent.is_dir():
        raise ValueError(f"{flag}: the folder of {file} does not exist; make it first.")
    if file.suffix[1:].lower() not in kinds or file.is_dir():
        raise ValueError(f"{flag} must be a file that ends in .{', .'.join(kinds)}; got {file}.")
