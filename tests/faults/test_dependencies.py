"""Group P: jobs that wait for others, whatever happens to those."""

from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.model import JobState

from tests.builders import A, B
from tests.faults.conftest import NewWorld
from tests.faults.scenes import ends, trains
from tests.integration.conftest import TABLE
from tests.integration.messages import request
from tests.integration.world import Crash, World


def after(world: World, name: str, conditions: str, **tags: str) -> dict[str, Any]:
    """Submit a job with conditions; ``after_failed`` and the like become tags."""
    body = request(name)
    body["Tags"] = [*body["Tags"], {"Key": "trainmaster:after", "Value": conditions}]
    named = {f"trainmaster:{key.replace('_', '-')}": value for key, value in tags.items()}
    body["Tags"] += [{"Key": key, "Value": value} for key, value in named.items()]
    return world.api("POST", "/add-job", body)


@pytest.fixture
def chain(world: World) -> World:
    """A parent that trains, and a child of it."""
    world.submit("parent")
    world.schedule()
    trains(world, "parent")
    assert after(world, "child", "parent")["status"] == 201
    world.schedule()
    return world


def test_P1_a_child_waits_although_there_is_room_and_says_for_whom(chain: World) -> None:
    assert chain.states("parent", "child") == ["running", "pending"]
    view = chain.api("GET", "/jobs/child")
    assert view["waiting"]["code"] == "dependency"
    assert "afterok:parent, which is running" in view["waiting"]["message"]
    assert view["after"] == [{"job": "parent", "type": "afterok", "state": "running"}]
    assert (view["eligible_at"], view["position"]) == (None, None)
    parent = chain.api("GET", "/jobs/parent")
    assert (parent["dependents"], parent["dependents_count"]) == (["child"], 1)


def test_P1_a_parent_ends_and_its_child_runs(chain: World) -> None:
    chain.now += timedelta(hours=1)
    ends(chain, "parent")
    assert chain.states("parent", "child") == ["completed", "running"]
    job = chain.job("child")
    assert job.eligible_at == chain.now
    assert job.score == int(chain.now.timestamp() * 1000)
    chain.check("parent", "child")


def fails_for_good(world: World, name: str) -> None:
    """A failure that no policy retries."""
    ends(world, name, "Failed", reason="AlgorithmError: exit code: 1")


def test_P1_a_child_is_stored_before_its_parent_ends_although_the_end_was_decided_before(
    chain: World,
) -> None:
    """The end was read without a child in sight: its write fails, and the next try leaves a message."""
    chain.meanwhile["TransactWriteItems"] = lambda: after(chain, "late", "afterany:parent")
    ends(chain, "parent")
    assert chain.states("parent", "late") == ["completed", "running"]


def test_P1_a_first_child_is_stored_just_before_its_parents_end_is_written(world: World) -> None:
    world.submit("parent")
    world.schedule()
    trains(world, "parent")
    world.meanwhile["TransactWriteItems"] = lambda: after(world, "child", "parent")
    ends(world, "parent")
    assert world.states("parent", "child") == ["completed", "running"]
    world.check("parent", "child")


def test_P1_a_parent_ends_just_before_its_child_is_stored(world: World) -> None:
    world.submit("parent")
    world.schedule()
    trains(world, "parent")
    world.meanwhile["TransactWriteItems"] = lambda: ends(world, "parent")
    assert after(world, "child", "parent")["status"] == 201
    assert world.job("child").eligible_at == world.now
    world.schedule()
    assert world.states("parent", "child") == ["completed", "running"]


def test_P1_a_parent_fails_just_before_its_child_is_stored(world: World) -> None:
    world.submit("parent")
    world.schedule()
    trains(world, "parent")
    world.meanwhile["TransactWriteItems"] = lambda: fails_for_good(world, "parent")
    answer = after(world, "child", "parent")
    assert (answer["status"], answer["errors"][0]["rule"]) == (422, "dependency")
    assert world.wiring.reader.job("child") is None


def test_P2_retries_and_preemptions_of_a_parent_release_nobody(chain: World) -> None:
    chain.submit("urgent", priority=5, ResourceConfig=two_instances())
    chain.schedule()
    ends(chain, "parent", "Stopped")
    assert chain.states("parent", "child", "urgent") == ["preempted", "pending", "running"]
    trains(chain, "urgent")
    ends(chain, "urgent")
    second = chain.job("parent").live_attempt.training_job_name
    trains(chain, second)
    ends(chain, second, "Failed", reason="InternalServerError: try again")
    assert chain.states("parent", "child") == ["pending", "pending"]
    chain.a_minute_passes()
    third = chain.job("parent").live_attempt.training_job_name
    trains(chain, third)
    assert chain.states("child") == ["pending"]
    ends(chain, third)
    assert chain.states("parent", "child") == ["completed", "running"]


def test_P2_a_parent_that_fails_for_good_ends_its_child_with_the_reason(chain: World) -> None:
    fails_for_good(chain, "parent")
    job = chain.job("child")
    assert (job.state, job.reason and job.reason.code) == (JobState.STOPPED, "dependency")
    assert job.reason is not None
    assert "parent failed (user-code)" in job.reason.message
    chain.check("parent", "child")


@pytest.mark.parametrize(
    ("kind", "state"), [("afterok", "stopped"), ("afterany", "running"), ("afternotok", "running")]
)
def test_P2_an_end_for_dependency_is_an_end_like_any(chain: World, kind: str, state: str) -> None:
    after(chain, "grandchild", f"{kind}:child")
    fails_for_good(chain, "parent")
    assert chain.states("child", "grandchild") == ["stopped", state]
    if state == "stopped":
        reason = chain.job("grandchild").reason
        assert reason is not None
        assert "parent failed (user-code)" in reason.message, "it names the root"


def test_P2_all_conditions_have_to_hold(chain: World) -> None:
    chain.submit("other")
    chain.schedule()
    trains(chain, "other")
    after(chain, "both", "afterok:parent afternotok:other")
    ends(chain, "parent")
    assert chain.states("both") == ["pending"]
    chain.cancel("other")
    chain.schedule()
    ends(chain, "other", "Stopped")
    assert chain.job("both").eligible_at is not None


def test_P3_a_parent_counts_as_long_as_its_row_is_there(world: World) -> None:
    world.submit("old")
    world.schedule()
    trains(world, "old")
    ends(world, "old")
    world.now += timedelta(days=60)
    assert after(world, "child", "old")["status"] == 201
    world.schedule()
    assert world.states("child") == ["running"]
    world.cloud.client("dynamodb").delete_item(
        TableName=TABLE, Key={"pk": {"S": "J#old"}, "sk": {"S": "job"}}
    )
    gone = after(world, "later", "old")
    assert (gone["status"], gone["errors"][0]["message"]) == (400, 'no such job: "old"')


def two_instances() -> dict[str, Any]:
    return {"InstanceType": A, "InstanceCount": 2, "VolumeSizeInGB": 10}


def test_P4_a_root_that_fails_ends_a_chain_and_notifies_once(new_world: NewWorld) -> None:
    world = new_world()
    world.submit("root")
    world.schedule()
    trains(world, "root")
    names = [f"link-{number:02d}" for number in range(30)]
    for parent, name in zip(["root", *names], names, strict=False):
        assert after(world, name, parent)["status"] == 201
    world.schedule()
    fails_for_good(world, "root")
    assert set(world.states(*names)) == {"stopped"}
    kinds = [kind for kind in world.messages.kinds() if kind in {"Dependents Ended", "Job Stopped"}]
    assert kinds == ["Dependents Ended"]
    assert [mail.attributes["kind"] for mail in world.messages.mails] == ["Job Failed", "Dependents Ended"]
    world.check("root", *names)


def test_P4_children_are_released_in_slices_that_a_death_repeats(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainmaster.services.scheduler.dependent_releases.SLICE", 2)
    world = new_world({"pools": [{"name": "main", "capacity": {A: 9}}]})
    world.submit("root")
    world.schedule()
    trains(world, "root")
    names = [f"child-{number}" for number in range(7)]
    for name in names:
        after(world, name, "root")
    world.schedule()
    world.sagemaker.end("root", "Completed")
    world.tell("root")
    ready = world.save()
    calls = world.calls_of(world.schedule)
    deaths = [number for number, one in enumerate(calls) if one in {"TransactWriteItems", "UpdateItem"}]
    assert len(deaths) > len(names)
    for at in deaths:
        world.restore(ready)
        world.dies(world.schedule, Crash(at, "after"))
        world.a_minute_passes()
        assert set(world.states(*names)) == {"running"}, f"died at call {at}"
        starts = [name for name in world.sagemaker.jobs if name != "root"]
        assert sorted(starts) == names
        world.check("root", *names)


def test_P5_a_cycle_by_patch_names_it(chain: World) -> None:
    after(chain, "grandchild", "child")
    answer = chain.patch("child", after="afterany:grandchild")
    assert answer["status"] == 422
    assert answer["errors"][0]["rule"] == "dependency"
    assert "child waits for grandchild waits for child" in answer["errors"][0]["message"]
    itself = chain.patch("child", after="child")
    assert itself["status"] == 422
    assert "child waits for child" in itself["errors"][0]["message"]
    assert after(chain, "narcissus", "narcissus")["status"] == 400


def test_P5_two_patches_at_once_make_no_cycle(chain: World) -> None:
    after(chain, "other", "parent")
    chain.meanwhile["TransactWriteItems"] = lambda: chain.patch("other", after="child")
    answer = chain.patch("child", after="other")
    assert answer["status"] == 422
    assert [condition["job"] for condition in chain.api("GET", "/jobs/other")["after"]] == ["child"]
    assert [condition["job"] for condition in chain.api("GET", "/jobs/child")["after"]] == ["parent"]


def test_P6_a_child_that_is_held_instead_runs_once_its_condition_is_another(world: World) -> None:
    world.submit("parent")
    world.schedule()
    trains(world, "parent")
    after(world, "child", "parent", after_failed="hold")
    fails_for_good(world, "parent")
    assert world.states("child") == ["held"]
    view = world.api("GET", "/jobs/child")
    assert view["waiting"]["code"] == "dependency"
    refused = world.patch("child", held=False)
    assert refused["status"] == 409
    assert "afterok:parent" in refused["detail"]
    assert world.patch("child", after="afterany:parent", held=False)["status"] == 200
    world.schedule()
    assert world.states("child") == ["running"]
    world.check("parent", "child")


def test_P6_a_child_is_held_and_released_beside_its_conditions(chain: World) -> None:
    assert chain.patch("child", held=True)["state"] == "held"
    released = chain.patch("child", held=False)
    assert (released["state"], released["waiting"]["code"]) == ("pending", "dependency")
    chain.schedule()
    assert chain.states("child") == ["pending"]
    chain.patch("child", held=True)
    ends(chain, "parent")
    assert chain.states("child") == ["held"]
    assert chain.job("child").eligible_at is not None
    chain.patch("child", held=False)
    chain.schedule()
    assert chain.states("child") == ["running"]
    chain.check("parent", "child")


def test_P6_conditions_are_taken_off(chain: World) -> None:
    assert chain.patch("child", after=None)["eligible_at"] is not None
    chain.schedule()
    assert chain.states("parent", "child") == ["running", "running"]
    assert chain.api("GET", "/jobs/parent")["dependents"] == []
    conflict = chain.patch("child", after="parent")
    assert conflict["status"] == 409
    ends(chain, "parent")
    chain.check("parent", "child")


def test_P6_a_held_job_without_conditions_gets_its_first_ones(world: World) -> None:
    world.submit("parent")
    world.schedule()
    trains(world, "parent")
    world.submit("child")
    assert world.patch("child", after="parent")["status"] == 409
    world.patch("child", held=True)
    given = world.patch("child", after="parent")
    assert (given["status"], given["state"], given["eligible_at"]) == (200, "held", None)
    released = world.patch("child", held=False)
    assert (released["state"], released["waiting"]["code"]) == ("pending", "dependency")
    world.schedule()
    assert world.states("child") == ["pending"]
    ends(world, "parent")
    world.schedule()
    assert world.states("child") == ["running"]
    world.check("parent", "child")


def test_P6_first_conditions_and_release_in_one_patch(chain: World) -> None:
    chain.submit("other")
    chain.patch("other", held=True)
    given = chain.patch("other", after="child", held=False)
    assert (given["state"], given["waiting"]["code"]) == ("pending", "dependency")
    assert chain.api("GET", "/jobs/child")["dependents"] == ["other"]
    assert chain.patch("child", after="other")["status"] == 422


def test_P4_an_end_that_left_no_message_is_made_good_by_the_reconciler(chain: World) -> None:
    """As after a release that marks nothing, or a table that was restored."""
    chain.sagemaker.end("parent", "Completed")
    chain.tell("parent")
    (message,) = [one for one in chain.wiring.store.messages("main", limit=9) if one.parent is not None]
    chain.wiring.store.done("main", message)
    chain.schedule()
    assert chain.states("parent", "child") == ["completed", "pending"]
    chain.a_minute_passes()
    assert chain.states("child") == ["running"]
    chain.check("parent", "child")


def test_P4_a_child_in_another_pool_is_woken_there(new_world: NewWorld) -> None:
    pools = [{"name": "main", "capacity": {A: 1}}, {"name": "other", "capacity": {B: 1}}]
    world = new_world({"pools": pools})
    world.submit("parent")
    world.schedule()
    trains(world, "parent")
    body = request("child", ResourceConfig={"InstanceType": B, "InstanceCount": 1, "VolumeSizeInGB": 10})
    body["Tags"] = [{"Key": "trainmaster:after", "Value": "parent"}]
    assert world.api("POST", "/add-job", body)["status"] == 201
    ends(world, "parent")
    assert world.states("parent", "child") == ["completed", "running"]


def test_P2_a_cancelled_parent_ends_its_child_at_once(world: World) -> None:
    world.submit("parent")
    world.patch("parent", held=True)
    after(world, "child", "parent")
    assert world.cancel("parent") == 202
    world.schedule()
    assert world.states("parent", "child") == ["stopped", "stopped"]
    reason = world.job("child").reason
    assert reason is not None
    assert "parent stopped (stopped-by-user)" in reason.message
