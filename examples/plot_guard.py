"""
A guard where the scale was a guess
===================================

Policies by name answer in a tenth of a millisecond. They have to be told how much the safety
signal varies, and here the guess is far too small: the policy takes each margin for a large one.
With ``guard=True`` the measurements are asked before a proposal passes.
"""

# %%
# The rig is simulated: a pump with resonances, whose vibration must stay below 7 mm/s.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_asal import AmortizedSafeQuerier
from sklearn_asal.displays import CampaignDisplay, SafetyDisplay

BOUNDS = {"speed": (1000, 3000), "flow": (10, 90)}
LIMIT = {"safety_threshold": 7.0, "safe_when": "below", "z_scale": 0.7}
NAMES = {"y_name": "efficiency", "z_name": "vibration"}
UNITS = {"speed": "1/min", "flow": "m³/h", "vibration": "mm/s"}


def pump(x, rng):
    s, f = (x[:, 0] - 2000) / 1000, (x[:, 1] - 50) / 40
    away = s**2 + f**2 - 0.5 * s * f
    vibration = 3.0 + 6.0 * away * (1 + 0.6 * np.cos(4 * np.arctan2(f, s)))
    noise = rng.normal(0, [[0.05], [0.1]], (2, len(x)))
    return np.sin(2 * s) * np.cos(2 * f) + noise[0], vibration + noise[1]


def campaign(guard):
    rng, reports = np.random.default_rng(0), []
    querier = AmortizedSafeQuerier("2d", bounds=BOUNDS, budget=25, guard=guard, **LIMIT)
    X = rng.uniform([1800, 42], [2200, 58], (5, 2))
    querier.fit(X, *pump(X, rng))
    for _ in range(25):
        x, report = querier.query(return_report=True)
        querier.tell(x, *pump(x, rng))
        reports.append(report)
    print(f"guard={guard}: {np.sum(querier.z_ > 7)} of 25 queries unsafe")
    return querier, reports


# %%
# Dotted lines are proposals that the guard pulled back. The right panel says whether predictions
# can be trusted: the curve should follow the diagonal.

bare, _ = campaign(guard=False)
guarded, reports = campaign(guard=True)
SafetyDisplay.from_querier(guarded, reports=reports, units=UNITS, **NAMES)
plt.show()

# %%
figure, axes = plt.subplots(1, 2, figsize=(12, 5.2), layout="constrained")
for ax, querier, title in zip(axes, (bare, guarded), ("bare", "guarded")):
    CampaignDisplay.from_querier(querier, ax=ax, units=UNITS, **NAMES).ax_.set_title(title)
plt.show()
