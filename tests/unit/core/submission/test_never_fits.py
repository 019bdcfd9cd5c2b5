"""O9 and C4: what no revision in force can start is refused, with the number, the bound and the remedy."""

from typing import Any

import pytest
from trainmaster.core.policy import Policy, parse_policy
from trainmaster.core.request.request import read_request
from trainmaster.core.submission.admission import Submission, judge, new_job

from tests.bodies import body, resources, spot, tag_list
from tests.builders import NOON

G4, G5, P5 = "ml.g4dn.12xlarge", "ml.g5.xlarge", "ml.p5.48xlarge"
DAY = 86_400


def policy(pool: dict[str, Any] | None = None, **team: Any) -> Policy:
    never = {
        "name": "never",
        "capacity": {G4: 8},
        "quotas": {"a": {"nominal": 2, "borrowing_limit": 0}, "b": 2},
    }
    pools = [pool or never, {"name": "money", "capacity": {G5: 4, P5: 4}}]
    return parse_policy({"pools": pools, "teams": [{"name": "a", "roles": "any", **team}, {"name": "b"}]})


def asks(instance_type: str, count: int, *, seconds: int = 3600, **changes: Any) -> dict[str, Any]:
    config = {"InstanceType": instance_type, "InstanceCount": count, "VolumeSizeInGB": 10}
    return body(ResourceConfig=config, StoppingCondition={"MaxRuntimeInSeconds": seconds}, **changes)


def alternatives(text: str, **changes: Any) -> dict[str, Any]:
    tags = tag_list({"trainmaster:alternatives": text} | changes.pop("tags", {}))
    return body(Tags=tags, **changes)


def submission(request: dict[str, Any], team: str = "a") -> Submission:
    return Submission(body=request, ask=read_request(request), team=team, submitted_by="me")


def refused(request: dict[str, Any], rules: Policy, team: str = "a") -> list[tuple[str, str, str]]:
    found = judge(submission(request, team), rules).violations
    return [(one.field, one.message, one.hint) for one in found if one.rule == "never-fits"]


COUNT = "ResourceConfig.InstanceCount"
TIME = "StoppingCondition.MaxRuntimeInSeconds"
FIXED = {"trainmaster:preemptible": "false"}


def test_C4_O9_more_than_quota_and_borrowing_limit_names_both() -> None:
    ((field, message, hint),) = refused(asks(G4, 4), policy())
    assert field == COUNT
    assert message == (
        "asks for 4, but team a may use 2 ml.g4dn.12xlarge of pool never: its quota of 2 and a borrowing"
        " limit of 0"
    )
    assert hint == "ask for at most 2, or have an admin raise pools.never.quotas.a"


@pytest.mark.parametrize(
    ("team", "quota", "count", "is_refused"),
    [
        ("a", {"nominal": 2, "borrowing_limit": 1}, 3, False),
        ("a", {"nominal": 2, "borrowing_limit": 1}, 4, True),
        ("a", {"nominal": 0, "borrowing_limit": 1}, 2, True),
        ("a", {"borrowing_limit": 0}, 1, True),
        ("a", {"nominal": 2}, 8, False),
        ("b", {"nominal": 2, "borrowing_limit": 0}, 8, False),
    ],
    ids=["within", "one more", "nothing of its own", "nothing at all", "no limit", "a team without a quota"],
)
def test_O9_a_borrowing_limit_bounds_a_single_job(
    team: str, quota: dict[str, int], count: int, *, is_refused: bool
) -> None:
    pool = {"name": "never", "capacity": {G4: 8}, "quotas": {"a": quota}}
    assert bool(refused(asks(G4, count), policy(pool), team)) is is_refused


def test_O9_spot_is_outside_of_quotas() -> None:
    pool = {
        "name": "s",
        "capacity": {G4: 8},
        "spot_capacity": {G4: 8},
        "quotas": {"a": {"borrowing_limit": 0}},
    }
    request = spot() | {"ResourceConfig": {"InstanceType": G4, "InstanceCount": 8, "VolumeSizeInGB": 1}}
    assert refused(request, policy(pool)) == []
    assert refused(request | {"Tags": tag_list(FIXED)}, policy(pool)) == []


def test_O9_dearer_than_the_whole_month_where_the_budget_waits() -> None:
    rules = policy(budget={"usd_per_month": 33})
    ((field, message, hint),) = refused(asks(G5, 1, seconds=DAY), rules)
    assert field == TIME
    assert message == (
        "is 86400: the job may cost up to $33.80, more than the $33.00 that team a has for a whole month"
    )
    assert hint == ("ask for at most 84375 s or for fewer instances, or ask an admin for a larger budget")
    assert refused(asks(G5, 1, seconds=84_375), rules) == []


@pytest.mark.parametrize(
    ("request_body", "is_refused"),
    [
        pytest.param(asks(G5, 1, seconds=DAY), True, id="without checkpoints it does not run on spot"),
        pytest.param(
            asks(G5, 1, seconds=DAY, CheckpointConfig={"S3Uri": "s3://b/c"}), False, id="it runs on spot"
        ),
        pytest.param(
            asks(P5, 1, seconds=DAY, CheckpointConfig={"S3Uri": "s3://b/c"}), True, id="no spot of that type"
        ),
        pytest.param(
            spot(run=DAY, wait=2 * DAY)
            | {"ResourceConfig": {"InstanceType": G5, "InstanceCount": 1, "VolumeSizeInGB": 1}},
            False,
            id="spot as submitted",
        ),
        pytest.param(asks(G5, 1), False, id="it costs less than the month's"),
    ],
)
def test_O9_where_the_budget_moves_jobs_to_spot_only_those_that_cannot_be_moved(
    request_body: dict[str, Any], *, is_refused: bool
) -> None:
    pool = {"name": "x", "capacity": {G5: 4, P5: 4}, "spot_capacity": {G5: 1}}
    document = {
        "pools": [pool],
        "teams": [{"name": "a", "roles": "any", "budget": {"usd_per_month": 20, "at_limit": "spot"}}],
    }
    assert bool(refused(request_body, parse_policy(document))) is is_refused


def test_O9_a_type_without_a_price_never_fits_into_a_budget() -> None:
    pool = {"name": "x", "capacity": {"ml.zz9.large": 4}}
    ((field, message, hint),) = refused(asks("ml.zz9.large", 1), policy(pool, budget={"usd_per_month": 9}))
    assert (field, hint.endswith("write its price into the policy's prices")) == ("ResourceConfig", True)
    assert "without a price" in message


# ---- lists of shapes


MIXED = {
    "name": "mixed",
    "capacity": {G4: 8, "ml.m5.large": 8},
    "quotas": {"a": {"nominal": {G4: 1, "ml.m5.large": 2}, "borrowing_limit": {G4: 0, "ml.m5.large": 0}}},
}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param(f"{G4}=4 ml.m5.large=2", 0, id="one could start"),
        pytest.param(f"{G4}=4 ml.m5.large=3", 2, id="neither could"),
        pytest.param(f"{G4}=9 ml.m5.large=2", 1, id="K15 above the capacity is named all the same"),
    ],
)
def test_O9_a_list_of_shapes_is_refused_by_quota_only_if_each_of_them_is(text: str, number: int) -> None:
    found = refused(alternatives(text), policy(MIXED))
    assert [field for field, *_ in found] == ["Tags[0].Value"] * number


def test_O9_shapes_that_are_refused_by_different_bounds_are_all_named() -> None:
    """One is beyond the quota, the other dearer than the month."""
    rules = policy(MIXED, budget={"usd_per_month": 0.2})
    request = alternatives(f"{G4}=2 ml.m5.large=2", StoppingCondition={"MaxRuntimeInSeconds": DAY})
    messages = [message for _, message, _ in refused(request, rules)]
    assert any("borrowing limit of 0" in one for one in messages)
    assert any("for a whole month" in one for one in messages)


# ---- loans


def test_O8_a_job_that_cannot_be_stopped_may_not_ask_for_more_than_its_teams_own_quota() -> None:
    rules = policy({"name": "never", "capacity": {G4: 8}, "quotas": {"a": 2, "b": 2}})
    assert refused(asks(G4, 2, Tags=tag_list(FIXED)), rules) == []
    ((field, message, hint),) = refused(asks(G4, 3, Tags=tag_list(FIXED)), rules)
    assert field == COUNT
    assert message == (
        "asks for 3, but the quota of team a in pool never is 2 ml.g4dn.12xlarge, and a job that cannot be"
        " stopped may not run on borrowed instances (trainmaster:preemptible=false)"
    )
    assert hint == (
        "ask for at most 2, or leave the tag out so that it may borrow, or have an admin raise the quota"
    )


@pytest.mark.parametrize("team", ["a", "c"], ids=["nominal 0", "not named in the quotas"])
def test_O8_of_a_team_without_a_quota_of_its_own_it_is_refused(team: str) -> None:
    rules = policy({"name": "never", "capacity": {G4: 8}, "quotas": {"a": 0, "b": 2}})
    ((_, message, hint),) = refused(asks(G4, 1, Tags=tag_list(FIXED)), rules, team)
    assert f"the quota of team {team} in pool never is 0" in message
    assert hint == "leave the tag out so that it may borrow, or have an admin raise the quota"


def test_O8_without_checkpoints_where_only_those_with_are_stopped_likewise() -> None:
    pool = {
        "name": "never",
        "capacity": {G4: 8},
        "quotas": {"a": 2},
        "preemption": {"needs_checkpoint": True},
    }
    ((_, message, hint),) = refused(asks(G4, 3), policy(pool))
    assert "preemption.needs_checkpoint spares such jobs" in message
    assert hint.startswith("ask for at most 2, or give a CheckpointConfig so that it may borrow")
    assert refused(asks(G4, 3, CheckpointConfig={"S3Uri": "s3://b/c"}), policy(pool)) == []


def test_O8_without_quotas_nobody_borrows_and_everybody_may_be_unstoppable() -> None:
    assert refused(asks(G5, 4, Tags=tag_list(FIXED)), policy()) == []


@pytest.mark.parametrize(
    ("request_body", "own_quota"),
    [
        pytest.param(asks(G4, 1, Tags=tag_list(FIXED)), {G4: 2}, id="it cannot be stopped"),
        pytest.param(asks(G4, 1), None, id="it can"),
        pytest.param(asks(G5, 1, Tags=tag_list(FIXED)), None, id="a pool without quotas"),
    ],
)
def test_O8_a_job_remembers_the_quota_that_it_was_accepted_under(
    request_body: dict[str, Any], own_quota: dict[str, int] | None
) -> None:
    rules = policy()
    made = submission(request_body)
    pool = judge(made, rules).accepted()
    assert new_job(made, pool, entry_id="x", now=NOON).spec.own_quota == own_quota


def test_O9_every_bound_is_listed_at_once() -> None:
    rules = policy(budget={"usd_per_month": 1})
    found = refused(asks(G4, 9, seconds=DAY), rules)
    assert [field for field, *_ in found] == [COUNT, COUNT, TIME]


def test_a_drained_type_is_refused_as_ever() -> None:
    rules = policy({"name": "never", "capacity": {G4: 0}})
    ((_, message, hint),) = refused(resources(InstanceType=G4, InstanceCount=1), rules)
    assert message == "asks for 1, but pool never has 0 on-demand ml.g4dn.12xlarge in all"
    assert hint == "the pool has no on-demand instances of this type"
