"""What the clock makes of a training plan, and how long a job waits for one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.sagemaker.training_plans import TrainingPlan, Window, active_until

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def window(begin: float, end: float) -> Window:
    """A window between two hours after noon."""
    return Window(begin=NOON + begin * HOUR, end=NOON + end * HOUR)


def plan(*windows: Window) -> TrainingPlan:
    return TrainingPlan(
        name="spring",
        arn="arn:aws:sagemaker:us-east-1:123456789012:training-plan/spring",
        instance_type="ml.p5.48xlarge",
        instances=3,
        windows=windows or (window(1, 5), window(9, 11)),
        fee_usd=900.0,
        paid_at=NOON,
    )


@pytest.mark.parametrize(
    ("hours", "status"),
    [
        pytest.param(-1, "Pending", id="before it is paid"),
        pytest.param(0, "Scheduled", id="before the first window"),
        pytest.param(1, "Active", id="as a window opens"),
        pytest.param(4.9, "Active", id="in the last half hour"),
        pytest.param(5, "Scheduled", id="between two windows"),
        pytest.param(9, "Active", id="in the second window"),
        pytest.param(11, "Expired", id="at the end"),
    ],
)
def test_its_status_follows_the_clock(hours, status):
    assert plan().status(NOON + hours * HOUR) == status


def test_a_failed_plan_is_failed_whatever_the_time_and_gives_nothing():
    failed = replace(plan(), failure="no payment")

    assert {failed.status(NOON + hours * HOUR) for hours in (-1, 0, 2, 12)} == {"Failed"}
    assert failed.healthy(NOON + 2 * HOUR) == 0


@pytest.mark.parametrize(
    ("now", "healthy"),
    [
        pytest.param(NOON + 59 * MINUTE, 0, id="before the window"),
        pytest.param(NOON + HOUR, 2, id="as it opens"),
        pytest.param(NOON + 4 * HOUR + 29 * MINUTE, 2, id="31 minutes before the end"),
        pytest.param(NOON + 4 * HOUR + 30 * MINUTE, 0, id="30 minutes before the end"),
        pytest.param(NOON + 6 * HOUR, 0, id="between windows"),
    ],
)
def test_healthy_instances_can_be_started_until_30_minutes_before_the_end(now, healthy):
    assert replace(plan(), unhealthy=1).healthy(now) == healthy


def test_a_window_shorter_than_half_an_hour_is_of_no_use():
    short = plan(window(1, 1.4))

    assert all(short.usable(NOON + minutes * MINUTE) is None for minutes in range(120))
    assert short.windows[0].closes == short.windows[0].begin


def test_an_extension_moves_the_end_of_the_last_window_alone():
    extended = plan().extended_to(NOON + 30 * HOUR)

    assert [one.end for one in extended.windows] == [NOON + 5 * HOUR, NOON + 30 * HOUR]
    assert extended.status(NOON + 12 * HOUR) == "Active"


@pytest.mark.parametrize(
    ("since", "patience", "until"),
    [
        pytest.param(0, 2, 3, id="time before the window does not count"),
        pytest.param(2, 2, 4, id="from within it"),
        pytest.param(4, 2, 10, id="time between windows does not count"),
        pytest.param(6, 2, 11, id="to the end of the last"),
        pytest.param(6, 2.1, None, id="more than there is"),
        pytest.param(12, 1, None, id="after the last"),
    ],
)
def test_only_time_in_windows_counts_as_waiting(since, patience, until):
    expected = None if until is None else NOON + until * HOUR

    assert active_until(plan().windows, NOON + since * HOUR, patience * HOUR) == expected


@given(since=st.integers(0, 900), patience=st.integers(1, 500))
def test_the_time_waited_is_the_patience(since, patience):
    windows, begin = plan().windows, NOON + since * MINUTE
    until = active_until(windows, begin, patience * MINUTE)

    waited = sum(
        (max(min(one.end, until or one.end) - max(one.begin, begin), timedelta()) for one in windows),
        timedelta(),
    )
    assert waited == patience * MINUTE if until is not None else waited < patience * MINUTE
