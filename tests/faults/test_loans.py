"""O8 and O9 through the whole plane: what a team has lent comes back, and what can never start is refused."""

from dataclasses import replace
from typing import Any

import pytest
from trainmaster.core.lifecycle.change import Change

from tests.builders import A
from tests.faults.conftest import NewWorld
from tests.faults.scenes import code_of, ends, trains
from tests.integration.messages import USER
from tests.integration.world import World

FIXED = {"Key": "trainmaster:preemptible", "Value": "false"}
TEAMS = [{"name": name, "roles": "any", "principals": [USER]} for name in ("a", "b")]


def document(a: Any = 2, b: Any = 2, **preemption: Any) -> dict[str, Any]:
    pool = {"name": "main", "capacity": {A: 4}, "quotas": {"a": a, "b": b}, "preemption": preemption}
    return {"pools": [pool], "teams": TEAMS}


def submit(world: World, name: str, team: str, *more: dict[str, str], count: int = 1) -> dict[str, Any]:
    resources = {"InstanceType": A, "InstanceCount": count, "VolumeSizeInGB": 10}
    tags = [{"Key": "team", "Value": team}, *more]
    return world.submit(name, ResourceConfig=resources, Tags=tags)


def starts(world: World, *names: str) -> None:
    world.schedule()
    trains(world, *names)


def test_O8_a_team_cannot_keep_another_from_its_quota_with_jobs_that_cannot_be_stopped(
    new_world: NewWorld,
) -> None:
    world = new_world(document())
    for name in ("b1", "b2", "b3", "b4"):
        assert submit(world, name, "b", FIXED)["status"] == 201
    world.schedule()
    assert world.states("b1", "b2", "b3", "b4") == ["running", "running", "pending", "pending"]
    assert code_of(world, "b3") == "quota"
    trains(world, "b1", "b2")
    for name in ("a1", "a2"):
        submit(world, name, "a")
    world.schedule()
    assert world.states("a1", "a2") == ["running", "running"]  # at once: nobody has to be stopped
    ends(world, "b1")
    assert world.states("b3", "b4") == ["running", "pending"]


def test_O8_a_reclaim_is_possible_after_max_per_job_and_is_not_counted_in_it(new_world: NewWorld) -> None:
    world = new_world(document(max_per_job=1))
    submit(world, "lent", "b", count=4)
    starts(world, "lent")
    for number in (1, 2):
        submit(world, f"mine{number}", "a", count=2)
        world.schedule()
        assert world.states("lent") == ["preempting"]
        ends(world, world.job("lent").live_attempt.training_job_name, "Stopped")
        assert world.states("lent", f"mine{number}") == ["preempted", "running"]
        trains(world, f"mine{number}")
        ends(world, f"mine{number}")
        starts(world, world.job("lent").live_attempt.training_job_name)
    job = world.job("lent")
    assert (job.preemptions, job.comebacks.reclaims) == (2, 2)
    (row,) = world.wiring.reader.running("main")
    assert row.preemptions == 0  # towards max_per_job


@pytest.mark.parametrize("query", [None, {"dry_run": "true"}], ids=["submission", "dry run"])
def test_O8_O9_what_can_never_start_is_refused(new_world: NewWorld, query: dict[str, str] | None) -> None:
    world = new_world(document(a={"nominal": 2, "borrowing_limit": 0}, b=0))
    for team, more, count in (("a", (), 3), ("b", (FIXED,), 1)):
        request = {
            "TrainingJobName": "x",
            "RoleArn": "arn:aws:iam::123456789012:role/training",
            "AlgorithmSpecification": {"TrainingImage": "x", "TrainingInputMode": "File"},
            "OutputDataConfig": {"S3OutputPath": "s3://bucket/output"},
            "ResourceConfig": {"InstanceType": A, "InstanceCount": count, "VolumeSizeInGB": 10},
            "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
            "Tags": [{"Key": "team", "Value": team}, *more],
        }
        answer = world.api("POST", "/add-job", request, query=query)
        errors = answer["violations"] if query else answer["errors"]
        assert answer["status"] == (200 if query else 422)
        assert [one["rule"] for one in errors] == ["never-fits"]
        if query:
            assert (answer["valid"], answer["estimated_start"]) == (False, None)


def test_O8_a_job_that_was_stored_before_this_rule_still_borrows(new_world: NewWorld) -> None:
    world = new_world(document())
    for name in ("b1", "b2", "b3"):
        submit(world, name, "b", FIXED)
    before = world.job("b3")
    earlier = replace(before, spec=replace(before.spec, own_quota=None))
    world.wiring.store.commit([Change(before=before, after=earlier)], at=world.now)
    world.schedule()
    assert world.states("b1", "b2", "b3") == ["running"] * 3


def test_O9_a_job_that_was_stored_before_the_bound_waits_on(new_world: NewWorld) -> None:
    world = new_world(document())
    submit(world, "wide", "a", count=4)
    policies = world.wiring.policies
    lowered = document(a={"nominal": 2, "borrowing_limit": 0})
    policies.put(lowered, pools=["main"], replaces=policies.current())
    world.schedule()
    assert (world.states("wide"), code_of(world, "wide")) == (["pending"], "quota")
    assert submit(world, "wide", "a", count=4)["status"] == 200  # the same request again is answered
    assert submit(world, "again", "a", count=4)["status"] == 422
