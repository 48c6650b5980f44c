"""
Townsend's function
===================

The paper shows its policy on Townsend's function, whose safe region has a curved border. This is
that campaign with the shipped policy ``"2d"``: one forward pass of a network chooses each query.
"""

# %%
# ``townsend()`` gives noisy measurements of an output and of a safety signal, both at unit scale.
# Safe means ``z >= 0``. The five initial points lie about the middle.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_asal import AmortizedSafeQuerier
from sklearn_asal.datasets import townsend
from sklearn_asal.displays import CampaignDisplay, ProgressDisplay
from sklearn_asal.displays.style import GREEN

system, rng = townsend(), np.random.default_rng(0)
X, y, z = system.initial_points(5, random_state=0, return_measurements=True)
querier = AmortizedSafeQuerier.from_pretrained("2d", bounds=system.bounds, budget=30)
querier.fit(X, y, z)
for _ in range(30):
    x = querier.query()
    querier.tell(x, *system.measure(x, random_state=rng))
print(f"{np.mean(querier.z_[5:] >= 0):.0%} of the queries were safe")

# %%
# The policy plans ahead: it goes around inside of the border. Green is the true limit, which it
# does not know. The map is what a model learns from the data.

display = CampaignDisplay.from_querier(querier, x_next=None)
low, high = system.bounds.T
grid = np.stack(np.meshgrid(*np.linspace(low, high, 200).T), axis=-1)
safety = system.safety(grid.reshape(-1, 2)).reshape(200, 200)
display.ax_.contour(*np.moveaxis(grid, -1, 0), safety, levels=[0], colors=[GREEN], linewidths=2.5)
plt.show()

# %%
# The error on test points in the safe region, and what the model itself expects over all that may
# be safe.

X_test = system.safe_test_points(300, random_state=1)
ProgressDisplay.from_querier(querier, X_test=X_test, y_test=system.output(X_test), noise_std=0.1)
plt.show()
