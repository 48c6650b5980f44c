"""``python -m sklearn_asal watch`` and ``report``."""

import argparse
import hashlib
import os
import sys
import threading
import webbrowser
from pathlib import Path

from ..log import CampaignLog
from ..log.record import record_of


def add_watch_arguments(parser):
    """Add the flags of the command ``watch``.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    """
    parser.description = (
        "Show a campaign in the browser, and draw it anew whenever its log grows. The page is for "
        "this machine alone, and the log is only read. Ctrl-C ends it."
    )
    _add_common(parser)
    parser.add_argument("--port", type=_port, default=0, help="default: a free one")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.set_defaults(run=watch)


def add_report_arguments(parser):
    """Add the flags of the command ``report``.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    """
    parser.description = "Write a campaign as one HTML file, for the records. The log is only read."
    _add_common(parser)
    parser.add_argument("--out", metavar="HTML", help="default: the log's name, and .html")
    parser.add_argument("--force", action="store_true", help="replace the file if it is there")
    parser.set_defaults(run=report)


def _add_common(parser):
    parser.add_argument("file", metavar="LOG", help="of a campaign, such as campaign.jsonl")
    parser.add_argument("--output", default="y", metavar="NAME", help="what the output is called")
    parser.add_argument(
        "--limits", nargs="+", metavar="NAME", help="what the safety measurements are called"
    )
    parser.add_argument(
        "--units",
        nargs="+",
        action="extend",
        default=[],
        type=_unit,
        metavar="NAME=UNIT",
        help="of inputs, output and safety measurements",
    )


def _port(text):
    port = int(text)
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"must be from 0 to 65535, got {port}")
    return port


def _unit(text):
    name, sign, unit = text.partition("=")
    if not (name and sign and unit):
        raise argparse.ArgumentTypeError(f"must be NAME=UNIT, such as speed=1/min; got {text}")
    return name, unit


def _names(arguments):
    from .content import Names

    return Names(arguments.output, arguments.limits, dict(arguments.units))


def watch(arguments):
    """Serve the page until Ctrl-C.

    What keeps the log from being shown is said in the terminal as well.

    Parameters
    ----------
    arguments : argparse.Namespace

    Raises
    ------
    ValueError
        The log is a folder or in none, or ``--limits`` or ``--units`` are not of the campaign.
    OSError
        The port cannot be had.
    """
    from .content import check_names
    from .server import Server, Watched

    path = Path(arguments.file)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; pass the log of a campaign, such as campaign.jsonl.")
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {path.parent} for {path.name}; check the path.")
    watched = Watched(path, _names(arguments))
    events, problem, is_broken = watched.parsed()
    if events is not None:
        check_names(record_of(events), watched.names)
    with Server(watched, arguments.port) as server:
        if problem:
            print(problem if is_broken else f"{problem} Waiting for it.", file=sys.stderr)
        print(f"{path} is shown at {server.url}\nCtrl-C ends it.", flush=True)
        if not arguments.no_browser:
            # Some browsers do not return before they are closed.
            threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
        try:
            server.serve_forever(poll_interval=0.1)
        except KeyboardInterrupt:
            print("\nended", flush=True)


def report(arguments):
    """Write the file.

    Parameters
    ----------
    arguments : argparse.Namespace

    Raises
    ------
    FileExistsError
        The file is there, and ``--force`` is not.
    ValueError, OSError
        The log cannot be read, or the file not be written, or ``--limits`` or ``--units`` are not
        of the campaign.
    """
    from .content import check_names, for_the_records, read
    from .figures import Figures
    from .markup import single_file

    path, names = Path(arguments.file), _names(arguments)
    out = path.with_suffix(".html") if arguments.out is None else Path(arguments.out)
    if out.is_dir():
        raise ValueError(f"--out: {out} is a folder; pass the name of a file.")
    if not out.parent.is_dir():
        raise ValueError(f"--out: there is no folder {out.parent}; make it first.")
    if out.exists() and os.path.samefile(out, path):
        raise ValueError(f"--out is the log itself: {out}. Choose another name.")
    if out.exists() and not arguments.force:
        raise FileExistsError(f"{out} is there already; pass --force to replace it, or --out.")
    content = path.read_bytes()
    events = CampaignLog(path).read(content)
    file = {
        "log": f"{path.name}, {len(content)} bytes",
        "SHA-256 of the log": hashlib.sha256(content).hexdigest(),
    }
    check_names(record_of(events), names)
    campaign = read(events, str(path), names)
    for remark in campaign.warnings:
        print(f"To be noted: {remark}", file=sys.stderr)
    page = for_the_records(campaign, f"Campaign {path.name}", names, Figures(), file)
    _write(out, single_file(page).encode(), arguments.force)
    print(out)


def _write(out, content, replace):
    """Write a file so that nobody ever sees half of it."""
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if not replace and out.exists():
            raise FileExistsError(f"{out} is there already; pass --force to replace it, or --out.")
        os.replace(temporary, out)
    finally:
        temporary.unlink(missing_ok=True)
