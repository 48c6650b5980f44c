"""
A campaign that is killed, and goes on
======================================

An engine is measured for weeks. The computer loses power in between, in the middle of a
measurement. Nothing that was told is lost, and the next proposal is the one that would have come.
"""

# %%
# The rig is simulated. It runs in a process of its own, whose campaign has a log.

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from sklearn_asal import AmortizedSafeQuerier
from sklearn_asal.displays import CampaignDisplay, ProgressDisplay

PROGRAM = """
import sys
import numpy as np
from sklearn_asal import AmortizedSafeQuerier

def measure(x):
    speed, load = np.atleast_2d(x).T
    return 40 + 30 * np.sin(speed / 900) + load, 500 + speed / 20 + 4 * load
bounds = {"speed": (900, 4000), "load": (0, 60)}
limit = {"safety_threshold": 850.0, "safe_when": "below"}
campaign = AmortizedSafeQuerier(bounds=bounds, **limit, log=sys.argv[1])
X = np.array([[1500, 12], [1700, 15], [1400, 18], [1600, 10]])
campaign.fit(X, *measure(X))
while True:
    x = campaign.query()
    campaign.tell(x, *measure(x))
    print("measured", flush=True)
"""

# %%
# After twelve measurements it is killed. It has no time to tidy up.

log = Path(tempfile.mkdtemp()) / "campaign.jsonl"
rig = subprocess.Popen([sys.executable, "-c", PROGRAM, log], stdout=subprocess.PIPE, text=True)
for _ in range(12):
    rig.stdout.readline()  # "measured"
rig.kill()
rig.communicate()

# %%
# The campaign goes on from its log. Displays also take the log itself, while it is written.

campaign = AmortizedSafeQuerier.resume(log)
print(f"{campaign.n_told_} measurements are kept; next: {campaign.query().round(1)}")
campaign.close_log()
CampaignDisplay.from_campaign(log, x_next="query", units={"speed": "1/min", "load": "Nm"})
ProgressDisplay.from_campaign(log)
plt.show()
