"""Stops of elastic jobs for another width, and what ends of their attempts teach."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.elastic_state import ElasticState
from trainmaster.core.jobs.instances import Shape
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.observations import Observation
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.jobs.run_time import attempt_run_time
from trainmaster.core.jobs.widths import Widths
from trainmaster.core.lifecycle import steps, width_changes
from trainmaster.core.lifecycle.settlement import settled

from tests.builders import NOON, attempt, live_job, minutes, of, seen, waiting
from tests.ends import end_of

URGENT = waiting("urgent", priority=9, n=2)
WIDTHS = Widths(counts=(1, 2, 4))


def elastic(instances: int = 4, **fields: Any) -> Job:
    """A job that trains at a width since noon and has saved after half an hour."""
    live = attempt(
        shape=Shape(vector=of(instances)),
        training_since=NOON,
        last_checkpoint=NOON + minutes(30),
        max_runtime=minutes(60),
    )
    values: dict[str, Any] = {"live": live, "widths": WIDTHS, "max_runtime": timedelta(hours=10)}
    return live_job(**values | fields)


def stopped(job: Job, observation: Observation | None = None, **end: Any) -> Job:
    """The job after its attempt stopped half an hour after noon, or as observed."""
    found = observation or seen(
        status="Stopped", secondary="Stopped", training_since=NOON, ended_at=NOON + minutes(30)
    )
    decided = end_of(job, found, now=NOON + minutes(31), **end)
    assert decided is not None
    return settled(job, decided, found, now=NOON + minutes(31)).after


def test_a_shrink_comes_back_at_once_and_counts_for_no_limit() -> None:
    after = stopped(width_changes.shrunk_for(elastic(), URGENT, width=2, now=NOON))
    assert (after.state, after.preemptions, after.not_before) == (JobState.PREEMPTED, 0, None)
    assert (after.attempt, after.stopped_for, after.spent.wasted) == (1, None, {})


def test_a_shrink_says_for_whom_and_what_stays() -> None:
    job = width_changes.shrunk_for(elastic(), URGENT, width=2, now=NOON)
    assert job.reason == Reason(
        code=ReasonCode.SHRINK, message="gave 2 of its 4 instances to urgent, and continues with 2"
    )
    assert job.live is not None
    assert job.live.preempted_for is not None


@pytest.mark.parametrize("state", [JobState.PREEMPTING, JobState.PREEMPTED])
def test_the_room_that_it_keeps_is_its_own_until_it_starts(state: JobState) -> None:
    job = width_changes.grown(elastic(2), "room for 4", width=4, now=NOON)
    after = job if state is JobState.PREEMPTING else stopped(job)
    assert after.state is state
    assert after.awaits_reservation
    claim = attempt(
        shape=Shape(vector=of(4)), number=1, max_runtime=attempt_run_time(after, Shape(vector=of(4)))
    )
    if state is JobState.PREEMPTED:
        started = steps.claim(after, claim, after_stops=True)
        assert not started.changes_width
        assert started.made_room_for is None, "no other job was stopped for it"


def test_half_the_time_at_half_the_width_is_used_up() -> None:
    after = stopped(width_changes.grown(elastic(2), "room for 4", width=4, now=NOON))
    assert after.checkpointed == minutes(15)
    left = timedelta(hours=10) - minutes(15)
    for width in WIDTHS.counts:
        assert attempt_run_time(after, Shape(vector=of(width))) == left * 4 / width


def test_time_that_was_over_counts_as_used_even_if_no_checkpoint_was_seen() -> None:
    job = elastic(2)
    blind = replace(job, live=replace(job.live_attempt, checkpoint=attempt().checkpoint))
    over = seen(
        status="Stopped", secondary="MaxRuntimeExceeded", training_since=NOON, ended_at=NOON + minutes(60)
    )
    after = stopped(blind, over)
    assert (after.state, after.checkpointed) == (JobState.PREEMPTED, minutes(30))


NO_CAPACITY = seen(
    status="Failed", secondary="Failed", failure_reason="CapacityError: none", training_since=None
)


def test_a_width_without_capacity_falls_back_to_a_narrower_one_once() -> None:
    after = stopped(elastic(4), NO_CAPACITY)
    assert [shape.instances for shape in after.shapes] == [2, 1]
    again = replace(
        after,
        state=JobState.RUNNING,
        not_before=None,
        live=attempt(shape=Shape(vector=of(2)), number=1),
    )
    assert [shape.instances for shape in stopped(again, NO_CAPACITY).shapes] == [2, 1], "once, then O1's rule"


def test_the_least_width_is_never_left() -> None:
    assert [shape.instances for shape in stopped(elastic(1), NO_CAPACITY).shapes] == [4, 2, 1]


def test_a_narrower_attempt_that_trains_frees_the_other_widths_again() -> None:
    job = elastic(2, elastic=ElasticState(narrower_than=4, fell_back=True))
    after = stopped(width_changes.shrunk_for(job, URGENT, width=1, now=NOON))
    assert [shape.instances for shape in after.shapes] == [4, 2, 1]


@pytest.mark.parametrize(
    ("width", "left", "widths"),
    [
        pytest.param(4, 2, [2, 1], id="what AWS leaves"),
        pytest.param(4, 3, [2, 1], id="the largest width within it"),
        pytest.param(4, 0, [1], id="less than its least width: that is what it waits for"),
        pytest.param(4, 9, [2, 1], id="figures that do not explain the refusal: at least narrower"),
        pytest.param(4, None, [2, 1], id="no figures: half as wide is tried"),
        pytest.param(1, None, [1], id="its least width is never left"),
    ],
)
def test_an_account_limit_narrows_the_next_attempt(width: int, left: int | None, widths: list[int]) -> None:
    assert [shape.instances for shape in refused_at(width, left).shapes] == widths


def refused_at(width: int, left: int | None, **fields: Any) -> Job:
    """The job as it waits once the account refused its start at a width."""
    job = elastic(width, state=JobState.STARTING, **fields)
    waits = replace(job.moved_to(JobState.PENDING), live=None)
    return width_changes.width_refused(job, waits, left=left)


@pytest.mark.parametrize(("training_since", "widths"), [(None, [2, 1]), (NOON, [4, 2, 1])])
def test_an_account_limit_is_forgotten_at_the_end_of_an_attempt_that_trained(
    training_since: datetime | None, widths: list[int]
) -> None:
    live = attempt(shape=Shape(vector=of(2)), training_since=training_since)
    job = elastic(2, live=live, elastic=ElasticState(account_width=2), state=JobState.PREEMPTING)
    ended = seen(
        status="Stopped",
        secondary="Stopped",
        training_since=training_since,
        ended_at=NOON + minutes(30),
    )
    assert [shape.instances for shape in stopped(job, ended).shapes] == widths


def test_an_account_limit_outlasts_a_change_of_width() -> None:
    job = elastic(2, elastic=ElasticState(account_width=2))
    after = stopped(width_changes.shrunk_for(job, URGENT, width=1, now=NOON))
    assert [shape.instances for shape in after.shapes] == [2, 1]


def test_rigid_jobs_learn_no_width_from_an_account_limit() -> None:
    job = live_job(state=JobState.STARTING)
    waits = replace(job.moved_to(JobState.PENDING), live=None)
    assert width_changes.width_refused(job, waits, left=1) is waits


def test_rigid_jobs_have_no_state_of_their_own() -> None:
    assert stopped(live_job(state=JobState.PREEMPTING)).elastic is None
