"""Group P with handlers that really run at once: who goes next is drawn before each call to the table."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.task_ends import why_held
from trainmaster.services import dependency_sweep, job_steps
from trainmaster.services.array_jobs import ArrayJobs

from tests.builders import A, pool
from tests.faults.conftest import NewWorld
from tests.faults.interleaving import Interleaving
from tests.integration.messages import request
from tests.integration.world import World

SEEDS = range(4)
POOL = {"pools": [{"name": "main", "capacity": {A: 8}}]}
FULL = {"pools": [{"name": "main", "capacity": {A: 1}}]}
MORE_ROOM = {"pools": [{"name": "main", "capacity": {A: 9}}]}


@pytest.fixture
def plane(new_world: NewWorld) -> World:
    return new_world(POOL)


def at_once(world: World, seed: int, *acts: Callable[[], Any]) -> list[Any]:
    print(f"seed {seed}")  # noqa: T201  shown where a test fails, to play it again
    return Interleaving(world, seed).run(acts)


def add_array(world: World, tasks: str, **more: Any) -> None:
    answer = world.api("POST", "/add-array", {"request": request("s"), "tasks": tasks, **more})
    assert answer["status"] == 201, answer


def view(world: World) -> dict[str, Any]:
    answer: dict[str, Any] = world.api("GET", "/arrays/s")
    counts = dict(answer["tasks"])
    assert counts.pop("total") == sum(counts.values()), answer
    return answer


def trained(world: World) -> list[str]:
    names = sorted(world.sagemaker.live())
    for name in names:
        world.sagemaker.train(name)
        world.tell(name)
    return names


@pytest.mark.parametrize("passes", [2, 3, 6])
def test_P7_passes_at_once_make_each_task_one_job_and_keep_the_throttle(plane: World, passes: int) -> None:
    add_array(plane, "0-19%3")
    at_once(plane, passes, *[plane.wake] * passes)
    plane.schedule()
    assert sorted(plane.sagemaker.live()) == ["s-0", "s-1", "s-2"]
    array = view(plane)
    assert (array["tasks"]["running"], array["tasks"]["waiting"]) == (3, 17)
    plane.check("s-0", "s-1", "s-2")


@pytest.mark.parametrize("seed", SEEDS)
def test_P7_a_policy_that_changes_between_passes_neither_doubles_nor_loses_a_task(
    plane: World, seed: int
) -> None:
    add_array(plane, "0-19")
    at_once(plane, seed, plane.wake, lambda: plane.api("PUT", "/policy", MORE_ROOM), plane.wake)
    plane.a_minute_passes()
    assert len(plane.sagemaker.live()) == 9
    array = view(plane)
    assert (array["tasks"]["running"], array["tasks"]["waiting"]) == (9, 11)
    plane.check(*[f"s-{index}" for index in range(20)])


@pytest.mark.parametrize("seed", SEEDS)
def test_P7_ends_at_once_beside_a_pass_are_all_in_the_arrays_row(plane: World, seed: int) -> None:
    add_array(plane, "0-9%6", stop_after_failures=0)
    plane.wake()
    plane.schedule()
    names = trained(plane)
    for number, name in enumerate(names):
        plane.sagemaker.end(name, "Failed" if number % 2 else "Completed", reason="AlgorithmError: x")
    at_once(plane, seed, *[partial(plane.tell, name) for name in names], plane.wake)
    plane.a_minute_passes()
    array = view(plane)
    assert (array["tasks"]["completed"], array["failed"]) == (3, "1,3,5")
    assert array["tasks"]["running"] == len(plane.sagemaker.live()) == 4


@pytest.mark.parametrize("seed", SEEDS)
def test_P9_a_lower_throttle_beside_passes_lets_nothing_start_above_it_later(plane: World, seed: int) -> None:
    add_array(plane, "0-9%6")
    answer, *_ = at_once(
        plane, seed, lambda: plane.api("PATCH", "/arrays/s", {"at_most": 2}), plane.wake, plane.wake
    )
    assert answer["status"] == 200, answer
    before = len(plane.sagemaker.live())
    assert before <= 6
    plane.a_minute_passes()
    assert len(plane.sagemaker.live()) == max(before, 2)
    assert view(plane)["tasks"]["running"] == max(before, 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_P9_a_range_that_is_cancelled_beside_passes_ends_once(plane: World, seed: int) -> None:
    add_array(plane, "0-9%6")
    answer, *_ = at_once(
        plane,
        seed,
        lambda: plane.api("DELETE", "/arrays/s", query={"tasks": "2-7"}),
        plane.wake,
        plane.wake,
    )
    assert answer["status"] == 202, answer
    for _ in range(6):
        plane.a_minute_passes()
        for name in trained(plane):
            is_stopping = plane.sagemaker.jobs[name].status == "Stopping"
            plane.sagemaker.end(name, "Stopped" if is_stopping else "Completed")
            plane.tell(name)
    array = view(plane)
    assert (array["stopped"], array["tasks"]["completed"]) == ("2-7", 4)
    assert array["state"] == "failed"
    assert plane.called.count("CreateTrainingJob") == len(plane.sagemaker.jobs)


@pytest.mark.parametrize("seed", SEEDS)
def test_P7_the_end_of_an_array_is_noted_once_by_passes_at_once(plane: World, seed: int) -> None:
    add_array(plane, "0-2")
    plane.wake()
    plane.schedule()
    for name in trained(plane):
        plane.sagemaker.end(name, "Completed")
        plane.tell(name)
    at_once(plane, seed, plane.wake, plane.wake, plane.wake)
    plane.schedule()
    assert view(plane)["state"] == "completed"
    assert plane.messages.kinds().count("Array Ended") == 1


def add_waiting_array(world: World, tasks: str) -> None:
    """Add an array whose tasks wait for the only instance."""
    assert world.api("PUT", "/policy", FULL)["status"] == 200
    assert world.api("POST", "/add-job", request("first"))["status"] == 201
    world.wake()
    add_array(world, tasks)
    world.wake()


def hold(world: World, *, held: bool) -> None:
    answer = world.api("PATCH", "/arrays/s", {"held": held})
    assert answer["status"] == 200, answer


@pytest.mark.parametrize("seed", SEEDS)
def test_P9_a_hold_beside_a_release_holds_all_tasks_or_none(plane: World, seed: int) -> None:
    add_waiting_array(plane, "0-5")
    at_once(plane, seed, partial(hold, plane, held=True), partial(hold, plane, held=False), plane.wake)
    plane.wake()
    array = plane.wiring.reader.array("s")
    assert array is not None
    assert view(plane)["tasks"]["held"] == (6 if array.held else 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_P9_a_hold_beside_a_cancel_leaves_no_task_held(plane: World, seed: int) -> None:
    add_waiting_array(plane, "0-5")
    cancel = partial(plane.api, "DELETE", "/arrays/s")
    answer, *_ = at_once(plane, seed, cancel, partial(plane.api, "PATCH", "/arrays/s", {"held": True}))
    assert answer["status"] == 202, answer
    plane.a_minute_passes()
    assert view(plane)["stopped"] == "0-5"


def test_P9_a_hold_that_a_release_overtakes_holds_no_task_for_ever(plane: World) -> None:
    add_waiting_array(plane, "0-5")
    hold(plane, held=True)
    overtaken = plane.wiring.reader.array("s")
    assert overtaken is not None
    hold(plane, held=False)
    plane.wake()
    wiring = plane.wiring
    jobs = ArrayJobs(reader=wiring.reader, pools=wiring.reader, store=wiring.store, clock=wiring.clock)
    jobs.follow(overtaken, pool(0), behind=-1, releases=False)
    assert view(plane)["tasks"]["held"] == 6
    plane.reconcile()
    plane.wake()
    assert view(plane)["tasks"]["held"] == 0


def test_P9_reconcile_finds_one_task_among_many_that_is_held_though_its_array_is_not(
    plane: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_waiting_array(plane, "0-5")
    array = plane.wiring.reader.array("s")
    assert array is not None
    reason = Reason(code=ReasonCode.HELD, message=why_held(array))
    wiring = plane.wiring
    job_steps.change_job(
        wiring.reader.job("s-5"),
        lambda job: Change(before=job, after=steps.held(job, reason)),
        read=lambda: None,
        store=wiring.store,
        clock=wiring.clock,
    )
    assert view(plane)["tasks"]["held"] == 1
    monkeypatch.setattr(dependency_sweep, "MOST_TASKS", 2)
    for _ in range(3):
        plane.reconcile()
    plane.wake()
    assert view(plane)["tasks"]["held"] == 0
