"""The command that prints a log."""

import csv
import io
from pathlib import Path

from sklearn_asal import RandomQuerier
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
    assert "this is not the log of a campaign" in capsys.readouterr().err


def test_notes_are_on_one_line(tmp_path, capsys):
    path, note = tmp_path / "a.jsonl", "new\nsensor \x1b[31m" + 40 * "!"
    querier = RandomQuerier(log=path).fit([[0.5]], [1.0])
    querier.tell([0.1], 2.0, note=note).tell([0.2], 3.0).close_log()
    assert main(["log", str(path)]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[1].endswith(r"ok  new\nsensor \x1b[31m" + 40 * "!")
    assert len(lines[2]) == len(header) - len("  note")  # it is not padded
    assert main(["log", str(path), "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert rows[1]["note"] == note


def test_what_was_taken_back_is_marked(tmp_path, capsys):
    path = tmp_path / "a.jsonl"
    querier = RandomQuerier(log=path).fit([[0.5], [0.6]], [1.0, 9999.0]).tell([0.1], 2.0)
    querier.forget(1).correct(1, y=3.0).close_log()
    assert main(["log", str(path), "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["event"] for row in rows] == ["initial", "forgotten", "corrected"]
    assert [row["number"] for row in rows] == ["0", "", "1"]
    assert [row["y"] for row in rows] == ["1", "9999", "3"]
    assert RandomQuerier.resume(path).y_.tolist() == [1.0, 3.0]
