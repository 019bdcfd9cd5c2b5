"""The small rows of queue and pool, derived from the job."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from trainmaster.core.jobs.attempts import CheckpointState, GpuWatch, Reason
from trainmaster.core.jobs.instances import Choice, Shape
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.planning.queue_entries import running_entry, waiting_entry
from trainmaster.core.planning.snapshot import ExpectedRun, RunningJob, WaitingJob

from tests.builders import NOON, B, attempt, job, live_job, minutes, of


def test_a_queue_entry_knows_what_ordering_and_placing_need() -> None:
    shapes = (Shape(vector=of(2), warm_key="k"), Shape(vector=of(1, B)))
    one = job(
        "a",
        team="vision",
        shapes=shapes,
        choice=Choice.SAGEMAKER,
        priority=3,
        score=77,
        ranked_by="age-1",
        ver=5,
        state=JobState.PREEMPTED,
        attempt=1,
        checkpointed=minutes(20),
        predicted=minutes(50),
        max_wait=minutes(90),
        waiting=Reason(code=ReasonCode.AHEAD, message="m"),
    )
    assert waiting_entry(one) == WaitingJob(
        name="a",
        ver=5,
        team="vision",
        state=JobState.PREEMPTED,
        shapes=shapes,
        choice=Choice.SAGEMAKER,
        priority=3,
        score=77,
        ranked_by="age-1",
        submitted_at=NOON,
        runs_at_most=minutes(40),
        max_wait=minutes(90),
        has_checkpoint=True,
        predicted=minutes(30),
        trained=minutes(20),
        not_before=None,
    )


def test_a_running_entry_knows_what_a_stop_would_cost_and_when_its_end_is_certain() -> None:
    live = attempt(
        "a",
        shape=Shape(vector=of(2), warm_key="k"),
        training_since=NOON + minutes(4),
        last_checkpoint=NOON + minutes(9),
        keep_alive=minutes(10),
        usd_per_hour=Decimal("2.505"),
        stop_sent=True,
    )
    one = live_job(
        "a", live=live, priority=3, score=77, ranked_by="age-1", preemptions=2, predicted=minutes(50)
    )
    assert running_entry(one) == RunningJob(
        name="a",
        ver=0,
        team="default",
        state=JobState.RUNNING,
        vector=of(2),
        priority=3,
        score=77,
        claimed_at=NOON,
        lease_until=NOON + minutes(5),
        training_job_name="a",
        known_to_sagemaker=True,
        training_since=NOON + minutes(4),
        stop_sent=True,
        preemptible=True,
        has_checkpoint=True,
        preemptions=2,
        expected=ExpectedRun(at_most=minutes(60), ends_by=NOON + minutes(74), predicted=minutes(50)),
        checkpoint=CheckpointState(last=NOON + minutes(9)),
        watch=GpuWatch(),
        cents_per_hour=250,
        warm_key="k",
        ranked_by="age-1",
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"keep_alive": minutes(1)}, "k", id="it leaves a warm pool behind"),
        pytest.param({"keep_alive": None}, None, id="without keep-alive it leaves none"),
        pytest.param({"keep_alive": timedelta()}, None, id="nor with one of nothing"),
    ],
)
def test_the_warm_key_a_running_job_would_leave(fields: dict[str, Any], expected: str | None) -> None:
    live = attempt(shape=Shape(vector=of(), warm_key="k"), **fields)
    assert running_entry(live_job(live=live)).warm_key == expected


def test_where_nothing_is_known_nothing_is_said() -> None:
    unknown = replace(attempt(training_job_arn=None))
    entry = running_entry(live_job(live=unknown, state=JobState.STARTING))
    assert (
        entry.known_to_sagemaker,
        entry.expected.ends_by,
        entry.cents_per_hour,
        entry.expected.predicted,
    ) == (
        False,
        None,
        None,
        None,
    )


def test_what_is_left_of_a_prediction_is_never_less_than_nothing() -> None:
    assert waiting_entry(job(checkpointed=minutes(50), predicted=minutes(20))).predicted == timedelta()
