"""J12: what is stored as the policy was written by another version; passes go on, and it can be replaced."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from boto3.dynamodb.types import TypeSerializer

from tests.builders import A
from tests.faults.conftest import NewWorld
from tests.faults.spoiling import TWO_POOLS, Change, lacks, says, set_aside, spoil
from tests.integration.world import World

STORED: list[dict[str, Any]] = json.loads(Path("tests/fixtures/stored_policies.json").read_text())
NEWER = {
    "pools": [{**pool, "gang": {"size": 8}} for pool in TWO_POOLS["pools"]],
    "tenants": [{"name": "red"}],
}
REFUSED = {"pools": [{"name": "main", "capacity": {A: "plenty"}}]}
"""By the validation of this version."""


@pytest.fixture
def plane(new_world: NewWorld) -> World:
    """Two revisions: the second is put by an admin like the first."""
    world = new_world(TWO_POOLS)
    assert world.api("PUT", "/policy", TWO_POOLS)["revision"] == 2
    return world


def writes(document: Mapping[str, Any] | str) -> Change:
    return says(document=document if isinstance(document, str) else json.dumps(document))


def stored_as(world: World, change: Change) -> None:
    """The current policy, and the row that keeps its revision."""
    spoil(world, "POLICY", "current", change)
    spoil(world, "POLICY", "v#000000002", change)


def starts(world: World, name: str) -> None:
    assert world.submit(name)["status"] == 201
    world.wake()
    assert world.states(name) == ["running"]


def can_be_replaced(world: World) -> None:
    """Also paused, and back."""
    version = world.wiring.policies.current().version
    for paused in (True, False):
        answer = world.api("PUT", "/policy/paused", {"paused": paused})
        assert (answer["status"], answer["paused"]) == (200, paused)
    answer = world.api("PUT", "/policy", TWO_POOLS)
    warned = [one for one in answer["warnings"] if one.get("rule") != "defaults" and not is_of_a_type(one)]
    assert (answer["status"], warned) == (200, []), "but of defaults that have changed since"
    assert world.wiring.policies.current().version == version + 3
    assert world.api("GET", "/policy")["warnings"] == []


def is_of_a_type(warning: dict[str, Any]) -> bool:
    """The types of these pools are made up."""
    return "not among the known instance types" in str(warning["message"])


def test_J12_keys_of_a_newer_version_are_kept_and_warned_of(plane: World) -> None:
    stored_as(plane, writes(NEWER))
    starts(plane, "job0")
    shown = plane.api("GET", "/policy")
    assert (shown["status"], shown["revision"], shown["policy"]) == (200, 2, NEWER)
    assert [one["field"] for one in shown["warnings"]] == ["pools[0].gang", "pools[1].gang", "tenants"]
    assert set_aside(plane)["all"] == 0
    for paused in (True, False):
        answer = plane.api("PUT", "/policy/paused", {"paused": paused})
        assert answer["policy"] == NEWER, "the newer version finds what it wrote"
    assert plane.api("PUT", "/policy", NEWER)["status"] == 422, "who writes a policy is judged strictly"
    can_be_replaced(plane)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(REFUSED, id="refused by this version"),
        pytest.param("{", id="not JSON"),
        pytest.param("[]", id="not a mapping"),
    ],
)
def test_J12_the_last_revision_that_is_understood_stays_in_force_and_that_is_said(
    plane: World, document: Mapping[str, Any] | str, capsys: pytest.CaptureFixture[str]
) -> None:
    stored_as(plane, writes(document))
    starts(plane, "job0")
    assert "POLICY/current: revision 2 is not understood by this version" in capsys.readouterr().out
    shown = plane.api("GET", "/policy")
    (warning,) = shown["warnings"]
    assert (shown["status"], shown["revision"], warning["field"]) == (200, 2, "policy")
    assert "revision 1 stays in force" in warning["message"]
    assert set_aside(plane) == {"main": 0, "other": 0, "all": 1}
    plane.reconcile()
    can_be_replaced(plane)


def test_J12_a_policy_that_was_never_understood_leaves_nothing_in_force_and_can_be_replaced(
    new_world: NewWorld,
) -> None:
    plane = new_world(TWO_POOLS)
    spoil(plane, "POLICY", "current", writes(REFUSED))
    plane.reconcile()
    assert "no policy is in force" in plane.api("GET", "/policy")["warnings"][0]["message"]
    assert plane.api("PUT", "/policy", TWO_POOLS)["status"] == 200
    starts(plane, "job0")


@pytest.mark.parametrize("missing", ["paused", "seal_key"])
def test_J12_an_older_document_lacks_what_came_later(plane: World, missing: str) -> None:
    stored_as(plane, lacks(missing))
    starts(plane, "job0")
    assert plane.api("GET", "/jobs")["status"] == 200
    can_be_replaced(plane)


@pytest.mark.parametrize("left", STORED, ids=lambda left: left["written_by"])
def test_J12_the_policy_of_every_earlier_release_is_in_force_as_it_was_left(
    new_world: NewWorld, left: dict[str, Any]
) -> None:
    plane = new_world(TWO_POOLS)
    row = {name: TypeSerializer().serialize(content) for name, content in left["row"].items()}
    for sk in ("current", "v#000000001"):
        spoil(plane, "POLICY", sk, lambda item, row=row: {"pk": item["pk"], "sk": item["sk"], **row})  # type: ignore[misc]
    plane.reconcile()
    shown = plane.api("GET", "/policy")
    assert shown["policy"] == json.loads(left["row"]["document"])
    assert [one for one in shown["warnings"] if one["field"] == "policy"] == []
    assert {pool["name"] for pool in plane.api("GET", "/pools")["pools"]} == {
        pool["name"] for pool in shown["policy"]["pools"]
    }
    can_be_replaced(plane)
