"""Only the services that trigger a function may invoke it, so that events come from the gateway alone."""

import copy
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import pytest

from tests.template import stack
from tests.template.rights import as_list

INVOKE = ("lambda:InvokeFunction", "lambda:InvokeAsync", "lambda:InvokeFunctionUrl")
"""Each of them runs a function with an event of the caller's choice."""
BY_SCHEDULE = ("ReconcileScheduleRole", "${ReconcileFunction.Arn}")
SERVICES = {"apigateway.amazonaws.com", "events.amazonaws.com", "sns.amazonaws.com"}
API_BEHIND = "arn:aws:execute-api:eu-west-1:111122223333:${Api}/"
"""What every permission of the gateway must name: this API and no other."""


def invokers(resources: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(where it is granted, what may be invoked), wherever in the template a statement stands."""
    for name, resource in resources.items():
        for statement in statements(resource):
            if statement["Effect"] == "Allow" and invokes(statement):
                yield from ((name, on) for on in as_list(statement.get("Resource", "*")))


def statements(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        if "Effect" in value and value.keys() & {"Action", "NotAction"}:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from statements(one)


def invokes(statement: Mapping[str, Any]) -> bool:
    given = [action.lower() for action in as_list(statement.get("Action", "*"))]
    return any(fnmatchcase(one.lower(), action) for one in INVOKE for action in given)


def test_G5_no_policy_of_the_template_lets_anybody_invoke_a_function_with_an_event_of_his_own() -> None:
    assert list(invokers(stack.resources())) == [BY_SCHEDULE]


def test_G5_functions_let_in_services_alone_and_the_gateway_for_this_api_alone() -> None:
    given = stack.of_type(stack.resources(), "AWS::Lambda::Permission").values()
    assert {one["Principal"] for one in given} == SERVICES
    gateway = [one for one in given if one["Principal"] == "apigateway.amazonaws.com"]
    assert {one["FunctionName"] for one in gateway} == {"${ApiFunction}"}
    assert all(one["SourceArn"].startswith(API_BEHIND) for one in gateway)
    assert all("SourceArn" in one for one in given)
    assert not stack.of_type(stack.resources(), "AWS::Lambda::Url")


@pytest.mark.parametrize("action", ["lambda:InvokeFunction", "lambda:Invoke*", "Lambda:*", "*"])
@pytest.mark.parametrize("name", ["ApiFunctionRole", "ScheduleFunctionRole", "Key"])
def test_a_grant_more_is_seen(name: str, action: str) -> None:
    resources = copy.deepcopy(stack.resources())
    more = {"Effect": "Allow", "Action": ["logs:PutLogEvents", action], "Resource": "${ApiFunction.Arn}"}
    resources[name]["Properties"]["More"] = {"Statement": [more]}
    assert (name, "${ApiFunction.Arn}") in list(invokers(resources))
