"""The cap on threads."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from threadpoolctl import threadpool_info

from sklearn_asal.surrogates import threads
from sklearn_asal.surrogates.threads import one_thread


def blas():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


class Library:
    """A library of linear algebra with a number of threads, whatever this machine has."""

    threads = 4
    setter = None

    def get_num_threads(self):
        return self.threads

    def set_num_threads(self, number):
        # Whoever capped it puts it back.
        assert number == 1 or self.setter == threading.get_ident()
        self.threads, self.setter = number, threading.get_ident()


@pytest.fixture
def library(monkeypatch):
    library = Library()
    monkeypatch.setattr(threads, "_libraries", lambda: (library,))
    return library


def test_capped_inside_and_put_back():
    before = blas()
    with one_thread():
        assert set(blas()) == {1}
    assert blas() == before


def test_nested_and_after_errors(library):
    with one_thread():
        with one_thread():
            assert library.threads == 1
        assert library.threads == 1
    assert library.threads == 4
    with pytest.raises(KeyError), one_thread():
        raise KeyError
    assert library.threads == 4
    library.threads = 3  # the user's new setting
    with one_thread():
        assert library.threads == 1
    assert library.threads == 3


@pytest.mark.parametrize("first_leaves_first", [True, False])
def test_side_by_side(library, first_leaves_first):
    second_out = threading.Event()

    def second():
        with one_thread():
            seen.append(library.threads)
            inside.set()
            second_out.wait(10)

    inside, seen = threading.Event(), []
    worker = threading.Thread(target=second)
    with one_thread():
        worker.start()
        assert inside.wait(10)
        if not first_leaves_first:
            second_out.set()
            worker.join()
            assert library.threads == 1
    assert library.threads == 4
    second_out.set()
    worker.join()
    assert seen == [1]
    assert library.threads == 4


def test_many_at_once(library):
    def work(_):
        with one_thread():
            assert library.threads in (1, 4)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(500)))
    assert library.threads == 4
