"""GET and PUT /policy, PUT /policy/paused."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.api import build_api
from trainmaster.core.errors import LostRaceError
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.snapshot import Snapshot
from trainmaster.core.policy import PoolPolicy

from tests.integration.api.conftest import ADA, ADMIN, BOB, DOCUMENT, G5, ON_G5, OWN, P5, STRANGER, Api

POOLS: Any = DOCUMENT["pools"]


def put(api: Api, document: object, *, user: str = ADMIN) -> Any:
    return api.call("PUT", "/policy", document, user=user)


def with_pools(*pools: dict[str, Any]) -> dict[str, Any]:
    return {**DOCUMENT, "pools": list(pools)}


def test_the_policy_is_read_as_it_was_written(api: Api) -> None:
    answer = api.get("/policy", user=ADMIN)
    assert answer.status == 200
    facts = {"revision": 1, "paused": False, "policy": DOCUMENT, "warnings": [], "text": None}
    assert answer.json == facts | {"put_at": None, "put_by": None}, "an earlier release wrote it"


def test_before_the_first_policy_there_is_the_empty_one(api: Api) -> None:
    for row in ("current", "v#000000001"):
        api.client.delete_item(TableName=api.table, Key={"pk": {"S": "POLICY"}, "sk": {"S": row}})
    empty = {"revision": 0, "paused": False, "policy": {}, "warnings": []}
    assert api.get("/policy", user=ADMIN).json == empty | {"text": None, "put_at": None, "put_by": None}
    assert api.get("/jobs", user=ADMIN).json == {"jobs": [], "arrays": [], "next_token": None}
    assert put(api, DOCUMENT).json["revision"] == 1


def test_a_new_policy_is_in_force_at_once(api: Api) -> None:
    mail = {"notifications": {"email": ["ml@example.com"]}}
    document = with_pools({"name": "p5", "capacity": {P5: 9}}, POOLS[1]) | mail
    answer = put(api, document)
    assert (answer.status, answer.json["revision"]) == (200, 2)
    assert answer.json["policy"] == document
    assert [warning["field"] for warning in answer.json["warnings"]] == ["notifications.email"]
    assert api.get("/pools").json["pools"][0]["capacity"] == {P5: 9}
    assert api.get("/policy", user=ADMIN).json.items() >= (answer.json | {"text": None}).items()
    assert api.wake_ups.pools == ["g5", "p5"]


def test_prices_of_another_region_are_said_where_money_is_shown(api: Api) -> None:
    api.handle = build_api(api.outside(region="eu-west-1"))
    answers = (
        put(api, DOCUMENT),
        api.get("/policy", user=ADMIN),
        api.get("/usage", team="vision", user=ADMIN),
    )
    for answer in answers:
        (warning,) = answer.json["warnings"]
        assert warning["field"] == "prices"
        for part in (G5, P5, "us-east-1", "eu-west-1"):
            assert part in warning["message"]
        assert "prices: {" in warning["hint"]
    mixed = put(api, DOCUMENT | {"prices": {P5: 70}}).json["warnings"]
    assert [P5 in one["message"] for one in mixed] == [False]
    assert put(api, DOCUMENT | {"prices": {P5: 70, G5: 2}}).json["warnings"] == []


@pytest.mark.parametrize("region", ["us-east-1", ""])
def test_where_the_shipped_prices_hold_nothing_is_said(api: Api, region: str) -> None:
    api.handle = build_api(api.outside(region=region))
    assert put(api, DOCUMENT).json["warnings"] == []
    assert api.get("/usage", team="vision", user=ADMIN).json["warnings"] == []


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
    assert api.wake_ups.pools == ["g5", "p5"]


def test_the_largest_document_is_stored_whatever_its_script(api: Api) -> None:
    long = "\N{LATIN SMALL LETTER E WITH ACUTE}" * 120
    document = {**DOCUMENT, "rules": {"required_tags": [f"{long}{number}" for number in range(1000)]}}
    assert put(api, json.dumps(document, ensure_ascii=False)).status == 200
    assert api.get("/policy", user=ADMIN).json["policy"] == document


def test_pausing_and_going_on(api: Api) -> None:
    before = api.policies.current()
    answer = api.call("PUT", "/policy/paused", {"paused": True}, user=ADMIN)
    assert answer.json == {"revision": 1, "paused": True, "policy": DOCUMENT, "warnings": []}
    assert api.policies.current().version == before.version + 1
    assert api.call("PUT", "/policy/paused", {"paused": True}, user=ADMIN).status == 200
    assert api.policies.current().version == before.version + 1
    api.wake_ups.pools.clear()
    assert not api.call("PUT", "/policy/paused", {"paused": False}, user=ADMIN).json["paused"]
    assert api.wake_ups.pools == ["g5", "p5"]


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
        self.close = api.policies.close
        self.reopen = api.policies.reopen

    def put(self, *_: Any, **__: Any) -> Any:
        raise LostRaceError("another admin was faster")


def test_of_two_admins_the_slower_one_is_told_to_look_again(api: Api) -> None:
    api.handle = build_api(api.outside(policies=Beaten(api)))
    answer = put(api, {})
    assert (answer.status, answer.headers) == (503, {"Retry-After": "1"})


def test_an_earlier_revision_is_read_as_it_was(api: Api) -> None:
    second = with_pools(POOLS[0])
    put(api, second)
    put(api, DOCUMENT)
    api.call("PUT", "/policy/paused", {"paused": True}, user=ADMIN)
    answer = api.get("/policy", user=ADMIN, revision="2")
    put_facts = {"put_at": "2026-11-02T12:00:00.000Z", "put_by": "arn:aws:iam::111122223333:user/admin"}
    facts = {"revision": 2, "paused": True, "policy": second, "warnings": [], "text": None}
    assert answer.json == facts | put_facts
    assert api.get("/policy", user=ADMIN, revision="3").json["policy"] == DOCUMENT


def test_a_revision_that_never_was_is_404(api: Api) -> None:
    answer = api.get("/policy", user=ADMIN, revision="2")
    assert answer.status == 404
    assert answer.json["detail"] == "there is no revision 2; the newest is 1"


@pytest.mark.parametrize("revision", ["0", "-1", "1.0", "latest", "1" * 10, "\u0662"])
def test_what_is_no_revision_is_400(api: Api, revision: str) -> None:
    answer = api.get("/policy", user=ADMIN, revision=revision)
    assert (answer.status, answer.fields) == (400, ["query.revision"])


def test_the_type_of_an_alternative_that_waits_cannot_go(api: Api) -> None:
    put(api, with_pools({"name": "p5", "capacity": {P5: 2, G5: 1}}))
    api.submit("a", tags={"trainmaster:alternatives": f"{P5}=1 {G5}=1"})
    answer = put(api, with_pools({"name": "p5", "capacity": {P5: 2}}))
    assert (answer.status, answer.fields) == (409, ["pools[0].capacity"])
    assert answer.json["errors"][0]["message"] == f"pool p5 has live or waiting jobs on {G5}"


class Meanwhile:
    """A policy store: ``step`` happens just before the new document is put in force."""

    def __init__(self, api: Api, step: Callable[[], object]) -> None:
        self._policies, self._step = api.policies, step

    def put(self, *document: Any, **rest: Any) -> Any:
        self._step()
        return self._policies.put(*document, **rest)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policies, name)


def test_nobody_slips_into_a_pool_while_it_goes(api: Api) -> None:
    late: list[Any] = []
    old = build_api(api.outside())
    slow = build_api(api.outside(policies=Meanwhile(api, lambda: late.append(submit_through(api, old)))))
    api.handle = slow
    assert put(api, with_pools(POOLS[1])).status == 200
    (answer,) = late
    assert (answer.status, answer.headers) == (503, {"Retry-After": "1"})
    assert answer.json["detail"] == "the policy or the name was changed meanwhile; try again"
    assert api.reader.job("late") is None
    api.handle = old
    assert api.submit("late").status == 422


def test_a_refused_policy_leaves_the_pool_open(api: Api) -> None:
    api.submit("early")
    assert put(api, with_pools(POOLS[1])).status == 409
    assert api.submit("next").status == 201


def test_a_pool_that_lost_a_type_is_open_at_once_to_those_judged_by_the_new_policy(api: Api) -> None:
    put(api, with_pools({"name": "p5", "capacity": {P5: 2, G5: 1}}))
    assert put(api, with_pools({"name": "p5", "capacity": {P5: 2}})).status == 200
    assert api.submit("a").status == 201
    assert put(api, with_pools({"name": "p5", "capacity": {P5: 2, G5: 1}})).status == 200


def test_a_freeze_whose_admin_died_is_over_after_a_minute(api: Api) -> None:
    class Dead(BaseException):
        """The function is gone; nothing runs after it."""

    def die() -> None:
        raise Dead

    api.handle = build_api(api.outside(policies=Meanwhile(api, die)))
    with pytest.raises(Dead):
        put(api, with_pools(POOLS[1]))
    api.handle = build_api(api.outside())
    assert api.submit("a").status == 503
    assert api.submit("b", user=BOB, ResourceConfig=ON_G5).status == 201
    api.now += timedelta(minutes=1)
    assert api.submit("a").status == 201


def test_two_admins_cannot_close_one_pool_at_once(api: Api) -> None:
    seen: list[Any] = []

    def other() -> None:
        api.handle = build_api(api.outside())
        seen.append(put(api, with_pools(POOLS[1])))

    api.handle = build_api(api.outside(policies=Meanwhile(api, other)))
    assert put(api, with_pools(POOLS[1])).status == 200
    assert [answer.status for answer in seen] == [503]


def submit_through(api: Api, handle: Any) -> Any:
    """A submission that was judged by the policy in force when it came in."""
    now, api.handle = api.handle, handle
    try:
        return api.submit("late")
    finally:
        api.handle = now


def tried(api: Api, document: object) -> Any:
    before = api.policies.current()
    answer = api.call("PUT", "/policy", document, user=ADMIN, query={"dry_run": "true"})
    assert api.policies.current() == before
    return answer


def changes(api: Api, document: object) -> list[tuple[str, str, str]]:
    answer = tried(api, document)
    assert answer.status == 200, answer
    return [(one["job"], one["change"], one["message"]) for one in answer.json["changes"]]


def test_a_dry_run_answers_as_the_put_would_and_changes_nothing(api: Api) -> None:
    api.wake_ups.pools.clear()
    document = {**DOCUMENT, "notifications": {"email": ["ml@example.com"]}}
    answer = tried(api, document)
    assert answer.status == 200
    assert answer.json.keys() == {"revision", "paused", "policy", "warnings", "changes", "truncated"}
    assert (answer.json["revision"], answer.json["policy"]) == (2, document)
    assert [warning["field"] for warning in answer.json["warnings"]] == ["notifications.email"]
    assert (answer.json["changes"], answer.json["truncated"]) == ([], False)
    assert api.wake_ups.pools == []
    assert put(api, document).json.keys() == answer.json.keys() - {"changes", "truncated"}


def test_a_dry_run_says_whom_new_rules_would_refuse(api: Api) -> None:
    api.submit("untagged")
    api.submit("tagged", tags={"owner": "ada"})
    rules = {"required_tags": {"mode": "enforce", "tags": {"owner": {}}}, "vpc_required": {"mode": "audit"}}
    ruled = {**DOCUMENT, "rules": rules}
    assert changes(api, ruled) == [("untagged", "forbidden", "required_tags: Tags.owner is required")]
    put(api, ruled)
    assert changes(api, {**ruled, "prices": {P5: 60}}) == [], "what is forbidden already is no change"


def test_a_dry_run_says_that_it_did_not_read_every_request(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        api.submit(f"untagged-{number}")
    ruled = {**DOCUMENT, "rules": {"required_tags": ["owner"]}}
    answer = tried(api, ruled)
    assert (len(answer.json["changes"]), answer.json["truncated"]) == (3, False)
    monkeypatch.setattr("trainmaster.api.policy_trial.MOST_REQUESTS", 2)
    answer = tried(api, ruled)
    assert (len(answer.json["changes"]), answer.json["truncated"]) == (2, True)


def test_a_dry_run_goes_on_past_a_job_whose_request_is_gone(api: Api) -> None:
    for name in ("gone", "untagged"):
        api.submit(name)
    rows = api.client.scan(TableName=api.table)["Items"]
    (key,) = [
        {"pk": row["pk"], "sk": row["sk"]}
        for row in rows
        if row["sk"]["S"] == "request" and "gone" in row["pk"]["S"]
    ]
    api.client.delete_item(TableName=api.table, Key=key)
    ruled = {**DOCUMENT, "rules": {"required_tags": ["owner"]}}
    assert [one[0] for one in changes(api, ruled) if one[1] == "forbidden"] == ["untagged"]


def test_a_dry_run_reads_no_request_where_no_rule_changes(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    api.submit("one")
    monkeypatch.setattr(api.reader, "request", lambda name: pytest.fail(f"{name} was read"))
    assert changes(api, {**DOCUMENT, "idle": {}}) == []


def test_a_dry_run_says_who_would_start_and_who_would_never(api: Api) -> None:
    for name in ("one", "two"):
        api.submit(name)
        api.start(name)
    api.submit("wide", ResourceConfig=ON_G5 | {"InstanceType": P5, "InstanceCount": 2}, priority=3)
    api.submit("narrow")
    more = with_pools({"name": "p5", "capacity": {P5: 4}, "preemption": {"enabled": False}}, POOLS[1])
    assert changes(api, more) == [("wide", "starts", f"in {P5}=2")]
    less = with_pools({"name": "p5", "capacity": {P5: 1}}, POOLS[1])
    assert ("wide", "impossible", f"needs {P5}=2, the pool has {P5}=1 in all") in changes(api, less)
    assert tried(api, more).json["changes"][0] == {
        "job": "wide",
        "team": "vision",
        "pool": "p5",
        "change": "starts",
        "message": f"in {P5}=2",
    }


def test_a_dry_run_says_for_whom_others_would_be_stopped(api: Api) -> None:
    put(api, with_pools({"name": "p5", "capacity": {P5: 1}, "preemption": {"enabled": False}}, POOLS[1]))
    api.submit("low")
    api.start("low")
    api.submit("high", priority=9)
    assert changes(api, with_pools({"name": "p5", "capacity": {P5: 1}}, POOLS[1])) == [
        ("high", "stops-waiting", f"low is stopping to make room for {P5}=1"),
        ("low", "preempted", "makes room for high, priority 9"),
    ]


def test_a_dry_run_says_who_would_have_to_wait(api: Api) -> None:
    api.submit("a")
    ((name, change, message),) = changes(
        api,
        with_pools(
            {
                "name": "p5",
                "capacity": {P5: 2},
                "quotas": {"speech": {"nominal": {P5: 2}}, "vision": {"borrowing_limit": {P5: 0}}},
            },
            POOLS[1],
        ),
    )
    assert (name, change) == ("a", "waits")
    assert "may borrow 0" in message


def test_a_dry_run_of_another_order_looks_at_the_turns_that_would_be(api: Api) -> None:
    put(api, with_pools({"name": "p5", "capacity": {P5: 1}, "order": {"aging": "off"}}, POOLS[1]))
    api.submit("old", priority=1)
    api.now += timedelta(days=3)
    api.submit("new", priority=2)
    aged = with_pools({"name": "p5", "capacity": {P5: 1}}, POOLS[1])
    assert {(name, change) for name, change, _ in changes(api, aged)} == {("old", "starts"), ("new", "waits")}


@pytest.mark.thorough
def test_a_dry_run_looks_at_the_first_of_a_long_queue_and_says_so(api: Api) -> None:
    for number in range(65):
        api.submit(f"job-{number:02d}")
    answer = tried(api, with_pools({"name": "p5", "capacity": {P5: 0}}, POOLS[1]))
    assert answer.json["truncated"]
    impossible = [one["job"] for one in answer.json["changes"] if one["change"] == "impossible"]
    assert impossible == [f"job-{number:02d}" for number in range(64)]


def test_a_dry_run_looks_at_pools_that_change_and_at_all_where_something_beside_pools_does(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, snapshot = [], api.reader.snapshot

    def noted(pool: PoolPolicy, **other: Any) -> Snapshot:
        read.append(pool.name)
        return snapshot(pool, **other)

    monkeypatch.setattr(api.reader, "snapshot", noted)
    tried(api, DOCUMENT)
    assert read == []
    tried(api, with_pools(POOLS[0], {**POOLS[1], "capacity": {G5: 9}}))
    assert read == ["g5"]
    read.clear()
    tried(api, with_pools(POOLS[0], {**POOLS[1], "capacity": {G5: 9}}) | {"idle": {}})
    assert read == ["g5", "p5"], "those that change go first"


def test_a_dry_run_ends_where_time_does_and_says_so(api: Api) -> None:
    api.submit("untagged")
    ruled = {**DOCUMENT, "rules": {"required_tags": ["owner"]}}
    api.handle = build_api(api.outside(left=timedelta))
    answer = tried(api, ruled)
    assert (answer.status, answer.json["changes"], answer.json["truncated"]) == (200, [], True)


@pytest.mark.parametrize(
    ("document", "status"),
    [
        pytest.param({"pools": [{"name": "p5", "capacity": {P5: -1}}]}, 422, id="an error"),
        pytest.param(with_pools(POOLS[1]), 409, id="a pool with jobs goes"),
    ],
)
def test_a_dry_run_is_refused_as_the_put_is(api: Api, document: Any, status: int) -> None:
    api.submit("a")
    refused, real = tried(api, document), put(api, document)
    assert refused.status == status
    assert refused == real


def test_a_misspelt_dry_run_changes_nothing(api: Api) -> None:
    for query in ({"dry_run": "yes"}, {"dryrun": "true"}):
        assert api.call("PUT", "/policy", {}, user=ADMIN, query=query).status == 400
    assert api.policies.current().document == DOCUMENT


TEXT = "# why: two clusters\npools: []   # none yet\n"


def test_the_text_of_a_document_is_kept_with_its_revision(api: Api) -> None:
    assert put(api, {"policy": {"pools": []}, "text": TEXT}).status == 200
    api.call("PUT", "/policy/paused", {"paused": True}, user=ADMIN)
    assert api.get("/policy", user=ADMIN).json["text"] == TEXT
    put(api, DOCUMENT)
    assert api.get("/policy", user=ADMIN).json["text"] is None
    earlier = api.get("/policy", user=ADMIN, revision="2").json
    assert (earlier["policy"], earlier["text"]) == ({"pools": []}, TEXT)


def test_mistakes_have_the_paths_of_the_document_and_a_dry_run_takes_a_text_too(api: Api) -> None:
    answer = put(api, {"policy": {"pool": []}, "text": TEXT})
    assert (answer.status, [error["field"] for error in answer.json["errors"]]) == (422, ["pool"])
    assert put(api, {"policy": [], "text": TEXT}).status == 422
    assert tried(api, {"policy": DOCUMENT, "text": TEXT}).json["policy"] == DOCUMENT


@pytest.mark.parametrize(
    ("body", "status", "fields"),
    [
        pytest.param({"policy": {}, "text": "x" * (100 * 1024)}, 200, [], id="100 KiB"),
        pytest.param({"policy": {}, "text": "x" * (100 * 1024 + 1)}, 413, ["text"], id="one byte more"),
        pytest.param(
            {"policy": {}, "text": "\u20ac" * (35 * 1024)}, 413, ["text"], id="bytes, not characters"
        ),
        pytest.param({"policy": {}, "text": None}, 400, ["text"], id="a text is a string"),
        pytest.param({"policy": {}}, 422, ["policy"], id="a document alone has no wrapper"),
        pytest.param({"policy": {}, "text": "", "x": 1}, 422, ["policy", "text", "x"], id="nor more keys"),
    ],
)
def test_a_text_has_bounds(api: Api, body: Any, status: int, fields: list[str]) -> None:
    answer = put(api, body)
    assert answer.status == status
    assert [error["field"] for error in answer.json.get("errors", [])] == fields


def test_the_largest_document_and_text_fit_into_a_row(api: Api) -> None:
    tags = [f"{number:04d}" + "t" * 120 for number in range(1180)]
    document = {"rules": {"required_tags": {"mode": "audit", "tags": tags}}}
    assert put(api, {"policy": document, "text": "x" * (100 * 1024)}).status == 200
