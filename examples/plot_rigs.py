"""
Three rigs at the same time
===========================

Three fatigue rigs run day and night, and none must wait for another. ``ask`` proposes a point and
remembers it as pending. ``tell`` settles it.
"""

# %%
# The rigs are simulated: strength is learned, and the crack must stay below 2 mm.

import heapq

import matplotlib.pyplot as plt
import numpy as np

from sklearn_asal import AmortizedSafeQuerier
from sklearn_asal.displays import CampaignDisplay
from sklearn_asal.displays.style import CYCLE

rng = np.random.default_rng(0)


def rig(x):
    force, frequency = x[:, 0] / 50, x[:, 1] / 20
    strength = 300 + 80 * np.sin(3 * force) - 60 * frequency**2
    crack = 0.4 + 2.2 * force**2 * (0.5 + frequency)
    return strength + rng.normal(0, 2, len(x)), crack + rng.normal(0, 0.03, len(x))


X, bounds = rng.uniform([8, 2], [20, 6], (5, 2)), {"force": (5, 50), "frequency": (1, 20)}
querier = AmortizedSafeQuerier(bounds=bounds, safety_threshold=2.0, safe_when="below")
querier.fit(X, *rig(X))

# %%
# A queue of what is running: when it ends, on which rig, and where.

runs, queue = [], [(0.0, number, None) for number in range(3)]
while len(runs) < 30:
    hour, number, x = heapq.heappop(queue)
    if x is not None:
        querier.tell(x, *rig(x))
    x, duration = querier.ask(), rng.uniform(2, 9)
    runs.append((number, hour, duration))
    heapq.heappush(queue, (hour + duration, number, x))
print(f"{querier.n_told_} runs told, {len(querier.pending_)} pending")

# %%
# Triangles are still running. Below, what each rig did.

grid = {"height_ratios": [4, 1], "figsize": (7, 8), "layout": "constrained"}
figure, (top, bottom) = plt.subplots(2, 1, **grid)
units = {"force": "kN", "frequency": "Hz", "strength": "MPa"}
names = {"y_name": "strength", "z_name": "crack"}
CampaignDisplay.from_querier(querier, ax=top, units=units, **names)
for number, start, duration in runs:
    bottom.barh(number, duration, left=start, color=CYCLE[number], edgecolor="white")
bottom.set(xlabel="hours", ylabel="rig", yticks=range(3))
plt.show()
