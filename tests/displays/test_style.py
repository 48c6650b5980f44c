"""What displays share."""

import io
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from sklearn_asal.displays.style import CYCLE, between, cell_edges, check_units, named, shown


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("speed", "speed"),
        (r"$\sigma$ (V)", r"\$\sigma\$ (V)"),
        ("cost $", r"cost \$"),
        ("US$/kg and $/h", r"US\$/kg and \$/h"),
        (r"cost \$", r"cost \$"),
        (r"$\nosuch{$ (<b>)", r"\$\nosuch{\$ (<b>)"),
        ("a $x^$", r"a \$x^\$"),
    ],
)
def test_dollar_signs_are_shown(text, expected):
    assert shown(text) == expected
    figure = Figure()
    figure.suptitle(shown(text))
    figure.savefig(io.BytesIO())


@given(
    levels=st.lists(st.integers(1, 1000), min_size=2, max_size=8, unique=True).map(sorted),
    log=st.booleans(),
)
def test_each_setting_is_in_its_cell(levels, log):
    edges = cell_edges(np.array(levels), log)
    assert len(edges) == len(levels) + 1
    assert (edges[:-1] <= levels).all()
    assert (edges[1:] >= levels).all()
