"""Queriers with the policy for any system: no scale, no plan, any number of features."""

import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from sklearn_asal import (
    AmortizedQuerier,
    AmortizedSafeQuerier,
    CandidatePool,
    DataScaleWarning,
    GPQuerier,
    GPSafeQuerier,
    NoSafeCandidateError,
    PolicyNotFoundError,
    SafetyWarning,
)
from sklearn_asal.policies.registry import locate
from sklearn_asal.surrogates import AmortizedGP

from ..common import policy_file

UNSAFE = "ignore:nothing that was looked at is safe"
# What is safe to be proposed is up to the network; nothing else is to be complained of.
pytestmark = pytest.mark.filterwarnings("error::UserWarning", UNSAFE)
few = settings(max_examples=10, deadline=None, derandomize=True)
kinds = pytest.mark.parametrize("kind", [AmortizedQuerier, AmortizedSafeQuerier])
X = np.array([[0.45, 0.5], [0.5, 0.45], [0.55, 0.55], [0.6, 0.4], [0.4, 0.6]])
Y = np.array([0.1, 0.3, 0.2, -0.1, 0.4])
Z = np.array([0.9, 0.8, 0.7, 1.0, 0.6])
POOL = np.random.default_rng(5).random((80, 2))


def output(inputs):
    return np.sin(5 * inputs[:, 0]) + np.cos(2 * inputs).sum(axis=1) / inputs.shape[1]


def margin(inputs):
    """Positive in most of the cube, most of all in its middle."""
    return 1.2 - 4 * np.square(inputs - 0.5).mean(axis=1) - 0.3 * np.sin(4 * inputs[:, -1])


def start(n, n_features, seed=0):
    inputs = np.random.default_rng(seed).uniform(0.4, 0.6, (n, n_features))
    return inputs, output(inputs), margin(inputs)


def campaign(querier, n_queries, first, pool=None, order=None, units=lambda y, z: (y, z)):
    """Inputs of a campaign on the functions above, of features in some order."""
    order = np.arange(first.shape[1]) if order is None else np.asarray(order)
    back = np.argsort(order)

    def measured(inputs):
        return units(output(inputs[:, back]), margin(inputs[:, back]))

    first = first[:, order]
    pool = None if pool is None else CandidatePool(pool[:, order])
    querier.fit(first, *measured(first))
    for _ in range(n_queries):
        x = querier.query(pool=pool)
        querier.tell(x, *measured(x))
    return querier.X_[:, back]


# ---- any number of features, no scales, no plan


@kinds
@pytest.mark.parametrize("n_features", range(1, 11))
def test_any_number_of_features(kind, n_features):
    first, _, _ = start(1, n_features)
    pool = np.random.default_rng(1).random((300, n_features))
    for rows in (None, pool):
        found = campaign(kind(), 6, first, rows)
        assert found.shape == (7, n_features)
        assert ((found >= 0) & (found <= 1)).all()
        apart = np.abs(found[:, None] - found).max(axis=2)[np.triu_indices(7, 1)]
        assert apart.min() > 1e-3
        if rows is not None:
            assert (found[1:, None] == pool).all(axis=2).any(axis=1).all()


@kinds
@pytest.mark.parametrize("n_features", [1, 2, 4])
@pytest.mark.parametrize("pooled", [False, True])
def test_units_are_of_no_consequence(kind, n_features, pooled):
    first, _, _ = start(1, n_features)
    pool = np.random.default_rng(1).random((200, n_features)) if pooled else None
    expected = campaign(kind(), 12, first, pool)
    params = {"safety_threshold": 350.0, "safe_when": "below"}
    params = params if kind is AmortizedSafeQuerier else {}
    found = campaign(
        kind(**params), 12, first, pool, units=lambda y, z: (1e6 * y + 1e7, 350 - 1e-4 * z)
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@kinds
@pytest.mark.parametrize("n_features", [2, 3, 5])
@pytest.mark.parametrize("pooled", [False, True])
def test_order_of_features_is_of_no_consequence(kind, n_features, pooled):
    rng = np.random.default_rng(n_features)
    first, _, _ = start(1, n_features)
    pool = rng.random((200, n_features)) if pooled else None
    expected = campaign(kind(), 12, first, pool)
    for _ in range(2):
        found = campaign(kind(), 12, first, pool, order=rng.permutation(n_features))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@kinds
def test_order_of_features_in_a_factorial_design(kind):
    """The columns hold the same values; outcomes tell which is which."""
    inputs = np.array([[0.4, 0.4, 0.4], [0.6, 0.4, 0.4], [0.4, 0.6, 0.4], [0.4, 0.4, 0.6]])
    y, z = np.array([0.3, 0.8, -0.5, 0.4]), np.array([1.0, 0.9, 1.1, 0.8])
    expected = kind().query(inputs, y, z, n_queries=3)
    for order in ([1, 0, 2], [2, 0, 1], [2, 1, 0]):
        found = kind().query(inputs[:, order], y, z, n_queries=3)
        np.testing.assert_allclose(found, expected[:, order], rtol=0, atol=1e-9)


@kinds
@few
@given(
    loc=st.sampled_from([0.0, -3e5, 0.2, "auto"]),
    scale=st.sampled_from([1e-6, 1.0, 300.0, "auto"]),
    z_scale=st.sampled_from([1e-4, 1.0, 70.0, "auto"]),
    seed=st.integers(0, 99),
)
def test_stated_scales_have_no_effect(kind, loc, scale, z_scale, seed):
    data = start(8, 3, seed)
    params = {"y_loc": loc, "y_scale": scale}
    params |= {"z_scale": z_scale} if kind is AmortizedSafeQuerier else {}
    pool = np.random.default_rng(seed).random((100, 3))
    expected, querier = kind(random_state=seed), kind(random_state=seed, **params)
    for rows in (None, pool):
        point = querier.query(*data, pool=rows)
        np.testing.assert_allclose(point, expected.query(*data, pool=rows), rtol=0, atol=1e-9)
    found, report = querier.assess(pool, *data), expected.assess(pool, *data)
    for name, part in vars(report).items():
        if part is not None:
            np.testing.assert_allclose(vars(found)[name], part, rtol=1e-3, atol=1e-4)


@kinds
def test_no_number_of_queries_is_too_large(kind):
    data = start(8, 2)
    expected = kind().fit(*data).query()
    for budget in (1, 30, 5000):
        np.testing.assert_array_equal(kind(budget=budget).fit(*data).query(), expected)
        np.testing.assert_array_equal(kind().query(*data, budget=budget), expected)


def test_safe_points_may_lie_anywhere():
    corner = 0.1 * np.random.default_rng(0).random((5, 3))
    querier = AmortizedSafeQuerier().fit(corner, output(corner), 1 + corner[:, 0])
    assert querier.query().shape == (1, 3)


@kinds
def test_bounds_in_any_units(kind):
    data, bounds = start(6, 2), np.array([(-5e4, 3e4), (1e-6, 3e-6)])
    low, width = bounds[:, 0], np.ptp(bounds, axis=1)
    expected = kind(random_state=0).query(*data, n_queries=3)
    querier = kind(random_state=0, bounds=bounds)
    found = querier.query(low + width * data[0], *data[1:], n_queries=3)
    np.testing.assert_allclose((found - low) / width, expected, rtol=0, atol=1e-9)


@kinds
def test_constants(kind):
    inputs = start(12, 2)[0]
    for n in (1, 2, 3, 12):
        for value in (0.0, 7.0, 0.1 + 0.2, -1e9):
            constant, margin = np.full(n, value), 1.0 + np.arange(n) % 2
            expected = kind().query(inputs[:n], constant, margin)
            assert ((expected >= 0) & (expected <= 1)).all()
            rounded = constant + np.spacing(value) * (np.arange(n) % 3)
            found = kind().query(inputs[:n], rounded, margin)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


# ---- the same as the models


@kinds
@few
@given(
    n=st.integers(1, 30),
    n_features=st.integers(1, 6),
    seed=st.integers(0, 99),
    pooled=st.booleans(),
    n_queries=st.integers(1, 3),
)
def test_models_choose(kind, n, n_features, seed, pooled, n_queries):
    X, y, z = start(n, n_features, seed)
    pool = np.random.default_rng(seed).random((90, n_features)) if pooled else None
    params = {"bounds": (-0.2, 1.1), "random_state": seed}
    querier = kind(**params)
    params["acquisition"] = "variance_reduction"
    models = GPQuerier("amortized", **params)
    if kind is AmortizedSafeQuerier:
        models = GPSafeQuerier("amortized", gamma=0.02, on_no_safe="least_unsafe", **params)
    options = {"pool": pool, "n_queries": n_queries, "return_report": True}
    found, report = querier.query(X, y, z, **options)
    expected, other = models.query(X, y, z, **options)
    np.testing.assert_array_equal(found, expected)
    for one, part in zip(vars(report).values(), vars(other).values(), strict=True):
        np.testing.assert_array_equal(one, part)


@kinds
def test_reports(kind):
    querier = kind(bounds=[(0, 1), (0, 2)]).fit(X, Y, Z)
    point, report = querier.query(return_report=True)
    np.testing.assert_array_equal(point, querier.query())
    assert report.y_mean.shape == report.y_std.shape == (1,)
    points, rows, of_pool = querier.query(
        pool=POOL, n_queries=4, return_indices=True, return_report=True
    )
    np.testing.assert_array_equal(points, POOL[rows])
    for asked, found in ((point, report), (points, of_pool)):
        expected = vars(querier.assess(asked))
        for name, part in vars(found).items():
            np.testing.assert_array_equal(part, expected[name])
        if kind is AmortizedSafeQuerier:
            assert found.p_safe.shape == found.z_mean.shape == found.z_std.shape == (len(asked),)
        else:
            assert found.p_safe is found.z_mean is found.z_std is None
    # What is asked meanwhile changes no answer.
    querier.assess(POOL, X[:2], Y[:2], Z[:2])
    np.testing.assert_array_equal(querier.query(), point)


def test_reports_are_in_the_user_s_units():
    X, y, z = start(30, 2)
    querier = AmortizedSafeQuerier(safety_threshold=400.0, safe_when="below")
    report = querier.fit(X, 1e6 + 300 * y, 400 - 50 * z).assess(X)
    np.testing.assert_allclose(report.y_mean, 1e6 + 300 * y, atol=60)
    np.testing.assert_allclose(report.z_mean, 400 - 50 * z, atol=10)
    assert (report.z_std < 50).all()
    model = AmortizedGP(zero_mean=True).fit(X, z)
    expected = model.probability_of_positive(POOL)
    np.testing.assert_allclose(querier.assess(POOL).p_safe, expected, rtol=0, atol=1e-3)


@pytest.mark.filterwarnings("ignore:no observation in the middle", "ignore:no row of the pool near")
@kinds
def test_reports_of_other_policies(kind):
    """Policies that propose points leave what is expected of them to the same models."""
    for policy in (policy_file(kind is AmortizedSafeQuerier), "2d"):
        querier = kind(policy, budget=20).fit(X, Y, Z)
        expected = querier.query()
        found, report = querier.query(return_report=True)
        np.testing.assert_array_equal(found, expected)
        models = vars(kind().fit(X, Y, Z).assess(found))
        for name, part in vars(report).items():
            if name == "guard":  # which has to do with the query, not with the models
                continue
            np.testing.assert_array_equal(part, models[name])
        _, rows, report = querier.query(pool=POOL, return_indices=True, return_report=True)
        np.testing.assert_array_equal(report.y_mean, kind().assess(POOL[rows], X, Y, Z).y_mean)
        # The models of rows and those of the report do not get into each other's way.
        again = querier.query(pool=POOL, return_indices=True)[1]
        np.testing.assert_array_equal(again, rows)
        fresh = kind(policy, budget=20).fit(X, Y, Z).query(pool=POOL, return_indices=True)[1]
        np.testing.assert_array_equal(fresh, rows)


def test_reports_of_several_limits():
    both = np.column_stack([Z, 300 - 40 * Z[::-1]])
    params = {"safety_threshold": [0.0, 300.0], "safe_when": ["above", "below"]}
    report = AmortizedSafeQuerier(**params).fit(X, Y, both).assess(POOL)
    assert report.z_mean.shape == report.z_std.shape == (80, 2)
    each = [
        AmortizedSafeQuerier(safety_threshold=limit, safe_when=side).assess(POOL, X, Y, column)
        for limit, side, column in zip(*params.values(), both.T, strict=True)
    ]
    product = each[0].p_safe * each[1].p_safe
    np.testing.assert_allclose(report.p_safe, product, rtol=1e-5)
    for j in range(2):
        np.testing.assert_allclose(report.z_mean[:, j], each[j].z_mean, rtol=1e-5)
        np.testing.assert_allclose(report.z_std[:, j], each[j].z_std, rtol=1e-5)


def test_several_limits():
    """A limit far away changes nothing, one that is near is kept as well."""
    X, y, z = start(25, 2)
    querier = AmortizedSafeQuerier(safety_threshold=[0, 0])
    far = 1e6 + np.arange(len(z)) % 2
    one = AmortizedSafeQuerier().query(X, y, z)
    np.testing.assert_array_equal(querier.query(X, y, np.column_stack([z, far])), one)
    np.testing.assert_array_equal(querier.query(X, y, np.column_stack([far, z])), one)
    left = X[:, 0] - 0.4  # hardly any of the observations is far from this limit
    querier.set_params(random_state=0)
    points, report = querier.query(
        X, y, np.column_stack([z, left]), n_queries=5, return_report=True
    )
    assert (points[:, 0] > 0.4).all()
    assert report.p_safe.min() >= 0.94


# ---- safety


@pytest.mark.parametrize("gamma", [None, 0.003, 0.01, 0.1])
def test_the_least_probability_of_being_safe(gamma):
    """Up to six times the tolerated share, which has a price; else a warning."""
    querier = AmortizedSafeQuerier(gamma=gamma)
    least, warned = 1 - 6 * (0.02 if gamma is None else gamma), 0
    for seed in range(6):
        data = start(20, 2, seed)
        pool = np.random.default_rng(seed).random((400, 2))
        for rows in (None, pool):
            with warnings.catch_warnings(record=True) as record:
                warnings.simplefilter("always")
                _, report = querier.query(*data, pool=rows, return_report=True)
            assert (report.p_safe >= least - 1e-3) == (not record)
            warned += bool(record)
    assert warned < 12


@pytest.mark.filterwarnings("always:nothing that was looked at is safe")
def test_where_nothing_is_safe_the_safest_is_proposed():
    z = Z - 1.1
    assert z.max() < 0
    querier = AmortizedSafeQuerier(safety_threshold=-2.0, on_no_safe="least_unsafe").fit(X, Y, z)
    querier.set_params(safety_threshold=0.0)
    message = r"nothing that was looked at is safe enough \(gamma=0\.02\); the safest is proposed"
    with pytest.warns(SafetyWarning, match=message) as record:
        _, rows, report = querier.query(pool=POOL, return_indices=True, return_report=True)
    assert [w.filename for w in record] == [__file__]
    assert f"safe with a probability of {report.p_safe[0]:.3g}." in str(record[0].message)
    assert rows == [querier.assess(POOL).p_safe.argmax()]
    with pytest.warns(SafetyWarning, match=message) as record:
        point, report = querier.query(return_report=True)
    assert f"safe with a probability of {report.p_safe[0]:.3g}." in str(record[0].message)
    models = GPSafeQuerier("amortized", acquisition="variance_reduction", gamma=0.02).fit(X, Y, Z)
    models.fit(X, Y, z + 9).set_params(safety_threshold=9.0)
    with pytest.raises(NoSafeCandidateError) as error:
        models.query()
    np.testing.assert_allclose([error.value.candidate], point, atol=1e-6)
    # With a tolerance of one nothing is ruled out.
    querier.set_params(gamma=1.0).query()


def test_where_nothing_is_safe_an_error_may_be_raised():
    """What would be proposed with a warning is in the error, in the user's units."""
    z = Z - 1.1
    bounds = [(-2.0, 3.0), (10.0, 30.0)]
    raw = [-2, 10] + np.array([5, 20]) * X
    params = {"bounds": bounds, "safety_threshold": 300.0, "safe_when": "below"}
    querier = AmortizedSafeQuerier(on_no_safe="least_unsafe", **params)
    for options in ({}, {"pool": [-2, 10] + np.array([5, 20]) * POOL}, {"fixed": {0: 1.0}}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SafetyWarning)
            expected = querier.query(raw, Y, 300 - z, **options)
            report = querier.assess(expected, raw, Y, 300 - z)
        strict = clone(querier).set_params(on_no_safe="raise")
        with (
            pytest.warns(SafetyWarning, match="none of the 5 observations"),
            pytest.raises(NoSafeCandidateError, match=r"safe means z <= 300\.0") as error,
        ):
            strict.query(raw, Y, 300 - z, **options)
        np.testing.assert_allclose([error.value.candidate], expected, atol=1e-9)
        assert error.value.probability == pytest.approx(report.p_safe[0], abs=1e-4)
        assert error.value.required == pytest.approx(1 - 6 * 0.02)
    # By default nothing at all is proposed.
    with (
        pytest.warns(SafetyWarning, match="none of the 5 observations"),
        pytest.raises(NoSafeCandidateError, match=r"no measurement is safe \(safe means") as error,
    ):
        AmortizedSafeQuerier(**params).query(raw, Y, 300 - z)
    np.testing.assert_allclose(error.value.candidate, raw[z.argmax()])
    assert np.isnan([error.value.probability, error.value.required]).all()
    # Nothing changes where something is safe.
    first = AmortizedSafeQuerier().fit(X, Y, Z)
    second = AmortizedSafeQuerier(on_no_safe="raise").fit(X, Y, Z)
    np.testing.assert_array_equal(second.query(n_queries=3), first.query(n_queries=3))
    # What was told is kept, and the campaign goes on.
    with pytest.warns(SafetyWarning, match="none of the"):
        second.fit(X, Y, z)
    with pytest.raises(NoSafeCandidateError):
        second.query()
    with pytest.raises(NoSafeCandidateError):
        second.ask()
    assert len(second.pending_) == 0
    assert second.set_params(on_no_safe="least_unsafe").query().shape == (1, 2)


def test_what_is_safe_is_found_in_many_dimensions():
    """Uniform points miss it altogether."""
    rng = np.random.default_rng(0)
    X = 0.5 + 0.02 * rng.standard_normal((40, 8))
    z = 1 - np.square((X - 0.5) / 0.1).sum(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        point, report = AmortizedSafeQuerier().query(X, X[:, 0], z, return_report=True)
    assert report.p_safe[0] >= 0.94
    assert np.abs(point - 0.5).max() < 0.2


def test_campaigns_are_safe_and_learn():
    def measure(inputs):
        return output(inputs), 1.2 - 5 * np.square(inputs - 0.5).sum(axis=1)

    rng = np.random.default_rng(0)
    first, test = 0.4 + 0.2 * rng.random((5, 2)), rng.random((300, 2))
    test = test[measure(test)[1] > 0]
    for pool in (None, CandidatePool(rng.random((2000, 2)))):
        querier, errors = AmortizedSafeQuerier(random_state=0).fit(first, *measure(first)), []
        for _ in range(25):
            errors.append(np.abs(querier.assess(test).y_mean - measure(test)[0]).mean())
            x = querier.query(pool=pool)
            querier.tell(x, *measure(x))
        assert np.mean(querier.z_ >= 0) >= 0.85
        assert errors[-1] < 0.3 * errors[0]


# ---- policies, campaigns, copies


@kinds
def test_which_policy(kind, tmp_path):
    own = tmp_path / "own.safetensors"
    own.write_bytes(locate("any", safe=True).read_bytes())
    expected = kind().query(X, Y, Z, n_queries=2)
    for policy in ("auto", "any", own, str(own)):
        querier = kind(policy).fit(X, Y, Z)
        np.testing.assert_array_equal(querier.query(n_queries=2), expected)
        np.testing.assert_array_equal(kind(policy).query(X, Y, Z, n_queries=2), expected)
        assert querier.policy_header_["n_features"] is None
        assert querier.policy_header_["architecture"]["kind"] == "inference"
    for policy in ("any", own):
        querier = kind.from_pretrained(policy, budget=3)
        assert querier.get_params()["policy"] == policy
        np.testing.assert_array_equal(querier.fit(X, Y, Z).query(n_queries=2), expected)


@kinds
def test_a_file_of_another_kind_takes_its_place(kind, tmp_path):
    own, safe = tmp_path / "own.safetensors", kind is AmortizedSafeQuerier
    own.write_bytes(locate("any", safe=True).read_bytes())
    querier = kind(own, budget=9).fit(X, Y, Z)
    expected = querier.query(pool=POOL)
    own.unlink()
    assert len(querier.tell([0.5, 0.5], 0.2, 0.9).y_) == 6
    with pytest.raises(PolicyNotFoundError):
        querier.query()
    own.write_bytes(Path(policy_file(safe)).read_bytes())
    other = kind(policy_file(safe), budget=9).fit(X, Y, Z).tell([0.5, 0.5], 0.2, 0.9)
    np.testing.assert_array_equal(querier.query(), other.query())
    own.write_bytes(locate("any", safe=True).read_bytes())
    np.testing.assert_array_equal(querier.fit(X, Y, Z).query(pool=POOL), expected)


@kinds
def test_copies(kind):
    querier = kind(random_state=3, n_candidates=40, budget=9).fit(X, Y, Z)
    querier.tell([0.2, 0.7], 0.3, 0.9)
    expected = querier.query(n_queries=2), querier.query(pool=POOL, n_queries=2)
    stored = pickle.dumps(querier)
    assert len(stored) < 5000
    fresh = clone(querier).fit(X, Y, Z).tell([0.2, 0.7], 0.3, 0.9)
    for other in (pickle.loads(stored), fresh):
        np.testing.assert_array_equal(other.query(n_queries=2), expected[0])
        np.testing.assert_array_equal(other.query(pool=POOL, n_queries=2), expected[1])
        assert other.get_params() == querier.get_params()


@kinds
@pytest.mark.parametrize("pooled", [False, True])
def test_campaigns_agree_with_their_data_passed_at_once(kind, pooled):
    """Also beyond the number of observations from which hyperparameters are inferred."""
    rng = np.random.default_rng(0)
    inputs, pool = rng.random((110, 2)), CandidatePool(rng.random((300, 2)))
    data = inputs, output(inputs), margin(inputs)
    querier, pool = kind().fit(*(part[:3] for part in data)), pool if pooled else None
    for n in range(3, 110):
        if n % 9 == 0 or 94 < n < 100:
            fresh = kind().query(*(part[:n] for part in data), pool=pool)
            np.testing.assert_array_equal(querier.query(pool=pool), fresh)
        querier.tell(*(part[n] for part in data))


def test_what_is_remembered_follows_the_parameters():
    querier = AmortizedSafeQuerier().fit(X, Y, Z)
    querier.query(pool=POOL)
    for params in (
        {"safety_threshold": 0.3},
        {"bounds": (0, 2)},
        {"gamma": 0.2},
        {"n_candidates": 7},
        {"policy": "any"},
        {"random_state": 3},
        {"safe_when": "below", "safety_threshold": 1.5},
    ):
        querier.set_params(**params)
        fresh = AmortizedSafeQuerier(**querier.get_params())
        np.testing.assert_array_equal(querier.query(), fresh.query(X, Y, Z))
        expected = fresh.query(X, Y, Z, pool=POOL)
        np.testing.assert_array_equal(querier.query(pool=POOL), expected)


@kinds
def test_points_of_a_batch_lie_apart(kind):
    querier = kind().fit(*start(8, 2))
    for points in (querier.query(n_queries=5), querier.query(pool=POOL, n_queries=5)):
        apart = np.linalg.norm(points[:, None] - points, axis=2)[np.triu_indices(5, 1)]
        assert apart.min() > 0.02


@kinds
def test_an_unconstrained_querier_takes_no_notice_of_safety(kind):
    querier = AmortizedQuerier()
    expected = querier.query(X, Y)
    np.testing.assert_array_equal(querier.query(X, Y, Z), expected)
    np.testing.assert_array_equal(querier.query(X, Y, -Z), expected)


@kinds
@pytest.mark.parametrize("n_candidates", [1, 3, 1000])
def test_numbers_of_candidates(kind, n_candidates):
    querier = kind(n_candidates=n_candidates).fit(*start(8, 3))
    assert querier.query().shape == (1, 3)
    pool = np.random.default_rng(0).random((50, 3))
    _, rows = querier.query(pool=pool, n_queries=50, return_indices=True)
    assert sorted(rows) == list(range(50))


# ---- many campaigns


@kinds
@few
@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    n_features=st.integers(1, 4),
    budget=st.sampled_from([None, 3]),
)
def test_many_equals_a_loop(kind, lengths, n_features, budget):
    querier = kind(bounds=(-0.5, 1), random_state=1)
    histories = [start(n, n_features, seed) for seed, n in enumerate(lengths)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SafetyWarning)
        loop = [querier.query(*history, budget=budget)[0] for history in histories]
        many = querier.propose_many(histories, budget)
    np.testing.assert_array_equal(many, loop)


@kinds
def test_many_tables(kind):
    frame = pd.DataFrame(X, columns=["speed", "angle"])
    querier = kind()
    expected = querier.query(X, Y, Z)
    found = querier.propose_many([(frame, Y.tolist(), Z), (X, pd.Series(Y), Z)], budgets=[3, None])
    np.testing.assert_array_equal(found, np.vstack([expected, expected]))
    with pytest.raises(ValueError, match="campaign 1: 0 queries are left"):
        querier.propose_many([(X, Y, Z)] * 2, [1, 0])


@pytest.mark.filterwarnings("always:nothing that was looked at is safe")
def test_many_warn_as_a_query_does():
    querier = AmortizedSafeQuerier(on_no_safe="least_unsafe")
    with pytest.warns(SafetyWarning, match="none of the 10 observations is safe") as record:
        querier.propose_many([(X, Y, -Z), (X, Y, -Z)])
    told = [w for w in record if "observations is safe" in str(w.message)]
    assert len(told) == 1
    assert {w.filename for w in record} == {__file__}
    outside = X + [2, 0]
    with pytest.warns(DataScaleWarning, match="measured points lie outside bounds") as record:
        querier.propose_many([(outside, Y, Z), (outside, Y, Z)])
    told = [w for w in record if "outside bounds" in str(w.message)]
    assert [w.filename for w in told] == [__file__]


# ---- without torch


def test_queries_do_not_load_torch():
    code = """
import sys
from sklearn_asal import AmortizedQuerier, AmortizedSafeQuerier
for querier in AmortizedQuerier(), AmortizedSafeQuerier.from_pretrained("any"):
    querier.fit([[0.5, 0.5]], [0.1], [1.0])
    querier.tell(querier.query(), 0.2, 1.0).query(n_queries=2, return_report=True)
    querier.propose_many([([[0.5, 0.5]], [0.1], [1.0])])
assert "torch" not in sys.modules
print("without")
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "without"


# ---- readings that are repeated


@kinds
@pytest.mark.parametrize("n", [2, 30, 150])
def test_a_repeated_reading_counts_once(kind, n):
    """A steady signal logged many times says nothing about other points, nor about noise."""
    X, y, z = start(4, 2)
    again = np.append(np.arange(4), np.zeros(n, int))
    querier, points = kind(), np.random.default_rng(0).random((20, 2))
    expected = querier.assess(points, X, y, z)
    found = querier.assess(points, X[again], y[again], z[again])
    np.testing.assert_allclose(found.y_mean, expected.y_mean, rtol=1e-6)
    np.testing.assert_allclose(found.y_std, expected.y_std, rtol=1e-6)
    if kind is AmortizedSafeQuerier:
        np.testing.assert_allclose(found.p_safe, expected.p_safe, rtol=1e-6)


@pytest.mark.filterwarnings("always:all measurements are of one point")
def test_measurements_of_one_point_are_warned_of():
    z = np.array([1.0, 1.0, 1.02])
    with pytest.warns(SafetyWarning, match="how fast the safety signal changes is unknown"):
        AmortizedSafeQuerier().query([[0.5, 0.5]] * 3, [1.0, 1.0, 1.01], z)


@kinds
def test_units_of_inputs_are_of_no_consequence(kind):
    """Not even for the seed of the candidates."""
    X, y, z = start(12, 3)
    fahrenheit = kind(bounds=[(32, 33.8)] * 3).query(32 + 1.8 * X, y, z)
    np.testing.assert_allclose((fahrenheit - 32) / 1.8, kind().query(X, y, z), atol=1e-9)


def test_the_preset_name_is_a_name():
    X, y, z = start(6, 2)
    found = AmortizedSafeQuerier("safe-any").query(X, y, z)
    np.testing.assert_array_equal(found, AmortizedSafeQuerier("any").query(X, y, z))
