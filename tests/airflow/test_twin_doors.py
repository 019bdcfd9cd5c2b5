"""Airflow against the twin: each task's job waits, is preempted and resumes, and the task ends with it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from local.twin_process import TwinProcess, end, running_twin
from tests.airflow.airflow_settings import SETTINGS
from tests.airflow.looks import eventually
from tests.e2e.plane import Plane, pool, tags, until_exists
from tests.markdown import ROOT

PLAIN = "airflow.providers.amazon.aws.operators.sagemaker.SageMakerTrainingOperator"
UNDER_RUN = (str(Path(sys.executable).with_name("trainmaster")), "run", "--")
QUICK = {"check_interval": 1, "print_log": False}
"""Seconds. With its log lines Airflow looks at a job every 30 s, whatever the interval."""


@dataclass(slots=True, kw_only=True)
class Task:
    """One task of a DAG, in the processes that Airflow would have for it."""

    name: str
    operator: str
    arguments: dict[str, Any]
    prefix: tuple[str, ...]
    """What each of its processes is started with."""
    folder: Path = Path()
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def begin(self, act: str, environment: dict[str, str]) -> None:
        module = (sys.executable, "-m", "tests.airflow.task_process", str(self.folder), act)
        with self.log.open("ab") as log:
            self.processes.append(
                subprocess.Popen([*self.prefix, *module], cwd=ROOT, env=environment, stdout=log, stderr=log)
            )

    @property
    def log(self) -> Path:
        return self.folder / "log.txt"

    @property
    def polls(self) -> int:
        """How often it has looked at its job, of which Airflow says each."""
        return self.log.read_text("utf-8").count("InProgress")

    def result(self, name: str) -> Any:
        """What a process of this task left, as soon as it is there."""
        path = self.folder / name

        def look() -> bool:
            assert path.exists() or not any(one.poll() for one in self.processes), self.log.read_text("utf-8")
            return path.exists()

        eventually(look, lambda there: there)
        return json.loads(path.read_text("utf-8"))


TASKS = (
    Task(
        name="hook",
        operator="hook",
        arguments={"wait_for_completion": True, **QUICK},
        prefix=UNDER_RUN,
    ),
    Task(name="operator", operator=PLAIN, arguments=QUICK, prefix=UNDER_RUN),
    Task(
        name="deferrable",
        operator=PLAIN,
        arguments={**QUICK, "deferrable": True, "max_attempts": 1000},
        prefix=UNDER_RUN,
    ),
)


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Plane]:
    program = (str(ROOT / ".venv/bin/python"), "-m", "local", "up")
    with running_twin(tmp_path, policy=pool(len(TASKS)), checkout=ROOT, program=program) as twin:
        yield Plane(twin=twin)


@pytest.fixture
def tasks(plane: Plane, tmp_path: Path) -> Iterator[tuple[Task, ...]]:
    for task in TASKS:
        task.folder = tmp_path / task.name
        task.folder.mkdir()
        config = plane.request(task.name, until_exists(task.folder / "end"))
        document = {
            "operator": task.operator,
            "arguments": {**task.arguments, "config": config},
            "context": {},
        }
        (task.folder / "task.json").write_text(json.dumps(document), "utf-8")
    yield TASKS
    for process in (one for task in TASKS for one in task.processes):
        end(process)


def environment_of(twin: TwinProcess) -> dict[str, str]:
    return {**os.environ, **SETTINGS, **twin.environment(), "PYTHONPATH": str(ROOT)}


def all_are(plane: Plane, state: str) -> None:
    wanted = {(task.name, state) for task in TASKS}
    eventually(plane.queue, wanted.issubset)


def each_looks_again(tasks: tuple[Task, ...]) -> None:
    before = [task.polls for task in tasks]
    eventually(
        lambda: [task.polls for task in tasks],
        lambda seen: all(now > then + 1 for now, then in zip(seen, before, strict=True)),
    )


def test_tasks_wait_with_their_jobs_and_end_with_them(plane: Plane, tasks: tuple[Task, ...], tmp_path: Path):
    whole = {"InstanceType": "ml.m5.xlarge", "InstanceCount": len(tasks), "VolumeSizeInGB": 10}

    def occupy(name: str, priority: int) -> None:
        request = plane.request(name, until_exists(tmp_path / f"{name}.end"), ResourceConfig=whole)
        plane.add(request | {"Tags": tags(priority=str(priority))})
        eventually(lambda: plane.job(name)["state"], lambda state: state == "running")

    environment = environment_of(plane.twin)
    occupy("earlier", 1)
    for task in tasks:
        task.begin("execute", environment)
    deferred = [task for task in tasks if task.arguments.get("deferrable")]
    for task in deferred:
        assert task.result("trigger.json")[1]["job_name"] == task.name
        task.begin("trigger", environment)
    all_are(plane, "pending")
    each_looks_again(tasks)
    (tmp_path / "earlier.end").touch()
    all_are(plane, "running")
    occupy("urgent", 9)
    all_are(plane, "preempted")
    each_looks_again(tasks)
    (tmp_path / "urgent.end").touch()
    all_are(plane, "running")
    for task in tasks:
        assert not list(task.folder.glob("xcom.json")), "it ended before its job"
        (task.folder / "end").touch()
    for task in deferred:
        assert task.result("event.json")["status"] == "success"
        task.begin("resume", environment)
    for task in tasks:
        described = task.result("xcom.json")["Training"]
        assert (described["TrainingJobName"], described["TrainingJobStatus"]) == (task.name, "Completed")
    created = plane.calls("CreateTrainingJob")
    assert {one["principal"].rpartition("/")[2] for one in created} == {"schedule"}
    assert len(created) == 2 + 2 * len(tasks), (
        "one submission each: two attempts of it, and the two in their way"
    )
