"""Types of command line arguments."""

import argparse
import math


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
