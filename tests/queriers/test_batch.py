"""Many campaigns in one call."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_asal import (
    AmortizedQuerier,
    AmortizedSafeQuerier,
    DataScaleWarning,
    Grid,
    Log,
    NoSafeCandidateError,
    SafetyWarning,
)

from ..common import policy_file

X = np.array([[0.4, 0.5], [0.6, 0.5], [0.5, 0.55]])
Y = np.array([0.1, -0.3, 0.8])
Z = np.array([1.0, 0.5, 1.5])


def histories(lengths, seed=0):
    rng = np.random.default_rng(seed)
    return [
        (rng.random((n, 2)), rng.standard_normal(n), 1 + rng.standard_normal(n)) for n in lengths
    ]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=12),
    budget=st.sampled_from([None, 3, "each"]),
    stated=st.sampled_from([None, 5]),
    auto=st.booleans(),
    safe=st.booleans(),
)
def test_many_equals_a_loop(lengths, budget, stated, auto, safe):
    kind = AmortizedSafeQuerier if safe else AmortizedQuerier
    params = {"y_loc": "auto", "y_scale": "auto"} if auto else {"y_loc": 0.2}
    params |= {"on_no_safe": "least_unsafe"} if safe else {}
    querier = kind(policy_file(safe), bounds=[(-1, 2), (0, 1)], budget=stated, **params)
    campaigns = histories(lengths)
    budgets = list(range(1, len(lengths) + 1)) if budget == "each" else budget
    each = budgets if budget == "each" else [budget] * len(lengths)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        loop = [querier.query(*part, budget=b) for part, b in zip(campaigns, each, strict=True)]
        many = querier.propose_many(campaigns, budgets)
    np.testing.assert_allclose(many, np.vstack(loop), rtol=0, atol=1e-5)


def test_many_raises_as_query_does():
    querier = AmortizedSafeQuerier(policy_file(True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with pytest.raises(NoSafeCandidateError) as expected:
            querier.query(X, Y, -Z)
        with pytest.raises(NoSafeCandidateError) as found:
            querier.propose_many([(X, Y, Z), (X, Y, -Z)])
    np.testing.assert_allclose(found.value.candidate, expected.value.candidate, atol=1e-5)


def test_many_takes_what_query_takes():
    querier = AmortizedSafeQuerier(policy_file(True), safety_threshold=[0, 1])
    short = X[:2].tolist(), Y[:2].tolist(), np.column_stack([Z, Z + 2])[:2]
    long = pd.DataFrame(X), pd.Series(Y), np.column_stack([Z, Z + 2])
    expected = np.vstack([querier.query(*short), querier.query(*long)])
    np.testing.assert_allclose(querier.propose_many([short, long]), expected, rtol=0, atol=1e-6)
    one = AmortizedSafeQuerier(policy_file(True))
    alone = one.propose_many(iter([(X, Y)]))
    np.testing.assert_allclose(alone, one.query(X, Y), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("campaigns", "budgets", "message"),
    [
        ([], None, "histories is empty"),
        ([(X, Y, Z)], [3, 4], "2 budgets are given for 1 campaigns"),
        ([(X, Y, Z), (X,)], None, r"campaign 1: a history must be a tuple \(X, y\)"),
        ([(X, Y, Z), (X, Y[:2], Z)], None, "campaign 1: y has 2 entries, but X has 3 rows"),
        ([(X, Y, Z), (X * np.nan, Y, Z)], None, "campaign 1: .*X contains NaN"),
        ([(X, Y, Z), (X, np.array(1.0), Z)], None, "campaign 1: y has 1 entries"),
        ([(X, Y, Z), (X, Y, Z[:, None][:, :0])], None, "campaign 1: .*z"),
        ([(X, Y, Z), (X[:, :1], Y, Z)], None, r"campaign 1: X has shape \(3, 1\)"),
        ([(X, Y, Z)] * 2, [1, 0], "campaign 1: 0 queries are left"),
        ([(X[:, :1], Y, Z)], None, "takes 2"),
    ],
)
def test_many_names_the_campaign_at_fault(campaigns, budgets, message):
    querier = AmortizedSafeQuerier(policy_file(True))
    with pytest.raises(ValueError, match=message):
        querier.propose_many(campaigns, budgets)


def test_a_missing_budget_is_the_querier_s():
    querier = AmortizedSafeQuerier(policy_file(True))
    assert querier.propose_many([(X, Y, Z)] * 2, [5, None]).shape == (2, 2)
    querier.set_params(budget=9)
    some = querier.propose_many([(X, Y, Z)] * 2, [5, None])
    np.testing.assert_array_equal(some, querier.propose_many([(X, Y, Z)] * 2, [5, 9]))


def test_many_needs_a_sequence():
    with pytest.raises(TypeError, match="histories must be a sequence of tuples"):
        AmortizedSafeQuerier(policy_file(True)).propose_many(None)


def test_many_warns_as_query_does():
    querier = AmortizedSafeQuerier(policy_file(True), on_no_safe="least_unsafe")
    with pytest.warns(DataScaleWarning, match="y_scale") as record:
        querier.propose_many([(X, Y, Z), (X, 300 * Y, Z)])
    assert record[0].filename == __file__
    with pytest.warns(SafetyWarning, match="none of the observations of campaign 1 is safe"):
        querier.propose_many([(X, Y, Z), (X, Y, -Z)])
    with pytest.warns(SafetyWarning, match="none of the 6 observations is safe"):
        querier.propose_many([(X, Y, -Z), (X, Y, -Z)])


def test_campaigns_have_the_same_measurements_and_features():
    querier, frame = AmortizedSafeQuerier("2d"), pd.DataFrame(X, columns=["u", "v"])
    with pytest.raises(ValueError, match="campaign 1: z is missing, but campaign 0 has some"):
        querier.propose_many([(X, Y, Z), (X, Y)])
    with pytest.raises(ValueError, match="campaign 2: z is given, but campaign 0 has none"):
        querier.propose_many([(X, Y), [X, Y], (X, Y, Z)])
    with pytest.raises(ValueError, match=r"campaign 1: X has the features \['v', 'u'\]"):
        querier.propose_many([(frame, Y, Z), (frame[["v", "u"]], Y, Z)])
    swapped = [(frame, Y, Z), (frame.copy(), Y, Z), (X, Y, Z)]
    assert len(querier.propose_many(swapped)) == 3


@pytest.mark.parametrize("safe", [True, False])
def test_repeated_experiments_are_moved_in_every_campaign(safe, monkeypatch):
    """A policy that is cut off at a corner; noise is looked for in each campaign by itself."""
    querier = (AmortizedSafeQuerier if safe else AmortizedQuerier)(policy_file(safe))
    runtime, corner = querier._load(2).runtime, [1.0, 1.0]
    monkeypatch.setattr(runtime, "decide", lambda left, tokens: np.array(corner))
    monkeypatch.setattr(runtime, "decide_many", lambda left, rows, mask: np.ones((len(left), 2)))
    campaigns = [
        ([[0.5, 0.5], corner], [0.1, 0.2]),
        ([[0.5, 0.5], corner, corner], [0.1, 0.2, 0.3]),  # noisy
        ([[0.5, 0.5], [1.0, 0.98]], [0.1, 0.2]),  # new
        ([[0.5, 0.5], corner, [1.0, 0.98], corner], [0.1, 0.2, 0.1, 0.2]),
    ]
    points = querier.propose_many(campaigns)
    loop = [querier.query(*campaign)[0] for campaign in campaigns]
    np.testing.assert_array_equal(points, loop)
    moved = (points != corner).any(axis=1)
    assert moved.tolist() == [True, False, False, True]
    for point, (X, _) in zip(points[moved], np.array(campaigns, dtype=object)[moved], strict=True):
        assert np.abs(np.array(X) - point).max(axis=1).min() > 1e-3


@pytest.mark.filterwarnings("ignore::sklearn_asal.exceptions.SafetyWarning")
def test_where_nothing_is_safe_an_error_may_be_raised():
    querier = AmortizedSafeQuerier(on_no_safe="raise")
    campaigns = histories([3, 4])
    expected = AmortizedSafeQuerier().propose_many([(X, Y, Z), (X, Y, Z)])
    np.testing.assert_allclose(querier.propose_many([(X, Y, Z), (X, Y, Z)]), expected, atol=1e-5)
    with pytest.raises(NoSafeCandidateError):
        querier.propose_many([(X, Y, Z), (*campaigns[1][:2], np.full(4, -1.0))])


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("policy", [policy_file(True), "auto"])
def test_kinds_of_features_and_steps(policy):
    """One query after another, where not everything may be proposed."""
    campaigns = histories([3, 4, 9])
    bounds = [(0, 1), Grid([0.0, 0.25, 0.5, 1.0])]
    for params in ({"bounds": bounds}, {"max_step": 0.1}, {"lipschitz": 50.0}):
        querier = AmortizedSafeQuerier(policy, **params)
        loop = [querier.query(*part, budget=4) for part in campaigns]
        np.testing.assert_array_equal(querier.propose_many(campaigns, 4), np.vstack(loop))
    with pytest.raises(ValueError, match=r"campaign 1: .*max_step"):
        AmortizedSafeQuerier(policy, max_step=0.1).propose_many(
            [campaigns[0], (campaigns[1][0] + 3, *campaigns[1][1:])]
        )
    # Scales alone leave everything to be proposed, in batches.
    querier = AmortizedSafeQuerier(policy, bounds=[Log(0.01, 10), (0, 1)])
    loop = [querier.query(*part, budget=4) for part in campaigns]
    np.testing.assert_allclose(querier.propose_many(campaigns, 4), np.vstack(loop), rtol=1e-4)
