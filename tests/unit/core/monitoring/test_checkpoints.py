"""How old a job's newest checkpoint is, and who looks when."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.observations import Newest
from trainmaster.core.monitoring.checkpoints import looked_at, looks_at, needs_look
from trainmaster.core.planning.snapshot import RunningJob

from tests.builders import NOON, attempt, live_job, minutes, running

TWO_HOURS = timedelta(hours=2)
LONG_AGO = NOON - timedelta(hours=3)


def trains(since: datetime = LONG_AGO, *, state: JobState = JobState.RUNNING, **live: Any) -> Job:
    return live_job(state=state, live=attempt(training_since=since, secondary_status="Training", **live))


def after(job: Job, newest: Newest) -> Attempt:
    live = looked_at(job, newest, max_age=TWO_HOURS, now=NOON).live
    assert live is not None
    return live


def at(minutes_ago: float) -> Newest:
    return Newest(written_at=NOON - minutes(minutes_ago))


def test_a_job_that_has_not_saved_for_too_long_is_overdue() -> None:
    live = after(trains(), at(121))
    assert live.checkpoint.overdue
    assert live.checkpoint.last == NOON - minutes(121)


def test_a_job_that_has_never_saved_is_overdue_since_the_start_of_training() -> None:
    assert after(trains(), Newest()).checkpoint.overdue
    assert not after(trains(NOON - minutes(119)), Newest()).checkpoint.overdue


def test_an_old_checkpoint_of_an_earlier_attempt_is_not_held_against_a_young_one() -> None:
    assert not after(trains(NOON - minutes(10)), at(600)).checkpoint.overdue


def test_a_newer_checkpoint_takes_it_back() -> None:
    assert not after(trains(checkpoint_overdue=True), at(5)).checkpoint.overdue


def test_what_cannot_be_read_is_no_claim_either_way() -> None:
    unknown = Newest(is_certain=False)
    assert not after(trains(), unknown).checkpoint.overdue
    assert after(trains(checkpoint_overdue=True), unknown).checkpoint.overdue


def test_an_age_that_is_only_a_lower_bound_is_said_to_be_one() -> None:
    found = Newest(written_at=NOON - minutes(5), is_certain=False)
    assert after(trains(), found).checkpoint.uncertain_since == NOON
    since = trains(checkpoint_uncertain_since=NOON - minutes(9))
    assert after(since, found).checkpoint.uncertain_since == NOON - minutes(9)
    assert after(since, at(4)).checkpoint.uncertain_since is None


def test_what_says_less_than_is_known_takes_nothing_back() -> None:
    known = trains(last_checkpoint=NOON - minutes(5))
    older = Newest(written_at=NOON - minutes(50), is_certain=False)
    assert after(known, older).checkpoint.uncertain_since is None


def test_a_listing_that_goes_on_can_clear_but_not_accuse() -> None:
    old = Newest(written_at=NOON - minutes(200), is_certain=False)
    assert not after(trains(), old).checkpoint.overdue
    young = Newest(written_at=NOON - minutes(5), is_certain=False)
    assert not after(trains(checkpoint_overdue=True), young).checkpoint.overdue


def test_a_job_that_is_being_stopped_is_not_accused() -> None:
    assert not after(trains(state=JobState.PREEMPTING), Newest()).checkpoint.overdue


# ---- who looks when


def entry(**fields: Any) -> RunningJob:
    return running("a", **{"minutes_ago": 300, "has_checkpoint": True} | fields)


def turn() -> datetime:
    """The minute of five in which it is this job's turn."""
    return next(NOON + minutes(one) for one in range(5) if looks_at("a", now=NOON + minutes(one)))


@pytest.mark.parametrize(
    ("job", "others_wait", "looks"),
    [
        pytest.param(entry(), False, True, id="never seen one, and trains for long"),
        pytest.param(entry(minutes_ago=60), False, False, id="trains for less than the age allowed"),
        pytest.param(entry(minutes_ago=60), True, True, id="jobs wait, and a preemption would ask"),
        pytest.param(entry(last_checkpoint=NOON - minutes(30)), False, False, id="the known one is young"),
        pytest.param(entry(last_checkpoint=NOON - minutes(200)), False, True, id="the known one is old"),
        pytest.param(entry(has_checkpoint=False), True, False, id="it has no CheckpointConfig"),
        pytest.param(entry(training_since=None), True, False, id="it does not train yet"),
    ],
)
def test_checkpoints_are_looked_for_where_somebody_wants_to_know(
    job: RunningJob, *, others_wait: bool, looks: bool
) -> None:
    assert needs_look(job, others_wait=others_wait, max_age=TWO_HOURS, now=turn()) is looks


def test_each_job_is_looked_at_once_in_five_minutes() -> None:
    for name in ("a", "b", "train-17"):
        turns = [looks_at(name, now=NOON + minutes(number)) for number in range(10)]
        assert sum(turns) == 2
        assert turns[:5] == turns[5:]
