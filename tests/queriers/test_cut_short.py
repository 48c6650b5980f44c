"""Runs that were cut short: outputs that are missing, aborted and failed runs."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sklearn_asal import AmortizedSafeQuerier, CandidatePool, GPSafeQuerier, RandomQuerier
from sklearn_asal.queriers.cut_short import aborted_margin

from ..common import QUERIERS, UniformQuerier

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
some = settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
seeds = st.integers(0, 10**6)
NAN = np.nan
SHIPPED = {
    "any": AmortizedSafeQuerier,
    "2d": lambda **params: AmortizedSafeQuerier("2d", **params),
    "exact": lambda **params: GPSafeQuerier(n_candidates=300, on_no_safe="least_unsafe", **params),
}


def campaign(seed=0, n=8):
    """Observations about the centre, all of them safe but the last."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.2, 0.8, (n, 2))
    y, z = np.sin(5 * X[:, 0]) + X[:, 1], 1.5 - 2 * np.abs(X[:, 0] - 0.5) - X[:, 1] / 2
    z[-1] = -0.4
    return X, y, z


@pytest.fixture(params=SHIPPED)
def shipped(request):
    return SHIPPED[request.param]


def is_safe(make):
    return hasattr(make(), "safety_rule")


# ---- what is kept


def test_the_record_is_complete(make):
    X, y, z = campaign()
    querier = make(budget=9).fit(X, y, z)
    querier.tell(X[0] + 0.01, z=1.0).tell(X[1] + 0.01, status="failed")
    querier.tell(X[2:5] + 0.01, [NAN, 0.5, NAN], [0.9, 0.8, NAN], status=["ok", "ok", "failed"])
    np.testing.assert_array_equal(querier.y_[8:], [NAN, NAN, NAN, 0.5, NAN])
    np.testing.assert_array_equal(querier.z_[8:], [1.0, NAN, 0.9, 0.8, NAN])
    assert querier.status_.tolist() == ["ok"] * 8 + ["ok", "failed", "ok", "ok", "failed"]
    assert querier.n_told_ == 5
    assert len(querier.X_) == len(querier.index_) == 13
    for part in querier.X_, querier.y_, querier.z_, querier.status_:
        with pytest.raises(ValueError, match="read-only"):
            part[0] = part[1]
    assert np.isfinite(querier.query(n_queries=3)).all()
    assert make().fit(X, y, z).status_.tolist() == ["ok"] * 8


def test_copies_answer_the_same(make):
    X, y, z = campaign()
    querier = make(budget=9).fit(X, y, z).tell(X[0] + 0.01, z=0.5).tell([0.1, 0.9], status="failed")
    if is_safe(make):
        querier.tell([0.9, 0.9], status="aborted")
    before = pickle.dumps(querier)
    expected = querier.query(n_queries=2)
    for other in copy.deepcopy(querier), pickle.loads(before):
        np.testing.assert_array_equal(other.query(n_queries=2), expected)
        assert other.status_.tolist() == querier.status_.tolist()
    assert pickle.dumps(querier) == before


@some
@given(seed=seeds, order=st.permutations(range(6)))
def test_order_and_grouping_are_of_no_consequence(make, seed, order):
    X, y, z = campaign(seed)
    rng = np.random.default_rng(seed)
    new, outputs, signals = rng.random((6, 2)), rng.normal(size=6), rng.uniform(0.1, 1, 6)
    cut = "aborted" if is_safe(make) else "failed"
    status = np.array(["ok", cut, "ok", "failed", "ok", cut])
    outputs[[0, 1, 3, 5]] = NAN
    signals[[1, 3, 5]] = NAN
    together = make(budget=30).fit(X, y, z).tell(new, outputs, signals, status=status)
    single = make(budget=30).fit(X, y, z)
    for i in order:
        if status[i] == "ok":
            single.tell(new[i], outputs[i], signals[i])
        else:
            single.tell(new[i], status=str(status[i]))
    np.testing.assert_allclose(single.query(), together.query(), rtol=0, atol=35e-5)


def test_a_missing_output_with_and_without_campaign(make):
    X, y, z = campaign()
    y[[2, 5]] = NAN
    fitted = make(budget=4).fit(X, y, z)
    told = make(budget=9).fit(X[:3], y[:3], z[:3]).tell(X[3:], y[3:], z[3:])
    expected = make(budget=4).query(X, y, z)
    np.testing.assert_array_equal(fitted.query(), expected)
    np.testing.assert_array_equal(told.query(), expected)
    if hasattr(fitted, "assess"):
        for a, b in zip(
            vars(fitted.assess(X)).values(), vars(make().assess(X, X, y, z)).values(), strict=True
        ):
            np.testing.assert_array_equal(a, b)


def test_booleans(make_safe):
    X, y, _ = campaign()
    flags = [True] * 7 + [False]
    querier = make_safe().fit(X, y, flags).tell([0.9, 0.9], status="aborted")
    querier.tell([0.8, 0.8], z=True).tell(
        [[0.1, 0.1], [0.2, 0.1]], z=[None, True], status=["failed", "ok"]
    )
    assert querier.z_[:9].tolist()[:8] == flags
    assert querier.z_[9] is True or querier.z_[9] == np.True_
    assert np.isnan(querier.z_[8])
    assert np.isnan(querier.z_[10])
    assert querier.safety_rule == "safe means z is True"
    with pytest.raises(ValueError, match="measured in numbers, but in fit it was in booleans"):
        querier.tell([0.8, 0.7], 0.1, 0.3)
    # An aborted run is one that was not safe.
    other = make_safe().fit(X, y, flags).tell([0.8, 0.8], z=True).tell([0.2, 0.1], z=True)
    other.tell([0.9, 0.9], z=False).tell([0.1, 0.1], status="failed")
    np.testing.assert_allclose(querier.query(), other.query(), rtol=0, atol=35e-5)


def test_several_limits_of_both_kinds(make_safe):
    X, y, z = campaign()
    both = pd.DataFrame({"ok": z > 0, "heat": z})
    querier = make_safe().fit(X, y, both)
    querier.tell(X[:2] + 0.01, y[:2], both[:2]).tell([0.9, 0.9], status="aborted")
    rows = [[True, 0.4], [NAN, NAN]]
    querier.tell([[0.8, 0.8], [0.1, 0.9]], [NAN, NAN], rows, status=["ok", "aborted"])
    assert querier.z_.shape == (13, 2)
    assert np.isfinite(querier.query()).all()
    for gap in [[True, NAN], [NAN, NAN]], [[None, 0.4], [NAN, NAN]]:
        with pytest.raises(ValueError, match="z"):
            querier.tell([[0.8, 0.8], [0.1, 0.9]], [NAN, NAN], gap, status=["ok", "aborted"])


# ---- what is learned


@some
@given(st.lists(st.lists(st.floats(-5, 5), min_size=2, max_size=2), min_size=1, max_size=9))
def test_the_margin_of_an_aborted_run(rows):
    margin = np.array(rows)
    found = aborted_margin(margin)
    assert (found < 0).all()
    assert (found <= margin.min(axis=0)).all()
    rms = np.sqrt((margin**2).sum(axis=0) / len(margin))
    expected = np.where(margin.min(axis=0) < -rms, margin.min(axis=0), -rms)
    np.testing.assert_allclose(found, np.where(expected < 0, expected, -1.0))
    np.testing.assert_array_equal(aborted_margin(margin[::-1]), found)


def test_an_aborted_run_is_a_violation_of_that_size(make_safe):
    """The same as one told with the numbers that stand for it."""
    X, y, z = campaign()
    point = np.array([0.75, 0.3])
    cut = make_safe(budget=9).fit(X, y, z).tell(point, status="aborted")
    lowest = min(z.min(), -np.sqrt(np.mean(z**2)))
    known = make_safe(budget=9).fit(X, y, z).tell(point, NAN, lowest)
    np.testing.assert_allclose(cut.query(), known.query(), rtol=0, atol=1e-9)


def test_it_is_less_safe_there(shipped):
    X, y, z = campaign()
    querier = shipped().fit(X, y, z)
    point = [[0.3, 0.75]]
    before = querier.assess(point)
    after = querier.tell(point, status="aborted").assess(point)
    assert after.p_safe[0] < 0.5 < before.p_safe[0]
    np.testing.assert_allclose(after.y_mean, before.y_mean)
    np.testing.assert_allclose(after.y_std, before.y_std)


def test_a_missing_output_leaves_the_model_of_the_output(shipped):
    X, y, z = campaign()
    querier = shipped().fit(X, y, z)
    point = [[0.3, 0.75]]
    before = querier.assess(point)
    after = querier.tell(point, z=[1.0]).assess(point)
    np.testing.assert_allclose(after.y_mean, before.y_mean)
    assert after.z_std[0] < before.z_std[0]


def test_a_failed_run_leaves_all_models(shipped):
    X, y, z = campaign()
    querier = shipped().fit(X, y, z)
    point = [[0.3, 0.75]]
    before = vars(querier.assess(point))
    after = vars(querier.tell(point, status="failed").assess(point))
    for name, value in before.items():
        if name != "guard":  # of queries only
            np.testing.assert_allclose(after[name], value, err_msg=name)


def test_aborted_where_the_output_is_its_own_safety_measurement(make_safe):
    X, _, z = campaign()
    querier = make_safe().fit(X, z).tell([0.9, 0.9], status="aborted")
    np.testing.assert_array_equal(querier.z_, querier.y_)
    assert np.isnan(querier.z_[-1])
    assert np.isfinite(querier.query()).all()
    with pytest.raises(ValueError, match=r"y.*status"):
        querier.tell([0.9, 0.8])
    with pytest.raises(ValueError, match="y"):
        querier.tell([0.9, 0.8], NAN)


# ---- what is not proposed again


def apart(points, others):
    return np.abs(points[:, None] - others[None]).max(axis=-1).min()


def test_a_failed_point_is_not_proposed_again(make):
    X, y, z = campaign()
    querier = make(budget=30, random_state=0).fit(X, y, z)
    failed = np.empty((0, 2))
    for _ in range(6):
        point = querier.query()
        if len(failed):
            assert apart(point, failed) >= 0.01 - 1e-9
        failed = np.vstack([failed, point])
        querier.tell(point, status="failed")
    assert apart(querier.query(n_queries=3), failed) >= 0.01 - 1e-9
    assert querier.n_told_ == 6


def test_a_failed_row_is_not_proposed_again(make):
    X, y, z = campaign()
    rows = np.random.default_rng(3).uniform(0.2, 0.8, (6, 2))
    pool = CandidatePool(np.vstack([rows, rows]))  # a row that failed fails again
    querier = make().fit(X, y, z)
    seen = []
    for i in range(6):
        point, index = querier.query(pool=pool, return_indices=True)
        seen.append(int(index[0]) % 6)
        told = {"index": index} if i % 2 else {}
        querier.tell(point, status="failed", **told)
    assert sorted(seen) == list(range(6))
    with pytest.raises(ValueError, match="no row of the pool is left"):
        querier.query(pool=pool)


def test_random_points_go_on():
    querier = RandomQuerier(random_state=0).fit([[0.5, 0.5]], [0.1])
    first = querier.query()
    assert apart(querier.tell(first, status="failed").query(), first) > 0.01


# ---- what is refused


def test_errors_lose_nothing(make):
    X, y, z = campaign()
    querier = make().fit(X, y, z)
    before = pickle.dumps(querier)
    two = X[:2] + 0.01
    ok = "aborted" if is_safe(make) else "failed"
    for arguments, message in (
        ({"x": two, "status": "lost"}, "status must be 'ok', 'aborted' or 'failed'.*'lost'"),
        ({"x": two, "status": ["failed"]}, "one for each of the 2 observations"),
        ({"x": two, "status": None}, "status must be"),
        ({"x": two, "y": [0.1, 0.2], "status": "failed"}, "y is given for observation 0.*failed"),
        ({"x": two, "z": [NAN, 0.2], "status": "failed"}, "z is given for observation 1.*failed"),
        ({"x": two, "y": [0.1, NAN], "status": ["ok", ok]}, "z is missing"),
        ({"x": two, "z": [NAN, NAN], "status": ["ok", ok]}, "Input z contains NaN"),
        ({"x": two, "z": [0.1], "status": ["ok", ok]}, "z has 1 entries, but x has 2 rows"),
        ({"x": two, "y": [0.1], "status": ["ok", ok]}, "y has 1 entries, but x has 2 rows"),
        ({"x": two, "z": [[0.1, 0.2], [NAN, NAN]], "status": ["ok", ok]}, "z has shape"),
        ({"x": two, "y": [np.inf, NAN], "z": [1.0, NAN], "status": ["ok", ok]}, "y contains inf"),
        ({"x": [[NAN, 0.1]], "status": "failed"}, "Input x contains NaN"),
        ({"x": [[0.1, 0.1, 0.1]], "status": "failed"}, "x has 3 features"),
        ({"x": two}, "z is missing"),
    ):
        with pytest.raises(ValueError, match=message):
            querier.tell(**arguments)
        assert pickle.dumps(querier) == before


def test_only_limits_are_violated():
    for name, make in QUERIERS.items():
        if is_safe(make):
            continue
        querier = make().fit(*campaign())
        with pytest.raises(ValueError, match=r"'aborted'.*Pass status='failed'"):
            querier.tell([0.1, 0.1], status="aborted")
        assert querier.tell([0.1, 0.1], status="failed").n_told_ == 1, name


def test_some_output_is_needed(make):
    X, y, z = campaign()
    nothing = np.full(len(y), NAN)
    for call in make().fit, make().query:
        with pytest.raises(ValueError, match=r"Input y .*Measure the output of at least one"):
            call(X, nothing, z)
        with pytest.raises(ValueError, match="Input y contains NaN"):
            call(X, np.where(y == y[0], NAN, y))


def test_what_was_told_of_cut_runs_is_not_for_a_query(make):
    X, y, z = campaign()
    querier = make().fit(X, y, z).tell([0.1, 0.1], status="failed")
    with pytest.raises(ValueError, match="Input z contains NaN"):
        querier.query(querier.X_, querier.y_, querier.z_)


def test_propose_many_wants_all_outputs():
    X, y, z = campaign()
    y[1] = NAN
    with pytest.raises(ValueError, match="campaign 1: Input y contains NaN"):
        AmortizedSafeQuerier("2d").propose_many([(X, z, z), (X, y, z)])


def test_plain_tells_are_as_they_were(make):
    """A status that says nothing changes nothing, however it is said."""
    X, y, z = campaign()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = make(budget=9).fit(X, y, z).tell(X[:2] + 0.01, y[:2], z[:2])
        for status in "ok", ["ok", "ok"], np.array(["ok", "ok"]), pd.Series(["ok", "ok"]):
            other = make(budget=9).fit(X, y, z).tell(X[:2] + 0.01, y[:2], z[:2], status=status)
            assert pickle.dumps(other) == pickle.dumps(plain)
            np.testing.assert_array_equal(other.query(), plain.query())


def test_subclasses_see_no_gap():
    """What ``_select`` gets is finite, and of failed runs there is nothing but where they were."""
    seen = []

    class Spy(UniformQuerier):
        def _select(self, history, candidates, budget, rng):
            seen.append(history)
            return super()._select(history, candidates, budget, rng)

    X = np.array([[0.1, 0.1], [0.9, 0.9], [0.5, 0.5]])
    querier = Spy(y_scale=2.0).fit(X, [2.0, 4.0, 8.0], [1.0, 1.0, 1.0])
    querier.tell([0.15, 0.1], z=1.0).tell([0.7, 0.7], z=1.0).tell([0.2, 0.9], status="failed")
    querier.query()
    (history,) = seen
    np.testing.assert_array_equal(history.y, [1, 2, 4, 1, 3])  # of equally near ones the mean
    np.testing.assert_array_equal(history.has_output, [True, True, True, False, False])
    np.testing.assert_array_equal(history.complete.X, X)
    np.testing.assert_array_equal(history.failed, [[0.2, 0.9]])
    assert (history.n_observed, history.n_points) == (5, 6)
