import os
import signal

import pytest

from training.preemptible.preempt import EXIT_PREEMPTED, StopRequest


class Clock:
    def __init__(self) -> None:
        self.seconds = 5.0

    def __call__(self) -> float:
        return self.seconds


def _ask() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_sigterm_is_remembered_until_somebody_asks() -> None:
    with StopRequest() as stop:
        assert not stop.asked
        _ask()
        assert stop.asked


def test_time_counts_from_the_first_signal() -> None:
    clock = Clock()
    with StopRequest(seconds=100.0, clock=clock) as stop:
        clock.seconds += 50.0
        assert stop.seconds_since == 0.0
        _ask()
        clock.seconds += 30.0
        _ask()
        clock.seconds += 10.0
        assert stop.seconds_since == 40.0


def test_the_handler_before_it_comes_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with StopRequest():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_preempted_attempt_looks_as_if_sigterm_had_ended_it() -> None:
    assert EXIT_PREEMPTED == 143


def test_while_nothing_is_at_stake_the_signal_ends_the_process() -> None:
    with StopRequest() as stop:
        with stop.ends_at_once():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        _ask()
        assert stop.asked


def test_a_signal_that_came_before_a_wait_ends_the_process_there() -> None:
    with StopRequest() as stop:
        _ask()
        with pytest.raises(SystemExit) as ended, stop.ends_at_once():
            pass
    assert ended.value.code == 143
