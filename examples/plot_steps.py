"""
In small steps through an oven
==============================

An oven heats and cools slowly: from one run to the next, its temperature may change by 40 K and
its humidity by 10 points at most. On the way to the next point it can be read out as well. The
warp of the glass must stay below 1.5 mm.
"""

# %%
# The oven is simulated.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_asal import AmortizedSafeQuerier
from sklearn_asal.displays import CampaignDisplay

rng = np.random.default_rng(0)


def oven(x):
    t, h = (x[:, 0] - 400) / 300, x[:, 1] / 60
    tension = 20 + 15 * np.cos(4 * t) * (1 - 0.5 * h) + 4 * h
    warp = 0.3 + 1.6 * t**2 + 0.7 * t * h
    return tension + rng.normal(0, 0.2, len(x)), warp + rng.normal(0, 0.02, len(x))


# %%
# ``max_step`` limits the step from the last run. ``query(path=True)`` returns the way there as
# well, with the probability to be safe at each of its points.

querier = AmortizedSafeQuerier(
    bounds={"temperature": (400, 700), "humidity": (0, 60)},
    max_step={"temperature": 40.0, "humidity": 10.0},
    safety_threshold=1.5,
    safe_when="below",
)
X = rng.uniform([420, 5], [460, 15], (4, 2))
querier.fit(X, *oven(X))
for _ in range(20):
    x, approach = querier.query(path=True)
    halfway = approach.points[[len(approach.points) // 2]]
    querier.tell(halfway, *oven(halfway))  # read out on the way
    if approach.p_safe.min() > 0.95:  # else stop there
        querier.tell(x, *oven(x))
steps = np.abs(np.diff(querier.X_[4:], axis=0))
print(f"{querier.n_told_} runs, largest steps: {steps.max(axis=0).round(1)}")

# %%
units = {"temperature": "°C", "humidity": "%", "tension": "MPa"}
display = CampaignDisplay.from_querier(
    querier, y_name="tension", z_name="warp", units=units, numbers=False
)
display.ax_.plot(*querier.X_[3:].T, color="black", lw=0.8, zorder=2)
plt.show()
