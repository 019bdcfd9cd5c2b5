"""Group C as far as the queue goes: two at once, cancels and preemptions in between."""

from typing import Any

import pytest

from tests.builders import A, minutes
from tests.faults.scenes import code_of, ends
from tests.integration.cloud import CONFLICT, refusal
from tests.integration.world import Crash, World


def test_C1_two_passes_at_once_start_each_job_once_and_never_too_many(world: World) -> None:
    for name in ("job1", "job2", "job3"):
        world.submit(name)
    create = world.sagemaker._CreateTrainingJob

    def another_pass_meanwhile(body: dict[str, Any]) -> Any:
        world.wake()
        return create(body)

    world.sagemaker.intercept["CreateTrainingJob"] = another_pass_meanwhile
    world.schedule()
    assert world.states("job1", "job2", "job3") == ["running", "running", "pending"]
    assert sorted(world.sagemaker.creates) == ["job1", "job2"]
    world.check("job1", "job2", "job3")


def test_C2_news_of_a_claim_whose_create_is_still_under_way_takes_nothing_back(world: World) -> None:
    world.submit("job1")
    assert world.dies(world.wake, Crash("CreateTrainingJob", "before"))
    tags = {"trainmaster:stack": "trainmaster"}
    world.call("on_training_job_event", {"detail": {"TrainingJobName": "job1", "Tags": tags}})
    assert world.states("job1") == ["starting"]


def test_C2_the_reconciler_leaves_a_claim_alone_while_its_worker_may_live(world: World) -> None:
    world.submit("job1")
    assert world.dies(world.wake, Crash("CreateTrainingJob", "before"))
    for _ in range(4):
        world.now += minutes(1)
        world.reconcile()
    assert world.states("job1") == ["starting"]


def test_C3_a_cancel_between_claim_and_create_stops_what_was_created(world: World) -> None:
    world.submit("job1")
    create = world.sagemaker._CreateTrainingJob

    def cancelled_meanwhile(body: dict[str, Any]) -> Any:
        assert world.api("DELETE", "/jobs/job1")["status"] == 202
        return create(body)

    world.sagemaker.intercept["CreateTrainingJob"] = cancelled_meanwhile
    world.schedule()
    assert world.sagemaker.jobs["job1"].status == "Stopping"
    ends(world, "job1", "Stopped")
    assert world.states("job1") == ["stopped"]
    world.check("job1")


def test_C3_a_cancel_of_a_claim_that_is_refused_ends_as_stopped(world: World) -> None:
    world.submit("job1")

    def cancelled_meanwhile(_: dict[str, Any]) -> Any:
        assert world.api("DELETE", "/jobs/job1")["status"] == 202
        return refusal("ValidationException", "no such subnet")

    world.sagemaker.intercept["CreateTrainingJob"] = cancelled_meanwhile
    world.schedule()
    assert world.states("job1") == ["stopped"]
    world.check("job1")


def test_C4_a_cancel_after_the_end_is_a_conflict(busy: World) -> None:
    ends(busy, "job1")
    answer = busy.api("DELETE", "/jobs/job1")
    assert answer["status"] == 409
    assert "completed" in answer["detail"]


def test_C5_a_new_priority_after_the_claim_is_on_the_job_that_runs(world: World) -> None:
    world.submit("job1")
    world.meanwhile["CreateTrainingJob"] = lambda: world.patch("job1", priority=9)
    world.schedule()
    (entry,) = world.wiring.reader.running("main")
    assert (entry.state.value, entry.priority, entry.known_to_sagemaker) == ("running", 9, True)
    world.check("job1")


def test_C5_a_new_priority_before_the_claim_makes_the_pass_look_again(world: World) -> None:
    for name in ("job1", "job2", "job3"):
        world.submit(name)
    world.meanwhile["TransactWriteItems"] = lambda: world.patch("job1", priority=9)
    world.schedule()
    assert world.states("job1", "job2", "job3") == ["running", "running", "pending"]
    assert world.sagemaker.creates == ["job2", "job1"], "the first claim of job1 was void"
    world.check("job1", "job2", "job3")


def test_a_hold_before_the_claim_keeps_the_job_from_starting(world: World) -> None:
    world.submit("job1")
    world.meanwhile["TransactWriteItems"] = lambda: world.patch("job1", held=True)
    world.schedule()
    assert world.states("job1") == ["held"]
    assert world.sagemaker.creates == []
    assert world.patch("job1", held=False)["status"] == 200
    world.schedule()
    assert world.states("job1") == ["running"]
    world.check("job1")


def test_C7_a_preempted_job_that_its_user_cancels_does_not_come_back(preempting: World) -> None:
    assert preempting.api("DELETE", "/jobs/job1")["status"] == 202
    ends(preempting, "job1", "Stopped")
    assert preempting.states("job1", "job4") == ["stopped", "running"]
    assert code_of(preempting, "job1") == "stopped-by-user"
    preempting.check("job1", "job2", "job4")


@pytest.mark.parametrize("status", ["Stopped", "Failed"])
def test_C7_however_a_job_ends_that_its_user_stopped_it_is_stopped_by_the_user(
    status: str, busy: World
) -> None:
    assert busy.cancel("job1") == 202
    ends(busy, "job1", status, reason="AlgorithmError: ExitCode 143")
    assert (busy.states("job1"), code_of(busy, "job1")) == (["stopped"], "stopped-by-user")
    busy.check("job1", "job2")


def test_C8_a_second_preemptor_needs_a_second_victim(preempting: World) -> None:
    preempting.submit("job5", priority=4)
    preempting.schedule()
    assert preempting.states("job1", "job2") == ["preempting", "preempting"]
    assert [preempting.sagemaker.jobs[name].stops for name in ("job1", "job2")] == [1, 1]


def test_C9_room_freed_for_a_preemptor_that_left_goes_to_the_next_in_turn(preempting: World) -> None:
    preempting.submit("job3", priority=1)
    assert preempting.api("DELETE", "/jobs/job4")["status"] == 202
    ends(preempting, "job1", "Stopped")
    assert preempting.states("job1", "job3", "job4") == ["running", "pending", "stopped"]
    preempting.check("job1", "job2", "job3", "job4")


def test_C10_a_stop_in_the_console_is_final_and_names_its_cause(busy: World) -> None:
    ends(busy, "job1", "Stopped")
    assert busy.states("job1") == ["stopped"]
    assert code_of(busy, "job1") == "stopped-outside"


def test_C11_the_same_name_with_the_same_body_is_the_same_job_and_with_another_a_conflict(
    world: World,
) -> None:
    assert world.submit("job1")["status"] == 201
    assert world.submit("job1")["status"] == 200
    answer = world.submit("job1", priority=5)
    assert answer["status"] == 409
    assert "pending" in answer["detail"]


def test_C12_a_job_that_ended_after_it_was_read_as_waiting_is_passed_over(world: World) -> None:
    world.submit("job1", priority=1)
    world.submit("job2")
    world.meanwhile["TransactWriteItems"] = lambda: world.cancel("job1")
    world.schedule()
    assert world.states("job1", "job2") == ["stopped", "running"]
    assert world.sagemaker.creates == ["job2"]
    world.check("job1", "job2")


@pytest.mark.parametrize("conflicts", [1, 3])
def test_C13_a_conflict_of_transactions_is_tried_again_with_jitter(conflicts: int, world: World) -> None:
    world.submit("job1")
    world.wire.strike("TransactWriteItems", conflicts, CONFLICT)
    world.wake()
    assert world.states("job1") == ["running"]
    waits = world.wire.waits
    assert [0 <= wait <= 0.05 * 2**number for number, wait in enumerate(waits)] == [True] * conflicts
    assert len(set(waits)) == conflicts


def test_C13_a_row_that_stays_busy_leaves_everything_for_the_next_pass(world: World) -> None:
    world.submit("job1")
    world.wire.lasting["TransactWriteItems"] = CONFLICT
    world.wake()
    assert world.states("job1") == ["pending"]
    assert len(world.wire.waits) == 14, "seven pauses between the tries of the claim, seven of the reason"
    assert max(world.wire.waits) < 6.4
    world.wire.heal()
    world.wake()
    assert world.states("job1") == ["running"]


def test_C14_a_probe_of_the_account_does_not_outlive_a_lowered_capacity(world: World) -> None:
    """The account allows more by now, but the pool no longer does."""
    world.sagemaker.limits[A] = 1
    world.submit("job1")
    world.submit("job2")
    world.schedule()
    assert world.states("job1", "job2") == ["running", "pending"]
    assert world.api("PUT", "/policy", {"pools": [{"name": "main", "capacity": {A: 1}}]})["status"] == 200
    world.sagemaker.limits.clear()
    world.a_minute_passes()
    assert world.states("job1", "job2") == ["running", "pending"]
    assert code_of(world, "job2") == "account-limit", "AWS has taken no start of it since"
    world.check("job1", "job2")


def test_C14_capacity_lowered_below_use_stops_nobody_and_starts_nobody(busy: World) -> None:
    busy.submit("job3")
    answer = busy.api("PUT", "/policy", {"pools": [{"name": "main", "capacity": {A: 1}}]})
    assert answer["status"] == 200
    busy.schedule()
    assert busy.states("job1", "job2", "job3") == ["running", "running", "pending"]
    ends(busy, "job1")
    assert busy.states("job2", "job3") == ["running", "pending"]
    ends(busy, "job2")
    assert busy.states("job3") == ["running"]


def test_paused_nothing_starts_and_nobody_is_preempted(busy: World) -> None:
    assert busy.api("PUT", "/policy/paused", {"paused": True})["paused"] is True
    busy.submit("job4", priority=9)
    busy.schedule()
    assert busy.states("job1", "job4") == ["running", "pending"]
    assert code_of(busy, "job4") == "paused"
    busy.api("PUT", "/policy/paused", {"paused": False})
    busy.schedule()
    assert busy.states("job1") == ["preempting"]
