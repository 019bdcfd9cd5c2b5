"""How often spot instances were taken away recently."""

from datetime import date, timedelta

import pytest
from trainmaster.core.costs.spot_record import SpotDay, SpotRecord, record_of

TODAY = date(2026, 11, 2)


def ago(days: int, interruptions: int = 8, hours: int = 80) -> SpotDay:
    return SpotDay(
        day=TODAY - timedelta(days=days), interruptions=interruptions, instance_seconds=hours * 3600
    )


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        pytest.param([], SpotRecord(), id="nobody ran"),
        pytest.param([ago(0)], SpotRecord(interruptions=8, instance_hours=80), id="today counts whole"),
        pytest.param([ago(7)], SpotRecord(interruptions=4, instance_hours=40), id="a week ago half"),
        pytest.param([ago(14)], SpotRecord(interruptions=2, instance_hours=20), id="two weeks ago a quarter"),
        pytest.param([ago(31)], SpotRecord(), id="what is older than 30 days does not count"),
        pytest.param(
            [ago(7, interruptions=0), ago(0)],
            SpotRecord(interruptions=8, instance_hours=120),
            id="days add up",
        ),
    ],
)
def test_older_days_count_less(days: list[SpotDay], expected: SpotRecord) -> None:
    assert record_of(days, today=TODAY) == expected


def test_the_last_of_thirty_days_still_counts() -> None:
    assert record_of([ago(30)], today=TODAY).interruptions == pytest.approx(8 * 0.5 ** (30 / 7))


def test_what_a_job_has_to_expect() -> None:
    record = record_of([ago(0)], today=TODAY)
    assert record.per_instance_hour == 0.1
    assert record.expected(instances=4, runtime=timedelta(hours=5)) == 2.0
    assert SpotRecord().expected(instances=4, runtime=timedelta(hours=5)) is None
