"""One thread for linear algebra, and the previous number afterwards."""

import functools
import threading

from threadpoolctl import ThreadpoolController

# Looking for the libraries takes milliseconds; their own setters take a microsecond, where
# ``ThreadpoolController.limit`` takes fifty.
_libraries = functools.cache(
    lambda: tuple(ThreadpoolController().select(user_api="blas").lib_controllers)
)
_lock = threading.Lock()


class one_thread:
    """Context manager that caps BLAS at one thread.

    Matrices of a few hundred rows gain nothing from more, and threads that wait for
    each other on busy cores cost a lot.

    With most libraries the number belongs to the process. So one at a time sets it
    and puts it back, in the same thread, as threadpoolctl demands. Others inside
    meanwhile leave it alone: they would take the cap for what the user had set.
    """

    def __enter__(self):
        self._capped, self._first = [], _lock.acquire(blocking=False)
        if self._first:
            try:
                for library in _libraries():
                    number = library.get_num_threads()
                    if number != 1:
                        library.set_num_threads(1)
                        self._capped.append((library, number))
            except BaseException:
                self.__exit__()
                raise

    def __exit__(self, *error):
        if self._first:
            for library, number in self._capped:
                library.set_num_threads(number)
            _lock.release()
