"""What the base class hands to a subclass and makes of its answer."""

import pickle
import warnings

import numpy as np
import pytest

from sklearn_asal import DataScaleWarning, NoSafeCandidateError
from sklearn_asal.base import BaseQuerier, SafeQuerierMixin

from .queriers import BestSafeQuerier, UniformQuerier

BOUNDS = [(0.0, 10.0), (100.0, 200.0)]
X = np.array([[1.0, 110.0], [9.0, 190.0]])


class Spy(BestSafeQuerier):
    """Answers with what it was told to, and writes down what it was asked."""

    _needs_unit_scale = True
    answer = (0.25, 0.5)

    def _propose(self, *asked):
        calls.append(asked)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class PlainSpy(UniformQuerier):
    """The same without safety."""

    def _propose(self, *asked):
        calls.append(asked)
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
    unit, y, margin, left, rng, candidates = calls[0]
    np.testing.assert_allclose(unit, [[0.1, 0.1], [0.9, 0.9]])
    np.testing.assert_allclose(y, [0, 2])
    np.testing.assert_allclose(margin, [2, -1])
    assert left == 7
    assert isinstance(rng, np.random.Generator)
    assert candidates is None


def test_pending_points_take_the_nearest_outcome():
    spy = Spy(bounds=BOUNDS, budget=7)
    spy.query(X, [1.0, 2.0], [3.0, 4.0], n_queries=3)
    assert [left for _, _, _, left, _, _ in calls] == [7, 6, 5]
    unit, y, margin = calls[2][:3]
    np.testing.assert_allclose(unit, [[0.1, 0.1], [0.9, 0.9], [0.25, 0.5], [0.25, 0.5]])
    np.testing.assert_allclose(y, [1, 2, 1, 1])
    np.testing.assert_allclose(margin, [3, 4, 3, 3])
    PlainSpy(bounds=BOUNDS).query([[1.0, 190.0], [9.0, 120.0]], [1.0, 2.0], n_queries=2)
    assert calls[-1][2] is None
    np.testing.assert_allclose(calls[-1][1], [1, 2, 2])
    assert calls[-1][3] is None  # no budget stated


def test_guesses_are_not_handed_on():
    class Walk(UniformQuerier):
        def _propose(self, X, y, margin, left, rng, candidates):
            calls.append(y)
            return [(0.45, 0.5), (0.55, 0.5), (0.5, 0.5)][len(calls) - 1]

    Walk().query([[0.1, 0.5], [0.9, 0.5]], [1.0, 2.0], n_queries=3)
    # The second point is nearer to the first, pending one than to any real observation.
    np.testing.assert_array_equal(calls[-1], [1, 2, 1, 2])


def test_pending_points_leave_automatic_scales_alone():
    spy = Spy(bounds=BOUNDS, y_loc="auto", y_scale="auto", z_scale="auto")
    spy.query(X, [1.0, 3.0], [3.0, 4.0], n_queries=2)
    np.testing.assert_allclose(calls[0][1], [-1, 1])
    np.testing.assert_allclose(calls[1][1], [-1, 1, -1])
    np.testing.assert_allclose(calls[0][2], np.array([3, 4]) / np.sqrt(12.5))


def test_a_subclass_sees_what_is_left_of_the_pool():
    spy = Spy(bounds=BOUNDS)
    pool = np.array([[1.0, 110.0], [5.0, 150.0], [2.0, 140.0], [9.0, 110.0]])
    points, indices = spy.query(X, [1.0, 2.0], pool=pool, n_queries=2, return_indices=True)
    view = calls[0][5]
    assert indices.tolist() == [2, 1]
    np.testing.assert_array_equal(points, pool[[2, 1]])
    # The view is the same throughout one call; after it, the last row alone is left.
    assert calls[1][5] is view
    np.testing.assert_allclose(view.points, [[0.9, 0.1]])
    np.testing.assert_allclose(calls[1][0][-1], [0.2, 0.4])  # the row enters, not the proposal


def test_a_row_of_the_pool_may_be_the_answer():
    class FirstLeft(UniformQuerier):
        def _propose(self, X, y, margin, left, rng, candidates):
            return candidates.points[0]

    _, indices = FirstLeft(bounds=BOUNDS).query(
        X, [1.0, 2.0], pool=np.vstack([X, X + 1, X]), n_queries=4, return_indices=True
    )
    assert indices.tolist() == [2, 3, 4, 5]


def test_answers_outside_the_cube_are_clipped(monkeypatch):
    monkeypatch.setattr(Spy, "answer", (-0.1, 1.5))
    points = Spy(bounds=BOUNDS).query(X, [1.0, 2.0], n_queries=2)
    np.testing.assert_array_equal(points, [[0.0, 200.0]] * 2)
    np.testing.assert_array_equal(calls[1][0][-1], [0.0, 1.0])


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


def test_generator_follows_random_state_and_number_of_observations():
    def draw(random_state, n=2, n_queries=1):
        querier = UniformQuerier(random_state=random_state)
        return querier.query(np.full((n, 2), 0.5), np.zeros(n), n_queries=n_queries)

    np.testing.assert_array_equal(draw(0), draw(0))
    assert not np.array_equal(draw(0), draw(1))
    assert not np.array_equal(draw(0), draw(0, n=3))
    both = draw(0, n_queries=2)
    np.testing.assert_array_equal(both, np.vstack([draw(0), draw(0, n=3)]))


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
    before = pickle.dumps(querier.__dict__)
    for wrong in ([[1.0]], [1.0]), (X, [1.0]), (X, [1.0, np.nan]):
        with pytest.raises(ValueError, match=r"bounds|y"):
            querier.fit(*wrong)
        assert pickle.dumps(querier.__dict__) == before


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
    assert scale_warnings(lambda: Spy().fit(clustered, 1e-3 * values, 1e-3 * values)) == []


def test_queriers_that_need_no_scale_say_nothing():
    assert scale_warnings(lambda: UniformQuerier().fit([[0.1, 0.2]], [300.0])) == []
    assert scale_warnings(lambda: BestSafeQuerier().fit([[0.1, 0.2]], [300.0])) == []


def test_mixin_comes_first():
    assert issubclass(BestSafeQuerier, SafeQuerierMixin)
    assert BestSafeQuerier().__sklearn_tags__().target_tags.required
