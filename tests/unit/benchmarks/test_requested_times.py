"""The requested time of a job does not tell how long it runs."""

import math
import random
from statistics import correlation

import pytest

from benchmarks.replay import made_up_account
from benchmarks.replay.jobs import DAY_S
from benchmarks.replay.requested_times import MOST_S, REQUESTS, drawn_s, requested_s

JOBS = 20_000


def durations_s(*, most_s: float) -> list[float]:
    chance = random.Random(7)
    return [min(chance.lognormvariate(math.log(1800), 2), most_s) for _ in range(JOBS)]


def test_requests_of_jobs_below_a_day_do_not_depend_on_how_long_they_run() -> None:
    durations = durations_s(most_s=DAY_S - 1)
    requests = [requested_s(1, f"j{number}", duration_s=s) for number, s in enumerate(durations)]
    assert abs(correlation(durations, requests)) < 3 / math.sqrt(JOBS)
    assert abs(correlation([math.log(s) for s in durations], requests)) < 3 / math.sqrt(JOBS)
    assert requests == [requested_s(1, f"j{number}", duration_s=1) for number in range(JOBS)]


def test_draws_have_the_shares_of_what_people_write() -> None:
    drawn = [drawn_s(1, f"j{number}") for number in range(JOBS)]
    shares = [sum(request <= seconds for request in drawn) / JOBS for _, seconds in REQUESTS]
    assert shares == pytest.approx([share for share, _ in REQUESTS], abs=0.015)


def test_draws_are_the_same_for_the_same_seed_and_others_for_another() -> None:
    first, again, other = ([drawn_s(seed, f"j{number}") for number in range(200)] for seed in (1, 1, 2))
    assert first == again != other


def test_no_job_outlasts_its_request() -> None:
    for number, duration_s in enumerate(durations_s(most_s=5 * DAY_S)):
        drawn = drawn_s(1, f"j{number}")
        request_s = requested_s(1, f"j{number}", duration_s=duration_s)
        assert request_s > duration_s
        assert request_s == (drawn if duration_s < drawn else MOST_S)


@pytest.mark.parametrize(
    ("told_s", "expected"),
    [
        pytest.param(7200, 7200, id="kept"),
        pytest.param(3600, MOST_S, id="the job ran as long as that"),
        pytest.param(10 * MOST_S, MOST_S, id="more than SageMaker allows"),
    ],
)
def test_a_request_that_the_trace_tells_is_kept_unless_the_job_outlasted_it(
    told_s: float, expected: int
) -> None:
    assert requested_s(1, "a", duration_s=3600, told_s=told_s) == expected


def test_the_made_up_account_tells_no_request_that_follows_its_run_times() -> None:
    rows = made_up_account.rows()
    assert not any("requested_s" in row for row in rows)
    below = [(row["job_id"], s) for row in rows if (s := float(row["duration_s"])) < DAY_S]
    requests = [requested_s(1, job_id, duration_s=duration_s) for job_id, duration_s in below]
    logs = [math.log(duration_s) for _, duration_s in below]
    assert abs(correlation(logs, requests)) < 3 / math.sqrt(len(rows))
