"""Training plans as the API shows them: in pools, jobs, the past and the money."""

import json
from decimal import Decimal
from typing import Any

import pytest
from trainmaster.core.policy import parse_policy
from trainmaster.core.policy.plan_windows import PlanSeen
from trainmaster_client.simulate.engine.past_jobs import History
from trainmaster_client.simulate.engine.replayed_plans import replayed_plans, with_known_plans
from trainmaster_client.simulate.histories.export_lines import read_lines
from trainmaster_client.simulate.io.known_plans import known_plans

from tests.builders import NOON, A, minutes
from tests.faults.conftest import NewWorld
from tests.faults.scenes import ends, trains
from tests.integration.messages import proxy_event
from tests.integration.plan_scenes import ONLY, SPRING, at, described, policy
from tests.integration.world import World

NOBODY = "arn:aws:iam::123456789012:user/nobody"


@pytest.fixture
def world(new_world: NewWorld) -> World:
    """One job on a plan of two instances for 8 hours (60 USD an instance-hour), and a second window."""
    plane = new_world(policy(capacity=1))
    plane.sagemaker.plans["spring"] = described((0, 6), (24, 26), AvailableInstanceCount=2)
    plane.reconcile()
    plane.submit("job")
    plane.schedule()
    trains(plane, "job")
    return plane


def pool_of(world: World) -> dict[str, Any]:
    (view,) = world.api("GET", "/pools")["pools"]
    return dict(view)


def test_a_pool_shows_its_plans_and_the_third_capacity_type(world: World) -> None:
    view = pool_of(world)
    assert view["used"] == {"on-demand": {}, "spot": {}, "plan": {A: 1}}
    assert view["free"] == {"on-demand": {A: 1}, "spot": {}, "plan": {A: 1}}
    assert view["warm"].keys() == {"on-demand", "spot"}
    (plan,) = view["plans"]
    assert plan == {
        "arn": SPRING,
        "status": "Active",
        "instance_type": A,
        "instances": 2,
        "available": 2,
        "used": 1,
        "window": {
            "from": "2026-11-02T12:00:00.000Z",
            "to": "2026-11-02T18:00:00.000Z",
            "closes": "2026-11-02T17:20:00.000Z",
        },
        "next": {
            "from": "2026-11-03T12:00:00.000Z",
            "to": "2026-11-03T14:00:00.000Z",
            "closes": "2026-11-03T13:20:00.000Z",
        },
        "windows": [
            {
                "from": "2026-11-02T12:00:00.000Z",
                "to": "2026-11-02T18:00:00.000Z",
                "instances": 2,
                "status": "Scheduled",
            },
            {
                "from": "2026-11-03T12:00:00.000Z",
                "to": "2026-11-03T14:00:00.000Z",
                "instances": 2,
                "status": "Scheduled",
            },
        ],
        "trouble": None,
        "fee_usd": 960.0,
    }
    at(world, 7)
    assert pool_of(world)["free"]["plan"] == {A: 0}


def test_a_replay_knows_the_windows_that_the_stack_has_seen_those_of_the_past_too(world: World) -> None:
    world.sagemaker.plans["spring"] = described((0, 6), (24, 26), Status="Expired")
    at(world, 30)
    known = known_plans([pool_of(world)], where="the stack")
    assert [(window.begin, window.instances, window.status) for window in known[SPRING].windows] == [
        (NOON, 2, "Scheduled"),
        (NOON + minutes(24 * 60), 2, "Scheduled"),
    ]
    assert (known[SPRING].status, known[SPRING].fee_usd) == ("Scheduled", Decimal("960.0"))
    rules = with_known_plans(parse_policy(policy() | {"version": 1}), known)
    history = History(source="a test", begins=NOON, jobs=())
    (plan,) = replayed_plans(history, rules)
    assert (plan.name, plan.paid_s, [window.ends_s for window in plan.windows]) == (
        "spring",
        16 * 3600,
        [19800, 91800],
    )


def test_what_a_plan_cost_is_for_admins(world: World) -> None:
    answer = world.call("api", proxy_event("GET", "/pools", user=NOBODY))
    (view,) = json.loads(answer["body"])["pools"]
    assert "fee_usd" not in view["plans"][0]


def test_pools_without_plans_have_no_new_key(new_world: NewWorld) -> None:
    view = pool_of(new_world({"pools": [{"name": "main", "capacity": {A: 1}}]}))
    assert "plans" not in view
    assert view["used"].keys() == view["free"].keys() == {"on-demand", "spot"}


def test_a_plan_that_was_never_described_is_shown_as_unknown(new_world: NewWorld) -> None:
    (plan,) = pool_of(new_world(policy()))["plans"]
    assert (plan["arn"], plan["status"], plan["instances"]) == (SPRING, "Unknown", 0)


def test_a_job_and_its_attempts_are_of_capacity_type_plan(world: World) -> None:
    world.submit("only", Tags=[ONLY])
    ends(world, "job")
    view = world.api("GET", "/jobs/job")
    assert view["attempts"][0]["capacity_type"] == "plan"
    assert world.api("GET", "/jobs/only")["capacity_type"] == "plan"


def test_the_export_says_which_plan_a_job_ran_on_and_a_replay_can_read_it(world: World) -> None:
    world.submit("only", Tags=[ONLY])
    ends(world, "job")
    world.schedule()
    answer = world.call("api", proxy_event("GET", "/history/export"))
    lines = {line.name: line for line in read_lines(answer["body"].splitlines(), where="the stack")}
    assert {name: line.capacity_type for name, line in lines.items()} == {"job": "on-demand", "only": "plan"}
    assert {name: [ran.plan for ran in line.attempts] for name, line in lines.items()} == {
        "job": ["spring"],
        "only": ["spring"],
    }


def test_an_attempt_costs_its_share_of_the_fee_and_the_rest_is_unused(world: World) -> None:
    at(world, 2)
    ends(world, "job")
    (line,) = world.api("GET", "/usage")["jobs"]
    assert line["usd"] == 120.0, "two hours of 960 USD for 16 instance-hours"
    at(world, 6.5)
    (unused,) = world.api("GET", "/usage")["unused_plan"]
    assert unused == {
        "pool": "main",
        "arn": SPRING,
        "paid_hours": 12.0,
        "instance_hours": 10.0,
        "usd": 600.0,
    }
    grouped = world.api("GET", "/usage", query={"group_by": "team"})
    assert grouped["unused_plan"] == [unused]


def test_the_fee_of_the_policy_counts_where_sagemaker_reports_none(new_world: NewWorld) -> None:
    world = new_world(policy(fee_usd=1600))
    world.sagemaker.plans["spring"] = described((0, 8), UpfrontFee="0.00")
    world.reconcile()
    world.submit("job")
    world.schedule()
    rate = world.job("job").live_attempt.claim.usd_per_hour
    assert rate is not None
    assert float(rate) == 100.0


def test_the_past_shows_openings_closings_and_use_of_plans(world: World) -> None:
    for hours in (5 + 19 / 60, 5 + 21 / 60, 7):
        at(world, hours)
    points = world.api("GET", "/pools/history", query={"from": "2026-11-02T12:00:00Z"})["points"]
    assert points[0]["plan"][A]["used"] == 1
    assert points[0]["plan"][A]["capacity"] == 2
    assert points[-1]["plan"][A]["capacity"] == 0
    lines = world.api("GET", "/timeline", query={"from": "2026-11-02T12:00:00Z"})
    assert {attempt["capacity_type"] for attempt in lines["attempts"]} == {"plan"}
    assert [line["plan_capacity"] for line in lines["capacity"]][-1] == {A: 0}


def test_the_timeline_shows_windows_that_open_and_close_in_the_next_days(world: World) -> None:
    now = {"from": "2026-11-02T10:00:00Z"}
    ahead = world.api("GET", "/timeline", query=now)["ahead"]
    assert [(line["at"][:16], line["capacity"], line["plan_capacity"]) for line in ahead] == [
        ("2026-11-02T17:20", {A: 1}, {A: 0}),
        ("2026-11-03T12:00", {A: 1}, {A: 2}),
        ("2026-11-03T13:20", {A: 1}, {A: 0}),
    ]
    past = {"from": "2026-11-02T10:00:00Z", "to": "2026-11-02T11:00:00Z"}
    assert "ahead" not in world.api("GET", "/timeline", query=past)


def test_a_calendar_and_a_window_that_change_at_once_are_one_line(new_world: NewWorld) -> None:
    rules = policy(capacity=3)
    rules["pools"][0]["calendar"] = [
        {"from": "2026-11-02T18:00Z", "to": "2026-11-02T20:00Z", "capacity": {A: 1}}
    ]
    plane = new_world(rules)
    plane.sagemaker.plans["spring"] = described((6, 30))
    plane.reconcile()
    ahead = plane.api("GET", "/timeline", query={"from": "2026-11-02T10:00:00Z"})["ahead"]
    assert [(line["at"][:16], line["capacity"][A], line["plan_capacity"][A]) for line in ahead] == [
        ("2026-11-02T18:00", 1, 2),
        ("2026-11-02T20:00", 3, 2),
        ("2026-11-03T17:20", 3, 0),
    ]


def test_a_policy_with_a_plan_of_another_account_is_refused(new_world: NewWorld) -> None:
    world = new_world(policy())
    foreign = SPRING.replace("123456789012", "999999999999")
    answer = world.api("PUT", "/policy", policy(arn=foreign))
    (error,) = answer["errors"]
    assert (answer["status"], error["field"]) == (422, "pools[0].plans[0].arn")
    assert error["hint"] == f"write {SPRING}"
    assert world.api("PUT", "/policy", policy())["status"] == 200


def test_what_is_known_of_a_plan_is_kept_as_it_was(new_world: NewWorld) -> None:
    world = new_world(policy())
    world.sagemaker.plans["spring"] = described((0, 6), (24, 26), AvailableInstanceCount=1)
    world.reconcile()
    (plan,) = world.wiring.policies.plans().values()
    assert isinstance(plan, PlanSeen)
    assert [(window.instances, window.status) for window in plan.windows] == [(2, "Scheduled")] * 2
    assert (plan.total, plan.available, str(plan.fee_usd), plan.lower) == (2, 1, "960.00", (1, 1))
    calls = world.calls_of(world.reconcile)
    assert "DescribeTrainingPlan" in calls
    world.reconcile()
    assert world.wiring.policies.plans()[SPRING].unseen == 1


def test_a_plan_with_jobs_on_it_cannot_be_removed(world: World) -> None:
    without = {"pools": [{"name": "main", "capacity": {A: 1}}]}
    answer = world.api("PUT", "/policy", without)
    (error,) = answer["errors"]
    assert (answer["status"], error["field"]) == (409, "pools[0].plans")
    assert error["message"] == "pool main has live or waiting jobs on training plan spring"
    ends(world, "job")
    assert world.api("PUT", "/policy", without)["status"] == 200
