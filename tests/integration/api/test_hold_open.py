"""A job whose container waits for a visitor: what it is billed is said, and its pool bounds it."""

from typing import Any

from tests.bodies import body, tag_list
from tests.integration.api.conftest import ADMIN, DOCUMENT, Api

OPEN = {"RemoteDebugConfig": {"EnableRemoteDebug": True}}


def held(value: str, **changes: Any) -> dict[str, Any]:
    """A request with the tag, and with remote debugging."""
    tags = tag_list({"trainmaster:hold-open": value})
    stopping = {"MaxRuntimeInSeconds": 86_400}
    return body(**OPEN | {"Tags": tags, "StoppingCondition": stopping} | changes)


def test_the_dry_run_says_what_the_wait_is_billed(api: Api) -> None:
    answer = api.call("POST", "/add-job", held("30m"), query={"dry_run": "true"})
    (warning,) = (one for one in answer.json["warnings"] if one["field"] == "Tags[0].Value")
    assert "30m, billed as run time" in warning["message"]
    assert "time, $" in warning["message"]
    assert "trainmaster ssh" in warning["hint"]


def allow(api: Api, **limits: str) -> None:
    pools = [pool | {"limits": limits} for pool in DOCUMENT["pools"]]
    rules = {"remote_debug": {"mode": "allow"}}
    document = DOCUMENT | {"pools": pools, "rules": rules}
    assert api.call("PUT", "/policy", document, user=ADMIN).status == 200


def test_several_instances_and_more_than_the_pool_allows_are_refused(api: Api) -> None:
    allow(api)
    resources = body()["ResourceConfig"] | {"InstanceCount": 2}
    answer = api.call("POST", "/add-job", held("2h", ResourceConfig=resources))
    assert answer.status == 422, answer.json
    assert {"hold-open", "limits.max_hold_open"} <= {error["rule"] for error in answer.json["errors"]}


def test_a_pool_may_allow_more_or_nothing(api: Api) -> None:
    for most, status in (("3h", 201), ("0s", 422)):
        allow(api, max_hold_open=most)
        answer = api.call("POST", "/add-job", held("2h", TrainingJobName=f"job-{most}"))
        assert answer.status == status, answer.json


def test_the_row_of_a_job_keeps_its_wait(api: Api) -> None:
    allow(api)
    assert api.call("POST", "/add-job", held("failure:30m")).status == 201
    hold = api.job(body()["TrainingJobName"]).spec.hold_open
    assert hold is not None
    assert hold.variable == "failure:1800"


def test_an_array_is_not_held_open(api: Api) -> None:
    allow(api)
    tags = tag_list({"trainmaster:hold-open": "30m", "trainmaster:array": "0-3"})
    for dry_run in ("true", "false"):
        answer = api.call("POST", "/add-job", held("30m", Tags=tags), query={"dry_run": dry_run})
        errors = answer.json.get("violations") or answer.json["errors"]
        assert "hold-open" in {error["rule"] for error in errors}, answer.json
