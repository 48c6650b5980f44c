import json
import os
import signal

import pytest

from sklearn_asal.benchmarks.results import locked
from sklearn_asal.reproduce.grid import Cell, Grid

from .fake import Square, squares


def files(folder):
    return {path.name: path.read_bytes() for path in (folder / "cells").iterdir()}


def test_results_are_kept_by_name(tmp_path):
    grid = Grid(squares(3), tmp_path)
    assert grid.run(progress=False) == {}
    assert grid.results() == {f"cell-{i}": {"square": i**2} for i in range(3)}
    assert Grid(squares(2), tmp_path).results().keys() == {"cell-0", "cell-1"}


def test_finished_cells_are_not_done_again(tmp_path):
    Grid(squares(2), tmp_path).run(progress=False)

    def forbidden():
        raise AssertionError

    again = squares(3, cell_0={"before": forbidden}, cell_1={"before": forbidden})
    assert Grid(again, tmp_path).run(progress=False) == {}
    assert len(files(tmp_path)) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_a_kill_the_rest_is_done_and_the_files_are_the_same(tmp_path):
    def kill():
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        Grid(squares(4, cell_2={"before": kill}), tmp_path / "killed").run(progress=False)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert files(tmp_path / "killed").keys() == {"cell-0.json", "cell-1.json"}
    for name in ("killed", "whole"):
        assert Grid(squares(4), tmp_path / name).run(progress=False) == {}
    assert files(tmp_path / "killed") == files(tmp_path / "whole")


def test_the_number_of_jobs_changes_nothing(tmp_path):
    cells = [*squares(3), Square("last", 5, needs=("cell-1",))]
    for jobs in (1, 2):
        assert Grid(cells, tmp_path / str(jobs)).run(jobs, progress=False) == {}
    assert files(tmp_path / "1") == files(tmp_path / "2")


def test_an_interrupt_ends_the_run_and_keeps_what_is_done(tmp_path):
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Grid(squares(3, cell_1={"before": interrupt}), tmp_path).run(progress=False)
    assert files(tmp_path).keys() == {"cell-0.json"}


def test_other_settings_are_refused_by_name(tmp_path):
    Grid(squares(3), tmp_path).run(progress=False)
    other = Grid([*squares(2), Square("cell-2", 7)], tmp_path)
    with pytest.raises(ValueError, match=r"cell-2 .*value \(kept: 2, asked: 7\).*another folder"):
        other.run(progress=False)
    with pytest.raises(ValueError, match=r"of\.needs \(kept: \[\], asked: \['cell-0'\]\)"):
        Grid([*squares(2), Square("cell-2", 2, needs=("cell-0",))], tmp_path).results()


def test_a_cell_that_fails_is_tried_again_and_so_are_those_that_need_it(tmp_path):
    done = []

    def fail():
        raise OSError("no disk")

    first, second = squares(2, cell_0={"before": fail})
    last = Square("last", 3, needs=("cell-0",), before=lambda: done.append("last"))
    grid = Grid([first, second, last], tmp_path)
    assert grid.run(progress=False) == {"cell-0": "OSError: no disk"}
    assert grid.results().keys() == {"cell-1"}
    assert not done
    assert Grid([*squares(2), last], tmp_path).run(progress=False) == {}
    assert done == ["last"]


def test_a_damaged_file_is_named(tmp_path):
    grid = Grid(squares(1), tmp_path)
    grid.run(progress=False)
    path = tmp_path / "cells" / "cell-0.json"
    kept = json.loads(path.read_text())
    assert kept["result"] == {"square": 0}
    for text in ("{", '{"settings": {}}', "[]"):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"cell-0.json is not what .* delete it"):
            grid.run(progress=False)


def test_times_are_taken_by_one_process(tmp_path):
    with pytest.raises(ValueError, match=r"--jobs.*leave --jobs out"):
        Grid([Square("one", timed=True)], tmp_path).run(2, progress=False)


def test_a_folder_in_use_is_refused(tmp_path):
    with locked(tmp_path), pytest.raises(RuntimeError, match="another run"):
        Grid(squares(1), tmp_path).run(progress=False)


def test_names_are_of_files_and_differ():
    with pytest.raises(ValueError, match="name"):
        Cell("a/b")
    with pytest.raises(ValueError, match="same name"):
        Grid([Square("a"), Square("a", 2)], "anywhere")
