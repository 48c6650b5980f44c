"""Draw ``how_it_works.png``: a simulated system, a policy's campaign on it, and a training run.

python docs/images/how_it_works.py, one to two minutes.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

from sklearn_asal import AmortizedSafeQuerier
from sklearn_asal.displays.style import BLUE, MARKS, VERMILLION
from sklearn_asal.trainer.loop import Trainer
from sklearn_asal.trainer.plot import read_log
from sklearn_asal.trainer.presets import PRESETS
from sklearn_asal.trainer.simulator import draw_tasks

SEED, N_QUERIES, N_GRID = 4, 20, 81

preset = PRESETS["safe-2d"]
task = draw_tasks(preset, 1, 1, 1, torch.Generator().manual_seed(SEED), n_queries=N_QUERIES)


def system(X):
    """Output and safety margin of the simulated system, without noise."""
    with torch.no_grad():
        x = torch.as_tensor(np.atleast_2d(X), dtype=torch.float32)[None]
        return task.f(x)[0].numpy(), task.q(x)[0].numpy()


querier = AmortizedSafeQuerier("2d", budget=N_QUERIES, guard=False)
X = task.X[0].numpy()
querier.fit(X, *system(X))
for _ in range(N_QUERIES):
    x_next = querier.query()
    querier.tell(x_next, *system(x_next))

with tempfile.TemporaryDirectory() as folder:
    short = preset.replace(steps=150, n_kernels=32, embedding=32, hidden=64)
    Trainer(short, folder, progress=False, threads=1, validate_every=10).run()
    log = read_log(folder)

figure, axes = plt.subplots(1, 3, figsize=(11, 3.7), layout="constrained")
side = np.linspace(0, 1, N_GRID)
grid = np.stack(np.meshgrid(side, side), axis=-1)
y, z = (values.reshape(N_GRID, N_GRID) for values in system(grid.reshape(-1, 2)))
for ax, title in zip(axes, ("1. Simulate a system", "2. Roll a campaign out"), strict=False):
    ax.contourf(side, side, y, levels=12, cmap="Greys", alpha=0.6)
    ax.contourf(side, side, z, levels=[-99, 0], colors=[VERMILLION], alpha=0.25)
    ax.contour(side, side, z, levels=[0], colors=[VERMILLION])
    ax.set(title=title, xlabel="input 1", ylabel="input 2", aspect="equal")
axes[1].scatter(*X.T, **MARKS["initial"], label="given")
queried = querier.X_[len(X) :]
axes[1].plot(*queried.T, color=BLUE, linewidth=0.8)
axes[1].scatter(*queried.T, **MARKS["query"], label="queries, in this order")
axes[1].legend(loc="lower left", fontsize="small")
done = np.isfinite(log["validation_objective"])
steps, values = log["step"][done], log["validation_objective"][done]
axes[2].plot(steps, values, "o-", color=BLUE, markersize=3)
axes[2].set(title="3. Differentiate, and repeat", xlabel="step of training", ylabel="objective")
figure.savefig(Path(__file__).with_suffix(".png"), dpi=110)
