"""Routes, resource policy and proxy events."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from local.deployment.deployment_errors import TemplateError
from local.deployment.gateway.proxy_event import Call, proxy_event, response_of
from local.deployment.gateway.resource_policy import combined, parse_resource_policy
from local.deployment.gateway.routes import Route, Routes
from local.identity.evaluator import Decision, normalized, parse_policy
from local.wire import Principal, Request

ROUTES = Routes(
    {
        ("GET", "/jobs"): "list",
        ("GET", "/jobs/{name}"): "get",
        ("GET", "/jobs/all"): "all",
        ("DELETE", "/jobs/{name}"): "delete",
        ("GET", "/files/{path+}"): "files",
    }
)


@pytest.mark.parametrize(
    ("method", "path", "function", "variables"),
    [
        pytest.param("GET", "/jobs", "list", {}, id="a literal path"),
        pytest.param("GET", "/jobs/all", "all", {}, id="a literal goes before a variable"),
        pytest.param("DELETE", "/jobs/a%20b", "delete", {"name": "a b"}, id="a variable is decoded"),
        pytest.param("GET", "/jobs/a%2Fb", "get", {"name": "a/b"}, id="an encoded slash does not separate"),
        pytest.param("GET", "/jobs/%252e", "get", {"name": "%2e"}, id="decoded once"),
        pytest.param("GET", "/files/a/b", "files", {"path": "a/b"}, id="a greedy variable"),
    ],
)
def test_a_path_finds_its_function(method: str, path: str, function: str, variables: dict[str, str]) -> None:
    route = ROUTES.find(method, path)
    assert route is not None
    assert (route.function_arn, route.variables) == (function, variables)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/jobs"),
        ("GET", "/jobs/"),
        ("GET", "//jobs"),
        ("GET", "/jobs/a/b"),
        ("GET", "/"),
        ("GET", ""),
    ],
)
def test_any_other_path_finds_none(method: str, path: str) -> None:
    assert ROUTES.find(method, path) is None


API = "arn:aws:execute-api:us-east-1:111122223333:abc"
ADMIN = Principal(
    arn="arn:aws:iam::111122223333:user/admin", account_id="111122223333", access_key_id="AKIA1"
)
SESSION = Principal(
    arn="arn:aws:sts::111122223333:assumed-role/vision/me",
    account_id="111122223333",
    access_key_id="ASIA1",
    role_arn="arn:aws:iam::111122223333:role/vision",
)
POLICY = parse_resource_policy(
    {
        "Statement": [
            {
                "Effect": "Deny",
                "Principal": "*",
                "Action": "execute-api:Invoke",
                "Resource": f"{API}/*",
                "Condition": {"StringNotEquals": {"aws:SourceVpce": ["vpce-local"]}},
            },
            {
                "Effect": "Allow",
                "Principal": {"AWS": [ADMIN.arn]},
                "Action": "execute-api:Invoke",
                "Resource": f"{API}/*",
            },
        ]
    }
)
MAY_INVOKE = parse_policy({"Statement": {"Effect": "Allow", "Action": "execute-api:*", "Resource": "*"}})
MAY_NOT = parse_policy({"Statement": {"Effect": "Deny", "Action": "*", "Resource": "*"}})


@pytest.mark.parametrize(
    ("principal", "own", "endpoint", "decision"),
    [
        pytest.param(ADMIN, (), "vpce-local", Decision.ALLOWED, id="the resource policy's Allow is enough"),
        pytest.param(
            SESSION, MAY_INVOKE, "vpce-local", Decision.ALLOWED, id="the caller's own Allow is enough"
        ),
        pytest.param(SESSION, None, "vpce-local", Decision.ALLOWED, id="a role that counts as allowed"),
        pytest.param(SESSION, (), "vpce-local", Decision.NOT_ALLOWED, id="G2b: neither says yes"),
        pytest.param(ADMIN, MAY_INVOKE, "vpce-other", Decision.DENIED, id="G3: another VPC endpoint"),
        pytest.param(ADMIN, MAY_NOT, "vpce-local", Decision.DENIED, id="the caller's own Deny wins"),
    ],
)
def test_policies_combine_as_within_one_account(
    principal: Principal, own: Any, endpoint: str, decision: Decision
) -> None:
    call = (f"{API}/prod/GET/jobs", normalized({"aws:SourceVpce": endpoint}))
    assert combined(POLICY, own, principal, call=call) is decision


def test_a_statement_for_the_role_covers_its_sessions() -> None:
    policy = parse_resource_policy(
        {
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"AWS": SESSION.role_arn},
                    "Action": "execute-api:Invoke",
                    "Resource": "*",
                }
            ]
        }
    )
    assert combined(policy, (), SESSION, call=(f"{API}/prod/GET/jobs", {})) is Decision.ALLOWED
    assert combined(policy, (), ADMIN, call=(f"{API}/prod/GET/jobs", {})) is Decision.NOT_ALLOWED


def test_a_principal_the_twin_would_misread_is_refused() -> None:
    statement = {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "*"}
    with pytest.raises(TemplateError):
        parse_resource_policy({"Statement": [statement | {"Principal": {"Service": "x.amazonaws.com"}}]})
    with pytest.raises(TemplateError):
        parse_resource_policy({"Statement": [statement]})


def call(**changes: Any) -> Call:
    request = Request(
        method="GET",
        raw_path="/_api/abc/prod/jobs/a%20b",
        query=changes.pop("query", ""),
        headers={"content-type": "application/json", "user-agent": "test"},
        body=changes.pop("body", b""),
    )
    return Call(
        request=request,
        path="/jobs/a%20b",
        route=Route(resource="/jobs/{name}", function_arn="f", variables={"name": "a b"}),
        principal=SESSION,
        api_id="abc",
        stage="prod",
        request_id="r1",
        vpc_endpoint_id="vpce-local",
        at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    )


def test_the_event_says_who_calls_and_what() -> None:
    event = proxy_event(call(body=b'{"a": 1}', query="state=running&state=held&x=%20"))
    assert event["resource"] == "/jobs/{name}"
    assert event["path"] == "/jobs/a b"
    assert event["pathParameters"] == {"name": "a b"}
    assert event["queryStringParameters"] == {"state": "held", "x": " "}
    assert event["multiValueQueryStringParameters"] == {"state": ["running", "held"], "x": [" "]}
    assert event["body"] == '{"a": 1}'
    assert event["isBase64Encoded"] is False
    context = event["requestContext"]
    assert context["identity"]["userArn"] == SESSION.arn
    assert context["identity"]["accountId"] == "111122223333"
    assert context["identity"]["vpceId"] == "vpce-local"
    assert context["requestTime"] == "02/Jan/2026:03:04:05 +0000"
    assert (context["stage"], context["path"]) == ("prod", "/prod/jobs/a b")


def test_what_is_absent_is_null() -> None:
    event = proxy_event(call())
    assert event["body"] is None
    assert event["queryStringParameters"] is None
    assert event["multiValueQueryStringParameters"] is None


def test_an_answer_becomes_a_response() -> None:
    answer = {
        "statusCode": 201,
        "headers": {"X-A": True},
        "multiValueHeaders": {"B": ["1", "2"]},
        "body": "ü",
    }
    response = response_of(json.dumps(answer).encode())
    assert response is not None
    assert (response.status, response.body) == (201, "ü".encode())
    assert response.headers == {"x-a": "true", "b": "1,2", "content-type": "application/json"}


def test_an_encoded_body_is_decoded() -> None:
    response = response_of(b'{"statusCode": 200, "body": "AAE=", "isBase64Encoded": true}')
    assert response is not None
    assert response.body == b"\x00\x01"


@pytest.mark.parametrize(
    "payload",
    [b"null", b'"text"', b"{}", b'{"statusCode": "x"}', b'{"statusCode": 200, "body": {"a": 1}}', b"no json"],
)
def test_an_answer_of_the_wrong_form_is_none(payload: bytes) -> None:
    assert response_of(payload) is None
