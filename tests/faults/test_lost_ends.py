"""Group P: the end of a parent whose message was lost, where parent or child is an array."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from trainmaster.services.scheduler import outbox_relay
from trainmaster.services.scheduler.dependent_releases import Released

from tests.builders import A
from tests.faults.conftest import NewWorld
from tests.integration.messages import request
from tests.integration.world import World


@pytest.fixture
def plane(new_world: NewWorld) -> World:
    return new_world({"pools": [{"name": "main", "capacity": {A: 4}}]})


@contextmanager
def messages_are_lost() -> Iterator[None]:
    """Messages to dependents are deleted undone, as after a restore of the table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outbox_relay, "release_dependents", lambda *_: Released(is_whole=True))
        yield


def after(text: str) -> dict[str, Any]:
    return {"Tags": [{"Key": "trainmaster:after", "Value": text}]}


def add_array(world: World, name: str, conditions: str | None = None, tasks: str = "0-1") -> None:
    body = request(name, **({} if conditions is None else after(conditions)))
    answer = world.api("POST", "/add-array", {"request": body, "tasks": tasks})
    assert answer["status"] == 201, answer


def play(world: World, *names: str, status: str = "Completed") -> None:
    """Let these jobs start, train and end, as soon as they run."""
    world.wake()
    world.schedule()
    for name in names:
        world.sagemaker.train(name)
        world.sagemaker.end(name, status)
        world.tell(name)
        world.schedule()
    world.wake()
    world.schedule()


def starts_after_some_minutes(world: World, *names: str) -> None:
    assert not world.sagemaker.jobs.keys() & set(names)
    for _ in range(6):
        world.a_minute_passes()
    assert world.sagemaker.jobs.keys() >= set(names), sorted(world.sagemaker.jobs)


def test_P4_a_job_after_an_array_is_released_by_the_reconciler(plane: World) -> None:
    add_array(plane, "prep")
    assert plane.submit("child", **after("prep"))["status"] == 201
    with messages_are_lost():
        play(plane, "prep-0", "prep-1")
    assert plane.api("GET", "/arrays/prep")["state"] == "completed"
    starts_after_some_minutes(plane, "child")


def test_P4_an_array_after_a_job_is_released_by_the_reconciler(plane: World) -> None:
    plane.submit("prep")
    add_array(plane, "train", "prep")
    with messages_are_lost():
        play(plane, "prep")
    assert plane.states("prep") == ["completed"]
    starts_after_some_minutes(plane, "train-0", "train-1")


def test_P4_an_array_after_an_array_is_released_by_the_reconciler(plane: World) -> None:
    add_array(plane, "prep")
    add_array(plane, "train", "afterany:prep")
    with messages_are_lost():
        play(plane, "prep-0", "prep-1")
    starts_after_some_minutes(plane, "train-0", "train-1")


def test_P4_an_array_that_can_run_no_more_is_ended_by_the_reconciler(plane: World) -> None:
    add_array(plane, "prep")
    add_array(plane, "train", "afternotok:prep")
    with messages_are_lost():
        play(plane, "prep-0", "prep-1")
    for _ in range(6):
        plane.a_minute_passes()
    array = plane.api("GET", "/arrays/train")
    assert (array["state"], array["reason"]["code"]) == ("stopped", "dependency")


def test_P4_a_job_after_a_task_that_never_was_a_job_is_released_by_the_reconciler(plane: World) -> None:
    add_array(plane, "prep", tasks="0-99")
    plane.wake()
    plane.schedule()
    assert plane.submit("child", **after("afterany:prep-90"))["status"] == 201
    with messages_are_lost():
        assert plane.api("DELETE", "/arrays/prep", query={"tasks": "4-99"})["status"] == 202
        play(plane, "prep-0")
    starts_after_some_minutes(plane, "child")


@pytest.mark.parametrize("ended", [(), ("prep-0",)])
def test_P4_a_parent_that_has_not_ended_releases_nobody(plane: World, ended: tuple[str, ...]) -> None:
    add_array(plane, "prep")
    assert plane.submit("child", **after("afterany:prep"))["status"] == 201
    play(plane, *ended)
    for _ in range(6):
        plane.a_minute_passes()
    assert plane.job("child").waits_for_others
