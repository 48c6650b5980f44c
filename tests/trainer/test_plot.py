import numpy as np
import pytest

from sklearn_asal.__main__ import main
from sklearn_asal.trainer.plot import AUTHORS, _authors, plot_run, read_log, smooth
from sklearn_asal.trainer.presets import PRESETS

from .test_loop import TINY, trainer


def test_smooth_against_a_loop():
    values = np.random.default_rng(0).normal(size=40)
    expected = [values[max(0, i - 6) : i + 1].mean() for i in range(40)]
    np.testing.assert_allclose(smooth(values, 7), expected)


@pytest.mark.parametrize("safe", [True, False])
def test_plot_of_a_run(tmp_path, safe, capsys):
    preset = TINY if safe else TINY.replace(safe=False, objective="H", name="2d")
    trainer(tmp_path, preset).run()
    log = read_log(tmp_path)
    assert log["step"].tolist() == [1, 2, 3, 4, 5, 6]
    assert np.isfinite(log["validation_gp_test_rmse"]).sum() == 3
    assert np.isfinite(log["unsafe_share"]).all() == safe
    assert main(["train", "--plot", str(tmp_path)]) == 0
    written = capsys.readouterr().out.strip()
    assert written == str(tmp_path / "curves.png")
    with open(written, "rb") as file:
        assert file.read(4) == b"\x89PNG"
    assert plot_run(tmp_path, tmp_path / "other.svg").read_text().count("<path") > 10


def test_no_run(tmp_path, capsys):
    with pytest.raises(ValueError, match=r"no log\.csv"):
        plot_run(tmp_path)
    (tmp_path / "log.csv").write_text("step,objective\n")
    with pytest.raises(ValueError, match="no steps yet"):
        plot_run(tmp_path)
    assert main(["train", "--plot", str(tmp_path)]) == 1
    assert "no steps yet" in capsys.readouterr().err


def test_authors_values_are_of_presets():
    assert set(AUTHORS) <= set(PRESETS)


@pytest.mark.parametrize(
    ("objective", "expected"), [("S_H", 2.139), ("S_Hmean", 2.139), ("S_Imean", None)]
)
def test_authors_where_the_objective_is_theirs(tmp_path, objective, expected):
    trainer(tmp_path, TINY.replace(name="safe-2d", objective=objective, n_grid=5)).run()
    assert _authors(tmp_path) == expected


def test_train_needs_a_preset_or_a_plot(capsys):
    with pytest.raises(SystemExit):
        main(["train"])
    assert "PRESET" in capsys.readouterr().err
