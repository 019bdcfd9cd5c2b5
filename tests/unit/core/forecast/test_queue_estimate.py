"""Estimates of a whole queue: each job's start out of the same futures."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import count, pairwise
from typing import Any

import pytest
from trainmaster.core.forecast import queue_estimate
from trainmaster.core.forecast.queue_estimate import (
    QueueEstimate,
    WholeQueue,
    estimable,
    estimate_queue,
    is_too_much,
)
from trainmaster.core.forecast.start_estimate import MOST_RUNNING, MOST_SHAPES
from trainmaster.core.jobs.model import epoch_ms
from trainmaster.core.planning.snapshot import WaitingJob
from trainmaster.core.policy import Order

from tests.builders import NOON, A, minutes, pool, running, snapshot, waiting
from tests.unit.core.forecast.test_start_estimate import NO_PREEMPTION, history


def whole(*jobs: WaitingJob, **fields: Any) -> WholeQueue:
    values: dict[str, Any] = {
        "snapshot": snapshot(*jobs, running("runs"), last_end={A: NOON}),
        "waiting": jobs,
        "pool": pool(1, preemption=NO_PREEMPTION),
        "run_times": history(60, 60, 60),
        "now": NOON,
    }
    return WholeQueue(**values | fields)


def estimated(queue: WholeQueue, *, in_time: Callable[[], bool] = lambda: True) -> QueueEstimate:
    return estimate_queue(queue, in_time=in_time)


def after(calls: int) -> Callable[[], bool]:
    """Time is up after so many looks at the clock."""
    asked: Iterator[int] = count()
    return lambda: next(asked) < calls


def test_jobs_start_one_after_the_other_in_the_order_of_the_queue() -> None:
    jobs = tuple(waiting(f"j{number}", score=number) for number in range(4))
    found = estimated(whole(*jobs)).by_job
    assert list(found) == ["j0", "j1", "j2", "j3"]
    starts = [found[job.name].p50 for job in jobs]
    assert starts == sorted(starts)
    gaps = [late - early for early, late in pairwise(starts)]
    assert all(minutes(30) < gap < minutes(120) for gap in gaps), gaps
    assert all(one.p90 > one.p50 for one in found.values())


def test_what_fits_now_starts_with_the_next_pass() -> None:
    job = waiting("j")
    found = estimated(whole(job, snapshot=snapshot(job, last_end={A: NOON}), pool=pool(1)))
    assert (found.by_job["j"].p50, found.is_cut) == (NOON + minutes(1), False)


def test_a_job_that_never_fits_has_no_estimate_and_nothing_is_cut() -> None:
    small, large = waiting("small", score=1), waiting("large", score=2, n=9)
    found = estimated(whole(small, large))
    assert list(found.by_job) == ["small"]
    assert not found.is_cut


def test_without_time_for_one_future_the_first_jobs_have_estimates_and_the_others_are_cut() -> None:
    jobs = tuple(waiting(f"j{number}", score=number) for number in range(30))
    found = estimated(whole(*jobs), in_time=after(40))
    assert found.is_cut
    assert 0 < len(found.by_job) < 30
    assert list(found.by_job) == [job.name for job in jobs[: len(found.by_job)]]


def test_a_future_that_was_not_seen_to_its_end_does_not_count_beside_whole_ones() -> None:
    jobs = tuple(waiting(f"j{number}", score=number) for number in range(3))
    whole_ones = estimated(whole(*jobs), in_time=after(100))
    assert not whole_ones.is_cut
    assert list(whole_ones.by_job) == ["j0", "j1", "j2"]


def test_without_any_time_nothing_is_estimated() -> None:
    found = estimated(whole(waiting("j")), in_time=lambda: False)
    assert (found.by_job, found.is_cut) == ({}, True)


def test_equal_questions_have_equal_answers() -> None:
    jobs = tuple(waiting(f"j{number}", score=number) for number in range(4))
    assert estimated(whole(*jobs)) == estimated(whole(*jobs))


OVERLOADED = replace(pool(1), preemption=NO_PREEMPTION, order=Order(aging=None))


def overloaded(*jobs: WaitingJob) -> WholeQueue:
    """Three hours of work of a higher priority come every hour."""
    coming: dict[str, Any] = {"by_month": {"2026-11": {5: 150}}, "since": NOON - timedelta(days=2)}
    return whole(*jobs, pool=OVERLOADED, run_times=history(*[60.0] * 50, **coming))


@pytest.mark.parametrize(
    ("hours", "ahead"), [pytest.param(4, 0, id="within a day"), pytest.param(40, 100, id="in ten days")]
)
def test_who_starts_in_spite_of_them_is_estimated_with_all_that_come(
    hours: int, ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that come in so many hours go before the job in the middle: three times as many hours of work."""
    monkeypatch.setattr(queue_estimate, "MOST_DRAWS", 9)
    first = tuple(waiting(f"first-{number}", score=number - 10**15) for number in range(ahead))
    since = NOON + timedelta(hours=hours)
    middle = waiting("middle", score=epoch_ms(since) - OVERLOADED.boost_ms(5))
    found = estimated(overloaded(*first, middle, waiting("mine", minutes_ago=5))).by_job
    work = timedelta(hours=ahead + 3 * hours)
    assert 0.75 * work < found["middle"].p50 - NOON < 1.5 * work
    assert found["mine"].p50 > NOON


def test_an_overload_that_was_not_looked_through_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_estimate, "MOST_LOOKS", 1000)
    urgent = waiting("urgent", score=-(10**15))
    found = estimated(overloaded(urgent, waiting("mine", minutes_ago=5)))
    assert (list(found.by_job), found.is_cut) == (["urgent"], True)


def test_of_a_queue_of_too_many_shapes_the_first_are_estimated() -> None:
    jobs = tuple(waiting(f"j{number}", n=number + 1) for number in range(MOST_SHAPES + 1))
    behind = (*jobs, waiting("small", n=1))
    assert estimable(behind) == jobs[:MOST_SHAPES]
    assert estimable(jobs[:MOST_SHAPES]) == jobs[:MOST_SHAPES]


def test_where_thousands_run_no_future_is_begun() -> None:
    assert is_too_much(snapshot(*[running("r")] * (MOST_RUNNING + 1)))
    assert not is_too_much(snapshot(running("r")))


def test_an_estimate_is_after_now() -> None:
    jobs = tuple(waiting(f"j{number}", score=number) for number in range(3))
    assert all(one.p50 - NOON >= timedelta() for one in estimated(whole(*jobs)).by_job.values())
