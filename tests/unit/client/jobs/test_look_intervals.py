"""How far apart two looks at a job are, by its distance from its turn."""

import pytest
from trainmaster_client.jobs.job_views import job_view
from trainmaster_client.jobs.look_intervals import look_interval, spread

DAY = 86_400.0


@pytest.mark.parametrize(
    ("job", "quiet", "expected"),
    [
        pytest.param({"state": "pending", "position": 1}, 0, 1, id="the first in turn may start at once"),
        pytest.param(
            {"state": "pending", "position": 1}, DAY, 10, id="within seconds, however long it waited"
        ),
        pytest.param({"state": "pending", "position": 6}, 0, 5, id="five starts take five seconds"),
        pytest.param({"state": "pending", "position": 6}, DAY, 10, id="still near"),
        pytest.param({"state": "pending", "position": 40}, 0, 39, id="farther"),
        pytest.param({"state": "pending", "position": 830}, 0, 60, id="a minute at most"),
        pytest.param({"state": "preempted", "position": 830}, 0, 60, id="one that waits to resume too"),
        pytest.param({"state": "pending", "ahead_at_least": 1000}, 0, 60, id="more than anybody counted"),
        pytest.param({"state": "pending"}, DAY, 10, id="a job between two tries has no position"),
        pytest.param({"state": "held"}, 100, 5, id="a person may have just held it by mistake"),
        pytest.param({"state": "held"}, DAY, 60, id="held for long"),
        pytest.param(
            {"state": "running", "position": None}, DAY, 10, id="one that runs may end at any moment"
        ),
    ],
)
def test_the_interval_grows_with_the_distance_from_the_turn(
    job: dict[str, object], quiet: float, expected: float
) -> None:
    assert look_interval(job_view(job), quiet=quiet) == expected


@pytest.mark.parametrize(
    ("position", "starts_in", "expected"),
    [
        pytest.param(500, 30.0, 1.5, id="a small job that is likely to start before those ahead"),
        pytest.param(500, -5.0, 1, id="due"),
        pytest.param(1, 10 * 3600.0, 60, id="the first, which waits for the end of a long job"),
    ],
)
def test_a_likely_start_says_more_than_a_position(position: int, starts_in: float, expected: float) -> None:
    job = job_view({"state": "pending", "position": position})
    assert look_interval(job, quiet=0, starts_in=starts_in) == expected


def test_whoever_asks_for_other_intervals_gets_them_by_the_same_rule() -> None:
    job = job_view({"state": "pending", "position": 5})
    assert look_interval(job, quiet=0, first=0.01) == 0.04
    assert look_interval(job, quiet=0, first=90) == 90


def test_chance_makes_an_interval_shorter_and_never_longer() -> None:
    assert [spread(60, chance=chance) for chance in (0, 0.5, 1)] == [60, 54, 48]


def test_830_processes_that_wait_ask_less_than_a_quarter_as_often_as_each_ten_seconds() -> None:
    jobs = [job_view({"state": "pending", "position": place}) for place in range(1, 831)]
    a_second = sum(1 / look_interval(job, quiet=DAY) for job in jobs)
    assert a_second < 83 / 4
