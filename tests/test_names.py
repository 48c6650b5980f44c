"""Values by name, and what may have been meant by a name."""

import numpy as np
import pandas as pd
import pytest

from sklearn_asal import AmortizedSafeQuerier, Grid, Integer, LipschitzBound, RandomQuerier
from sklearn_asal.exceptions import DataScaleWarning
from sklearn_asal.names import difference, in_order

BOUNDS = {"rpm": (900, 4000), "load": (0, 60)}
X = pd.DataFrame({"rpm": [1000.0, 1500.0], "load": [10.0, 20.0]})


def test_what_is_no_dict_is_returned_as_it_is():
    values = [1.0, 2.0]
    assert in_order(values, None, "x") is values


def test_dicts_in_the_order_of_names():
    assert in_order({"b": 2, "a": 1}, ["a", "b"], "x") == [1, 2]
    table = in_order({"b": [2, 4], "a": (1, 3)}, ["a", "b"], "x")
    np.testing.assert_array_equal(table, [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("values", "names", "message"),
    [
        ({"a": 1}, None, "x is a dict, but there are no names"),
        ({"a": 1}, ["a", "b"], "There is no 'b'"),
        ({"a": 1, "bb": 2}, ["a", "b"], "Did you mean b"),
        ({"a": [1], "b": [1, 2]}, ["a", "b"], "different lengths"),
    ],
)
def test_other_names_are_refused(values, names, message):
    with pytest.raises(ValueError, match=message):
        in_order(values, names, "x")


def test_the_same_names_in_another_order_do_not_differ():
    assert difference(["b", "a"], ["a", "b"]) == ""


@pytest.mark.parametrize("bounds", [BOUNDS, list(BOUNDS.values())])
def test_a_campaign_takes_dicts_wherever_it_takes_points(bounds):
    by_dict, by_row = (RandomQuerier(bounds=bounds, random_state=0).fit(X, [1, 2]) for _ in "ab")
    by_dict.tell({"load": 30.0, "rpm": 2000.0}, 3.0)
    by_row.tell([2000.0, 30.0], 3.0)
    np.testing.assert_array_equal(by_dict.X_, by_row.X_)
    by_dict.tell({"load": [1.0, 2.0], "rpm": [950.0, 960.0]}, [4.0, 5.0])
    np.testing.assert_array_equal(by_dict.X_[-2:], [[950.0, 1.0], [960.0, 2.0]])
    pending = {"rpm": 2000.0, "load": 31.0}
    np.testing.assert_array_equal(
        by_dict.query(pending=pending), by_dict.query(pending=[[2000.0, 31.0]])
    )


def test_limits_by_name():
    z = pd.DataFrame({"T": [1.0, 2.0], "p": [3.0, 4.0]})
    querier = AmortizedSafeQuerier(bounds=BOUNDS, guard=False).fit(X, [1, 2], z)
    querier.tell({"rpm": 1200, "load": 12}, 1.5, {"p": 3.5, "T": 1.5})
    np.testing.assert_array_equal(querier.z_[-1], [1.5, 3.5])
    with pytest.raises(ValueError, match=r"z has .*'P'.*Did you mean p"):
        querier.tell({"rpm": 1200, "load": 12}, 1.5, {"P": 3.5, "T": 1.5})
    assert len(querier.X_) == 3


def test_columns_that_differ_get_a_suggestion():
    querier = RandomQuerier(bounds=BOUNDS)
    with pytest.raises(ValueError, match=r"There is no 'load'.*'laod'\. Did you mean load"):
        querier.fit(X.rename(columns={"load": "laod"}), [1, 2])
    plain = RandomQuerier(bounds=list(BOUNDS.values())).fit(X, [1, 2])
    with pytest.raises(ValueError, match="Did you mean load"):
        plain.tell(X[:1].rename(columns={"load": "laod"}), 1.0)
    with pytest.raises(ValueError, match="Did you mean rpm"):
        querier.fit(X, [1, 2]).query(fixed={"RPM": 1000})


def test_messages_call_features_by_name():
    querier = RandomQuerier(bounds=BOUNDS).fit(X, [1, 2])
    with pytest.warns(DataScaleWarning, match="feature 'load' is 90, but"):
        querier.tell([1000, 90], 1.0)
    with pytest.raises(ValueError, match="in feature 'load' is outside"):
        querier.query(fixed={"load": 99.0})
    with pytest.raises(ValueError, match="max_step of feature 'rpm' must"):
        RandomQuerier(bounds=BOUNDS, max_step={"rpm": -1}).fit(X, [1, 2])
    unnamed = RandomQuerier(bounds=list(BOUNDS.values())).fit(X.to_numpy(), [1, 2])
    with pytest.warns(DataScaleWarning, match="feature 1 reaches from 80 to 90"):
        unnamed.tell([[1000, 90], [1000, 80]], [1.0, 1.0])


@pytest.mark.parametrize("kind", [Integer(1, 8), Grid([1.0, 2.0, 5.0])])
def test_values_that_a_feature_cannot_have_warn(kind, recwarn):
    querier = RandomQuerier(bounds={"gear": kind, "load": (0, 60)}).fit([[1, 3.0]], [1.0])
    querier.tell([2 + 1e-9, 3.5], 1.0)  # rounding
    assert not [one for one in recwarn if one.category is DataScaleWarning]
    with pytest.warns(DataScaleWarning, match=r"feature 'gear' is .* but 2.5 was measured"):
        querier.tell([2.5, 4.0], 1.0)
    assert len(querier.X_) == 3


def test_slopes_by_name():
    z = [2.0, 3.0]
    params = {"bounds": BOUNDS, "guard": False}
    by_name = AmortizedSafeQuerier(lipschitz={"load": 0.1, "rpm": 0.01}, **params).fit(X, z, z)
    by_row = AmortizedSafeQuerier(lipschitz=[0.01, 0.1], **params).fit(X, z, z)
    np.testing.assert_array_equal(by_name.query(), by_row.query())
    with pytest.raises(ValueError, match="has no number for feature 'load'"):
        AmortizedSafeQuerier(lipschitz=LipschitzBound({"rpm": 0.01}), **params).fit(X, z, z)
    with pytest.raises(ValueError, match="Did you mean load"):
        AmortizedSafeQuerier(lipschitz={"rpm": 0.01, "laod": 1.0}, **params).fit(X, z, z)


def test_a_budget_that_pending_experiments_spend_is_spent():
    querier = RandomQuerier(bounds=BOUNDS, budget=2).fit(X, [1, 2])
    first, second = querier.ask(2).to_numpy()
    assert querier.is_finished()
    querier.withdraw(second)
    assert not querier.is_finished()
    querier.tell(first, 1.0)
    assert not querier.is_finished()
