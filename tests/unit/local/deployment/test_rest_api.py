"""The REST API out of an OpenAPI body: routes, resource policy, and what is refused."""

import copy
from pathlib import Path
from typing import Any

import pytest

from local.deployment.deployment_errors import TemplateError
from local.deployment.resources.kinds import Made, Site
from local.deployment.resources.rest_api import KINDS
from local.deployment.wiring import Wiring

FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:f"
URI = f"arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/{FUNCTION}/invocations"
METHOD = {
    "x-amazon-apigateway-integration": {"httpMethod": "POST", "type": "aws_proxy", "uri": URI},
    "security": [{"AWS_IAM": []}],
    "responses": {},
}
BODY: dict[str, Any] = {"openapi": "3.0.1", "paths": {"/jobs/{name}": {"get": METHOD}}}


class NoRoles:
    def add_role(self, arn: str, policies: Any) -> None:
        raise AssertionError(arn, policies)


def make(body: Any) -> tuple[Made, Wiring]:
    wiring = Wiring()
    site = Site(
        stack="s",
        region="us-east-1",
        account_id="123456789012",
        folder=Path(),
        client=pytest.fail,
        roles=NoRoles(),
        wiring=wiring,
    )
    return KINDS["AWS::ApiGateway::RestApi"].make(site, "Api", {"Body": body}), wiring


def test_each_method_becomes_a_route_to_its_function() -> None:
    made, wiring = make(BODY)
    api = wiring.apis[made.ref]
    assert api.routes == {("GET", "/jobs/{name}"): FUNCTION}
    assert api.policy is None


def test_short_resources_of_the_policy_are_written_out_and_full_ones_stay() -> None:
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Resource": "execute-api:/prod/*"},
            {"Effect": "Deny", "Resource": ["execute-api:/*", "arn:aws:execute-api:*:*:other/*"]},
        ],
    }
    made, wiring = make(BODY | {"x-amazon-apigateway-policy": policy})
    arn = f"arn:aws:execute-api:us-east-1:123456789012:{made.ref}"
    written = wiring.apis[made.ref].policy
    assert written is not None
    assert written["Statement"] == [
        {"Effect": "Allow", "Resource": [f"{arn}/prod/*"]},
        {"Effect": "Deny", "Resource": [f"{arn}/*", "arn:aws:execute-api:*:*:other/*"]},
    ]


def changed(*path: str, to: Any) -> dict[str, Any]:
    body = copy.deepcopy(BODY)
    node = body
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = to
    return body


GET = ("paths", "/jobs/{name}", "get")
INTEGRATION = "x-amazon-apigateway-integration"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"openapi": "3.0.1"}, id="no paths"),
        pytest.param(changed("x-amazon-apigateway-gateway-responses", to={}), id="a part of the body"),
        pytest.param(
            changed(*GET, "x-amazon-apigateway-request-validator", to="all"), id="a part of a method"
        ),
        pytest.param(changed(*GET, "security", to=[]), id="a method that anybody may call"),
        pytest.param(changed(*GET, INTEGRATION, "credentials", to="arn:x"), id="the caller's rights"),
        pytest.param(changed(*GET, INTEGRATION, "type", to="aws"), id="an integration that is no proxy"),
        pytest.param(changed(*GET, INTEGRATION, "uri", to="arn:aws:apigateway:x"), id="not a function"),
    ],
)
def test_what_the_twin_would_serve_wrongly_is_refused(body: Any) -> None:
    with pytest.raises(TemplateError):
        make(body)
