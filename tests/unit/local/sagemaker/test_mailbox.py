"""How the thread of a job hears what happens, and what the clock sees of it."""

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from local.clock import TwinClock
from local.sagemaker.mailbox import ClosedError, Exited, Fail, Interrupt, Mailbox, Stop
from local.sagemaker.statuses import Secondary

EXITED = Exited(code=0)
FAIL = Fail(reason="why")


@pytest.fixture
def clock() -> TwinClock:
    return TwinClock(manual=True)


@pytest.fixture
def mailbox(clock: TwinClock) -> Iterator[Mailbox]:
    box = Mailbox(clock)
    yield box
    box.leave()


def test_the_next_message_of_a_heeded_kind_is_heard_and_the_others_are_dropped(mailbox):
    for message in (Interrupt(), FAIL, EXITED, Stop(end=Secondary.STOPPED)):
        mailbox.post(message)

    assert mailbox.wait((Exited,)) == EXITED
    assert mailbox.wait((Fail, Stop)) == Stop(end=Secondary.STOPPED)


class Waiting:
    """A thread that waits at a mailbox."""

    def __init__(self, clock: TwinClock, mailbox: Mailbox, wait: timedelta) -> None:
        self.heard: list[object] = []

        def run() -> None:
            self.heard.append(mailbox.wait((Exited,), wait))
            mailbox.leave()

        self._thread = threading.Thread(target=run)
        self._thread.start()
        assert clock.activity.wait_idle(10)

    def join(self) -> list[object]:
        self._thread.join(10)
        return self.heard


def test_a_wait_ends_when_its_time_has_passed_on_the_clock(clock, mailbox):
    waiting = Waiting(clock, mailbox, timedelta(seconds=60))
    clock.advance(timedelta(seconds=59))
    assert waiting.heard == []

    clock.advance(timedelta(seconds=1))
    assert waiting.join() == [None]


def test_the_end_of_an_earlier_wait_does_not_end_a_later_one(clock, mailbox):
    mailbox.post(FAIL)
    assert mailbox.wait((Fail,), timedelta(seconds=1)) == FAIL
    waiting = Waiting(clock, mailbox, timedelta(seconds=60))
    clock.advance(timedelta(seconds=5))
    assert waiting.heard == []

    mailbox.post(EXITED)
    assert waiting.join() == [EXITED]


def test_a_message_is_activity_until_its_reader_waits_again(clock, mailbox):
    assert clock.activity.in_flight() == ("training job",)
    mailbox.post(FAIL)
    mailbox.wait((Fail,))
    assert clock.activity.in_flight() == ("training job",)

    thread = threading.Thread(target=lambda: mailbox.wait((Exited,)))
    thread.start()
    assert clock.activity.wait_idle(10)
    mailbox.post(EXITED)
    thread.join(10)
    assert clock.activity.in_flight() == ("training job",)


def test_when_its_reader_has_left_nothing_is_activity(clock, mailbox):
    mailbox.post(FAIL)
    mailbox.leave()
    mailbox.post(FAIL)

    assert clock.activity.in_flight() == ()


def test_a_closed_mailbox_ends_the_wait(mailbox):
    mailbox.close()

    with pytest.raises(ClosedError):
        mailbox.wait((Fail,))
