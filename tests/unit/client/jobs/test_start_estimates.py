"""Likely starts of waiting jobs: asked pool by pool, and left out where the stack does not say."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from trainmaster_client.errors import ApiUnreachableError, UnexpectedAnswerError
from trainmaster_client.jobs.job_views import JobView, job_view
from trainmaster_client.jobs.start_estimates import (
    MOST_POOLS,
    StartEstimate,
    pools_to_ask,
    start_estimates,
    start_of,
)

P50, P90 = "2026-11-21T12:40:00Z", "2026-11-21T14:00:00Z"
START = StartEstimate(
    p50=datetime(2026, 11, 21, 12, 40, tzinfo=UTC), p90=datetime(2026, 11, 21, 14, tzinfo=UTC)
)


class Api:
    def __init__(self, answer: Mapping[str, Any] | Exception) -> None:
        self.answer = answer
        self.asked: list[str | None] = []

    def estimates(self, *, pool: str | None = None) -> Mapping[str, Any]:
        self.asked.append(pool)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def waiting(name: str | None, position: int | None, pool: str = "p5") -> JobView:
    return job_view({"name": name, "pool": pool, "state": "pending", "position": position})


def test_own_jobs_are_found_by_name_and_others_by_position() -> None:
    entries = [
        {"name": "mine", "position": 7, "p50": P50, "p90": P90},
        {"name": None, "position": 2, "p50": P50, "p90": P90},
        {"name": "unknown", "position": 3, "p50": None, "p90": None},
    ]
    found = start_estimates(Api({"estimates": entries}), ["p5"])
    assert found is not None
    assert start_of(waiting("mine", 1), found) == START
    assert start_of(waiting(None, 2), found) == START
    assert start_of(waiting(None, 3), found) is None
    assert start_of(waiting("mine", 1, pool="g5"), found) is None


def test_a_job_that_runs_has_no_start_ahead() -> None:
    assert start_of(job_view({"name": "a", "pool": "p5", "state": "running"}), {("p5", "a"): START}) is None


def test_each_pool_in_which_a_job_waits_is_asked_once_and_only_the_first_few() -> None:
    jobs = [waiting("a", 1, f"pool-{number % 9}") for number in range(20)]
    running = job_view({"name": "b", "pool": "g5", "state": "running"})
    pools = pools_to_ask([running, *jobs])
    assert pools == [f"pool-{number}" for number in range(MOST_POOLS)]
    api = Api({"estimates": []})
    assert start_estimates(api, pools) == {}
    assert api.asked == pools


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(UnexpectedAnswerError("https://api", what="no such route"), id="older stack"),
        pytest.param(ApiUnreachableError("https://api", why="away."), id="away"),
        pytest.param({"estimates": [{"name": "a"} | {"p50": "soon", "p90": "later"}]}, id="other times"),
        pytest.param({"estimates": [None]}, id="other entries"),
    ],
)
def test_a_stack_that_estimates_nothing_is_no_error(answer: Any) -> None:
    assert start_estimates(Api(answer), ["p5"]) is None
