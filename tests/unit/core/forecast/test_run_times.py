"""What is remembered of completed jobs."""

from datetime import UTC, datetime, timedelta

import pytest
from trainmaster.core.durations.histogram import bucket
from trainmaster.core.forecast.run_times import Run, RunTimes, month_before

from tests.builders import NOON, minutes

HOUR = timedelta(hours=1)


def run(length: float, *, priority: int = 0, at: datetime = NOON, limit: timedelta = HOUR) -> Run:
    return Run(trained=minutes(length), limit=limit, priority=priority, ended_at=at)


def test_the_first_job_stands_for_both() -> None:
    found = RunTimes.of(run(10))
    assert (found.last, found.previous, found.since) == (minutes(10), minutes(10), NOON)
    assert found.counts == {bucket(HOUR): {bucket(minutes(10)): 1}}
    assert found.by_month == {"2026-11": {0: 1}}


def test_the_prediction_is_the_mean_of_the_last_two() -> None:
    assert RunTimes.of(run(50)).after(run(10)).after(run(20)).predicted == minutes(15)


def test_jobs_are_counted_by_limit_then_by_length() -> None:
    found = RunTimes.of(run(10)).after(run(10)).after(run(10, limit=timedelta(days=1)))
    assert found.counts == {23: {18: 2}, 32: {18: 1}}
    assert found.all_counts == {18: 3}


def test_months_before_the_last_one_are_forgotten() -> None:
    later = NOON + timedelta(days=31)
    found = RunTimes.of(run(1, at=NOON)).after(run(1, at=later, priority=5)).after(run(1, at=later))
    assert found.by_month == {"2026-11": {0: 1}, "2026-12": {5: 1, 0: 1}}
    assert found.after(run(1, at=NOON + timedelta(days=62))).by_month == {
        "2026-12": {5: 1, 0: 1},
        "2027-01": {0: 1},
    }


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        pytest.param(datetime(2026, 1, 31, tzinfo=UTC), "2025-12", id="the year before"),
        pytest.param(datetime(2026, 3, 31, tzinfo=UTC), "2026-02", id="a shorter month"),
    ],
)
def test_the_month_before(instant: datetime, expected: str) -> None:
    assert month_before(instant) == expected
