"""Finding, reading and replacing the file that is the campaign."""

import os
import shutil
from pathlib import Path

from .csv_file import CsvFile
from .excel_file import ExcelFile

_EXCEL = ".xlsx", ".xlsm"
_OTHERS = ".xls", ".xlsb", ".ods", ".numbers"


def contents(path):
    """What is in a file.

    Parameters
    ----------
    path : str

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        There is no such file, it is empty, or of a format that cannot be read.
    OSError
        It cannot be read.
    """
    if Path(path).suffix.lower() in _OTHERS:
        raise ValueError(f"{path} cannot be read. Save it as .xlsx or as .csv.")
    try:
        raw = Path(path).read_bytes()
    except FileNotFoundError:
        raise ValueError(f"there is no file {path} in {Path(path).absolute().parent}.") from None
    if not raw.strip():
        raise ValueError(f"{path} is empty. Its first row has to name the columns.")
    return raw


def opened(path, raw, names, sheet=None):
    """The cells of a file.

    Parameters
    ----------
    path : str
    raw : bytes
        What is in it.
    names : sequence of str
        Columns that it should have.
    sheet : str or None
        Of a workbook.

    Returns
    -------
    CsvFile or ExcelFile

    Raises
    ------
    ValueError
        It cannot be read.
    ImportError
        openpyxl is needed.
    """
    is_excel = Path(path).suffix.lower() in _EXCEL
    if sheet is not None and not is_excel:
        raise ValueError(f"--sheet is for Excel workbooks, and {path} is none; leave it out.")
    try:
        return ExcelFile(raw, sheet) if is_excel else CsvFile(raw, names)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def replace(path, before, after):
    """Write a file anew, so that nobody ever sees half of it.

    Parameters
    ----------
    path : str
    before, after : bytes
        What was read from it, and what it is to hold.

    Raises
    ------
    ValueError
        Another program has it open, or has written to it since it was read.
    OSError
        It cannot be written.
    """
    target = Path(os.path.realpath(path))
    for lock in (f"~${target.name}", f".~lock.{target.name}#"):
        if target.with_name(lock).exists():
            raise ValueError(
                f"{path} is open in another program, and nothing was written to it. Close it "
                f"there, and run the command again. If it is not open, delete {lock}."
            )
    if not os.access(target, os.W_OK):
        raise ValueError(f"{path} is read-only; nothing was written to it.")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(after)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(target, temporary)
        if target.read_bytes() != before:
            raise ValueError(
                f"{path} was changed by another program meanwhile, and nothing was written to it. "
                "Run the command again."
            )
        os.replace(temporary, target)
    except PermissionError as error:
        raise ValueError(
            f"{path} cannot be written ({error.strerror}). Close it in other programs, or check "
            "who may write to it and its folder."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
