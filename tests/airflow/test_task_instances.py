"""L5: our operator in task instances: a database, tries, a clearing, a trigger between two workers."""

import asyncio
import datetime as dt
import json
from collections.abc import Iterator
from typing import Any

import pytest
from airflow.models.dag import DAG
from airflow.models.serialized_dag import SerializedDagModel
from airflow.models.taskinstance import TaskInstance, clear_task_instances
from airflow.models.trigger import Trigger
from airflow.timetables.base import DataInterval
from airflow.utils.db import initdb
from airflow.utils.module_loading import import_string
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState, TaskInstanceState
from airflow.utils.types import DagRunType
from trainmaster_client.airflow import TrainmasterTrainingOperator

from tests.airflow.fake_queue import FakeQueue
from tests.airflow.test_operator import REQUEST

pytestmark = pytest.mark.filterwarnings("ignore")  # of Airflow's own packages, about each other

START = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def database(home: None) -> None:
    initdb(load_connections=False)


@pytest.fixture
def session(database: None) -> Iterator[Any]:
    with create_session() as found:
        yield found


def task_instance(session: Any, name: str, **options: Any) -> TaskInstance:
    """Of the one task of a DAG, in its first run."""
    with DAG(name, start_date=START, schedule=None) as dag:  # noqa: AIR311  this is Airflow 2.11
        config = json.loads(json.dumps(REQUEST))
        TrainmasterTrainingOperator(
            task_id="train",
            config=config,
            retries=2,
            retry_delay=dt.timedelta(),
            check_interval=0,
            print_log=False,
            **options,
        )
    dag.sync_to_db(session=session)
    SerializedDagModel.write_dag(dag, session=session)
    run = dag.create_dagrun(
        run_id="manual__1",
        run_type=DagRunType.MANUAL,
        state=DagRunState.RUNNING,
        execution_date=START,
        data_interval=DataInterval(START, START),
        session=session,
    )
    (found,) = run.get_task_instances(session=session)
    found.refresh_from_task(dag.get_task("train"))
    return found


def run(task: TaskInstance, session: Any, *, is_new_try: bool = True) -> str | None:
    """What the scheduler and a worker do; the state that the task is in then."""
    task.try_number += is_new_try
    session.merge(task)
    session.commit()
    try:
        task.run(ignore_ti_state=True, session=session)
    except Exception:  # noqa: BLE001  Airflow raises what failed the task after it has noted it
        assert task.state in {TaskInstanceState.UP_FOR_RETRY, TaskInstanceState.FAILED}
    state: str | None = task.state
    return state


def result(task: TaskInstance, session: Any) -> dict[str, Any]:
    found: dict[str, Any] = task.xcom_pull(task_ids="train", session=session)["Training"]
    return found


def test_tries_and_a_clearing_have_a_job_each_and_only_then(queue: FakeQueue, session: Any):
    task = task_instance(session, "tries")
    queue.courses["nightly"] = ["failed"]
    assert run(task, session) == TaskInstanceState.UP_FOR_RETRY
    queue.first_seen = "completed"
    assert run(task, session) == TaskInstanceState.SUCCESS
    first, second = queue.jobs
    assert (first, result(task, session)["TrainingJobName"]) == ("nightly", second)
    clear_task_instances([task], session, dag=task.task.dag)
    assert run(task, session) == TaskInstanceState.SUCCESS
    assert len(queue.jobs) == 3
    third = list(queue.jobs)[2]
    assert result(task, session)["TrainingJobName"] == third
    tags = [one["Tags"][-1]["Value"] for one in queue.jobs.values()]
    assert tags == ["tries/manual__1/train/-1/0"] * 2 + ["tries/manual__1/train/-1/2"]


def test_a_deferred_task_goes_by_the_database_to_a_trigger_and_back(queue: FakeQueue, session: Any):
    task = task_instance(session, "deferred", deferrable=True)
    assert run(task, session) == TaskInstanceState.DEFERRED
    row = session.get(Trigger, task.trigger_id)
    queue.courses["nightly"] = ["pending", "preempted", "running", "completed"]
    event = asyncio.run(first(import_string(row.classpath)(**row.kwargs)))
    Trigger.submit_event(task.trigger_id, event, session=session)
    session.flush()
    task.refresh_from_db(session=session)
    assert run(task, session, is_new_try=False) == TaskInstanceState.SUCCESS
    assert result(task, session)["TrainingJobStatus"] == "Completed"
    assert list(queue.jobs) == ["nightly"]


async def first(trigger: Any) -> Any:
    async for event in trigger.run():
        return event
    raise AssertionError


def test_a_job_that_a_user_stopped_ends_the_task_with_tries_left(queue: FakeQueue, session: Any):
    task = task_instance(session, "stopped")
    queue.courses["nightly"] = ["stopped"]
    queue.reasons["nightly"] = {"code": "stopped-by-user", "message": "stopped by ann"}
    assert run(task, session) == TaskInstanceState.FAILED
