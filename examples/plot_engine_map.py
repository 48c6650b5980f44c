"""
An engine map with a temperature limit
======================================

A test bench measures the fuel consumption of an engine over speed and load. The exhaust gas must
stay below 850 °C. Which loads are too high at which speed is not known beforehand.
"""

# %%
# The bench is simulated: give it speeds and loads, get consumption and temperature.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_asal import AmortizedSafeQuerier
from sklearn_asal.displays import CampaignDisplay, ProgressDisplay, SafetyDisplay

rng = np.random.default_rng(0)


def bench(X):
    speed, load = (X[:, 0] - 900) / 3100, X[:, 1] / 60
    consumption = 215 + 150 * (speed - 0.4) ** 2 + 120 * (1 - load) ** 3 + 12 * np.sin(7 * speed)
    temperature = 380 + 330 * load + 330 * speed**1.5 * (0.4 + load)
    return consumption + rng.normal(0, 1, len(X)), temperature + rng.normal(0, 3, len(X))


# %%
# The campaign begins with five points at low speed and load. No scales are stated.

X = rng.uniform([1200, 10], [1800, 25], (5, 2))
querier = AmortizedSafeQuerier(
    bounds={"speed": (900, 4000), "load": (0, 60)}, safety_threshold=850.0, safe_when="below"
)
querier.fit(X, *bench(X))
for _ in range(30):
    x = querier.query()
    querier.tell(x, *bench(x))
print(f"hottest run: {querier.z_.max():.0f} °C")

# %%
# What it expects of the map. Numbers are queries in their order.

names = {"y_name": "consumption", "z_name": "exhaust"}
units = {"speed": "1/min", "load": "mg/stroke", "consumption": "g/kWh", "exhaust": "°C"}
CampaignDisplay.from_querier(querier, units=units, **names)
plt.show()

# %%
# How close it came to the limit.

SafetyDisplay.from_querier(querier, units=units, **names)
plt.show()

# %%
# When is it enough? Here when the expected error comes close to the noise, 1 g/kWh.

ProgressDisplay.from_querier(querier, y_name="consumption", noise_std=1.0)
plt.show()
