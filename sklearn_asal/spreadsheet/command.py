"""``python -m sklearn_asal next``: the next experiments from a spreadsheet."""

import argparse
import sys
from pathlib import Path

from .._arguments import positive
from ..queriers.cut_short import OK, STATUSES
from .campaign import propose
from .files import contents, opened, replace
from .flags import limits_of
from .notes import Notes, in_plain_words
from .observed import observed, rows_of_pool
from .sheet import Sheet, title_of
from .stated import check_columns, remark, stated_by
from .table import Table

_EXAMPLE = """example:
  python -m sklearn_asal next measurements.csv --inputs rpm load --output torque \\
      --limit "temperature <= 850" --bounds rpm=900:4000 load=0:60 --append

Each row of the file is an experiment. Rows without an output are pending: they are running, and
are not proposed again. Nothing is written without --append or --out."""


def add_arguments(parser):
    """Add the arguments of ``next`` to its parser.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    """
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.usage = (
        "%(prog)s FILE --inputs COLUMN ... --output COLUMN --bounds INPUT=LOW:HIGH ... [options]"
    )
    parser.description = "Propose the next experiments from a table of those done."
    parser.epilog = _EXAMPLE

    def several(flag, metavar, text, **options):
        parser.add_argument(flag, nargs="+", action="extend", metavar=metavar, help=text, **options)

    parser.add_argument("file", metavar="FILE", help="table of the experiments done, .csv or .xlsx")
    several("--inputs", "COLUMN", "what you set", required=True)
    parser.add_argument("--output", required=True, metavar="COLUMN", help="what you want to learn")
    several(
        "--bounds",
        "INPUT=LOW:HIGH",
        "where proposals may lie, of each input; LOW:HIGH:integer for whole numbers, LOW:HIGH:log "
        "where ratios matter, 1,2,5 where there are some values only",
        default=[],
    )
    several("--limit", '"COLUMN <= NUMBER"', "what is safe, <= or >=, in quotes", default=[])
    parser.add_argument(
        "--n", type=positive, default=1, metavar="N", help="proposals; default: %(default)s"
    )
    parser.add_argument(
        "--append", action="store_true", help="add the proposals to the file, outputs left empty"
    )
    parser.add_argument("--out", metavar="CSV", help="write the proposals to a file of their own")
    parser.add_argument("--pool", metavar="FILE", help="table of the only points to choose from")
    parser.add_argument("--sheet", help="of an Excel workbook; default: the first")
    parser.add_argument(
        "--status",
        metavar="COLUMN",
        help="how runs ended: ok, aborted (a limit was passed) or failed (nothing was learned)",
    )
    several("--fixed", "INPUT=VALUE", "an input that has to keep a value", default=[])
    several(
        "--max-step",
        "INPUT=STEP",
        "largest change, from the last row measured and from one proposal to the next",
        default=[],
    )
    several(
        "--constraint",
        '"0.5*A + B <= NUMBER"',
        "a sum of inputs, then <=, >= or =, and a number, in quotes",
        default=[],
    )
    parser.add_argument(
        "--gamma", type=float, help="share of unsafe proposals that is tolerated; default: 0.02"
    )
    parser.add_argument("--policy", default="auto", help="name or file; default: any")
    parser.set_defaults(run=run)


def run(arguments):
    """Propose the next experiments.

    Parameters
    ----------
    arguments : argparse.Namespace

    Raises
    ------
    ValueError, OSError, ImportError
        The message is for the user.
    """
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # for names that a terminal cannot show
    note = Notes().say
    inputs = list(map(title_of, arguments.inputs))
    output, limits = title_of(arguments.output), limits_of(arguments.limit)
    status = None if arguments.status is None else title_of(arguments.status)
    check_columns(arguments, inputs, output, limits, status)

    raw = contents(arguments.file)
    numbers = list(dict.fromkeys([*inputs, output, *(limit.column for limit in limits)]))
    names = [*numbers, *([] if status is None else [status])]
    file = opened(arguments.file, raw, names, arguments.sheet)
    sheet = Sheet(arguments.file, file, names, numbers, note)
    inputs.sort(key=sheet.columns.__getitem__)
    seen = observed(sheet, inputs, output, limits, status, note)
    pool, rows = _pool(arguments.pool, inputs, note)
    stated = stated_by(arguments, inputs, limits, seen, pool)
    if not limits:
        note("no --limit is stated, so nothing is kept within one.")
    remark(stated, seen, note)
    with in_plain_words(note, inputs, limits):
        X, indices, report = propose(stated, seen, arguments.n, pool)

    table = Table(inputs, output, limits, X, report)
    if indices is not None:
        table.number(f"row of {Path(arguments.pool).name}", [rows[i] + 1 for i in indices])
    print(_summary(arguments.file, seen, limits), table.text(), sep="\n\n")
    if arguments.out is not None:
        Path(arguments.out).write_bytes(file.table(table.cells()))
        print(f"\nWritten to {arguments.out}.")
    if arguments.append:
        places = [sheet.columns[name] for name in inputs]
        new = [dict(zip(places, x, strict=True)) for x in X.tolist()]
        content, first = file.with_rows(sheet.header, new)
        replace(arguments.file, raw, content)
        added = _rows(range(first, first + len(new)))
        print(f"\nAdded to {arguments.file}: {added}. Enter there what you measure.")


def _pool(path, inputs, note):
    """Candidates and their rows, None without any."""
    if path is None:
        return None, None
    file = opened(path, contents(path), inputs)
    return rows_of_pool(Sheet(path, file, inputs, inputs, note), inputs)


def _summary(path, seen, limits):
    """What was read, so that a mistake shows."""
    counts = {word: int((seen.status == word).sum()) for word in STATUSES}
    parts = [f"{counts.pop(OK)} measured" + (f" ({seen.n_safe(limits)} safe)" if limits else "")]
    parts += [f"{count} {word}" for word, count in counts.items() if count]
    parts.append(f"{len(seen.pending)} pending")
    if seen.pending_rows:
        parts[-1] += f" ({_rows(seen.pending_rows)})"
    return f"{path}: {', '.join(parts)}"


def _rows(positions):
    numbers = [str(i + 1) for i in positions]
    shown = numbers if len(numbers) <= 6 else [*numbers[:5], "...", numbers[-1]]
    return f"row{'s' if len(numbers) > 1 else ''} {', '.join(shown)}"
