from pathlib import Path

import pytest

from sklearn_asal.reproduce import paper
from sklearn_asal.reproduce.experiment import Number, number
from sklearn_asal.reproduce.page import write_page
from sklearn_asal.reproduce.scale import SCALES

from .fake import EXPERIMENT

RESULTS = {"cell-0": {"square": 0}, "cell-2": {"square": 4}}


def page(folder, results=RESULTS, missing=("cell-1",)):
    path = folder / "docs" / "squares.md"
    command = "python -m sklearn_asal reproduce squares"
    return write_page(EXPERIMENT, SCALES["small"], results, path, command, missing)


def test_the_papers_figure_is_beside_ours(tmp_path):
    text = page(tmp_path).read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    rows = [row for row in rows if row]
    assert rows[0] == ["group", "which", "square", "square, paper", "half"]
    assert rows[2:] == [
        ["b", "cell-0", "0.000", "", "about 0.0"],
        ["a", "cell-1", "", "", ""],
        ["a", "cell-2", "4.000", "4.500 ± 0.250", "about 2.0"],
    ]


def test_what_else_is_on_it(tmp_path):
    path = page(tmp_path)
    text = path.read_text()
    assert text.startswith("# Squares of numbers\n")
    assert "```bash\npython -m sklearn_asal reproduce squares\n```" in text
    assert "What the paper says: Four." in text
    assert "table-squares" in text
    assert "1 cell has no result: cell-1." in text
    assert "100 steps a training; the paper has 10,000" in text
    assert "Empty" not in text
    assert "![Squares of numbers](figures/squares.png)" in text
    assert (path.parent / "figures" / "squares.png").read_bytes()[1:4] == b"PNG"


def test_the_same_results_make_the_same_page(tmp_path):
    first, second = (page(tmp_path / name) for name in "ab")
    assert first.read_bytes() == second.read_bytes()
    pictures = [p.parent / "figures" / "squares.png" for p in (first, second)]
    assert pictures[0].read_bytes() == pictures[1].read_bytes()


def test_times_say_how_busy_the_machine_was(tmp_path):
    timed = {f"cell-{i}": {"square": i, "seconds": 1.0, "load": 1.0 + i} for i in range(3)}
    text = page(tmp_path, timed, ()).read_text()
    assert "1.0 to 3.0" in text
    assert "one thread" in text
    assert "steps a training" not in text
    assert "no result" not in text


def test_numbers_as_text():
    assert str(Number(0.14, 0.004)) == "0.140 ± 0.004"
    assert str(Number(0.137)) == "0.137"
    assert str(Number(0.3, text="< 0.3")) == "< 0.3"
    assert number([None, None]) is None
    found = number([1.0, None, 3.0])
    assert (found.mean, found.error) == (2.0, pytest.approx(1.0))


def test_figures_of_the_paper():
    assert [one.mean for one in paper.size("2d", 32)] == [1.2761, 0.245]
    assert str(paper.size_rmse("airfoil", 64)) == "0.700 ± 0.017"
    assert paper.dad_rmse("branin", 30).mean == 0.99
    assert paper.dad_rmse("airfoil", 40) is None
    assert str(paper.hours("safe-3d")) == "about 4"
    assert paper.hours("dad-2d", 30).mean == 3.5
    assert str(paper.threshold("2d", "gp")) == "10 to 12"
    assert str(paper.threshold("safe-2d", "safe-mgp")) == "1"
    assert paper.threshold("2d", "ensemble") is None
    assert str(paper.twenty_queries("gp")) == "< 50"
    assert paper.twenty_queries("random") is None
    assert [str(part) for part in paper.complexity("mgp")] == ["3", "1", "n³ + N n²"]
    assert paper.complexity("ensemble") is None


def test_the_folder_of_the_page_is_made(tmp_path):
    assert Path(page(tmp_path)).parent.is_dir()
