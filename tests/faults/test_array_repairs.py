"""Arrays after a release that knows none was rolled back to: a repair counts their tasks again."""

from typing import Any

import pytest
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from tests.builders import A
from tests.faults.conftest import NewWorld
from tests.faults.spoiling import gone, spoil
from tests.integration.messages import request
from tests.integration.rows import Item
from tests.integration.world import World


@pytest.fixture
def plane(new_world: NewWorld) -> World:
    """An array of which two tasks run, at most two at once, and the others wait."""
    world = new_world({"pools": [{"name": "main", "capacity": {A: 4}}]})
    answer = world.api("POST", "/add-array", {"request": request("s"), "tasks": "0-5%2"})
    assert answer["status"] == 201, answer
    world.wake()
    world.schedule()
    for name in world.sagemaker.live():
        world.sagemaker.train(name)
        world.tell(name)
    assert array_of(world)["tasks"]["running"] == 2
    return world


def array_of(world: World) -> dict[str, Any]:
    view: dict[str, Any] = world.api("GET", "/arrays/s")
    return view


def without_array(item: Item) -> Item:
    """A row of a job as a release writes it that knows no arrays."""
    content = {name: TypeDeserializer().deserialize(field) for name, field in item.items()}
    content.pop("array", None)
    if "spec" in content:
        content["spec"].pop("array", None)
    return {name: TypeSerializer().serialize(field) for name, field in content.items()}


def old_release_writes(world: World, name: str) -> None:
    """What it writes later about this job is added to no array."""
    spoil(world, f"J#{name}", "job", without_array)


def ends(world: World, name: str, status: str = "Completed") -> None:
    world.sagemaker.end(name, status)
    world.tell(name)
    world.schedule()


def repair(world: World, *, apply: bool) -> list[dict[str, Any]]:
    assert world.api("PUT", "/policy/paused", {"paused": apply})["status"] == 200
    assert world.api("POST", "/repair", {"apply": apply})["status"] == 202
    for _ in range(3):
        world.reconcile()
    answer = world.api("GET", "/repair")
    assert (answer["state"], answer["apply"]) == ("done", apply)
    assert world.api("PUT", "/policy/paused", {"paused": False})["status"] == 200
    different: list[dict[str, Any]] = answer["differences"]
    return different


def run_all(world: World) -> int:
    """Returns the most tasks that ran at once."""
    at_once = 0
    for _ in range(20):
        world.wake()
        world.schedule()
        at_once = max(at_once, len(world.sagemaker.live()))
        for name in sorted(world.sagemaker.live()):
            world.sagemaker.train(name)
            world.tell(name)
            ends(world, name)
    return at_once


def test_an_array_that_counts_right_is_left_alone(plane: World) -> None:
    assert repair(plane, apply=False) == []
    ends(plane, "s-0")
    assert repair(plane, apply=True) == []
    assert run_all(plane) == 2
    assert array_of(plane)["state"] == "completed"


@pytest.mark.parametrize("status", ["Completed", "Failed"])
def test_an_end_that_was_not_added_to_the_array_is_added_by_a_repair(plane: World, status: str) -> None:
    old_release_writes(plane, "s-0")
    ends(plane, "s-0", status)
    run_all(plane)
    stuck = array_of(plane)
    assert (stuck["ended_at"], stuck["tasks"]["running"]) == (None, 1), "what a repair is for"

    found = {(row["row"], row["field"]): row["computed"] for row in repair(plane, apply=False)}
    assert found[("AR#s/array", "running")] == "0"
    assert found[("AR#s/array", status.lower())] == ("0-5" if status == "Completed" else "0")
    assert found[("J#s-0/job", "spec.array")] == "s"
    assert array_of(plane) == stuck, "no more than a report"
    repair(plane, apply=True)
    plane.wake()
    plane.schedule()

    array = array_of(plane)
    assert array["ended_at"] is not None
    assert (array["state"], array["tasks"]["running"]) == (status.lower(), 0)
    task = plane.api("GET", "/arrays/s/tasks")["tasks"][0]
    assert (task["name"], task["state"]) == ("s-0", status.lower())
    assert repair(plane, apply=False) == []


def test_a_task_that_still_runs_is_a_task_again_and_counts_for_the_throttle(plane: World) -> None:
    old_release_writes(plane, "s-0")
    spoil(plane, "R#main", "s-0", without_array)
    repair(plane, apply=True)
    assert plane.job("s-0").spec.array is not None
    assert run_all(plane) == 2
    array = array_of(plane)
    assert (array["state"], array["tasks"]["completed"]) == ("completed", 6)
    assert plane.api("GET", "/jobs/s-0")["array"] == {"name": "s", "index": 0}


def test_a_task_whose_job_was_deleted_has_ended(plane: World) -> None:
    old_release_writes(plane, "s-0")
    ends(plane, "s-0")
    for row in ("job", "request"):
        spoil(plane, "J#s-0", row, gone)
    run_all(plane)
    repair(plane, apply=True)
    plane.wake()
    plane.schedule()
    array = array_of(plane)
    assert (array["state"], array["stopped"], array["tasks"]["completed"]) == ("failed", "0", 5)


def test_a_task_whose_job_cannot_be_read_leaves_the_array_as_it_is(plane: World) -> None:
    spoil(plane, "J#s-0", "job", lambda item: {**item, "state": {"S": "nonsense"}})
    before = array_of(plane)["tasks"]
    found = repair(plane, apply=True)
    assert not [row for row in found if row["row"].startswith("AR#")]
    assert array_of(plane)["tasks"] == before
