import re
from pathlib import Path

import pytest

from sklearn_asal.reproduce import deployment_time, threshold, training_time
from sklearn_asal.reproduce.experiments import EXPERIMENTS
from sklearn_asal.reproduce.grid import Grid
from sklearn_asal.reproduce.page import write_page
from sklearn_asal.reproduce.paper import ELSEWHERE
from sklearn_asal.reproduce.scale import SCALES

# Of the tables and figures of the paper that show results or settings.
LABELS = """
table-result_al figure-result_al figure-result_sal tableS-batch_sizes tableS-training_complexities
tableS-training_samplers tableS-training_time tableS-deploy_complexities
tableS-benchmark_dimension tableS-trained_run_thresholds figureS-ablation_al figureS-ablation_al2
tableS-trained_varied_policy_size tableS-result_al_varied_policy_size tableS-result_al_varied_T
figureS-ablation_minunsafe_alpha figureS-ablation_safe_al_losses
""".split()


def test_every_table_is_somewhere():
    covered = {label for one in EXPERIMENTS.values() for label in one.labels} | set(ELSEWHERE)
    assert set(LABELS) <= covered


@pytest.mark.parametrize("scale", SCALES.values(), ids=list(SCALES))
@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=list(EXPERIMENTS))
def test_grids_can_be_run_in_their_order(experiment, scale):
    done = set()
    for cell in experiment.cells(scale):
        assert done.issuperset(cell.needs), cell.name
        assert cell.name not in done
        assert cell.cost > 0
        done.add(cell.name)
    for table in experiment.tables(scale, {}):
        assert all(ours is None for _, row, _ in table.rows for ours in row)


@pytest.fixture
def smaller(monkeypatch):
    """Without what takes seconds even so: many methods, and the fluid system."""
    methods = {name: threshold._METHODS[name] for name in ("1d", "safe-3d")}
    monkeypatch.setattr(threshold, "_METHODS", methods)
    monkeypatch.setattr(deployment_time, "_METHODS", ("aal", "gp", "safe-random"))
    monkeypatch.setattr(deployment_time, "_AL", ("aal", "gp"))
    monkeypatch.setattr(deployment_time, "_FLUID", ())
    monkeypatch.setattr(training_time, "_PRESETS", ("1d", "safe-2d"))
    monkeypatch.setattr(training_time, "_LENGTHS", (10, 20))


@pytest.mark.usefixtures("smaller")
@pytest.mark.filterwarnings("ignore::sklearn_asal.exceptions.SafetyWarning")
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_smallest_version_runs_through(name, tmp_path, data_home):
    experiment, scale = EXPERIMENTS[name], SCALES["quick"]
    grid = Grid(experiment.cells(scale), tmp_path)
    assert grid.run(data_home=str(data_home), progress=False) == {}
    results = grid.results()
    for table in experiment.tables(scale, results):
        for keys, ours, paper in table.rows:
            assert len(ours) == len(paper) == len(table.columns)
            assert len(keys) == len(table.keys)
            assert None not in ours, keys
    text = Path(write_page(experiment, scale, results, tmp_path / "page.md", "x")).read_text()
    assert all(len(line) <= 120 for line in text.splitlines() if line[:1] not in "|!")
    for label in experiment.labels:
        # Tables without rows, here the fluid system's, are left out.
        assert label in text or label == "figure-result_sal"
    assert not re.search(r"\b(nan|None)\b", text)


def test_deployments_until_a_training_has_paid_off():
    # 100 s of training, five campaigns a deployment that save 1 s and 4 s each.
    found = threshold.deployments(100.0, [0.5, 1.0], [1.5, 5.0])
    assert str(found) == "5 to 20"
    assert str(threshold.deployments(100.0, [0.5], [1.5])) == "20"
    assert str(threshold.deployments(100.0, [2.0, 1.0], [1.0, 2.0])) == "20 to never"
