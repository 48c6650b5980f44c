"""The command that prints a log."""

import csv
import io
from pathlib import Path

from sklearn_asal.__main__ import main

LOG = str(Path(__file__).parent / "format-1.jsonl")


def test_as_a_table(capsys):
    assert main(["log", LOG]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["number", "time", "event", "x0", "x1", "y", "z", "status", "note"]
    assert len(lines) == 7
    assert lines[3].split()[3:] == ["told", "1", "5", "0.3", "0.5", "ok", "sensor", "replaced"]
    assert len({line.rstrip().rfind(" ok") for line in lines if line.endswith(" ok")}) == 1


def test_as_csv(capsys):
    assert main(["log", LOG, "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["y"] for row in rows] == ["0.1", "0.4", "", "0.3", "0.2", "", ""]
    assert [row["status"] for row in rows].count("aborted") == 1


def test_no_log(tmp_path, capsys):
    assert main(["log", str(tmp_path / "nothing")]) == 1
    (tmp_path / "other").write_text("a,b\n1,2\n")
    assert main(["log", str(tmp_path / "other")]) == 1
    assert "line 1 is damaged" in capsys.readouterr().err
