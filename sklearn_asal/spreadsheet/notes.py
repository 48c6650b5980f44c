"""Warnings and errors of the library in the words of the command line."""

import contextlib
import re
import sys
import warnings

from ..exceptions import DataScaleWarning, SafetyWarning
from ..limits import safety_rule
from .flags import thresholds

# Of messages that speak of parameters, what to say in their place.
_WORDS = (
    (r"set bounds=\[\(low, high\), \.\.\.\] in the units of X", "state other --bounds"),
    (r"If X has", "If the file has"),
    (r"the units of X\b", "the units of the file"),
    (r"set bounds\.", "state other --bounds."),
    (r", which is safe with a probability of [-+.\de]+\d", ""),  # as the table says
    (r"safety_threshold and safe_when \(and z_scale, of a policy by name\)", "--limit"),
    (r", by a larger gamma or on_no_safe='least_unsafe'", " by a larger --gamma"),
    (r" on_no_safe='least_unsafe' proposes a point all the same\.", ""),
    (r"safety_threshold and safe_when", "--limit"),
    (r"safety_threshold and bounds", "--limit and --bounds"),
    (r"set safety_threshold between", "state a --limit between"),
    (r"; or pass booleans, True for safe", ""),
    (r"(?<![-\w])max_step\b", "--max-step"),
    (r"\bconstraints\b(?=:|\.| and| leave| allow)", "--constraint"),
    (r"^fixed(?=:)", "--fixed"),
    (r"(?<=satisfies )fixed\b|(?<=and )fixed\b(?=\.| leave| allow)", "--fixed"),
    (r" or pass a pool with new candidates", " or name other candidates by --pool"),
    (r"\(n_queries\)", "(--n)"),
    (r"\bthe pool\b", "the candidates"),
    (r"(?<![-\w])gamma=", "--gamma "),
    (r"forget them and tell them again", "correct the file"),
)


class Notes:
    """Remarks on standard error, each of them once."""

    def __init__(self):
        self._said = set()

    def say(self, text):
        """Print a remark, if it is new.

        Parameters
        ----------
        text : str
        """
        if text not in self._said:
            self._said.add(text)
            print(f"Note: {text}", file=sys.stderr)


@contextlib.contextmanager
def in_plain_words(note, inputs, limits):
    """Warnings become remarks, and errors speak of columns and flags.

    Parameters
    ----------
    note : callable
        What to do with a remark.
    inputs : sequence of str
        Names of the features.
    limits : list of Limit

    Raises
    ------
    ValueError
        As the library does.
    """
    show = warnings.showwarning

    def showwarning(message, category, *place, **options):
        if issubclass(category, (DataScaleWarning, SafetyWarning)):
            note(plain(str(message), inputs, limits))
        else:
            show(message, category, *place, **options)

    with warnings.catch_warnings():
        for category in (DataScaleWarning, SafetyWarning):
            warnings.simplefilter("always", category)
        warnings.showwarning = showwarning
        try:
            yield
        except ValueError as error:
            raise ValueError(plain(str(error), inputs, limits)) from error


def plain(message, inputs, limits):
    """A message of the library in the words of the command line.

    Parameters
    ----------
    message : str
    inputs : sequence of str
    limits : list of Limit

    Returns
    -------
    str
    """
    if limits:
        rule = f"safe means {' and '.join(map(str, limits))}"
        message = message.replace(safety_rule(*thresholds(limits)), rule)
    message = re.sub(r"\bfeature (\d+)\b", lambda found: inputs[int(found[1])], message)
    for name in inputs:
        message = message.replace(f"feature {name!r}", name)
    message = re.sub(
        r"\bz(?:\[(\d+)\])?(?= has the values)",
        lambda found: limits[int(found[1] or 0)].column,
        message,
    )
    for old, new in _WORDS:
        message = re.sub(old, new, message)
    return message
