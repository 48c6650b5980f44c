"""What was told is one record, which nobody changes."""

import copy
import pickle
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ..common import UniformQuerier
from .test_contract import BOUNDS, campaign

PARTS = "X_", "y_", "z_", "status_", "index_", "n_told_"


@pytest.fixture
def told(make):
    X, y, z = campaign(0)
    return make(bounds=BOUNDS, budget=9).fit(X[:4], y[:4], z[:4]).tell(X[4:], y[4:], z[4:])


@pytest.mark.parametrize("name", PARTS)
def test_nothing_can_be_assigned(told, name):
    before, expected = pickle.dumps(told), told.query()
    for change in (lambda: setattr(told, name, 3), lambda: delattr(told, name)):
        with pytest.raises(AttributeError, match=rf"{name} is read-only .* fit .* tell"):
            change()
    assert pickle.dumps(told) == before
    np.testing.assert_array_equal(told.query(), expected)


def test_the_arrays_are_read_only_in_copies_as_well(told):
    for querier in told, copy.deepcopy(told), pickle.loads(pickle.dumps(told)):
        for name in PARTS[:-1]:
            part = getattr(querier, name)
            with pytest.raises(ValueError, match="read-only"):
                part[0] = part[1]
            np.testing.assert_array_equal(part, getattr(told, name))
        assert querier.n_told_ == 2


def test_before_fit_there_is_nothing(make):
    querier = make()
    for name in PARTS:
        assert not hasattr(querier, name)
        with pytest.raises(NotFittedError, match=rf"has no {name} yet: call fit"):
            getattr(querier, name)
    with pytest.raises(NotFittedError):
        check_is_fitted(querier)
    querier.fit(*campaign(0))
    check_is_fitted(querier)
    check_is_fitted(querier, PARTS)
    assert not hasattr(clone(querier), "X_")


def test_a_failed_assignment_loses_nothing():
    querier = UniformQuerier().fit([[0.1, 0.2], [0.3, 0.4]], [1.0, 2.0])
    with pytest.raises(AttributeError, match="X_ is read-only"):
        querier.X_ = querier.X_[:1]
    assert querier.tell([0.5, 0.5], 3.0).query().shape == (1, 2)
    assert len(querier.X_) == 3


def test_readers_see_whole_records():
    """Whatever a reader gets belongs together, while another thread tells."""
    querier = UniformQuerier(bounds=(0, 300)).fit([[0.0, 0.0]], [0.0], [0.0])
    stop, wrong = threading.Event(), []

    def read():
        while not stop.is_set():
            told, (X, y, z, status) = querier._data(None, None, None, "query")
            n = len(X)
            if not n == len(y) == len(z) == len(status) == len(told.rows) == 1 + told.n_told:
                wrong.append(n)
            if not (X[:, 0] == y).all() or not (y == z).all():
                wrong.append(n)

    reader = threading.Thread(target=read)
    reader.start()
    for i in range(1, 300):
        querier.tell([i, i], i, i)
    stop.set()
    reader.join()
    assert not wrong
