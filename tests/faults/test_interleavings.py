"""Group C with handlers that really run at once: who goes next is drawn again before each AWS call."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import A
from tests.faults.conftest import NewWorld
from tests.faults.interleaving import Interleaving
from tests.faults.scenes import ends, trains
from tests.integration.world import World

SEEDS = range(4)


def at_once(world: World, seed: int, *acts: Callable[[], Any]) -> list[Any]:
    print(f"seed {seed}")  # noqa: T201  shown where a test fails, to play it again
    return Interleaving(world, seed).run(acts)


def rank_of(world: World, name: str) -> tuple[int, int]:
    """Priority and score as the one row of queue or pool has them."""
    reader = world.wiring.reader
    entries = [(one.name, one.priority, one.score) for one in reader.running("main")]
    entries += [(one.name, one.priority, one.score) for one in reader.waiting("main", after=None, limit=10)]
    ((priority, score),) = [rank for other, *rank in entries if other == name]
    return priority, score


@pytest.mark.parametrize("passes", [2, 5, 20])
def test_C1_many_passes_at_once_start_each_job_once_and_never_too_many(
    passes: int, new_world: NewWorld
) -> None:
    world = new_world({"pools": [{"name": "main", "capacity": {A: 3}}]})
    names = [f"job{number}" for number in range(5)]
    for name in names:
        world.submit(name)
    at_once(world, passes, *[world.wake] * passes)
    assert sorted(world.states(*names)) == ["pending"] * 2 + ["running"] * 3
    world.check(*names)


@pytest.mark.parametrize("seed", SEEDS)
def test_B1_an_end_delivered_five_times_at_once_is_one_end(seed: int, busy: World) -> None:
    busy.sagemaker.end("job1", "Completed")
    at_once(busy, seed, *[lambda: busy.tell("job1")] * 5)
    assert [line["to"] for line in busy.api("GET", "/jobs/job1")["history"]].count("completed") == 1
    busy.check("job1", "job2")


@pytest.mark.parametrize("seed", SEEDS)
def test_C3_a_cancel_beside_a_pass_never_leaves_a_training_job_that_nobody_stops(
    seed: int, world: World
) -> None:
    world.submit("job1")
    status, _ = at_once(world, seed, lambda: world.cancel("job1"), world.wake)
    assert status == 202
    world.schedule()
    if "job1" in world.sagemaker.live():
        assert world.sagemaker.jobs["job1"].status == "Stopping"
        ends(world, "job1", "Stopped")
    assert world.states("job1") == ["stopped"]
    world.check("job1")


@pytest.mark.parametrize("seed", SEEDS)
def test_C4_a_cancel_beside_the_end_is_accepted_or_told_the_end(seed: int, busy: World) -> None:
    busy.sagemaker.end("job1", "Completed")
    answer, _ = at_once(busy, seed, lambda: busy.api("DELETE", "/jobs/job1"), lambda: busy.tell("job1"))
    assert answer["status"] == 202 or "the job is completed" in answer["detail"]
    busy.reconcile()
    assert busy.states("job1") == ["completed"], "it had completed before anybody could stop it"
    busy.check("job1", "job2")


@pytest.mark.parametrize("seed", SEEDS)
def test_C5_a_new_priority_beside_a_pass_is_on_the_job_wherever_it_is(seed: int, world: World) -> None:
    for name in ("job1", "job2", "job3"):
        world.submit(name)
    answer, _ = at_once(world, seed, lambda: world.patch("job3", priority=9), world.wake)
    assert answer["status"] == 200
    world.schedule()
    world.check("job1", "job2", "job3")
    assert rank_of(world, "job3") == (9, world.job("job3").score)


@pytest.mark.parametrize("seed", SEEDS)
def test_C5_two_new_priorities_at_once_leave_one_of_them(seed: int, busy: World) -> None:
    at_once(busy, seed, lambda: busy.patch("job1", priority=5), lambda: busy.patch("job1", priority=7))
    assert busy.job("job1").priority in (5, 7)
    running = {entry.name: entry.priority for entry in busy.wiring.reader.running("main")}
    assert running["job1"] == busy.job("job1").priority


@pytest.mark.parametrize("seed", SEEDS)
def test_C7_a_cancel_beside_the_end_of_a_preemption_never_brings_the_job_back(
    seed: int, preempting: World
) -> None:
    preempting.sagemaker.end("job1", "Stopped")
    at_once(preempting, seed, lambda: preempting.cancel("job1"), lambda: preempting.tell("job1"))
    preempting.schedule()
    assert preempting.states("job1", "job4") == ["stopped", "running"]
    preempting.check("job1", "job2", "job4")


@pytest.mark.parametrize("seed", SEEDS)
def test_C8_two_preemptors_at_once_never_stop_one_victim_for_both(seed: int, busy: World) -> None:
    busy.submit("job4", priority=3)
    busy.submit("job5", priority=4)
    at_once(busy, seed, busy.wake, busy.wake)
    busy.schedule()
    assert busy.states("job1", "job2") == ["preempting", "preempting"]
    for name in ("job1", "job2"):
        ends(busy, name, "Stopped")
    assert busy.states("job1", "job2", "job4", "job5") == ["preempted", "preempted", "running", "running"]
    busy.check("job1", "job2", "job4", "job5")


@pytest.mark.parametrize("seed", SEEDS)
def test_C11_two_submissions_of_one_name_at_once_are_one_job(seed: int, world: World) -> None:
    first, second = at_once(world, seed, lambda: world.submit("job1"), lambda: world.submit("job1"))
    assert sorted([first["status"], second["status"]]) == [200, 201]
    world.check("job1")


@pytest.mark.parametrize("seed", SEEDS)
def test_C14_a_capacity_lowered_beside_a_pass_binds_every_claim_after_it(
    seed: int, new_world: NewWorld
) -> None:
    world = new_world({"pools": [{"name": "main", "capacity": {A: 3}}]})
    names = [f"job{number}" for number in range(4)]
    for name in names:
        world.submit(name)
    lowered = {"pools": [{"name": "main", "capacity": {A: 1}}]}
    at_once(world, seed, lambda: world.api("PUT", "/policy", lowered), world.wake)
    started = world.states(*names).count("running")
    world.schedule()
    assert world.states(*names).count("running") == max(started, 1)
    trains(world, *world.sagemaker.live())
    assert started <= 3


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200))
def test_whatever_all_handlers_do_at_once_nothing_is_lost_doubled_or_too_many(seed: int, busy: World) -> None:
    for number, priority in ((3, 1), (4, 3), (5, 2)):
        busy.submit(f"job{number}", priority=priority)
    busy.sagemaker.end("job2", "Completed")
    acts: list[Callable[[], Any]] = [
        busy.wake,
        busy.wake,
        busy.reconcile,
        lambda: busy.tell("job2"),
        lambda: busy.api("DELETE", "/jobs/job3"),
        lambda: busy.patch("job1", priority=5),
        lambda: busy.submit("job6", priority=4),
    ]
    at_once(busy, seed, *acts)
    names = [f"job{number}" for number in range(1, 7)]
    busy.check(*names)
    busy.a_minute_passes()
    busy.check(*names)
    assert busy.states("job2", "job3") == ["completed", "stopped"]
