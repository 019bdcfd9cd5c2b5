"""Row D2: the account allows less than the pool has. What is learned, for how long, and who starts then."""

from datetime import timedelta

import pytest

from tests.builders import A, B, minutes
from tests.faults.conftest import NewWorld
from tests.faults.scenes import code_of, ends, trains
from tests.integration.messages import request
from tests.integration.world import World

POOL = {"pools": [{"name": "main", "capacity": {A: 3, B: 1}}]}
URGENT = [{"Key": "priority", "Value": "100"}]
ON_B = {"InstanceType": B, "InstanceCount": 1, "VolumeSizeInGB": 10}


@pytest.fixture
def limited(new_world: NewWorld) -> World:
    """The pool has three of A, the account allows one; job1 trains on it, job2 was refused."""
    world = new_world(POOL)
    world.sagemaker.limits[A] = 1
    world.submit("job1")
    world.schedule()
    trains(world, "job1")
    world.submit("job2")
    world.schedule()
    return world


def limit(world: World) -> tuple[int, timedelta, int]:
    """Instances, for how long from now, refusals in a row."""
    (learned,) = world.wiring.reader.pool_state("main").account_limits.values()
    return learned.limit, learned.until - world.now, learned.refusals


def test_D2_a_job_the_account_refuses_backs_off_alone_and_says_why(limited: World) -> None:
    job = limited.job("job2")
    assert (job.state.value, job.attempt, job.is_parked, job.starts.refused) == ("pending", 0, True, 0)
    assert job.starts.by_account is not None
    assert job.starts.by_account.count == 1
    waiting = limited.api("GET", "/jobs/job2")["waiting"]
    assert waiting["code"] == "account-limit"
    assert "AWS refused to start it once: The account-level service limit" in waiting["message"]
    assert "the next try is at 2026-11-02T12:0" in waiting["message"]
    limited.check("job1", "job2")


def test_D2_other_types_still_start_and_of_the_same_type_one_more_finds_out(limited: World) -> None:
    limited.submit("job3", ResourceConfig=ON_B)
    limited.submit("job4")
    limited.submit("job5")
    limited.schedule()
    assert limited.states("job2", "job3", "job4", "job5") == ["pending", "running", "pending", "pending"]
    assert {code_of(limited, name) for name in ("job2", "job4", "job5")} == {"account-limit"}
    assert limited.wire.sent.count("CreateTrainingJob") == 4, "the limit spares job5 its try"
    limited.check("job1", "job2", "job3", "job4", "job5")


def test_D2_the_wait_of_the_refused_job_doubles_up_to_a_quarter_of_an_hour(limited: World) -> None:
    waits: list[timedelta] = []
    for _ in range(6):
        tried = limited.wire.sent.count("CreateTrainingJob")
        not_before = limited.job("job2").not_before
        assert not_before is not None
        waits.append(not_before - limited.now)
        limited.now = not_before - timedelta(seconds=1)
        limited.wake()
        assert limited.wire.sent.count("CreateTrainingJob") == tried, "not before its time"
        limited.now += timedelta(seconds=1)
        limited.wake()
        assert limited.wire.sent.count("CreateTrainingJob") == tried + 1
        assert code_of(limited, "job2") == "account-limit"
    most = [minutes(count) for count in (1, 2, 4, 8, 15, 15)]
    assert all(at_most / 2 <= wait <= at_most for wait, at_most in zip(waits, most, strict=True)), waits
    assert limit(limited)[2] == 1, "its own refusals say nothing new about the type"
    limited.check("job1", "job2")


def test_D2_a_try_that_works_forgets_the_limit_and_the_others_follow(limited: World) -> None:
    limited.submit("job3")
    limited.sagemaker.limits.clear()
    limited.now += minutes(1)
    limited.wake()
    assert limited.states("job2", "job3") == ["running", "running"]
    assert limited.wiring.reader.pool_state("main").account_limits == {}
    limited.check("job1", "job2", "job3")


@pytest.mark.parametrize(
    ("minutes_ago", "refusals"),
    [
        pytest.param(2.9, 0, id="just after an end the quota is not yet given back: half a minute"),
        pytest.param(3.0, 1, id="later another job may find out at once whether it is the type"),
    ],
)
def test_D2_a_refusal_soon_after_an_end_only_delays(
    minutes_ago: float, refusals: int, new_world: NewWorld
) -> None:
    world = new_world(POOL)
    world.submit("job1")
    world.schedule()
    trains(world, "job1")
    ends(world, "job1")
    world.now += minutes(minutes_ago)
    world.sagemaker.limits[A] = 0
    world.submit("job2")
    world.schedule()
    held, wait, counted = limit(world)
    assert (held, counted) == (0, refusals)
    assert wait == timedelta(seconds=0 if refusals else 30)
    job = world.job("job2")
    assert job.not_before is not None
    if not refusals:
        assert job.not_before == world.now + timedelta(seconds=30)
    world.sagemaker.limits.clear()
    world.now = job.not_before
    world.wake()
    assert world.states("job2") == ["running"]


def test_D2_instances_beside_the_queue_that_use_up_the_quota_only_make_jobs_wait(world: World) -> None:
    """Somebody else's training job took the last instance of the account."""
    world.sagemaker._CreateTrainingJob(request("foreign"))
    world.sagemaker.limits[A] = 1
    world.submit("job1")
    world.schedule()
    assert code_of(world, "job1") == "account-limit"
    world.sagemaker.end("foreign", "Completed")
    world.now += minutes(1)
    world.reconcile()
    world.schedule()
    assert world.states("job1") == ["running"]
    assert world.job("job1").attempt == 0


def test_D2_a_warm_pool_is_given_up_when_the_account_has_no_room_beside_it(new_world: NewWorld) -> None:
    """Warm instances count against the account's quota, too."""
    policy = {"pools": [{"name": "main", "capacity": {A: 2}, "warm_pool": {"keep_alive": "10m"}}]}
    world = new_world(policy)
    world.sagemaker.limits[A] = 1
    world.submit("job1")
    world.schedule()
    trains(world, "job1")
    world.sagemaker.end("job1", "Completed")
    world.tell("job1")
    world.submit("job2", RoleArn="arn:aws:iam::123456789012:role/other")
    for _ in range(3):
        world.a_minute_passes()
    assert world.states("job2") == ["running"]
    assert world.sagemaker.available() == {}
    world.check("job1", "job2")


@pytest.fixture
def sure(new_world: NewWorld) -> World:
    """The account allows one of A: job1 trains on it, and two others were refused."""
    unpriced = {"preemption": {"cost": {"enabled": False}, "min_runtime": "0s", "min_priority_gap": 10}}
    world = new_world({"pools": [{**POOL["pools"][0], **unpriced}]})
    world.sagemaker.limits[A] = 1
    world.submit("job1")
    world.schedule()
    trains(world, "job1")
    for name in ("job2", "job3"):
        world.submit(name)
        world.schedule()
    assert limit(world)[2] == 2
    return world


def test_D2_an_urgent_job_stops_one_below_it_for_what_the_account_allows(sure: World) -> None:
    sure.submit("urgent", Tags=URGENT)
    sure.schedule()
    assert sure.states("job1", "urgent") == ["preempting", "pending"]
    sent = sure.wire.sent.count("CreateTrainingJob")
    ends(sure, "job1", "Stopped")
    assert sure.states("job1", "job2", "job3", "urgent") == ["preempted", "pending", "pending", "running"]
    assert sure.wire.sent.count("CreateTrainingJob") == sent + 1, "nobody asked for what is kept for it"
    sure.check("job1", "job2", "job3", "urgent")


def test_D2_what_it_waits_for_goes_to_no_job_that_is_before_it_in_the_queue(sure: World) -> None:
    """The first in order is too little above the urgent one to stop it, and waits for the next end."""
    sure.submit("urgent", Tags=URGENT)
    sure.schedule()
    sure.submit("first", Tags=[{"Key": "priority", "Value": "105"}])
    sure.schedule()
    ends(sure, "job1", "Stopped")
    assert sure.states("urgent", "first") == ["running", "pending"]
    sure.check("job1", "job2", "job3", "urgent", "first")


def test_D2_nobody_is_stopped_where_one_refusal_may_be_due_to_that_request(limited: World) -> None:
    limited.submit("urgent", Tags=URGENT)
    limited.schedule()
    limited.schedule()
    assert limited.states("job1", "urgent") == ["running", "pending"]
    limited.check("job1", "job2", "urgent")
