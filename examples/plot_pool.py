"""
A table of candidates
=====================

A laboratory has 500 alloys on its shelves. Their hardness shall be learned from few tests. Alloys
that are too brittle crack in the press, so their toughness must be 20 J or more. Only what is on
the shelves can be tested: the table is the pool.
"""

# %%
# The shelves, and a simulated press.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_asal import AmortizedSafeQuerier, CandidatePool
from sklearn_asal.displays import CampaignDisplay

rng = np.random.default_rng(0)
lower, upper = [0.1, 0.0, 0.0, 150.0], [1.2, 18.0, 10.0, 650.0]
names = ["carbon", "chromium", "nickel", "tempering"]
alloys = pd.DataFrame(rng.uniform(lower, upper, (500, 4)).round(2), columns=names)


def press(alloy):
    carbon, chromium, nickel, tempering = alloy.to_numpy().T
    hardness = 30 + 25 * np.sqrt(carbon) + 0.5 * chromium - 0.03 * (tempering - 150)
    toughness = 60 - 50 * carbon + 2.0 * nickel - 0.8 * chromium + 0.05 * (tempering - 400)
    noise = rng.normal(0, 0.5, (2, len(alloy)))
    return hardness + noise[0], toughness + noise[1]


# %%
# Five tough alloys are known. ``query`` returns the row of the pool, and ``tell`` takes it, so
# that no alloy is tested twice.

pool = CandidatePool(alloys)
known = alloys[(alloys["carbon"] < 0.3) & (alloys["chromium"] < 8)].index[:5]
querier = AmortizedSafeQuerier(bounds=np.column_stack([lower, upper]), safety_threshold=20.0)
querier.fit(alloys.loc[known], *press(alloys.loc[known]))
for _ in range(25):
    x, index = querier.query(pool=pool, return_indices=True)
    querier.tell(x, *press(x), index=index)
print(f"tested: {sorted(querier.index_[5:].tolist())}")
print(f"too brittle: {np.sum(querier.z_ < 20)}")

# %%
# Four inputs are shown as parallel coordinates: a line is one alloy.

units = dict.fromkeys(names[:3], "%") | {"tempering": "°C", "hardness": "HRC", "toughness": "J"}
called = {"y_name": "hardness", "z_name": "toughness", "units": units}
CampaignDisplay.from_querier(querier, kind="parallel", pool=pool, **called)
plt.show()
