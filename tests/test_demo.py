import re

import pytest

from sklearn_asal.__main__ import main


def rows(output):
    """``{(task, chosen by): (safe share, RMSE, milliseconds)}`` of the printed table."""
    found = re.findall(r"^(\S+) +(policy|random).*? ([\d.]+) +([\d.]+) +([\d.]+)$", output, re.M)
    return {(task, by): tuple(map(float, figures)) for task, by, *figures in found}


def test_on_townsend_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SKLEARN_ASAL_DATA", str(tmp_path))
    figure = tmp_path / "figure.png"
    assert main(["demo", "--out", str(figure)]) == 0
    output = capsys.readouterr().out
    assert "lgbb_original.txt" in output
    assert "python -m sklearn_asal next" in output.splitlines()[-1]
    table = rows(output)
    assert table.keys() == {("townsend", "policy"), ("townsend", "random")}
    assert table["townsend", "policy"][0] >= 0.9
    assert table["townsend", "policy"][1] < table["townsend", "random"][1]
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_with_the_wind_tunnel_data(tmp_path, data_home, capsys):
    figure = tmp_path / "figure.png"
    arguments = ["demo", "--queries", "5", "--out", str(figure), "--data-home", str(data_home)]
    assert main(arguments) == 0
    assert rows(capsys.readouterr().out).keys() >= {("safe-lgbb", "policy"), ("townsend", "policy")}
    assert figure.exists()


@pytest.mark.parametrize("arguments", [["--queries", "0"], ["--queries", "many"]])
def test_bad_argument(arguments):
    with pytest.raises(SystemExit):
        main(["demo", *arguments])
