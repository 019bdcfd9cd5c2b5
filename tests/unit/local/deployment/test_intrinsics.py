"""Intrinsic functions resolve as CloudFormation resolves them, and unknown ones are refused."""

from typing import Any

import pytest

from local.deployment.deployment_errors import TemplateError
from local.deployment.intrinsics import Resolver


class Names:
    def ref(self, name: str) -> Any:
        values = {"Name": "x", "Many": ["a", "b"], "Flag": "true", "Count": "3", "AWS::Region": "eu-west-1"}
        if name not in values:
            raise TemplateError(name, "no such parameter or resource")
        return values[name]

    def attribute(self, name: str, attribute: str) -> str:
        return f"{name}/{attribute}"


RESOLVER = Resolver(
    names=Names(),
    conditions={
        "On": {"Fn::Equals": [{"Ref": "Flag"}, "true"]},
        "Off": {"Fn::Not": [{"Condition": "On"}]},
        "Both": {"Fn::And": [{"Condition": "On"}, {"Condition": "Off"}]},
        "One": {"Fn::Or": [{"Condition": "On"}, {"Condition": "Off"}]},
    },
    mappings={"Sizes": {"eu-west-1": {"small": 3}}},
)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param({"Fn::Equals": [{"Ref": "Count"}, 3]}, True, id="a number equals its text"),
        pytest.param({"Fn::Equals": [{"Ref": "Count"}, 4]}, False, id="another number does not"),
        pytest.param({"Fn::Equals": [True, "true"]}, True, id="a boolean equals its text"),
        pytest.param({"Ref": "Many"}, ["a", "b"], id="a list parameter stays a list"),
        pytest.param({"Fn::GetAtt": ["Table", "Arn"]}, "Table/Arn", id="attribute as a list"),
        pytest.param({"Fn::GetAtt": "Table.Arn"}, "Table/Arn", id="attribute as text"),
        pytest.param({"Fn::Sub": "a-${Name}-${T.Arn}"}, "a-x-T/Arn", id="names and attributes in a text"),
        pytest.param({"Fn::Sub": "${!Name}"}, "${Name}", id="an escaped variable stays"),
        pytest.param({"Fn::Sub": ["${V}-${Name}", {"V": {"Ref": "Name"}}]}, "x-x", id="own variables first"),
        pytest.param({"Fn::Join": [",", {"Ref": "Many"}]}, "a,b", id="join"),
        pytest.param({"Fn::Split": [",", "a,b"]}, ["a", "b"], id="split"),
        pytest.param({"Fn::Select": ["1", {"Ref": "Many"}]}, "b", id="select by a text index"),
        pytest.param({"Fn::If": ["On", 1, 2]}, 1, id="condition holds"),
        pytest.param({"Fn::If": ["Both", 1, 2]}, 2, id="condition does not hold"),
        pytest.param([{"Fn::If": ["Off", 1, {"Ref": "AWS::NoValue"}]}, 3], [3], id="no value leaves a list"),
        pytest.param({"a": {"Ref": "AWS::NoValue"}, "b": 1}, {"b": 1}, id="no value leaves a map"),
        pytest.param({"Fn::If": ["One", "yes", "no"]}, "yes", id="or"),
        pytest.param({"Fn::FindInMap": ["Sizes", {"Ref": "AWS::Region"}, "small"]}, 3, id="a mapping"),
        pytest.param(
            {"Condition": {"StringEquals": {"a": {"Ref": "Name"}}}},
            {"Condition": {"StringEquals": {"a": "x"}}},
            id="the conditions of an IAM statement are no condition of the template",
        ),
    ],
)
def test_resolves(node: Any, expected: Any) -> None:
    assert RESOLVER.resolve(node) == expected


@pytest.mark.parametrize(
    "node",
    [
        pytest.param({"Fn::Cidr": ["10.0.0.0/8", 1, 8]}, id="an unknown function"),
        pytest.param({"Ref": "Nobody"}, id="an unknown name"),
        pytest.param({"Fn::If": ["Nobody", 1, 2]}, id="an unknown condition"),
        pytest.param({"Fn::Select": [2, {"Ref": "Many"}]}, id="an index outside the list"),
        pytest.param({"Fn::Sub": "${Many}"}, id="a list in a text"),
        pytest.param({"Fn::Join": [",", "a"]}, id="a text where a list is needed"),
        pytest.param({"Fn::FindInMap": ["Sizes", "mars", "small"]}, id="nothing in the mapping"),
        pytest.param({"Fn::If": ["On", {"Fn::Not": ["true"]}, 2]}, id="a text is no condition"),
    ],
)
def test_refuses(node: Any) -> None:
    with pytest.raises(TemplateError):
        RESOLVER.resolve(node)
