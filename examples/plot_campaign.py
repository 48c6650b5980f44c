"""
A safe campaign, from five points to thirty-five
================================================

Townsend's function has a region with a curved border; we may only measure inside it, and do
not know where it ends. A pretrained policy starts from five safe points near the centre and picks
thirty more.
"""

# %%
# The problem
# -----------
# ``townsend()`` stands in for a test bench: give it inputs, get noisy measurements of the output
# ``y`` and of the safety signal ``z``. Safe means ``z >= 0``.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_asal import AmortizedSafeQuerier
from sklearn_asal.datasets import townsend

bench = townsend()
X, y, z = bench.initial_points(5, random_state=0, return_measurements=True)
print(bench.bounds)

# %%
# The campaign
# ------------
# The bounds are in the units of the bench, and so is all that goes in and out.

querier = AmortizedSafeQuerier("2d", bounds=bench.bounds, budget=30)
querier.fit(X, y, z)
rng = np.random.default_rng(0)
for _ in range(30):
    x_next = querier.query()
    querier.tell(x_next, *bench.measure(x_next, random_state=rng))

print(querier)
print(f"share of safe queries: {np.mean(querier.z_[5:] >= 0):.2f}")

# %%
# What it measured
# ----------------
# The queries are numbered in order. They spread over the safe region and follow its border.

low, high = bench.bounds.T
grid = np.stack(np.meshgrid(*np.linspace(low, high, 200).T), axis=-1)
safety = bench.safety(grid.reshape(-1, 2)).reshape(200, 200)

fig, ax = plt.subplots(figsize=(6, 5), layout="constrained")
ax.contourf(*grid.T, safety.T, levels=[0, np.inf], colors=["#d8ecd8"])
ax.contour(*grid.T, safety.T, levels=[0], colors="#2a7f2a")
ax.plot(*querier.X_[:5].T, "ks", label="initial points")
for i, point in enumerate(querier.X_[5:], start=1):
    safe = querier.z_[4 + i] >= 0
    ax.text(*point, i, ha="center", va="center", size=8, color="k" if safe else "r")
ax.set(xlabel="$x_1$", ylabel="$x_2$", title=querier.safety_rule)
ax.legend(loc="upper right")
plt.show()

# %%
# Use the data
# ------------
# The querier's business is the data. Any regressor learns from them.

from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

kernel = RBF([1.0, 1.0], length_scale_bounds=(0.2, 20))
model = GaussianProcessRegressor(kernel, alpha=0.01, n_restarts_optimizer=3, random_state=0)
model.fit(querier.X_, querier.y_)
X_test = bench.safe_test_points(200, random_state=1)
rmse = np.sqrt(np.mean((model.predict(X_test) - bench.output(X_test)) ** 2))
print(f"RMSE on safe test points: {rmse:.3f}")
