"""What happened in a campaign, against what its querier knows."""

import json
import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import NonlinearConstraint

from sklearn_asal import AmortizedSafeQuerier, CampaignLog, RandomQuerier
from sklearn_asal.log.campaign import view
from sklearn_asal.log.record import record_of
from sklearn_asal.queriers.base import BaseQuerier

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
few = settings(max_examples=15, deadline=None, derandomize=True)


def begun(path, **params):
    querier = AmortizedSafeQuerier(bounds=[(0.0, 10.0), (0.0, 1.0)], log=path, **params)
    X = [[3.0, 0.5], [4.0, 0.4], [5.0, 0.6]]
    return querier.fit(X, [0.1, 0.2, 0.3], [1.0, 0.8, 0.9])


@few
@given(seed=st.integers(0, 999), steps=st.lists(st.sampled_from("taafcw"), max_size=10))
def test_a_record_is_what_the_querier_knows(seed, steps, tmp_path_factory):
    rng, path = np.random.default_rng(seed), tmp_path_factory.mktemp("log") / "a.jsonl"
    querier = RandomQuerier(bounds=[(0.0, 10.0), (0.0, 1.0)], log=path)
    querier.fit([[1.0, 0.5], [2.0, 0.1], [3.0, 0.2]], [1.0, 2.0, 3.0])
    for step in steps:
        if step == "t":
            querier.tell(querier.query(), rng.normal())
        elif step == "a":
            querier.ask(int(rng.integers(1, 3)))
        elif step == "f" and len(querier.X_) > 2:
            querier.forget(int(rng.integers(len(querier.X_))))
        elif step == "c":
            querier.correct(int(rng.integers(len(querier.X_))), y=rng.normal())
        elif step == "w" and len(querier.pending_):
            querier.withdraw(querier.pending_[:1])
    querier.close_log()
    record = record_of(CampaignLog(path).read())
    kept = record.kept
    np.testing.assert_array_equal([run.x for run in kept], querier.X_)
    np.testing.assert_array_equal([run.y for run in kept], querier.y_)
    assert [run.number for run in kept] == list(range(len(kept)))
    assert sum(not run.is_initial for run in kept) == querier.n_told_ == len(record.reports())
    handed_out = np.array([one.x for one in record.open if one.x in querier.pending_.tolist()])
    np.testing.assert_array_equal(handed_out.reshape(-1, 2), querier.pending_)


def test_reports_belong_to_what_was_measured(tmp_path):
    querier, path = begun(tmp_path / "a.jsonl"), tmp_path / "a.jsonl"
    x, report = querier.query(return_report=True)
    querier.tell(x + [[0.1, 0.0]], 0.5, 0.7)  # near enough
    querier.tell([9.0, 0.9], 0.4, 0.6)  # nobody proposed it
    many, _ = querier.query(n_queries=2, return_report=True)
    querier.tell(many[1], 0.2, 0.5).close_log()
    record = record_of(CampaignLog(path).read())
    first, second, third = record.reports()
    for name in ("y_mean", "y_std", "p_safe", "z_mean", "z_std"):
        np.testing.assert_array_equal(getattr(first, name), getattr(report, name))
    assert second is None
    assert third is not None
    assert [one.x for one in record.open] == [many[0].tolist()]
    assert record.n_proposals == 3


def test_a_view_is_the_campaign_and_leaves_the_file_alone(tmp_path):
    path = tmp_path / "a.jsonl"
    querier = begun(path, budget=9).tell([6.0, 0.5], 0.4, 0.9)  # and goes on
    before = path.read_bytes()
    seen = view(BaseQuerier, path)
    np.testing.assert_array_equal(seen.X_, querier.X_)
    assert seen.log is None
    np.testing.assert_array_equal(seen.query(), querier.query())
    seen.tell([1.0, 0.1], 0.0, 0.5)
    assert path.read_bytes().startswith(before)
    assert {file.name for file in tmp_path.iterdir()} <= {"a.jsonl", "a.jsonl.lock"}
    querier.tell([7.0, 0.5], 0.4, 0.9).close_log()  # nobody has locked it
    assert len(view(BaseQuerier, path).X_) == 5
    assert view(BaseQuerier, path, {"budget": 30}).budget == 30


@few
@given(cut=st.integers(1, 60))
def test_half_a_line_is_left_out(cut, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "a.jsonl"
    begun(path).tell([6.0, 0.5], 0.4, 0.9).close_log()
    whole = path.read_bytes()
    path.write_bytes(whole + whole.splitlines()[-1][:cut])
    size = path.stat().st_size
    assert len(view(BaseQuerier, path).X_) == 4
    assert path.stat().st_size == size
    assert os.listdir(path.parent) == ["a.jsonl"]


def test_reading_while_another_thread_writes(tmp_path):
    path, done = tmp_path / "a.jsonl", threading.Event()
    querier = begun(path)

    def measure():
        for i in range(40):
            querier.tell([i / 5, 0.5], 0.1, 0.9)
        done.set()

    thread = threading.Thread(target=measure)
    thread.start()
    seen = []
    while not done.is_set():
        seen.append(len(record_of(CampaignLog(path).read()).runs))
    thread.join()
    querier.close_log()
    assert seen == sorted(seen)
    assert len(view(BaseQuerier, path).X_) == 43


def test_what_could_not_be_written_has_its_default(tmp_path):
    path = tmp_path / "a.jsonl"
    ring = NonlinearConstraint(lambda x: x[0] - x[1], 0.0, np.inf)
    begun(path, constraints=ring).close_log()
    with pytest.warns(UserWarning, match="constraints could not be written to the log"):
        assert view(BaseQuerier, path).constraints is None
    assert view(BaseQuerier, path, {"constraints": ring}).constraints is ring


def test_a_class_that_cannot_be_imported(tmp_path):
    lines = (Path(__file__).parent / "format-1.jsonl").read_text().splitlines()
    first = json.loads(lines[0]) | {"querier": "no_such_package.queriers:Mine"}
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n")
    with pytest.raises(ImportError, match="no_such_package"):
        view(BaseQuerier, path)
    assert len(record_of(CampaignLog(path).read()).runs) == 7


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_what_no_querier_writes_is_said_to_be_damaged(data):
    events = CampaignLog(Path(__file__).parent / "format-1.jsonl").read()
    event = data.draw(st.sampled_from(events))
    key = data.draw(st.sampled_from(sorted(event)))
    if data.draw(st.booleans()):
        del event[key]
    else:
        event[key] = data.draw(st.sampled_from([None, 3, "x", [], [[]], {}, [1e400]]))
    number = 1 + next(i for i, one in enumerate(events) if one is event)
    try:
        found = len(record_of(events).kept)
    except ValueError as error:
        found = error
    if not isinstance(found, int):
        # What a line says may only be found wrong by a later one.
        line = re.match(r"line (\d+) of the log is damaged", str(found))
        assert int(line[1]) >= number
