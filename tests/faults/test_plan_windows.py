"""Training plans on a plane at work: windows open and close, and what runs in them is in time."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.instances import Capacity

from tests.builders import NOON, A, minutes
from tests.faults.conftest import NewWorld
from tests.faults.scenes import code_of, ends, trains
from tests.integration.messages import request
from tests.integration.plan_scenes import ON_PLAN, ONLY, SPRING, at, described, on_the_plan, policy
from tests.integration.world import World

DAY: dict[str, Any] = {"StoppingCondition": {"MaxRuntimeInSeconds": 86_400}}
HOUR: dict[str, Any] = {"StoppingCondition": {"MaxRuntimeInSeconds": 3600}}
ENDS_BEFORE = minutes(30)


def begun(new_world: NewWorld, plan: dict[str, Any], **rules: Any) -> World:
    world = new_world(policy(**rules))
    world.sagemaker.plans["spring"] = plan
    world.reconcile()
    return world


def submit_plain(world: World, name: str, **changes: Any) -> None:
    """A job that does not save; those of ``World.submit`` do."""
    body = request(name, **changes)
    del body["CheckpointConfig"]
    world.api("POST", "/add-job", body)


def test_a_job_starts_on_the_plan_and_not_before_its_window(new_world: NewWorld) -> None:
    world = begun(new_world, described((1, 9)))
    world.submit("job")
    world.schedule()
    assert code_of(world, "job") == "window"
    view = world.api("GET", "/jobs/job")
    assert "the next begins at 2026" in view["waiting"]["message"]
    at(world, 1)
    assert on_the_plan(world) == ["job"]
    sent = world.sagemaker.jobs["job"].request
    assert sent["ResourceConfig"]["InstanceType"] == A
    assert "KeepAlivePeriodInSeconds" not in sent["ResourceConfig"]
    assert world.wiring.reader.pool_state("main").used == {ON_PLAN: 1}


def test_the_plan_goes_first_then_on_demand_and_the_tags_say_otherwise(new_world: NewWorld) -> None:
    world = begun(new_world, described((0, 9), instances=1), capacity=2)
    world.submit("never", Tags=[{"Key": "trainmaster:plan", "Value": "never"}])
    world.schedule()
    world.submit("first")
    world.schedule()
    world.submit("second")
    world.submit("only", Tags=[ONLY])
    world.schedule()
    assert on_the_plan(world) == ["first"]
    assert world.states("never", "first", "second", "only") == ["running", "running", "running", "pending"]
    assert world.wiring.reader.pool_state("main").used == {ON_PLAN: 1, Capacity(A): 2}
    ends(world, "first")
    assert on_the_plan(world) == ["only"]


def test_Q1_at_the_closing_jobs_save_and_go_on_on_demand(new_world: NewWorld) -> None:
    world = begun(new_world, described((0, 4), instances=4), capacity=1)
    names = ("saves1", "saves2", "saves3")
    for name in names:
        world.submit(name, **DAY)
    submit_plain(world, "plain", **DAY, Tags=[ONLY])
    world.schedule()
    assert on_the_plan(world) == list(names)
    assert code_of(world, "plain") == "window", "it could not save, nor end in time"
    trains(world, *names)
    at(world, 3.3)
    assert world.states(*names) == ["running"] * 3
    at(world, 3 + 20 / 60)
    assert world.states(*names) == ["preempting"] * 3
    for name in names:
        world.sagemaker.end(name, "Stopped")
        world.tell(name)
    world.schedule()
    assert NOON + minutes(240) - ENDS_BEFORE > world.now
    assert on_the_plan(world) == []
    assert sorted(world.states(*names)) == ["preempted", "preempted", "running"], "one fits on demand"
    job = world.job("saves1")
    assert (job.preemptions, job.spent.wasted) == (0, {}), "not charged, and nothing lost"
    view = world.api("GET", "/jobs/saves1")
    (reason,) = [attempt["reason"] for attempt in view["attempts"] if attempt["reason"]]
    assert reason["code"] == "window"
    assert reason["message"].startswith("training plan spring closes: SageMaker ends its instances from ")
    at(world, 4.5)
    assert on_the_plan(world) == []


def test_Q1_a_job_that_ends_in_time_starts_though_it_does_not_save(new_world: NewWorld) -> None:
    world = begun(new_world, described((0, 4)))
    submit_plain(world, "short", **HOUR)
    submit_plain(world, "long", **DAY)
    world.schedule()
    assert on_the_plan(world) == ["short"]
    assert "may run until" in world.api("GET", "/jobs/long")["waiting"]["message"]


def test_Q1_a_job_goes_on_in_the_next_window(new_world: NewWorld) -> None:
    world = begun(new_world, described((0, 4), (24, 30)))
    world.submit("job", **DAY, Tags=[ONLY])
    world.schedule()
    trains(world, "job")
    at(world, 3.34)
    ends(world, "job", "Stopped")
    assert (world.states("job"), code_of(world, "job")) == (["preempted"], "window")
    at(world, 12)
    assert on_the_plan(world) == []
    at(world, 24)
    assert world.states("job") == ["running"]
    assert world.job("job").attempt == 1
    world.check("job")


def test_Q1_a_job_that_never_trained_is_stopped_at_the_closing_too(new_world: NewWorld) -> None:
    world = begun(new_world, described((0, 4)))
    world.submit("job", Tags=[ONLY])
    world.schedule()
    at(world, 3.34)
    assert world.states("job") == ["preempting"]
    assert world.sagemaker.jobs["job"].stops == 1


@pytest.mark.parametrize("trouble", [("ThrottlingException", 400), ("AccessDeniedException", 400), None])
def test_Q2_known_windows_hold_though_the_plan_cannot_be_described(
    new_world: NewWorld, trouble: tuple[str, int] | None
) -> None:
    world = begun(new_world, described((1, 5)))
    world.submit("job", Tags=[ONLY])
    if trouble is None:
        world.sagemaker.plans.clear()

    def at_time(hours: float) -> None:
        if trouble is not None:
            world.sagemaker.refuse["DescribeTrainingPlan"] = [trouble] * 9
        at(world, hours)

    at_time(0.95)
    assert on_the_plan(world) == []
    at_time(1)
    assert on_the_plan(world) == ["job"]
    (plan,) = world.wiring.policies.plans().values()
    assert plan.trouble
    assert len(plan.windows) == 1
    trains(world, "job")
    at_time(4.34)
    assert world.states("job") == ["preempting"]
    ends(world, "job", "Stopped")
    at_time(6)
    assert on_the_plan(world) == [], "no start after the end"
    if trouble is None:
        world.sagemaker.plans["spring"] = described((1, 5))
    world.sagemaker.refuse.clear()
    at(world, 7)
    (plan,) = world.wiring.policies.plans().values()
    assert plan.trouble is None


def test_Q2_nothing_starts_on_a_plan_that_was_never_described(new_world: NewWorld) -> None:
    world = new_world(policy(capacity=1))
    world.reconcile()
    world.submit("only", Tags=[ONLY])
    world.submit("first")
    world.schedule()
    assert world.states("only", "first") == ["pending", "running"]
    assert on_the_plan(world) == []


@pytest.mark.parametrize(("drain", "off"), [("5m", 2), ("5m", -2), ("10m", 5), ("10m", -5)])
def test_Q3_a_clock_that_is_off_ends_jobs_in_time(new_world: NewWorld, drain: str, off: float) -> None:
    """``off``: minutes by which our clock is late."""
    world = begun(new_world, described((0, 4), instances=1), drain=drain)
    world.submit("job", **DAY, Tags=[ONLY])
    world.schedule()
    trains(world, "job")
    limit = NOON + minutes(240) - ENDS_BEFORE
    asked: datetime | None = None
    for minute in range(190, 212):  # of the true time
        at(world, (minute - off) / 60)
        if world.sagemaker.jobs["job"].stops:
            asked = NOON + minutes(minute)
            break
    assert asked is not None
    assert asked + timedelta(seconds=120) <= limit
    ends(world, "job", "Stopped")
    at(world, 4)
    assert on_the_plan(world) == []


def test_Q4_a_plan_that_failed_has_nothing(new_world: NewWorld) -> None:
    world = begun(new_world, described((0, 9)))
    world.submit("job", Tags=[ONLY])
    world.schedule()
    trains(world, "job")
    world.sagemaker.plans["spring"] = described((0, 9), Status="Failed")
    at(world, 1)
    assert world.states("job") == ["preempting"]
    ends(world, "job", "Stopped")
    assert code_of(world, "job") == "window"


def test_Q4_with_fewer_instances_than_sold_jobs_beyond_them_are_stopped(new_world: NewWorld) -> None:
    world = begun(new_world, described((0, 9)))
    for number in (1, 2):
        world.submit(f"job{number}", priority=number, Tags=[ONLY])
    world.schedule()
    trains(world, "job1", "job2")
    world.sagemaker.plans["spring"] = described((0, 9), instances=1)
    at(world, 1)
    assert world.states("job1", "job2") == ["preempting", "running"]


def test_Q4_broken_instances_stop_nobody_and_nothing_starts_on_them(new_world: NewWorld) -> None:
    world = begun(new_world, described((0, 9)))
    world.submit("job1", Tags=[ONLY])
    world.schedule()
    world.sagemaker.plans["spring"] = described((0, 9), UnhealthyInstanceCount=1)
    at(world, 1)
    world.submit("job2", Tags=[ONLY])
    world.schedule()
    assert world.states("job1", "job2") == ["running", "pending"]


def test_Q4_an_extension_lets_jobs_run_on(new_world: NewWorld) -> None:
    world = begun(new_world, described((0, 4)))
    world.submit("job", **DAY, Tags=[ONLY])
    world.schedule()
    trains(world, "job")
    world.sagemaker.plans["spring"] = described((0, 28))
    at(world, 3.25)
    at(world, 3.34)
    assert world.states("job") == ["running"]
    at(world, 27.34)
    assert world.states("job") == ["preempting"]


def test_Q4_instances_that_somebody_unseen_uses_are_left_to_them(new_world: NewWorld) -> None:
    world = begun(new_world, described((0, 9), AvailableInstanceCount=1))
    at(world, 1)
    world.submit("job1", Tags=[ONLY])
    world.submit("job2", Tags=[ONLY])
    world.schedule()
    assert sorted(world.states("job1", "job2")) == ["pending", "running"]
    world.sagemaker.plans["spring"] = described((0, 9), AvailableInstanceCount=1)
    at(world, 2)
    assert world.states("job1", "job2") == ["running", "running"], "they are gone"


def test_Q8_jobs_outside_the_queue_count_on_the_plan_alone(new_world: NewWorld) -> None:
    world = new_world(policy(capacity=1) | {"unmanaged_jobs": {"then": "adopt"}})
    world.sagemaker.plans["spring"] = described((0, 9), instances=1)
    world.reconcile()
    outside = request("outside")
    outside["ResourceConfig"] = {**outside["ResourceConfig"], "TrainingPlanArn": SPRING}
    world.sagemaker.run_outside(outside, training_since=NOON)
    world.tell("outside")
    assert world.job("outside").spec.adopted
    assert world.wiring.reader.pool_state("main").used == {ON_PLAN: 1}
    rate = world.job("outside").live_attempt.claim.usd_per_hour
    assert rate is not None
    assert float(rate) == pytest.approx(960 / 9, abs=0.01), "the fee for 9 instance-hours"
    world.submit("job")
    world.submit("only", Tags=[ONLY])
    world.schedule()
    assert world.states("job", "only") == ["running", "pending"]
    assert world.wiring.reader.pool_state("main").used == {ON_PLAN: 1, Capacity(A): 1}
