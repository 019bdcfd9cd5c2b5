"""Steps of a job's life."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster import lifecycle
from trainmaster.jobs import Job, JobState, Reason

from tests.builders import NOON, attempt, job, live_job, minutes, seen, waiting

S = JobState
STOPPED = seen(status="Stopped", secondary="Stopped", ended_at=NOON + minutes(40))


def test_a_preempted_job_waits_with_its_next_attempt_and_keeps_its_turn() -> None:
    victim = lifecycle.preempted_for(live_job(score=77), waiting("urgent"))
    change = lifecycle.observed(victim, STOPPED, now=NOON + minutes(41))
    assert change is not None
    after = change.after
    assert (after.state, after.attempt, after.preemptions, after.live, after.score) == (
        S.PREEMPTED,
        1,
        1,
        None,
        77,
    )
    assert change.ended is not None
    assert change.ended.reason == Reason(code="preemption", message="made room for urgent")


def test_training_without_checkpoints_is_counted_as_wasted_by_the_preemption() -> None:
    live = attempt(training_since=NOON)
    victim = live_job(state=S.PREEMPTING, live=live, has_checkpoint=False)
    change = lifecycle.observed(victim, replace(STOPPED, training_since=NOON), now=NOON + minutes(41))
    assert change is not None
    assert change.after.wasted == {"preemption": 40 * 60}


def test_no_instances_means_a_new_attempt_after_a_back_off_that_is_not_charged() -> None:
    lost = seen(status="Failed", secondary="Failed", failure_reason="CapacityError: none")
    change = lifecycle.observed(live_job(state=S.STARTING), lost, now=NOON)
    assert change is not None
    after = change.after
    assert (after.state, after.attempt, after.preemptions) == (S.PENDING, 1, 0)
    assert after.not_before is not None
    assert NOON < after.not_before <= NOON + lifecycle.BACKOFF_MAX


def test_a_start_put_off_keeps_its_attempt_number() -> None:
    reason = Reason(code="unavailable", message="ThrottlingException")
    after = lifecycle.put_back(live_job(state=S.STARTING, attempt=3), reason=reason, now=NOON)
    assert (after.state, after.attempt, after.live, after.is_parked) == (S.PENDING, 3, None, True)


def test_the_third_error_that_nobody_knows_ends_the_job() -> None:
    puzzled = live_job(state=S.STARTING)
    for expected in (S.PENDING, S.PENDING, S.FAILED):
        after = lifecycle.puzzled(replace(puzzled, state=S.STARTING), message="Odd", now=NOON)
        assert after.state is expected
        puzzled = replace(after, live=attempt())
    assert puzzled.reason == Reason(code="failed-to-start", message="Odd")


@pytest.mark.parametrize(
    ("before", "state"),
    [
        pytest.param(job(), S.STOPPED, id="waiting: over at once"),
        pytest.param(job(state=S.PREEMPTED, attempt=1), S.STOPPED, id="preempted: over at once"),
        pytest.param(live_job(state=S.STARTING), S.STOPPING, id="starting: asked to stop"),
        pytest.param(live_job(), S.STOPPING, id="running: asked to stop"),
        pytest.param(live_job(state=S.PREEMPTING), S.STOPPING, id="preempting: does not come back"),
    ],
)
def test_a_cancel(before: Job, state: JobState) -> None:
    after = lifecycle.cancelled(before, reason=Reason(code="stopped-by-user", message="ada"), now=NOON)
    assert after.state is state
    assert (after.ended_at is not None) == (state is S.STOPPED)


def test_news_of_a_claimed_job_makes_it_running_once() -> None:
    claimed = live_job(state=S.STARTING, live=attempt(training_job_arn=None), started_at=None)
    change = lifecycle.observed(claimed, seen(training_since=NOON), now=NOON)
    assert change is not None
    assert change.after.state is S.RUNNING
    assert lifecycle.observed(change.after, seen(training_since=NOON), now=NOON + minutes(1)) is None


def test_on_demand_instances_are_certain_to_be_free_once_training_began() -> None:
    assert lifecycle.ends_by(live_job()) is None
    training = live_job(live=attempt(training_since=NOON, max_runtime=timedelta(hours=2)))
    assert lifecycle.ends_by(training) == NOON + timedelta(hours=2, minutes=10)


def test_spot_instances_are_certain_to_be_free_a_max_wait_after_creation() -> None:
    assert lifecycle.ends_by(live_job(live=attempt(max_wait=timedelta(hours=5)))) == NOON + timedelta(
        hours=5, minutes=10
    )


@given(st.text(min_size=1, max_size=26), st.integers(0, 100))
def test_a_back_off_is_bounded_and_repeatable(entry_id: str, refused: int) -> None:
    wait = lifecycle.backoff(entry_id, refused)
    assert timedelta(seconds=1) <= wait <= lifecycle.BACKOFF_MAX
    assert wait == lifecycle.backoff(entry_id, refused)
