"""What displays share."""

import subprocess
import sys

import numpy as np
import pytest

from sklearn_asal.displays.style import CYCLE, between, check_units, named


def test_matplotlib_is_imported_when_something_is_drawn():
    program = "import sys, sklearn_asal.displays; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


# As published, red, green and blue (https://jfly.uni-koeln.de/color).
OKABE_ITO = {
    (0, 0, 0),
    (230, 159, 0),
    (86, 180, 233),
    (0, 158, 115),
    (240, 228, 66),
    (0, 114, 178),
    (213, 94, 0),
    (204, 121, 167),
}


def test_colours_are_those_of_okabe_and_ito():
    rgb = [tuple(int(c[i : i + 2], 16) for i in (1, 3, 5)) for c in CYCLE]
    assert len(set(rgb)) == len(rgb)
    # The last resort is grey.
    assert set(rgb[:-1]) <= OKABE_ITO


def test_labels():
    assert named("speed", None) == named("speed", {"load": "kg"}) == "speed"
    assert named("speed", {"speed": "m/s"}) == "speed (m/s)"
    check_units({"y": "V"}, ["x0", "y"])
    with pytest.raises(ValueError, match="nothing is called 'z'; the names are 'x0', 'y'"):
        check_units({"z": "V"}, ["x0", "y"])


def test_values_of_an_axis():
    np.testing.assert_allclose(between(1.0, 100.0, 3, True), [1, 10, 100])
    np.testing.assert_allclose(between(1.0, 3.0, 3, False), [1, 2, 3])
