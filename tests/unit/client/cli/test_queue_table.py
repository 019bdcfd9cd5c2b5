"""The queue on a wide and on a narrow screen."""

from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console
from trainmaster_client.cli.queue_table import age, print_queue
from trainmaster_client.jobs.job_views import JobView, job_view

NEEDS = "capacity: needs [2] ml.p5.48xlarge, 1 is free"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
JOBS = [
    job_view(
        {
            "name": "job1",
            "team": "vision",
            "pool": "p5",
            "state": "running",
            "priority": 1,
            "instances": {"ml.p5.48xlarge": 1},
            "submitted_at": "2026-11-21T11:00:00Z",
            "attempt": 1,
        }
    ),
    job_view(
        {
            "name": None,
            "team": "speech",
            "pool": "p5",
            "state": "pending",
            "priority": 3,
            "instances": {"ml.p5.48xlarge": 2},
            "position": 1,
        }
    ),
    job_view(
        {
            "name": "job3",
            "team": "vision",
            "pool": "p5",
            "state": "pending",
            "priority": 0,
            "instances": {"ml.p5.48xlarge": 2},
            "capacity_type": "spot",
            "submitted_at": "2026-11-21T11:58:30Z",
            "position": None,
            "ahead_at_least": 1000,
            "attempt": 0,
            "waiting": {"code": "capacity", "message": "needs [2] ml.p5.48xlarge, 1 is free"},
        }
    ),
]


def lines(jobs: list[JobView], width: int) -> list[str]:
    console = Console(width=width, no_color=True, markup=False, highlight=False)
    with console.capture() as capture:
        print_queue(jobs, now=NOON, to=console)
    return [line.rstrip() for line in capture.get().splitlines()]


def test_a_wide_screen_shows_a_line_a_job() -> None:
    assert lines(JOBS, 200) == [
        "JOB             TEAM    POOL  STATE    INSTANCES               PRIO    POS  ATTEMPT    AGE  REASON",
        "job1            vision  p5    running  1x ml.p5.48xlarge          1      -        1  1h00m",
        "(other team's)  speech  p5    pending  2x ml.p5.48xlarge          3      1        -      -",
        "job3            vision  p5    pending  2x ml.p5.48xlarge spot     0  >1000        0  1m30s  "
        + NEEDS,
    ]


def test_sixty_columns_show_the_same_without_a_line_that_is_longer() -> None:
    shown = lines(JOBS, 60)
    assert max(len(line) for line in shown) <= 60
    assert shown == [
        "job1",
        "    running, priority 1, 1x ml.p5.48xlarge, attempt 1, 1h00m",
        "(other team's) speech",
        "    pending, position 1, priority 3, 2x ml.p5.48xlarge",
        "job3",
        "    pending, position >1000, priority 0, 2x ml.p5.48xlarge",
        "    spot, 1m30s, capacity: needs [2] ml.p5.48xlarge, 1 is",
        "    free",
    ]


def test_an_empty_queue_says_so() -> None:
    assert lines([], 60) == ["No jobs."]


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        (timedelta(seconds=40), "40s"),
        (timedelta(minutes=5, seconds=3), "5m03s"),
        (timedelta(hours=2, minutes=5), "2h05m"),
        (timedelta(days=3, hours=4, minutes=5), "3d04h"),
        (timedelta(seconds=-5), "0s"),
    ],
)
def test_an_age_has_two_units(since: timedelta, expected: str) -> None:
    assert age(NOON - since, NOON) == expected


def test_an_age_nobody_may_know_is_a_dash() -> None:
    assert age(None, NOON) == "-"
