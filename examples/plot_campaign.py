"""
A safe campaign, from five points to thirty-five
================================================

Townsend's function has a region with a curved border; we may only measure inside it, and do
not know where it ends. A querier starts from five safe points and picks thirty more.
"""

# %%
# ``townsend()`` stands in for a test bench: give it inputs, get noisy measurements of the output
# ``y`` and of the safety signal ``z``. Safe means ``z >= 0``.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_asal import AmortizedSafeQuerier
from sklearn_asal.datasets import townsend

bench = townsend()
X, y, z = bench.initial_points(5, random_state=0, return_measurements=True)

querier = AmortizedSafeQuerier(bounds=bench.bounds)
querier.fit(X, y, z)
rng = np.random.default_rng(0)
for _ in range(30):
    x_next = querier.query()
    querier.tell(x_next, *bench.measure(x_next, random_state=rng))
print(f"share of safe queries: {np.mean(querier.z_[5:] >= 0):.2f}")

# %%
# What it measured. The queries are numbered in order.

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
# The querier's business is the data. Any regressor learns from them.

from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

model = GaussianProcessRegressor(RBF([1.0, 1.0], (0.2, 20)), alpha=0.01, random_state=0)
model.fit(querier.X_, querier.y_)
X_test = bench.safe_test_points(200, random_state=1)
rmse = np.sqrt(np.mean((model.predict(X_test) - bench.output(X_test)) ** 2))
print(f"RMSE on safe test points: {rmse:.3f}")
