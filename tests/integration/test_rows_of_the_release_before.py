"""A deployed stack lives on: over rows of earlier releases nothing waits or ends because of the upgrade."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cloud import Cloud
from tests.integration.conftest import TABLE, make_table
from tests.integration.messages import request
from tests.integration.sagemaker_stub import SageMakerStub, TrainingJob
from tests.integration.test_rows_of_an_earlier_release import ADOPTED_OUTSIDE, _instants, _item, minutes_pass
from tests.integration.world import World

AFTERWARDS = (
    pytest.param("table_before_set_aside", marks=pytest.mark.thorough),
    "table_before_tenants",
    "table_before_sight",
    "table_before_prices",
)
"""Tables that say how the release that left them went on."""
LEFT = (pytest.param("table_before_layout", marks=pytest.mark.thorough), *AFTERWARDS)
NEW_ROWS = ("O#", "OT#", "L#")
"""The pool's order, the team's and the lanes, which those releases did not keep."""
LATER = {"reuses", "preempted_for"}
"""Fields of entries that those releases did not write; a repair adds them."""


@pytest.fixture(scope="module")
def cloud() -> Cloud:
    return Cloud()


@pytest.fixture(params=LEFT)
def left(request: pytest.FixtureRequest) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(Path(f"tests/fixtures/{request.param}.json").read_text())
    return document


@pytest.fixture
def world(cloud: Cloud, left: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "trainmaster")
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "trainmaster")
    with cloud.open():
        cloud.empty()
        make_table(cloud.client("dynamodb"), TABLE)
        queue = cloud.client("sqs").create_queue(QueueName="doorbell")
        world = World(cloud=cloud, queue_url=queue["QueueUrl"])
        world.put_back([_item(row) for row in left["rows"]])
        world.sagemaker = SageMakerStub(
            clock=lambda: world.now,
            jobs={name: TrainingJob(**_instants(job)) for name, job in left["training_jobs"].items()},
            limits=dict(left["limits"]),
            keeps_released=True,
        )
        world.checkpoints = {uri: datetime.fromisoformat(at) for uri, at in left["checkpoints"].items()}
        world.now = datetime.fromisoformat(left["at"])
        yield world


def names(left: dict[str, Any]) -> list[str]:
    return sorted(row["spec"]["name"] for row in left["rows"] if row["sk"] == "job")


def test_every_row_is_understood_and_none_differs_from_the_jobs(world: World, left: dict[str, Any]) -> None:
    assert world.api("GET", "/policy")["status"] == 200
    assert world.api("GET", "/pools")["set_aside"] == 0
    assert {pool["recount"] for pool in world.api("GET", "/pools")["pools"]} == {None}
    for name in names(left):
        assert world.api("GET", f"/jobs/{name}")["status"] == 200
    assert world.api("POST", "/repair", {"apply": False})["status"] == 202
    world.wiring.reconciler.repair.run(_NeverOver())  # type: ignore[arg-type]
    found = world.api("GET", "/repair")
    assert (found["state"], found["set_aside"]) == ("done", [])
    old_rows = [one for one in found["differences"] if not one["row"].startswith(NEW_ROWS)]
    assert {one["field"] for one in old_rows} <= LATER
    assert found["jobs_read"] == len(names(left))


class _NeverOver:
    is_over = False


@pytest.mark.thorough
def test_repair_rewrites_nothing_but_marks_and_submissions_go_on(world: World, left: dict[str, Any]) -> None:
    before = {(item["pk"]["S"], item["sk"]["S"]): item for item in world.items()}
    assert world.api("PUT", "/policy/paused", {"paused": True})["status"] == 200
    assert world.api("POST", "/repair", {"apply": True})["status"] == 202
    world.wiring.reconciler.repair.run(_NeverOver())  # type: ignore[arg-type]
    differences = world.api("GET", "/repair")["differences"]
    assert {one["field"] for one in differences if not one["row"].startswith(NEW_ROWS)} <= LATER
    after = {(item["pk"]["S"], item["sk"]["S"]): item for item in world.items()}
    changed = {key[0][:2] for key, item in before.items() if after.get(key) != item}
    assert changed <= {"P#", "T#", "PO", "R#"}, "counters and teams are marked, the policy paused"
    more = {key[0] for key in after.keys() - before.keys()}
    assert {one for one in more if not one.startswith(NEW_ROWS)} == {"REPAIR"}
    for key, item in before.items():
        assert key[0] == "POLICY" or {
            name: content for name, content in after[key].items() if name in item and name != "policy_version"
        } == {name: content for name, content in item.items() if name != "policy_version"}


@pytest.mark.parametrize("left", AFTERWARDS, indirect=True)
def test_nothing_starts_waits_or_ends_otherwise_because_of_the_upgrade(
    world: World, left: dict[str, Any]
) -> None:
    """As the release that left it went on itself, over the same time."""
    for step in range(len(left["then"])):
        world.reconcile()
        world.schedule()
        assert {name: world.job(name).state.value for name in names(left)} == left["then"][str(step)]
        world.check(*names(left), capacity={**world.capacity(), **ADOPTED_OUTSIDE})
        minutes_pass(world)


@pytest.mark.parametrize("left", ["table_before_tenants"], indirect=True)
@pytest.mark.parametrize("estimate", ["true", "false"])
def test_a_position_counts_those_who_are_in_no_order_yet(world: World, estimate: str) -> None:
    assert not [row for row in world.items() if row["pk"]["S"].startswith("O#")]
    in_turn = ("vision-wait-2", "vision-wait-0", "vision-wait-wide", "speech-chained")
    shown = [world.api("GET", f"/jobs/{name}", query={"estimate": estimate}) for name in in_turn]
    assert [one["position"] for one in shown] == [1, 2, 3, 4]


@pytest.mark.parametrize("left", ["table_before_tenants"], indirect=True)
def test_who_was_accepted_under_earlier_defaults_goes_on_when_the_policy_is_put_again(
    world: World, left: dict[str, Any]
) -> None:
    shown = world.api("GET", "/policy")
    assert {one["field"] for one in shown["warnings"] if one.get("rule") == "defaults"} == {
        *(f"teams[{team}].roles" for team in (1, 2, 3)),
        "rules.remote_debug",
        "rules.session_chaining",
    }
    tried = world.api("PUT", "/policy", shown["policy"], query={"dry_run": "true"})
    forbidden = {one["job"]: one for one in tried["changes"] if one["change"] == "forbidden"}
    assert {one["judged_at"] for one in forbidden.values()} == {"submission"}
    assert {one["rule"] for one in forbidden["speech-chained"]["violations"]} == {
        "session_chaining",
        "teams.speech.roles",
    }
    assert world.api("PUT", "/policy", shown["policy"])["status"] == 200
    world.reconcile()
    world.schedule()
    assert {name: world.job(name).state.value for name in names(left)} == left["then"]["0"]


@pytest.mark.parametrize("left", ["table_before_sight"], indirect=True)
def test_history_begins_with_the_upgrade_and_misses_no_live_attempt(
    world: World, left: dict[str, Any]
) -> None:
    """What ended before is not recorded; who lives has every instant; what ends from now on is remembered."""
    live = {row["sk"] for row in left["rows"] if row["pk"].startswith("R#")}
    first = world.api("GET", "/timeline")
    assert (first["since"], {one["job"] for one in first["attempts"]}) == (None, live)
    assert all(one["claimed_at"] and one["ended_at"] is None for one in first["attempts"])
    assert [one["capacity"] for one in first["capacity"]] == [{"ml.a.xlarge": 3}]
    (point, *_) = world.api("GET", "/pools/history", query={"step": "86400"})["points"]
    assert sum(one["used"] for kind in ("on-demand", "spot") for one in point[kind].values()) > 0
    name = min(live & set(world.sagemaker.live()))
    if world.sagemaker.jobs[name].training_since is None:
        world.sagemaker.train(name)
    world.now += timedelta(minutes=1)
    world.sagemaker.end(name, "Completed")
    world.tell(name)
    after = world.api("GET", "/timeline")
    assert after["since"] is not None
    assert [one["job"] for one in after["attempts"] if one["ended_at"]] == [name]
    assert [one["job"] for one in world.api("GET", "/events")["events"]] == [name]


ROWS_THAT_THE_RELEASE_BEFORE_READS = frozenset(
    ("ACCOUNT", *"BEHIJLNOPQRSTUVW", "OT", "POLICY", "REPAIR", "SET-ASIDE")
)
"""How its partitions begin: whatever lies elsewhere it never asks for, and its repair passes over."""


@pytest.mark.parametrize("left", ["table_before_sight"], indirect=True)
def test_a_rollback_meets_no_row_of_the_history(world: World) -> None:
    """Rows that only this release writes lie in partitions of their own."""
    for _ in range(2):
        minutes_pass(world)
    for name in sorted(world.sagemaker.live()):
        world.sagemaker.end(name, "Stopped")
        world.tell(name)
    new = [
        item
        for item in world.items()
        if item["pk"]["S"].partition("#")[0] not in ROWS_THAT_THE_RELEASE_BEFORE_READS
    ]
    assert {item["pk"]["S"].partition("#")[0] for item in new} == {"D", "DW", "G", "Y", "WH"}
    assert all("ttl" in item and item["sk"]["S"] not in {"job", "counters"} for item in new)


READ_BEFORE_PRICES = ROWS_THAT_THE_RELEASE_BEFORE_READS | {"C", "D", "DL", "DW", "DWL", "G", "Y"}
NEW_PARTITIONS = {"F", "K", "WH"}
"""Folders that jobs named, what was learned of how long jobs train, how soon they follow each other."""
NEW_ATTRIBUTES = {
    *(("T", "past"), ("J", "statuses"), ("P", "served"), ("P", "trained"), ("U", "unseen")),
    *((row, "metrics_sought_at") for row in ("J", "R")),
    *(("J", name) for name in ("stopped_for", "made_room_for", "futile", "startups", "no_capacity")),
    *((row, name) for row in ("B", "O", "OT", "Q", "R") for name in ("likely", "futile")),
    *(("POLICY", "put_at"), ("POLICY", "put_by")),
    *(("R", "stops"), ("W", "because"), ("DW", "because"), ("J", "cold_startup"), ("R", "cold_startup")),
}
"""Past use of teams, statuses of attempts, how long jobs are likely to train, what AWS served, stops and
preemptions that did not help, work of which no checkpoint was seen, GPU data that were looked for, why
instances were given up, who put a policy in force and when: that release ignores these."""
NOT_LEFT = {("P", "told"), ("P", "unseen"), ("R", "trained")}
"""Which that release writes as well, though not in this story."""
RARE = {"E", "G", "I"}
"""Messages, counts of minutes and days of spot, whose attributes are names and times."""


@pytest.mark.parametrize("left", ["table_before_prices"], indirect=True)
def test_a_rollback_meets_no_more_than_it_ignores(world: World, left: dict[str, Any]) -> None:
    """Jobs that are submitted, start and end under a policy of this release leave no more that is new."""
    assert world.api("PUT", "/policy", world.api("GET", "/policy")["policy"])["status"] == 200
    for name in ("new-1", "new-2"):
        tags = [{"Key": "team", "Value": "vision"}]
        assert world.api("POST", "/add-job", request(name, Tags=tags))["status"] == 201
    for _ in range(20):
        minutes_pass(world)
        for name, job in sorted(world.sagemaker.live().items()):
            if job.training_since is not None:
                world.sagemaker.end(name, "Completed")
                world.tell(name)
        for job in world.sagemaker.jobs.values():
            job.warm_status = "Terminated"
        if world.states("new-1", "new-2") == ["completed", "completed"]:
            break
    assert world.states("new-1", "new-2") == ["completed", "completed"]
    kinds = {item["pk"]["S"].partition("#")[0] for item in world.items()}
    assert kinds - READ_BEFORE_PRICES == NEW_PARTITIONS
    before = {one for row in left["rows"] for one in _attributes(row, row["pk"])}
    after = {one for item in world.items() for one in _attributes(item, item["pk"]["S"])}
    new = {one for one in after - before if one[0] in READ_BEFORE_PRICES - RARE}
    assert ("T", "past") in new
    assert new - NOT_LEFT <= NEW_ATTRIBUTES


def _attributes(row: dict[str, Any], partition: str) -> set[tuple[str, str]]:
    return {(partition.partition("#")[0], name.partition("#")[0]) for name in row}
