import os
import signal

from tests.unit.training.test_preempt import Clock
from training.agreement import Agreement, Decision
from training.preempt import StopRequest


def _ask() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_script_without_a_process_group_decides_alone() -> None:
    clock = Clock()
    with StopRequest(seconds=100.0, clock=clock) as stop:
        agreement = Agreement(stop)
        assert agreement.now(save=True) == Decision(stop=False, save=True, seconds_left=100.0)
        _ask()
        clock.seconds += 1.0
        assert agreement.now() == Decision(stop=True, save=False, seconds_left=99.0)


def test_what_comes_after_the_vote_counts_in_the_next_one() -> None:
    with StopRequest() as stop:
        agreement = Agreement(stop)
        agreement.begin()
        _ask()
        assert not agreement.settled().stop
        assert agreement.now().stop
