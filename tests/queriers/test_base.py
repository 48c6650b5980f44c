"""What the base class hands to a subclass and makes of its answer."""

import pickle
import warnings

import numpy as np
import pytest

from sklearn_asal import DataScaleWarning, NoSafeCandidateError
from sklearn_asal.queriers.base import BaseQuerier
from sklearn_asal.queriers.safe import SafeQuerierMixin

from ..common import BestSafeQuerier, UniformQuerier

BOUNDS = [(0.0, 10.0), (100.0, 200.0)]
X = np.array([[1.0, 110.0], [9.0, 190.0]])


class Spy(BestSafeQuerier):
    """Answers with what it was told to, and writes down what it was asked."""

    _needs_unit_scale = True
    answer = (0.25, 0.5)

    def _select(self, history, candidates, budget, rng):
        calls.append((history, candidates, budget, rng))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if candidates is None else candidates.nearest(self.answer)[0]


class PlainSpy(UniformQuerier):
    """The same without safety."""

    def _select(self, history, candidates, budget, rng):
        calls.append((history, candidates, budget, rng))
        return 0.9, 0.1


calls = []


@pytest.fixture(autouse=True)
def _no_calls_yet():
    calls.clear()


def test_a_subclass_sees_unit_scale():
    spy = Spy(
        bounds=BOUNDS,
        budget=7,
        y_loc=20,
        y_scale=2,
        safety_threshold=50,
        safe_when="below",
        z_scale=5,
    )
    point = spy.query(X, [20, 24], [40, 55])
    np.testing.assert_allclose(point, [[2.5, 150.0]])
    history, candidates, budget, rng = calls[0]
    np.testing.assert_allclose(history.X, [[0.1, 0.1], [0.9, 0.9]])
    np.testing.assert_allclose(history.y, [0, 2])
    np.testing.assert_allclose(history.margin, [[2], [-1]])
    assert history.n_observed == 2
    assert budget == 7
    assert isinstance(rng, np.random.Generator)
    assert candidates is None


def test_each_limit_has_a_margin():
    spy = Spy(safety_threshold=[0, 5], safe_when=["above", "below"], z_scale=[1, 2])
    spy.query([[0.1, 0.1], [0.9, 0.9]], [0, 1], [[1, 1], [2, 9]])
    np.testing.assert_allclose(calls[0][0].margin, [[1, 2], [2, -2]])
    np.testing.assert_allclose(calls[0][0].worst_margin, [1, -2])


def test_pending_points_take_the_nearest_outcome():
    spy = Spy(bounds=BOUNDS, budget=7)
    spy.query(X, [1.0, 2.0], [3.0, 4.0], n_queries=3)
    assert [budget for _, _, budget, _ in calls] == [7, 6, 5]
    history = calls[2][0]
    # A proposal at a pending point is moved.
    np.testing.assert_allclose(history.X, [[0.1, 0.1], [0.9, 0.9], [0.25, 0.5], [0.23, 0.5]])
    np.testing.assert_allclose(history.y, [1, 2, 1, 1])
    np.testing.assert_allclose(history.margin, [[3], [4], [3], [3]])
    assert history.n_observed == 2
    PlainSpy(bounds=BOUNDS).query([[1.0, 190.0], [9.0, 120.0]], [1.0, 2.0], n_queries=2)
    history, _, budget, _ = calls[-1]
    assert history.margin is None
    np.testing.assert_allclose(history.y, [1, 2, 2])
    assert budget is None  # none stated


def test_guesses_are_not_handed_on():
    class Walk(UniformQuerier):
        def _select(self, history, candidates, budget, rng):
            calls.append(history.y)
            return [(0.45, 0.5), (0.55, 0.5), (0.5, 0.5)][len(calls) - 1]

    Walk().query([[0.1, 0.5], [0.85, 0.5]], [1.0, 2.0], n_queries=3)
    # The second point is nearer to the first, pending one than to any real observation.
    np.testing.assert_array_equal(calls[-1], [1, 2, 1, 2])


def test_pending_points_leave_automatic_scales_alone():
    spy = Spy(bounds=BOUNDS, y_loc="auto", y_scale="auto", z_scale="auto")
    spy.query(X, [1.0, 3.0], [3.0, 4.0], n_queries=2)
    np.testing.assert_allclose(calls[0][0].y, [-1, 1])
    np.testing.assert_allclose(calls[1][0].y, [-1, 1, -1])
    np.testing.assert_allclose(calls[0][0].worst_margin, np.array([3, 4]) / np.sqrt(12.5))


def test_a_subclass_sees_what_is_left_of_the_pool():
    spy = Spy(bounds=BOUNDS)
    pool = np.array([[1.0, 110.0], [5.0, 150.0], [2.0, 140.0], [9.0, 110.0]])
    points, indices = spy.query(X, [1.0, 2.0], pool=pool, n_queries=2, return_indices=True)
    assert indices.tolist() == [2, 1]
    np.testing.assert_array_equal(points, pool[[2, 1]])
    left = [candidates.points[candidates.available] for _, candidates, _, _ in calls]
    # The first row is measured already; what is pending is taken as well.
    np.testing.assert_allclose(left[0], [[0.2, 0.4], [0.5, 0.5], [0.9, 0.1]])
    np.testing.assert_allclose(left[1], [[0.5, 0.5], [0.9, 0.1]])
    np.testing.assert_allclose(calls[1][0].X[-1], [0.2, 0.4])  # the row enters, not the proposal


def test_a_row_of_the_pool_may_be_the_answer():
    class FirstLeft(UniformQuerier):
        def _select(self, history, candidates, budget, rng):
            return candidates.available[0]

    _, indices = FirstLeft(bounds=BOUNDS).query(
        X, [1.0, 2.0], pool=np.vstack([X + 1, X, X]), n_queries=4, return_indices=True
    )
    assert indices.tolist() == [4, 0, 5, 1]  # in lexicographic order


def test_answers_outside_the_cube_are_clipped(monkeypatch):
    monkeypatch.setattr(Spy, "answer", (-0.1, 1.5))
    points = Spy(bounds=BOUNDS).query(X, [1.0, 2.0], n_queries=2)
    # The second is moved off the first, which is pending.
    np.testing.assert_allclose(points, [[0.0, 200.0], [0.0, 198.0]])
    np.testing.assert_array_equal(calls[1][0].X[-1], [0.0, 1.0])


@pytest.mark.parametrize("answer", [(np.nan, 0.5), (0.5,), (0.5, np.inf), ((0.5, 0.5),)])
def test_a_faulty_answer_is_never_replaced(monkeypatch, answer):
    monkeypatch.setattr(Spy, "answer", answer)
    with pytest.raises(RuntimeError, match=r"Spy proposed .* which is no point"):
        Spy(bounds=BOUNDS).query(X, [1.0, 2.0])


def test_no_safe_candidate_is_told_in_raw_units(monkeypatch):
    monkeypatch.setattr(Spy, "answer", NoSafeCandidateError([0.5, 0.25], 0.6, 0.95))
    with pytest.raises(NoSafeCandidateError) as caught:
        Spy(bounds=BOUNDS, safety_threshold=3.0, safe_when="below").query(X, [1.0, 2.0])
    error = pickle.loads(pickle.dumps(caught.value))
    np.testing.assert_allclose(error.candidate, [5.0, 125.0])
    assert (error.probability, error.required) == (0.6, 0.95)
    message = str(error)
    for part in "0.95 (safe means z <= 3.0)", "x = (5, 125)", "probability 0.6", "safety_threshold":
        assert part in message
    assert message == str(caught.value)


# ---- rows of a pool that are told by their number


def test_rows_that_were_told_are_kept():
    querier = UniformQuerier(bounds=BOUNDS).fit(X, [1.0, 2.0])
    querier.tell([3.0, 120.0], 0.0, index=4).tell([4.0, 120.0], 0.0)
    querier.tell(X, [0.0, 1.0], index=np.array([7, 5]))
    assert querier.index_.tolist() == [-1, -1, 4, -1, 7, 5]
    assert querier.fit(X, [1.0, 2.0]).index_.tolist() == [-1, -1]


@pytest.mark.parametrize("index", [-2, 0.5, "a", [0, 1], [[0]], True, [None]])
def test_a_row_is_a_whole_number(index):
    querier = UniformQuerier(bounds=BOUNDS).fit(X, [1.0, 2.0])
    with pytest.raises(ValueError, match="index must hold one row of the pool, counted from 0"):
        querier.tell([3.0, 120.0], 0.0, index=index)
    assert querier.n_told_ == 0


def test_rows_are_of_the_pool_that_is_passed():
    querier = UniformQuerier(bounds=BOUNDS).fit(X, [1.0, 2.0]).tell([3.0, 120.0], 0.0, index=3)
    with pytest.raises(ValueError, match="row 3 was told to be measured, but the pool has 2 rows"):
        querier.query(pool=X + 0.5)
    # Data passed to query are no campaign, whose rows these are.
    assert querier.query(X, [1.0, 2.0], pool=X + 0.5).shape == (1, 2)


def test_generator_follows_random_state_and_number_of_observations():
    def draw(random_state, n=2, n_queries=1):
        querier = UniformQuerier(random_state=random_state)
        return querier.query(np.full((n, 2), 0.5), np.zeros(n), n_queries=n_queries)

    np.testing.assert_array_equal(draw(0), draw(0))
    assert not np.array_equal(draw(0), draw(1))
    assert not np.array_equal(draw(0), draw(0, n=3))
    both = draw(0, n_queries=2)
    np.testing.assert_array_equal(both, np.vstack([draw(0), draw(0, n=3)]))


def test_whoever_draws_nothing_gets_no_generator(monkeypatch):
    monkeypatch.setattr(Spy, "_draws", False)
    Spy(bounds=BOUNDS).query(X, [1.0, 2.0])
    assert calls[0][3] is None
    with pytest.raises(ValueError, match="seed"):  # of a bad seed they are told all the same
        Spy(bounds=BOUNDS, random_state="seed").query(X, [1.0, 2.0])


@pytest.mark.parametrize("kind", [np.random.RandomState, np.random.default_rng])
def test_generator_instances_are_not_advanced(kind):
    instance = kind(0)
    before = pickle.dumps(instance)
    querier = UniformQuerier(random_state=instance)
    first = querier.query([[0.5, 0.5]], [0.0])
    np.testing.assert_array_equal(querier.query([[0.5, 0.5]], [0.0]), first)
    assert pickle.dumps(instance) == before
    other = UniformQuerier(random_state=kind(1)).query([[0.5, 0.5]], [0.0])
    assert not np.array_equal(other, first)


def test_without_a_random_state_the_inputs_decide():
    querier = UniformQuerier(bounds=BOUNDS)
    first = querier.query(X, [1.0, 2.0])
    np.testing.assert_array_equal(querier.query(X[::-1], [1.0, 2.0]), first)
    assert not np.array_equal(querier.query(X + 0.1, [1.0, 2.0]), first)


def test_the_method_a_subclass_must_write():
    with pytest.raises(NotImplementedError):
        BaseQuerier().query([[0.5]], [0.0])


def test_one_feature():
    querier = UniformQuerier(bounds=(0, 10), budget=9).fit([[1.0], [2.0]], [0.0, 0.0])
    querier.tell(3.0, 0.1).tell([4.0], [0.1]).tell([5.0, 6.0], [0.1, 0.2]).tell([[7.0]], 0.1)
    np.testing.assert_array_equal(querier.X_.ravel(), [1, 2, 3, 4, 5, 6, 7])
    assert querier.n_told_ == 5


def test_unconstrained_queriers_keep_z():
    querier = UniformQuerier().fit([[0.1, 0.2]], [0.3], [[0.4, 0.5]])
    querier.tell([0.1, 0.2], 0.3, [0.6, 0.7])
    np.testing.assert_array_equal(querier.z_, [[0.4, 0.5], [0.6, 0.7]])
    assert UniformQuerier().fit([[0.1, 0.2]], [0.3]).tell([0.1, 0.2], 0.3).z_ is None


def test_a_failed_fit_keeps_the_campaign():
    querier = Spy(bounds=BOUNDS).fit(X, [1.0, 2.0])
    before = pickle.dumps(querier)
    for wrong in ([[1.0]], [1.0]), (X, [1.0]), (X, [1.0, np.nan]):
        with pytest.raises(ValueError, match=r"bounds|y"):
            querier.fit(*wrong)
        assert pickle.dumps(querier) == before


# ---- warnings of scale, each with the values to set


def scale_warnings(call):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        call()
    assert all(w.filename == __file__ for w in record)
    assert all(issubclass(w.category, DataScaleWarning) for w in record)
    return [str(w.message) for w in record]


def test_outputs_far_from_unit_scale():
    spy = Spy(bounds=BOUNDS)
    (message,) = scale_warnings(lambda: spy.fit(X, [300.0, 310.0], [0.1, 0.2]))
    assert "y reaches from 300 to 310" in message
    assert "y_loc=305, y_scale=5" in message
    # Neither queries nor further data repeat what is known.
    assert scale_warnings(lambda: spy.tell(X[0], 320.0, 0.1).query()) == []
    assert len(scale_warnings(lambda: spy.query(X, [300.0, 310.0], [0.1, 0.2]))) == 1
    for params in {"y_loc": 305, "y_scale": 5}, {"y_loc": "auto", "y_scale": "auto"}:
        scaled = Spy(bounds=BOUNDS, **params)
        assert scale_warnings(lambda scaled=scaled: scaled.fit(X, [300.0, 310.0], [0.1, 0.2])) == []


def test_scale_goes_wrong_during_a_campaign():
    spy = Spy(bounds=BOUNDS).fit(X, [1.0, 2.0], [1.0, 2.0])
    (message,) = scale_warnings(lambda: spy.tell(X[0], 50.0, 1.0))
    assert "y_scale" in message
    (message,) = scale_warnings(lambda: spy.tell(X[0], 1.0, -40.0))
    assert "z_scale" in message


def test_margins_far_from_unit_scale():
    spy = Spy(bounds=BOUNDS, safety_threshold=350.0, safe_when="below")
    (message,) = scale_warnings(lambda: spy.fit(X, [1.0, 2.0], [250.0, 300.0]))
    assert "margin reaches from 50 to 100" in message
    assert "safe means z <= 350.0" in message
    assert "suggest 79.1;" in message
    assert scale_warnings(lambda: spy.set_params(z_scale="auto").fit(X, [1, 2], [250, 300])) == []
    assert scale_warnings(lambda: spy.set_params(z_scale=79.1).fit(X, [1, 2], [250, 300])) == []


def test_suspiciously_small_spread():
    rng = np.random.default_rng(0)
    inputs, values = rng.random((12, 2)), rng.random(12)
    messages = scale_warnings(lambda: Spy().fit(inputs, 1e-3 * values, 1e-3 * values))
    assert ["y_scale" in messages[0], "z_scale" in messages[1]] == [True, True]
    clustered = 0.5 + 0.1 * inputs
    # Points close together may have equal outputs, but not all of them next to the limit.
    messages = scale_warnings(lambda: Spy().fit(clustered, 1e-3 * values, 1e-3 * values))
    assert ["z_scale" in message for message in messages] == [True]
    assert scale_warnings(lambda: Spy().fit(clustered, 1e-3 * values, values)) == []
    few = clustered[:4], 1e-3 * values[:4], 1e-3 * values[:4]
    assert scale_warnings(lambda: Spy().fit(*few)) == []


def test_queriers_that_need_no_scale_say_nothing():
    assert scale_warnings(lambda: UniformQuerier().fit([[0.1, 0.2]], [300.0])) == []
    assert scale_warnings(lambda: BestSafeQuerier().fit([[0.1, 0.2]], [300.0])) == []


def test_mixin_comes_first():
    assert issubclass(BestSafeQuerier, SafeQuerierMixin)
    assert BestSafeQuerier().__sklearn_tags__().target_tags.required
