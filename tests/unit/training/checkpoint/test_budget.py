import pytest

from training.checkpoint.budget import seconds_needed


def test_the_measured_time_and_half_as_much_and_five_seconds() -> None:
    assert seconds_needed(4e9, bytes_per_second=1e9) == pytest.approx(11.0)


def test_an_unknown_disk_writes_a_hundred_megabytes_a_second() -> None:
    assert seconds_needed(1e9, bytes_per_second=None) == pytest.approx(20.0)
