"""A querier that is resumed is the querier that was."""

import copy
import json
import os
import pickle
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import NonlinearConstraint
from sklearn.base import clone

from sklearn_asal import (
    AmortizedSafeQuerier,
    CampaignLog,
    GPSafeQuerier,
    Integer,
    RandomQuerier,
    SafetyGuard,
)
from sklearn_asal.queriers.base import BaseQuerier

from ..common import QUERIERS, UniformQuerier

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_asal.exceptions.SafetyWarning",
    "ignore::sklearn_asal.exceptions.DataScaleWarning",
)
few = settings(max_examples=4, deadline=None, derandomize=True)
BOUNDS = [(0.0, 6.0), (-5.0, 30.0)]
LOGGED = QUERIERS
POOL = np.random.default_rng(5).random((80, 2)) * [6, 35] - [0, 5]


def measured(x):
    x = np.atleast_2d(x)
    return np.sin(x[:, 0]) + 0.01 * x[:, 1], 1.5 - 0.1 * np.abs(x[:, 0] - 3)


def initial(seed, n=4):
    X = np.random.default_rng(seed).random((n, 2)) * [3, 15] + [1.5, 5]
    return X, *measured(X)


@pytest.mark.parametrize("name", LOGGED)
@few
@given(seed=st.integers(0, 2**31), steps=st.lists(st.sampled_from("qpattsbfc"), max_size=8))
def test_the_same_next_proposal_to_the_bit(name, seed, steps, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "campaign.jsonl"
    querier = LOGGED[name](bounds=BOUNDS, budget=40, log=path).fit(*initial(seed))
    for step in steps:
        if step == "q":
            x = querier.query()
            querier.tell(x, *measured(x))
        elif step == "p":
            x, rows = querier.query(pool=POOL, return_indices=True)
            querier.tell(x, *measured(x), index=rows, note="of the pool")
        elif step == "a":
            querier.ask(2)
        elif step == "t" and len(querier.pending_):
            querier.tell(querier.pending_[0], *measured(querier.pending_[0]))
        elif step == "s":
            querier.tell([1.0, 2.0], status="failed")
        elif step == "f" and len(querier.X_) > 3:
            querier.forget([-1, 0] if len(querier.X_) > 5 else 1)
        elif step == "c" and len(querier.X_) > 2:
            querier.correct([1, -1], y=[0.5, 0.25], z=[1.0, 0.5], status=["ok", "ok"])
        elif step == "b":
            querier.set_params(budget=50, random_state=3)
    expected = [querier.query(n_queries=2), querier.query(pool=POOL)]
    pending, status = querier.pending_, querier.status_
    querier.close_log()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        resumed = type(querier).resume(path)
    for part in "X_", "y_", "z_", "index_":
        np.testing.assert_array_equal(getattr(resumed, part), getattr(querier, part))
    np.testing.assert_array_equal(resumed.pending_, pending)
    assert resumed.status_.tolist() == status.tolist()
    assert resumed.n_told_ == querier.n_told_
    assert repr(clone(resumed).set_params(log=None)) == repr(clone(querier).set_params(log=None))
    np.testing.assert_array_equal(resumed.query(n_queries=2), expected[0])
    np.testing.assert_array_equal(resumed.query(pool=POOL), expected[1])
    # And it goes on in the same file.
    resumed.tell([3.0, 10.0], *measured([3.0, 10.0])).close_log()
    assert len(BaseQuerier.resume(path).X_) == len(resumed.X_)


def test_all_sorts_of_measurements(tmp_path):
    path = tmp_path / "a.jsonl"
    querier = AmortizedSafeQuerier(
        bounds=BOUNDS, log=path, safety_threshold=[0.0, 0.5], safe_when=["above", "below"]
    )
    z = [[1.0, True], [0.5, True], [0.7, False]]
    querier.fit([[1, 2], [2, 3], [3.0, 4]], [0.1, None, 0.2], z)
    querier.tell(
        [[4, 5], [5, 6.0]], [0.3, None], [[0.4, True], [None, None]], status=["ok", "aborted"]
    )
    querier.tell([5, 7], z=[0.2, True])
    querier.close_log()
    resumed = AmortizedSafeQuerier.resume(path)
    for part in "X_", "y_", "z_", "status_":
        found, expected = getattr(resumed, part), getattr(querier, part)
        assert found.dtype == expected.dtype
        assert found.tolist().__repr__() == expected.tolist().__repr__()


def test_tables_and_their_names(tmp_path):
    path = tmp_path / "a.jsonl"
    data = pd.DataFrame({"load": [20.0, 30], "rpm": [2000, 2500]})
    querier = AmortizedSafeQuerier(bounds={"rpm": Integer(900, 4000), "load": (0, 60)}, log=path)
    querier.fit(data, [1.0, 2.0], pd.DataFrame({"t": [1.0, 0.9]}))
    expected = querier.query()
    querier.close_log()
    resumed = AmortizedSafeQuerier.resume(path)
    assert resumed.feature_names_in_.tolist() == ["rpm", "load"]
    pd.testing.assert_frame_equal(resumed.query(), expected)
    with pytest.raises(ValueError, match="but in fit they were"):
        resumed.tell([2000, 10], 1.0, pd.DataFrame({"other": [1.0]}))


def test_without_z_the_output_is_its_own_limit(tmp_path):
    path = tmp_path / "a.jsonl"
    querier = AmortizedSafeQuerier(log=path).fit([[0.5], [0.4]], [1.0, 0.9]).tell([0.6], 0.8)
    querier.close_log()
    assert AmortizedSafeQuerier.resume(path).z_.tolist() == querier.z_.tolist() == [1.0, 0.9, 0.8]


def test_proposals_and_reports_are_there(tmp_path):
    querier = AmortizedSafeQuerier(log=tmp_path / "a.jsonl").fit([[0.5], [0.4]], [1.0, 0.9])
    point, report = querier.query(return_report=True)
    querier.query([[0.5]], [1.0])  # of other data
    events = CampaignLog(tmp_path / "a.jsonl").read()
    assert [event["event"] for event in events] == ["campaign", "proposal", "report"]
    assert events[1]["points"] == point.tolist()
    assert events[2]["p_safe"] == report.p_safe.tolist()
    assert events[0]["policy"]["name"] == "auto"
    assert len(events[0]["policy"]["sha256"]) == 64


def test_a_file_holds_one_campaign(tmp_path):
    querier = RandomQuerier(log=tmp_path / "a.jsonl").fit([[0.5]], [1.0])
    with pytest.raises(ValueError, match=r"holds a campaign already. Go on with it by Random"):
        querier.fit([[0.5]], [1.0])
    assert len(querier.tell([0.1], 1.0).X_) == 2  # nothing was lost
    with pytest.raises(RuntimeError, match="another querier"):
        clone(querier).fit([[0.5]], [1.0])


def test_parameters_that_cannot_be_written_are_passed_again(tmp_path):
    constraint = NonlinearConstraint(lambda x: x[0] * x[1], 0.1, np.inf)
    querier = RandomQuerier(constraints=constraint, log=tmp_path / "a.jsonl")
    expected = querier.fit([[0.5, 0.5]], [1.0]).query()
    querier.close_log()
    with pytest.raises(ValueError, match=r"pass it again, as resume\(path, constraints=...\)"):
        RandomQuerier.resume(tmp_path / "a.jsonl")
    found = RandomQuerier.resume(tmp_path / "a.jsonl", constraints=constraint)
    np.testing.assert_array_equal(found.query(), expected)


def test_parameters_in_place_of_those_in_the_log(tmp_path):
    path = tmp_path / "a.jsonl"
    RandomQuerier(budget=3, log=path).fit([[0.5]], [1.0]).close_log()
    RandomQuerier.resume(path, budget=9).close_log()
    assert RandomQuerier.resume(path).budget == 9


def test_classes(tmp_path):
    guard = SafetyGuard(gamma=0.2)
    GPSafeQuerier("ensemble", guard=guard, log=tmp_path / "a").fit([[0.5]], [1.0]).close_log()
    with pytest.raises(TypeError, match=r"resume it by GPSafeQuerier.resume"):
        AmortizedSafeQuerier.resume(tmp_path / "a")
    found = BaseQuerier.resume(tmp_path / "a")
    assert type(found) is GPSafeQuerier
    assert found.guard.gamma == 0.2
    UniformQuerier(log=tmp_path / "b").fit([[0.5]], [1.0]).close_log()
    assert type(UniformQuerier.resume(tmp_path / "b")) is UniformQuerier


def test_somebody_else_wrote(tmp_path):
    querier = RandomQuerier(log=tmp_path / "a").fit([[0.5]], [1.0])
    stale = pickle.loads(pickle.dumps(querier)), copy.deepcopy(querier)
    querier.tell([0.6], 1.0).close_log()
    for other in stale:
        with pytest.raises(RuntimeError, match="is not as this querier left it"):
            other.tell([0.7], 1.0)
        assert len(other.X_) == 1
    resumed = pickle.loads(pickle.dumps(RandomQuerier.resume(tmp_path / "a")))
    assert len(resumed.tell([0.7], 1.0).X_) == 3


def test_what_cannot_be_written_is_not_told(tmp_path, monkeypatch):
    querier = RandomQuerier(log=tmp_path / "a").fit([[0.5]], [1.0])

    def full(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            querier.tell([0.6], 1.0)
    assert len(querier.X_) == 1
    querier.tell([0.6], 1.0).close_log()
    assert len(RandomQuerier.resume(tmp_path / "a").X_) == 2


def test_events_of_a_later_version(tmp_path):
    RandomQuerier(log=tmp_path / "a").fit([[0.5]], [1.0]).close_log()
    with open(tmp_path / "a", "a") as file:
        file.write('{"event": "swirl"}\n')
    with pytest.raises(ValueError, match="line 2: 'swirl' is unknown to this version"):
        RandomQuerier.resume(tmp_path / "a")
    CampaignLog(tmp_path / "a").open()  # and it is not locked


def test_another_policy_than_the_campaign_s(tmp_path):
    AmortizedSafeQuerier(log=tmp_path / "a").fit([[0.5]], [1.0]).close_log()
    first = json.loads((tmp_path / "a").read_text())
    first["policy"]["sha256"] = "0"
    (tmp_path / "a").write_text(json.dumps(first) + "\n")
    with pytest.warns(UserWarning, match="is not the one that the campaign began with"):
        AmortizedSafeQuerier.resume(tmp_path / "a")


def test_a_log_of_the_first_format_is_read():
    """Written by version 0.1.0; later versions must go on from it."""
    source = Path(__file__).parent / "format-1.jsonl"
    events = CampaignLog(source).read()
    assert events[0]["format"] == 1


def test_a_log_of_the_first_format_is_resumed(tmp_path):
    path = tmp_path / "campaign.jsonl"
    path.write_bytes((Path(__file__).parent / "format-1.jsonl").read_bytes())
    querier = BaseQuerier.resume(path)
    assert type(querier) is AmortizedSafeQuerier
    assert (len(querier.X_), querier.n_told_, len(querier.pending_)) == (7, 4, 1)
    assert querier.status_.tolist().count("aborted") == 1
    assert querier.bounds == [(0.0, 6.0), (-5.0, 30.0)]


# One process forks the campaigns: to start fifty interpreters would take a minute.
HARNESS = """
import os, random, signal, sys, time, warnings
import numpy as np
from sklearn_asal import RandomQuerier

warnings.simplefilter("ignore")
path, r = sys.argv[1], random.Random(sys.argv[2])
last = -1
for kills in range(50):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        if os.path.exists(path) and os.path.getsize(path):
            querier = RandomQuerier.resume(path)
        else:
            querier = RandomQuerier(log=path).fit([[0.5, 0.5]], [0.0])
        # All that was told to the one before is there.
        assert len(querier.y_) - 2 >= last, (len(querier.y_), last)
        i = len(querier.y_) - 1
        while True:
            querier.tell(querier.query(), float(i))
            os.write(write, f"{i}\\n".encode())
            i += 1
    os.close(write)
    os.read(read, 1)
    time.sleep(0.02 * r.random())
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    rest = b""
    while part := os.read(read, 2**16):
        rest += part
    os.close(read)
    numbers = rest.split()
    last = int(numbers[-1]) if len(numbers) > 1 else last
    with warnings.catch_warnings():
        querier = RandomQuerier.resume(path)
    assert len(querier.y_) - 2 >= last, (len(querier.y_), last)
    querier.close_log()
print(kills + 1)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
def test_killed_fifty_times_nothing_told_is_lost(tmp_path):
    path, harness = tmp_path / "campaign.jsonl", tmp_path / "harness.py"
    harness.write_text(HARNESS)
    command = [sys.executable, str(harness), str(path), "7"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["50"]
    y = RandomQuerier.resume(path).y_
    assert len(y) > 50
    assert y.tolist() == [0.0, *range(len(y) - 1)]
