"""Instances that are not to be had: the next preference, or a failed job."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.local.sagemaker_world import World, manual_clock, open_world, request

P5, P4, G5 = "ml.p5.48xlarge", "ml.p4d.24xlarge", "ml.g5.12xlarge"
WITHOUT_CAPACITY = (
    "CapacityError: Unable to provision requested ML compute capacity. "
    "Please retry using a different ML instance type."
)


@pytest.fixture
def world(tmp_path) -> Iterator[World]:
    with open_world(tmp_path, manual_clock()) as world:
        yield world


def preferring(*types: str, **more: Any) -> dict[str, Any]:
    """One more instance for each later preference."""
    preferences = [
        {"InstanceType": name, "InstanceCount": count} for count, name in enumerate(types, start=1)
    ]
    return {"ResourceConfig": {"InstancePreferences": preferences, "VolumeSizeInGB": 1} | more}


def selected(world: World, name: str = "job") -> tuple[str | None, int | None]:
    resources = world.describe(name)["ResourceConfig"]
    return resources.get("SelectedInstanceType"), resources.get("SelectedInstanceCount")


def test_the_first_preference_is_taken_and_known_when_the_instances_are_there(world: World):
    world.create("job", ["sleep", "60"], **preferring(P5, P4))
    while world.secondary("job") in {"Starting", "Pending"}:
        assert selected(world) == (None, None)
        assert world.twin.training_jobs()[0]["instance_type"] is None
        world.advance(1)

    assert world.secondary("job") == "Downloading"
    assert selected(world) == (P5, 1)
    assert world.twin.training_jobs()[0]["instance_type"] == P5
    assert [detail["ResourceConfig"].get("SelectedInstanceType") for detail, _ in world.events.published] == [
        None,
        None,
        P5,
    ]
    assert world.describe("job")["ResourceConfig"] == preferring(P5, P4)["ResourceConfig"] | {
        "SelectedInstanceType": P5,
        "SelectedInstanceCount": 1,
    }


def test_what_is_withheld_is_passed_over_in_the_order_of_preference(world: World):
    world.twin.withhold_capacity(P5, 1)
    world.twin.withhold_capacity(P4, 2)
    for name in ("one", "two", "three"):
        world.train(name, ["sleep", "60"], **preferring(P5, P4, G5))

    assert [selected(world, name) for name in ("one", "two", "three")] == [(G5, 3), (P5, 1), (P5, 1)]
    assert len(world.twin.training_jobs()[0]["pids"]) == 3
    world.train("four", ["sleep", "60"], **preferring(P4, G5))
    assert selected(world, "four") == (G5, 2)


def test_one_count_for_all_preferences(world: World):
    resources = {
        "InstancePreferences": [{"InstanceType": P5}, {"InstanceType": P4}],
        "InstanceCount": 2,
        "VolumeSizeInGB": 1,
    }
    world.twin.withhold_capacity(P5, 1)
    world.train("job", ["sleep", "60"], ResourceConfig=resources)

    assert selected(world) == (P4, 2)
    assert world.twin.training_jobs()[0]["hosts"] == ["algo-1", "algo-2"]


def test_a_job_that_gets_nothing_it_prefers_fails_for_capacity(world: World):
    world.twin.withhold_capacity(P5, 1)
    world.twin.withhold_capacity(P4, 1)
    world.train("job", **preferring(P5, P4))

    shown = world.finished("job")
    assert (shown["TrainingJobStatus"], shown["FailureReason"]) == ("Failed", WITHOUT_CAPACITY)
    assert [one["Status"] for one in shown["SecondaryStatusTransitions"]] == ["Starting", "Pending", "Failed"]
    assert "BillableTimeInSeconds" not in shown
    assert selected(world) == (None, None)


@pytest.mark.parametrize(
    "resources",
    [
        pytest.param({"InstanceType": P5, "InstanceCount": 1, "VolumeSizeInGB": 1}, id="one type"),
        pytest.param(
            {
                "InstanceGroups": [
                    {"InstanceGroupName": "a", "InstanceType": G5, "InstanceCount": 1},
                    {"InstanceGroupName": "b", "InstanceType": P5, "InstanceCount": 1},
                ],
                "VolumeSizeInGB": 1,
            },
            id="a group of several",
        ),
    ],
)
def test_a_job_without_a_choice_fails_and_the_next_gets_the_type(world: World, resources):
    world.twin.withhold_capacity(P5, 1)
    world.train("one", ResourceConfig=resources)
    world.train("two", ["sleep", "60"], ResourceConfig=resources)

    assert world.finished("one")["FailureReason"] == WITHOUT_CAPACITY
    assert world.secondary("two") == "Training"
    assert selected(world, "two") == (None, None)


def test_a_job_on_a_warm_pool_needs_no_capacity(world: World):
    kept = {"ResourceConfig": request("job")["ResourceConfig"] | {"KeepAlivePeriodInSeconds": 600}}
    world.train_to_end("one", ["sleep", "0.4"], **kept)
    world.twin.withhold_capacity("ml.m5.large", 1)
    world.train("two", ["sleep", "60"], **kept)

    assert world.secondary("two") == "Training"


def test_a_job_with_preferences_leaves_a_pool_of_what_it_got(world: World):
    world.train_to_end("chosen", ["sleep", "0.4"], **preferring(P5, P4, KeepAlivePeriodInSeconds=600))
    world.create("chooses", ["sleep", "60"], **preferring(P5, P4, KeepAlivePeriodInSeconds=600))
    assert world.describe("chosen")["WarmPoolStatus"]["Status"] == "Available"
    fixed = {"InstanceType": P5, "InstanceCount": 1, "VolumeSizeInGB": 1, "KeepAlivePeriodInSeconds": 600}
    world.create("fixed", ResourceConfig=fixed)

    assert world.describe("chosen")["WarmPoolStatus"]["ReusedByJob"] == "fixed"
