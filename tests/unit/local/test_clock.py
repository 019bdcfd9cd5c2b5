"""The twin's clock: order of timers, waiting for what they set off, and what other processes see."""

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from local.clock import TwinClock, each_minute, shared_now

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def manual() -> TwinClock:
    return TwinClock(manual=True, start=NOON)


def test_a_manual_clock_stands_still_until_it_is_advanced() -> None:
    clock = manual()
    assert clock.now() == NOON
    assert clock.advance(MINUTE) == NOON + MINUTE == clock.now()


def test_timers_run_in_the_order_of_their_time_and_ties_in_the_order_they_were_made() -> None:
    clock, ran = manual(), list[tuple[str, datetime]]()
    clock.call_later(2 * MINUTE, lambda: ran.append(("late", clock.now())))
    clock.call_later(MINUTE, lambda: ran.append(("first", clock.now())))
    clock.call_later(MINUTE, lambda: ran.append(("second", clock.now())))
    clock.advance(3 * MINUTE)
    assert ran == [("first", NOON + MINUTE), ("second", NOON + MINUTE), ("late", NOON + 2 * MINUTE)]


def test_what_runs_each_minute_runs_when_a_whole_minute_has_ended() -> None:
    clock, ran = TwinClock(manual=True, start=NOON + timedelta(seconds=20)), list[tuple[str, datetime]]()
    each_minute(clock, lambda at: ran.append(("first", at)), lambda at: ran.append(("second", at)))
    clock.advance(timedelta(seconds=39))
    assert ran == []
    clock.advance(timedelta(seconds=62))
    assert ran == [
        ("first", NOON + MINUTE),
        ("second", NOON + MINUTE),
        ("first", NOON + 2 * MINUTE),
        ("second", NOON + 2 * MINUTE),
    ]


def test_a_timer_made_by_a_timer_runs_in_the_same_advance_when_it_is_due() -> None:
    clock, ran = manual(), list[datetime]()
    clock.call_later(MINUTE, lambda: clock.call_later(MINUTE, lambda: ran.append(clock.now())))
    clock.advance(2 * MINUTE)
    assert ran == [NOON + 2 * MINUTE]


def test_a_cancelled_timer_does_not_run() -> None:
    clock, ran = manual(), list[str]()
    clock.call_later(MINUTE, lambda: ran.append("no")).cancel()
    clock.advance(2 * MINUTE)
    assert ran == []


def test_a_timer_that_fails_does_not_stop_the_next() -> None:
    clock, ran = manual(), list[str]()
    clock.call_later(MINUTE, lambda: 1 / 0)
    clock.call_later(MINUTE, lambda: ran.append("yes"))
    clock.advance(MINUTE)
    assert ran == ["yes"]


def test_an_advance_waits_for_what_a_timer_set_off_before_it_runs_the_next() -> None:
    clock, order = manual(), list[str]()
    delivered = threading.Event()

    def deliver() -> None:
        with clock.activity.busy():
            started.set()
            delivered.wait(5)
            order.append("delivered")

    def set_off() -> None:
        threading.Thread(target=deliver).start()
        started.wait(5)
        threading.Timer(0.05, delivered.set).start()

    started = threading.Event()
    clock.call_later(MINUTE, set_off)
    clock.call_later(2 * MINUTE, lambda: order.append("next"))
    clock.advance(2 * MINUTE)
    assert order == ["delivered", "next"]


def test_a_real_clock_runs_a_nearer_timer_that_was_made_later_first() -> None:
    clock, ran, done = TwinClock(manual=False), list[str](), threading.Event()
    clock.call_later(timedelta(seconds=0.2), lambda: ran.append("far"))
    clock.call_later(timedelta(seconds=0.3), done.set)
    clock.call_later(timedelta(seconds=0.02), lambda: ran.append("near"))
    assert done.wait(5)
    clock.close()
    assert ran == ["near", "far"]


@pytest.mark.parametrize(
    ("clock", "wait"),
    [
        pytest.param(TwinClock(manual=False), MINUTE, id="a real clock"),
        pytest.param(TwinClock(manual=True), -MINUTE, id="backwards"),
    ],
)
def test_what_cannot_be_advanced_says_so(clock: TwinClock, wait: timedelta) -> None:
    with pytest.raises(ValueError, match=r"cannot be advanced|backwards"):
        clock.advance(wait)


def test_speed_shortens_the_twins_own_waits_only() -> None:
    assert TwinClock(manual=False, speed=60).scaled(MINUTE) == timedelta(seconds=1)


def test_other_processes_see_the_frozen_instant_move(tmp_path: Path) -> None:
    clock = manual()
    clock.share(tmp_path / "clock")
    assert shared_now(tmp_path / "clock") == NOON
    clock.advance(MINUTE)
    assert shared_now(tmp_path / "clock") == NOON + MINUTE
    clock.close()


def test_with_a_real_clock_other_processes_read_their_own(tmp_path: Path) -> None:
    clock = TwinClock(manual=False)
    clock.share(tmp_path / "clock")
    assert abs(shared_now(tmp_path / "clock") - datetime.now(UTC)) < timedelta(seconds=5)
    clock.close()
