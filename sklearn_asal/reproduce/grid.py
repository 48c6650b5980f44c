"""A grid of cells: what is kept of each, and how those that are missing are run."""

import dataclasses
import json
import os
import re
import sys
import traceback
from contextlib import ExitStack
from pathlib import Path

from joblib import Parallel, delayed
from tqdm import tqdm

from .. import __version__
from ..benchmarks.results import locked


@dataclasses.dataclass(frozen=True)
class Cell:
    """One piece of work, and what its result depends on.

    Sub-classes are frozen dataclasses. They define ``work(place)``, which returns the result as
    JSON values, and ``settings()``.

    Parameters
    ----------
    name : str
        Of letters, digits and ``-.``; its result is kept in a file of this name.
    """

    name: str

    #: Cells whose results this one needs.
    needs = ()
    #: Whether the result is a time, so that nothing else may run beside it.
    timed = False

    def __post_init__(self):
        if not re.fullmatch(r"[\w.-]+", self.name):
            raise ValueError(f"name must be of letters, digits and -. only; got {self.name!r}.")

    def settings(self):
        """Everything that the result depends on.

        Returns
        -------
        dict
            JSON values.
        """
        raise NotImplementedError

    @property
    def cost(self):
        """Rough seconds of work, for the estimate of what is left."""
        return 1.0

    def work(self, place):
        """Do it.

        Parameters
        ----------
        place : Place

        Returns
        -------
        dict
            JSON values.
        """
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Place:
    """Where cells work.

    Parameters
    ----------
    folder : Path
        Of the grid. Each cell may use a folder in it that has its own name.
    data_home : str or None
        Of the data files.
    progress : bool
        Whether a cell may show a bar of its own.
    """

    folder: Path
    data_home: str | None = None
    progress: bool = False


class Grid:
    """Cells, and the folder that keeps what they give.

    Each result is a file ``cells/NAME.json``, written as a whole when its cell ends. It holds the
    cell's settings, and is refused where these are not the present ones.

    Parameters
    ----------
    cells : sequence of Cell
        Those that are needed come before those that need them.
    folder : path-like

    Raises
    ------
    ValueError
        If two cells have the same name.
    """

    def __init__(self, cells, folder):
        self.cells = {cell.name: cell for cell in cells}
        if len(self.cells) < len(cells):
            raise ValueError("cells: two have the same name; give each its own.")
        self.folder = Path(folder)

    def results(self):
        """What is kept, by the names of the cells.

        Returns
        -------
        dict of str to dict

        Raises
        ------
        ValueError
            If a result is of other settings than the cell has, or a file is damaged.
        """
        kept = {name: self._read(cell) for name, cell in self.cells.items()}
        return {name: result for name, result in kept.items() if result is not None}

    def run(self, jobs=1, data_home=None, progress=True):
        """Run the cells whose results are not kept.

        Parameters
        ----------
        jobs : int, default=1
            Processes. Results do not depend on it.
        data_home : str, optional
            Folder of the data files.
        progress : bool, default=True
            Whether to show a bar, if standard error is a terminal.

        Returns
        -------
        dict of str to str
            Cells that failed and why. They, and those that need them, are tried at the next run.

        Raises
        ------
        ValueError
            See :meth:`results`; and with several jobs, if a cell takes times.
        RuntimeError
            If another run is using the folder.
        KeyboardInterrupt
            After an interrupt. Results of cells that ended before are kept, and trainings go on
            from their checkpoints.
        """
        if jobs > 1 and any(cell.timed for cell in self.cells.values()):
            raise ValueError(
                f"jobs={jobs} (--jobs): this grid takes times, which say nothing where processes "
                "compete for cores; leave --jobs out."
            )
        failures = {}
        with ExitStack() as stack:
            stack.enter_context(locked(self.folder))
            done = set(self.results())
            left = [cell for name, cell in self.cells.items() if name not in done]
            shown = progress and sys.stderr.isatty()
            bar = stack.enter_context(_bar(left, shown and bool(left)))
            place = Place(self.folder, data_home, shown and jobs == 1)
            while ready := [cell for cell in left if done.issuperset(cell.needs)]:
                left = [cell for cell in left if cell not in ready]
                parallel = Parallel(n_jobs=jobs, return_as="generator_unordered")
                for name, result, error in parallel(delayed(_work)(cell, place) for cell in ready):
                    if error is None:
                        self._write(self.cells[name], result)
                        done.add(name)
                    else:
                        failures[name] = error
                    bar.set_postfix_str(f"{name}, {len(done)} of {len(self.cells)} cells", False)
                    bar.update(self.cells[name].cost)
        return failures

    def _path(self, cell):
        return self.folder / "cells" / f"{cell.name}.json"

    def _read(self, cell):
        path = self._path(cell)
        if not path.exists():
            return None
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            known, result = kept["settings"], kept["result"]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path} is not what this command writes ({error}); delete it to have its cell "
                "done again."
            ) from error
        different = _differences(known, cell.settings())
        if different:
            raise ValueError(
                f"{self.folder} (--out) holds {cell.name} of other settings; different: "
                f"{'; '.join(different)}. Take the same settings, or choose another folder."
            )
        return result

    def _write(self, cell, result):
        path = self._path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = {"settings": cell.settings(), "version": __version__, "result": result}
        part = path.with_suffix(".part")
        part.write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")
        os.replace(part, path)


def _work(cell, place):
    """A cell's name, its result, and its error."""
    try:
        return cell.name, cell.work(place), None
    except Exception as error:
        return cell.name, None, "".join(traceback.format_exception_only(error)).strip()


def _bar(left, shown):
    return tqdm(
        total=sum(cell.cost for cell in left),
        bar_format="{percentage:3.0f}%|{bar}| {elapsed}, left {remaining}{postfix}",
        smoothing=0,
        disable=not shown,
        dynamic_ncols=True,
    )


def _differences(known, asked):
    """The settings that differ, as text."""
    known, asked = dict(_flat(known)), dict(_flat(json.loads(json.dumps(asked))))
    names = [name for name in {**asked, **known} if known.get(name) != asked.get(name)]
    return [f"{name} (kept: {known.get(name)}, asked: {asked.get(name)})" for name in names]


def _flat(values, before=""):
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, value
