"""Waiting for the end of the twin."""

import signal
import threading

from local.up import wait_for


def test_a_signal_that_does_not_interrupt_the_wait_is_heard_all_the_same():
    stop = threading.Event()
    before = signal.signal(signal.SIGUSR1, lambda *_: stop.set())
    elsewhere = threading.Timer(0.05, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGUSR1))
    elsewhere.start()
    try:
        wait_for(stop)
    finally:
        elsewhere.join()
        signal.signal(signal.SIGUSR1, before)
    assert stop.is_set()
