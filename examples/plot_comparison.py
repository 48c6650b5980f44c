"""
Beside Gaussian processes
=========================

How does the default policy compare with conventional safe active learning? ``run`` plays one
campaign on one of the benchmark's tasks, here Simionescu's function, with one seed.
"""

# %%
# Three queriers, three seeds each. Whatever has ``fit``, ``query`` and ``tell`` can take part.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_asal import AmortizedSafeQuerier, GPSafeQuerier
from sklearn_asal.benchmarks import run
from sklearn_asal.displays import ComparisonDisplay

queriers = {
    "policy any": AmortizedSafeQuerier(),
    "Gaussian process": GPSafeQuerier(gamma=0.02),
    "random, safe": GPSafeQuerier(gamma=0.02, acquisition="random"),
}
campaigns = {
    name: [run(querier, "simionescu", seed, n_queries=30, every=3) for seed in range(3)]
    for name, querier in queriers.items()
}
for name, found in campaigns.items():
    rmse = np.mean([records[-1].rmse for records in found])
    share = np.mean([records[-1].safe_share for records in found])
    print(f"{name:<17} RMSE {rmse:.3f}, {100 * share:.0f} % safe")

# %%
# Means over seeds, with the standard error as a band. The error is that of a Gaussian process
# that is fitted to what was measured, on test points in the safe region. Here the querier that
# fits its models learns faster, and measures what is unsafe more often.

ComparisonDisplay.from_benchmark(campaigns, "simionescu")
plt.show()

# %%
# ``python -m sklearn_asal bench run`` does so for all tasks and methods, on all cores. Its folder
# goes into ``ComparisonDisplay.from_benchmark`` as well.
