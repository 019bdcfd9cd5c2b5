"""Whose a job is, which name comes next, and what becomes of the job that has it."""

import re
from typing import Any

import pytest
from trainmaster_client.jobs.job_views import job_view
from trainmaster_client.jobs.task_jobs import TASK_TAG, NextStep, TaskRun, next_step, tagged

JOB_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
TAG_VALUE = re.compile(r"[\w\s.:/=+@-]{0,256}")
OTHER_TAGS = [{"Key": "priority", "Value": "3"}]


def run(**changes: Any) -> TaskRun:
    values: dict[str, Any] = {"dag_id": "dag", "run_id": "manual__1", "task_id": "train", "map_index": -1}
    return TaskRun(**{**values, "cleared_tries": 0, **changes})


RUN = run()


@pytest.mark.parametrize(
    ("state", "submitted_by", "expected"),
    [
        pytest.param("pending", RUN, NextStep.ATTACH, id="its own that waits"),
        pytest.param("held", RUN, NextStep.ATTACH, id="its own that is held"),
        pytest.param("preempted", RUN, NextStep.ATTACH, id="its own that was preempted"),
        pytest.param("stopping", RUN, NextStep.ATTACH, id="its own whose end is near"),
        pytest.param("completed", RUN, NextStep.ATTACH, id="its own that completed"),
        pytest.param("failed", RUN, NextStep.OVER, id="its own that failed"),
        pytest.param("stopped", RUN, NextStep.OVER, id="its own that was stopped"),
        pytest.param(
            "completed",
            run(cleared_tries=2),
            NextStep.OVER,
            id="its own that completed before it was cleared",
        ),
        pytest.param(
            "running",
            run(cleared_tries=2),
            NextStep.ATTACH,
            id="its own that runs since before it was cleared",
        ),
        pytest.param("pending", run(run_id="manual__2"), NextStep.GIVE_WAY, id="of another run"),
        pytest.param("pending", run(task_id="other"), NextStep.GIVE_WAY, id="of another task"),
        pytest.param("pending", run(map_index=0), NextStep.GIVE_WAY, id="of another mapped task"),
        pytest.param("completed", None, NextStep.GIVE_WAY, id="of no task"),
    ],
)
def test_what_becomes_of_a_name_that_a_job_has(state, submitted_by, expected) -> None:
    request = {"Tags": OTHER_TAGS} if submitted_by is None else tagged({"Tags": OTHER_TAGS}, submitted_by)
    assert next_step(RUN, "job", job_view({"name": "job", "state": state}), request) is expected


def test_a_free_name_is_submitted() -> None:
    assert next_step(RUN, "job", None, {}) is NextStep.SUBMIT


def test_the_name_of_an_attempt_of_its_own_job_is_taken() -> None:
    found = job_view({"name": "job", "state": "running"})
    assert next_step(RUN, "job-a1", found, tagged({}, RUN)) is NextStep.GIVE_WAY


def test_the_tag_is_beside_those_of_the_dag_and_there_once() -> None:
    value = {"Key": TASK_TAG, "Value": "dag/manual__1/train/-1/0"}
    assert tagged({"Tags": OTHER_TAGS}, RUN) == {"Tags": [*OTHER_TAGS, value]}
    assert tagged(tagged({"A": 1}, run(task_id="b")), RUN) == {"A": 1, "Tags": [value]}


def test_the_first_name_is_the_dags_and_the_others_differ_by_task_and_number() -> None:
    assert RUN.job_name("train-2026", 0) == "train-2026"
    runs = [RUN, run(run_id="manual__2"), run(map_index=3), run(dag_id="d2")]
    names = [one.job_name("train-2026", number) for one in runs for number in (1, 2)]
    assert len(set(names)) == len(names)
    assert run(cleared_tries=3).job_name("x", 1) == RUN.job_name("x", 1), (
        "a task that was cleared knows its jobs"
    )


@pytest.mark.parametrize("wished", ["a", "n" * 63, "x" * 53 + "-----" + "y" * 5])
def test_each_name_is_one_that_sagemaker_takes(wished: str) -> None:
    for number in range(3):
        assert JOB_NAME.fullmatch(RUN.job_name(wished, number))


@pytest.mark.parametrize(
    "long", [run(run_id="r" * 250), run(dag_id="d" * 250), run(run_id="manual~1'"), run(task_id="t~" * 125)]
)
def test_each_tag_is_one_that_sagemaker_takes_and_tells_tasks_apart(long: TaskRun) -> None:
    assert TAG_VALUE.fullmatch(long.tag)
    other = TaskRun(
        dag_id=long.dag_id,
        run_id=long.run_id + "x",
        task_id=long.task_id,
        map_index=-1,
        cleared_tries=0,
    )
    job = job_view({"name": "job", "state": "running"})
    assert next_step(long, "job", job, tagged({}, long)) is NextStep.ATTACH
    assert next_step(other, "job", job, tagged({}, long)) is NextStep.GIVE_WAY
