"""Every example runs from beginning to end, is short, and draws."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, monkeypatch, capsys):
    if path.stem == "plot_onnx":
        pytest.importorskip("onnx")
        pytest.importorskip("onnxruntime")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    import matplotlib.pyplot as plt

    with plt.ioff():
        runpy.run_path(str(path), run_name="__main__")
    figures = list(map(plt.figure, plt.get_fignums()))
    plt.close("all")
    assert figures
    assert all(figure.axes for figure in figures)
    assert capsys.readouterr().out


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_length(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) < 60


def test_there_are_examples():
    assert len(EXAMPLES) >= 10
