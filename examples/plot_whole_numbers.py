"""
Whole numbers and logarithmic scales
====================================

A filter has one to eight stages, and a flocculant is added at 0.001 to 10 g/l. Stages are whole
numbers. Of concentrations ratios matter: from 0.001 to 0.01 is as far as from 1 to 10. The
pressure must stay below 3 bar.
"""

# %%
# The filter is simulated.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_asal import AmortizedSafeQuerier, Integer, Log
from sklearn_asal.displays import CampaignDisplay, SafetyDisplay

rng = np.random.default_rng(0)


def filtrate(x):
    stages, decades = x[:, 0], np.log10(x[:, 1])
    clarity = 60 + 4 * stages + 12 * np.tanh(decades + 1.5) - 0.8 * (stages - 5) ** 2
    pressure = 0.4 + 0.28 * stages + 0.35 * np.exp(0.6 * decades) * stages**0.5
    return clarity + rng.normal(0, 0.5, len(x)), pressure + rng.normal(0, 0.02, len(x))


# %%
# ``Integer`` and ``Log`` stand in the place of a pair of bounds. Proposals keep to them.

querier = AmortizedSafeQuerier(
    bounds={"stages": Integer(1, 8), "flocculant": Log(1e-3, 10.0)},
    safety_threshold=3.0,
    safe_when="below",
)
X = np.array([[1, 0.01], [2, 0.003], [2, 0.03], [3, 0.01], [1, 0.1]])
querier.fit(X, *filtrate(X))
for _ in range(25):
    x = querier.query()
    querier.tell(x, *filtrate(x))
for stages in range(1, 9):
    doses = querier.X_[querier.X_[:, 0] == stages, 1]
    print(f"{stages} stages: {np.sort(doses).round(4)}")

# %%
names = {"y_name": "clarity", "z_name": "pressure"}
units = {"flocculant": "g/l", "clarity": "%", "pressure": "bar"}
CampaignDisplay.from_querier(querier, units=units, **names)
plt.show()

# %%
SafetyDisplay.from_querier(querier, units=units, **names)
plt.show()
