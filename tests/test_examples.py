"""Every example runs from beginning to end."""

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
    plt.close("all")
    assert capsys.readouterr().out


def test_there_are_examples():
    assert EXAMPLES
