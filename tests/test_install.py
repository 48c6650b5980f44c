"""The wheel holds all that a user needs: installed elsewhere, it answers from any folder."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]

QUERY = """
import json, sys
import numpy as np
import sklearn_asal
from sklearn_asal import AmortizedSafeQuerier

torch_was_imported = "torch" in sys.modules
X = np.array([[0.45, 0.5], [0.5, 0.55], [0.55, 0.45]])
querier = AmortizedSafeQuerier.from_pretrained("2d")
x = querier.query(X, np.array([0.3, -0.2, 0.1]), np.array([0.9, 1.1, 0.7]))
print(json.dumps([sklearn_asal.__file__, torch_was_imported, x.tolist()]))
"""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_wheel_queries_the_shipped_policy_from_another_folder(tmp_path):
    wheels, elsewhere, environment = (tmp_path / name for name in ("wheels", "cwd", "venv"))
    elsewhere.mkdir()
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    run(*pip, "wheel", "--no-deps", "--wheel-dir", str(wheels), str(ROOT), cwd=elsewhere)
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        pages = {"sklearn_asal/pages/style.css", "sklearn_asal/pages/watch.js"}
        assert pages <= set(file.namelist())
    run(sys.executable, "-m", "venv", str(environment))
    python = str(environment / ("Scripts" if os.name == "nt" else "bin") / "python")
    run(python, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--no-deps", wheel)
    # The dependencies, big and unchanged, are borrowed from the environment of the tests; the
    # package itself is not: an editable install would not be on this path as a package.
    borrowed = next(p for p in sys.path if (Path(p) / "torch").is_dir())
    site = next((environment).glob("lib/python*/site-packages"))
    (site / "borrowed.pth").write_text(borrowed)
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    output = run(python, "-c", QUERY, cwd=elsewhere, env=variables)
    location, torch_was_imported, point = json.loads(output.splitlines()[-1])
    assert Path(location).is_relative_to(environment)
    assert not torch_was_imported
    assert all(0 <= value <= 1 for value in point[0])
