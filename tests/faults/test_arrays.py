"""Arrays: many tasks from one row, and what may go wrong with them."""

from typing import Any

import pytest

from tests.builders import A, minutes
from tests.faults.conftest import NewWorld
from tests.integration.messages import request
from tests.integration.world import Crash, World

POOL = {"pools": [{"name": "main", "capacity": {A: 4}}]}
ONE = {"lr": "1"}


@pytest.fixture
def plane(new_world: NewWorld) -> World:
    return new_world(POOL)


def add_array(world: World, name: str = "s", tasks: str = "0-7", **more: Any) -> dict[str, Any]:
    changes = {"HyperParameters": ONE, **more.pop("changes", {})}
    return world.api("POST", "/add-array", {"request": request(name, **changes), "tasks": tasks, **more})


def array_of(world: World, name: str = "s") -> dict[str, Any]:
    answer = world.api("GET", f"/arrays/{name}")
    assert answer["status"] == 200, answer
    counts = dict(answer["tasks"])
    assert counts.pop("total") == sum(counts.values()), answer
    return answer


def ends(world: World, name: str, status: str = "Completed", reason: str | None = None) -> None:
    world.sagemaker.end(name, status, reason=reason)
    world.tell(name)


def run_all(world: World, status: str = "Completed", *, most: int = 100) -> int:
    """Let whatever runs end, until nothing does; returns the most that ran at once."""
    at_once = 0
    for _ in range(most):
        world.wake()
        world.schedule()
        live = sorted(world.sagemaker.live())
        if not live:
            return at_once
        at_once = max(at_once, len(live))
        for name in live:
            world.sagemaker.train(name)
            ends(world, name, status)
    raise AssertionError("it never ends")


def test_an_array_runs_from_its_first_task_to_its_last(plane: World) -> None:
    values = {"lr": [str(number) for number in range(6)]}

    answer = add_array(plane, tasks="0-5%2", values=values)

    assert answer["status"] == 201, answer
    assert (answer["array"]["state"], answer["array"]["tasks"]["waiting"]) == ("pending", 6)
    assert run_all(plane) == 2
    array = array_of(plane)
    assert (array["state"], array["tasks"]["completed"]) == ("completed", 6)
    assert array["ended_at"] is not None
    sent = plane.sagemaker.jobs["s-3"].request
    assert sent["HyperParameters"] == {"lr": "3"}
    assert sent["Environment"]["TRAINMASTER_ARRAY_INDEX"] == "3"
    assert sent["CheckpointConfig"]["S3Uri"] == "s3://bucket/checkpoints/s/3"
    plane.check(*[f"s-{n}" for n in range(6)])


def test_P7_a_dead_process_neither_doubles_nor_loses_a_task(plane: World) -> None:
    """Dies before and after every call of a pass that expands and starts, then goes on."""
    add_array(plane, tasks="0-4%2")
    start = plane.save()
    calls = len(plane.calls_of(plane.wake))
    for at in range(calls):
        for phase in ("before", "after"):
            plane.restore(start)
            assert plane.dies(plane.wake, Crash(at=at, phase=phase)), (at, phase)
            plane.a_minute_passes()
            live = plane.sagemaker.live()
            assert len(live) <= 2, (at, phase, sorted(live))
            array = array_of(plane)
            assert array["tasks"]["running"] == len(live) == 2, (at, phase, array["tasks"])
            assert len(plane.sagemaker.jobs) == 2, (at, phase)


def test_P8_equal_failures_hold_an_array(new_world: NewWorld) -> None:
    plane = new_world(
        {"pools": [{"name": "main", "capacity": {A: 40}, "limits": {"max_array_tasks": 10_000}}]}
    )
    add_array(plane, tasks="0-9999")

    for _ in range(12):
        plane.wake()
        plane.schedule()
        for name in sorted(plane.sagemaker.live())[:5]:
            plane.sagemaker.train(name)
            ends(plane, name, "Failed", "ClientError: cannot pull the container image")
        if array_of(plane)["state"] == "held":
            break
    plane.wake()

    array = array_of(plane)
    assert array["tasks"]["failed"] >= 10
    assert "10 tasks" in array["waiting"]["message"]
    sent = len(plane.sagemaker.jobs)
    plane.wake()
    assert len(plane.sagemaker.jobs) == sent
    assert plane.messages.kinds().count("Array Held") == 1


def test_P10_what_is_too_long_or_too_many_is_refused(plane: World) -> None:
    long = add_array(plane, name="a" * 62, tasks="0-9")
    unlike = add_array(plane, tasks="0-3", values=[ONE])
    twice = add_array(plane, tasks="1,2,1")
    many = add_array(plane, tasks="0-10000")
    large = add_array(
        plane,
        tasks="0-99",
        values={"lr": ["x" * 2400 for _ in range(100)]},
        changes={"Environment": {"A": "y" * 60_000}},
    )

    assert [answer["status"] for answer in (long, unlike, twice, many, large)] == [400, 400, 400, 422, 413]
    assert "at most 61" in long["errors"][0]["hint"]
    assert "4 tasks" in unlike["errors"][0]["message"]
    assert "index 1 twice" in twice["errors"][0]["message"]
    assert "10000" in many["errors"][0]["message"]
    assert "tasks would fit" in large["errors"][0]["message"]
    assert plane.api("GET", "/arrays")["arrays"] == []


def test_P12_names_of_tasks_are_kept_apart(plane: World) -> None:
    for name in ("s-3", "s-03"):
        assert plane.submit(name)["status"] == 201
    plane.wake()
    for name in ("s-3", "s-03"):
        plane.sagemaker.train(name)
        ends(plane, name)

    assert add_array(plane, tasks="0-7")["status"] == 201
    taken = plane.submit("s-5")
    assert (taken["status"], taken["title"]) == (409, "Name taken")
    assert plane.submit("s-8")["status"] == 201
    assert add_array(plane, name="s-6", tasks="0-1")["status"] == 409
    assert plane.submit("s")["status"] == 409

    run_all(plane)
    array = array_of(plane)
    assert (array["state"], array["failed"], array["tasks"]["completed"]) == ("failed", "3", 7)
    tasks = plane.api("GET", "/arrays/s/tasks", query={"state": "failed"})["tasks"]
    assert [(task["index"], task["reason"]["code"]) for task in tasks] == [(3, "name-taken")]


def size_of_row(world: World, name: str) -> int:
    """Bytes of an array's row, as DynamoDB counts names and values, at most."""
    key = {"pk": {"S": f"AR#{name}"}, "sk": {"S": "array"}}
    item = world.cloud.client("dynamodb").get_item(TableName="trainmaster", Key=key)["Item"]
    return sum(len(attribute) + _size(value) for attribute, value in item.items())


def _size(value: Any) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "M":
            return 3 + sum(len(name) + 1 + _size(part) for name, part in content.items())
        case "L":
            return 3 + sum(1 + _size(part) for part in content)
        case "BOOL":
            return 1
        case _:
            return len(content)


def change(world: World, **patch: Any) -> dict[str, Any]:
    return world.api("PATCH", "/arrays/s", patch)


def test_P9_a_lower_throttle_lets_no_task_start_until_fewer_run(plane: World) -> None:
    add_array(plane, tasks="0-9")
    settle(plane)
    assert len(plane.sagemaker.live()) == 4

    assert change(plane, at_most=2)["at_most"] == 2
    for left in (3, 2):
        ends(plane, min(plane.sagemaker.live()))
        settle(plane)
        assert len(plane.sagemaker.live()) == left
    ends(plane, min(plane.sagemaker.live()))
    settle(plane)
    assert len(plane.sagemaker.live()) == 2
    waiting = plane.api("GET", "/jobs/s-5")["waiting"]
    assert (waiting["code"], "at most 2" in waiting["message"]) == ("array-limit", True)

    change(plane, at_most=None)
    settle(plane)
    assert len(plane.sagemaker.live()) == 4


def test_P9_a_range_that_is_cancelled_while_it_starts_ends_once(plane: World) -> None:
    add_array(plane, tasks="0-9%4")
    plane.meanwhile["CreateTrainingJob"] = lambda: plane.api(
        "DELETE", "/arrays/s", query={"tasks": "0,1,8-9"}
    )
    settle(plane)
    plane.a_minute_passes()
    for name in ("s-0", "s-1"):
        if name in plane.sagemaker.jobs:
            ends(plane, name, "Stopped")
    settle(plane)

    array = array_of(plane)
    assert (array["stopped"], array["tasks"]["stopped"]) == ("0-1,8-9", 4)
    run_all(plane)
    array = array_of(plane)
    assert (array["state"], array["tasks"]["completed"], array["failed"]) == ("failed", 6, "")
    assert array["reason"]["message"] == "4 of 10 tasks were stopped: 0, 1, 8, 9"


def test_P9_another_priority_moves_all_tasks(new_world: NewWorld) -> None:
    plane = new_world({"pools": [{"name": "main", "capacity": {A: 4}, "preemption": {"enabled": False}}]})
    add_array(plane, tasks="0-9")
    settle(plane)
    plane.submit("urgent", priority=5)
    settle(plane)
    assert "urgent" not in plane.sagemaker.jobs

    change(plane, priority=9)
    ends(plane, "s-0")
    settle(plane)

    assert "s-4" in plane.sagemaker.jobs
    assert "urgent" not in plane.sagemaker.jobs
    assert {plane.job(f"s-{index}").priority for index in range(1, 10)} == {9}


def test_a_held_array_starts_no_task_until_it_is_released(plane: World) -> None:
    add_array(plane, tasks="0-9%2")
    settle(plane)

    assert change(plane, held=True)["tasks"]["held"] == 8
    ends(plane, "s-0")
    settle(plane)
    assert sorted(plane.sagemaker.live()) == ["s-1"]
    assert plane.api("GET", "/jobs/s-7")["state"] == "held"

    change(plane, held=False)
    settle(plane)
    assert run_all(plane) == 2
    assert array_of(plane)["state"] == "completed"


def test_a_cancelled_array_is_stopped(plane: World) -> None:
    add_array(plane, tasks="0-99")
    settle(plane)

    answer = plane.api("DELETE", "/arrays/s")
    assert answer["status"] == 202
    for name in sorted(plane.sagemaker.live()):
        settle(plane)
        ends(plane, name, "Stopped")
    settle(plane)

    array = array_of(plane)
    assert (array["state"], array["tasks"]["stopped"], array["reason"]["code"]) == (
        "stopped",
        100,
        "stopped-by-user",
    )
    assert plane.api("DELETE", "/arrays/s")["status"] == 409
    assert plane.messages.kinds().count("Array Ended") == 1
    assert "Job Stopped" not in plane.messages.kinds()


def test_the_failed_tasks_run_again_as_an_array(plane: World) -> None:
    add_array(plane, tasks="0-3", values={"lr": ["0", "1", "2", "3"]}, stop_after_failures=0)
    settle(plane)
    for index in range(4):
        plane.sagemaker.train(f"s-{index}")
        ends(plane, f"s-{index}", "Failed" if index > 1 else "Completed", "AlgorithmError: x")
    settle(plane)
    assert array_of(plane)["failed"] == "2-3"

    answer = plane.api("POST", "/arrays/s/rerun", {"tasks": "failed"})

    assert answer["status"] == 201, answer
    assert (answer["array"]["name"], answer["array"]["rerun_of"]) == ("s-again1", "s")
    run_all(plane)
    sent = plane.sagemaker.jobs["s-again1-3"].request
    assert sent["HyperParameters"] == {"lr": "3"}
    assert sent["CheckpointConfig"]["S3Uri"] == "s3://bucket/checkpoints/s/3"
    # A program that splits its data by them has the same part again.
    variables = {name: sent["Environment"][f"TRAINMASTER_ARRAY_{name}"] for name in ("COUNT", "MIN", "MAX")}
    first = plane.sagemaker.jobs["s-3"].request["Environment"]
    assert variables == {name: first[f"TRAINMASTER_ARRAY_{name}"] for name in variables}, (
        "the same part of it"
    )
    fresh = plane.api("POST", "/arrays/s/rerun", {"tasks": "3", "fresh": True})
    assert fresh["array"]["name"] == "s-again2"
    run_all(plane)
    uri = plane.sagemaker.jobs["s-again2-3"].request["CheckpointConfig"]["S3Uri"]
    assert uri == "s3://bucket/checkpoints/s/3/again2"


def test_few_tasks_wait_as_jobs_however_many_there_are(plane: World) -> None:
    add_array(plane, tasks="0-9999")
    settle(plane)

    listed = plane.api("GET", "/jobs", query={"limit": "100"})
    assert sum(job["state"] == "pending" for job in listed["jobs"]) == 32
    assert [(array["name"], array["tasks"]["waiting"]) for array in listed["arrays"]] == [("s", 9996)]
    assert size_of_row(plane, "s") < 16_000
    view = plane.api("GET", "/jobs/s-777")
    assert (view["state"], view["array"]) == ("pending", {"name": "s", "index": 777})
    assert plane.api("DELETE", "/jobs/s-777")["status"] == 202
    assert plane.api("GET", "/jobs/s-777")["state"] == "stopped"
    assert plane.api("GET", "/jobs/s")["errors"][0]["hint"] == "it is an array: use /arrays/s"


def test_a_tag_makes_an_array_of_a_plain_request(plane: World) -> None:
    tags = [{"Key": "trainmaster:array", "Value": "1 3@1"}]
    answer = plane.submit("t", Tags=tags)

    assert answer["status"] == 201, answer
    assert answer["array"]["at_most"] == 1
    assert plane.submit("t", Tags=tags)["status"] == 200
    assert plane.submit("t", Tags=[{"Key": "trainmaster:array", "Value": "1 2"}])["status"] == 409
    assert run_all(plane) == 1
    assert sorted(plane.sagemaker.jobs) == ["t-1", "t-3"]
    assert all(tag["Key"] != "trainmaster:array" for tag in plane.sagemaker.jobs["t-1"].request["Tags"])


def settle(world: World) -> None:
    world.wake()
    world.schedule()
    for name in world.sagemaker.live():
        world.sagemaker.train(name)
        world.tell(name)
    world.schedule()


def after(text: str) -> dict[str, Any]:
    return {"Tags": [{"Key": "trainmaster:after", "Value": text}]}


def test_P12_a_job_waits_for_a_task_that_is_no_job_yet(plane: World) -> None:
    add_array(plane, tasks="0-99%1")
    settle(plane)

    child = plane.submit("child", **after("afterok:s-7 afterany:s-90"))
    assert child["status"] == 201, child
    assert [part["state"] for part in child["job"]["after"]] == ["pending", "pending"]
    plane.api("DELETE", "/arrays/s", query={"tasks": "0-6,8-99"})
    for _ in range(3):
        settle(plane)
        for name in sorted(plane.sagemaker.live().keys() - {"child"}):
            ends(plane, name, "Completed" if name == "s-7" else "Stopped")
    settle(plane)

    assert plane.job("child").is_live
    assert plane.api("GET", "/jobs/s-7")["state"] == "completed"


@pytest.mark.parametrize(
    ("kind", "status", "state"),
    [
        ("afterok", "Completed", "running"),
        ("afterok", "Failed", "stopped"),
        ("afternotok", "Failed", "running"),
    ],
)
def test_a_job_waits_for_the_end_of_an_array(plane: World, kind: str, status: str, state: str) -> None:
    add_array(plane, tasks="0-2", stop_after_failures=0)
    child = plane.submit("child", **after(f"{kind}:s"))
    assert child["job"]["after"] == [{"job": "s", "type": kind, "state": "pending"}]
    settle(plane)
    for index in range(3):
        assert plane.job("child").waits_for_others
        ends(plane, f"s-{index}", status, None if status == "Completed" else "AlgorithmError: x")
        settle(plane)
    settle(plane)

    assert plane.api("GET", "/jobs/child")["state"] == state


def test_an_array_waits_for_a_job_and_ends_with_it(plane: World) -> None:
    for name in ("good", "bad"):
        plane.submit(name)
    for name, parent in (("g", "good"), ("b", "bad")):
        answer = add_array(plane, name=name, tasks="0-2", changes=after(parent))
        assert answer["status"] == 201, answer
        assert answer["array"]["waiting"]["code"] == "dependency"
    settle(plane)
    assert sorted(plane.sagemaker.live()) == ["bad", "good"]
    assert plane.submit("last", **after("afternotok:b"))["status"] == 201

    ends(plane, "good")
    ends(plane, "bad", "Failed", "AlgorithmError: x")
    for _ in range(3):
        settle(plane)

    assert {"g-0", "g-1", "g-2", "last"} <= plane.sagemaker.jobs.keys()
    array = array_of(plane, "b")
    assert (array["state"], array["tasks"]["stopped"], array["reason"]["code"]) == (
        "stopped",
        3,
        "dependency",
    )
    assert "b-0" not in plane.sagemaker.jobs


def test_P11_tasks_wait_for_tasks_of_the_same_index_alone(plane: World) -> None:
    add_array(plane, name="prep", tasks="0-3%2", stop_after_failures=0)
    unequal = add_array(plane, name="other", tasks="0-5", changes=after("aftercorr:prep"))
    assert unequal["status"] == 422
    assert "0-5" in unequal["errors"][0]["message"]
    assert "0-3" in unequal["errors"][0]["message"]
    single = plane.submit("single", **after("aftercorr:prep"))
    assert (single["status"], single["errors"][0]["field"]) == (400, "Tags[0].Value")

    assert add_array(plane, name="train", tasks="0-3", changes=after("aftercorr:prep"))["status"] == 201
    settle(plane)
    assert sorted(plane.sagemaker.live()) == ["prep-0", "prep-1"]
    ends(plane, "prep-0", "Failed", "AlgorithmError: x")
    ends(plane, "prep-1")
    for _ in range(2):
        settle(plane)
    assert sorted(plane.sagemaker.live()) == ["prep-2", "prep-3", "train-1"]
    run_all(plane)

    array = array_of(plane, "train")
    assert (array["state"], array["stopped"], array["tasks"]["completed"]) == ("failed", "0", 3)
    task = plane.api("GET", "/arrays/train/tasks", query={"state": "stopped"})["tasks"][0]
    assert (task["index"], task["reason"]["code"]) == (0, "dependency")


def test_a_cycle_through_an_array_is_found(plane: World) -> None:
    plane.submit("first")
    plane.submit("second", **after("first"))
    add_array(plane, tasks="0-2", changes=after("second"))

    answer = plane.api("PATCH", "/jobs/second", {"after": "s"})

    assert answer["status"] == 422
    assert "cycle" in answer["errors"][0]["message"]


def test_a_request_that_aws_refuses_says_so_and_keeps_no_other_job_of_the_role_waiting(plane: World) -> None:
    add_array(plane, tasks="0-7%3")
    plane.sagemaker.refuse["CreateTrainingJob"] = [("ValidationException", 400)] * 3

    plane.schedule()

    waiting = array_of(plane)["waiting"]
    assert waiting["code"] == "refused"
    assert waiting["message"].startswith("s-0: AWS refused to start it once: ValidationException")
    plane.submit("good")
    plane.schedule()
    assert plane.states("good") == ["running"]


def test_a_request_that_aws_keeps_refusing_ends_its_tasks_and_holds_the_array(plane: World) -> None:
    add_array(plane, tasks="0-7%2", stop_after_failures=2)
    plane.sagemaker.refuse["CreateTrainingJob"] = [("ValidationException", 400)] * 100

    for _ in range(12):
        plane.now += minutes(5)
        plane.reconcile()
        plane.schedule()

    array = array_of(plane)
    assert (array["state"], array["failed"]) == ("held", "0-1")
    assert array["waiting"]["code"] == "held"
