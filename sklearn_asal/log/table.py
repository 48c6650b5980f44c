"""A campaign's log as a table, for people."""

import csv
import sys

from .file import CampaignLog
from .record import record_of


def add_arguments(parser):
    """Add the flags of the command ``log``.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    """
    parser.add_argument("file", help="the log of a campaign, such as campaign.jsonl")
    parser.add_argument("--csv", action="store_true", help="as CSV, for a spreadsheet")
    parser.set_defaults(run=_run)


def _run(arguments):
    header, lines = table(CampaignLog(arguments.file).read())
    if arguments.csv:
        plain = [[_plain(cell) for cell in line] for line in lines]
        csv.writer(sys.stdout, lineterminator="\n").writerows([header, *plain])
        return
    cells = [[_short(cell) for cell in line] for line in (header, *lines)]
    # Notes come last, and are of any length.
    widths = [max(len(line[j]) for line in cells) for j in range(len(header) - 1)]
    for line in cells:
        padded = (cell.rjust(width) for cell, width in zip(line, widths, strict=False))
        print("  ".join([*padded, line[-1]]).rstrip())


def table(events):
    """Measurements in the order in which they were told, with what became of them.

    Parameters
    ----------
    events : list of dict
        Of :meth:`CampaignLog.read`.

    Returns
    -------
    header : list of str
    lines : list of list
        Of text and numbers; None where there is nothing. The first is the position in ``X_``.
    """
    record = record_of(events)
    header = ["number", "time", "event", *record.feature_names, "y", *record.limit_names]
    n_limits, lines = len(record.limit_names), []
    for run in record.runs:
        z = [None] * n_limits if run.z is None else run.z if isinstance(run.z, list) else [run.z]
        time = run.time[:19].replace("T", " ")
        lines.append([run.number, time, run.event, *run.x, run.y, *z, run.status, run.note])
    return [*header, "status", "note"], lines


def _plain(cell):
    """A whole number without a decimal point, which a spreadsheet may take for text."""
    return repr(cell).removesuffix(".0") if isinstance(cell, float) else cell


def _short(cell):
    if cell is None:
        return ""
    return f"{cell:.6g}" if isinstance(cell, float) else _printable(str(cell))


def _printable(text):
    """A text on one line, without signs that a terminal would obey."""
    signs = (
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )
    return "".join(signs)
