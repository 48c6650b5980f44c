"""A campaign's log as a table, for people."""

import csv
import sys

from .file import CampaignLog


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
    cells = [header, *[[_short(cell) for cell in line] for line in lines]]
    widths = [max(len(line[j]) for line in cells) for j in range(len(header))]
    for line in cells:
        padded = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(padded).rstrip())


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
    first, n_features = events[0], len(events[0]["X"][0])
    names = first["feature_names"] or [f"x{j}" for j in range(n_features)]
    z = first["z"]
    n_limits = 0 if z is None else len(z[0]) if isinstance(z[0], list) else 1
    limits = first["limit_names"] or ["z"] if n_limits == 1 else []
    limits = first["limit_names"] or limits or [f"z{j}" for j in range(n_limits)]
    header = ["number", "time", "event", *names, "y", *limits, "status", "note"]
    lines, kept = [], []

    def outcomes(y, z, status):
        each = [None] * n_limits if z is None else z if isinstance(z, list) else [z]
        return [y, *each, status]

    def add(event, kind, x, y, z, status="ok", note=""):
        time = event["time"][:19].replace("T", " ")
        kept.append(len(lines))
        lines.append([None, time, kind, *x, *outcomes(y, z, status), note])

    for i, (x, y) in enumerate(zip(first["X"], first["y"], strict=True)):
        add(first, "initial", x, y, None if z is None else z[i])
    for event in events[1:]:
        if event["event"] == "tell":
            for i, x in enumerate(event["x"]):
                z_i = None if event["z"] is None else event["z"][i]
                status = "ok" if event["status"] is None else event["status"][i]
                add(event, "told", x, event["y"][i], z_i, status, event.get("note") or "")
        elif event["event"] == "correct":
            for i, position in enumerate(event["index"]):
                z_i = None if event["z"] is None else event["z"][i]
                status = "ok" if event["status"] is None else event["status"][i]
                line = lines[kept[position]]
                line[2] = "corrected"
                line[3 + n_features : -1] = outcomes(event["y"][i], z_i, status)
        elif event["event"] == "forget":
            for position in event["index"]:
                lines[kept[position]][2] = "forgotten"
            kept = [line for i, line in enumerate(kept) if i not in event["index"]]
    for position, line in enumerate(kept):
        lines[line][0] = position
    return header, lines


def _plain(cell):
    """A whole number without a decimal point, which a spreadsheet may take for text."""
    return repr(cell).removesuffix(".0") if isinstance(cell, float) else cell


def _short(cell):
    if cell is None:
        return ""
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)
