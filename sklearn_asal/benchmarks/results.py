"""The folder of a benchmark: finished cells, failed cells, settings."""

import csv
import io
import json
import math
import os
import warnings
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from .protocol import Record

COLUMNS = (
    "task",
    "method",
    "seed",
    "query",
    "rmse",
    "safe_share",
    "worst_violation",
    "seconds",
    "forced",
    "truly_safe_share",
)


@contextmanager
def locked(folder):
    """Keep other runs out of a folder, which is made if need be.

    Every run writes all that it knows of, so that two at a time would erase each other's cells.
    The lock is the kernel's: it ends with the process, however that ends.

    Parameters
    ----------
    folder : str or path-like

    Raises
    ------
    RuntimeError
        If another run holds the folder.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise RuntimeError(
            f"another run is using the folder {folder} (--out); wait until it has finished, "
            "or choose another folder."
        ) from error
    except (OSError, NotImplementedError) as error:  # some network file systems have no locks
        warnings.warn(
            f"{folder} cannot be locked ({error}); make sure that no other run uses it.",
            stacklevel=3,
        )
    try:
        yield
    finally:
        lock.release()


class Results:
    """What a folder holds, in memory and on disk.

    A cell is one (task, method, seed). Files are replaced as a whole, so that a run that is
    killed leaves finished cells only.

    Parameters
    ----------
    folder : str or path-like
        Read if it exists; made by the first :meth:`save`.

    Attributes
    ----------
    records : dict of (str, str, int) to list of Record
        Finished cells (results.csv).
    failures : dict of (str, str, int) to str
        Failed cells and why (failures.csv).
    settings : dict
        What all cells have in common (settings.json); empty for a new folder.
    failed : list of (str, str, int)
        Cells that failed since this object was made; not in a file.

    Raises
    ------
    ValueError
        If a file of the folder is not what this class writes.
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        self.records, self.failures, self.settings = {}, {}, {}
        self.failed = []
        path = self.folder / "settings.json"
        if not path.exists() and (self.folder / "results.csv").exists():
            raise ValueError(
                f"{self.folder} holds a results.csv without settings.json, which is not a "
                "benchmark's; choose another folder."
            )
        if path.exists():
            try:
                self.settings = json.loads(path.read_text(encoding="utf-8"))
                self._read()
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(
                    f"{self.folder} holds files that are not a benchmark's ({error}); choose "
                    "another folder or delete it."
                ) from error

    def save(self):
        """Write everything, in an order that does not depend on when cells finished."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._replace("settings.json", json.dumps(self.settings, indent=2) + "\n")
        lines = []
        for cell in sorted(self.records):
            for record in self.records[cell]:
                values = [getattr(record, column) for column in COLUMNS[3:]]
                lines.append([*cell, *map(_text, values)])
        self._replace("results.csv", _csv([COLUMNS, *lines]))
        lines = [[*cell, self.failures[cell]] for cell in sorted(self.failures)]
        self._replace("failures.csv", _csv([[*COLUMNS[:3], "error"], *lines]))

    def campaigns(self, task):
        """The finished campaigns of one task.

        Parameters
        ----------
        task : str

        Returns
        -------
        dict of str to list of list of Record
            By method; a list for each seed, in their order.
        """
        found = {}
        for (name, method, _), records in sorted(self.records.items()):
            if name == task:
                found.setdefault(method, []).append(records)
        return found

    def _read(self):
        for row in _rows(self.folder / "results.csv"):
            cell = row["task"], row["method"], int(row["seed"])
            numbers = [_number(row[column]) for column in COLUMNS[4:8]]
            # Folders of earlier versions have no such column.
            truth = _number(row.get("truly_safe_share") or "")
            record = Record(int(row["query"]), *numbers, row["forced"] == "1", truth)
            self.records.setdefault(cell, []).append(record)
        for row in _rows(self.folder / "failures.csv"):
            self.failures[row["task"], row["method"], int(row["seed"])] = row["error"]

    def _replace(self, name, text):
        path = self.folder / name
        part = path.with_name(name + ".part")
        part.write_text(text, encoding="utf-8", newline="")
        os.replace(part, path)


def _text(value):
    if isinstance(value, bool | int):
        return int(value)
    return "" if math.isnan(value) else repr(float(value))


def _number(text):
    return math.nan if text == "" else float(text)


def _rows(path):
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _csv(rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
