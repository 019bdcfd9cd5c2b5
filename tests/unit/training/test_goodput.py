import pytest

from training.goodput import Goodput


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
