"""One thread for linear algebra, and the previous number afterwards."""

import functools
import os
import threading

from threadpoolctl import ThreadpoolController

# Looking for the libraries takes milliseconds; their own setters take a microsecond, where
# ``ThreadpoolController.limit`` takes fifty.
_libraries = functools.cache(
    lambda: tuple(ThreadpoolController().select(user_api="blas").lib_controllers)
)
_openmp = functools.cache(lambda: ThreadpoolController().select(user_api="openmp"))


def _nothing():
    pass


class _Cap:
    """The numbers of threads that were found, and the lock of whoever capped them."""

    def __init__(self):
        self.lock, self.setting, self.found = threading.Lock(), threading.Lock(), []

    def cap(self):
        with self.setting:
            for library in _libraries():
                number = library.get_num_threads()
                if number != 1:
                    # Noted before it is changed: a fork may come in between.
                    self.found.append((library, number))
                    library.set_num_threads(1)

    def put_back(self):
        with self.setting:
            for library, number in self.found:
                library.set_num_threads(number)
                # Or no other thread could ever set OpenBLAS's; older releases let any.
                getattr(library, "clear_controlling_thread", _nothing)()


_cap = _Cap()


class one_thread:
    """Context manager that caps BLAS at one thread.

    Matrices of a few hundred rows gain nothing from more, and threads that wait for
    each other on busy cores cost a lot.

    With most libraries the number belongs to the process. So one at a time sets it
    and puts it back, in the same thread, as threadpoolctl demands. Others inside
    meanwhile leave it alone: they would take the cap for what the user had set. A
    forked process starts without the cap.
    """

    def __enter__(self):
        self._cap = _cap
        self._first = self._cap.lock.acquire(blocking=False)
        if self._first:
            try:
                self._cap.cap()
            except BaseException:
                self.__exit__()
                raise

    def __exit__(self, *error):
        if self._first:
            self._cap.put_back()
            self._cap.found.clear()
            self._cap.lock.release()


def one_openmp_thread():
    """Cap OpenMP at one thread; its number belongs to the calling thread.

    Returns
    -------
    context manager
    """
    return _openmp().limit(limits=1)


def _hold():
    # Libraries set their numbers under a lock, which a child would inherit locked.
    _cap.setting.acquire()


def _let_go():
    _cap.setting.release()


def _start_anew():
    # The thread that would have put the numbers back is not in the child.
    global _cap
    _cap.setting.release()
    _cap.put_back()
    _cap = _Cap()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_start_anew)
