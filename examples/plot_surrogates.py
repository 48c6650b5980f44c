"""
Models of scikit-learn and GPyTorch
===================================

Conventional queriers choose by a model, and the model may be yours: a regressor of scikit-learn,
a kernel of GPyTorch, or one of this package. Here three of them learn the same signal.
"""

# %%
# A simulated sensor with a jump. Its heat, which rises with the voltage, must stay below 60 °C.

import gpytorch
import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern

from sklearn_asal import GPSafeQuerier
from sklearn_asal.displays import CampaignDisplay


def sensor(x, rng):
    volt = x[:, 0]
    signal = np.sin(1.3 * volt) + 0.8 * (volt > 5.5)
    heat = 20 + 0.7 * volt**2
    return signal + rng.normal(0, 0.05, len(x)), heat + rng.normal(0, 0.5, len(x))


matern = Matern(0.3, (0.05, 50.0), nu=2.5)
surrogates = {
    "exact (this package)": "exact",
    "scikit-learn, Matérn": GaussianProcessRegressor(matern, alpha=0.0025),
    "GPyTorch, Matérn": gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5)),
}

# %%
figure, axes = plt.subplots(1, 3, figsize=(15, 6), layout="constrained")
for ax, (name, surrogate) in zip(axes, surrogates.items()):
    rng = np.random.default_rng(0)
    querier = GPSafeQuerier(
        surrogate,
        bounds={"voltage": (0, 10)},
        safety_threshold=60.0,
        safe_when="below",
        z_scale=20.0,
        n_candidates=500,
        random_state=0,
    )
    X = rng.uniform(1, 3, (4, 1))
    querier.fit(X, *sensor(X, rng))
    for _ in range(8):
        x = querier.query()
        querier.tell(x, *sensor(x, rng))
    print(f"{name}: {np.sum(querier.z_ > 60)} of 8 queries unsafe")
    units = {"voltage": "V", "signal": "mV", "heat": "°C"}
    CampaignDisplay.from_querier(querier, ax=ax, y_name="signal", z_name="heat", units=units)
    ax.set_title(name)
plt.show()
