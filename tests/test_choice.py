import numpy as np
import pytest

from sklearn_asal import AmortizedQuerier, AmortizedSafeQuerier, CandidatePool, choice, pool_choice
from sklearn_asal.overview import Overview
from sklearn_asal.pool import PoolView
from sklearn_asal.space import Box
from sklearn_asal.typical import Factors, TypicalProcesses, typical_lengthscale, typical_noises

from .common import found_by_threes, policy_file

rng = np.random.default_rng(0)


def test_choice_of_rows_by_number_of_features():
    looks = {}
    for n_features in (1, 2, 3, 7):
        for n in (511, 3000, 20_000):
            pool = CandidatePool(rng.random((n, n_features)))
            view = PoolView(pool, Box(None, n_features), np.empty((0, n_features)))
            first, *looks[n] = choice.looks(view, n_features, True)
            assert first == {1: (1, 0, 1), 2: (4, 0, 1)}.get(
                n_features, (16, 1, 1) if n > 511 else (128, 0, 8)
            )
            spent = view.near(np.zeros(n_features), n, 1)[1]
            for left, chosen in ((16, (16, 1, 1)), (15, (128, 0, 8))):
                observed = PoolView(pool, Box(None, n_features), spent[left:])
                if n_features > 2 and n > 511:
                    assert choice.looks(observed, n_features, True)[0] == chosen
            if n_features < 3:
                assert choice.looks(view, n_features, False)[1:] == looks[n]
    near, middle, far, all_rows = *((64, i, 1) for i in range(3)), (2048, 0, 1)
    assert looks[511] == [near, all_rows]
    assert looks[3000] == [middle, far, near, all_rows]
    assert looks[20_000] == [middle, far, (64, 3, 1), near, (2048, 1, 1)]
    assert choice.farther_first(looks[511]) == looks[511]
    assert choice.farther_first(looks[3000]) == [far, near, middle, all_rows]


def test_the_row_that_is_worth_most():
    rows = rng.random((5, 2))
    pool = CandidatePool(rows)
    gain, price = np.array([1.0, 4.0, 3.0, 3.5, 0.0]), np.array([0.0, 2.0, 0.0, 0.0, 0.0])

    def chosen(spent, *values):
        view = PoolView(pool, Box(None, 2), rows[spent])
        row = choice.informative(view, rows, *values)
        return None if row is None else int((rows == row).all(axis=1).argmax())

    assert chosen([], gain) == 1
    assert chosen([], gain, price) == 3
    assert chosen([3], gain, price) == 2
    assert chosen([3, 2, 0, 1], gain, price) == 4
    assert chosen([3, 2, 0, 1, 4], gain, price) is None


def test_what_is_too_risky():
    too_risky, price = choice.risky(np.array([1.0, 0.95, 0.71, 0.69]), 0.95)
    np.testing.assert_array_equal(too_risky, [False, False, False, True])
    np.testing.assert_allclose(price[:3], [0.0, 0.35, 0.35 * 5.8])
    np.testing.assert_array_equal(choice.risky(np.array([1.0, 0.999]), 1.0)[0], [False, True])


def test_spread_is_all_over_a_pool():
    for n, expected in ((100, 100), (40, 40), (101, 100)):
        pool = CandidatePool(np.linspace(0, 1, 100)[:, None])
        view = PoolView(pool, Box(None, 1), pool.X[:50])
        spread = np.sort(view.spread(n)[:, 0])
        assert len(spread) == len(np.unique(spread)) == expected
        assert np.diff([0, *spread, 1]).max() < 0.1
        assert view.spread(n) is view.spread(n)
        assert np.isin(view.spread(n, 0.1), spread).all() == (expected == 100)
        assert view.is_left(pool.X[60])
        assert not view.is_left(pool.X[40])


def margin_of(x):
    return 0.6 - np.square(x - 0.5).sum(axis=1)


def expected_row(querier, pool, X, y, margin):
    """By processes, covariances and reductions made anew, in double precision."""
    _, header = querier._load(X.shape[1])
    noises = typical_noises(header)
    made = {}
    for function, values in (("safety_lengthscale", margin), ("lengthscale", y)):
        scale = typical_lengthscale(header, function)
        made[function] = TypicalProcesses(X, values, scale, noises=noises), scale
    margins, outputs = made["safety_lengthscale"][0], made["lengthscale"][0]
    _, safe = margins.predict(pool)
    best = outputs._weights.argmax()
    _, scale = made["lengthscale"]
    factor = (0.5, 1.0, 2.0)[outputs._factor[best]]

    def kernel(A, B):
        away = np.square((A[:, None] - B) / scale / factor).sum(axis=-1)
        return np.exp(-0.5 * away)

    noise = outputs._noise[best]
    K = kernel(X, X) + noise * np.eye(len(X))
    left = kernel(pool, pool) - kernel(pool, X) @ np.linalg.solve(K, kernel(X, pool))
    alone = margins._weights.argmax()
    only = TypicalProcesses(X, margin, made["safety_lengthscale"][1], noises=noises)
    only._weights = np.eye(len(margins._weights))[alone]
    weights = only.predict(pool)[1] >= 0.16
    value = np.log((np.square(left) @ weights) / (np.diagonal(left) + noise))
    value -= 0.35 * (1 - safe) / 0.05
    value[1 - safe > 0.3] = -np.inf
    return value.argmax(), np.isneginf(value).all()


def test_most_informative_row_of_a_campaign():
    """That of brute force, and the same without a campaign."""
    pool = rng.uniform(0.2, 0.8, (250, 7))
    querier = AmortizedSafeQuerier("7d-fluid", budget=40)
    X = rng.uniform(0.45, 0.55, (10, 7))
    querier.fit(X, X.sum(axis=1) - 3.5, margin_of(X))
    candidates, taken = CandidatePool(pool), []
    for _ in range(15):
        x, row = querier.query(pool=candidates, return_indices=True)
        expected, nothing = expected_row(querier, pool, querier.X_, querier.y_, querier.z_)
        assert not nothing
        assert row == [expected]
        told = querier.X_, querier.y_, querier.z_
        again = querier.query(*told, budget=40 - querier.n_told_, pool=pool, return_indices=True)
        assert again[1] == row
        taken.append(row[0])
        querier.tell(x, x.sum(axis=1) - 3.5, margin_of(x))
    assert len(set(taken)) == 15
    assert (querier.z_ > 0).mean() > 0.9


def test_rows_of_a_batch_tell_different_things():
    """What is pending counts as measured."""
    pool = np.repeat(rng.uniform(0.3, 0.7, (40, 7)), 2, axis=0)
    pool[1::2] += 1e-3
    querier = AmortizedSafeQuerier("7d-fluid", budget=40)
    X = rng.uniform(0.45, 0.55, (10, 7))
    querier.fit(X, X.sum(axis=1) - 3.5, margin_of(X))
    first = querier.query(pool=pool, n_queries=10, return_indices=True)[1]
    assert len(set(first // 2)) == 10
    np.testing.assert_array_equal(first[:1], querier.query(pool=pool, return_indices=True)[1])


def test_default_choice():
    querier = AmortizedSafeQuerier("7d-fluid")
    assert querier._asks_all_over(6, 512)
    assert not querier._asks_all_over(7, 513)
    assert not querier._asks_all_over(5, 10)
    assert not querier.set_params(pool_choice="nearest")._asks_all_over(7, 10)
    assert querier.set_params(pool_choice="informative")._asks_all_over(2, 10)


@pytest.mark.parametrize("safe", [True, False])
def test_informative_choice_finds_every_row(safe):
    """Of equal ones, too; after that the pool is exhausted."""
    kind = AmortizedSafeQuerier if safe else AmortizedQuerier
    pool = CandidatePool(np.repeat(0.4 + 0.2 * rng.random((6, 2)), 2, axis=0))
    querier = kind(policy_file(safe), pool_choice="informative", budget=60)
    querier.fit([[0.5, 0.5]], [0.0], [1.0])
    assert sorted(found_by_threes(querier, pool, 4)) == list(range(12))


@pytest.mark.filterwarnings("ignore::sklearn_asal.exceptions.SafetyWarning")
@pytest.mark.parametrize("level", [0.0, 0.5, 1.0, None])
def test_any_pool_safety_gets_an_answer(level):
    X = rng.uniform(0.4, 0.6, (10, 7))
    querier = AmortizedSafeQuerier("7d-fluid", pool_safety=level)
    pool = rng.random((50, 7))
    point = querier.query(X, X.sum(axis=1) - 3.5, margin_of(X), pool=pool)
    assert (pool == point).all(axis=1).any()


def test_outputs_and_margins_of_other_lengthscales():
    """Each has an overview of its own, and further ones do not pile up."""
    querier = AmortizedSafeQuerier("3d", pool_choice="informative", budget=30)
    X = rng.uniform(0.4, 0.6, (5, 3))
    querier.fit(X, X.sum(axis=1) - 1.5, margin_of(X))
    pools = [CandidatePool(rng.random((600, 3))) for _ in range(3)]
    for pool in pools:
        x = querier.query(pool=pool)
        querier.tell(x, x.sum(axis=1) - 1.5, margin_of(x))
    assert 1 <= len(pool_choice._overviews[querier]) <= 2
    for key, overview in pool_choice._overviews[querier].items():
        assert isinstance(overview, Overview)
        factors = pool_choice._factors[querier][key]
        assert isinstance(factors, Factors)
        assert len(factors.X) == 8
