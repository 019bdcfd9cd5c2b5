"""Who may call the API: what a signature covers, whom it names, and what people of other teams see."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.e2e.plane import Document, Plane, pool, running_plane, tags
from tests.e2e.signing import Answer, Call, Keys, send, signed

pytestmark = pytest.mark.thorough

ACCOUNT = "123456789012"
TEAMS = [
    {"name": "vision", "principals": [f"arn:aws:iam::{ACCOUNT}:role/vision-*"], "roles": "any"},
    {"name": "speech", "principals": [f"arn:aws:iam::{ACCOUNT}:role/speech"], "roles": "any"},
]
MASKED = {
    *("name", "team", "pool", "state", "priority", "instances", "position", "started_at"),
    *("training_since", "ends_by"),
}
"""With who uses a pool until when, as reasons of those that wait say it."""
PROBLEM = "application/problem+json"


@pytest.fixture(scope="module")
def plane(tmp_path_factory) -> Iterator[Plane]:
    """Paused: what is submitted here stays in the queue."""
    with running_plane(tmp_path_factory.mktemp("signatures"), policy=pool(1, teams=TEAMS)) as running:
        assert running.twin.ready["account_id"] == ACCOUNT
        assert running.call("PUT", "/policy/paused", {"paused": True}).status == 200
        yield running


@pytest.fixture(scope="module")
def vision(plane) -> Keys:
    return session_of(plane, "vision-research", session="ada")


@pytest.fixture(scope="module")
def speech(plane) -> Keys:
    return session_of(plane, "speech", session="bob")


def submission(plane: Plane) -> Call:
    return plane.unsigned("POST", "/add-job?dry_run=false", plane.request("signed", ["true"]))


def flipped(text: str) -> str:
    """One character changed, and no other."""
    return text[:-1] + ("0" if text[-1] != "0" else "1")


def unsigned(call: Call, _: Plane) -> Call:
    return call


def changed_body(call: Call, plane: Plane) -> Call:
    whole = signed(call, plane.keys, plane.scope)
    return replace(whole, body=whole.body.replace(b'"signed"', b'"sigmed"'))


def changed_path(call: Call, plane: Plane) -> Call:
    whole = signed(call, plane.keys, plane.scope)
    return replace(whole, url=whole.url.replace("/add-job", "/add-jov"))


def changed_query(call: Call, plane: Plane) -> Call:
    whole = signed(call, plane.keys, plane.scope)
    return replace(whole, url=whole.url.replace("dry_run=false", "dry_run=falsf"))


def changed_signature(call: Call, plane: Plane) -> Call:
    whole = signed(call, plane.keys, plane.scope)
    return replace(whole, headers={**whole.headers, "authorization": flipped(whole.headers["authorization"])})


def changed_date(call: Call, plane: Plane) -> Call:
    whole = signed(call, plane.keys, plane.scope)
    later = datetime.now(UTC) + timedelta(seconds=1)
    return replace(whole, headers={**whole.headers, "x-amz-date": later.strftime("%Y%m%dT%H%M%SZ")})


def old(call: Call, plane: Plane) -> Call:
    at = datetime.now(UTC) - timedelta(minutes=6)
    return signed(call, plane.keys, replace(plane.scope, at=at))


def ahead(call: Call, plane: Plane) -> Call:
    at = datetime.now(UTC) + timedelta(minutes=6)
    return signed(call, plane.keys, replace(plane.scope, at=at))


def for_another_service(call: Call, plane: Plane) -> Call:
    return signed(call, plane.keys, replace(plane.scope, service="s3"))


def for_another_region(call: Call, plane: Plane) -> Call:
    return signed(call, plane.keys, replace(plane.scope, region="eu-west-1"))


def with_an_unknown_key(call: Call, plane: Plane) -> Call:
    return signed(call, replace(plane.keys, access_key_id="AKIAIOSFODNN7EXAMPLE"), plane.scope)


def with_another_secret(call: Call, plane: Plane) -> Call:
    keys = replace(plane.keys, secret_access_key=flipped(plane.keys.secret_access_key))
    return signed(call, keys, plane.scope)


@pytest.mark.parametrize(
    "tamper",
    [
        unsigned,
        changed_body,
        changed_path,
        changed_query,
        changed_signature,
        changed_date,
        old,
        ahead,
        for_another_service,
        for_another_region,
        with_an_unknown_key,
        with_another_secret,
    ],
)
def test_G1_a_call_without_a_good_signature_is_403_and_never_reaches_the_function(plane, tamper):
    assert refused_by_the_gateway(plane, tamper(submission(plane), plane))["principal"] is None


def test_the_same_call_with_a_good_signature_reaches_the_function(plane, vision):
    """So it is the signature that the others fail by. Presented twice it counts once."""
    before = plane.twin.records()[-1]["seq"]
    request = plane.request("signed-well", ["true"])
    call = signed(plane.unsigned("POST", "/add-job?dry_run=false", request), vision, plane.scope)
    assert [send(call).status, send(call).status] == [201, 200]
    assert [one for one in plane.calls("TransactWriteItems", after=before) if is_api_function(one)]


def test_a_temporary_key_is_worth_nothing_without_its_token(plane, vision):
    assert plane.call("GET", "/jobs", keys=replace(vision, session_token=None)).status == 403
    assert plane.call("GET", "/jobs", keys=replace(vision, session_token="another")).status == 403


def test_an_assumed_role_is_known_by_its_session(plane, vision):
    view = plane.add(plane.request("by-session", ["true"]), keys=vision)
    session = f"arn:aws:sts::{ACCOUNT}:assumed-role/vision-research/ada"
    assert (view["submitted_by"], view["team"]) == (session, "vision")
    submitted = plane.calls("POST /add-job")[-1]
    assert submitted["principal"] == session


def test_G2b_a_role_made_without_policies_may_not_invoke_the_api(plane):
    made(plane, "vision-made", policies=[])
    call = signed(plane.unsigned("GET", "/jobs"), session_of(plane, "vision-made"), plane.scope)
    refused = refused_by_the_gateway(plane, call)
    assert refused["principal"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/vision-made/session"


@pytest.mark.parametrize("endpoint", ["vpce-0another", "vpce-local-2", ""])
def test_G3_a_call_through_another_vpc_endpoint_is_403_whoever_makes_it(plane, vision, endpoint):
    """The header stands for the endpoint that AWS reports; the same call through ours is answered."""
    for keys in (plane.keys, vision):
        call = signed(plane.unsigned("GET", "/jobs"), keys, plane.scope)
        elsewhere = replace(call, headers={**call.headers, "x-twin-vpce": endpoint})
        refused_by_the_gateway(plane, elsewhere)
        assert b"with an explicit deny" in send(elsewhere).body
        assert send(replace(call, headers={**call.headers, "x-twin-vpce": "vpce-local"})).status == 200


def test_a_role_made_with_a_policy_may_do_what_that_says(plane):
    may_read = {
        "Effect": "Allow",
        "Action": "execute-api:Invoke",
        "Resource": f"arn:aws:execute-api:*:{ACCOUNT}:*/prod/GET/jobs",
    }
    made(plane, "vision-reader", policies=[may_read])
    keys = session_of(plane, "vision-reader")
    assert plane.call("GET", "/jobs", keys=keys).status == 200
    assert plane.call("GET", "/pools", keys=keys).status == 403
    assert plane.call("POST", "/add-job", plane.request("not-by-it", ["true"]), keys=keys).status == 403


def test_who_is_in_no_team_cannot_submit(plane):
    """The admin of the twin administers; it is in no team of this policy."""
    answer = plane.call("POST", "/add-job", plane.request("teamless", ["true"]))
    assert problem(answer, status=403)["errors"][0]["field"] == "principal"
    outsider = session_of(plane, "visio")
    assert problem(
        plane.call("POST", "/add-job", plane.request("teamless", ["true"]), keys=outsider), status=403
    )


def test_nobody_submits_for_another_team(plane, vision):
    request = plane.request("for-others", ["true"], Tags=tags(team="speech"))
    answer = plane.call("POST", "/add-job", request, keys=vision)
    assert problem(answer, status=403)["errors"][0]["field"] == "Tags.team"


def test_a_job_of_another_team_is_not_found_by_name_and_masked_in_lists(plane, vision, speech):
    plane.add(plane.request("secret-plan", ["true"]), keys=speech)
    for method in ("GET", "DELETE"):
        there = problem(plane.call(method, "/jobs/secret-plan", keys=vision), status=404)
        not_there = problem(plane.call(method, "/jobs/no-such-job", keys=vision), status=404)
        assert there == not_there
    seen = plane.call("GET", "/jobs?team=speech", keys=vision)
    assert b"secret-plan" not in seen.body
    (entry,) = seen.document["jobs"]
    assert set(entry) == MASKED
    assert (entry["name"], entry["team"]) == (None, "speech")
    (own,) = plane.call("GET", "/jobs?team=speech", keys=speech).document["jobs"]
    assert own["name"] == "secret-plan"
    assert plane.job("secret-plan")["team"] == "speech", "admins see everything"


def test_only_admins_change_the_policy(plane, vision):
    policy = plane.call("GET", "/policy").document
    for path, document in (("/policy", policy["policy"]), ("/policy/paused", {"paused": False})):
        assert problem(plane.call("PUT", path, document, keys=vision), status=403)
    assert plane.call("GET", "/policy").document == policy
    assert plane.call("PUT", "/policy", policy["policy"]).status == 200


@pytest.mark.parametrize("method", ["GET", "DELETE", "PATCH"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("%2e%2e", id="the folder above"),
        pytest.param("%2e%2e%2fpolicy", id="a way out, encoded"),
        pytest.param("..%2f..%2fpolicy%2fpaused", id="a longer way out"),
        pytest.param("%252e%252e", id="encoded twice"),
        pytest.param("job%00", id="a zero byte"),
        pytest.param("a" * 2049, id="longer than a key of the table"),
        pytest.param("%23", id="what separates parts of keys"),
    ],
)
def test_G11_a_name_that_is_a_path_names_no_job(plane, vision, method, name):
    document = {"priority": 1} if method == "PATCH" else None
    answer = plane.call(method, f"/jobs/{name}", document, keys=vision)
    assert answer.status in {400, 404}, answer.body
    assert answer.headers["content-type"] == PROBLEM


@pytest.mark.parametrize("path", ["//jobs", "/jobs//", "/jobs/..", "/jobs/../policy", "/jobs/%2e%2e/policy"])
def test_G11_a_path_that_is_no_resource_never_reaches_the_function(plane, vision, path):
    """The gateway itself refuses it, with the 403 that AWS has for what is not there."""
    refused_by_the_gateway(plane, signed(plane.unsigned("GET", path), vision, plane.scope))


@pytest.mark.parametrize(
    ("method", "path", "document", "status", "named"),
    [
        pytest.param("POST", "/add-job", {"TrainingJobName": 1}, 400, "TrainingJobName", id="bad body"),
        pytest.param("POST", "/add-job", [], 400, "body", id="no object"),
        pytest.param("POST", "/add-job?dry_run=maybe", {}, 400, "query.dry_run", id="bad parameter"),
        pytest.param("GET", "/jobs?limit=0", None, 400, "query.limit", id="bad limit"),
        pytest.param("GET", "/jobs?colour=red", None, 400, "query.colour", id="unknown parameter"),
        pytest.param("PUT", "/policy", {"version": 1, "pols": []}, 422, "pols", id="bad policy"),
        pytest.param("PUT", "/policy/paused", {"paused": "yes"}, 400, "paused", id="bad switch"),
    ],
)
def test_a_problem_names_the_field(plane, method, path, document, status, named):
    errors = problem(plane.call(method, path, document), status=status)["errors"]
    assert named in [error["field"] for error in errors]
    assert all(error["message"] and error["hint"] for error in errors)


def problem(answer: Answer, *, status: int) -> Document:
    """The problem document, after a look at its form."""
    assert answer.status == status, answer.body
    assert answer.headers["content-type"] == PROBLEM
    document: Document = answer.document
    assert document["status"] == status
    assert set(document) == {"type", "title", "status", "detail", "errors"}
    assert all(set(error) >= {"field", "message", "hint"} for error in document["errors"])
    return document


def refused_by_the_gateway(plane: Plane, call: Call) -> Document:
    """The journal's record of a call that is 403 without the function having been asked."""
    before = plane.twin.records()[-1]["seq"]
    answer = send(call)
    assert answer.status == 403, answer.body
    since = [one for one in plane.twin.records() if one["seq"] > before]
    (refused,) = [one for one in since if one["service"] == "execute-api"]
    assert refused["status"] == 403
    assert not [one for one in since if is_api_function(one)]
    return refused


def is_api_function(record: Document) -> bool:
    return (record["principal"] or "").endswith("/api")


def session_of(plane: Plane, role: str, *, session: str = "session") -> Keys:
    """Keys of any role of the account, from sts:AssumeRole."""
    arn = f"arn:aws:iam::{ACCOUNT}:role/{role}"
    made = plane.client("sts").assume_role(RoleArn=arn, RoleSessionName=session)["Credentials"]
    return Keys(
        access_key_id=made["AccessKeyId"],
        secret_access_key=made["SecretAccessKey"],
        session_token=made["SessionToken"],
    )


def made(plane: Plane, role: str, *, policies: list[Document]) -> None:
    """A role made by iam:CreateRole with these statements."""
    iam = plane.client("iam")
    iam.create_role(RoleName=role, AssumeRolePolicyDocument="{}")
    for number, statement in enumerate(policies):
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_role_policy(RoleName=role, PolicyName=f"own-{number}", PolicyDocument=document)
