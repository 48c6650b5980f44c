"""
A policy on a controller, without Python's machine learning stack
==================================================================

A policy by name can be written as an ONNX file, which the runtimes of many languages and devices
evaluate. Here we run a campaign on one with NumPy and ONNX Runtime alone.
"""

# %%
# On the command line: ``python -m sklearn_asal export safe-2d policy.onnx``. It needs the package
# ``onnx``: ``pip install 'sklearn-asal[onnx]'``.

import tempfile
from pathlib import Path

import numpy as np

from sklearn_asal.policies.export import export_onnx

file = Path(tempfile.mkdtemp()) / "policy.onnx"
export_onnx("safe-2d", file)

# %%
# The file works at unit scale. So the controller maps inputs by the bounds of its rig, and measures
# how far it is from the limit in units of safety. With arrays of a fixed size, ``mask`` says which
# of the rows hold an observation; what the others hold is ignored.

import onnxruntime

session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
LOWER, UPPER = np.array([900.0, 0.0]), np.array([4000.0, 60.0])  # speed, load
LIMIT, Z_SCALE = 850.0, 120.0  # the temperature has to stay below


def next_point(X, y, z, left):
    """Where to measure next, in the units of the rig."""
    unit, margin = (X - LOWER) / (UPPER - LOWER), (LIMIT - z) / Z_SCALE
    feed = {"budget": np.array([left]), "X": unit[None], "y": y[None], "margin": margin[None]}
    feed = {name: value.astype(np.float32) for name, value in feed.items()}
    (x,) = session.run(["x"], feed | {"mask": np.ones((1, len(X)), dtype=bool)})
    return LOWER + (UPPER - LOWER) * x[0]


def measure(x):
    """A made-up rig: roughness and temperature."""
    a, b = (x - LOWER) / (UPPER - LOWER)
    return np.sin(4 * a) * np.cos(3 * b), 700 + 300 * (a + b - 1) + 100 * np.sin(5 * a)


X = LOWER + (UPPER - LOWER) * np.random.default_rng(0).uniform(0.4, 0.6, (5, 2))
y, z = np.transpose([measure(x) for x in X])
for left in range(30, 0, -1):
    x = next_point(X, y, z, left)
    y_new, z_new = measure(x)
    X, y, z = np.vstack([X, x]), np.append(y, y_new), np.append(z, z_new)
print(X[5:].round(1))
print(f"share of queries below the limit: {np.mean(z[5:] <= LIMIT):.2f}")
