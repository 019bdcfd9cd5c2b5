"""Take the stack apart, one piece at a time: each missing or loosened piece must be noticed by some check."""

import copy
import re
from collections.abc import Iterator, MutableMapping, MutableSequence
from typing import Any

import pytest

from tests.template import stack
from tests.template.checks import wrong
from tests.template.stack import of_type

Path = tuple[str | int, ...]

# Text for people and names that nothing depends on, and conditions (test_parameters.py tries them out).
# Everything else has to be noticed.
FREE = re.compile(
    r"""
    /(Alarm)?Description$ | /Sid$ | /PolicyName$ | /DisplayName$ | /Metadata(/|$) | /Tags(/|$)
    | ^(ApiGateway\w+|OldestWaitAlarm)/Condition$
    | ^Layer\w+/ (DeletionPolicy|Properties/LayerName)$
    | ^Api/Properties/ (Name|Body/(info(/.*)?|openapi))$ | /responses$
    """,
    re.VERBOSE,
)


def _pieces(value: Any, path: Path = ()) -> Iterator[Path]:
    items: Any = ()
    if isinstance(value, MutableMapping):
        items = value.items()
    elif isinstance(value, MutableSequence):
        items = enumerate(value)
    for key, one in items:
        yield (*path, key)
        yield from _pieces(one, (*path, key))


def _parent(resources: Any, path: Path) -> Any:
    for key in path[:-1]:
        resources = resources[key]
    return resources


def _is_noticed(resources: Any) -> bool:
    try:
        return any(wrong(resources))
    except (KeyError, ValueError, TypeError):
        return True  # a check that cannot read the template fails too


def _survives_without(resources: Any, path: Path) -> bool:
    parent, key = _parent(resources, path), path[-1]
    if isinstance(parent, MutableSequence):
        piece = parent.pop(int(key))
        noticed = _is_noticed(resources)
        parent.insert(int(key), piece)
    else:
        original = dict(parent)
        del parent[key]
        noticed = _is_noticed(resources)
        parent.update(original)
    return not noticed


@pytest.fixture
def resources() -> Any:
    return copy.deepcopy(stack.resources())


def test_every_piece_of_the_stack_is_missed_when_it_is_gone(resources):
    pieces = [path for path in _pieces(resources) if not FREE.search("/".join(map(str, path)))]
    survivors = ["/".join(map(str, path)) for path in pieces if _survives_without(resources, path)]
    assert not survivors
    assert len(pieces) > 800  # the walk really went into the policies


@pytest.mark.parametrize("role", sorted(of_type(stack.resources(), "AWS::IAM::Role")))
@pytest.mark.parametrize("action", ["sagemaker:DeleteTrainingJob", "lambda:InvokeFunction", "sqs:*", "*"])
def test_every_right_more_is_noticed(resources, role, action):
    more = {"Effect": "Allow", "Action": action, "Resource": "*"}
    resources[role]["Properties"].setdefault("Policies", []).append(
        {"PolicyName": "more", "PolicyDocument": {"Version": "2012-10-17", "Statement": [more]}}
    )
    assert any(wrong(resources))


def test_every_wider_resource_is_noticed(resources):
    survivors = []
    for name, role in of_type(resources, "AWS::IAM::Role").items():
        for policy in role.get("Policies", []):
            for statement in policy["PolicyDocument"]["Statement"]:
                narrow, statement["Resource"] = statement["Resource"], "*"
                survivors += [(name, statement["Sid"])] if narrow != "*" and not any(wrong(resources)) else []
                statement["Resource"] = narrow
    assert not survivors
    assert not any(wrong(resources))


def test_every_other_way_to_a_right_is_noticed(resources):
    for change in (
        {"Role": {"Type": "AWS::IAM::Role", "Properties": {}}},
        {"Policy": {"Type": "AWS::IAM::Policy", "Properties": {}}},
        {"Url": {"Type": "AWS::Lambda::Url", "Properties": {}}},
        {"Anyone": {"Type": "AWS::Lambda::Permission", "Properties": {"Principal": "*"}}},
    ):
        assert _is_noticed({**resources, **change}), change
