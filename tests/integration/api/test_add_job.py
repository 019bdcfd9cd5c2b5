"""POST /add-job."""

import copy
import json
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.adapters.dynamodb import DynamoJobStore, DynamoPolicyStore, DynamoReader
from trainmaster.api import build_api
from trainmaster.core.jobs.model import JobState

from tests.bodies import body, resources, tag_list, tags
from tests.builders import claimed, seen
from tests.ends import observed
from tests.integration.api.conftest import ADA, ADMIN, BOB, BOTH, DOCUMENT, G5, ON_G5, P5, STRANGER, Api

NAME = "job1-2026-01-01"
ON_NOTHING = {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 50}


def test_a_submission_is_stored_and_rings(api: Api) -> None:
    answer = api.call("POST", "/add-job", body())
    assert answer.status == 201
    assert answer.content_type == "application/json"
    assert answer.json["warnings"] == []
    view = answer.json["job"]
    assert (view["name"], view["team"], view["pool"], view["state"]) == (NAME, "vision", "p5", "pending")
    assert (view["submitted_by"], view["priority"], view["position"]) == (ADA, 3, 1)
    assert api.job(NAME).state is JobState.PENDING
    assert api.reader.request(NAME) == body()
    assert api.wake_ups.pools == ["p5"]


@pytest.mark.parametrize("state", ["pending", "running", "completed"])
def test_F6_G9_the_same_request_again_is_the_same_job_in_whatever_state(api: Api, state: str) -> None:
    first = api.call("POST", "/add-job", body()).json["job"]
    if state == "running":
        api.start(NAME)
    if state == "completed":
        api.end(NAME)
    reordered = json.dumps(dict(reversed(body().items())))
    again = api.call("POST", "/add-job", reordered)
    assert again.status == 200
    assert again.json["job"]["state"] == state
    assert again.json["job"]["submitted_at"] == first["submitted_at"]
    assert len(api.names(state=state)) == 1


def test_F6_another_request_of_the_name_is_told_the_state(api: Api) -> None:
    api.call("POST", "/add-job", body())
    answer = api.call("POST", "/add-job", body(HyperParameters={"epochs": "9"}))
    assert (answer.status, answer.fields) == (409, ["TrainingJobName"])
    assert "pending" in answer.json["detail"]
    assert api.reader.request(NAME) == body()


def test_F6_another_team_is_not_told_the_state(api: Api) -> None:
    api.submit("a")
    answer = api.submit("a", user=BOB)
    assert answer.status == 409
    assert "pending" not in json.dumps(answer.json)


def test_the_name_of_a_later_attempt_is_taken_too(api: Api) -> None:
    api.submit("a")
    again = api.end("a", JobState.PREEMPTED)
    api.change("a", claimed(again, "a-r1-0a1b2c", now=api.now))
    assert api.submit("a-r1-0a1b2c").status == 409


def test_the_same_request_is_accepted_again_although_the_policy_no_longer_allows_it(api: Api) -> None:
    api.call("POST", "/add-job", body())
    current = api.policies.current()
    api.policies.put({"teams": current.document["teams"]}, pools=[], replaces=current)
    assert api.call("POST", "/add-job", body()).status == 200


@pytest.mark.parametrize(
    ("user", "options", "status", "fields"),
    [
        pytest.param(ADMIN, {}, 403, ["principal"], id="an admin of no team"),
        pytest.param(STRANGER, {}, 403, ["principal"], id="G2 nobody's team"),
        pytest.param(ADA, {"team": "speech"}, 403, ["Tags.team"], id="F3 somebody else's team"),
        pytest.param(BOTH, {}, 400, ["Tags.team"], id="two teams and none named"),
    ],
)
def test_a_caller_submits_for_his_own_team(
    api: Api, user: str, options: dict[str, str], status: int, fields: list[str]
) -> None:
    answer = api.submit("a", user=user, tags=options)
    assert (answer.status, answer.fields) == (status, fields)
    assert api.reader.job("a") is None
    assert api.wake_ups.pools == []


def test_a_caller_of_two_teams_names_one(api: Api) -> None:
    assert api.submit("a", user=BOTH, tags={"team": "speech"}).json["job"]["team"] == "speech"


@pytest.mark.parametrize(
    ("content", "status", "fields"),
    [
        pytest.param("", 400, ["body"], id="E1 empty"),
        pytest.param(None, 400, ["body"], id="E1 no body"),
        pytest.param("null", 400, ["body"], id="E1 null"),
        pytest.param("[]", 400, ["body"], id="E1 a list"),
        pytest.param('{"a": NaN}', 400, ["a"], id="E2 NaN"),
        pytest.param("[" * 100_000, 400, ["body"], id="E4 deep nesting"),
        pytest.param("x" * 300_000, 413, ["body"], id="E5 too large"),
        pytest.param(body(Resourceconfig={}), 400, ["Resourceconfig"], id="E6 a typo"),
        pytest.param(body(TrainingJobName="a_b"), 400, ["TrainingJobName"], id="F4 a bad name"),
        pytest.param(body(Tags=tags(priority="1.5")), 400, ["Tags[0].Value"], id="F1 a bad priority"),
        pytest.param(
            resources(InstanceType=P5, InstanceCount=3, VolumeSizeInGB=1) | {"Tags": tags(priority="900")},
            422,
            ["ResourceConfig.InstanceCount", "Tags[0].Value"],
            id="F1 F8 everything the policy has against it",
        ),
        pytest.param(
            resources(InstanceType="ml.p9.huge", InstanceCount=1, VolumeSizeInGB=1),
            422,
            ["ResourceConfig.InstanceType"],
            id="F7 a type of no pool",
        ),
    ],
)
def test_bad_requests_name_the_field_and_store_nothing(
    api: Api, content: object, status: int, fields: list[str]
) -> None:
    answer = api.call("POST", "/add-job", content)
    assert (answer.status, answer.fields) == (status, fields)
    assert api.names() == []
    assert api.wake_ups.pools == []


def test_each_violation_names_its_rule(api: Api) -> None:
    request = resources(InstanceType=P5, InstanceCount=3, VolumeSizeInGB=1) | {"Tags": tags(priority="900")}
    errors = api.call("POST", "/add-job", request).json["errors"]
    assert [error["rule"] for error in errors] == ["never-fits", "max-priority"]


@pytest.mark.parametrize(
    "event",
    [
        pytest.param({"isBase64Encoded": True}, id="E1 the base64 flag"),
        pytest.param({"headers": {}}, id="E1 no content type"),
        pytest.param({"headers": None}, id="E1 no headers at all"),
        pytest.param({"headers": {"Content-Type": "text/plain"}}, id="E1 another content type"),
    ],
)
def test_E1_odd_envelopes_are_refused(api: Api, event: dict[str, Any]) -> None:
    answer = api.call("POST", "/add-job", body(), **event)
    assert answer.status == 400
    assert api.reader.job(NAME) is None


def test_options_become_part_of_the_job(api: Api) -> None:
    options = tag_list({"trainmaster:retries": "2", "trainmaster:on_oom": "halve_batch"})
    answer = api.call("POST", "/add-job", body(Tags=options))
    assert (answer.status, answer.json["warnings"]) == (201, [])
    assert (api.job(NAME).spec.retries, api.job(NAME).spec.halves_batch) == (2, True)
    api.submit("plain")
    assert (api.job("plain").spec.retries, api.job("plain").spec.halves_batch) == (None, False)


def test_a_broken_doorbell_does_not_lose_the_job(api: Api) -> None:
    api.wake_ups.is_broken = True
    assert api.submit("a").status == 201


def test_positions_count_those_ahead_in_turn(api: Api) -> None:
    assert api.submit("a").json["job"]["position"] == 1
    assert api.submit("b").json["job"]["position"] == 2
    assert api.submit("c", priority=5).json["job"]["position"] == 1


def test_the_answer_to_a_submission_does_not_read_a_long_queue(api: Api, monkeypatch: Any) -> None:
    monkeypatch.setattr("trainmaster.api.job_context.MOST_COUNTED", 1)
    api.submit("a")
    assert api.submit("b").json["job"]["position"] is None
    assert api.get("/jobs/b").json["position"] == 2


# ---- by the policy that is known


class Calls:
    """Of one client, by the method of ours that made them."""

    def __init__(self, client: Any, log: list[str]) -> None:
        self._client, self._log = client, log

    def __getattr__(self, name: str) -> Any:
        def call(**arguments: Any) -> Any:
            self._log.append(name)
            return getattr(self._client, name)(**arguments)

        return call


def counted(api: Api) -> tuple[Any, list[str]]:
    """Another process, and what it calls of the table."""
    log: list[str] = []
    client = Calls(api.client, log)
    outside = api.outside(
        store=DynamoJobStore(client, table=api.table, retention_days=90),
        reader=DynamoReader(client, table=api.table),
        policies=DynamoPolicyStore(client, table=api.table),
    )
    return build_api(outside), log


def test_a_second_submission_calls_the_table_three_times_and_rings_once(api: Api) -> None:
    api.submit("a")
    api.handle, log = counted(api)
    api.submit("b")
    api.wake_ups.pools.clear()
    log.clear()
    assert api.submit("c").json["job"]["position"] == 3
    assert log == ["batch_get_item", "transact_write_items", "query"]
    assert api.wake_ups.pools == ["p5"]


def put_elsewhere(api: Api, document: dict[str, Any]) -> None:
    """By another process."""
    pools = [pool["name"] for pool in document["pools"]]
    api.policies.put(document, pools=pools, replaces=api.policies.current())


def test_a_policy_that_another_process_put_judges_the_next_submission(api: Api) -> None:
    assert api.submit("a", priority=1).status == 201
    lower = [team | {"max_priority": 0} for team in DOCUMENT["teams"]]
    put_elsewhere(api, DOCUMENT | {"teams": lower})
    answer = api.submit("b", priority=1)
    assert (answer.status, answer.json["errors"][0]["rule"]) == (422, "max-priority")
    assert api.reader.job("b") is None


def test_what_the_policy_before_refused_the_one_in_force_may_take(api: Api) -> None:
    refused = api.submit("a", ResourceConfig=ON_NOTHING)
    assert refused.status == 422
    pools = [*DOCUMENT["pools"], {"name": "new", "capacity": {"ml.m5.large": 1}}]
    put_elsewhere(api, DOCUMENT | {"pools": pools})
    assert api.submit("a", ResourceConfig=ON_NOTHING).json["job"]["pool"] == "new"


def test_who_was_taken_out_of_the_policy_is_a_stranger_at_once(api: Api) -> None:
    assert api.submit("a").status == 201
    put_elsewhere(api, DOCUMENT | {"teams": DOCUMENT["teams"][1:]})
    assert api.submit("b").status == 403


# ---- dry runs


def dry_run(api: Api, request: dict[str, Any], *, user: str = ADA) -> Any:
    return api.call("POST", "/add-job", request, user=user, query={"dry_run": "true"})


def test_a_dry_run_stores_nothing(api: Api) -> None:
    api.submit("a")
    api.wake_ups.pools.clear()
    answer = dry_run(api, body(Tags=tags(priority="0")))
    assert answer.status == 200
    start = answer.json.pop("estimated_start")
    assert start["p50"] <= start["p90"]
    assert answer.json == {
        "valid": True,
        "violations": [],
        "warnings": [],
        "pool": "p5",
        "position": 2,
        "after": [],
        "estimate_note": None,
        "would_preempt": [],
        "usd_per_hour": 63.296,
        "estimated_cost_usd": 63.3,
        "spot_record": [],
        "measured_speeds": [],
        "widths": None,
    }
    assert api.reader.job(NAME) is None
    assert api.wake_ups.pools == []


def test_a_dry_run_lists_what_the_policy_has_against_it(api: Api) -> None:
    answer = dry_run(api, resources(InstanceType=P5, InstanceCount=3, VolumeSizeInGB=1))
    assert (answer.status, answer.json["valid"]) == (200, False)
    (violation,) = answer.json["violations"]
    assert (violation["rule"], violation["field"]) == ("never-fits", "ResourceConfig.InstanceCount")
    assert (answer.json["pool"], answer.json["position"]) == ("p5", None)


def test_a_dry_run_names_whom_the_job_would_preempt(api: Api) -> None:
    for name in ("a", "b"):
        api.submit(name)
        api.start(name)
    request = body(Tags=tags(priority="2")) | {
        "ResourceConfig": {"InstanceType": P5, "InstanceCount": 2, "VolumeSizeInGB": 1}
    }
    assert sorted(dry_run(api, request).json["would_preempt"]) == ["a", "b"]
    assert api.job("a").state is JobState.RUNNING


def test_a_dry_run_does_not_name_jobs_of_other_teams(api: Api) -> None:
    g5 = {"InstanceType": G5, "InstanceCount": 1, "VolumeSizeInGB": 1}
    api.submit("secret", user=BOB, ResourceConfig=g5)
    api.start("secret")
    assert dry_run(api, body(Tags=tags(priority="9"), ResourceConfig=g5)).json["would_preempt"] == [None]


@pytest.mark.parametrize("before", [pytest.param(0, id="cold"), pytest.param(1, id="warm")])
def test_a_parameter_that_nobody_knows_submits_nothing(api: Api, before: int) -> None:
    for number in range(before):
        api.submit(f"before-{number}")
    answer = api.call("POST", "/add-job", body(), query={"dryrun": "true"})
    assert (answer.status, answer.fields) == (400, ["query.dryrun"])
    assert len(api.names(state="pending")) == before


def test_a_dry_run_of_a_waiting_job_counts_it_once(api: Api) -> None:
    api.submit("a")
    api.call("POST", "/add-job", body())
    assert dry_run(api, body()).json["position"] == 1


@pytest.mark.parametrize(
    ("request_", "an_hour", "usd"),
    [
        pytest.param(
            {"StoppingCondition": {"MaxRuntimeInSeconds": 7200}}, 63.296, 126.6, id="as long as it may run"
        ),
        pytest.param(
            {"ResourceConfig": ON_G5 | {"InstanceType": "ml.p6.48xlarge"}}, None, None, id="no price"
        ),
        pytest.param(
            {"ResourceConfig": {**ON_G5, "InstanceType": P5, "InstanceCount": 2}},
            126.592,
            126.6,
            id="of all instances together",
        ),
        pytest.param(
            {"Tags": tag_list({"trainmaster:alternatives": f"{G5}=1 {P5}=1"})},
            7.09,
            7.09,
            id="in the shape it takes",
        ),
    ],
)
def test_a_dry_run_says_what_the_job_may_cost(
    api: Api, request_: dict[str, Any], an_hour: float | None, usd: float | None
) -> None:
    both = {"name": "p5", "capacity": {P5: 2, G5: 1, "ml.p6.48xlarge": 1}}
    api.policies.put({**DOCUMENT, "pools": [both]}, pools=["p5", "g5"], replaces=api.policies.current())
    found = dry_run(api, body(**request_)).json
    assert (found["usd_per_hour"], found["estimated_cost_usd"]) == (an_hour, usd)


def test_a_dry_run_expects_what_the_team_s_last_jobs_of_the_shape_took(api: Api) -> None:
    completed_after(api, timedelta(minutes=30))
    half_an_hour = pytest.approx(31.65, rel=0.05)  # lengths are counted in classes
    assert dry_run(api, body()).json["estimated_cost_usd"] == half_an_hour


def test_a_job_that_the_budget_does_not_cover_would_preempt_nobody(api: Api) -> None:
    document = copy.deepcopy(DOCUMENT)
    api.submit("low", ResourceConfig=ON_G5)
    api.start("low")
    request = body(Tags=tags(priority="9"), ResourceConfig=ON_G5)
    assert dry_run(api, request).json["would_preempt"] == ["low"]
    document["teams"][0]["budget"] = {"usd_per_month": 1}
    api.policies.put(document, pools=["p5", "g5"], replaces=api.policies.current())
    assert dry_run(api, request).json["would_preempt"] == []


@pytest.mark.parametrize(
    ("alternatives", "rules"),
    [
        pytest.param(f"{P5}=3 {P5}=4", {"never-fits"}, id="none would ever fit"),
        pytest.param(f"{P5}=3 {P5}=2", {"never-fits"}, id="one would not"),
        pytest.param(f"{P5}=2 {P5}=1", set(), id="each would"),
        pytest.param(f"{P5}=1 {G5}=1", {"one-pool"}, id="of two pools"),
        pytest.param(f"{P5}=1 ml.p4d.24xlarge=1", {"no-pool"}, id="of no pool"),
    ],
)
def test_alternatives_are_judged_as_a_whole(api: Api, alternatives: str, rules: set[str]) -> None:
    request = body(Tags=tag_list({"trainmaster:alternatives": alternatives}))
    answer = dry_run(api, request)
    assert {violation["rule"] for violation in answer.json["violations"]} == rules
    assert api.call("POST", "/add-job", request).status == (422 if rules else 201)


@pytest.mark.parametrize(
    "query",
    [{"dry_run": "yes"}, {"dryrun": "true"}, {"dry_run": ["true", "false"]}, {"dry_run": ["true", "true"]}],
)
def test_a_misspelt_dry_run_stores_nothing(api: Api, query: dict[str, Any]) -> None:
    answer = api.call("POST", "/add-job", body(), query=query)
    assert answer.status == 400
    assert answer.fields[0].startswith("query.")
    assert api.reader.job(NAME) is None


def test_dry_run_false_is_the_real_thing(api: Api) -> None:
    assert api.call("POST", "/add-job", body(), query={"dry_run": "false"}).status == 201


def limited(api: Api, **limits: int) -> None:
    document = {**DOCUMENT, "pools": [DOCUMENT["pools"][0] | {"limits": limits}, DOCUMENT["pools"][1]]}
    api.policies.put(document, pools=["p5", "g5"], replaces=api.policies.current())


def test_G10_a_team_may_have_so_many_jobs_waiting_in_a_pool(api: Api) -> None:
    limited(api, max_waiting=2)
    api.submit("a")
    api.submit("b")
    answer = api.submit("c")
    assert (answer.status, answer.fields) == (429, ["pools.p5.limits.max_waiting"])
    assert answer.headers == {"Retry-After": "60"}
    assert answer.json["detail"] == "2 jobs of team vision already wait in pool p5"
    assert answer.json["errors"][0]["rule"] == "max_waiting"
    assert (api.reader.job("c"), api.reader.alias("c")) == (None, None)


@pytest.mark.parametrize("leaves", ["start", "cancel"])
def test_G10_a_job_that_waits_no_longer_makes_room_for_another(api: Api, leaves: str) -> None:
    limited(api, max_waiting=1)
    api.submit("a")
    assert api.submit("b").status == 429
    if leaves == "start":
        api.start("a")
    else:
        api.call("DELETE", "/jobs/a")
    assert api.submit("b").status == 201
    assert api.submit("c").status == 429


def test_G10_a_held_or_preempted_job_still_waits(api: Api) -> None:
    limited(api, max_waiting=2)
    api.submit("a")
    api.call("PATCH", "/jobs/a", {"held": True})
    api.submit("b")
    api.end("b", JobState.PREEMPTED)
    assert api.submit("c").status == 429


def test_G10_limits_are_of_one_team_in_one_pool(api: Api) -> None:
    limited(api, max_waiting=1)
    api.submit("a")
    assert api.submit("b", user=BOB).status == 201
    assert api.submit("c", ResourceConfig=ON_G5).status == 201


def test_G10_a_team_may_submit_so_often_in_a_minute(api: Api) -> None:
    limited(api, max_submissions_per_minute=2)
    api.now += timedelta(seconds=15)
    api.submit("a")
    api.call("DELETE", "/jobs/a")
    api.submit("b")
    answer = api.submit("c")
    assert (answer.status, answer.fields) == (429, ["pools.p5.limits.max_submissions_per_minute"])
    assert answer.headers == {"Retry-After": "45"}
    assert answer.json["detail"] == "team vision has submitted or changed 2 jobs of pool p5 in this minute"
    assert api.reader.job("c") is None
    api.now += timedelta(seconds=45)
    assert api.submit("c").status == 201


def test_G9_a_request_that_is_repeated_is_answered_whatever_the_limits(api: Api) -> None:
    limited(api, max_waiting=1, max_submissions_per_minute=1)
    assert api.submit("a").status == 201
    assert api.submit("a").status == 200
    assert api.submit("a", HyperParameters={"epochs": "9"}).status == 409


def completed_after(api: Api, trained: timedelta) -> None:
    api.submit("earlier")
    job = api.start("earlier")
    times: dict[str, Any] = {"training_since": api.now, "ended_at": api.now + trained}
    change = observed(job, seen("earlier", status="Completed", **times), now=api.now)
    assert change is not None
    api.store.commit([change], at=api.now)


def test_what_earlier_jobs_of_the_shape_took_is_a_guess_for_the_next(api: Api) -> None:
    completed_after(api, timedelta(minutes=40))
    api.submit("b")
    assert api.job("b").spec.predicted == timedelta(minutes=40)
    assert api.job("earlier").spec.predicted is None


RULES = {
    "vpc_required": True,
    "max_instances": {"mode": "enforce", "value": 4},
    "network_isolation": {"mode": "audit"},
    "name_prefix": {"mode": "audit", "one_of": ["vision-"]},
}


def govern(api: Api, **changes: Any) -> None:
    api.policies.put({**DOCUMENT, **changes}, pools=["p5", "g5"], replaces=api.policies.current())


def kept(api: Api) -> list[tuple[str, str, list[str]]]:
    """Job, what became of it and which rules, of everything that was recorded."""
    month = f"{api.now:%Y-%m}"
    return [
        (one.training_job_name, one.outcome.value, [violation.rule for violation in one.violations])
        for one in api.reader.violations(month, after=None, limit=99)
    ]


def test_rules_are_refused_together_with_everything_else(api: Api) -> None:
    govern(api, rules=RULES)
    request = resources(InstanceType=P5, InstanceCount=5) | {"Tags": tags(priority="900")}
    answer = api.call("POST", "/add-job", request)
    assert answer.status == 422
    assert [(one["rule"], one["field"]) for one in answer.json["errors"]] == [
        ("never-fits", "ResourceConfig.InstanceCount"),
        ("max-priority", "Tags[0].Value"),
        ("max_instances", "ResourceConfig.InstanceCount"),
        ("vpc_required", "VpcConfig"),
    ]
    assert (api.names(), kept(api)) == ([], [])


def test_a_team_is_held_to_its_own_roles_images_and_places(api: Api) -> None:
    vision, speech = DOCUMENT["teams"]
    own = {"roles": ["arn:aws:iam::111122223333:role/other"], "s3_prefixes": ["s3://vision-data/out"]}
    govern(api, teams=[{**vision, **own}, speech])
    answer = api.call("POST", "/add-job", body())
    assert [(one["rule"], one["field"]) for one in answer.json["errors"]] == [
        ("teams.vision.roles", "RoleArn")
    ]
    assert api.call("POST", "/add-job", body(), user=BOB).status == 201


def test_what_is_only_audited_is_accepted_warned_of_and_written_down_once(api: Api) -> None:
    govern(api, rules={**RULES, "vpc_required": False})
    first = api.call("POST", "/add-job", body())
    assert first.status == 201
    assert [(one["rule"], one["field"]) for one in first.json["warnings"]] == [
        ("name_prefix", "TrainingJobName"),
        ("network_isolation", "EnableNetworkIsolation"),
    ]
    assert kept(api) == [(NAME, "audited", ["name_prefix", "network_isolation"])]
    assert api.wake_ups.pools == ["p5", "-"]
    (message,) = api.store.messages("-", limit=9)
    assert message.notice is not None
    assert (message.notice.kind, message.notice.job) == ("Rule Violated", NAME)
    again = api.call("POST", "/add-job", body())
    assert (again.status, again.json["warnings"]) == (200, first.json["warnings"])
    assert len(kept(api)) == len(api.store.messages("-", limit=9)) == 1


def test_an_audit_that_was_not_written_down_is_by_the_same_request_again(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    govern(api, rules={**RULES, "vpc_required": False})

    def dies(*_: object, **__: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(api.store, "record_violation", dies)
        with pytest.raises(KeyboardInterrupt):
            api.call("POST", "/add-job", body())
    assert (api.names(), kept(api)) == ([NAME], [])
    api.now += timedelta(days=2)
    assert api.call("POST", "/add-job", body()).status == 200
    assert kept(api) == [(NAME, "audited", ["name_prefix", "network_isolation"])]


def test_a_job_that_is_there_already_is_warned_of_audits_alone_whatever_is_enforced_now(api: Api) -> None:
    api.call("POST", "/add-job", body())
    govern(api, rules=RULES)
    again = api.call("POST", "/add-job", body())
    assert (again.status, [one["rule"] for one in again.json["warnings"]]) == (
        200,
        ["name_prefix", "network_isolation"],
    )
    assert kept(api) == [(NAME, "audited", ["name_prefix", "network_isolation"])]


def test_a_dry_run_lists_what_is_enforced_and_writes_nothing_down(api: Api) -> None:
    govern(api, rules=RULES)
    answer = dry_run(api, body())
    assert (answer.json["valid"], [one["rule"] for one in answer.json["violations"]]) == (
        False,
        ["vpc_required"],
    )
    assert (api.names(), kept(api)) == ([], [])
