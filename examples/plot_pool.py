"""
Only some points can be measured
================================

Archives, fixed test plans and machines with discrete settings offer a finite set of candidates.
Pass them as a pool: the querier returns one of its rows that has not been measured.
"""

# %%
# A grid of settings. Begin with five safe ones near a corner.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_asal import AmortizedSafeQuerier, CandidatePool
from sklearn_asal.datasets import simionescu

bench = simionescu()
axis = np.linspace(-1.25, 1.25, 26)
candidates = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
pool = CandidatePool(candidates)
y_all, z_all = bench.measure(candidates, random_state=0)

near = np.flatnonzero((np.abs(candidates + 0.5) <= 0.25).all(axis=1) & (z_all >= 0))
first = np.random.default_rng(0).choice(near, 5, replace=False)
querier = AmortizedSafeQuerier(bounds=bench.bounds)
querier.fit(candidates[first], y_all[first], z_all[first])

# %%
# ``return_indices`` gives the rows of the pool, and ``tell`` takes them, so that they are never
# proposed again. Without ``index`` a row is known by its values.

chosen = []
for _ in range(30):
    x_next, (index,) = querier.query(pool=pool, return_indices=True)
    querier.tell(x_next, y_all[index], z_all[index], index=index)
    chosen.append(index)
print(f"{len(set(chosen))} different rows, {np.mean(z_all[chosen] >= 0):.2f} of them safe")

# %%
fig, ax = plt.subplots(figsize=(5, 5), layout="constrained")
ax.scatter(*candidates.T, s=4, c=np.where(bench.safety(candidates) >= 0, "#2a7f2a", "#cccccc"))
ax.plot(*candidates[first].T, "ks", label="initial points")
ax.plot(*candidates[chosen].T, "o", mfc="none", mec="C0", label="queries")
ax.set(xlabel="$x_1$", ylabel="$x_2$", title="candidates: safe ones are green")
ax.legend(loc="upper right")
plt.show()

# %%
# For rigs that run in parallel: four proposals for one answer, and what is expected of them.

x_next, report = querier.query(pool=pool, n_queries=4, return_report=True)
print(x_next)
print(f"safe with probabilities {report.p_safe.round(3)}")
