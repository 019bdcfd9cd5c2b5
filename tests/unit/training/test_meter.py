"""Times are seconds of made-up clocks."""

from training.meter import Lap, Meter


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
        meter.waited(seconds / 10)
        _step(meter, clock, seconds)
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
