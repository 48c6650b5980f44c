"""The cap on threads."""

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from sklearn_asal.surrogates.threads import one_thread


def blas():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_capped_inside_and_put_back():
    with threadpool_limits(2, user_api="blas"):
        before = blas()
        assert before != {1}
        with one_thread():
            assert blas() == {1}
            with one_thread():
                assert blas() == {1}
            assert blas() == {1}
        assert blas() == before
        with pytest.raises(KeyError), one_thread():
            raise KeyError
        assert blas() == before
