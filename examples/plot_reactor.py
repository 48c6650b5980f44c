"""
Raw units, a limit from above, a table of data
==============================================

A reactor is run at a temperature and a feed rate. The yield shall be learned; the pressure must not
pass 6 bar. Bounds and limit are given in the units of the instruments, nothing is scaled, and the
inputs come as a table, here of pandas. So proposals are tables, too.
"""

# %%
# The reactor is made up. Pressure rises with both inputs, and faster when both are high.

import numpy as np
import pandas as pd

from sklearn_asal import AmortizedSafeQuerier

rng = np.random.default_rng(0)


def run_experiment(x):
    """Yield in percent and pressure in bar at a temperature in °C and a feed rate in l/h."""
    t, f = (x["temperature"] - 360) / 60, (x["feed_rate"] - 12) / 8
    pressure = 4.0 + 1.4 * t + 1.1 * f + 0.8 * t * f
    yield_ = 55 + 15 * np.sin(1.5 * t) * np.cos(1.2 * f) + 5 * f
    noise = rng.normal(scale=[[0.5], [0.05]], size=(2, len(x)))
    return yield_ + noise[0], pressure + noise[1]


# %%
# The first experiments are where the reactor is known to be safe: cold, and slowly fed. From one
# experiment to the next the temperature can be changed by 30 degrees.

X = pd.DataFrame({"temperature": rng.uniform(305, 325, 5), "feed_rate": rng.uniform(5, 8, 5)})
y, z = run_experiment(X)

querier = AmortizedSafeQuerier(
    bounds={"temperature": (300, 420), "feed_rate": (4, 20)},
    safety_threshold=6.0,
    safe_when="below",
    max_step={"temperature": 30},
)
querier.fit(X, y, z)
for _ in range(25):
    x_next = querier.query()
    querier.tell(x_next, *run_experiment(x_next))

log = pd.DataFrame(querier.X_, columns=querier.feature_names_in_)
print(log.assign(yield_percent=querier.y_, pressure_bar=querier.z_).round(2).to_string())
print(f"{querier.safety_rule}; highest pressure: {querier.z_.max():.2f} bar")
print(f"largest change of temperature: {log['temperature'].diff().abs()[5:].max():.1f} degrees")

# %%
# Tell the querier what was measured, not what was proposed. Here the valve overshot.

x_next, report = querier.query(return_report=True)
x_actual = x_next + [0.8, -0.1]
querier.tell(x_actual, *run_experiment(x_actual))
print(f"proposed {x_next.round(2).to_dict('records')}")
print(f"safe with probability {report.p_safe[0]:.3f}")
print(f"measured {querier.X_[-1].round(2)}, at {querier.z_[-1]:.2f} bar")
