"""
A reactor with two limits
=========================

The yield of a reactor shall be learned over temperature and feed rate. The pressure must not pass
6 bar, and the purity must not fall below 95 %. Data come and go as tables of pandas.
"""

# %%
# The reactor is simulated. Pressure rises with both inputs; purity falls where it is hot.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_asal import AmortizedSafeQuerier
from sklearn_asal.displays import CampaignDisplay, SafetyDisplay

rng = np.random.default_rng(0)


def run_experiment(x):
    t, f = (x["temperature"] - 360) / 60, (x["feed"] - 12) / 8
    yield_ = 55 + 15 * np.sin(1.5 * t) * np.cos(1.2 * f) + 5 * f
    pressure = 4.0 + 1.2 * t + 1.1 * f + 0.6 * t * f
    purity = 97.5 - 2.5 * np.exp(1.5 * t) / np.e + 0.5 * f
    noise = rng.normal(scale=[[0.5], [0.05], [0.1]], size=(3, len(x)))
    return yield_ + noise[0], pd.DataFrame(
        {"pressure": pressure + noise[1], "purity": purity + noise[2]}
    )


# %%
# The first runs are where the reactor is known to be safe: cold, and slowly fed. Each limit has a
# column of ``z``, a threshold and a side.

X = pd.DataFrame({"temperature": rng.uniform(310, 330, 5), "feed": rng.uniform(6, 9, 5)})
querier = AmortizedSafeQuerier(
    bounds={"temperature": (300, 420), "feed": (4, 20)},
    safety_threshold=[6.0, 95.0],
    safe_when=["below", "above"],
)
querier.fit(X, *run_experiment(X))
for _ in range(25):
    x_next = querier.query()  # a table with one row, for the inputs were a table
    querier.tell(x_next, *run_experiment(x_next))
print(querier.safety_rule)
print(pd.DataFrame(querier.z_, columns=["pressure", "purity"]).describe().loc[["min", "max"]])

# %%
# The map has one line for each limit: where its measurement is expected to be at the limit.

units = {"temperature": "°C", "feed": "l/h", "y": "%", "pressure": "bar", "purity": "%"}
CampaignDisplay.from_querier(querier, units=units)
plt.show()

# %%
SafetyDisplay.from_querier(querier, units=units)
plt.show()
