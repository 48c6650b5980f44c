"""
A policy in a control loop, as ONNX
===================================

A policy by name can be written as an ONNX file (``pip install 'sklearn-asal[onnx]'``), which the
runtimes of many languages and devices evaluate. This loop needs NumPy and ONNX Runtime alone.
"""

import tempfile

import numpy as np
import onnxruntime

from sklearn_asal.policies.export import export_onnx

# On the command line: python -m sklearn_asal export safe-2d policy.onnx
with tempfile.TemporaryDirectory() as folder:
    export_onnx("safe-2d", f"{folder}/policy.onnx")
    session = onnxruntime.InferenceSession(f"{folder}/policy.onnx")

# %%
# The file works at unit scale. So the controller maps inputs by the bounds of its rig, and states
# how far it is from the limit in units of safety. ``mask`` says which rows hold an observation.

LOWER, UPPER = np.array([900.0, 0.0]), np.array([4000.0, 60.0])  # speed, load
LIMIT, Z_SCALE = 850.0, 120.0  # the temperature has to stay below


def next_point(X, y, z, left):
    unit, margin = (X - LOWER) / (UPPER - LOWER), (LIMIT - z) / Z_SCALE
    feed = {"budget": np.array([left]), "X": unit[None], "y": y[None], "margin": margin[None]}
    feed = {name: value.astype(np.float32) for name, value in feed.items()}
    (x,) = session.run(["x"], feed | {"mask": np.ones((1, len(X)), dtype=bool)})
    return LOWER + (UPPER - LOWER) * x


def rig(X):
    a, b = ((X - LOWER) / (UPPER - LOWER)).T
    return np.sin(4 * a) * np.cos(3 * b), 700 + 300 * (a + b - 1) + 100 * np.sin(5 * a)


X = LOWER + (UPPER - LOWER) * np.random.default_rng(0).uniform(0.4, 0.6, (5, 2))
y, z = rig(X)
for left in range(30, 0, -1):
    x = next_point(X, y, z, left)
    X, (y_new, z_new) = np.vstack([X, x]), rig(x)
    y, z = np.append(y, y_new), np.append(z, z_new)
print(f"{np.mean(z[5:] <= LIMIT):.0%} of the queries were safe")

# %%
# The log goes back to a computer with the whole package, which draws it.

import matplotlib.pyplot as plt

from sklearn_asal.displays import CampaignDisplay

params = {"bounds": [(900, 4000), (0, 60)], "safety_threshold": LIMIT, "safe_when": "below"}
CampaignDisplay.from_campaign(X, y, z, querier_params=params, n_init=5)
plt.show()
