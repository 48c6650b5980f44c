"""The commands watch and report, as they are called."""

import os
import re
import signal
import subprocess
import sys
import urllib.request

import numpy as np
import pytest

from sklearn_asal import AmortizedSafeQuerier
from sklearn_asal.__main__ import main

from .conftest import EVIL, Parsed, step

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def call(*arguments):
    return main([str(argument) for argument in arguments])


def test_report(begin, tmp_path, capsys):
    querier, path = begin()
    step(querier, note=EVIL)
    querier.forget(5)
    before, out = path.read_bytes(), tmp_path / "report.html"
    units = "speed=1/min", "torque=Nm", "heat=°C"
    names = "--output", "torque", "--limits", "heat", "--units", *units
    assert call("report", path, "--out", out, *names) == 0
    assert capsys.readouterr().out.strip() == str(out)
    assert path.read_bytes() == before  # and the querier goes on with it
    text = out.read_text(encoding="utf-8")
    parsed = Parsed(text)
    assert parsed.of("script") == []
    assert EVIL in parsed.text
    for words in ("torque (Nm)", "heat (°C)", "speed (1/min)", "taken back", "SHA-256 of the log"):
        assert words in parsed.text
    assert [row.get("class") for row in parsed.of("tr")].count("forgotten") == 1
    assert not re.search(
        r"(?:https?:)?//[a-z]", re.sub(r"data:image/png;base64,[\w+/=]+", "", text)
    )
    assert len(parsed.of("img")) == 3


def test_a_file_that_is_there_is_kept(begin, tmp_path, capsys):
    _, path = begin(0)
    out = path.with_suffix(".html")
    out.write_text("mine")
    assert call("report", path) == 1
    assert "pass --force to replace it" in capsys.readouterr().err
    assert out.read_text() == "mine"
    assert call("report", path, "--force") == 0
    assert out.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert {file.suffix for file in tmp_path.iterdir()} == {".jsonl", ".html", ".lock"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report", "nothing.jsonl"], "nothing.jsonl"),
        (["report", "."], "."),
        (["watch", "."], "is a folder; pass the log"),
        (["watch", "no/such/place.jsonl"], "there is no folder no"),
        (["report", "campaign.jsonl", "--units", "sped=1/min"], "Did you mean speed?"),
        (["watch", "campaign.jsonl", "--units", "sped=1/min"], "--units: nothing is called 'sped'"),
        (["report", "campaign.jsonl", "--limits", "a", "b"], "--limits has 2 name(s)"),
        (["watch", "campaign.jsonl", "--limits", "a", "b"], "the campaign has 1 limit(s) (z)"),
        (["report", "campaign.jsonl", "--limits", "a", "--units", "z=K"], "the names are 'speed'"),
        (["report", "campaign.jsonl", "--out", "campaign.jsonl", "--force"], "is the log itself"),
        (["report", "campaign.jsonl", "--out", "."], "is a folder; pass the name of a file"),
        (["report", "campaign.jsonl", "--out", "no/such/place.html"], "there is no folder"),
    ],
)
def test_mistakes(begin, tmp_path, monkeypatch, capsys, arguments, message):
    begin(0)
    monkeypatch.chdir(tmp_path)
    assert call(*arguments) == 1
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    "arguments",
    [
        ["watch", "a", "--port", "99999"],
        ["watch", "a", "--port", "x"],
        ["report", "a", "--units", "m"],
    ],
)
def test_arguments_that_make_no_sense(arguments):
    with pytest.raises(SystemExit):
        call(*arguments)


@pytest.mark.parametrize("own", [True, False])
def test_names_of_other_campaigns(tmp_path, own):
    X = np.random.default_rng(0).random((4, 2))
    z = None if own else np.ones((4, 2))
    path = tmp_path / "a.jsonl"
    AmortizedSafeQuerier(log=path, safety_threshold=-9.0).fit(X, X[:, 0], z).close_log()
    assert call("report", path, "--limits", "a", "b", "c") == 1
    good = ["y=K"] if own else ["y=K", "z[1]=bar"]
    assert call("report", path, "--units", *good) == 0
    if not own:
        names = "--limits", "gap", "heat", "--units", "heat=K"
        assert call("report", path, "--force", *names) == 0


def test_remarks_are_said_in_the_terminal(begin, capsys):
    querier, path = begin(0)
    querier.close_log()
    text = path.read_text()
    path.write_text(text.replace("sklearn_asal.queriers", "no_such_package", 1))
    assert call("report", path) == 0
    assert "no_such_package" in capsys.readouterr().err


def test_watch_before_there_is_a_log(tmp_path, monkeypatch, capsys):
    def interrupted(self, poll_interval):
        raise KeyboardInterrupt

    monkeypatch.setattr("sklearn_asal.pages.server.Server.serve_forever", interrupted)
    assert call("watch", tmp_path / "a.jsonl", "--no-browser") == 0
    assert "a.jsonl is not there yet. Waiting for it." in capsys.readouterr().err
    (tmp_path / "a.jsonl").write_text("a,b\n1,2\n")
    assert call("watch", tmp_path / "a.jsonl", "--no-browser") == 0
    assert "this is not the log of a campaign" in capsys.readouterr().err


def test_a_log_that_is_damaged(begin, capsys):
    querier, path = begin(0)
    querier.close_log()
    path.write_text(path.read_text() + "rubbish\n")
    assert call("report", path) == 1
    assert "line 2 is damaged" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_watch_until_interrupted(begin):
    _, path = begin(0)
    command = [sys.executable, "-m", "sklearn_asal", "watch", str(path), "--no-browser"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # What started the tests may have had its interrupts ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        url = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())[0]
        with urllib.request.urlopen(url + "state.json", timeout=60) as answer:
            assert b'"measurements": 4' in answer.read()
        port = url.rstrip("/").rpartition(":")[2]
        other = subprocess.run([*command, "--port", port], capture_output=True, text=True)
        assert other.returncode == 1
        assert f"--port {port} cannot be had" in other.stderr
        assert "Traceback" not in other.stderr
        process.send_signal(signal.SIGINT)
        output, error = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "ended" in output
    assert error == ""
