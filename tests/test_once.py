"""Attributes that are worked out once, and without a lock."""

import os
import signal
import threading

import pytest

from sklearn_asal.once import once


class Counted:
    calls = 0

    @once
    def value(self):
        """A value."""
        self.calls += 1
        return [self.calls]


def test_worked_out_once_for_each_instance():
    first, second = Counted(), Counted()
    assert first.value is first.value
    assert (first.calls, second.calls) == (1, 0)
    assert second.value == [1]
    assert second.value is not first.value
    assert Counted.value.__doc__ == "A value."


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_waits_for_nobody():
    begun, go = threading.Event(), threading.Event()

    class Slow:
        def __init__(self, waits):
            self.waits = waits

        @once
        def value(self):
            if self.waits:
                begun.set()
                go.wait(30)
            return 1

    thread = threading.Thread(target=lambda: Slow(True).value)
    thread.start()
    begun.wait(30)
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends a process that waits in vain
        os._exit(0 if Slow(False).value == 1 else 1)
    status = os.waitpid(child, 0)[1]
    go.set()
    thread.join()
    assert status == 0
