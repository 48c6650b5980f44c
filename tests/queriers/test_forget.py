"""Measurements are taken back, or mended: as if they had never been told, or told right."""

import copy
import pickle
import threading
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from sklearn_asal import AmortizedQuerier, AmortizedSafeQuerier, CandidatePool, DataScaleWarning

from ..common import BestSafeQuerier, UniformQuerier
from .test_contract import BOUNDS, campaign

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
some = settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
N, N_INIT = 10, 4
NAN = np.nan
POOL = CandidatePool(campaign(99, n=40)[0])
some_positions = st.sets(st.integers(0, N - 1), min_size=1, max_size=N - 2)


def outcomes(safe, seed=0):
    """A campaign some of whose runs were cut short, as keyword arguments of each tell."""
    X, y, z = campaign(seed, n=N)
    told = [{"x": X[i], "y": y[i], "z": z[i]} for i in range(N)]
    told[N_INIT + 1] = {"x": X[N_INIT + 1], "status": "failed"}
    told[N_INIT + 2]["y"] = NAN
    if safe:
        told[N_INIT + 3] = {"x": X[N_INIT + 3], "status": "aborted"}
    return told


def begun(make, told, kept, ask=True):
    """A campaign of some of the observations; asked in between, so that much is remembered."""
    first = [told[i] for i in kept if i < N_INIT]
    columns = [np.array([one[name] for one in first]) for name in ("x", "y", "z")]
    querier = make(bounds=BOUNDS, budget=30).fit(*columns)
    for i in kept:
        if ask:
            querier.query()
        if i >= N_INIT:
            querier.tell(**told[i])
    return querier


def assert_same(querier, other):
    for name in ("X_", "y_", "z_", "status_", "index_"):
        found, expected = getattr(querier, name), getattr(other, name)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    assert querier.n_told_ == other.n_told_
    np.testing.assert_array_equal(querier.query(n_queries=2), other.query(n_queries=2))
    found, expected = (one.query(pool=POOL, return_indices=True) for one in (querier, other))
    np.testing.assert_array_equal(found[1], expected[1])


def is_safe(make):
    return hasattr(make(), "safety_rule")


@some
@given(gone=some_positions, seed=st.integers(0, 10**6), one_by_one=st.booleans())
def test_what_is_forgotten_was_never_told(make, gone, seed, one_by_one):
    gone = sorted(gone - {0})  # without initial ones there is no campaign to compare with
    told = outcomes(is_safe(make), seed)
    querier = begun(make, told, range(N))
    querier.query(pool=POOL)
    if one_by_one:
        for i in reversed(gone):
            querier.forget(i)
    elif gone:
        assert querier.forget(gone) is querier
    kept = [i for i in range(N) if i not in gone]
    other = begun(make, told, kept)
    assert querier.n_told_ == sum(i >= N_INIT for i in kept)
    assert_same(querier, other)
    # And the campaign goes on as the other does.
    for one in querier, other:
        one.tell(BOUNDS[0][0] + 1.0 + np.zeros(2), 0.25, 0.5)
    assert_same(querier, other)


@some
@given(wrong=some_positions, seed=st.integers(0, 10**6), at_once=st.booleans())
def test_what_is_corrected_was_told_right(make, wrong, seed, at_once):
    told = outcomes(is_safe(make), seed)
    right = begun(make, told, range(N))
    mistaken = copy.deepcopy(told)
    plain = sorted(i for i in wrong if "status" not in told[i])
    for i in plain:
        mistaken[i] |= {"y": 0.5, "z": 0.75}
    querier = begun(make, mistaken, range(N))
    querier.query(pool=POOL)
    y, z = ([told[i][name] for i in plain] for name in ("y", "z"))
    if at_once and plain:
        querier.correct(plain, y, z)
    else:
        for i, y_, z_ in zip(plain, y, z, strict=True):
            querier.correct(i, y=y_).correct(i - N, z=z_)
    assert_same(querier, right)


def test_how_a_run_ended_is_corrected(make):
    told = outcomes(is_safe(make))
    right = begun(make, told, range(N))
    mistaken = copy.deepcopy(told)
    cut = [i for i in range(N) if "status" in told[i]]
    for i in cut:
        mistaken[i] = {"x": told[i]["x"], "y": 0.5, "z": 0.75}
    querier = begun(make, mistaken, range(N))
    for i in cut:
        querier.correct(i, status=told[i]["status"])
    assert_same(querier, right)
    for i in cut:  # and back
        querier.correct(i, 0.5, 0.75, status="ok")
    assert_same(querier, begun(make, mistaken, range(N)))
    querier.correct(cut, status=[told[i]["status"] for i in cut])
    assert_same(querier, right)
    # An output that was missing turns up.
    late = [i for i in range(N) if told[i].get("y") != told[i].get("y")]
    told[late[0]]["y"] = 0.125
    assert_same(querier.correct(late, [0.125]), begun(make, told, range(N)))


def test_booleans_stay_what_they_were(make_safe):
    X, y, _ = campaign(0)
    flags = [True, True, True, True, False, True]
    querier = make_safe(bounds=BOUNDS).fit(X[:4], y[:4], flags[:4])
    querier.tell(X[4], status="aborted").tell(X[5], y[5], True)
    assert querier.z_.dtype == object
    right = make_safe(bounds=BOUNDS).fit(X[:4], y[:4], flags[:4]).tell(X[5], y[5], True)
    other = copy.deepcopy(querier).forget(4)
    assert other.z_.dtype == bool
    np.testing.assert_array_equal(other.query(), right.query())
    querier.correct(4, y[4], False, status="ok")
    assert querier.z_.dtype == bool
    np.testing.assert_array_equal(querier.z_, flags)
    with pytest.raises(ValueError, match="measured in numbers, but in fit it was in booleans"):
        querier.correct(4, z=0.3)
    assert querier.correct(1, status="aborted").z_.dtype == object


def test_several_limits(make_safe):
    X, y, z = campaign(0)
    both = np.column_stack([z, 2 * z])
    params = {"bounds": BOUNDS, "safety_threshold": [0, 0]}
    right = make_safe(**params).fit(X, y, both)
    mistaken = both.copy()
    mistaken[2], mistaken[4] = 0.5, 0.25
    querier = make_safe(**params).fit(X, y, mistaken)
    querier.correct(2, z=both[2]).correct([4], z=both[[4]])
    np.testing.assert_array_equal(querier.z_, both)
    np.testing.assert_array_equal(querier.query(), right.query())
    with pytest.raises(ValueError, match="z has shape"):
        querier.correct(2, z=[1.0, 2.0, 3.0])


def test_without_z_the_output_is_the_safety_measurement(make_safe):
    X, _, z = campaign(0)
    right = make_safe(bounds=BOUNDS).fit(X, z)
    querier = make_safe(bounds=BOUNDS).fit(X, np.append(z[:-1], 0.5)).correct(-1, z[-1])
    np.testing.assert_array_equal(querier.z_, z)
    np.testing.assert_array_equal(querier.query(), right.query())
    with pytest.raises(ValueError, match="z was not given to fit"):
        querier.correct(-1, z=3.0)


def test_rows_of_the_pool_are_free_again():
    querier = UniformQuerier(bounds=BOUNDS).fit(*campaign(0))
    expected = querier.query(pool=POOL, n_queries=40, return_indices=True)[1]
    point, index = querier.query(pool=POOL, return_indices=True)
    querier.tell(point + 1e-3, 0.1, 0.1, index=index).tell(point, status="failed")
    assert len(querier.query(pool=POOL, n_queries=39)) == 39
    querier.correct(-1, 0.1, 0.1, status="ok").query(pool=POOL)
    querier.forget([-1, -2])
    found = querier.query(pool=POOL, n_queries=40, return_indices=True)[1]
    np.testing.assert_array_equal(found, expected)


def test_the_budget_is_given_back():
    querier = UniformQuerier(bounds=BOUNDS, budget=2).fit(*campaign(0))
    querier.tell([1.0, 1.0], 0.1, 0.2).tell([2.0, 1.0], 0.1, 0.2)
    with pytest.raises(ValueError, match="0 queries are left"):
        querier.query()
    querier.forget(0)
    assert querier.n_told_ == 2
    querier.forget(-1)
    assert querier.n_told_ == 1
    assert querier.query().shape == (1, 2)


@pytest.mark.parametrize("index", [6, -7, 0.5, "a", [[0]], True, [], None, [0, 6], [True, False]])
def test_bad_positions(index):
    querier = UniformQuerier(bounds=BOUNDS).fit(*campaign(0))
    before = pickle.dumps(querier)
    for call in (lambda: querier.forget(index), lambda: querier.correct(index, 0.1)):
        with pytest.raises(ValueError, match=r"index must be a position in X_, from 0 to 5"):
            call()
    assert pickle.dumps(querier) == before


def test_mistakes_change_nothing(make):
    X, _, z = campaign(0)
    querier = make(bounds=BOUNDS).fit(X[:2], [NAN, 1.0], z[:2])
    querier.tell(X[2], status="failed")
    before, expected = pickle.dumps(querier), querier.query()
    for call, message in [
        (lambda: querier.forget([0, 1, 2]), "at least one observation has to be left"),
        (lambda: querier.forget(1), "at least one observation has to be left"),
        (lambda: querier.correct(1, NAN), "at least one observation has to be left"),
        (lambda: querier.correct(0), "pass what is right"),
        (lambda: querier.correct([0, 0], [1.0, 2.0]), "each position may be there once"),
        (lambda: querier.correct([0, -3], [1.0, 2.0]), "each position may be there once"),
        (lambda: querier.correct([0, 1], [1.0]), "y has 1 entries"),
        (lambda: querier.correct(0, np.inf), "y contains infinity"),
        (lambda: querier.correct(0, z=NAN), "z"),
        (lambda: querier.correct(0, status="well"), "status must be"),
        (lambda: querier.correct(2, 1.0), "y is given for observation 0, whose status is 'failed'"),
        (lambda: querier.correct(2, status="ok"), "z"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            call()
        assert pickle.dumps(querier) == before
    np.testing.assert_array_equal(querier.query(), expected)


def test_before_fit(make):
    with pytest.raises(NotFittedError, match="before forget"):
        make().forget(0)
    with pytest.raises(NotFittedError, match="before correct"):
        make().correct(0, 1.0)


def test_copies_stay_as_they_were(make):
    querier = make(bounds=BOUNDS).fit(*campaign(0))
    other, expected = copy.deepcopy(querier), querier.query()
    other.query()
    other.forget(2).correct(0, 0.5)
    np.testing.assert_array_equal(querier.query(), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(other)).query(), other.query())


def test_what_is_left_is_warned_of_if_it_is_odd():
    X, y, z = campaign(0)
    z = np.append(1.0, -np.ones(5))
    querier = BestSafeQuerier(bounds=BOUNDS).fit(X, y, z)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        querier.forget(1)
        before = pickle.dumps(querier)
        for call in (lambda: querier.forget(0), lambda: querier.correct(0, z=-1.0)):
            with pytest.raises(UserWarning, match=r"none of the \d observations is safe"):
                call()
            assert pickle.dumps(querier) == before


def test_threads_that_take_back_what_others_tell(make):
    X, y, z = campaign(1, n=25)
    querier = make(bounds=BOUNDS).fit(X[:5], y[:5], z[:5])
    wrong = []

    def tell(first):
        for i in range(first, 25, 2):
            querier.tell(X[i], y[i], z[i])

    def ask():
        for _ in range(10):
            if not np.isfinite(querier.query(pool=POOL)).all():
                wrong.append("no point")

    def take_back():
        for _ in range(4):
            querier.forget(0).correct(0, 0.5)

    calls = (tell, 5), (tell, 6), (ask,), (take_back,)
    threads = [threading.Thread(target=call, args=rest) for call, *rest in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(querier.X_) == 21
    assert querier.n_told_ == 20
    fresh = make(bounds=BOUNDS).fit(querier.X_, querier.y_, querier.z_)
    np.testing.assert_array_equal(querier.query(), fresh.query())


def test_shipped_policies_to_the_last_digit():
    """Their weights are large enough that BLAS rounds many rows otherwise than one."""
    X, y, z = campaign(3, n=40)
    for kind in (AmortizedQuerier, AmortizedSafeQuerier):
        querier = kind("2d", bounds=BOUNDS, budget=50).fit(X[:5], y[:5], z[:5])
        other = copy.deepcopy(querier)
        for i in range(5, 40):
            querier.tell(X[i], y[i], z[i]).query()
            if i % 7:
                other.tell(X[i], y[i], z[i])
        querier.forget(range(7, 40, 7))
        np.testing.assert_array_equal(querier.query(), other.query())
        found = pickle.loads(pickle.dumps(querier)).query(n_queries=3)
        np.testing.assert_array_equal(found, other.query(n_queries=3))


# ---- measurements far beyond all others


def gaussian_process(rng, n_features, n):
    """Points that begin close together and then go anywhere, and values there."""
    lengthscale = rng.uniform(0.1, 1.0, n_features)
    near = rng.random(n_features) + rng.choice([0.005, 0.05]) * rng.uniform(-1, 1, (5, n_features))
    X = np.vstack([near, rng.random((n, n_features))])
    distance = np.square((X[:, None] - X) / lengthscale).sum(axis=2)
    factor = np.linalg.cholesky(np.exp(-0.5 * distance) + 1e-8 * np.eye(n + 5))
    return X, factor @ rng.standard_normal(n + 5) + rng.choice([0.01, 0.1]) * rng.standard_normal(
        n + 5
    )


def complaints(call):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        call()
    found = [w for w in record if "far beyond all others" in str(w.message)]
    assert all(w.category is DataScaleWarning and w.filename == __file__ for w in found)
    return [str(w.message) for w in found]


def test_simulated_campaigns_practically_never_alarm():
    rng, alarms = np.random.default_rng(0), []
    for i in range(150):
        X, y = gaussian_process(rng, 1 + i % 3, 12)
        y *= 10.0 ** rng.integers(-3, 4)
        querier = UniformQuerier().fit(X[:5], y[:5])
        for x, value in zip(X[5:], y[5:], strict=True):
            alarms += complaints(lambda q=querier, x=x, value=value: q.tell(x, value))
    assert alarms == []


@pytest.mark.parametrize("value", [9999.0, -9999.0])
@pytest.mark.parametrize("name", ["y", "z", "z[1]"])
def test_a_sensors_9999_is_noticed(name, value):
    rng, n_missed = np.random.default_rng(1), 0
    for i in range(60):
        X, y = gaussian_process(rng, 2, 5 + 3 * (i % 8))
        y = 10.0 ** rng.uniform(0, 2) * y + rng.choice([0.0, 50.0])
        z = np.column_stack([y, y]) if name == "z[1]" else y
        querier, at = BestSafeQuerier(safety_threshold=-1e4), len(y) - 1
        querier.fit(X[:-1], y[:-1], z[:-1])
        y_, z_ = y[-1], z[-1].copy()
        if name == "y":
            y_ = value
        elif name == "z":
            z_ = value
        else:
            z_[1] = value
        found = complaints(lambda q=querier, x=X[-1], y_=y_, z_=z_: q.tell(x, y_, z_))
        n_missed += not found
        # In fit it is one among many.
        querier = BestSafeQuerier(safety_threshold=-1e4)
        X, y, z = (
            np.roll(np.concatenate([part[:-1], [last]]), 3, axis=0)
            for part, last in [(X, X[-1]), (y, y_), (z, z_)]
        )
        among = complaints(lambda q=querier, X=X, y=y, z=z: q.fit(X, y, z))
        n_missed += not among
        if found and among:
            assert found[0].startswith(f"{name} of observation {at} is {value:.6g}, far beyond")
            assert f"forget({at}), or mend it by correct({at}, {name[0]}=...)" in found[0]
            assert among[0].startswith(f"{name} of observation 2 is")
    assert n_missed == 0


def test_several_at_once():
    X, y, z = campaign(0, n=12)
    querier = UniformQuerier(bounds=BOUNDS)
    y[[3, 8]] = 9999.0
    z[[1]] = -9999.0
    found = complaints(lambda: querier.fit(X, y, z))
    assert found[0].startswith("y of observation 3, 8 is 9999, 9999, far beyond all others")
    assert "forget([3, 8])" in found[0]
    assert found[1].startswith("z of observation 1 is -9999")
    # What is known is not said again, and what is taken back leaves nothing behind.
    assert complaints(lambda: querier.tell(X[0], 9999.0, 1.0)) == []
    assert complaints(lambda: querier.forget([1, 3, 8, 12])) == []
    found = complaints(lambda: querier.tell(X[:3], [0.1, 9999.0, NAN], [0.1, 0.2, 0.3]))
    assert [text.split(" is ")[0] for text in found] == ["y of observation 10"]
    assert complaints(lambda: querier.correct(10, 0.3)) == []
    (text,) = complaints(lambda: querier.correct([0, 4], [0.1, -9999.0]))
    assert text.startswith("y of observation 4 is -9999")


def test_too_few_or_too_equal_to_tell():
    X, y, z = campaign(0, n=12)
    few = UniformQuerier(bounds=BOUNDS).fit(X[:4], y[:4])
    assert complaints(lambda: few.tell(X[4], 9999.0)) == []
    assert complaints(lambda: UniformQuerier(bounds=BOUNDS).fit(X[:4], [1, 2, 3, 9999.0])) == []
    equal = UniformQuerier(bounds=BOUNDS).fit(X[:8], [1.0, 2.0] * 4)
    assert complaints(lambda: equal.tell(X[8], 9999.0)) == []
    flags = UniformQuerier(bounds=BOUNDS).fit(X, y, z > 0)
    assert complaints(lambda: flags.tell(X[0], 0.1, True)) == []


def test_mixed_kinds_of_limits():
    X, y, z = campaign(0, n=12)
    both = [[bool(a > 0), float(a)] for a in z]
    querier = BestSafeQuerier(bounds=BOUNDS, safety_threshold=[0, -1e5]).fit(X, y, both)
    querier.tell(X[0], status="aborted")
    (text,) = complaints(lambda: querier.tell(X[1], 0.1, [True, 9999.0]))
    assert text.startswith("z[1] of observation 13 is 9999")


def test_an_alarm_that_is_an_error_changes_nothing(make):
    querier = make(bounds=BOUNDS).fit(*campaign(0))
    before, expected = pickle.dumps(querier), querier.query()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*far beyond all others")
        with pytest.raises(DataScaleWarning, match="y of observation 6 is 9999"):
            querier.tell([1.0, 1.0], 9999.0, 0.5)
    assert pickle.dumps(querier) == before
    np.testing.assert_array_equal(querier.query(), expected)


def test_any_numbers_are_taken():
    """Of huge ones neither a warning nor an error of NumPy's."""
    rng = np.random.default_rng(0)
    for scale in (1e-300, 1e300, 1.7e308):
        y = scale * rng.uniform(-1, 1, 9)
        querier = UniformQuerier().fit(rng.random((9, 2)), y)
        querier.tell([0.5, 0.5], -scale).tell([0.5, 0.4], scale)
