"""
A mixture whose parts sum to one
================================

A sealant is mixed of resin, filler and solvent. The parts sum to one, and there are at least
20 % resin. Its strength shall be learned. What is thicker than 40 Pa·s blocks the mixer.
"""

# %%
# The mixer is simulated.

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import LinearConstraint

from sklearn_asal import AmortizedSafeQuerier
from sklearn_asal.displays import CampaignDisplay, SafetyDisplay

rng = np.random.default_rng(0)


def mix(x):
    resin, filler, solvent = x.T
    strength = 8 * resin + 14 * filler * resin * 4 - 6 * solvent**2
    viscosity = 4 + 60 * filler**1.5 + 18 * resin - 10 * solvent
    return strength + rng.normal(0, 0.1, len(x)), viscosity + rng.normal(0, 0.5, len(x))


# %%
# The constraint is SciPy's. An equation has equal bounds; the least share of resin is in the
# bounds of that feature.

querier = AmortizedSafeQuerier(
    bounds={"resin": (0.2, 1.0), "filler": (0.0, 0.8), "solvent": (0.0, 0.8)},
    constraints=LinearConstraint([1.0, 1.0, 1.0], lb=1.0, ub=1.0),
    safety_threshold=40.0,
    safe_when="below",
)
X = 0.2 + 0.4 * rng.dirichlet([4, 4, 4], 5)  # each part at least 20 %
querier.fit(X, *mix(X))
for _ in range(20):
    x = querier.query()
    querier.tell(x, *mix(x))
print(querier.X_[-3:].round(3))
print(f"largest deviation of the sum from one: {abs(querier.X_.sum(axis=1) - 1).max():.0e}")

# %%
# Each map shows two of the parts; the third is what is left of one. What the constraints forbid
# is blank.

names = {"y_name": "strength", "z_name": "viscosity"}
units = {"strength": "MPa", "viscosity": "Pa·s"}
CampaignDisplay.from_querier(querier, units=units, **names)
plt.show()

# %%
SafetyDisplay.from_querier(querier, units=units, **names)
plt.show()
