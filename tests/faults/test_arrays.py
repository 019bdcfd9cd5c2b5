"""Arrays: many tasks from one row, and what may go wrong with them."""

from typing import Any

import pytest

from tests.builders import A
from tests.faults.conftest import NewWorld
from tests.integration.messages import request
from tests.integration.world import World

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
