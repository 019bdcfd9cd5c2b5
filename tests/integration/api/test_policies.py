"""GET and PUT /policy, PUT /policy/paused."""

import json
from typing import Any

import pytest
from trainmaster.api import build_api
from trainmaster.errors import LostRaceError
from trainmaster.jobs import JobState

from tests.integration.api.conftest import ADA, ADMIN, DOCUMENT, G5, OWN, P5, STRANGER, Api

POOLS: Any = DOCUMENT["pools"]


def put(api: Api, document: object, *, user: str = ADMIN) -> Any:
    return api.call("PUT", "/policy", document, user=user)


def with_pools(*pools: dict[str, Any]) -> dict[str, Any]:
    return {**DOCUMENT, "pools": list(pools)}


def test_the_policy_is_read_as_it_was_written(api: Api) -> None:
    answer = api.get("/policy", user=ADMIN)
    assert answer.status == 200
    assert answer.json == {"revision": 1, "paused": False, "policy": DOCUMENT, "warnings": []}


def test_before_the_first_policy_there_is_the_empty_one(api: Api) -> None:
    for row in ("current", "v#000000001"):
        api.client.delete_item(TableName=api.table, Key={"pk": {"S": "POLICY"}, "sk": {"S": row}})
    empty = {"revision": 0, "paused": False, "policy": {}, "warnings": []}
    assert api.get("/policy", user=ADMIN).json == empty
    assert api.get("/jobs", user=ADMIN).json == {"jobs": [], "next_token": None}
    assert put(api, DOCUMENT).json["revision"] == 1


def test_a_new_policy_is_in_force_at_once(api: Api) -> None:
    document = with_pools({"name": "p5", "capacity": {P5: 9}}, POOLS[1]) | {"idle": {"for": "15m"}}
    answer = put(api, document)
    assert (answer.status, answer.json["revision"]) == (200, 2)
    assert answer.json["policy"] == document
    assert [warning["field"] for warning in answer.json["warnings"]] == ["idle"]
    assert api.get("/pools").json["pools"][0]["capacity"] == {P5: 9}
    assert api.get("/policy", user=ADMIN).json == answer.json
    assert api.doorbell.pools == ["g5", "p5"]


@pytest.mark.parametrize(
    ("method", "path", "content"),
    [("GET", "/policy", None), ("PUT", "/policy", {}), ("PUT", "/policy/paused", {"paused": True})],
)
@pytest.mark.parametrize("user", [ADA, STRANGER])
def test_only_admins(api: Api, method: str, path: str, content: Any, user: str) -> None:
    assert api.call(method, path, content, user=user).status == 403
    assert api.policies.current().document == DOCUMENT
    assert not api.policies.current().paused


def test_the_policy_may_name_admins(api: Api) -> None:
    put(api, DOCUMENT | {"admins": [f"arn:aws:iam::{OWN}:role/vision-lead"]})
    assert api.get("/policy", user=ADA).status == 200


def test_422_lists_every_error_with_its_path(api: Api) -> None:
    answer = put(
        api, {"pools": [{"name": "a", "capacity": {P5: -1}, "preemption": {"min_runtime": 5}}], "x": 1}
    )
    assert answer.status == 422
    assert answer.fields == [f"pools[0].capacity.{P5}", "pools[0].preemption.min_runtime", "x"]
    assert api.policies.current().document == DOCUMENT


@pytest.mark.parametrize("content", [None, "", "[]", "{", "null", '{"a": 1, "a": 2}'])
def test_a_body_that_is_no_object_is_400(api: Api, content: Any) -> None:
    assert put(api, content).status == 400


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.RUNNING, "backing off"])
@pytest.mark.parametrize(
    ("document", "field"),
    [
        pytest.param(with_pools(POOLS[1]), "pools", id="the pool goes"),
        pytest.param(with_pools(POOLS[1], {"name": "p5"}), "pools[1].capacity", id="the type goes"),
        pytest.param(
            with_pools({"name": "p5"}, {"name": "other", "capacity": {P5: 2, G5: 1}}, {"name": "g5"}),
            "pools[0].capacity",
            id="the type moves to another pool",
        ),
    ],
)
def test_nobody_is_left_in_what_is_no_more(api: Api, state: str, document: Any, field: str) -> None:
    api.submit("a")
    if state == JobState.RUNNING:
        api.start("a")
    if state == "backing off":
        api.put_back("a")
    answer = put(api, document)
    assert (answer.status, answer.fields) == (409, [field])
    assert answer.json["errors"][0]["hint"] == "set its capacity to 0 and drain"
    assert api.policies.current().document == DOCUMENT


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(with_pools({"name": "p5", "capacity": {P5: 0}}, POOLS[1]), id="draining"),
        pytest.param(with_pools(POOLS[0]), id="removing an idle pool"),
        pytest.param(with_pools({"name": "p5", "spot_capacity": {P5: 1}}, POOLS[1]), id="spot from now on"),
    ],
)
def test_what_strands_nobody_is_fine(api: Api, document: Any) -> None:
    api.submit("a")
    assert put(api, document).status == 200


def test_a_pool_whose_jobs_have_ended_may_go(api: Api) -> None:
    api.submit("a")
    api.end("a")
    assert put(api, {}).status == 200


def test_a_pool_that_goes_is_told_too(api: Api) -> None:
    put(api, with_pools(POOLS[1]))
    assert api.doorbell.pools == ["g5", "p5"]


def test_the_largest_document_is_stored_whatever_its_script(api: Api) -> None:
    document = {**DOCUMENT, "rules": {"note": "\N{LATIN SMALL LETTER E WITH ACUTE}" * 125_000}}
    assert put(api, json.dumps(document, ensure_ascii=False)).status == 200
    assert api.get("/policy", user=ADMIN).json["policy"] == document


def test_pausing_and_going_on(api: Api) -> None:
    before = api.policies.current()
    answer = api.call("PUT", "/policy/paused", {"paused": True}, user=ADMIN)
    assert answer.json == {"revision": 1, "paused": True, "policy": DOCUMENT, "warnings": []}
    assert api.policies.current().version == before.version + 1
    assert api.call("PUT", "/policy/paused", {"paused": True}, user=ADMIN).status == 200
    assert api.policies.current().version == before.version + 1
    api.doorbell.pools.clear()
    assert not api.call("PUT", "/policy/paused", {"paused": False}, user=ADMIN).json["paused"]
    assert api.doorbell.pools == ["g5", "p5"]


def test_a_new_policy_does_not_end_the_pause(api: Api) -> None:
    api.call("PUT", "/policy/paused", {"paused": True}, user=ADMIN)
    assert put(api, {}).json["paused"]


@pytest.mark.parametrize("content", [{}, {"paused": "true"}, {"paused": 1}, {"paused": True, "x": 1}, []])
def test_a_pause_is_true_or_false(api: Api, content: Any) -> None:
    assert api.call("PUT", "/policy/paused", content, user=ADMIN).status == 400


class Beaten:
    """A policy store in which another admin is always faster."""

    def __init__(self, api: Api) -> None:
        self.current = api.policies.current

    def put(self, *_: Any, **__: Any) -> Any:
        raise LostRaceError("another admin was faster")


def test_of_two_admins_the_slower_one_is_told_to_look_again(api: Api) -> None:
    api.handle = build_api(api.outside(policies=Beaten(api)))
    answer = put(api, {})
    assert (answer.status, answer.headers) == (503, {"Retry-After": "1"})
