"""The file: one JSON object a line, which is only ever appended to."""

import contextlib
import datetime
import json
import os
import threading
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from .._typing import StrPath
from ..exceptions import warn_user

#: Version of the format; a file of a later one is refused.
FORMAT = 1
# Of a file, as :meth:`CampaignLog.write` writes it.
_BEGINNING = b'{"event": "campaign"'


def _may_begin(line):
    """Whether a line that cannot be read is the first one of a log, or the beginning of it."""
    n = min(len(line), len(_BEGINNING))
    return line[:n] == _BEGINNING[:n]


class CampaignLog:
    """A campaign's record on disk, as JSON lines.

    Pass it, or its path alone, as ``log`` to a querier. The querier writes its parameters, what it
    is told, and what it proposes. A line is on disk before ``fit`` or ``tell`` returns.

    Parameters
    ----------
    path : str or path-like
        Of the file.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn_asal import CampaignLog, RandomQuerier
    >>> path = tempfile.mkdtemp() + "/campaign.jsonl"
    >>> querier = RandomQuerier(log=path).fit([[0.5]], [0.3])
    >>> _ = querier.tell(querier.query(), 0.1, note="sensor replaced").close_log()
    >>> len(CampaignLog(path).read())
    3
    >>> len(RandomQuerier.resume(path).X_)
    2
    """

    def __init__(self, path: StrPath) -> None:
        self.path = Path(path)
        self._file: Any = None
        self._lock: Any = None
        self._pid: int | None = None
        self.writing = threading.RLock()

    def __repr__(self) -> str:
        return f"CampaignLog({str(self.path)!r})"

    def __getstate__(self):
        return {"path": self.path}

    def __setstate__(self, state):
        self.__init__(state["path"])

    def __deepcopy__(self, memo):
        return CampaignLog(self.path)

    @property
    def is_open(self) -> bool:
        """Whether this process writes to it."""
        return self._file is not None and self._pid == os.getpid()

    @property
    def size(self) -> int:
        """Number of bytes; 0 where there is no file."""
        return self.path.stat().st_size if self.path.exists() else 0

    def open(self) -> None:
        """Get ready to append.

        Raises
        ------
        RuntimeError
            Another querier, or another process, writes to it.
        OSError
            The file cannot be opened.
        """
        if self.is_open:
            return
        lock = FileLock(f"{self.path}.lock", thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise RuntimeError(
                f"{self.path}: another querier or another process writes to this log. Use that "
                "one, or close_log() there."
            ) from None
        self._file, self._lock, self._pid = open(self.path, "ab"), lock, os.getpid()

    def close(self) -> None:
        """Let others write to it."""
        if self._file is not None:
            self._file.close()
            if self._pid == os.getpid():
                self._lock.release()
                with contextlib.suppress(OSError):
                    Path(self._lock.lock_file).unlink()
            self._file = self._lock = None

    def __del__(self):
        # The lock of a file that nobody writes to any more.
        with contextlib.suppress(Exception):
            self.close()

    def write(self, event: str, *, safely: bool = True, **facts: object) -> None:
        """Append one line.

        Parameters
        ----------
        event : str
        safely : bool, default=True
            Whether it has to be on disk before this returns.
        **facts
            What JSON can hold.

        Raises
        ------
        OSError
            It cannot be written. The file is as it was.
        """
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        line = json.dumps({"event": event, "time": now, **facts}, allow_nan=False) + "\n"
        with self.writing:
            self.open()
            size = self.size
            try:
                self._file.write(line.encode())
                self._file.flush()
                if safely:
                    os.fsync(self._file.fileno())
            except BaseException:
                # Half a line would make the next one unreadable.
                with contextlib.suppress(Exception):
                    os.truncate(self.path, size)
                raise

    def read(self, content: bytes | None = None) -> list[dict[str, Any]]:
        """All lines.

        Parameters
        ----------
        content : bytes, optional
            What is in the file, if it has been read.

        Returns
        -------
        list of dict
            A last line that was cut off is left out.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        ValueError
            A line is damaged, or the file is no log, or one of a later version.
        """
        return self._parsed(content)[0]

    def repair(self) -> None:
        """Put a last line that was cut off into a file of its own.

        Raises
        ------
        ValueError, OSError
            See :meth:`read`.

        Warns
        -----
        UserWarning
            There was one; its file is named.
        """
        _, end, rest = self._parsed()
        if not rest:
            if end == self.size - 1:
                return
            content = self.path.read_bytes()
            if content and not content.endswith(b"\n"):
                with open(self.path, "ab") as file:
                    file.write(b"\n")
            return
        aside = next(
            path
            for i in range(1, 10_000)
            if not (path := Path(f"{self.path}.cut-off-{i}")).exists()
        )
        aside.write_bytes(rest)
        os.truncate(self.path, end)
        warn_user(
            f"{self.path}: the last line was cut off, and is left out; it is in {aside}. What was "
            "being told then has to be told again.",
            UserWarning,
        )

    def _parsed(self, content=None):
        """The lines, where the last whole one ends, and what comes after that."""
        content = self.path.read_bytes() if content is None else content
        *whole, rest = content.split(b"\n")
        events, end = [], 0
        for number, line in enumerate([*whole, rest], start=1):
            is_last = number > len(whole)
            if is_last and not line:
                break
            try:
                event = json.loads(line)
                if not isinstance(event, dict) or "event" not in event:
                    raise ValueError("no event")
            except ValueError as error:
                if number == 1 and not _may_begin(line):
                    raise self._no_log() from None
                if is_last:
                    break
                raise ValueError(
                    f"{self.path}, line {number} is damaged: {error}. Restore the file from a "
                    "backup, or remove that line if you know what it was."
                ) from None
            events.append(event)
            end += len(line) + (not is_last)
        self._check(events)
        return events, end, content[end:]

    def _no_log(self):
        return ValueError(
            f"{self.path}: this is not the log of a campaign. Pass the file that was given to a "
            "querier as its log."
        )

    def _check(self, events):
        if not events:
            raise ValueError(f"{self.path} is empty: no campaign was begun.")
        version = events[0].get("format")
        if events[0]["event"] != "campaign" or not isinstance(version, int):
            raise self._no_log()
        if version > FORMAT:
            raise ValueError(
                f"{self.path} has format {version}, written by sklearn-asal "
                f"{events[0].get('version')}; this version reads formats up to {FORMAT}. Update "
                "the package."
            )
