"""Idle alarms are the default: what a put and its dry run say of them, and what an earlier revision keeps."""

from typing import Any

import pytest

from tests.builders import A, minutes
from tests.faults.alarming import alarms, gpu_hosts, gpu_policy, idle_alarm, watched_job
from tests.faults.conftest import NewWorld
from tests.faults.scenes import trains
from tests.faults.spoiling import lacks, says, spoil
from tests.integration.world import World

UNWRITTEN: dict[str, Any] = {"pools": gpu_policy(20)["pools"]}


def earlier(new_world: NewWorld, mark: int | None, document: dict[str, Any] | None = None) -> World:
    """As an earlier release left it: one job of 2 hosts and one of 11 train, and nobody watches them."""
    world = new_world(document or UNWRITTEN, as_written=True)
    for sk in ("current", "v#000000001"):
        spoil(world, "POLICY", sk, lacks("defaults") if mark is None else says(defaults=mark))
    world.wiring = world.fresh_process()
    for name, hosts in (("small", 2), ("large", 11)):
        assert world.submit(name, ResourceConfig=gpu_hosts(hosts))["status"] == 201
        world.schedule()
        trains(world, name)
        world.schedule()
    return world


def idle_warnings(answer: dict[str, Any]) -> list[str]:
    return [one["message"] for one in answer["warnings"] if one["field"] == "idle"]


def put(world: World, document: dict[str, Any], **query: str) -> dict[str, Any]:
    answer = world.api("PUT", "/policy", document, query=query or None)
    assert answer["status"] == 200, answer
    return answer


@pytest.mark.parametrize("mark", [None, 2, 3])
def test_a_revision_without_the_mark_has_no_idle_alarms_until_the_next_put(
    new_world: NewWorld, mark: int | None
) -> None:
    world = earlier(new_world, mark)
    for _ in range(3):
        world.now += minutes(1)
        world.reconcile()
        world.schedule()
    assert alarms(world) == set()
    (shown,) = idle_warnings(world.api("GET", "/policy"))
    assert "no GPUs are watched until a policy is applied again" in shown

    (said,) = idle_warnings(put(world, UNWRITTEN, dry_run="true"))
    assert alarms(world) == set(), "a dry run changes nothing"
    assert "2 running attempts then get an alarm" in said
    assert "1.80 USD a month" in said, "13 hosts at 0.10, a composite at 0.50"
    assert "aws.amazon.com/cloudwatch/pricing" in said
    assert idle_warnings(put(world, UNWRITTEN)) == [said]
    world.reconcile()
    world.schedule()
    assert {idle_alarm("small"), idle_alarm("large")} <= alarms(world)
    assert idle_warnings(world.api("GET", "/policy")) == []
    assert idle_warnings(put(world, UNWRITTEN)) == [], "it is the default already"


@pytest.mark.parametrize("off", ["off", False])
def test_a_put_that_switches_them_off_says_nothing_and_makes_none(new_world: NewWorld, off: object) -> None:
    world = earlier(new_world, None)
    assert idle_warnings(put(world, UNWRITTEN | {"idle": off})) == []
    world.reconcile()
    world.schedule()
    assert alarms(world) == set()


def test_what_is_written_is_counted_without_a_word_about_defaults(new_world: NewWorld) -> None:
    world = new_world(UNWRITTEN | {"idle": "off"})
    assert world.submit("job1", ResourceConfig=gpu_hosts(1))["status"] == 201
    world.schedule()
    (said,) = idle_warnings(put(world, UNWRITTEN | {"idle": {"then": "stop"}}, dry_run="true"))
    assert said.startswith("1 running attempt then gets an alarm, 0.10 USD a month while they run")


def test_a_second_kind_of_alarm_is_counted_under_its_own_name(new_world: NewWorld) -> None:
    world = new_world(gpu_policy(4))
    watched_job(world)
    answer = put(world, gpu_policy(4) | {"utilization": {"for": "1h"}}, dry_run="true")
    assert [one["field"] for one in answer["warnings"]] == ["utilization"]


def test_without_gpus_nothing_is_said(new_world: NewWorld) -> None:
    plain = {"pools": [{"name": "main", "capacity": {A: 2}}]}
    world = new_world(plain | {"idle": "off"})
    assert idle_warnings(put(world, plain)) == []


def test_a_policy_that_says_on_is_refused_with_what_to_write(new_world: NewWorld) -> None:
    world = new_world(UNWRITTEN)
    answer = world.api("PUT", "/policy", UNWRITTEN | {"idle": True})
    assert answer["status"] == 422
    (error,) = answer["errors"]
    assert (error["field"], error["hint"]) == ("idle", "remove it, or write keys")


def test_the_default_watches_gpu_jobs_from_their_first_training(new_world: NewWorld) -> None:
    world = new_world(UNWRITTEN)
    watched_job(world, hosts=2)
    (alarm,) = world.cloud.client("cloudwatch").describe_alarms(AlarmNames=[idle_alarm("job1")])[
        "MetricAlarms"
    ]
    assert (alarm["Threshold"], alarm["EvaluationPeriods"]) == (1.0, 3)
