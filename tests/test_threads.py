"""The cap on threads."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from sklearn_asal import threads
from sklearn_asal.threads import one_openmp_thread, one_thread


def numbers(user_api="blas"):
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == user_api]


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
    with threadpool_limits(3, user_api="blas"):
        with one_thread():
            assert set(numbers()) == {1}
        assert set(numbers()) == {3}


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


FORK = """
import os, threading
import numpy as np
from threadpoolctl import ThreadpoolController, threadpool_info
from sklearn_asal.threads import one_thread

def numbers():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

def child():
    assert numbers() == {3}, numbers()
    with one_thread():
        assert numbers() == {1}, numbers()
        np.ones((300, 300)) @ np.ones((300, 300))
    assert numbers() == {3}, numbers()
    np.ones((300, 300)) @ np.ones((300, 300))

def fork(work):
    process = os.fork()
    if process == 0:
        try:
            work()
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0

for library in ThreadpoolController().select(user_api="blas").lib_controllers:
    library.set_num_threads(3)
    getattr(library, "clear_controlling_thread", int)()  # a user of no thread in particular
with one_thread():  # looks for the libraries
    pass
"""
MOMENTS = {
    "another thread is inside": """
inside, leave = threading.Event(), threading.Event()
def other():
    with one_thread():
        inside.set()
        leave.wait(60)
thread = threading.Thread(target=other)
thread.start()
inside.wait(60)
fork(child)
assert numbers() == {1}
leave.set()
thread.join()
""",
    "another thread is inside, and this one, too": """
inside, leave = threading.Event(), threading.Event()
def other():
    with one_thread():
        inside.set()
        leave.wait(60)
thread = threading.Thread(target=other)
thread.start()
inside.wait(60)
with one_thread():
    fork(child)
leave.set()
thread.join()
""",
    "this thread is inside": """
with one_thread():
    fork(child)
    assert numbers() == {1}
""",
    "the child leaves": """
def leave():
    block.__exit__()
    child()
block = one_thread()
with block:
    fork(leave)
    assert numbers() == {1}
""",
    "nobody is inside": "fork(child)",
}


def run(code):
    """Run it in a process of its own, whose user has set three threads."""
    code += "\nassert numbers() == {3}, numbers()"
    done = subprocess.run([sys.executable, "-c", code], timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_forked_process_has_the_numbers_of_the_user(moment):
    run(FORK + MOMENTS[moment])


def test_any_thread_can_cap():
    work = """
def work():
    with one_thread():
        assert numbers() == {1}, numbers()
    assert numbers() == {3}, numbers()
for _ in range(2):
    work()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()
        work()
        pool.submit(work).result()
"""
    run(FORK + "from concurrent.futures import ThreadPoolExecutor" + work)


def test_openmp_is_capped_in_the_calling_thread():
    with threadpool_limits(3, user_api="openmp"):
        with one_openmp_thread():
            assert set(numbers("openmp")) == {1}
        assert set(numbers("openmp")) == {3}
