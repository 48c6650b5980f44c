"""
A policy on a controller, without Python's machine learning stack
==================================================================

A policy can be written as an ONNX file, which the runtimes of many languages and devices evaluate.
Here we write one and run a campaign on it with NumPy and ONNX Runtime alone: where the file is
used, neither torch nor this package is needed.
"""

# %%
# Write the file
# --------------
# On the command line: ``python -m sklearn_asal export safe-2d policy.onnx``. It needs the package
# ``onnx``: ``pip install 'sklearn-asal[onnx]'``.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from sklearn_asal.policies.export import export_onnx

file = Path(tempfile.mkdtemp()) / "policy.onnx"
export_onnx("safe-2d", file)
print(f"{file.stat().st_size / 2**20:.1f} MiB")

# %%
# On the controller
# -----------------
# The file works at unit scale. So the controller maps inputs by the bounds of its rig, outputs
# by their mean and spread, and measures how far it is from the limit in units of safety. On a
# controller with arrays of a fixed size, ``mask`` says which of the rows hold an observation; what
# the others hold is ignored.

import onnxruntime

session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
print([(entry.name, entry.shape) for entry in session.get_inputs()])

LOWER, UPPER = np.array([900.0, 0.0]), np.array([4000.0, 60.0])  # speed, load
LIMIT, Z_SCALE = 850.0, 120.0  # the temperature has to stay below


def next_point(X, y, z, left):
    """Where to measure next, in the units of the rig."""
    feed = {
        "budget": np.array([left]),
        "X": ((X - LOWER) / (UPPER - LOWER))[None],
        "y": y[None],
        "margin": ((LIMIT - z) / Z_SCALE)[None],
    }
    feed = {name: value.astype(np.float32) for name, value in feed.items()}
    feed["mask"] = np.ones((1, len(X)), dtype=bool)  # every row holds an observation
    (x,) = session.run(["x"], feed)
    return LOWER + (UPPER - LOWER) * x[0]


def measure(x):
    """A made-up rig: roughness and temperature."""
    a, b = (x - LOWER) / (UPPER - LOWER)
    return np.sin(4 * a) * np.cos(3 * b), 700 + 300 * (a + b - 1) + 100 * np.sin(5 * a)


rng = np.random.default_rng(0)
X = LOWER + (UPPER - LOWER) * rng.uniform(0.4, 0.6, (5, 2))
y, z = np.transpose([measure(x) for x in X])
for left in range(30, 0, -1):
    x = next_point(X, y, z, left)
    y_new, z_new = measure(x)
    X, y, z = np.vstack([X, x]), np.append(y, y_new), np.append(z, z_new)
print(f"share of queries below the limit: {np.mean(z[5:] <= LIMIT):.2f}")

# %%
# What it measured

fig, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
grid = np.stack(np.meshgrid(*np.linspace(LOWER, UPPER, 100).T), axis=-1)
temperature = np.array([[measure(x)[1] for x in row] for row in grid])
ax.contour(grid[..., 0], grid[..., 1], temperature, levels=[LIMIT], colors="#a33")
ax.plot(*X[:5].T, "ks", label="initial points")
ax.plot(*X[5:].T, "o-", linewidth=0.5, label="queries")
ax.set(xlabel="speed", ylabel="load", title=f"safe means below {LIMIT:g}")
ax.legend()
plt.show()
