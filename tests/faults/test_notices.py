"""What is told while events come twice, processes die and nobody listens."""

import pytest
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.outbox.render import event_detail

from tests.builders import A, minutes
from tests.ends import stopped_for_idle
from tests.faults.conftest import NewWorld
from tests.faults.scenes import ends, trains
from tests.integration.cloud import THROTTLED, Unreachable
from tests.integration.world import Crash, World
from tests.unit.core.outbox.examples import EXAMPLES

BUDGET = {
    "pools": [{"name": "main", "capacity": {"ml.a.xlarge": 2}}],
    "teams": [
        {
            "name": "vision",
            "principals": ["arn:aws:iam::123456789012:user/ada"],
            "roles": "any",
            "budget": {"usd_per_month": 10},
        }
    ],
    "prices": {"ml.a.xlarge": 9},
}


def test_B1_an_end_heard_five_times_is_told_once(busy: World) -> None:
    busy.sagemaker.end("job1", "Completed")
    for _ in range(5):
        busy.tell("job1")
        busy.schedule()
    assert busy.messages.kinds() == ["Job Completed"]
    assert busy.messages.mails == []


def test_B8_a_failure_reason_with_control_characters_is_mailed_safely(busy: World) -> None:
    ends(busy, "job1", "Failed", reason="AlgorithmError: \x1b[2J\x00 exit code 1\n" + "x" * 5000)
    (mail,) = busy.messages.mails
    assert mail.subject == "[trainmaster] Job Failed: job1"
    assert all(line.isprintable() for line in mail.text.splitlines())
    assert len(mail.text) < 2000
    assert mail.attributes["kind"] == "Job Failed"


def test_a_preempted_job_is_told_when_it_has_stopped(preempting: World) -> None:
    assert preempting.messages.kinds() == []
    ends(preempting, "job1", "Stopped")
    (event,) = preempting.messages.events
    assert (event.kind, event.detail["job"]) == ("Job Preempted", "job1")
    assert event.detail["for_job"] == "job4"


@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("operation", ["PutEvents", "Publish", "DeleteItem"])
def test_a_death_while_telling_is_made_good(busy: World, operation: str, phase: str) -> None:
    busy.sagemaker.end("job1", "Failed", reason="AlgorithmError: exit code 1")
    busy.tell("job1")
    assert busy.dies(busy.schedule, Crash(operation, phase))
    busy.a_minute_passes()
    ids = {event.detail["id"] for event in busy.messages.events}
    assert len(ids) == 1
    assert 1 <= len(busy.messages.mails) <= 2
    assert not [item for item in busy.items() if item["pk"]["S"] == "E#main"]


@pytest.mark.parametrize("operation", ["PutEvents", "Publish"])
def test_while_nobody_can_be_told_jobs_start_and_nothing_is_forgotten(busy: World, operation: str) -> None:
    trouble = Unreachable() if operation == "Publish" else THROTTLED
    busy.wire.lasting[operation] = trouble
    busy.submit("job3")
    ends(busy, "job1", "Failed", reason="AlgorithmError: exit code 1")
    assert busy.states("job3") == ["running"]
    assert busy.messages.mails == []
    busy.wire.heal()
    busy.a_minute_passes()
    assert [mail.subject for mail in busy.messages.mails] == ["[trainmaster] Job Failed: job1"]


def test_every_kind_of_notice_comes_out_of_the_table_as_it_went_in(world: World) -> None:
    world.wiring.store.leave("main", list(EXAMPLES.values()))
    world.wake()
    told = {event.kind: event.detail for event in world.messages.events}
    assert told == {
        kind.value: {"stack": "trainmaster", **event_detail(message)} for kind, message in EXAMPLES.items()
    }


def test_failures_are_told_as_the_policy_judged_them(busy: World) -> None:
    ends(busy, "job1", "Failed", reason="InternalServerError: We encountered an internal error")
    ends(busy, "job2", "Failed", reason="AlgorithmError: ExecuteUserScriptError: exit code 1")
    told = {event.detail["job"]: event for event in busy.messages.events}
    assert (told["job1"].kind, told["job1"].detail["failure_class"]) == ("Job Retried", "service")
    assert (told["job1"].detail["charged"], told["job1"].detail["retries"]) == (True, 1)
    assert told["job1"].detail["why"].endswith("retry 1 of 3")
    assert (told["job2"].kind, told["job2"].detail["failure_class"]) == ("Job Failed", "user-code")
    assert told["job2"].detail["exit_code"] == 1


def test_a_spot_job_that_waited_too_long_is_told_to_have_moved(new_world: NewWorld) -> None:
    spot = {"pools": [{"name": "main", "capacity": {A: 1}, "spot_capacity": {A: 1}}]}
    world = new_world(spot)
    waits = {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200}
    world.submit("spot", EnableManagedSpotTraining=True, StoppingCondition=waits)
    world.schedule()
    trains(world, "spot")
    world.sagemaker.end("spot", "Stopped", "MaxWaitTimeExceeded")
    world.tell("spot")
    world.schedule()
    assert world.messages.kinds() == ["Job Moved To On-Demand"]


def test_an_idle_job_is_told_twice_before_and_after_it_is_stopped(busy: World) -> None:
    trains(busy, "job1")
    job = busy.job("job1")
    warned = steps.idle(job, since=busy.now, stop_due=busy.now + minutes(10))
    (job,) = busy.wiring.store.commit([Change(before=job, after=warned)], at=busy.now)
    busy.now += minutes(11)
    stopped = stopped_for_idle(job, busy.now)
    busy.wiring.store.commit([Change(before=job, after=stopped)], at=busy.now)
    busy.wake()
    ends(busy, "job1", "Stopped")
    assert busy.messages.kinds() == ["Job Idle", "Job Stopped"]
    assert busy.messages.events[1].detail["lost_to"] == "idle"
    assert busy.messages.events[1].detail["lost_seconds"] == 660


def test_what_is_left_to_tell_of_a_pool_that_was_taken_out_of_the_policy_is_told(busy: World) -> None:
    for name in ("job1", "job2"):
        busy.sagemaker.end(name, "Completed")
        busy.tell(name)
    policies = busy.wiring.policies
    policies.put({"pools": []}, pools=[], replaces=policies.current())
    busy.schedule()
    assert busy.messages.kinds() == ["Job Completed", "Job Completed"]


def test_a_team_is_warned_of_its_budget_once_a_month(new_world: NewWorld) -> None:
    world = new_world(BUDGET)
    world.submit("first", StoppingCondition={"MaxRuntimeInSeconds": 3600})
    world.schedule()
    trains(world, "first")
    world.now += minutes(55)
    ends(world, "first")
    for name in ("second", "third"):
        world.submit(name)
        world.schedule()
    warnings = [event.detail for event in world.messages.events if event.kind == "Budget Warning"]
    assert [(one["id"], one["spent_cents"], one["budget_cents"]) for one in warnings] == [
        ("vision#2026-11#budget-warning", 825, 1000)
    ]
    assert [mail.subject for mail in world.messages.mails] == ["[trainmaster] Budget Warning: vision"]


def test_a_death_between_telling_of_the_budget_and_noting_it_tells_no_second_time(
    new_world: NewWorld,
) -> None:
    world = new_world(BUDGET)
    world.submit("first", StoppingCondition={"MaxRuntimeInSeconds": 3600})
    world.schedule()
    trains(world, "first")
    world.now += minutes(55)
    ends(world, "first")
    world.submit("second")
    message_left = Crash("PutItem", "after")
    assert world.dies(world.schedule, message_left)
    world.a_minute_passes()
    assert world.messages.kinds().count("Budget Warning") == 1
