"""``python -m sklearn_asal reproduce``: run an experiment of the paper, write its page."""

import shlex
import textwrap
from dataclasses import replace
from pathlib import Path

from .._arguments import positive
from .experiments import EXPERIMENTS
from .grid import Grid
from .page import write_page
from .paper import ELSEWHERE
from .scale import SCALES

_STOPPED = "stopped; finished cells are kept, and the same command goes on where it was"


def add_arguments(reproduce):
    """Add the arguments of ``reproduce`` to its parser.

    Parameters
    ----------
    reproduce : argparse.ArgumentParser
    """
    small = SCALES["small"]
    reproduce.add_argument(
        "name", nargs="?", choices=EXPERIMENTS, metavar="NAME", help=", ".join(EXPERIMENTS)
    )
    reproduce.add_argument(
        "--list", action="store_true", help="what there is, with the paper's labels"
    )
    reproduce.add_argument("--out", help="folder of the results; default: runs/reproduce/NAME")
    reproduce.add_argument("--page", help="file to write; default: reproduce-NAME.md in --out")
    reproduce.add_argument(
        "--scale",
        choices=("small", "paper"),
        default="small",
        help="small: our recipe with few steps, for two cores; paper: the paper's settings; "
        "default: %(default)s",
    )
    reproduce.add_argument(
        "--steps",
        type=positive,
        help=f"of each training; default: {small.steps}, at scale paper 10000 and for DAD 20000",
    )
    reproduce.add_argument(
        "--seeds",
        type=positive,
        help=f"of each training; default: {small.seeds}, at scale paper {SCALES['paper'].seeds}",
    )
    reproduce.add_argument(
        "--campaigns",
        type=positive,
        help=f"seeds of each benchmark task; default: {small.campaigns}",
    )
    reproduce.add_argument("--jobs", type=positive, default=1, help="processes; default: 1")
    reproduce.add_argument("--data-home", help="folder of the data files")
    reproduce.add_argument(
        "--quick", action="store_true", help="two steps, two queries: to see that all of it works"
    )
    reproduce.set_defaults(run=_reproduce, parser=reproduce, stopped=_STOPPED)


def _reproduce(arguments):
    if arguments.list:
        print(_listed())
        return 0
    if arguments.name is None:
        arguments.parser.error(f"NAME is needed, one of {', '.join(EXPERIMENTS)}; or --list")
    if arguments.quick and arguments.scale == "paper":
        raise ValueError("--quick and --scale paper exclude each other; leave one of them out.")
    experiment = EXPERIMENTS[arguments.name]
    stated = {
        name: getattr(arguments, name)
        for name in ("steps", "seeds", "campaigns")
        if getattr(arguments, name) is not None
    }
    scale = replace(SCALES["quick" if arguments.quick else arguments.scale], **stated)
    out = Path(arguments.out or Path("runs", "reproduce", experiment.name))
    page = Path(arguments.page or out / f"reproduce-{experiment.name}.md")
    _check_places(out, page, arguments.data_home)
    grid = Grid(experiment.cells(scale), out)
    failures = grid.run(arguments.jobs, arguments.data_home)
    results = grid.results()
    missing = [name for name in grid.cells if name not in results]
    if results:
        print(write_page(experiment, scale, results, page, _command(arguments), missing))
    if missing:
        print(f"{len(missing)} of {len(grid.cells)} cells have no result; the same command tries:")
        for error in dict.fromkeys(failures.values()):
            names = [name for name, why in failures.items() if why == error]
            print(f"- {', '.join(names)}: {error}")
        waiting = [name for name in missing if name not in failures]
        if waiting:
            print(f"- {', '.join(waiting)}: a cell that is needed failed")
    return 1 if missing else 0


def _check_places(out, page, data_home):
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out must be a folder; {out} is a file, so choose another one.")
    if page.is_dir():
        raise ValueError(f"--page must be a file to write, such as page.md; {page} is a folder.")
    if data_home is not None and not Path(data_home).expanduser().is_dir():
        raise ValueError(
            f"--data-home: there is no folder {data_home}; make it, or leave --data-home out for "
            "that of the environment variable SKLEARN_ASAL_DATA."
        )


def _command(arguments):
    """The command line, without what says where and not what."""
    words = ["python", "-m", "sklearn_asal", "reproduce", arguments.name]
    if arguments.scale != "small":
        words += ["--scale", arguments.scale]
    for name in ("steps", "seeds", "campaigns"):
        if getattr(arguments, name) is not None:
            words += [f"--{name}", str(getattr(arguments, name))]
    return shlex.join(words + ["--quick"] * arguments.quick)


def _listed():
    lines = []
    for experiment in EXPERIMENTS.values():
        lines += [f"{experiment.name}: {experiment.title} ({', '.join(experiment.labels)})"]
        lines += textwrap.wrap(experiment.about, 96, initial_indent="  ", subsequent_indent="  ")
    lines += ["", "At scale small:"]
    for cut in SCALES["small"].cuts():
        lines += textwrap.wrap(cut, 96, initial_indent="  - ", subsequent_indent="    ")
    lines += ["", "Of the paper's other tables and figures:"]
    lines += [f"  {label}: {where}" for label, where in ELSEWHERE.items()]
    return "\n".join(lines)
