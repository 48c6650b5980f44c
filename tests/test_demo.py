import re

import pytest

from sklearn_asal.__main__ import main

POLICIES = "AmortizedSafeQuerier()", 'AmortizedSafeQuerier("2d")'


def rows(output):
    """``{(task, chosen by): (safe share, RMSE, milliseconds)}`` of the printed table."""
    found = re.findall(
        r"^(\S+) +(Amortized\S+|random).*? ([\d.]+) +([\d.]+) +([\d.]+)$", output, re.M
    )
    return {(task, by): tuple(map(float, figures)) for task, by, *figures in found}


def test_on_townsend_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SKLEARN_ASAL_DATA", str(tmp_path))
    figure = tmp_path / "figure.png"
    assert main(["demo", "--out", str(figure)]) == 0
    output = capsys.readouterr().out
    lines = output.splitlines()
    assert lines[0].startswith("task ")
    assert "lgbb_original.txt" in lines[-2]
    assert "python -m sklearn_asal next" in lines[-1]
    table = rows(output)
    assert table.keys() == {("townsend", by) for by in (*POLICIES, "random")}
    for by in POLICIES:
        assert table["townsend", by][0] >= 0.9
        assert table["townsend", by][1] < table["townsend", "random"][1]
    assert figure.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("out", ["no/such/demo.png", "demo.nope"])
def test_a_figure_that_cannot_be_written_is_known_at_once(tmp_path, monkeypatch, capsys, out):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sklearn_asal.demo.demo", None)
    assert main(["demo", "--out", out]) == 1
    assert "--out" in capsys.readouterr().err


def test_with_the_wind_tunnel_data(tmp_path, data_home, capsys):
    figure = tmp_path / "figure.png"
    arguments = ["demo", "--queries", "5", "--out", str(figure), "--data-home", str(data_home)]
    assert main(arguments) == 0
    expected = {(task, by) for task in ("safe-lgbb", "townsend") for by in POLICIES}
    assert rows(capsys.readouterr().out).keys() >= expected
    assert figure.exists()


@pytest.mark.parametrize("arguments", [["--queries", "0"], ["--queries", "many"]])
def test_bad_argument(arguments):
    with pytest.raises(SystemExit):
        main(["demo", *arguments])
