"""One thread for linear algebra, and the previous number afterwards."""

import contextlib
import functools
import threading

from threadpoolctl import ThreadpoolController

# Looking for the libraries takes milliseconds, limiting them microseconds.
_controller = functools.cache(lambda: ThreadpoolController().select(user_api="blas"))
_lock = threading.Lock()


@contextlib.contextmanager
def one_thread():
    """Context manager that caps BLAS at one thread.

    Matrices of a few hundred rows gain nothing from more, and threads that wait for
    each other on busy cores cost a lot.

    With most libraries the number belongs to the process. So one at a time sets it
    and puts it back, in the same thread, as threadpoolctl demands. Others inside
    meanwhile leave it alone: they would take the cap for what the user had set.
    """
    if not _lock.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=1):
            yield
    finally:
        _lock.release()
