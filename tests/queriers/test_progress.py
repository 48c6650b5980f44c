"""Expected errors, when campaigns are finished, and repeated measurements."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklearn_asal import (
    AmortizedQuerier,
    AmortizedSafeQuerier,
    CandidatePool,
    GPQuerier,
    GPSafeQuerier,
    RandomQuerier,
)
from sklearn_asal.policies.registry import locate
from sklearn_asal.pool import sobol
from sklearn_asal.queriers.progress import Progress
from sklearn_asal.surrogates import AmortizedGP
from sklearn_asal.surrogates.evidence import rank_features
from sklearn_asal.surrogates.rmse import RootMeanSquareError, noise_std

from ..common import policy_file
from .test_contract import BOUNDS, campaign

pytestmark = pytest.mark.filterwarnings(
    "error::UserWarning",
    "ignore:no observation in the middle",
    "ignore:nothing that was looked at is safe",
    "ignore:the guard found no point that is safe enough",
)
LOW, HIGH = np.transpose(BOUNDS)
seeds = st.integers(0, 10**6)
some = settings(
    max_examples=3,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)


def to_raw(unit):
    return LOW + (HIGH - LOW) * np.asarray(unit)


def measured(unit, seed=0, noise=0.1):
    """Outputs, and margins of a disc about the middle."""
    rng = np.random.default_rng(seed)
    y = np.sin(5 * unit[:, 0]) + unit[:, 1] + noise * rng.standard_normal(len(unit))
    return y, 1 - 6 * np.square(unit - 0.5).sum(axis=1)


def known(n=15, seed=0, width=1.0):
    unit = 0.5 + width * (np.random.default_rng(seed).random((n, 2)) - 0.5)
    return to_raw(unit), *measured(unit, seed)


def same(first, second, **tolerance):
    """Whether two answers are the same."""
    for name, value in vars(first).items():
        other = getattr(second, name)
        if name == "drift":
            assert (value is None) == (other is None)
            value, other = (tuple(vars(one).values()) if one else () for one in (value, other))
        if value is None:
            assert other is None
        else:
            np.testing.assert_allclose(other, value, **{"rtol": 0, "atol": 0} | tolerance)


# ---- what every querier promises


@some
@given(seed=seeds, pooled=st.booleans())
def test_progress_changes_nothing(make, seed, pooled):
    X, y, z = campaign(seed)
    pool = campaign(seed + 1, n=20)[0] if pooled else None
    querier = make(bounds=BOUNDS).fit(X, y, z)
    before, proposed = pickle.dumps(querier), querier.query(pool=pool)
    first = querier.progress(pool=pool, n_more=2)
    np.testing.assert_array_equal(querier.query(pool=pool), proposed)
    same(querier.progress(pool=pool, n_more=2), first)
    assert pickle.dumps(querier) == before
    same(pickle.loads(before).progress(pool=pool, n_more=2), first)
    same(clone(querier).progress(X, y, z, pool=pool, n_more=2), first)


@some
@given(seed=seeds, order=st.permutations(range(6)), factor=st.floats(0.01, 100))
def test_neither_order_nor_units_matter(make, seed, order, factor):
    X, y, z = campaign(seed)
    first = make(bounds=BOUNDS).progress(X, y, z)
    bounds = factor * np.array(BOUNDS)
    second = make(bounds=bounds).progress(factor * X[order], y[order], z[order])
    same(second, first, rtol=1e-3)
    scaled = make(bounds=BOUNDS, y_loc=3.0, y_scale=factor).progress(X, 3 + factor * y, z)
    assert scaled.rmse == pytest.approx(factor * first.rmse, rel=1e-3)
    assert scaled.noise_std == pytest.approx(factor * first.noise_std, rel=1e-3)


def test_every_querier_finishes(make):
    X, y, z = campaign(0)
    querier = make(bounds=BOUNDS, stop_when=0.5)
    with pytest.raises(NotFittedError, match="fit"):
        querier.is_finished()
    with pytest.raises(NotFittedError, match="progress"):
        querier.progress()
    querier.fit(X, y, z)
    progress = querier.progress()
    assert isinstance(progress, Progress)
    assert progress.is_enough is (progress.rmse_upper <= 0.5)
    assert querier.is_finished() is progress.is_enough
    for stop_when in (progress.rmse_upper, 1.001 * progress.rmse_upper):
        assert querier.set_params(stop_when=stop_when).is_finished()
    assert not querier.set_params(stop_when=0.999 * progress.rmse_upper).is_finished()
    querier.set_params(stop_when=None, budget=1)
    assert querier.progress().is_enough is None
    assert not querier.is_finished()
    assert querier.tell(X[0], y[0], z[0]).is_finished()


def test_every_querier_repeats(make):
    X, y, z = campaign(0, n=7)
    querier = make(bounds=BOUNDS, repeat_every=4).fit(X, y, z)
    safest = X[z.argmax()] if hasattr(querier, "safe_when") else X[0]
    np.testing.assert_allclose(querier.query(), [safest])
    np.testing.assert_array_equal(
        make(bounds=BOUNDS, repeat_every=4).query(X, y, z), querier.query()
    )
    points = querier.query(n_queries=6)
    np.testing.assert_allclose(points[[0, 4]], [safest, safest])
    assert not (np.abs(points[[1, 2, 3, 5]] - safest) < 1e-6).all(axis=1).any()
    without = make(bounds=BOUNDS).fit(X[:6], y[:6], z[:6]).query()
    np.testing.assert_array_equal(querier.query(X[:6], y[:6], z[:6]), without)


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"stop_when": 0.0}, "stop_when"),
        ({"stop_when": "small"}, "stop_when"),
        ({"stop_when": np.nan}, "stop_when"),
        ({"repeat_every": 1}, "repeat_every"),
        ({"repeat_every": 2.5}, "repeat_every"),
    ],
)
def test_bad_parameters(make, params, name):
    X, y, z = campaign(0)
    with pytest.raises((ValueError, TypeError), match=name):
        make(bounds=BOUNDS, **params).fit(X, y, z)
    querier = make(bounds=BOUNDS).fit(X, y, z).set_params(**params)
    with pytest.raises((ValueError, TypeError), match=name):
        querier.progress()
    if name == "repeat_every":
        with pytest.raises((ValueError, TypeError), match=name):
            querier.query()


@pytest.mark.parametrize("n_more", [-1, 1.5])
def test_bad_number_of_queries(n_more):
    with pytest.raises((ValueError, TypeError), match="n_more"):
        RandomQuerier().progress([[0.1], [0.2]], [1.0, 2.0], n_more=n_more)


# ---- expected errors


def test_the_error_is_that_of_the_models_of_policy_any():
    X, y, z = known()
    unit = (X - LOW) / (HIGH - LOW)
    points = sobol(512, 2)[:, rank_features(unit, y)]
    output = AmortizedGP().fit(unit, y)
    expected = RootMeanSquareError(output, points[:128]).quantiles([0.5, 0.85])
    for querier in (AmortizedQuerier(), GPQuerier(), RandomQuerier(), AmortizedQuerier("2d")):
        found = querier.set_params(bounds=BOUNDS).progress(X, y)
        assert [found.rmse, found.rmse_upper] == pytest.approx(expected.tolist(), rel=1e-6)
        assert found.noise_std == pytest.approx(noise_std(output))
        assert found.likely_safe == 1.0
    points = sobol(512, 2)[:, rank_features(unit, y, z)]
    limit = AmortizedGP(zero_mean=True).fit(unit, z)
    likely = limit.probability_of_positive(points) >= 0.5
    expected = RootMeanSquareError(output, points[likely][:128]).quantiles([0.5, 0.85])
    for querier in (AmortizedSafeQuerier(), GPSafeQuerier(), AmortizedSafeQuerier("2d")):
        found = querier.set_params(bounds=BOUNDS).progress(X, y, z)
        assert [found.rmse, found.rmse_upper] == pytest.approx(expected.tolist(), rel=1e-6)
        assert found.likely_safe == likely.mean()


def test_it_comes_true():
    """Beside the true errors of 12 campaigns."""
    ratios = []
    test = sobol(256, 2)
    for seed in range(12):
        X, y, _ = known(20, seed)
        querier = AmortizedQuerier(bounds=BOUNDS).fit(X, y)
        error = querier.assess(to_raw(test)).y_mean - measured(test, noise=0.0)[0]
        ratios.append(querier.progress().rmse / np.sqrt(np.mean(np.square(error))))
    assert 0.7 < np.median(ratios) < 1.4
    assert np.mean(np.abs(np.log(ratios)) < np.log(2)) > 0.7


def test_more_queries_bring_more():
    X, y, _ = known(8)
    querier = AmortizedQuerier(bounds=BOUNDS).fit(X, y)
    progress = querier.progress(n_more=12)
    assert progress.rmse_after.shape == (12,)
    assert (np.diff([progress.rmse, *progress.rmse_after]) < 0).all()
    np.testing.assert_array_equal(querier.progress(n_more=3).rmse_after, progress.rmse_after[:3])
    assert progress.rmse_after[-1] < 0.75 * progress.rmse
    assert querier.progress().rmse_after.shape == (0,)


def test_of_a_pool_its_rows_matter():
    X, y, z = known(10, width=0.3)
    unit = 0.5 + 0.3 * (np.random.default_rng(1).random((60, 2)) - 0.5)
    near, far = CandidatePool(to_raw(unit)), CandidatePool(to_raw(unit / 10))
    querier = AmortizedQuerier(bounds=BOUNDS).fit(X, y)
    assert querier.progress(pool=near).rmse < 0.3 * querier.progress(pool=far).rmse
    alone = CandidatePool(np.vstack([X, to_raw(unit[:2])]))
    after = querier.progress(pool=alone, n_more=4).rmse_after
    assert after[0] > after[1] == after[2] == after[3]  # two rows are left
    with_limit = AmortizedSafeQuerier(bounds=BOUNDS).fit(X, y, z)
    assert with_limit.progress(pool=near).likely_safe == 1.0
    assert with_limit.progress(pool=far).likely_safe < 1.0


def test_a_used_up_pool_ends_the_campaign():
    X, y, _ = known(6)
    querier = RandomQuerier(bounds=BOUNDS).fit(X, y)
    assert querier.is_finished(pool=X)
    assert not querier.is_finished(pool=np.vstack([X, to_raw([[0.5, 0.5]])]))


def test_nothing_is_safe():
    X, y, _ = known(8)
    querier = AmortizedSafeQuerier(bounds=BOUNDS, repeat_every=9, on_no_safe="least_unsafe")
    with pytest.warns(UserWarning, match="none of the 8 observations is safe"):
        querier.fit(X, y, np.full(8, -1.0))
    progress = querier.progress(n_more=2)
    assert np.isfinite(progress.rmse)
    assert progress.likely_safe < 0.5
    assert np.isfinite(querier.query()).all()  # no repeat of what is unsafe


@pytest.mark.parametrize("y", [[0.3], [0.3, 0.3, 0.3]])
def test_without_a_scale_nothing_is_known(y):
    X = np.random.default_rng(0).random((len(y), 2))
    querier = AmortizedQuerier(stop_when=1e6).fit(X, y)
    progress = querier.progress(n_more=2)
    assert progress.rmse == progress.rmse_upper == np.inf
    assert np.isinf(progress.rmse_after).all()
    assert np.isnan(progress.noise_std)
    assert not querier.is_finished()


def test_scales_are_estimated_from_what_was_measured():
    X, y, z = known()
    y[3] = np.nan
    expected = AmortizedSafeQuerier(bounds=BOUNDS).progress(X, y, z)
    found = AmortizedSafeQuerier(bounds=BOUNDS, y_loc="auto", y_scale="auto").progress(X, y, z)
    assert found.rmse == pytest.approx(expected.rmse, rel=1e-3)


def test_a_policy_file_of_ones_own_is_believed(tmp_path):
    path = tmp_path / "mine.safetensors"
    path.write_bytes(locate("any", safe=False).read_bytes())
    X, y, _ = known()
    found = AmortizedQuerier(path, bounds=BOUNDS).progress(X, y)
    same(found, AmortizedQuerier(bounds=BOUNDS).progress(X, y))


def test_a_loop_ends():
    X, y, z = known(6, width=0.3)
    querier = AmortizedSafeQuerier(bounds=BOUNDS, budget=40, stop_when=0.15, repeat_every=5)
    querier.fit(X, y, z)
    while not querier.is_finished():
        x = querier.query()
        y_new, z_new = measured((x - LOW) / (HIGH - LOW), len(querier.X_))
        querier.tell(x, y_new, z_new)
    assert querier.n_told_ < 40
    test = sobol(512, 2)
    y_test, z_test = measured(test, noise=0.0)
    error = (querier.assess(to_raw(test)).y_mean - y_test)[z_test >= 0]
    assert np.sqrt(np.mean(np.square(error))) < 0.18


# ---- repeated measurements


def test_the_same_input_is_repeated_again():
    X, y, z = known(5, width=0.4)
    querier = AmortizedSafeQuerier(bounds=BOUNDS, repeat_every=3).fit(X, y, z)
    first = querier.query()
    querier.tell(first, 0.0, 0.4)
    querier.tell(to_raw([[0.5, 0.5]]), 0.0, 1.2)  # safer than the first
    querier.tell(to_raw([[0.4, 0.5]]), 0.0, 1.0)
    np.testing.assert_allclose(querier.query(), first)
    querier.tell(first, 0.1, -0.1)  # it was not so safe after all
    querier.tell(to_raw([[0.5, 0.4], [0.4, 0.4]]), [0.0, 0.1], [1.0, 1.0])
    np.testing.assert_allclose(querier.query(), to_raw([[0.5, 0.5]]))


def test_of_several_limits_each_counts_in_its_own_units():
    X = np.array([[0.1], [0.5], [0.9]])
    z = np.array([[100.0, 0.1], [300.0, 0.3], [500.0, 0.05]])
    querier = AmortizedSafeQuerier(repeat_every=2).fit(X, [0.0, 1.0, 2.0], z)
    assert querier.query().tolist() == [[0.5]]


def test_a_repeat_is_neither_moved_nor_pulled_back():
    X, y, z = known(8, width=0.2)
    params = {"bounds": BOUNDS, "repeat_every": 9, "guard": True, "max_violations": 0}
    querier = AmortizedSafeQuerier(policy_file(True), **params).fit(X, y, z)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        points, report = querier.query(n_queries=2, return_report=True)
    np.testing.assert_allclose(points[0], X[z.argmax()])
    assert report.guard[0] is None
    assert report.guard[1] is not None


def test_a_row_of_a_pool_is_repeated():
    X, y, z = known(5, width=0.4)
    others = to_raw(np.random.default_rng(1).random((10, 2)))
    pool = np.vstack([others, X])
    querier = AmortizedSafeQuerier(bounds=BOUNDS, repeat_every=3).fit(X, y, z)
    for _ in range(2):
        point, index = querier.query(pool=pool, return_indices=True)
        assert index == 10 + z.argmax()
        np.testing.assert_array_equal(point, pool[index])
        rows = [0, 1]
        querier.tell(point, 0.0, 0.5, index=index)
        querier.tell(pool[rows], [0.0, 1.0], [0.1, 0.2], index=rows)


def test_of_a_pool_the_best_of_its_own_rows_is_repeated():
    X, y, z = known(5, width=0.4)
    second = np.argsort(-z)[1]
    pool = np.vstack([to_raw(np.random.default_rng(1).random((10, 2))), X[second]])
    querier = AmortizedSafeQuerier(bounds=BOUNDS, repeat_every=3).fit(X, y, z)
    assert querier.query(pool=pool, return_indices=True)[1] == [10]


def test_a_row_that_was_set_otherwise_is_known_by_its_index():
    X, y, _ = known(5)
    pool = to_raw(np.random.default_rng(1).random((10, 2)))
    querier = RandomQuerier(bounds=BOUNDS, repeat_every=7).fit(X, y)
    querier.tell(pool[3] + 0.01, 0.0, index=3)
    assert querier.query(pool=pool, return_indices=True)[1] == [3]


def test_no_repeat_near_a_run_that_failed():
    X, y, _ = known(5)
    querier = RandomQuerier(bounds=BOUNDS, repeat_every=7).fit(X, y)
    np.testing.assert_allclose(querier.tell(X[1], 0.0).query(), X[[1]])  # it was measured twice
    querier = RandomQuerier(bounds=BOUNDS, repeat_every=7).fit(X, y)
    np.testing.assert_allclose(querier.tell(X[0], status="failed").query(), X[[1]])


def test_inputs_outside_the_bounds_are_not_repeated():
    X, y, _ = known(5)
    X[0] = HIGH + 1
    with pytest.warns(UserWarning, match="outside bounds"):
        querier = RandomQuerier(bounds=BOUNDS, repeat_every=6).fit(X, y)
    np.testing.assert_allclose(querier.query(), X[[1]])


@pytest.mark.parametrize("policy", ["auto", "2d"])
def test_many_campaigns_at_once_repeat(policy):
    histories = [known(n, n, width=0.4) for n in (4, 5, 8)]
    querier = AmortizedSafeQuerier(policy, bounds=BOUNDS, repeat_every=3)
    found = querier.propose_many(histories, budgets=5)
    expected = [querier.query(*history, budget=5)[0] for history in histories]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    for i in (1, 2):
        X, _, z = histories[i]
        np.testing.assert_allclose(found[i], X[z.argmax()])


def test_noise_and_drift_of_repeats():
    rng = np.random.default_rng(0)
    X, y, _ = known(12)
    X[5::2] = X[0]
    X[2] = X[1]
    querier = RandomQuerier(bounds=BOUNDS).fit(X[:2], y[:2])
    assert querier.progress().repeat_std is None
    assert querier.progress().repeat_dof == 0
    progress = querier.fit(X, y).progress()
    groups = y[[0, 5, 7, 9, 11]], y[[1, 2]]
    expected = sum(np.square(group - group.mean()).sum() for group in groups) / 5
    assert progress.repeat_std == pytest.approx(np.sqrt(expected))
    assert progress.repeat_dof == 5
    assert not progress.drift.is_significant
    y = y + 0.6 * np.arange(12)
    progress = RandomQuerier(bounds=BOUNDS).progress(X, 50 * y)
    assert progress.drift.is_significant
    assert progress.drift.change == pytest.approx(50 * 0.6 * 11, rel=0.2)
    order = rng.permutation(12)
    assert not RandomQuerier(bounds=BOUNDS).progress(X[order], y[order]).drift.is_significant


def test_runs_without_an_output_count_in_the_order():
    X, y, z = known(12)
    X[::3] = X[0]
    y = y + 0.5 * np.arange(12)
    querier = AmortizedSafeQuerier(bounds=BOUNDS).fit(X[:1], y[:1], z[:1])
    for i in range(1, 12):
        querier.tell(X[i], y[i], z[i])
        if i < 8:
            querier.tell(X[i], status="failed")
    found = querier.progress().drift.change
    assert found == pytest.approx(0.5 * 11, rel=0.3)
