from datetime import UTC, datetime

import pytest
from trainmaster_client.simulate.comparison.hours import bin_seconds, binned, by_hour_of_week


def test_an_interval_fills_its_bins_as_far_as_it_reaches_into_them() -> None:
    found = binned([(1800, 9000, 2.0)], bin_s=3600, length_s=10800)
    assert found == pytest.approx([1.0, 2.0, 1.0])


def test_a_bin_that_is_cut_short_has_the_mean_of_what_there_is() -> None:
    assert binned([(0, 5400, 1.0)], bin_s=3600, length_s=5400) == pytest.approx([1.0, 1.0])


def test_what_lies_outside_is_cut_off() -> None:
    assert binned([(-100, 3600, 1.0), (7000, 9000, 1.0)], bin_s=3600, length_s=7200) == pytest.approx(
        [1.0, 200 / 3600]
    )


@pytest.mark.parametrize(
    ("days", "hours"),
    [pytest.param(1, 1, id="a day"), pytest.param(90, 6, id="a quarter"), pytest.param(400, 48, id="a year")],
)
def test_a_curve_has_few_points(days: int, hours: int) -> None:
    assert bin_seconds(days * 86400) == hours * 3600


def test_hours_of_a_week_begin_on_monday_in_utc_and_average_over_weeks() -> None:
    begins = datetime(2026, 1, 6, 23, 30, tzinfo=UTC)  # a Tuesday
    week = 7 * 86400
    found = by_hour_of_week([(0, 1800, 1.0), (week, week + 900, 1.0)], begins=begins, length_s=week + 1800)
    assert found[24 + 23] == pytest.approx((1800 + 900) / 5400)  # half an hour, then the whole hour once more
    assert found[48] == pytest.approx(0.0)


def test_an_hour_that_the_period_does_not_have_is_none() -> None:
    begins = datetime(2026, 1, 5, tzinfo=UTC)
    found = by_hour_of_week([(0, 3600, 3.0)], begins=begins, length_s=3600)
    assert found[0] == pytest.approx(3.0)
    assert found[1] is None
