"""Group A: each handler dies before and after each of its AWS calls; retries and repair make it good."""

import pytest
from trainmaster.core.jobs.model import JobState

from tests.builders import minutes
from tests.faults.alarming import alarms, gpu_policy, idle_alarm
from tests.faults.conftest import NewWorld
from tests.faults.scenarios import SCENARIOS, Scenario, comes_to_rest
from tests.faults.situations import (
    an_alarm_is_orphaned,
    gpus_train,
    much_to_repair,
    one_completed,
    urgent_comes,
    victim_stopped,
    waits,
    watched_job_has_ended,
)
from tests.integration.cloud import AnswerLost
from tests.integration.world import Crash, World


@pytest.mark.thorough
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_crash_around_any_call_that_writes_is_made_good(name: str, new_world: NewWorld) -> None:
    """A process that dies leaves behind what it wrote: deaths between the same two writes are the same."""
    _die_everywhere(SCENARIOS[name], new_world, reads=False)


@pytest.mark.thorough
@pytest.mark.long
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_crash_at_any_call_is_made_good(name: str, new_world: NewWorld) -> None:
    _die_everywhere(SCENARIOS[name], new_world, reads=True)


def _die_everywhere(scenario: Scenario, new_world: NewWorld, *, reads: bool) -> None:
    world = new_world(scenario.policy)
    scenario.prepare(world)
    ready = world.save()
    world.restore(ready)  # counted in a fresh process, as it is played
    calls = world.calls_of(lambda: scenario.act(world))
    chosen = [number for number, operation in enumerate(calls) if reads or not is_read(operation)]
    assert chosen, calls
    for at in chosen:
        for phase in ("before", "after"):
            world.restore(ready)
            died = world.dies(lambda: scenario.act(world), Crash(at, phase))
            assert died, f"{phase} call {at}, {calls[at]}"
            if scenario.again is not None:
                scenario.again(world)
            assert comes_to_rest(world, scenario) == scenario.ends, f"died {phase} call {at}, {calls[at]}"
            world.check(*scenario.ends, capacity=scenario.capacity)


def is_read(operation: str) -> bool:
    return operation.startswith(("Get", "Query", "BatchGet", "Describe", "List", "Head", "Receive"))


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
    assert world.dies(world.wake, Crash("TransactWriteItems", "before"))
    assert world.job("job1") == before


def test_A4_dying_between_claim_and_create_costs_the_lease_and_nothing_else(world: World) -> None:
    waits(world)
    assert world.dies(world.wake, Crash("CreateTrainingJob", "before"))
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
        assert world.dies(world.wake, Crash("CreateTrainingJob", "after"))
        world.now += minutes(6)
        world.reconcile()
    else:
        world.wire.strike("CreateTrainingJob", 1, AnswerLost())
        world.wake()
    assert world.states("job1") == ["running"]
    assert world.sagemaker.creates == ["job1"]


def test_A6_created_but_not_recorded_becomes_running(world: World) -> None:
    waits(world)
    assert world.dies(world.wake, Crash("CreateTrainingJob", "after"))
    assert world.states("job1") == ["starting"]
    world.tell("job1")
    assert world.states("job1") == ["running"], "the event is enough"


@pytest.mark.parametrize("call", ["PutMetricAlarm", "TransactWriteItems"])
@pytest.mark.parametrize("phase", ["before", "after"])
def test_A7_dying_between_the_record_and_the_alarm_leaves_it_to_the_next_minute(
    call: str, phase: str, new_world: NewWorld
) -> None:
    world = new_world(gpu_policy())
    gpus_train(world)
    assert world.dies(world.wake, Crash(call, phase))
    world.reconcile()
    world.schedule()
    assert alarms(world) == {idle_alarm("job1")}
    assert world.job("job1").live.watch.monitored  # type: ignore[union-attr]
    assert world.calls_of(world.wake).count("PutMetricAlarm") == 0, "once is enough"


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


@pytest.mark.parametrize("phase", ["before", "after"])
def test_A11_an_alarm_outlives_the_process_that_was_to_delete_it_by_a_minute(
    phase: str, new_world: NewWorld
) -> None:
    world = new_world(gpu_policy())
    watched_job_has_ended(world)
    assert world.dies(world.schedule, Crash("DeleteAlarms", phase))
    world.now += minutes(4)  # whoever took the message has it for three
    world.reconcile()
    world.schedule()
    assert alarms(world) == set()


def test_A11_an_alarm_without_a_live_attempt_is_found_and_deleted(new_world: NewWorld) -> None:
    world = new_world(gpu_policy())
    an_alarm_is_orphaned(world)
    assert "DeleteAlarms" not in world.calls_of(world.reconcile), "only schedule changes anything outside"
    assert alarms(world) == {idle_alarm("job1")}
    world.schedule()
    assert alarms(world) == set()
    world.reconcile()
    assert "DeleteAlarms" not in world.calls_of(world.schedule)


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
