"""Group A: each handler dies before and after each of its AWS calls; retries and repair make it good."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from trainmaster.jobs import JobState

from tests.builders import minutes
from tests.faults.conftest import NewWorld
from tests.integration.cloud import AnswerLost
from tests.integration.world import Crash, World


@dataclass(frozen=True, slots=True)
class Scenario:
    """One handler at work, and where everything must be in the end, whatever died in between."""

    prepare: Callable[[World], Any]
    act: Callable[[World], Any]
    ends: dict[str, str]
    """State of each job once everything has come to rest."""
    policy: dict[str, Any] | None = None
    again: Callable[[World], Any] | None = None
    """What the outside repeats by itself: the client its request."""


def accepted(world: World, name: str, **fields: Any) -> None:
    assert world.submit(name, **fields)["status"] in (200, 201)


def waits(world: World) -> None:
    accepted(world, "job1")


def refused(world: World) -> None:
    accepted(world, "job1")
    world.sagemaker.refuse["CreateTrainingJob"] = [("ValidationException", 400)] * 9


def two_run(world: World) -> None:
    accepted(world, "job1", priority=1)
    accepted(world, "job2", priority=2)
    world.schedule()
    for name in ("job1", "job2"):
        world.sagemaker.train(name)
        world.tell(name)
    assert world.states("job1", "job2") == ["running", "running"]


def urgent_comes(world: World) -> None:
    two_run(world)
    accepted(world, "job4", priority=3)


def victim_stopped(world: World) -> None:
    urgent_comes(world)
    world.schedule()
    world.sagemaker.end("job1", "Stopped")


def one_completed(world: World) -> None:
    two_run(world)
    world.sagemaker.end("job1", "Completed")


def much_to_repair(world: World) -> None:
    """An end nobody heard of, and a claim whose process died before it created anything."""
    two_run(world)
    world.sagemaker.end("job1", "Completed")
    world.tell("job1")
    accepted(world, "job3")
    assert world.dies(world.ring, Crash("CreateTrainingJob", "before"))
    world.sagemaker.end("job2", "Completed")
    world.now += minutes(6)
    assert world.states("job2", "job3") == ["running", "starting"]


def job1_is_heard_of(world: World) -> None:
    world.tell("job1")


def delete(world: World) -> None:
    assert world.api("DELETE", "/jobs/job1")["status"] in (202, 409)


def alarm(world: World) -> None:
    message = '{"AlarmName": "trainmaster-trainmaster-idle-job1", "AWSAccountId": "123456789012"}'
    world.call("on_idle_alarm", {"Records": [{"Sns": {"Message": message}}]})


MADE_ROOM = {"job1": "preempted", "job2": "running", "job4": "running"}
SCENARIOS = {
    "submit": Scenario(lambda _: None, waits, {"job1": "running"}, again=waits),
    "start": Scenario(waits, World.schedule, {"job1": "running"}),
    "a start that is refused": Scenario(refused, World.schedule, {"job1": "failed"}),
    "preempt": Scenario(urgent_comes, World.schedule, MADE_ROOM),
    "requeue": Scenario(victim_stopped, job1_is_heard_of, MADE_ROOM),
    "end": Scenario(one_completed, job1_is_heard_of, {"job1": "completed", "job2": "running"}),
    "cancel": Scenario(two_run, delete, {"job1": "stopped", "job2": "running"}, again=delete),
    "idle alarm": Scenario(two_run, alarm, {"job1": "running", "job2": "running"}),
    "reconcile": Scenario(
        much_to_repair, World.reconcile, {"job1": "completed", "job2": "completed", "job3": "running"}
    ),
}


MINUTES = 6
"""Rounds of the reconciler within which everything must be good again."""


def comes_to_rest(world: World, ends: dict[str, str]) -> dict[str, str]:
    """SageMaker finishes what it was told to stop; no event of it arrives; minutes pass."""
    states: dict[str, str] = {}
    for _ in range(MINUTES):
        for name, job in world.sagemaker.live().items():
            if job.status == "Stopping":
                world.sagemaker.end(name, "Stopped")
        world.a_minute_passes()
        states = {name: world.job(name).state.value for name in ends}
        if states == ends:
            break
    return states


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_crash_at_any_call_is_made_good(name: str, new_world: NewWorld) -> None:
    scenario = SCENARIOS[name]
    world = new_world(scenario.policy)
    scenario.prepare(world)
    ready = world.save()
    calls = world.count(lambda: scenario.act(world))
    assert calls > 0
    for at, phase in itertools.product(range(calls), ("before", "after")):
        world.restore(ready)
        assert world.dies(lambda: scenario.act(world), Crash(at, phase))
        if scenario.again is not None:
            scenario.again(world)
        assert comes_to_rest(world, scenario.ends) == scenario.ends, f"died {phase} call {at}"
        world.check(*scenario.ends)


# The rows of the list, each by itself.


def test_A1_add_job_dies_before_the_write(world: World) -> None:
    assert world.dies(lambda: waits(world), Crash("TransactWriteItems", "before"))
    assert world.wiring.reader.job("job1") is None
    assert world.submit("job1")["status"] == 201


def test_A2_add_job_dies_after_the_write_and_a_retry_gets_the_same_entry(world: World) -> None:
    assert world.dies(lambda: waits(world), Crash("TransactWriteItems", "after"))
    entry = world.job("job1").spec.entry_id
    assert world.submit("job1")["status"] == 200
    assert world.job("job1").spec.entry_id == entry


def test_A3_the_scheduler_dies_before_the_claim(world: World) -> None:
    waits(world)
    before = world.job("job1")
    assert world.dies(world.ring, Crash("TransactWriteItems", "before"))
    assert world.job("job1") == before


def test_A4_dying_between_claim_and_create_costs_the_lease_and_nothing_else(world: World) -> None:
    waits(world)
    assert world.dies(world.ring, Crash("CreateTrainingJob", "before"))
    world.reconcile()
    assert world.states("job1") == ["starting"], "the slow worker may still come: no repair within the lease"
    world.now += minutes(6)
    world.reconcile()
    job = world.job("job1")
    assert (job.state, job.attempt) == (JobState.PENDING, 0)
    world.check("job1")


@pytest.mark.parametrize("answer", ["lost with the process", "lost by the network"])
def test_A5_a_create_whose_answer_is_lost_is_adopted(answer: str, world: World) -> None:
    waits(world)
    if answer == "lost with the process":
        assert world.dies(world.ring, Crash("CreateTrainingJob", "after"))
        world.now += minutes(6)
        world.reconcile()
    else:
        world.wire.strike("CreateTrainingJob", 1, AnswerLost())
        world.ring()
    assert world.states("job1") == ["running"]
    assert world.sagemaker.creates == ["job1"]


def test_A6_created_but_not_recorded_becomes_running(world: World) -> None:
    waits(world)
    assert world.dies(world.ring, Crash("CreateTrainingJob", "after"))
    assert world.states("job1") == ["starting"]
    world.tell("job1")
    assert world.states("job1") == ["running"], "the event is enough"


def test_A8_a_preemption_recorded_but_not_sent_is_sent_by_the_next_pass(world: World) -> None:
    urgent_comes(world)
    assert world.dies(world.schedule, Crash("StopTrainingJob", "before"))
    assert world.states("job1") == ["preempting"]
    world.reconcile()
    world.schedule()
    assert world.sagemaker.jobs["job1"].stops == 1
    world.sagemaker.end("job1", "Stopped")
    world.tell("job1")
    world.schedule()
    assert world.states("job1", "job2", "job4") == ["preempted", "running", "running"]
    world.check("job1", "job2", "job4")


def test_A9_a_stop_sent_by_a_process_that_died_is_completed_by_the_event(world: World) -> None:
    urgent_comes(world)
    assert world.dies(world.schedule, Crash("StopTrainingJob", "after"))
    world.sagemaker.end("job1", "Stopped")
    world.tell("job1")
    assert world.states("job1") == ["preempted"]


@pytest.mark.parametrize("phase", ["before", "after"])
def test_A10_an_end_is_applied_once_however_often_it_is_delivered(phase: str, world: World) -> None:
    one_completed(world)
    assert world.dies(lambda: world.tell("job1"), Crash("TransactWriteItems", phase))
    for _ in range(3):
        world.tell("job1")
    assert world.states("job1", "job2") == ["completed", "running"]
    world.check("job1", "job2")


def test_A12_a_requeue_without_a_ring_is_started_by_the_next_minute(world: World) -> None:
    victim_stopped(world)
    assert world.dies(lambda: world.tell("job1"), Crash("TransactWriteItems", "after"))
    assert world.states("job1", "job4") == ["preempted", "pending"]
    world.reconcile()
    world.schedule()
    assert world.states("job4") == ["running"]


def test_A13_a_reconciler_that_dies_half_way_leaves_valid_repairs(world: World) -> None:
    much_to_repair(world)
    assert world.dies(world.reconcile, Crash("TransactWriteItems", "after"))
    world.check("job1", "job2", "job3")
    world.reconcile()
    assert world.states("job2", "job3") == ["completed", "pending"]
    world.check("job1", "job2", "job3")
