import pytest

from training.preemptible.checkpoint.schedule import SaveTimer, next_interval, seconds_needed


def test_the_measured_time_and_half_as_much_and_five_seconds() -> None:
    assert seconds_needed(4e9, bytes_per_second=1e9) == pytest.approx(11.0)


def test_an_unknown_disk_writes_a_hundred_megabytes_a_second() -> None:
    assert seconds_needed(1e9, bytes_per_second=None) == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("stall", "interval"),
    [
        pytest.param(0.0, 60.0, id="never more often than each minute"),
        pytest.param(3.0, 60.0, id="a short stall changes nothing"),
        pytest.param(6.0, 120.0, id="a long one is 5 % of the interval"),
    ],
)
def test_the_interval_follows_from_the_stall(stall: float, interval: float) -> None:
    assert next_interval(stall) == interval


def test_a_save_is_due_an_interval_after_the_one_before() -> None:
    timer = SaveTimer(1000.0)
    assert [timer.due(now) for now in (1059.9, 1060.0)] == [False, True]
    timer.saved(1070.0, stall_seconds=10.0)
    assert [timer.due(now) for now in (1130.0, 1269.9, 1270.0)] == [False, False, True]
