"""Warm pools of a running twin: left, taken, prolonged, released, gone in time."""

import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from local.wire import AwsError
from tests.integration.local.sagemaker_world import (
    World,
    fast_clock,
    manual_clock,
    open_world,
    request,
    wait_for,
)

KEPT_SECONDS = 3600


@pytest.fixture
def world(tmp_path) -> Iterator[World]:
    with open_world(tmp_path, manual_clock()) as world:
        yield world


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def keeping(seconds: int = KEPT_SECONDS, **changes: Any) -> dict[str, Any]:
    more = {"KeepAlivePeriodInSeconds": seconds} | changes
    return {"ResourceConfig": request("job")["ResourceConfig"] | more}


def pool(world: World, name: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = world.describe(name).get("WarmPoolStatus")
    return found


def status(world: World, name: str) -> str | None:
    return (pool(world, name) or {}).get("Status")


def run_one(world: World, name: str = "one", seconds: int = KEPT_SECONDS) -> None:
    """To its end, and not further."""
    world.create(name, **keeping(seconds))
    while world.describe(name)["TrainingJobStatus"] != "Completed":
        world.advance(1)


def keep(world: World, name: str, seconds: int) -> None:
    world.call(
        "UpdateTrainingJob", TrainingJobName=name, ResourceConfig={"KeepAlivePeriodInSeconds": seconds}
    )


def seconds_until_training(world: World, name: str) -> float:
    begin = world.clock.now()
    while world.secondary(name) in {"Starting", "Pending", "Downloading"}:
        world.advance(1)
    return (world.clock.now() - begin).total_seconds()


def test_a_completed_job_leaves_a_pool_until_its_time_has_come(world: World):
    run_one(world)
    assert pool(world, "one") == {"Status": "Available", "ResourceRetainedBillableTimeInSeconds": 0}

    world.advance(KEPT_SECONDS - 2)
    assert status(world, "one") == "Available"
    world.advance(2)
    assert pool(world, "one") == {"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": 3600}
    world.advance(KEPT_SECONDS)
    assert pool(world, "one") == {"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": 3600}


def test_a_job_that_keeps_nothing_alive_leaves_no_pool_and_takes_none(world: World):
    run_one(world)
    world.create("plain")

    assert pool(world, "plain") is None
    assert status(world, "one") == "Available"
    assert seconds_until_training(world, "plain") > 50


def test_the_next_job_that_matches_takes_the_pool_and_starts_fast(world: World):
    world.create("one", **keeping())
    cold = seconds_until_training(world, "one")
    world.advance(60)
    world.advance(600)
    world.create("two", ["sleep", "60"], **keeping())

    taken = pool(world, "one")
    assert taken is not None
    assert (taken["Status"], taken["ReusedByJob"]) == ("Reused", "two")
    assert taken["ResourceRetainedBillableTimeInSeconds"] > 600
    assert pool(world, "two") == {"Status": "InUse"}
    warm = seconds_until_training(world, "two")
    assert cold > 50
    assert warm <= 10
    assert status(world, "two") == "InUse"


def test_a_pool_goes_from_job_to_job(world: World):
    for name in ("one", "two", "three"):
        run_one(world, name)

    assert [status(world, name) for name in ("one", "two", "three")] == ["Reused", "Reused", "Available"]


def test_a_pool_is_taken_once(world: World, hasty_threads: None):
    run_one(world)
    names = [f"next-{number}" for number in range(20)]
    threads = [
        threading.Thread(target=world.create, args=(name, ["sleep", "60"]), kwargs=keeping())
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [status(world, name) for name in names].count("InUse") == 1
    assert (pool(world, "one") or {})["ReusedByJob"] in names


def test_a_refused_job_takes_no_pool(world: World):
    run_one(world)
    with pytest.raises(AwsError):
        world.create("one", **keeping())

    assert status(world, "one") == "Available"


def test_a_job_that_differs_takes_no_pool(world: World):
    run_one(world)
    world.create("two", **keeping(VolumeSizeInGB=31))

    assert pool(world, "two") is None
    assert status(world, "one") == "Available"


def test_of_two_pools_the_one_that_ends_first_is_taken(world: World):
    world.create("short", **keeping(600))
    world.create("long", **keeping(3600))
    world.advance(300)
    world.create("next", **keeping())

    assert (status(world, "short"), status(world, "long")) == ("Reused", "Available")


@pytest.mark.parametrize("seconds", [600, 7200])
def test_the_retention_can_be_changed_and_counts_from_the_end_of_the_job(world: World, seconds):
    run_one(world)
    world.advance(300)
    keep(world, "one", seconds)
    assert world.describe("one")["ResourceConfig"]["KeepAlivePeriodInSeconds"] == seconds

    world.advance(seconds - 300 - 2)
    assert status(world, "one") == "Available"
    world.advance(2)
    assert status(world, "one") == "Terminated"


def test_zero_releases_the_instances_now(world: World):
    run_one(world)
    world.advance(100)
    keep(world, "one", 0)

    assert status(world, "one") == "Terminated"
    world.create("two", **keeping())
    assert pool(world, "two") is None


def test_only_an_available_pool_can_be_changed(world: World):
    run_one(world)
    world.create("two", ["sleep", "60"], **keeping())
    world.create("plain")
    for name in ("one", "two", "plain"):
        with pytest.raises(AwsError, match="no warm pool with status Available") as caught:
            keep(world, name, 60)
        assert caught.value.code == "ValidationException"


def test_a_job_with_an_available_pool_is_not_deleted(world: World):
    run_one(world)
    with pytest.raises(AwsError, match="warm pool") as caught:
        world.call("DeleteTrainingJob", TrainingJobName="one")
    assert caught.value.code == "ResourceInUse"

    keep(world, "one", 0)
    world.call("DeleteTrainingJob", TrainingJobName="one")
    world.advance(KEPT_SECONDS)
    assert world.twin.training_jobs() == []


def test_a_pool_whose_time_is_over_can_be_neither_taken_nor_prolonged(world: World):
    run_one(world)
    world.advance(KEPT_SECONDS)
    with pytest.raises(AwsError, match="no warm pool with status Available"):
        keep(world, "one", 2 * KEPT_SECONDS)
    world.create("two", **keeping())

    assert (status(world, "one"), status(world, "two")) == ("Terminated", None)
    world.call("DeleteTrainingJob", TrainingJobName="one")


def test_no_event_tells_of_a_pool(world: World):
    run_one(world)
    before = len(world.events.published)
    keep(world, "one", 60)
    world.advance(60)

    assert status(world, "one") == "Terminated"
    assert len(world.events.published) == before


def test_the_list_and_the_operator_see_the_pools(world: World):
    run_one(world)
    world.create("two")

    shown = world.call("ListTrainingJobs", WarmPoolStatusEquals="Available")["TrainingJobSummaries"]
    assert [one["TrainingJobName"] for one in shown] == ["one"]
    assert [one["warm_pool"] for one in world.twin.training_jobs()] == [
        {"Status": "Available", "ResourceRetainedBillableTimeInSeconds": 0},
        None,
    ]


def test_a_stopped_job_leaves_its_pool_to_the_next(world: World):
    world.train("one", ["sleep", "60"], **keeping())
    world.stop("one")
    world.wait_until("one", "Uploading")
    world.advance(40)
    assert world.describe("one")["TrainingJobStatus"] == "Stopped"
    world.create("two", **keeping())

    assert (status(world, "one"), status(world, "two")) == ("Reused", "InUse")


def test_on_the_machines_clock_a_pool_ends_by_itself(tmp_path):
    with open_world(tmp_path, fast_clock()) as world:
        world.create("one", **keeping(1))
        world.finished("one")
        assert status(world, "one") == "Available"
        wait_for(lambda: status(world, "one") == "Terminated", "the pool ends")
