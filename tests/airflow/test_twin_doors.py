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
OURS = "trainmaster_client.airflow.TrainmasterTrainingOperator"
TASK_INSTANCE = {"dag_id": "dag", "run_id": "manual__1", "map_index": -1, "try_number": 1, "max_tries": 0}
CHANGES = ("Waiting, position", "Preempted", "Waiting to resume", "Resumed", "Completed")
QUICK = {"check_interval": 1, "print_log": False}
"""Seconds. With its log lines Airflow looks at a job every 30 s, whatever the interval."""


@dataclass(slots=True, kw_only=True)
class Task:
    """One task of a DAG, in the processes that Airflow would have for it."""

    name: str
    operator: str
    arguments: dict[str, Any]
    prefix: tuple[str, ...] = ()
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
    def is_deferrable(self) -> bool:
        return "deferrable" in self.arguments

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

        eventually(look, bool)
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
    Task(name="ours", operator=OURS, arguments=QUICK),
    Task(name="ours-deferrable", operator=OURS, arguments={**QUICK, "deferrable": True}),
)
UNHOOKED = Task(name="unhooked", operator=PLAIN, arguments={})


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
            "task_instance": {**TASK_INSTANCE, "task_id": task.name},
        }
        (task.folder / "task.json").write_text(json.dumps(document), "utf-8")
    yield TASKS
    for process in (one for task in (*TASKS, UNHOOKED) for one in task.processes):
        end(process)


def environment_of(twin: TwinProcess) -> dict[str, str]:
    return {**os.environ, **SETTINGS, **twin.environment(), "PYTHONPATH": str(ROOT)}


def all_are(plane: Plane, state: str) -> None:
    wanted = {(task.name, state) for task in TASKS}
    eventually(plane.queue, wanted.issubset)


def each_looks_again(tasks: tuple[Task, ...]) -> None:
    """Of ours the log has what changed, and not each look."""
    plain = [task for task in tasks if task.operator != OURS]
    before = [task.polls for task in plain]
    eventually(
        lambda: [task.polls for task in plain],
        lambda seen: all(now > then + 1 for now, then in zip(seen, before, strict=True)),
    )


def without_hooks(task: Task, folder: Path, environment: dict[str, str]) -> Any:
    """What a trigger in a process without the hooks makes of the job that waits."""
    UNHOOKED.folder = folder
    folder.mkdir()
    (folder / "trigger.json").write_text((task.folder / "trigger.json").read_text("utf-8"), "utf-8")
    UNHOOKED.begin("trigger", environment)
    return UNHOOKED.result("event.json")


def defer(tasks: tuple[Task, ...], environment: dict[str, str]) -> None:
    """Their workers end, and a triggerer takes over."""
    for task in tasks:
        if task.is_deferrable:
            assert task.result("trigger.json")[1]["job_name"] == task.name
            task.begin("trigger", environment)


def resume(tasks: tuple[Task, ...], environment: dict[str, str]) -> None:
    for task in tasks:
        if task.is_deferrable:
            wanted = "completed" if task.operator == OURS else "success"
            assert task.result("event.json")["status"] == wanted
            task.begin("resume", environment)


def said(task: Task) -> list[str]:
    """What it says of a job that waits, is preempted and comes back, each once in its order."""
    log = task.log.read_text("utf-8")
    places = {change: log.find(change) for change in CHANGES}
    return sorted((one for one, place in places.items() if place >= 0), key=places.__getitem__)


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
    defer(tasks, environment)
    all_are(plane, "pending")
    assert without_hooks(tasks[2], tmp_path / "unhooked", environment)["status"] != "success"
    each_looks_again(tasks)
    (tmp_path / "earlier.end").touch()
    all_are(plane, "running")
    occupy("urgent", 9)
    all_are(plane, "preempted")
    each_looks_again(tasks)
    (tmp_path / "urgent.end").touch()
    all_are(plane, "running")
    for task in tasks:
        assert not (task.folder / "xcom.json").exists(), "it ended before its job"
        (task.folder / "end").touch()
    resume(tasks, environment)
    for task in tasks:
        described = task.result("xcom.json")["Training"]
        assert (described["TrainingJobName"], described["TrainingJobStatus"]) == (task.name, "Completed")
    created = plane.calls("CreateTrainingJob")
    assert {one["principal"].rpartition("/")[2] for one in created} == {"schedule"}
    assert len(created) == 2 + 2 * len(tasks), "one submission each, two attempts, and the two in their way"
    for task in (one for one in tasks if one.operator == OURS):
        assert said(task) == list(CHANGES)
