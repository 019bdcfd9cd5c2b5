import math

import pytest

from training.monitoring.goodput import Goodput, Lap, Meter, WidthTime


def _after(start: Goodput, *steps: float) -> Goodput:
    for seconds in steps:
        start = start.after_step(seconds)
    return start


def test_goodput_is_the_share_of_the_time_since_the_start_that_was_spent_in_steps() -> None:
    job = _after(Goodput.resumed(None, now=1000.0), 10.0, 10.0, 10.0)
    assert job.share(1040.0) == 0.75


def test_a_first_step_that_compiles_counts_as_much_as_the_second() -> None:
    job = _after(Goodput.resumed(None, now=0.0), 300.0, 2.0, 2.0)
    assert job.productive == 6.0
    assert _after(Goodput.resumed(None, now=0.0), 1.0, 2.0).productive == 3.0


def test_what_the_device_still_had_to_do_counts_too() -> None:
    assert _after(Goodput.resumed(None, now=0.0), 1.0, 1.0).longer(3.0).productive == 5.0


def test_lost_steps_are_not_counted_and_repeated_ones_once() -> None:
    """Saved after 4 steps of 10 s; 3 more are lost with the machine; back after 60 s, it does 6 steps."""
    first = _after(Goodput.resumed(None, now=0.0), 10.0, 10.0, 10.0, 10.0)
    saved = first.carried()
    _after(first, 10.0, 10.0, 10.0)  # nobody hears of these
    second = _after(Goodput.resumed(saved, now=130.0), *[10.0] * 6)
    assert second.productive == 100.0
    assert second.share(190.0) == pytest.approx(100 / 190)


def test_the_clock_of_another_host_cannot_make_it_more_than_all_or_less_than_nothing() -> None:
    job = _after(Goodput.resumed(None, now=1000.0), 10.0, 10.0)
    assert job.share(1015.0) == 1.0
    assert job.share(1000.0) == 0.0
    assert job.share(900.0) == 0.0


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def _step(meter: Meter, clock: Clock, seconds: float) -> None:
    clock.now += seconds
    meter.step_done()


def _meter(clock: Clock, **changes: float) -> Meter:
    return Meter(changes or None, clock=clock, wall_clock=clock)


def test_a_lap_is_the_mean_of_the_steps_since_the_last_one() -> None:
    clock = Clock()
    meter = _meter(clock)
    for seconds in (1.0, 2.0, 3.0):
        clock.now += seconds / 10
        meter.data_arrived()
        _step(meter, clock, seconds * 9 / 10)
    lap = meter.lap()
    assert (lap.step_seconds, round(lap.data_seconds, 9)) == (2.0, 0.2)
    _step(meter, clock, 5.0)
    assert meter.lap() == Lap(step_seconds=5.0, data_seconds=0.0)


def test_the_time_a_save_held_the_steps_up_is_in_no_step() -> None:
    clock = Clock()
    meter = _meter(clock)
    _step(meter, clock, 1.0)
    meter.lap()
    clock.now += 30.0
    meter.held_up(30.0)
    _step(meter, clock, 1.0)
    assert meter.lap().step_seconds == 1.0
    assert meter.checkpoint_stall == 30.0
    assert meter.goodput() == 2 / 32


def test_what_the_device_does_after_the_host_queued_it_belongs_to_the_steps() -> None:
    clock = Clock()
    meter = _meter(clock)
    _step(meter, clock, 1.0)
    _step(meter, clock, 1.0)
    clock.now += 8.0
    assert meter.lap().step_seconds == 5.0
    assert meter.goodput() == 1.0


def test_the_next_attempt_goes_on_with_what_was_carried() -> None:
    clock = Clock()
    meter = _meter(clock)
    _step(meter, clock, 4.0)
    _step(meter, clock, 4.0)
    carried = meter.carried()
    clock.now = 20.0
    later = _meter(clock, **carried)
    _step(later, clock, 10.0)
    _step(later, clock, 10.0)
    assert later.goodput() == 28 / 40


def test_the_next_step_is_judged_by_the_longest_of_the_last_few() -> None:
    clock = Clock()
    meter = _meter(clock)
    assert meter.longest_step == math.inf
    _step(meter, clock, 90.0)  # compiles
    _step(meter, clock, 2.0)
    assert meter.longest_step == 90.0
    for seconds in (3.0, 2.0, 4.0, 2.0):
        _step(meter, clock, seconds)
    assert meter.longest_step == 4.0
    clock.now += 3.0  # the device was still at work
    meter.lap()
    assert meter.longest_step == 5.0


def test_steps_and_seconds_are_counted_at_the_width_of_each_attempt() -> None:
    """Train four steps at width 4, then two slower ones at width 2; one more is lost with the machine."""
    clock = Clock()
    wide = Meter(None, width=4, clock=clock, wall_clock=clock)
    for _ in range(4):
        _step(wide, clock, 1.0)
    narrow = Meter(wide.carried(), width=2, clock=clock, wall_clock=clock)
    for _ in range(2):
        _step(narrow, clock, 2.0)
    saved = narrow.carried()
    _step(narrow, clock, 2.0)
    again = Meter(saved, width=4, clock=clock, wall_clock=clock)
    assert again.by_width() == [
        WidthTime(width=2, steps=2, seconds=4.0),
        WidthTime(width=4, steps=4, seconds=4.0),
    ]


def test_a_checkpoint_of_an_earlier_program_says_nothing_of_widths() -> None:
    clock = Clock()
    meter = Meter({"goodput_started_at": 0.0}, width=2, clock=clock, wall_clock=clock)
    assert meter.by_width() == []
