"""The guard: what is required by an independent count, and what must not change its answers."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklearn_asal import (
    AmortizedSafeQuerier,
    GPSafeQuerier,
    NoSafeCandidateError,
    SafetyGuard,
    SafetyWarning,
)
from sklearn_asal.datasets import simionescu
from sklearn_asal.surrogates import AmortizedGP

from ..common import policy_file

BOUNDS = np.array([(0.0, 6.0), (-5.0, 30.0)])
few = settings(max_examples=10, deadline=None, derandomize=True)
quiet = pytest.mark.filterwarnings("ignore::sklearn_asal.exceptions.SafetyWarning")
pytestmark = pytest.mark.filterwarnings("error::UserWarning")


def to_raw(unit):
    return BOUNDS[:, 0] + np.ptp(BOUNDS, axis=1) * np.asarray(unit)


def to_unit(raw):
    return (raw - BOUNDS[:, 0]) / np.ptp(BOUNDS, axis=1)


def margin(unit):
    """Safe in a disc about the middle."""
    return 1 - 9 * np.square(np.asarray(unit) - 0.5).sum(axis=-1)


def known(n=12, seed=0, width=0.15):
    r = np.random.default_rng(seed)
    unit = r.uniform(0.5 - width, 0.5 + width, (n, 2))
    noise = 0.05 * r.standard_normal((2, n))
    return to_raw(unit), np.sin(4 * unit[:, 0]) + noise[0], margin(unit) + noise[1]


def guarded(**params):
    return AmortizedSafeQuerier(
        **{"policy": policy_file(True), "bounds": BOUNDS, "guard": True} | params
    )


def required_and_given(model, points, gamma):
    """By hand: sorted leave-one-out residuals and moments of the mixture."""
    scores, n = np.sort(model.leave_one_out()), len(model.X_)
    conformal = next((s for k, s in enumerate(scores, 1) if k >= (n + 1) * (1 - gamma)), scores[-1])
    locations, scales = model.predict_members(points)
    weights = model.member_weights_
    mean = weights @ locations
    std = np.sqrt(weights @ (scales**2 + locations**2) - mean**2)
    return max(student.ppf(1 - gamma, model.dof_), conformal), mean / std


# ---- what is required


@pytest.mark.parametrize("gamma", [0.02, 0.05, 0.3])
@pytest.mark.parametrize("n", [2, 12, 40])
def test_what_is_required(gamma, n):
    X, y, z = known(n)
    querier = guarded(guard=SafetyGuard(gamma=gamma)).fit(X, y, z)
    points = np.random.default_rng(1).random((200, 2))
    model = AmortizedGP(zero_mean=True).fit(to_unit(X), z)
    required, given = required_and_given(model, points, gamma)
    clear = np.abs(given - required) > 1e-3
    found = querier.guard_.check(to_raw(points))
    np.testing.assert_array_equal(found[clear], (given >= required)[clear])
    assert querier.calibration().required[0] == pytest.approx(required, rel=1e-6)
    assert 0 < found.sum() < 200 or n == 2


def test_outliers_raise_what_is_required():
    """The largest of few residuals counts, where the model's own quantile is smaller."""
    X, y, z = known(18)
    before = guarded().fit(X, y, z).calibration()
    z[4] -= 1.0
    after = guarded().fit(X, y, z).calibration()
    assert after.scores[4, 0] > 3 > before.scores.max()
    assert after.required[0] == after.quantile[0] == after.scores.max()
    assert after.quantile[0] > student.ppf(0.95, 20)


def test_several_limits_have_equal_parts_of_gamma():
    X, y, z = known(20)
    both = np.column_stack([z, 300 - 40 * (to_unit(X)[:, 0] - 0.25)])
    params = {"safety_threshold": [0.0, 300.0], "safe_when": ["above", "below"]}
    querier = guarded(guard=SafetyGuard(gamma=0.1), z_scale=[1.0, 10.0], **params).fit(X, y, both)
    each = [
        guarded(
            guard=SafetyGuard(gamma=0.05), safety_threshold=limit, safe_when=side, z_scale=scale
        )
        .fit(X, y, column)
        .guard_.check(to_raw(np.random.default_rng(0).random((300, 2))))
        for limit, side, scale, column in zip(*params.values(), [1, 10], both.T, strict=True)
    ]
    found = querier.guard_.check(to_raw(np.random.default_rng(0).random((300, 2))))
    np.testing.assert_array_equal(found, each[0] & each[1])
    assert found.sum() < min(each[0].sum(), each[1].sum())
    assert querier.calibration().scores.shape == (20, 2)


# ---- proposals


@few
@given(seed=st.integers(0, 999), n_queries=st.integers(1, 3))
def test_proposals_pass_or_are_pulled_back(seed, n_queries):
    querier = guarded().fit(*known(15, seed))
    points, report = querier.query(n_queries=n_queries, return_report=True)
    assert len(report.guard) == n_queries
    for point, action in zip(points, report.guard, strict=True):
        np.testing.assert_array_equal(action.point, point)
        np.testing.assert_array_equal(action.shift, point - action.proposal)
        away = np.linalg.norm(to_unit(point) - to_unit(action.proposal))
        assert action.distance == pytest.approx(away, abs=1e-9)
        assert querier.guard_.check(action.proposal)[0] == action.passed
        assert querier.guard_.check(point)[0] == action.is_safe_enough
        assert (action.given >= action.required) == action.passed
        if not action.passed:
            # On the way to one of the three nearest safe points, and never at it.
            safe = to_unit(querier.X_[querier.z_ >= 0])
            from_proposal = np.linalg.norm(safe - to_unit(action.proposal), axis=1)
            nearest = safe[np.argsort(from_proposal)[:3]]
            anchor = to_unit(action.anchor)
            assert np.abs(nearest - anchor).max(axis=1).min() < 1e-9
            way, whole = to_unit(point) - anchor, to_unit(action.proposal) - anchor
            share = way @ whole / (whole @ whole)
            assert 0 < share < 1
            np.testing.assert_allclose(way, share * whole, atol=1e-9)
    apart = np.abs(to_unit(points)[:, None] - to_unit(np.vstack([querier.X_, points]))).max(axis=2)
    assert (np.sort(apart, axis=1)[:, 1] > 1e-6).all()


def test_the_farthest_point_that_passes():
    querier = guarded(guard=SafetyGuard(n_steps=200)).fit(*known(25))
    corner = to_raw([0.98, 0.97])
    (found,) = querier.guard_.pull_back(corner)
    assert not querier.guard_.check(corner)[0]
    assert querier.guard_.check(found)[0]
    X = to_unit(querier.X_[querier.z_ >= 0])
    nearest = X[np.argsort(np.linalg.norm(X - [0.98, 0.97], axis=1))[:3]]
    ways = nearest[:, None] + np.linspace(0.001, 0.999, 999)[:, None] * (
        np.array([0.98, 0.97]) - nearest[:, None]
    )
    ways = ways.reshape(-1, 2)
    passing = ways[querier.guard_.check(to_raw(ways))]
    best = np.linalg.norm(passing - [0.98, 0.97], axis=1).min()
    assert np.linalg.norm(to_unit(found) - [0.98, 0.97]) == pytest.approx(best, abs=0.008)
    inside = to_raw([[0.5, 0.5], [0.52, 0.45]])
    np.testing.assert_array_equal(querier.guard_.pull_back(inside), inside)


def test_where_nothing_passes_the_safest_is_proposed():
    X, y, _ = known(12)
    z = np.where(np.arange(12) % 2, -1.0, 0.02)
    querier = guarded().fit(X, y, z)
    message = "the guard found no point that is safe enough"
    with pytest.warns(SafetyWarning, match=message) as record:
        point, report = querier.query(return_report=True)
    assert {w.filename for w in record} == {__file__}
    (action,) = report.guard
    assert not action.passed
    assert not action.is_safe_enough
    assert action.reached >= action.given
    assert "this is the safest" in action.reason
    assert np.abs(querier.X_ - point).max(axis=1).min() > 0


@pytest.mark.parametrize("pooled", [False, True])
def test_where_nothing_passes_an_error_may_be_raised(pooled):
    """With the point that would be proposed, and its probability by the guard's model."""
    X, y, _ = known(12)
    z = np.where(np.arange(12) % 2, -1.0, 0.02)
    pool = to_raw(np.random.default_rng(1).random((50, 2))) if pooled else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SafetyWarning)
        point, report = guarded().query(X, y, z, pool=pool, return_report=True)
    (action,) = report.guard
    strict = guarded(on_no_safe="raise", gamma=1.0)
    with pytest.raises(NoSafeCandidateError, match=r"safe means z >= 0\.0") as error:
        strict.query(X, y, z, pool=pool)
    (model,) = AmortizedSafeQuerier(bounds=BOUNDS).fit(X, y, z)._models(history(X, y, z))[1]
    expected = student.cdf([action.reached, action.required], model.dof_)
    if not pooled:
        np.testing.assert_allclose([error.value.candidate], point, rtol=0, atol=1e-9)
        np.testing.assert_allclose([error.value.probability, error.value.required], expected)
    assert error.value.probability < error.value.required
    # Where the proposal passes, or can be pulled back, there is nothing to raise.
    data = known(12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SafetyWarning)
        expected = guarded().query(*data, n_queries=3)
        found = guarded(on_no_safe="raise").query(*data, n_queries=3)
    np.testing.assert_array_equal(found, expected)


def history(X, y, z):
    querier = AmortizedSafeQuerier(bounds=BOUNDS).fit(X, y, z)
    return querier._history(True, (querier.X_, querier.y_, querier.z_, querier.status_))


def test_guarded_models_raise_by_default():
    X, y, _ = known(12)
    z = np.where(np.arange(12) % 2, -1.0, 0.02)
    params = dict(bounds=BOUNDS, guard=True, gamma=0.999)
    with pytest.raises(NoSafeCandidateError):
        GPSafeQuerier("ensemble", **params).query(X, y, z)
    kept = GPSafeQuerier("ensemble", on_no_safe="least_unsafe", **params)
    with pytest.warns(SafetyWarning, match="the guard found no point that is safe enough"):
        report = kept.query(X, y, z, return_report=True)[1]
    assert not report.guard[0].is_safe_enough


def test_where_nothing_measured_is_safe_a_proposal_stays():
    X, y, z = known(12)
    with pytest.warns(SafetyWarning, match="none of the 12 observations is safe"):
        expected = guarded(guard=False, on_no_safe="least_unsafe").query(X, y, -z)
    with pytest.warns(SafetyWarning), pytest.raises(NoSafeCandidateError):
        guarded().query(X, y, -z)
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        bold = guarded(on_no_safe="least_unsafe")
        point, report = bold.query(X, y, -z, return_report=True)
    assert any("the guard found no point" in str(w.message) for w in record)
    np.testing.assert_array_equal(point, expected)
    assert "nothing measured is safe" in report.guard[0].reason


def test_a_single_observation():
    X, y, z = known(1)
    querier = guarded(guard=SafetyGuard(gamma=0.05)).fit(X, y, z)
    with pytest.raises(ValueError, match="calibration needs two observations or more"):
        querier.calibration()
    action = querier.query(return_report=True)[1].guard[0]
    assert action.required == pytest.approx(student.ppf(0.95, 3))


@quiet
def test_guards_make_up_for_wrong_scales():
    """Margins stated as twice what they are make a policy bold; measured ones do not."""
    function, shares = simionescu(), {}
    for guard in (False, SafetyGuard(gamma=0.05)):
        safe = []
        for seed in range(2):
            r = np.random.default_rng(seed)
            querier = AmortizedSafeQuerier(
                "2d", bounds=function.bounds, budget=20, z_scale=0.5, guard=guard
            )
            querier.fit(*function.initial_points(5, seed, return_measurements=True))
            for _ in range(20):
                x = querier.query()
                safe.append(function.safety(x)[0] >= 0)
                querier.tell(x, *function.measure(x, r))
        shares[guard is not False] = np.mean(safe)
    assert shares[True] >= 0.97
    assert shares[False] < 0.95


# ---- where it is on


@quiet
def test_where_it_is_on():
    data = known(12)
    pool = np.random.default_rng(0).random((300, 2)) * 6
    models = {"policy": "any"}
    for params, asked, on in (
        ({}, {}, True),
        ({}, {"pool": pool}, True),
        ({"guard": False}, {}, False),
        (models | {"guard": False}, {}, False),
        (models, {}, True),
        (models | {"guard": SafetyGuard(gamma=0.01)}, {"pool": pool}, True),
    ):
        _, report = guarded(**params).query(*data, return_report=True, **asked)
        assert (report.guard is not None) == on
    assert AmortizedSafeQuerier().guard is None
    for policy, on in ((policy_file(True), True), ("any", False)):
        querier = AmortizedSafeQuerier(policy, bounds=BOUNDS)
        assert (querier.query(*data, return_report=True)[1].guard is not None) == on
    assert GPSafeQuerier().guard is False
    for guard in (False, True):
        _, report = GPSafeQuerier("ensemble", bounds=BOUNDS, guard=guard).query(
            *data, return_report=True
        )
        assert (report.guard is not None) == bool(guard)
    assert guarded().fit(*data).assess(data[0]).guard is None


def test_rows_of_a_pool():
    pool = to_raw(np.random.default_rng(0).random((400, 2)))
    querier = guarded(guard=True, gamma=1.0).fit(*known(20))
    free = clone(querier).set_params(guard=False).fit(*known(20))
    passes = querier.guard_.check(pool)
    points, rows, report = querier.query(
        pool=pool, n_queries=5, return_indices=True, return_report=True
    )
    np.testing.assert_array_equal(points, pool[rows])
    assert passes[rows].all()
    assert len(set(rows)) == 5
    # Of rows that pass the one nearest to the choice.
    first = free.query(pool=pool, return_indices=True)[1][0]
    away = np.linalg.norm(to_unit(pool) - to_unit(pool[first]), axis=1)
    assert rows[0] == np.where(passes, away, np.inf).argmin()
    np.testing.assert_array_equal(report.guard[0].proposal, pool[first])
    assert any(not one.passed for one in report.guard)


@few
@given(seed=st.integers(0, 999))
def test_neither_order_nor_units_matter(seed):
    X, y, z = known(10, seed)
    order = np.random.default_rng(seed).permutation(10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = guarded().query(X, y, z)
        found = guarded().query(X[order], y[order], z[order])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
        points = to_raw(np.random.default_rng(seed).random((5, 2)))
        one = guarded(z_scale=0.1).fit(X, y, z).guard_
        other = guarded(safety_threshold=350.0, safe_when="below").fit(X, y, 350 - 7 * z).guard_
        np.testing.assert_allclose(other.pull_back(points), one.pull_back(points), atol=1e-5)


def test_campaigns_agree_with_their_data_passed_at_once():
    X, y, z = known(30)
    querier = guarded().fit(X[:4], y[:4], z[:4])
    for n in range(4, 30):
        expected = guarded().query(X[:n], y[:n], z[:n])
        before = pickle.dumps(querier)
        np.testing.assert_allclose(querier.query(), expected, rtol=0, atol=1e-5)
        querier.guard_.check(X)
        querier.calibration()
        assert pickle.dumps(querier) == before
        querier.tell(X[n], y[n], z[n])
    other = pickle.loads(pickle.dumps(querier))
    np.testing.assert_array_equal(other.query(), querier.query())
    many = querier.propose_many([(X[:n], y[:n], z[:n]) for n in (7, 4, 30)])
    loop = [querier.query(X[:n], y[:n], z[:n])[0] for n in (7, 4, 30)]
    np.testing.assert_allclose(many, loop, rtol=0, atol=1e-4)  # the network's single precision


def test_models_are_brought_up_to_date_in_tell(monkeypatch):
    querier = guarded().fit(*known(12))
    querier.tell(to_raw([0.5, 0.52]), 0.1, 0.9)
    monkeypatch.setattr(AmortizedGP, "_set", None)
    monkeypatch.setattr(AmortizedGP, "_without_each", lambda self: self._left_out)
    querier.query()


# ---- calibration


def test_calibration():
    X, y, z = known(25, width=0.4)
    found = guarded().fit(X, y, z).calibration()
    model = AmortizedGP(zero_mean=True).fit(to_unit(X), z)
    np.testing.assert_allclose(found.scores[:, 0], model.leave_one_out(), rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(found.is_safe, z >= 0)
    assert 0 < found.is_safe.sum() < 25
    assert found.p_safe[z >= 0].mean() > 0.8 > 0.3 > found.p_safe[z < 0].mean()
    assert found.quantile[0] == np.sort(found.scores[:, 0])[23]  # ceil(26 * 0.9)
    assert found.is_believable is True
    for other in (
        AmortizedSafeQuerier(bounds=BOUNDS).fit(X, y, z).calibration(),
        GPSafeQuerier(bounds=BOUNDS).calibration(X, y, z),
    ):
        np.testing.assert_allclose(other.scores, found.scores, rtol=1e-6, atol=1e-8)
    with pytest.raises(NotFittedError):
        guarded().calibration()


@pytest.mark.parametrize(("sign", "z_scale"), [(1, 40.0), (-1, 40.0), (-1, "auto")])
def test_calibration_in_the_units_of_the_user(sign, z_scale):
    X, y, z = known(20)
    raw, side = 700.0 + sign * 40.0 * z, {1: "above", -1: "below"}[sign]
    params = {"safety_threshold": 700.0, "safe_when": side, "z_scale": z_scale}
    querier = guarded(**params).fit(X, y, raw)
    found, plain = querier.calibration(), guarded().fit(X, y, z).calibration()
    np.testing.assert_allclose(found.scores, plain.scores, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.z_mean, 700 + sign * 40 * plain.z_mean, rtol=1e-5)
    np.testing.assert_allclose(found.z_std, 40 * plain.z_std, rtol=1e-4)
    # Residuals over scores are scales, and standard deviations are somewhat larger than these.
    scale = sign * (found.z_mean - raw) / found.scores[:, 0]
    assert (scale < found.z_std).all()
    assert (found.z_std < 1.001 * scale * student.std(found.dof[0])).all()
    # Rows keep their places, whatever became of others.
    querier.tell(X[0], status="failed").tell(X[1] + 0.1, status="aborted")
    assert querier.calibration().z_mean.shape == (21,)
    both = np.column_stack([raw, raw])
    assert guarded(**params).fit(X, y, both).calibration().z_mean.shape == (20, 2)


@pytest.mark.parametrize(("n", "n_bad"), [(11, 3), (12, 3), (40, 2), (40, 5)])
def test_is_believable(n, n_bad, monkeypatch):
    """A dozen or more, and more beyond a quantile than a binomial test at 1 % allows."""
    querier = guarded().fit(*known(n))
    scores = np.append(np.full(n_bad, 9.0), np.zeros(n - n_bad))
    monkeypatch.setattr(AmortizedGP, "leave_one_out", lambda self: scores)
    p = min(binom.sf(n_bad - 1, n, 0.05), binom.sf(n_bad - 1, n, 0.01))
    expected = n < 12 or p >= 0.01
    assert querier.calibration().is_believable == expected
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        querier.query()
        told = [w for w in record if "calibration() has the figures" in str(w.message)]
        assert bool(told) != expected
        assert all(w.filename == __file__ for w in told)
        del record[:]
        querier.set_params(guard=False).query()
        assert not record


# ---- parameters


def test_parameters():
    guard = SafetyGuard(gamma=0.1, n_nearest=2)
    querier = guarded(guard=guard)
    assert clone(querier).guard.get_params() == {"gamma": 0.1, "n_nearest": 2, "n_steps": 32}
    assert querier.set_params(guard__gamma=0.2).guard.gamma == 0.2
    with pytest.raises(NotFittedError):
        _ = guarded().guard_
    with pytest.raises(ValueError, match=r"x has 3 features"):
        guarded().fit(*known()).guard_.check([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="NaN"):
        guarded().fit(*known()).guard_.pull_back([1.0, np.nan])


@pytest.mark.parametrize(
    ("guard", "message"),
    [
        ("yes", "guard must be True, False, None or a SafetyGuard, got 'yes'"),
        (0.05, "guard must be True, False, None or a SafetyGuard"),
        (SafetyGuard(gamma=0.0), "gamma of the guard must be above 0"),
        (SafetyGuard(gamma=0.6), "gamma of the guard"),
        (SafetyGuard(gamma=np.nan), "gamma of the guard"),
        (SafetyGuard(n_nearest=0), "n_nearest"),
        (SafetyGuard(n_steps=1), "n_steps"),
        (SafetyGuard(n_steps=2.5), "n_steps"),
    ],
)
def test_bad_parameters(guard, message):
    for querier in (guarded(guard=guard), GPSafeQuerier(guard=guard)):
        for call in (querier.fit, querier.query):
            with pytest.raises((TypeError, ValueError), match=message):
                call(*known())
        assert not hasattr(querier, "X_")


# ---- readings that are repeated


@quiet
def test_repeated_readings_count_once_and_are_told_each():
    """Also where a reading is repeated in one of several limits only."""
    X, y, z = known(12)
    z = np.column_stack([z, 2 * z - 0.1])
    again = np.append(np.arange(12), [0, 0, 5])
    signals = z[again]
    signals[-1, 1] += 0.01
    limits = {"safety_threshold": [0, 0]}
    expected = guarded(**limits).fit(X, y, z).calibration()
    found = guarded(**limits).fit(X[again], y[again], signals).calibration()
    assert found.scores.shape == (15, 2)
    assert found.p_safe.shape == found.is_safe.shape == (15,)
    np.testing.assert_allclose(found.scores[:, 0], expected.scores[again, 0], rtol=1e-6)
    np.testing.assert_allclose(found.quantile[0], expected.quantile[0], rtol=1e-6)


@quiet
def test_one_reading_however_often_says_nothing():
    X, y, z = known(1)
    once, often = guarded().fit(X, y, z), guarded(policy="any")
    with pytest.warns(SafetyWarning, match="all measurements are of one point"):
        often.fit(np.repeat(X, 5, axis=0), np.repeat(y, 5), np.repeat(z, 5))
    assert np.isfinite(often.query()).all()
    for querier in (once, often):
        with pytest.raises(ValueError, match="two observations or more, and there are 1"):
            querier.calibration()
