"""The file: whole lines, one writer, nothing lost."""

import json
import os
import pickle
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_asal import CampaignLog


def begun(path):
    log = CampaignLog(path)
    log.write("campaign", format=1, version="0.1.0")
    log.write("tell", x=[[0.1, 2.0]])
    return log


def test_lines_are_json_with_a_time(tmp_path):
    log = begun(tmp_path / "a.jsonl")
    first, second = map(json.loads, (tmp_path / "a.jsonl").read_text().splitlines())
    assert (first["event"], second["x"]) == ("campaign", [[0.1, 2.0]])
    assert first["time"].endswith("+00:00")
    assert log.read() == [first, second]
    assert repr(log) == f"CampaignLog({str(tmp_path / 'a.jsonl')!r})"


@settings(max_examples=40, deadline=None)
@given(cut=st.integers(0, 400))
def test_a_line_that_was_cut_off_is_set_aside(cut, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "a.jsonl"
    begun(path).close()
    content = path.read_bytes()
    first = content.index(b"\n") + 1
    cut = min(cut, len(content) - first)
    path.write_bytes(content[: first + cut])
    log = CampaignLog(path)
    whole = cut >= len(content) - first - 1  # the end of line alone may be missing
    assert len(log.read()) == 1 + whole
    if cut and not whole:
        with pytest.warns(UserWarning, match="cut off"):
            log.repair()
        assert path.with_name("a.jsonl.cut-off-1").read_bytes() == content[first : first + cut]
    else:
        log.repair()
        assert not path.with_name("a.jsonl.cut-off-1").exists()
    log.write("tell", x=[[0.3, 1.0]])
    assert len(log.read()) == 2 + whole
    assert log.read()[-1]["x"] == [[0.3, 1.0]]


def test_damage_elsewhere_names_the_line(tmp_path):
    begun(tmp_path / "a.jsonl").close()
    lines = (tmp_path / "a.jsonl").read_text().splitlines()
    (tmp_path / "a.jsonl").write_text("\n".join([lines[0], lines[1][:9], lines[1]]) + "\n")
    with pytest.raises(ValueError, match="line 2 is damaged"):
        CampaignLog(tmp_path / "a.jsonl").read()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty: no campaign was begun"),
        ('{"event": "tell"}\n', "this is not the log of a campaign"),
        ('{"a": 1}\n', "this is not the log of a campaign"),
        ("hello\n", "this is not the log of a campaign"),
        ("hello", "this is not the log of a campaign"),
        ('{"event": "camp', "is empty: no campaign was begun"),
        ('{"event": "campaign", \n', "line 1 is damaged"),
        (
            '{"event": "campaign", "format": 99, "version": "9.9"}\n',
            "format 99, written by sklearn-asal 9.9; this version reads formats up to 1",
        ),
    ],
)
def test_other_files(content, message, tmp_path):
    (tmp_path / "a").write_text(content)
    with pytest.raises(ValueError, match=message):
        CampaignLog(tmp_path / "a").read()


def test_one_writer_at_a_time(tmp_path):
    log = begun(tmp_path / "a.jsonl")
    with pytest.raises(RuntimeError, match="another querier or another process writes"):
        CampaignLog(tmp_path / "a.jsonl").open()
    program = (
        "import sys; from sklearn_asal.log import CampaignLog; "
        "CampaignLog(sys.argv[1]).write('tell')"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "a.jsonl")]
    other = subprocess.run(command, capture_output=True, text=True)
    assert "another process writes to this log" in other.stderr
    log.close()
    subprocess.run(command, check=True)
    assert len(log.read()) == 3


def test_a_log_that_is_dropped_is_free(tmp_path):
    begun(tmp_path / "a.jsonl")
    CampaignLog(tmp_path / "a.jsonl").open()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_does_not_write(tmp_path):
    log = begun(tmp_path / "a.jsonl")
    pid = os.fork()
    if pid == 0:
        try:
            log.write("tell")
        except RuntimeError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    log.write("tell")
    assert len(log.read()) == 3


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    log = begun(tmp_path / "a.jsonl")
    before = log.size

    def full(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            log.write("tell", x=[[0.5, 0.5]])
    assert log.size == before
    log.write("tell", x=[[0.5, 0.5]])
    assert len(log.read()) == 3


def test_pickles_hold_the_path(tmp_path):
    log = begun(tmp_path / "a.jsonl")
    copy = pickle.loads(pickle.dumps(log))
    assert (copy.path, copy.is_open, log.is_open) == (log.path, False, True)
