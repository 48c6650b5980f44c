"""One thread for linear algebra, and the previous number afterwards."""

import functools

from threadpoolctl import ThreadpoolController

# Looking for the libraries takes milliseconds, limiting them microseconds.
_controller = functools.cache(ThreadpoolController)


def one_thread():
    """Context manager that caps BLAS at one thread.

    Matrices of a few hundred rows gain nothing from more, and threads that wait for
    each other on busy cores cost a lot.
    """
    return _controller().limit(limits=1, user_api="blas")
