import os
import signal

from training.preempt import EXIT_PREEMPTED, StopRequest


def test_sigterm_is_remembered_until_somebody_asks() -> None:
    with StopRequest() as stop:
        assert not stop.agreed()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.agreed()


def test_the_handler_before_it_comes_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with StopRequest():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_preempted_attempt_looks_as_if_sigterm_had_ended_it() -> None:
    assert EXIT_PREEMPTED == 143
