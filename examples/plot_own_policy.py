"""
A policy of your own, trained in seconds
========================================

A force sensor is calibrated with ten readings. From experience its curve bends about every tenth
of its range, more than the shipped policies expect. So we train one for such curves. This one is
tiny; a real one takes minutes to an hour.
"""

# %%
# A preset says what is simulated. ``lengthscale`` is in widths of the bounds. On the command line:
# ``python -m sklearn_asal train 1d --lengthscale uniform:0.08,0.15 --out runs/sensor``.

import tempfile

import matplotlib.pyplot as plt
import numpy as np

from sklearn_asal import AmortizedQuerier
from sklearn_asal.displays import CampaignDisplay
from sklearn_asal.trainer.loop import Trainer
from sklearn_asal.trainer.plot import read_log
from sklearn_asal.trainer.presets import PRESETS
from sklearn_asal.trainer.priors import Uniform

folder = tempfile.mkdtemp()
tiny = {"steps": 50, "n_kernels": 16, "embedding": 32, "hidden": 64}
prior = {"lengthscale": Uniform(0.08, 0.15), "max_budget": 10, "random_budget": False}
preset = PRESETS["1d"].replace(name="sensor", **prior, **tiny)
trainer = Trainer(preset, folder, progress=False, threads=1, validate_every=10)
trainer.run()

# %%
# What training maximises, on curves that are held out: how much the readings tell of the curve.

log = read_log(folder)
figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
done = np.isfinite(log["validation_objective"])
ax.plot(log["step"][done], log["validation_objective"][done], "o-")
ax.set(xlabel="step", ylabel="validation objective")
plt.show()

# %%
# The file goes where the name of a shipped policy goes.
# sphinx_gallery_thumbnail_number = 2


def sensor(x):
    return np.sin(0.4 * x[:, 0]) + 0.6 * np.sin(x[:, 0])


querier = AmortizedQuerier(trainer.policy_path, bounds={"force": (0, 40)}, budget=10)
querier.fit([[20.0]], sensor(np.array([[20.0]])))
for _ in range(10):
    x = querier.query()
    querier.tell(x, sensor(x))
print(f"readings at {np.sort(querier.X_[:, 0]).round(1)} N")
CampaignDisplay.from_querier(querier, units={"force": "N"})
plt.show()
