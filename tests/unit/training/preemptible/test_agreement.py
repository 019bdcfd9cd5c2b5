import math
import os
import signal

from tests.unit.training.preemptible.test_preempt import Clock
from training.preemptible.agreement import Agreement, Decision
from training.preemptible.preempt import StopRequest


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


def test_only_who_is_asked_to_stop_says_how_long_it_needs_and_too_long_drops_what_is_under_way() -> None:
    clock = Clock()
    with StopRequest(seconds=100.0, clock=clock) as stop:
        agreement = Agreement(stop)
        agreement.begin(seconds_needed=lambda: 1e9)
        assert not agreement.settled().must_drop
        _ask()
        clock.seconds += 40.0
        for needed, drops in ((60.0, False), (60.5, True), (math.inf, True)):
            agreement.begin(seconds_needed=lambda needed=needed: needed)  # type: ignore[misc]
            decision = agreement.settled()
            assert (decision.seconds_left, decision.seconds_needed) == (60.0, needed)
            assert decision.must_drop is drops


def test_the_time_that_asking_takes_is_gone() -> None:
    clock = Clock()

    def asked_of_a_busy_device() -> float:
        clock.seconds += 7.0
        return 1.0

    with StopRequest(seconds=100.0, clock=clock) as stop:
        agreement = Agreement(stop)
        _ask()
        agreement.begin(seconds_needed=asked_of_a_busy_device)
        assert agreement.settled().seconds_left == 93.0
