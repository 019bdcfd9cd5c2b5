"""Group K: a policy that was put before defaults became stricter keeps the old ones until the next put."""

import json
from typing import Any

import pytest

from tests.builders import A
from tests.faults.conftest import NewWorld
from tests.faults.spoiling import lacks, spoil
from tests.integration.world import World

ADA = "arn:aws:iam::123456789012:user/ada"
UNWRITTEN: dict[str, Any] = {
    "pools": [{"name": "main", "capacity": {A: 1}}],
    "teams": [{"name": "red", "principals": [ADA]}],
}
TRUSTING: dict[str, Any] = {"SessionChainingConfig": {"EnableSessionTagChaining": True}}
LATER = ["teams[0].roles", "rules.remote_debug", "rules.session_chaining"]
IN_POOLS = [
    "pools[].preemption.cost.enabled",
    "pools[].preemption.max_per_job",
    "pools[].warm_pool.keep_alive",
]
AS_BEFORE = {"preemption": {"cost": {"enabled": False}, "max_per_job": 3}, "warm_pool": {"keep_alive": "0s"}}


@pytest.fixture
def plane(new_world: NewWorld) -> World:
    """As the release before left it: a document, and nothing about defaults."""
    world = new_world(UNWRITTEN, as_written=True)
    for sk in ("current", "v#000000001"):
        spoil(world, "POLICY", sk, lacks("defaults"))
    return world


def of_rules(warnings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without those of types: the types of these pools are made up."""
    return [one for one in warnings if "known instance types" not in str(one["message"])]


def fields(warnings: list[dict[str, Any]], rule: str | None = "defaults") -> list[str]:
    return [one["field"] for one in of_rules(warnings) if one.get("rule") == rule]


def outdated(capsys: pytest.CaptureFixture[str]) -> list[float]:
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "OutdatedDefaults" in line]
    return [line["OutdatedDefaults"][0] for line in lines]


def dry_run(world: World, document: dict[str, Any]) -> dict[str, Any]:
    return world.api("PUT", "/policy", document, query={"dry_run": "true"})


def refused(world: World, name: str, **changed: Any) -> list[str]:
    answer = world.submit(name, **changed)
    return [one["rule"] for one in answer["errors"]] if answer["status"] == 422 else []


def test_K9_K10_a_revision_without_a_mark_keeps_the_old_defaults_and_warns(
    plane: World, capsys: pytest.CaptureFixture[str]
) -> None:
    for paused in (True, False):
        answer = plane.api("PUT", "/policy/paused", {"paused": paused})
        assert fields(answer["warnings"]) == LATER, "a pause is no put of a policy"
    assert refused(plane, "chained", **TRUSTING) == []
    assert refused(plane, "shell", RemoteDebugConfig={"EnableRemoteDebug": True}) == []
    assert refused(plane, "secret", Environment={"DB_PASSWORD": "hunter22"}) == ["secrets"], "as it was"
    shown = plane.api("GET", "/policy")
    assert (fields(shown["warnings"]), shown["policy"]) == (LATER, UNWRITTEN)
    warned = shown["warnings"]
    assert all("until a policy is applied again" in one["message"] and one["hint"] for one in warned)
    capsys.readouterr()
    plane.reconcile()
    assert outdated(capsys) == [len(LATER)]


def test_K9_K10_the_dry_run_of_the_next_put_lists_whose_like_it_would_refuse(plane: World) -> None:
    for name in ("first", "second"):
        assert plane.submit(name, **TRUSTING)["status"] == 201
    plane.wake()
    before = plane.items()
    tried = dry_run(plane, UNWRITTEN)
    (change,) = tried["changes"]
    assert (change["job"], change["change"], change["judged_at"]) == ("second", "forbidden", "submission")
    assert change["message"].startswith("it starts, but would be refused if sent again: session_chaining: ")
    assert [(one["rule"], one["field"]) for one in change["violations"]] == [
        ("session_chaining", "SessionChainingConfig.EnableSessionTagChaining"),
        ("teams.red.roles", "RoleArn"),
    ]
    assert fields(tried["warnings"]) == LATER[1:] + IN_POOLS
    assert fields(tried["warnings"], rule=None) == LATER[:1]
    assert plane.items() == before


def test_K9_K10_who_waits_when_the_policy_is_put_again_starts_and_his_like_is_refused(
    plane: World, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("first", "second"):
        assert plane.submit(name, **TRUSTING)["status"] == 201
    plane.wake()
    assert plane.api("PUT", "/policy", UNWRITTEN)["status"] == 200
    assert refused(plane, "third", **TRUSTING) == ["session_chaining", "teams.red.roles"]
    assert fields(plane.api("GET", "/policy")["warnings"]) == []
    capsys.readouterr()
    plane.reconcile()
    assert outdated(capsys) == []
    plane.sagemaker.end("first", "Completed")
    plane.tell("first")
    plane.wake()
    assert plane.states("first", "second") == ["completed", "running"]


def test_K9_K10_what_the_new_document_writes_keeps_what_was_allowed(plane: World) -> None:
    assert plane.submit("first", **TRUSTING)["status"] == 201
    written = {
        "pools": [{**pool, **AS_BEFORE} for pool in UNWRITTEN["pools"]],
        "teams": [{"name": "red", "principals": [ADA], "roles": "any"}],
        "rules": {"session_chaining": {"mode": "allow"}, "remote_debug": {"mode": "audit"}},
    }
    tried = dry_run(plane, written)
    assert (tried["changes"], of_rules(tried["warnings"])) == ([], [])
    assert of_rules(plane.api("PUT", "/policy", written)["warnings"]) == []
    assert refused(plane, "second", **TRUSTING) == []


def test_K9_K10_without_teams_nothing_changes_and_nothing_is_warned_of(new_world: NewWorld) -> None:
    world = new_world({"pools": UNWRITTEN["pools"]}, as_written=True)
    for sk in ("current", "v#000000001"):
        spoil(world, "POLICY", sk, lacks("defaults"))
    assert world.api("GET", "/policy")["warnings"] == []
    assert refused(world, "chained", **TRUSTING) == []


def test_K10_a_written_rule_forbids_whom_it_will_stop_at_the_start(plane: World) -> None:
    for name in ("first", "second"):
        assert plane.submit(name, **TRUSTING)["status"] == 201
    plane.wake()
    written = {**UNWRITTEN, "rules": {"session_chaining": True}}
    (change,) = dry_run(plane, written)["changes"]
    assert (change["job"], change["change"], change["judged_at"]) == ("second", "forbidden", "start")
    assert [one["rule"] for one in change["violations"]] == ["session_chaining"]


def revision_before(world: World, defaults: str = "2") -> None:
    """The mark that the releases before this one left."""
    for sk in ("current", "v#000000001"):
        spoil(world, "POLICY", sk, lambda row: row | {"defaults": {"N": defaults}})


def kept_alive(world: World, name: str) -> int | None:
    seconds: int | None = world.sagemaker.jobs[name].request["ResourceConfig"].get("KeepAlivePeriodInSeconds")
    return seconds


def test_instances_are_kept_from_the_next_put_of_a_policy_on(new_world: NewWorld) -> None:
    document = {"pools": [{"name": "main", "capacity": {A: 2}}]}
    world = new_world(document, as_written=True)
    revision_before(world)
    assert world.submit("first")["status"] == 201
    world.wake()
    assert (world.states("first"), kept_alive(world, "first")) == (["running"], None)
    assert world.api("PUT", "/policy/paused", {"paused": False})["status"] == 200
    assert fields(world.api("PUT", "/policy", document)["warnings"]) == IN_POOLS
    assert fields(world.api("PUT", "/policy", document)["warnings"]) == [], "told once"
    assert world.submit("second")["status"] == 201
    world.wake()
    assert kept_alive(world, "second") == 600


@pytest.mark.parametrize(
    ("written", "told"),
    [
        pytest.param({}, IN_POOLS, id="nothing is written"),
        pytest.param({"warm_pool": {"keep_alive": "0s"}}, IN_POOLS[:2], id="none are kept"),
        pytest.param(
            {"warm_pool": {"keep_alive": "20m"}}, [*IN_POOLS[:2], "pools[].warm_pool.retain"], id="some were"
        ),
        pytest.param({"warm_pool": {"keep_alive": "20m", "retain": "0s"}}, IN_POOLS[:2], id="as before"),
        pytest.param(
            {"preemption": {"cost": {"enabled": True}}},
            ["pools[].preemption.cost.longest_wait", *IN_POOLS[1:]],
            id="it has a price",
        ),
    ],
)
def test_a_put_tells_of_what_is_not_written_alone(
    new_world: NewWorld, written: dict[str, Any], told: list[str]
) -> None:
    document = {"pools": [{"name": "main", "capacity": {A: 2}, **written}]}
    world = new_world(document, as_written=True)
    revision_before(world)
    assert fields(dry_run(world, document)["warnings"]) == told
    elsewhere = {"pools": [{"name": "other", "capacity": {A: 2}}]}
    assert fields(dry_run(world, elsewhere)["warnings"]) == [], "a new pool had no other defaults"
