"""What an array says about its tasks, and what it decides."""

from dataclasses import replace

import pytest
from trainmaster.core.arrays.model import Array, ArrayState, TaskEnds, TaskJobs
from trainmaster.core.arrays.steps import AT_ONCE, end_text, ended_array, equal_failures, expanded, next_tasks
from trainmaster.core.arrays.tasks import (
    array_entry_id,
    parse_task_name,
    position_of,
    task_entry_id,
    task_job,
    task_request,
)
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.index_sets import all_bits, bits_of
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.reason_codes import ReasonCode

from tests.arrays import array_of
from tests.builders import NOON, job


def test_tasks_add_up_wherever_they_are():
    array = array_of(
        unexpanded=bits_of([6, 7]),
        jobs=TaskJobs(waiting=1, held=1, running=1),
        ends=TaskEnds(completed=0b1, failed=0b10, stopped=0b100),
    )
    counts = array.counts

    assert (counts.waiting, counts.held, counts.running) == (3, 1, 1)
    assert (counts.completed, counts.failed, counts.stopped) == (1, 1, 1)
    assert counts.total == 8 == sum(getattr(counts, name) for name in counts.__slots__ if name != "total")
    assert array.existing == bits_of([3, 4, 5])


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, ArrayState.PENDING),
        ({"held": True}, ArrayState.HELD),
        ({"jobs": TaskJobs(running=1), "held": True}, ArrayState.RUNNING),
        ({"unexpanded": 1, "ends": TaskEnds(failed=2)}, ArrayState.RUNNING),
        ({"unexpanded": 0, "ends": TaskEnds(completed=255)}, ArrayState.COMPLETED),
        ({"unexpanded": 0, "ends": TaskEnds(completed=254, failed=1)}, ArrayState.FAILED),
        ({"unexpanded": 0, "ends": TaskEnds(completed=254, stopped=1)}, ArrayState.FAILED),
        (
            {"unexpanded": 0, "ends": TaskEnds(completed=254, stopped=1), "cancelled": True},
            ArrayState.STOPPED,
        ),
    ],
)
def test_the_state_follows_from_the_tasks(fields, state):
    assert array_of(**fields).state is state


def test_an_array_that_ended_for_another_job_is_stopped():
    reason = Reason(code=ReasonCode.DEPENDENCY, message="x")
    template = replace(job("sweep"), state=JobState.STOPPED, reason=reason)
    array = array_of(template=template, unexpanded=0, ends=TaskEnds(stopped=255))

    assert array.state is ArrayState.STOPPED


def test_few_tasks_are_jobs_at_any_time():
    array = array_of(indices=tuple(range(100)))
    waits = 0
    while chosen := next_tasks(array):
        assert len(chosen) <= AT_ONCE
        array = expanded(array, chosen)
        waits += len(chosen)

    assert waits == 32 == array.jobs.waiting
    assert array.counts.waiting == 100


def test_a_throttle_counts_whatever_has_begun():
    array = array_of(at_most=3, jobs=TaskJobs(waiting=1, running=1))

    assert next_tasks(array) == (0,)
    assert next_tasks(replace(array, at_most=2)) == ()
    assert next_tasks(replace(array, held=True)) == ()


def recent(*ends: str) -> Array:
    return array_of(indices=tuple(range(40)), recent=ends, stop_after_failures=3)


def test_equal_failures_in_a_row_hold_an_array_none_of_which_completed():
    image = ReasonCode.IMAGE.value

    assert equal_failures(recent(image, image, image)) == image
    assert equal_failures(recent("disk-full", image, image, image)) == image
    assert equal_failures(recent(image, image)) is None
    assert equal_failures(recent(image, "", image, image)) is None
    assert equal_failures(recent("", "", "")) is None
    assert equal_failures(replace(recent(image, image, image), ends=TaskEnds(completed=1))) is None
    assert equal_failures(replace(recent(image, image, image), held=True)) is None
    assert equal_failures(replace(recent(image, image, image), stop_after_failures=0)) is None


def test_names_of_tasks_have_no_leading_zeros():
    name = parse_task_name("a-b-7")

    assert name is not None
    assert (name.array, name.index) == ("a-b", 7)
    assert parse_task_name("s-0") is not None
    for other in ("s-03", "s", "s-", "s-123456", "-7"):
        assert parse_task_name(other) is None


def test_entry_ids_of_tasks_are_known_before_they_are_jobs():
    array = array_entry_id("01J00000000000000000000000")
    ids = {task_entry_id(array, index) for index in range(100_000)}

    assert len(ids | {array}) == 100_001
    assert {len(entry_id) for entry_id in ids} == {26}


def test_a_task_has_its_own_folder_values_and_environment():
    template = job("sweep", checkpoint_uri="s3://bucket/runs/")
    array = array_of(template=template, indices=(3, 5), folder="again1", awaited=frozenset({1}))
    body = {
        "TrainingJobName": "sweep",
        "HyperParameters": {"lr": "1", "seed": "0"},
        "Environment": {"A": "b"},
        "CheckpointConfig": {"S3Uri": "s3://bucket/runs/", "LocalPath": "/opt/x"},
        "Tags": [{"Key": "trainmaster:array", "Value": "3,5"}, {"Key": "cost", "Value": "c"}],
    }

    task, request = task_job(array, 1), task_request(body, {"lr": "2"}, array, 1)

    assert task.spec.array is not None
    assert (task.name, task.spec.array.index, task.spec.array.position) == ("sweep-5", 5, 1)
    assert task.spec.checkpoint_uri == "s3://bucket/runs/5/again1"
    assert task.has_dependents is True
    assert task_job(array, 0).has_dependents is None
    assert request["TrainingJobName"] == "sweep-5"
    assert request["CheckpointConfig"] == {"S3Uri": "s3://bucket/runs/5/again1", "LocalPath": "/opt/x"}
    assert request["HyperParameters"] == {"lr": "2", "seed": "0"}
    assert request["Tags"] == [{"Key": "cost", "Value": "c"}]
    assert request["Environment"] == {
        "A": "b",
        "TRAINMASTER_ARRAY_JOB": "sweep",
        "TRAINMASTER_ARRAY_INDEX": "5",
        "TRAINMASTER_ARRAY_COUNT": "2",
        "TRAINMASTER_ARRAY_MIN": "3",
        "TRAINMASTER_ARRAY_MAX": "5",
    }


def test_positions_of_indices():
    array = array_of(indices=(1, 3, 9))

    assert [position_of(array, index) for index in (0, 1, 3, 9, 10)] == [None, 0, 1, 2, None]


def test_the_end_names_the_tasks():
    array = array_of(
        indices=tuple(range(64)), unexpanded=0, ends=TaskEnds(completed=all_bits(64) - 384, failed=384)
    )

    assert end_text(array) == "failed: 2 of 64 tasks failed: 7, 8"
    assert ended_array(replace(array, ended_at=NOON)).root.name == "sweep"
