"""Queriers that ask a policy."""

import copy
import gc
import math
import pickle
import subprocess
import sys
import threading
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone

from sklearn_asal import (
    AmortizedQuerier,
    AmortizedSafeQuerier,
    CandidatePool,
    DataScaleWarning,
    NoSafeCandidateError,
    PolicyFileError,
    PolicyNotFoundError,
    SafetyWarning,
)
from sklearn_asal.box import Box
from sklearn_asal.policies import load_policy, registry, save_policy
from sklearn_asal.pool import Candidates

from ..common import found_by_threes, policy_file
from ..reference import ReferenceEnsemble

X = np.array([[0.4, 0.5], [0.6, 0.5], [0.5, 0.55]])
Y = np.array([0.1, -0.3, 0.8])
Z = np.array([1.0, 0.5, 1.5])


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """Pretend that policies "2d" and "3d" are shipped, the latter only as a safe one."""
    for name, safe, n_features in (
        ("safe-2d", True, 2),
        ("2d", False, 2),
        ("safe-3d", True, 3),
    ):
        path = tmp_path / f"{name}.safetensors"
        path.write_bytes(Path(policy_file(safe, n_features)).read_bytes())
    monkeypatch.setattr(registry, "weights_folder", lambda: tmp_path)


def bare(policy, **params):
    """A policy on its own."""
    return AmortizedSafeQuerier(policy, guard=False, **params)


def forward(safe, budget, X=X, y=Y, z=Z):
    """What the network of the training says to data at unit scale."""
    import torch

    network, _ = load_policy(policy_file(safe), safe=safe)
    inputs = [torch.tensor(part, dtype=torch.float32)[None] for part in (X, y, z)]
    with torch.no_grad():
        point = network(torch.tensor([float(budget)]), *(inputs if safe else inputs[:2]))
    return point.double().numpy()


@pytest.mark.parametrize("budget", [1, 7, 40])
def test_the_answer_is_the_network_s(budget):
    safe = bare(policy_file(True)).query(X, Y, Z, budget=budget)
    np.testing.assert_allclose(safe, forward(True, budget), rtol=0, atol=1e-6)
    plain = AmortizedQuerier(policy_file(False)).query(X, Y, budget=budget)
    np.testing.assert_allclose(plain, forward(False, budget), rtol=0, atol=1e-6)
    assert not np.allclose(forward(True, budget), forward(True, budget + 1), rtol=0, atol=1e-6)


def test_raw_units_on_both_sides():
    bounds = np.array([(0.0, 6.0), (-5.0, 30.0)])
    low, width = bounds[:, 0], bounds[:, 1] - bounds[:, 0]
    querier = bare(
        policy_file(True),
        bounds=bounds,
        budget=7,
        y_loc=20,
        y_scale=3,
        safety_threshold=350,
        safe_when="below",
        z_scale=40,
    )
    point = querier.query(low + width * X, 20 + 3 * Y, 350 - 40 * Z)
    np.testing.assert_allclose(point, low + width * forward(True, 7), rtol=0, atol=1e-4)


def test_default_budget_is_what_training_had_left():
    # Trained from 5 observations on, for 40 queries.
    querier = AmortizedQuerier(policy_file(False))
    for n, left in ((1, 40), (5, 40), (6, 39), (44, 1), (60, 1)):
        data = np.resize(X, (n, 2)), np.resize(Y, n)
        expected = forward(False, left, *data)
        np.testing.assert_allclose(querier.query(*data), expected, rtol=0, atol=1e-5)
        np.testing.assert_allclose(querier.fit(*data).query(), expected, rtol=0, atol=1e-5)


def test_longer_campaigns_stretch_the_plan():
    # 5 + 40 observations in training; 5 + 80 asked for.
    querier = AmortizedQuerier(policy_file(False), budget=80)
    rng = np.random.default_rng(0)
    X, y = rng.random((85, 2)), rng.standard_normal(85)
    for told, stated in ((0, 40.0), (20, 30.0), (79, 1.0)):
        data = X[: 5 + told], y[: 5 + told]
        expected = forward(False, stated, *data)
        with pytest.warns(DataScaleWarning):
            querier.fit(X[:5], y[:5])
        if told:
            querier.tell(X[5 : 5 + told], y[5 : 5 + told])
        np.testing.assert_allclose(querier.query(), expected, rtol=0, atol=1e-5)
        many = querier.propose_many([data], 80 - told)
        np.testing.assert_allclose(many, expected, rtol=0, atol=1e-5)


def test_budgets_beyond_training_are_warned_of():
    querier = AmortizedQuerier(policy_file(False), budget=60)
    message = (
        "budget=60 is more than the 40 queries that the policy was trained for; .*"
        r"Policy 'any' needs no plan\."
    )
    with pytest.warns(DataScaleWarning, match=message) as record:
        querier.fit(X, Y)
    assert record[0].filename == __file__
    np.testing.assert_allclose(querier.query(), forward(False, 40), rtol=0, atol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        querier.tell(X[0], Y[0])
        AmortizedQuerier(policy_file(False), budget=40).fit(X, Y).query()
    with pytest.warns(DataScaleWarning, match="budget=41 is more than"):
        querier.query(budget=41)
    with pytest.warns(DataScaleWarning, match="budget=50 is more than"):
        querier.propose_many([(X, Y), (X, Y)], budgets=[10, 50])


def test_the_end_of_an_unstated_plan_is_warned_of():
    querier, n = AmortizedQuerier("1d"), 31  # 30 queries after one observation
    x = np.linspace(0, 1, n)[:, None]
    with pytest.warns(
        DataScaleWarning, match="no budget is stated, and the policy's plan for 30"
    ) as record:
        querier.query(x, np.sin(9 * x[:, 0]))
    assert record[0].filename == __file__
    with pytest.warns(DataScaleWarning, match="no budget is stated, and the policy's plan for 30"):
        querier.propose_many([(x, np.sin(9 * x[:, 0])), (x[:3], [0, 1, 0])])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        querier.query(x[:-1], np.sin(9 * x[:-1, 0]))
        querier.query(x, np.sin(9 * x[:, 0]), budget=3)


def test_long_campaigns_have_a_policy_of_their_own():
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataScaleWarning)
        long = AmortizedQuerier("2d-long", budget=100).fit(X, Y)
        short = AmortizedQuerier("2d", budget=30).fit(X, Y)
        assert long.query().shape == short.query().shape == (1, 2)
    assert long.policy_header_["max_budget"] == 100
    assert short.policy_header_["max_budget"] == 30
    with pytest.warns(DataScaleWarning, match="Policy '2d-long' was trained for more"):
        AmortizedQuerier("2d", budget=100).fit(X, Y)
    with pytest.warns(DataScaleWarning, match="Policy '2d-long' was trained for more"):
        AmortizedQuerier("2d").query(X, Y, budget=100)
    # There is none for more, nor for safe campaigns.
    for querier, data in (
        (AmortizedQuerier("2d-long"), (X, Y)),
        (bare("2d"), (X, Y, Z)),
    ):
        with pytest.warns(DataScaleWarning, match="stretched over them. Policy 'any' needs no"):
            querier.query(*data, budget=101)


def test_swapping_the_classes_changes_nothing_else():
    for querier in AmortizedQuerier(policy_file(False)), bare(policy_file(True)):
        querier.fit(X, Y, Z).tell(X[0], Y[0], Z[0])
        assert querier.query().shape == (1, 2)
        np.testing.assert_array_equal(querier.z_, [*Z, Z[0]])
    plain = AmortizedQuerier(policy_file(False))
    np.testing.assert_array_equal(plain.query(X, Y, Z), plain.query(X, Y))


extreme = st.floats(allow_nan=False, allow_infinity=False, width=64)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    X=arrays(float, (3, 2), elements=extreme),
    y=arrays(float, 3, elements=extreme),
    z=arrays(float, 3, elements=extreme),
    scaling=st.sampled_from(["auto", 1.0, 1e-300, 1e300]),
)
def test_extreme_data_give_warnings_and_a_point(X, y, z, scaling):
    scales = {"y_loc": "auto", "y_scale": scaling, "z_scale": scaling}
    querier = AmortizedSafeQuerier(
        policy_file(True), bounds=(-3, -1), on_no_safe="least_unsafe", **scales
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        point = querier.query(X, y, z)
    assert ((point >= -3) & (point <= -1)).all()


def test_ordinary_campaigns_are_silent():
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (1, 5, 10):  # few points around the centre, close in value
            querier = bare(policy_file(True), budget=40)
            querier.fit(rng.uniform(0.4, 0.6, (n, 2)), 0.5 + 0.01 * rng.random(n), rng.random(n))
            for _ in range(5):
                querier.tell(querier.query(), rng.uniform(-4, 4), rng.uniform(-2, 4))


def test_safe_points_far_from_the_middle_are_a_warning():
    """Policies were trained on systems that are safe in the middle, and go there."""
    corner = np.array([[0.2, 0.2], [0.25, 0.5], [0.5, 0.5]])
    with pytest.warns(SafetyWarning, match="middle of bounds.*take policy 'any'"):
        bare(policy_file(True)).fit(corner, [0, 1, 0], [1, 1, -1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bare(policy_file(True)).fit(corner, [0, 1, 0], [1, -1, 1])
        bare(policy_file(True), bounds=(-0.2, 0.7)).fit(corner, [0, 1, 0], [1, 1, -1])


def test_a_policy_for_regions_anywhere_needs_no_middle(tmp_path):
    file = tmp_path / "policy.safetensors"
    header = {"preset": {"safe_centre": {"kind": "uniform", "low": 0.2, "high": 0.8}}}
    network, old = load_policy(policy_file(True), safe=True)
    save_policy(network, file, old | header)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AmortizedSafeQuerier(file).fit([[0.1, 0.9], [0.5, 0.5]], [0, 1], [1, -1])


# ---- policies


def test_shipped_policies_by_their_names(shop):
    np.testing.assert_allclose(
        bare("2d", budget=7).fit(X, Y, Z).query(),
        forward(True, 7),
        rtol=0,
        atol=1e-6,
    )
    np.testing.assert_allclose(
        AmortizedQuerier("2d", budget=7).query(X, Y), forward(False, 7), rtol=0, atol=1e-6
    )
    assert bare("3d").query(np.full((2, 3), 0.5), [0, 1], [0, 1]).shape == (1, 3)
    with pytest.raises(PolicyNotFoundError, match="neither a shipped unconstrained policy nor a"):
        AmortizedQuerier("3d").fit(np.full((2, 3), 0.5), [0, 1])


def test_a_policy_of_one_system_is_taken_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "weights_folder", lambda: tmp_path)
    (tmp_path / "safe-2d-rig.safetensors").write_bytes(Path(policy_file(True)).read_bytes())
    expected = bare(policy_file(True)).query(X, Y, Z)
    found = bare("2d-rig").fit(X, Y, Z).query()
    np.testing.assert_array_equal(found, expected)


def test_auto_is_no_policy_for_one_number_of_features(shop):
    """Not even where the one for any number of them is missing."""
    querier = AmortizedSafeQuerier()
    for call in querier.fit, querier.query:
        with pytest.raises(PolicyNotFoundError, match=r"'any' is neither .*: '2d', '3d'"):
            call(X, Y, Z)
    assert not hasattr(querier, "X_")


def test_another_number_of_features_than_the_policy_s(shop):
    three = np.full((2, 3), 0.5)
    with pytest.raises(
        ValueError, match=r"3 features, but policy '2d' takes 2\. 'any' and '3d' fit\."
    ):
        bare("2d").fit(three, [0, 1])
    with pytest.raises(ValueError, match=r"takes 2\. 'any' fits\."):
        AmortizedQuerier(policy_file(False)).query(three, [0, 1])


def test_nothing_shipped(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "weights_folder", lambda: tmp_path)
    with pytest.raises(PolicyNotFoundError, match="Shipped unconstrained policies: none yet"):
        AmortizedQuerier().fit(X, Y)


def test_from_pretrained(shop, tmp_path):
    querier = AmortizedSafeQuerier.from_pretrained("2d", budget=3, safety_threshold=0.5)
    assert querier.get_params()["policy"] == "2d"
    assert (querier.budget, querier.safety_threshold) == (3, 0.5)
    assert type(AmortizedQuerier.from_pretrained(Path(policy_file(False)))) is AmortizedQuerier
    with pytest.raises(PolicyNotFoundError, match=r"'9d'.*'2d', '3d'"):
        AmortizedSafeQuerier.from_pretrained("9d")
    with pytest.raises(PolicyFileError, match="AmortizedSafeQuerier"):
        AmortizedQuerier.from_pretrained(policy_file(True))
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(Path(policy_file(True)).read_bytes()[:2000])
    with pytest.raises(PolicyFileError, match="damaged"):
        AmortizedSafeQuerier.from_pretrained(damaged)
    with pytest.raises(PolicyNotFoundError):
        AmortizedSafeQuerier("9d").fit(X, Y)


def test_header():
    querier = AmortizedQuerier(policy_file(False))
    assert not hasattr(querier, "policy_header_")
    querier.fit(X, Y).policy_header_["max_budget"] = 0
    assert querier.policy_header_["max_budget"] == 40


def test_a_policy_written_anew_is_read_anew(tmp_path):
    path = tmp_path / "mine.safetensors"
    path.write_bytes(Path(policy_file(False)).read_bytes())
    querier = AmortizedQuerier(path).fit(X, Y)
    assert querier.query().shape == (1, 2)
    path.unlink()
    path.write_bytes(Path(policy_file(False, 3)).read_bytes())
    with pytest.raises(ValueError, match="takes 3"):
        querier.query()


def test_the_network_stays_out_of_pickles():
    querier = AmortizedQuerier(policy_file(False)).fit(X, Y)
    querier.query()
    assert len(pickle.dumps(querier)) < 5000


@pytest.mark.skipif("2d" not in registry.shipped(True), reason="not trained yet")
def test_shipped_safe_policy():
    querier = AmortizedSafeQuerier.from_pretrained("2d", budget=20).fit(X, Y, Z)
    for _ in range(20):
        querier.tell(querier.query(), 0.0, 1.0)
    assert ((querier.X_ >= 0) & (querier.X_ <= 1)).all()
    # It explores rather than to stay where it is.
    assert np.ptp(querier.X_, axis=0).min() > 0.4


@pytest.mark.parametrize("share", [0.04, 0.2])
def test_a_bold_policy_is_for_pools(share, tmp_path):
    network, header = load_policy(policy_file(True), safe=True)
    path = tmp_path / "policy.safetensors"
    facts = {key: value for key, value in header.items() if key != "sha256"}
    save_policy(network, path, facts | {"validation": {"unsafe_share": share}})
    querier = AmortizedSafeQuerier(path).fit(X, Y, Z)
    free = (
        querier.query,
        lambda: querier.propose_many([(X, Y, Z)]),
        lambda: clone(querier).set_params(gamma=0.2).query(X, Y, Z, pool=X + 0.01),
    )
    for call in free:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert any("20% of this policy's" in str(w.message) for w in caught) == (share > 0.1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        querier.query(pool=X + 0.01)
    assert not any("of this policy's" in str(w.message) for w in caught)


# ---- rows of a pool

FILE_NOISES = 0.1, 0.1, 0.1  # those of the header


def known(n, n_features=2, seed=0):
    """Observations in the middle, most of them safe."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.25, 0.75, (n, n_features))
    return X, np.sin(5 * X[:, 0]) + X[:, 1:].sum(axis=1) - 0.5, X[:, 0] - 0.35


def looked_at(pool, point, n_candidates, weights=1.0):
    """Rows that are compared, then ever more of them, at last all; nearest first."""
    order = np.argsort(np.linalg.norm((pool - point) * weights, axis=1), kind="stable")
    k = 1
    if n_candidates > 1:
        k = min(4 ** (pool.shape[1] - 1), 8 * n_candidates)
    while k < 8 * len(pool):
        yield order[:k][:: math.ceil(k / (n_candidates if n_candidates > 1 else 64))]
        k *= 8
    yield order


def row_of(pool, point, n_candidates, gamma, model, weights=1.0):
    """Of the rows that are safe enough the least certain one; without such rows the safest."""
    for rows in looked_at(pool, point, n_candidates, weights):
        enough = rows
        if gamma is not None:
            enough = rows[model.probability_of_positive(pool[rows]) >= 1 - gamma]
        if len(enough):
            return enough[0 if n_candidates == 1 else model.predict(pool[enough])[1].argmax()]
    return rows[model.probability_of_positive(pool[rows]).argmax()]


@pytest.mark.filterwarnings("ignore:no row of the pool near")
@pytest.mark.parametrize("n_features", [1, 2, 3, 5])
@pytest.mark.parametrize("n_candidates", [1, 2, 16])
@pytest.mark.parametrize("safe", [True, False])
def test_of_the_rows_near_a_proposal_the_least_certain_is_taken(safe, n_candidates, n_features):
    """Of those that are safe enough."""
    kind = bare if safe else AmortizedQuerier
    querier, taken = kind(policy_file(safe, n_features), n_candidates=n_candidates), []
    for seed in range(8):
        data, pool = (
            known(9, n_features, seed),
            np.random.default_rng(seed).random((500, n_features)),
        )
        gamma = [0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5][seed] if safe else None
        querier.set_params(**({"gamma": gamma} if safe else {}))
        point = querier.query(*data)[0]
        values = data[2] if safe else data[1]
        model = ReferenceEnsemble(data[0], values, 0.3, FILE_NOISES)
        expected = row_of(pool, point, n_candidates, gamma, model)
        assert querier.query(*data, pool=pool, return_indices=True)[1] == [expected]
        taken.append(expected != next(looked_at(pool, point, n_candidates))[0])
    # Not all are the nearest, unless there is nothing to choose from.
    assert any(taken) == (safe or (n_candidates > 1 and n_features > 1))


def test_with_one_candidate_the_nearest_row_is_taken():
    """And with a gamma of one nothing is ruled out."""
    pool = np.random.default_rng(0).random((400, 2))
    for seed in range(5):
        data = known(9, seed=seed)
        for querier in (
            AmortizedQuerier(policy_file(False), n_candidates=1),
            bare(policy_file(True), n_candidates=1, gamma=1),
        ):
            away = np.linalg.norm(pool - querier.query(*data), axis=1)
            assert querier.query(*data, pool=pool, return_indices=True)[1] == [away.argmin()]


@pytest.mark.parametrize("gamma", [0.01, 0.05, 0.3, 0.9])
def test_gamma_holds_as_long_as_there_are_rows(gamma):
    querier = bare(policy_file(True), gamma=gamma)
    for seed in range(5):
        X, y, z = known(12, seed=seed)
        pool = np.random.default_rng(seed).random((3000, 2))
        model = ReferenceEnsemble(X, z, 0.3, FILE_NOISES)
        p_safe = model.probability_of_positive(pool)
        assert (p_safe >= 1 - gamma).any()
        rows = querier.query(X, y, z, pool=pool, n_queries=4, return_indices=True)[1]
        assert p_safe[rows].min() >= 1 - gamma - 1e-9


def test_pending_rows_are_known_and_no_evidence_of_safety(monkeypatch):
    querier, points = bare(policy_file(True, 3), gamma=0.2), []
    runtime = querier._load(3).runtime
    decide = runtime.decide
    monkeypatch.setattr(
        runtime, "decide", lambda *asked: points.append(decide(*asked)) or points[-1]
    )
    X, y, z = known(9, 3)
    pool = np.random.default_rng(0).random((300, 3))
    rows = querier.query(X, y, z, pool=pool, n_queries=6, return_indices=True)[1]
    left, ignored = np.arange(300), []
    for j, (point, row) in enumerate(zip(points, rows, strict=True)):
        certain = ReferenceEnsemble(X, z, 0.3, FILE_NOISES, pending=pool[rows[:j]])
        safe = ReferenceEnsemble(X, z, 0.3, FILE_NOISES)
        certain.probability_of_positive = safe.probability_of_positive
        assert row == left[row_of(pool[left], point, 16, 0.2, certain)]
        ignored.append(row != left[row_of(pool[left], point, 16, 0.2, safe)])
        left = left[left != row]
    assert any(ignored)


@pytest.mark.parametrize("n_features", [2, 3])
@pytest.mark.parametrize("safe", [True, False])
def test_every_row_of_a_pool_is_found(n_features, safe):
    """Equal rows one after the other."""
    rng = np.random.default_rng(0)
    kind = AmortizedSafeQuerier if safe else AmortizedQuerier
    pool = CandidatePool(np.repeat(0.3 + 0.4 * rng.random((10, n_features)), 3, axis=0))
    querier = kind(policy_file(safe, n_features), budget=40)
    querier.fit(np.full((1, n_features), 0.5), [0.0], [1.0])
    found = found_by_threes(querier, pool, 10)
    assert sorted(found) == list(range(30))
    # The first of equal rows comes first.
    assert all(found.index(i) < found.index(i + 1) for i in range(29) if i % 3 < 2)


@pytest.mark.parametrize("n", [2048, 2049, 2100])
def test_what_is_safe_is_found_before_the_warning(n):
    def margin(x):
        return 1 - np.square(x - 0.5).sum(axis=1) / (3 * 0.16**2)

    rows = np.random.default_rng(2).random((2100, 3))
    querier = bare("3d", budget=20)
    first = 0.5 + 0.05 * np.random.default_rng(3).standard_normal((5, 3))
    querier.fit(first, first.sum(axis=1) - 1.5, margin(first))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "no row of the pool near")
        for _ in range(20):
            x = querier.query(pool=rows[:n])
            querier.tell(x, x.sum(axis=1) - 1.5, margin(x))


def test_a_pool_without_safe_rows_is_warned_of():
    """The safest of those that were looked at is taken."""
    X, y, z = known(12)
    z, rng = z - 1.5, np.random.default_rng(0)
    querier = bare(policy_file(True), safety_threshold=-10.0, on_no_safe="least_unsafe")
    querier.fit(X, y, z).set_params(safety_threshold=0.0)
    pool = rng.random((60, 2))
    with pytest.warns(
        SafetyWarning, match=r"probability of 0.95 \(gamma=0.05\); the safest"
    ) as seen:
        _, row = querier.query(pool=pool, return_indices=True)
    assert any(w.filename == __file__ for w in seen)
    p_safe = ReferenceEnsemble(X, z, 0.3, FILE_NOISES).probability_of_positive(pool)
    assert row == [p_safe.argmax()]


def test_a_pool_without_safe_rows_may_be_an_error():
    X, y, z = known(12)
    z, pool = z - 1.5, np.random.default_rng(0).random((60, 2))
    querier = bare(policy_file(True), safety_threshold=-10.0, on_no_safe="raise")
    querier.fit(X, y, z).set_params(safety_threshold=0.0)
    p_safe = ReferenceEnsemble(X, z, 0.3, FILE_NOISES).probability_of_positive(pool)
    with pytest.raises(NoSafeCandidateError, match=r"safe means z >= 0\.0") as error:
        querier.query(pool=pool)
    np.testing.assert_allclose(error.value.candidate, pool[p_safe.argmax()])
    np.testing.assert_allclose(
        [error.value.probability, error.value.required], [p_safe.max(), 0.95]
    )
    # A proposal of its own has no probability; where it may not be anything, it is a row again.
    assert querier.query().shape == (1, 2)
    with pytest.raises(NoSafeCandidateError):
        querier.query(fixed={0: 0.99})


@pytest.mark.parametrize("value", ["ignore", False, True])
def test_what_to_do_where_nothing_is_safe(value):
    message = f"on_no_safe must be 'raise' or 'least_unsafe', got {value!r}"
    with pytest.raises(ValueError, match=message):
        bare(policy_file(True), on_no_safe=value).fit(X, Y, Z)


def test_a_measured_row_is_not_taken_again():
    X, y, z = known(12)
    querier = bare(policy_file(True), gamma=0.5).fit(X, y, z)
    pool = np.vstack([X, np.random.default_rng(0).random((3, 2))])
    found = querier.query(pool=pool, n_queries=3, return_indices=True)[1]
    assert sorted(found) == [12, 13, 14]


def test_a_large_pool_is_searched_far_and_wide():
    """Where a hundred rows are nearer to the proposal than any that is safe."""
    querier = bare(policy_file(True), n_candidates=1)
    X, y, z = known(12)
    free = querier.query(X, y, z)[0]
    X, y, z = np.vstack([X, free]), np.append(y, -1.0), np.append(z, -1.0)
    proposal, rng = querier.query(X, y, z)[0], np.random.default_rng(1)
    crowd, spread = proposal + 1e-3 * rng.random((100, 2)), rng.random((100_000, 2))
    model = ReferenceEnsemble(X, z, 0.3, FILE_NOISES)
    assert model.probability_of_positive(crowd).max() < 0.95
    pool = np.vstack([crowd, spread])
    _, (index,) = querier.query(X, y, z, pool=pool, return_indices=True)
    assert index >= 100
    safe = spread[model.probability_of_positive(spread) >= 0.95]
    taken = pool[[index]]
    assert model.probability_of_positive(taken) >= 0.95
    nearest = np.linalg.norm(safe - proposal, axis=1).min()
    assert np.linalg.norm(taken - proposal) < 1.5 * nearest


def test_rows_from_all_over_the_pool_may_be_taken():
    """The last resort finds another row where all of those are measured."""
    pool, (X, y, z) = CandidatePool(np.random.default_rng(0).random((3000, 2))), known(12)
    box = Box(None, 2)
    all_over = Candidates(pool, box, X).subsample(2048)
    spent = Candidates(pool, box, X).points[all_over]
    X, y, z = np.vstack([X, spent]), np.append(y, np.zeros(2048)), np.append(z, np.zeros(2048))
    querier = bare(policy_file(True), gamma=1e-9)
    with pytest.warns(SafetyWarning, match="the safest that was found"):
        point = querier.query(X, y, z, pool=pool, budget=5)
    assert not (spent == point).all(axis=1).any()


@pytest.mark.parametrize("safe", [True, False])
def test_of_many_observations_those_nearby_are_asked(safe, monkeypatch):
    """The far ones would change nothing."""
    rng = np.random.default_rng(1)
    many, pool = rng.random((700, 2)), rng.random((2000, 2))
    margin = np.sin(5 * many[:, 0]) + many[:, 1] + 1
    querier = (bare if safe else AmortizedQuerier)(policy_file(safe), budget=20)
    data = many, margin, margin
    near = querier.fit(*data).query(pool=pool)
    np.testing.assert_array_equal(near, querier.query(*data, pool=pool))
    querier.tell(near, 1.0, 1.0).query(pool=pool)
    assert not querier._cache.models
    monkeypatch.setattr("sklearn_asal.queriers.rows._MANY", 1000)
    np.testing.assert_array_equal(near, querier.query(*data, pool=pool))


@pytest.mark.parametrize("safe", [True, False])
def test_models_of_a_campaign_are_extended(safe, monkeypatch):
    """Neither for the same inputs nor for one more are they made anew, whatever the margins."""
    X, y, z = known(12)
    kind = bare if safe else AmortizedQuerier
    querier = kind(policy_file(safe), **({"z_scale": "auto"} if safe else {"y_scale": "auto"}))
    querier.fit(X, y, z).query(pool=X + 0.01)
    monkeypatch.setattr("sklearn_asal.surrogates.factors.dtrtri", None)  # nothing works without
    querier.query(pool=X + 0.01, n_queries=3)
    querier.tell([0.5, 0.5], 0.3, 0.5).query(pool=X + 0.01)


def test_policies_of_one_system_weigh_the_features():
    """By the lengthscales that they know; rows are compared where the function varies."""
    querier = bare("7d-fluid", gamma=1, n_candidates=1)
    scale = querier._load(7).lengthscale
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0.4, 0.6, (10, 7)), 0.3 * rng.standard_normal(10)
    pool = rng.random((500, 7))
    free = querier.query(X, y, y + 1)[0]
    _, index = querier.query(X, y, y + 1, pool=pool, return_indices=True)
    assert index == np.linalg.norm((pool - free) / scale, axis=1).argmin()
    assert index != np.linalg.norm(pool - free, axis=1).argmin()


@pytest.mark.filterwarnings("ignore::sklearn_asal.exceptions.SafetyWarning")
@pytest.mark.parametrize("gamma", [1e-9, 0.5, 1.0, 1])
def test_any_gamma_gets_an_answer(gamma):
    rng = np.random.default_rng(0)
    X, pool = rng.uniform(0.4, 0.6, (10, 7)), rng.random((50, 7))
    querier = bare("7d-fluid", gamma=gamma)
    margin = 0.6 - np.square(X - 0.5).sum(axis=1)
    point = querier.query(X, X.sum(axis=1) - 3.5, margin, pool=pool)
    assert (pool == point).all(axis=1).any()


@pytest.mark.parametrize(
    ("value", "error"),
    [(0.0, ValueError), (1.5, ValueError), (np.nan, ValueError), ("high", TypeError)],
)
def test_bad_gamma(value, error):
    querier = bare(policy_file(True), gamma=value)
    for call in querier.fit, querier.query:
        with pytest.raises(error, match="gamma"):
            call(X, Y, Z)


@pytest.mark.parametrize(("value", "error"), [(0, ValueError), (2.5, TypeError), ("2", TypeError)])
@pytest.mark.parametrize("safe", [True, False])
def test_bad_number_of_candidates(safe, value, error):
    kind = AmortizedSafeQuerier if safe else AmortizedQuerier
    querier = kind(policy_file(safe), n_candidates=value)
    for call in querier.fit, querier.query:
        with pytest.raises(error, match="n_candidates"):
            call(X, Y, Z)


@pytest.mark.parametrize(
    ("prior", "expected"),
    [
        (None, 0.3),
        ({"kind": "shifted-exponential", "shift": 0.1, "rate": 10.0}, 0.2),
        ({"kind": "uniform", "low": [0.1, 0.3], "high": [0.3, 0.5]}, [0.2, 0.4]),
        ({"kind": "log-uniform", "low": 0.1, "high": 1.0}, 0.9 / np.log(10)),
    ],
)
def test_rows_are_judged_by_what_the_policy_was_trained_on(prior, expected):
    """Mean lengthscales, by sampling these priors; three noises from the range."""
    header = {} if prior is None else {"preset": {"safety_lengthscale": prior}}
    policy = registry.Policy(None, header, None, ())
    np.testing.assert_allclose(policy.safety_lengthscale, expected)
    assert policy.lengthscale == 0.3
    noisy = registry.Policy(None, {"noise_std": [0.1, 0.4]}, None, ())
    np.testing.assert_allclose(noisy.noise_std, [0.15, 0.25, 0.35])


# ---- tokens of a campaign


def test_a_campaign_agrees_with_its_data_passed_at_once():
    rng = np.random.default_rng(0)
    inputs, (y, z) = rng.random((50, 2)), rng.standard_normal((2, 50))
    querier = bare(policy_file(True)).fit(inputs[:5], y[:5], z[:5])
    for n in range(5, 50):
        querier.query(n_queries=1 + n % 3)
        querier.query(inputs[:3], y[:3], z[:3])
        querier.tell(inputs[n], y[n], z[n])
        fresh = bare(policy_file(True)).query(*(p[: n + 1] for p in (inputs, y, z)))
        np.testing.assert_allclose(querier.query(), fresh, rtol=0, atol=1e-6)


def test_tokens_follow_parameters_and_data():
    querier = bare(policy_file(True)).fit(X, Y, Z)
    querier.query()
    for params in ({"y_loc": 0.5}, {"bounds": (0, 2)}, {"safety_threshold": 0.3}):
        querier.set_params(**params)
        expected = AmortizedSafeQuerier(**querier.get_params()).query(X, Y, Z)
        np.testing.assert_allclose(querier.query(), expected, rtol=0, atol=1e-6)
    for data in (querier.X_, querier.y_, querier.z_, querier.index_):
        with pytest.raises(ValueError, match="read-only"):
            data[0] = -1.0


PARAMETERS = {
    "bounds": [None, (0, 1), [(0.0, 1.0), (-1.0, 2.0)], np.array([(0.0, 1.5), (0.0, 1.0)])],
    "budget": [None, 30, 60],
    "y_loc": [0.0, 0.5, "auto"],
    "y_scale": [1.0, 2, "auto"],
    "safety_threshold": [0.0, 0.3, -0.5],
    "safe_when": ["above", "below"],
    "z_scale": [1.0, 0.5, "auto"],
    "gamma": [0.05, 0.5, 1],
    "n_candidates": [1, 4, 16],
    "policy": ["a", "b"],
}
ACTIONS = (
    "tell",
    "tell several",
    "fit",
    "bounds in place",
    "copy",
    "data",
    "queries",
    "many",
)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    actions=st.lists(st.sampled_from([*ACTIONS, *PARAMETERS]), min_size=3, max_size=12),
    seed=st.integers(0, 1000),
)
def test_nothing_remembered_is_stale(actions, seed):
    """Whatever happens in between, a campaign answers as a querier does that never saw it."""
    rng = np.random.default_rng(seed)
    policies = {"a": policy_file(True), "b": registry.locate("2d", safe=True)}
    pool = rng.random((60, 2))
    index = CandidatePool(pool)

    def measured(n):
        X, (y, z) = rng.random((n, 2)), rng.standard_normal((2, n))
        X[::3] = pool[rng.integers(60, size=len(X[::3]))]
        return X, y, z + 0.5

    params = {"bounds": [[0, 1], [0, 1]], "budget": 50, "on_no_safe": "least_unsafe"}
    querier = AmortizedSafeQuerier(policies["a"], **params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        querier.fit(*measured(3))
        for action in ("tell", *actions):
            if action == "bounds" and isinstance(querier.bounds, (list, np.ndarray)):
                querier.bounds[0] = (-0.5, 1.0 + rng.random())
            elif action in PARAMETERS:
                value = copy.deepcopy(PARAMETERS[action][rng.integers(len(PARAMETERS[action]))])
                querier.set_params(**{action: policies[value] if action == "policy" else value})
            elif action in ("tell", "tell several"):
                new = measured(1 if action == "tell" else 6)
                querier.tell(*new)
                for part in new:  # ours again
                    part[:] = 0.123
            elif action == "fit":
                querier.fit(*measured(rng.integers(1, 6)))
            elif action == "copy":
                old, querier = querier, copy.deepcopy(querier)
                old.tell(*measured(1))
                querier = pickle.loads(pickle.dumps(querier))
            elif action == "data":
                querier.query(*measured(4), pool=index)
            elif action == "queries":
                querier.query(pool=index, n_queries=2)
            elif action == "many":
                querier.propose_many([measured(2), measured(3)])
            fresh = clone(querier)
            data, left = (querier.X_, querier.y_, querier.z_), None
            if querier.budget is not None:
                left = querier.budget - querier.n_told_
            for _ in range(2):
                expected = fresh.query(*data, budget=left)
                np.testing.assert_allclose(querier.query(), expected, rtol=0, atol=3e-6)
                found = querier.query(pool=index, return_indices=True)[1]
                expected = fresh.query(*data, budget=left, pool=pool, return_indices=True)[1]
                assert found == expected


def test_tokens_are_ready_before_the_query(monkeypatch):
    querier = bare(policy_file(True))
    runtime = querier._load(2).runtime
    compute, made = runtime.tokens_singly, []

    def counted(rows):
        made.append(len(rows[0]))
        return compute(rows)

    monkeypatch.setattr(runtime, "tokens_singly", counted)
    querier.fit(X, Y, Z)
    assert made == [3]
    querier.query()
    querier.tell([0.5, 0.4], 0.1, 1.0)
    assert made == [3, 1]
    querier.query()
    querier.query(pool=X + 0.01)
    assert made == [3, 1]
    querier.tell(X, Y, Z)
    assert made == [3, 1, 3]


@pytest.mark.parametrize("budget", [None, 9])
@pytest.mark.parametrize("safe", [True, False])
def test_a_lost_policy_loses_no_data(tmp_path, safe, budget):
    """Measured data are never refused."""
    path = tmp_path / "mine.safetensors"
    path.write_bytes(Path(policy_file(safe)).read_bytes())
    querier = (AmortizedSafeQuerier if safe else AmortizedQuerier)(path, budget=budget)
    querier.fit(X, Y, Z).query(pool=X + 0.01)
    path.unlink()
    assert len(querier.tell([0.5, 0.4], 0.1, 1.0).y_) == 4
    with pytest.raises(PolicyNotFoundError):
        querier.query()
    path.write_bytes(Path(policy_file(safe, 3)).read_bytes())
    assert len(querier.tell([0.5, 0.4], 0.1, 1.0).y_) == 5
    with pytest.raises(ValueError, match="takes 3"):
        querier.query()
    path.write_bytes(Path(policy_file(safe)).read_bytes())
    assert querier.query().shape == (1, 2)


def test_tokens_go_with_their_querier():
    querier = AmortizedQuerier(policy_file(False)).fit(X, Y)
    querier.query()
    tokens = weakref.ref(querier._cache.tokens)
    querier.fit(X[:2], Y[:2]).query()
    gc.collect()
    assert tokens() is None
    tokens = weakref.ref(querier._cache.tokens)
    del querier
    gc.collect()
    assert tokens() is None


# ---- without torch


def test_queries_do_not_load_torch():
    code = f"""
import sys
from sklearn_asal import AmortizedSafeQuerier
querier = AmortizedSafeQuerier.from_pretrained({policy_file(True)!r})
querier.fit([[0.5, 0.5]], [0.1], [1.0])
querier.tell(querier.query(), 0.2, 1.0).query(n_queries=2)
querier.propose_many([([[0.5, 0.5]], [0.1], [1.0])])
assert "torch" not in sys.modules
print("without")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "without"


def test_threads_of_the_caller():
    querier = AmortizedQuerier(policy_file(False)).fit(X, Y)
    expected, answers = querier.query(), []
    workers = [
        threading.Thread(target=lambda: answers.extend(querier.query() for _ in range(10)))
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(answers) == 40
    for answer in answers:
        np.testing.assert_array_equal(answer, expected[0:1])
