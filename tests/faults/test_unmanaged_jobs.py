"""Training jobs that somebody starts without the queue: judged by every event of theirs, and by the sweep."""

from typing import Any

import pytest
from trainmaster.core.errors import UnavailableError
from trainmaster.core.jobs.model import Job

from tests.builders import A, B, minutes, of
from tests.faults.conftest import NewWorld
from tests.faults.scenes import code_of, ends, trains
from tests.faults.test_crashes import is_read
from tests.integration.cloud import THROTTLED, Refused
from tests.integration.messages import ACCOUNT, request
from tests.integration.world import Crash, World

OTHER_ROLE = f"arn:aws:iam::{ACCOUNT}:role/tuning"
NEEDS_MODEL = {"required_tags": {"mode": "enforce", "tags": {"model_name": {}}}}
WITH_MODEL = [{"Key": "model_name", "Value": "llama"}]
TUNING = "arn:aws:sagemaker:us-east-1:123456789012:hyper-parameter-tuning-job/t"
SWEEPS_AT = 5
"""The sweep comes in every fifth minute; noon is one."""


def policy(then: str, *, pools: bool = True, **more: Any) -> dict[str, Any]:
    listed = [{"name": "main", "capacity": {A: 2}}] if pools else []
    return {"pools": listed, "unmanaged_jobs": {"then": then, **more.pop("unmanaged", {})}, **more}


def outside(world: World, name: str = "stray", *, tagged: str | None = None, **changes: Any) -> None:
    """Somebody calls CreateTrainingJob without us; its first event arrives."""
    tags = changes.pop("Tags", WITH_MODEL)
    own = [{"Key": "trainmaster:stack", "Value": tagged}] if tagged else []
    fields = {"tuning_job_arn": changes.pop("tuning")} if "tuning" in changes else {}
    world.sagemaker.run_outside(request(name, Tags=[*tags, *own], **changes), **fields)
    world.tell(name)
    world.schedule()


def on(instance_type: str) -> dict[str, Any]:
    return {"InstanceType": instance_type, "InstanceCount": 1, "VolumeSizeInGB": 10}


def found(world: World, month: str = "2026-11") -> dict[str, str]:
    """What became of each training job, by what is kept of it."""
    records = world.wiring.reader.violations(month, after=None, limit=99)
    return {one.training_job_name: one.outcome.value for one in records}


def stops(world: World, name: str = "stray") -> int:
    return world.sagemaker.jobs[name].stops


def unmanaged(world: World, name: str = "stray") -> Job:
    return world.job(name)


# ---- what becomes of it


def test_by_default_a_unmanaged_is_written_down_and_left_alone(world: World) -> None:
    outside(world)
    assert found(world) == {"stray": "audited"}
    assert (stops(world), world.wiring.reader.job("stray")) == (0, None)


def test_allowed_unmanaged_are_not_even_looked_at(new_world: NewWorld) -> None:
    world = new_world(policy("allow"))
    world.sagemaker.run_outside(request("stray"))
    assert world.calls_of(lambda: world.tell("stray")) == ["GetItem", "GetItem"]
    assert found(world) == {}


@pytest.mark.parametrize(
    ("then", "changes", "outcome"),
    [
        pytest.param("stop", {}, "stopped", id="a pool has its type"),
        pytest.param("stop", {"ResourceConfig": on(B)}, "audited", id="no pool could have taken it"),
        pytest.param(
            "stop", {"ResourceConfig": on(B), "Tags": []}, "stopped", id="no pool, but it breaks a rule"
        ),
        pytest.param("adopt", {"Tags": []}, "stopped", id="adopted jobs keep the rules, too"),
        pytest.param("adopt", {}, "adopted", id="adopted into its pool"),
        pytest.param("adopt", {"ResourceConfig": on(B)}, "adopted", id="adopted without a pool"),
        pytest.param("audit", {"Tags": []}, "audited", id="audit stops nothing"),
    ],
)
def test_a_unmanaged_becomes_what_policy_and_rules_say(
    new_world: NewWorld, then: str, changes: dict[str, Any], outcome: str
) -> None:
    world = new_world(policy(then, rules=NEEDS_MODEL))
    outside(world, **changes)
    assert found(world) == {"stray": outcome}
    assert stops(world) == (1 if outcome == "stopped" else 0)
    assert (world.wiring.reader.job("stray") is not None) is (outcome == "adopted")


def test_a_policy_without_pools_still_governs_by_its_rules(new_world: NewWorld) -> None:
    world = new_world(policy("stop", pools=False, rules=NEEDS_MODEL))
    outside(world, "bad", Tags=[])
    outside(world, "good")
    assert found(world) == {"bad": "stopped", "good": "audited"}
    assert (stops(world, "bad"), stops(world, "good")) == (1, 0)


@pytest.mark.parametrize(
    ("unmanaged", "changes"),
    [
        pytest.param({}, {"tuning": TUNING}, id="made by a tuning job"),
        pytest.param({"except_principals": [OTHER_ROLE]}, {"RoleArn": OTHER_ROLE}, id="an excepted role"),
    ],
)
def test_exceptions_are_left_alone(
    new_world: NewWorld, unmanaged: dict[str, Any], changes: dict[str, Any]
) -> None:
    world = new_world(policy("stop", unmanaged=unmanaged))
    outside(world, **changes)
    assert (found(world), stops(world)) == ({}, 0)


def test_tuning_jobs_are_governed_where_the_policy_says_so(new_world: NewWorld) -> None:
    world = new_world(policy("stop", unmanaged={"except_tuning_jobs": False}))
    outside(world, tuning=TUNING)
    assert found(world) == {"stray": "stopped"}


def test_one_that_has_ended_before_anybody_looked_is_only_written_down(new_world: NewWorld) -> None:
    world = new_world(policy("stop"))
    world.sagemaker.run_outside(request("stray"), status="Completed", secondary="Completed")
    world.tell("stray")
    world.schedule()
    assert (found(world), stops(world)) == ({"stray": "audited"}, 0)


def test_a_unmanaged_is_told_of_once_however_many_events_come(new_world: NewWorld) -> None:
    world = new_world(policy("stop"))
    outside(world)
    for _ in range(3):
        world.tell("stray")
        world.schedule()
    assert stops(world) == 1
    assert told(world) == 1


def told(world: World) -> int:
    return world.messages.kinds().count("Unmanaged Job")


def test_one_that_runs_on_after_its_stop_is_stopped_again(new_world: NewWorld) -> None:
    """The stop was sent and SageMaker forgot it."""
    world = new_world(policy("stop"))
    outside(world)
    job = world.sagemaker.jobs["stray"]
    job.status = job.secondary = "InProgress"
    world.tell("stray")
    world.schedule()
    assert stops(world) == 2
    assert told(world) == 1


def test_a_stop_that_aws_denies_is_given_up_and_told_once(new_world: NewWorld) -> None:
    world = new_world(policy("stop"))
    world.wire.lasting["StopTrainingJob"] = Refused("AccessDeniedException")
    outside(world)
    for _ in range(3):
        world.tell("stray")
        world.schedule()
    assert found(world) == {"stray": "not-stopped"}
    assert world.wire.sent.count("StopTrainingJob") == 1
    assert world.wiring.store.messages("-", limit=9) == ()
    assert told(world) == 2


def test_under_another_policy_the_stop_is_tried_again_and_not_announced_again(new_world: NewWorld) -> None:
    world = new_world(policy("stop"))
    world.wire.lasting["StopTrainingJob"] = Refused("AccessDeniedException")
    outside(world)
    assert world.api("PUT", "/policy", policy("stop", idle={}))["status"] == 200
    world.tell("stray")
    world.schedule()
    world.a_minute_passes()
    assert world.wire.sent.count("StopTrainingJob") == 2
    assert [one.detail["outcome"] for one in world.messages.events] == [
        "stopped",
        "not-stopped",
        "not-stopped",
    ]


def test_a_stop_that_is_throttled_comes_later(new_world: NewWorld) -> None:
    world = new_world(policy("stop"))
    world.wire.lasting["StopTrainingJob"] = THROTTLED
    outside(world)
    assert (found(world), stops(world)) == ({"stray": "stopped"}, 0)
    world.wire.heal()
    world.a_minute_passes()
    assert stops(world) == 1


def test_another_policy_judges_anew_what_still_runs(world: World) -> None:
    outside(world)
    outside(world, "over")
    world.sagemaker.end("over", "Completed")
    assert world.api("PUT", "/policy", policy("stop"))["status"] == 200
    for name in ("stray", "over"):
        world.tell(name)
    world.schedule()
    assert found(world) == {"stray": "stopped", "over": "audited"}
    assert stops(world) == 1


def test_what_became_of_one_that_has_ended_stays_written_whatever_the_policy_says_later(
    new_world: NewWorld,
) -> None:
    world = new_world(policy("stop"))
    outside(world)
    world.sagemaker.end("stray", "Stopped")
    world.api("PUT", "/policy", policy("audit"))
    world.tell("stray")
    world.schedule()
    assert (found(world), told(world)) == ({"stray": "stopped"}, 1)


def test_a_policy_that_changes_nothing_for_it_tells_nobody_again(world: World) -> None:
    outside(world)
    world.api("PUT", "/policy", policy("audit"))
    world.tell("stray")
    world.schedule()
    assert told(world) == 1


# ---- adoption


@pytest.fixture
def adopting(new_world: NewWorld) -> World:
    return new_world(policy("adopt"))


def test_an_adopted_job_is_counted_listed_and_followed_to_its_end(adopting: World) -> None:
    outside(adopting, ResourceConfig={**on(A), "InstanceCount": 2})
    trains(adopting, "stray")
    (view,) = adopting.api("GET", "/jobs")["jobs"]
    assert (view["name"], view["state"], view["pool"], view["attempt"]) == ("stray", "running", "main", 0)
    assert view["submitted_by"] == f"arn:aws:iam::{ACCOUNT}:role/training"
    adopting.submit("queued")
    adopting.schedule()
    assert (adopting.states("queued"), code_of(adopting, "queued")) == (["pending"], "capacity")
    adopting.check("stray", "queued")
    ends(adopting, "stray")
    assert adopting.states("stray", "queued") == ["completed", "running"]
    adopting.check("stray", "queued")


def test_adopted_jobs_may_lift_what_is_used_above_the_capacity_and_then_nothing_starts(
    adopting: World,
) -> None:
    adopting.submit("queued1")
    adopting.submit("queued2")
    adopting.schedule()
    outside(adopting)
    adopting.submit("queued3")
    adopting.schedule()
    adopting.check("stray", "queued1", "queued2", "queued3", capacity=of(3))
    ends(adopting, "queued1")
    assert adopting.states("queued3") == ["pending"]
    ends(adopting, "queued2")
    assert adopting.states("queued3") == ["running"]
    adopting.check("stray", "queued1", "queued2", "queued3")


def test_an_adopted_job_is_never_preempted(adopting: World) -> None:
    outside(adopting, ResourceConfig={**on(A), "InstanceCount": 2})
    trains(adopting, "stray")
    adopting.submit("urgent", priority=900)
    adopting.schedule()
    assert adopting.states("stray", "urgent") == ["running", "pending"]


def test_an_adopted_job_that_aws_does_not_let_us_stop_says_so_once_until_it_does(adopting: World) -> None:
    outside(adopting)
    adopting.wire.lasting["StopTrainingJob"] = Refused("AccessDeniedException")
    adopting.cancel("stray")
    for _ in range(3):
        adopting.a_minute_passes()
    view = adopting.api("GET", "/jobs/stray")
    assert (view["state"], view["waiting"]) == (
        "stopping",
        {"code": "not-stopped", "message": "the stack has no right to stop it (StopTrainingJob)"},
    )
    assert told(adopting) == 2
    adopting.wire.heal()
    adopting.a_minute_passes()
    assert stops(adopting) == 1
    ends(adopting, "stray", "Stopped")
    assert adopting.states("stray") == ["stopped"]
    assert adopting.api("GET", "/jobs/stray")["waiting"] is None


def test_an_adopted_job_can_be_cancelled(adopting: World) -> None:
    outside(adopting)
    assert adopting.cancel("stray") == 202
    adopting.schedule()
    assert stops(adopting) == 1
    ends(adopting, "stray", "Stopped")
    assert adopting.states("stray") == ["stopped"]


@pytest.mark.parametrize("instance_type", [pytest.param(A, id="in a pool"), pytest.param(B, id="in none")])
def test_a_retry_of_an_adopted_job_runs_under_the_queue(adopting: World, instance_type: str) -> None:
    tags = [*WITH_MODEL, {"Key": "trainmaster:retries", "Value": "1"}, {"Key": "aws:x", "Value": "y"}]
    outside(adopting, ResourceConfig=on(instance_type), Tags=tags)
    trains(adopting, "stray")
    adopting.now += minutes(1)
    ends(adopting, "stray", "Failed", reason="CapacityError: Unable to provision requested ML compute")
    assert unmanaged(adopting).attempt == 1
    adopting.now += minutes(40)
    adopting.reconcile()
    adopting.schedule()
    live = unmanaged(adopting).live
    assert live is not None
    again = adopting.sagemaker.jobs[live.training_job_name]
    assert adopting.sagemaker.creates == [live.training_job_name]
    assert again.request["ResourceConfig"] == on(instance_type)
    assert again.request["CheckpointConfig"] == {"S3Uri": "s3://bucket/checkpoints/stray"}
    assert again.tags.keys() == {
        "model_name",
        "trainmaster:stack",
        "trainmaster:job",
        "trainmaster:attempt",
        "trainmaster:spec",
    }
    ends(adopting, live.training_job_name)
    assert adopting.states("stray") == ["completed"]


def test_the_pool_of_unmanaged_needs_no_policy_that_told_it_its_version(adopting: World) -> None:
    """A policy put in force by an earlier version of the plane told only its own pools."""
    rows = tuple(item for item in adopting.items() if item["pk"]["S"] != "P#-")
    adopting.put_back(rows)
    outside(adopting, ResourceConfig=on(B))
    ends(adopting, "stray", "Failed", reason="CapacityError: none")
    adopting.now += minutes(40)
    adopting.wake("-")
    assert adopting.states("stray") == ["running"]


def test_an_adopted_job_of_no_pool_is_in_lists_and_can_be_ranked(adopting: World) -> None:
    outside(adopting, ResourceConfig=on(B))
    assert [job["pool"] for job in adopting.api("GET", "/jobs")["jobs"]] == ["-"]
    assert adopting.api("GET", "/jobs", query={"pool": "-"})["jobs"][0]["name"] == "stray"
    assert adopting.patch("stray", priority=7)["priority"] == 7
    assert adopting.api("GET", "/pools")["pools"][0]["name"] == "main"


def test_a_name_that_waits_in_the_queue_does_not_hide_a_unmanaged(adopting: World) -> None:
    """It cannot be adopted, as its name is taken; that somebody runs it is recorded."""
    adopting.submit("stray")
    outside(adopting)
    assert found(adopting) == {"stray": "audited"}
    assert adopting.states("stray") == ["failed"]  # name-taken


def test_a_training_job_made_again_under_an_adopted_name_is_not_the_adopted_one(adopting: World) -> None:
    outside(adopting)
    ends(adopting, "stray")
    adopting.now += minutes(9)
    outside(adopting)
    months = adopting.wiring.reader.violations("2026-11", after=None, limit=9)
    assert [one.outcome.value for one in months] == ["adopted", "audited"]
    assert adopting.states("stray") == ["completed"]


def test_late_events_of_an_adopted_job_that_ended_change_nothing(adopting: World) -> None:
    outside(adopting)
    ends(adopting, "stray")
    before = adopting.items()
    for _ in range(2):
        adopting.tell("stray")
    assert adopting.items() == before


# ---- events that lie, come twice, late or never


def test_B13_a_tag_of_another_stack_that_the_event_leaves_out_is_seen_in_the_tags(
    new_world: NewWorld,
) -> None:
    world = new_world(policy("stop"))
    world.sagemaker.run_outside(request("stray", Tags=[{"Key": "trainmaster:stack", "Value": "other"}]))
    world.call("on_training_job_event", {"detail": {"TrainingJobName": "stray"}})
    world.schedule()
    assert (found(world), stops(world)) == ({}, 0)


def test_B6_an_event_without_tags_of_a_job_of_ours_is_news_of_that_job(new_world: NewWorld) -> None:
    world = new_world(policy("stop"))
    world.submit("job1")
    world.schedule()
    world.sagemaker.end("job1", "Completed")
    world.call("on_training_job_event", {"detail": {"TrainingJobName": "job1"}})
    assert (world.states("job1"), found(world)) == (["completed"], {})


@pytest.mark.parametrize("then", ["audit", "stop", "adopt"])
def test_B1_an_event_that_comes_while_another_one_is_being_handled_does_no_harm(
    new_world: NewWorld, then: str
) -> None:
    world = new_world(policy(then))
    world.sagemaker.run_outside(request("stray"))
    world.meanwhile["TransactWriteItems"] = lambda: world.tell("stray")
    world.tell("stray")
    world.schedule()
    assert len(found(world)) == 1
    assert told(world) == 1
    if then == "adopt":
        world.check("stray")


def test_B1_a_slow_handler_does_not_judge_anew_what_another_one_has_adopted(adopting: World) -> None:
    """It has seen no job, then comes to a later policy."""
    adopting.sagemaker.run_outside(request("stray"))
    calls = 0

    def meanwhile() -> None:
        nonlocal calls
        calls += 1
        if calls == 2:  # behind its look for a job, before that for the policy
            adopting.tell("stray")
            adopting.api("PUT", "/policy", policy("audit"))

    with adopting.wired(between_calls=meanwhile):
        adopting.tell("stray")
    assert (found(adopting), adopting.states("stray")) == ({"stray": "adopted"}, ["running"])


@pytest.mark.parametrize("then", ["audit", "stop", "adopt"])
def test_B5_a_unmanaged_whose_events_are_lost_is_found_within_minutes(new_world: NewWorld, then: str) -> None:
    world = new_world(policy(then))
    world.sagemaker.run_outside(request("stray"))
    sweep(world)
    assert found(world) == {"stray": {"audit": "audited", "stop": "stopped", "adopt": "adopted"}[then]}
    assert stops(world) == (1 if then == "stop" else 0)


def sweep(world: World) -> None:
    """The next minute in which ``reconcile`` sweeps."""
    while True:
        world.now += minutes(1)
        world.reconcile()
        world.schedule()
        if world.now.minute % SWEEPS_AT == 0:
            return


def test_the_sweep_looks_at_nobody_twice(new_world: NewWorld) -> None:
    world = new_world(policy("audit"))
    for name in ("stray1", "stray2"):
        world.sagemaker.run_outside(request(name))
    sweep(world)
    world.wire.sent.clear()
    sweep(world)
    assert world.wire.sent.count("ListTrainingJobs") == 1
    assert "DescribeTrainingJob" not in world.wire.sent


def test_the_sweep_of_many_goes_on_where_it_left_off(new_world: NewWorld) -> None:
    world = new_world(policy("audit"))
    for number in range(45):
        world.sagemaker.run_outside(request(f"stray{number}"))
    counts = []
    for _ in range(3):
        sweep(world)
        counts.append(len(found(world)))
    assert counts == [20, 40, 45]


def test_D1_a_list_that_is_throttled_keeps_no_repair_from_being_made(new_world: NewWorld) -> None:
    world = new_world(policy("stop"))
    world.submit("job1")
    world.schedule()
    world.sagemaker.run_outside(request("stray"))
    world.sagemaker.end("job1", "Completed")
    world.wire.lasting["ListTrainingJobs"] = THROTTLED
    sweep(world)
    assert (world.states("job1"), found(world)) == (["completed"], {})
    world.wire.heal()
    sweep(world)
    assert found(world) == {"stray": "stopped"}


@pytest.mark.parametrize(
    ("operation", "ended"),
    [
        pytest.param("TransactWriteItems", False, id="on its way, the table"),
        pytest.param("TransactWriteItems", True, id="an end, the table"),
        pytest.param("DescribeTrainingJob", True, id="an end, Describe"),
        pytest.param("ListTags", True, id="an end, its tags"),
    ],
)
def test_B9_an_event_that_could_not_be_handled_is_safe_to_redrive(
    adopting: World, operation: str, *, ended: bool
) -> None:
    """It raises each time, so that Lambda keeps it among the dead letters."""
    adopting.sagemaker.run_outside(request("stray"))
    if ended:
        adopting.sagemaker.end("stray", "Completed")
    adopting.wire.lasting[operation] = THROTTLED
    for _ in range(3):
        with pytest.raises(UnavailableError):
            adopting.tell("stray")
    assert found(adopting) == {}
    adopting.wire.heal()
    adopting.now += minutes(360)
    for _ in range(2):
        adopting.tell("stray")
    assert found(adopting) == {"stray": "audited" if ended else "adopted"}
    adopting.schedule()
    assert told(adopting) == 1
    if not ended:
        assert adopting.states("stray") == ["running"]
        adopting.check("stray")


@pytest.mark.parametrize("operation", ["DescribeTrainingJob", "ListTags"])
def test_B9_where_nothing_has_ended_and_the_account_calls_too_often_the_sweep_makes_it_good(
    adopting: World, operation: str
) -> None:
    """Left to it, not kept among the dead letters; an event that comes again still does no harm."""
    adopting.sagemaker.run_outside(request("stray"))
    adopting.wire.lasting[operation] = THROTTLED
    adopting.tell("stray")
    sweep(adopting)
    assert found(adopting) == {}
    adopting.wire.heal()
    sweep(adopting)
    assert (found(adopting), adopting.states("stray")) == ({"stray": "adopted"}, ["running"])
    adopting.tell("stray")
    adopting.schedule()
    assert told(adopting) == 1
    adopting.check("stray")


def test_D10_an_adopted_job_deleted_outside_has_failed_and_gives_its_instances_back(
    adopting: World,
) -> None:
    outside(adopting)
    del adopting.sagemaker.jobs["stray"]
    adopting.a_minute_passes()
    assert adopting.states("stray") == ["running"], "not found once proves nothing"
    adopting.a_minute_passes()
    assert (adopting.states("stray"), code_of(adopting, "stray")) == (["failed"], "deleted-outside")
    adopting.check("stray")


@pytest.mark.thorough
@pytest.mark.parametrize("then", ["audit", "stop", "adopt"])
def test_a_crash_around_any_call_that_writes_is_made_good(new_world: NewWorld, then: str) -> None:
    world = new_world(policy(then))
    world.sagemaker.run_outside(request("stray"))
    ready = world.save()

    def act() -> None:
        world.tell("stray")
        world.schedule()

    calls = world.calls_of(act)
    assert "TransactWriteItems" in calls
    for number in (number for number, operation in enumerate(calls) if not is_read(operation)):
        for phase in ("before", "after"):
            world.restore(ready)
            assert world.dies(act, Crash(number, phase)), calls[number]
            world.now += minutes(4)  # what a dead pass had taken is free again
            sweep(world)
            sweep(world)
            assert len(found(world)) == 1, calls[number]
            assert (stops(world) > 0) is (then == "stop"), calls[number]
            if then == "adopt":
                world.check("stray")


# ---- ours, but unknown


def test_D15_a_forged_tag_of_ours_makes_a_job_of_it_even_where_unmanaged_are_allowed(
    new_world: NewWorld,
) -> None:
    world = new_world(policy("allow"))
    outside(world, tagged="trainmaster")
    assert (found(world), world.states("stray")) == ({"stray": "adopted"}, ["running"])
    world.check("stray")
