"""The results of an array for its page: tasks are read again where something changed, metrics once."""

from typing import Any

from botocore.exceptions import ClientError
from trainmaster_client.dashboard.array_data import AGE_SECONDS, ArrayData

TASKS = 150


class FakeApi:
    def __init__(self) -> None:
        self.state, self.completed, self.reads = "running", 2, 0

    def array(self, name: str) -> dict[str, Any]:
        return {"name": name, "state": self.state, "tasks": {"total": TASKS, "completed": self.completed}}

    def array_tasks(self, name: str) -> dict[str, Any]:
        self.reads += 1
        tasks = [
            {"index": index, "name": f"{name}-{index}", "values": {"lr": str(index)}, "attempt": 0}
            | {"state": "completed", "started_at": "2026-11-28T02:00:00.000Z"}
            | {"reason": {"code": "completed", "message": "the training job completed"}}
            for index in range(self.completed)
        ]
        return {"tasks": tasks}


class FakeSageMaker:
    def __init__(self) -> None:
        self.described: list[str] = []
        self.is_throttled = False

    def describe_training_job(self, *, TrainingJobName: str) -> dict[str, Any]:  # noqa: N803
        if self.is_throttled:
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow"}}, "Describe")
        self.described.append(TrainingJobName)
        return {"FinalMetricDataList": [{"MetricName": "loss", "Value": 2.5}]}


class World:
    def __init__(self) -> None:
        self.api, self.sagemaker, self.now = FakeApi(), FakeSageMaker(), 0.0
        self.data = ArrayData(self.api, lambda: self.sagemaker, monotonic=lambda: self.now)  # type: ignore[arg-type]


def test_the_page_gets_values_metrics_and_the_class_of_each_end() -> None:
    answer = World().data.array("sweep")
    assert (answer["values"], answer["metrics"], answer["note"]) == (["lr"], ["loss"], "")
    assert answer["tasks"][1] == {
        "index": 1,
        "name": "sweep-1",
        "values": {"lr": "1"},
        "metrics": {"loss": 2.5},
        "state": "completed",
        "why": "the training job completed",
        "code": "completed",
        "is_job": True,
        "cost_usd": None,
        "ended_at": None,
    }


def test_tasks_are_read_again_once_the_counts_change_or_have_grown_old() -> None:
    world = World()
    world.data.array("sweep")
    world.data.array("sweep")
    assert world.api.reads == 1
    world.api.completed = 3
    assert len(world.data.array("sweep")["tasks"]) == 3
    world.now = AGE_SECONDS
    world.data.array("sweep")
    assert world.api.reads == 3
    assert world.sagemaker.described == ["sweep-0", "sweep-1", "sweep-2"], "an ended task's metrics stay"


def test_an_array_that_is_over_is_read_once() -> None:
    world = World()
    world.api.state = "completed"
    world.data.array("sweep")
    world.now = 10 * AGE_SECONDS
    world.data.array("sweep")
    assert world.api.reads == 1


def test_metrics_of_many_tasks_are_read_look_by_look() -> None:
    world = World()
    world.api.state, world.api.completed = "completed", TASKS
    assert world.data.array("sweep")["note"] == "The metrics of 50 tasks are still to be read."
    answer = world.data.array("sweep")
    assert (answer["note"], len(world.sagemaker.described)) == ("", TASKS)
    assert all(task["metrics"] for task in answer["tasks"])


def test_metrics_that_cannot_be_read_are_said_and_tried_again() -> None:
    world = World()
    world.sagemaker.is_throttled = True
    answer = world.data.array("sweep")
    assert "ThrottlingException" in answer["note"]
    assert [task["metrics"] for task in answer["tasks"]] == [{}, {}]
    world.sagemaker.is_throttled = False
    assert world.data.array("sweep")["note"] == ""
